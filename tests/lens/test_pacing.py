"""Loops that are left unfollowed for a while are counted and told as if they were followed."""

import textwrap
import traceback

import pytest

from tensortutor.lens.lines import note
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Trace
from tensortutor.worker.lens import watch
from tensortutor.worker.lens.blocks import READS_CODE
from tensortutor.worker.lens.recorder import Activation, Recorder
from tensortutor.worker.lens.report import Lens

PROGRAMS = {
    "branches": """
        for n in range(300):
            x = torch.ones(n % 7 + 1)
            if n % 100 == 50:
                y = x * 2
            elif n % 3:
                y = x.sum()
                if n % 2:
                    continue
                z = y + 1
            else:
                w = x - 1
                w += 1
        end = torch.ones(2)
    """,
    "nested": """
        for epoch in range(30):
            for n in range(20):
                x = torch.ones(n + 1)
                for k in range(2):
                    y = x + k
            e = torch.ones(epoch + 1)
        else:
            last = torch.ones(3)
    """,
    "break": """
        for n in range(300):
            x = torch.ones(n + 1)
            if n == 250:
                break
            y = x + 1
    """,
    "functions": """
        def inner(x):
            'Says what it does.'
            y = x + 1
            for i in range(3):
                z = y + i
            return z
        def outer(n, x):
            if n % 10 == 0:
                t = inner(x)
                return t
            u = x.sum()
            return u
        for n in range(200):
            r = outer(n, torch.ones(n + 1))
    """,
    "return from a loop": """
        def first(limit):
            for n in range(1000):
                x = torch.ones(n + 1)
                if n == limit:
                    return x
                y = x * 2
        for limit in range(40):
            f = first(limit)
    """,
    "try": """
        for n in range(100):
            try:
                x = torch.ones(n + 1)
                if n % 3 == 0:
                    raise ValueError
                y = x * 2
            except ValueError:
                z = x + 1
            finally:
                w = torch.ones(2)
            v = torch.ones(3)
    """,
    "raised": """
        def f(n):
            x = torch.ones(n + 1)
            if n > 0:
                x = x @ torch.ones(n + 1 if n < 150 else 3)
            return x
        for n in range(200):
            a = torch.ones(2)
            y = f(n)
            z = y + 1
    """,
    "generators": """
        def gen(n):
            for i in range(n):
                y = torch.ones(i + 1)
                yield y
        for g in gen(100):
            h = g + 1
        for batch in zip(gen(3), gen(3)):
            p, q = batch
    """,
    "modules": """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(4, 3)
            def forward(self, x):
                h = self.fc(x)
                if self.training:
                    h = h.relu()
                return h
        net = Net()
        for step in range(300):
            loss = net(torch.ones(5, 4)).mean()
            loss.backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
        net.eval()
        out = net(torch.ones(5, 4))
    """,
    "while": """
        n = 0
        while True:
            n += 1
            x = torch.ones(n)
            if n % 100 == 50:
                continue
            y = x + 1
            if n == 240:
                break
            z = y * 2
        while n > 0:
            w = torch.ones(n)
            n -= 1
        else:
            last = torch.ones(3)
        end = torch.ones(2)
    """,
    "while in loops and functions": """
        def descend(x, limit):
            steps = 0
            while (x * x).sum() > limit:
                x = x * 0.5
                steps += 1
                if steps > 20:
                    return x
            out = x + 1
            return out
        for n in range(40):
            r = descend(torch.ones(n % 5 + 2), 1e-3)
            k = 0
            while k < n:
                k += 1; v = torch.ones(k)
        left = 60
        while left:
            for i in range(3):
                a = torch.ones(i + left)
                while a.numel() > left:
                    a = a[1:]
            left -= 1
    """,
    "while that stores in its head": """
        for n in range(60):
            items = iter([torch.ones(n + 1), torch.ones(n + 2)])
            while (item := next(items, None)) is not None:
                y = item + 1
    """,
    "while that raises": """
        n = 0
        try:
            while True:
                n += 1
                x = torch.ones(n)
                if n == 150:
                    y = x @ torch.ones(3)
        except RuntimeError:
            z = torch.ones(4)
        while True:
            n += 1
            u = torch.ones(n)
            v = u @ torch.ones(n if n < 290 else 3)
            w = v + 1
    """,
    "one line and several": """
        for n in range(100): x = torch.ones(n + 1)
        for n in range(100):
            y = torch.full(
                (n + 1,
                 2),
                1.0,
            )
            z = (
                y
                + 1
            )
    """,
}  # fmt: skip


def told(source: str) -> Trace:
    """The lines of a program that runs here."""
    lens = Lens(Look(trace=True), source, "lesson.py")
    error = None
    names = {"__name__": "__main__"}
    try:
        lens.run(compile(source, "lesson.py", "exec"), names)
    except RuntimeError as raised:
        error = raised
    (trace, _) = lens.report(names, error)
    assert isinstance(trace, Trace)
    assert not trace.note
    return trace


def by_name(trace: Trace) -> dict[tuple[int, str], tuple[str, int, bool]]:
    """(line, name) -> (words, count, whether the words are said to be of an earlier time)."""
    return {
        (line.line, one.name): (
            one.words, line.count, any(mark.kind == "earlier" for mark in one.marks)
        )
        for line in trace.lines
        for one in line.made
    }  # fmt: skip


@pytest.fixture
def paced(monkeypatch):
    """As on a machine on which following is dear: nothing is sampled between first and last."""
    from tensortutor.worker.lens import pacing

    monkeypatch.setattr(pacing, "SHARE", 1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_and_last_values_are_those_of_a_program_that_is_followed(name, paced, monkeypatch):
    source = "import torch\n" + textwrap.dedent(PROGRAMS[name]).lstrip()
    left = by_name(told(source))
    monkeypatch.setattr(watch, "pacer", lambda *_: None)
    monkeypatch.setattr(Recorder, "affordable", lambda _: True)
    followed = by_name(told(source))
    assert followed.keys() <= left.keys()
    for place, (words, count, _) in followed.items():
        assert left[place][1] == count, place
        assert left[place][0] == words or left[place][2], place


def test_a_loop_is_left_unfollowed_between_its_first_iterations_and_its_end(paced, monkeypatch):
    events = []
    trace = Activation.trace
    monkeypatch.setattr(Activation, "trace", lambda *a: (events.append(a[2]), trace(*a))[1])
    source = "import torch\nfor n in range(900):\n    x = torch.ones(n + 1)\nz = torch.ones(2)\n"
    found = by_name(told(source))
    assert 0 < len(events) < 60
    assert found == {(3, "x"): ("f32[900]", 900, False), (4, "z"): ("f32[2]", 1, False)}


def test_a_while_loop_is_left_unfollowed_too_and_its_body_counted(paced, monkeypatch):
    events = []
    trace = Activation.trace
    monkeypatch.setattr(Activation, "trace", lambda *a: (events.append(a[2]), trace(*a))[1])
    source = """
    import torch
    n = 0
    while True:
        n += 1
        x = torch.ones(n)
        if n == 900:
            break
    z = torch.ones(2)
    """
    found = by_name(told(textwrap.dedent(source).lstrip()))
    assert 0 < len(events) < 90
    assert found == {(5, "x"): ("f32[900]", 900, False), (8, "z"): ("f32[2]", 1, False)}


@pytest.mark.parametrize("rounds", [3, 300])
def test_a_while_on_one_line_counts_its_rounds(rounds, paced):
    source = f"""
    import torch
    k = 0
    while k < {rounds}: k += 1; v = torch.ones(k)
    """
    found = by_name(told(textwrap.dedent(source).lstrip()))
    assert found == {(3, "v"): (f"f32[{rounds}]", rounds, False)}


def test_a_branch_that_is_first_taken_while_nothing_is_followed_is_seen(paced):
    source = """
    import torch
    def late(n):
        q = torch.ones(n)
        return q
    for n in range(400):
        if n == 300:
            x = late(n)
            y = x + 1
    """
    found = by_name(told(textwrap.dedent(source).lstrip()))
    assert found[7, "x"] == found[8, "y"] == found[3, "q"] == ("f32[300]", 1, False)


def test_a_branch_that_is_taken_now_and_then_tells_what_it_made_last(paced):
    source = """
    import torch
    for n in range(1, 501):
        if n % 100 == 0:
            x = torch.ones(n)
    """
    lens = told(textwrap.dedent(source).lstrip())
    assert by_name(lens) == {(4, "x"): ("f32[500]", 5, False)}
    assert lens.lines[0].made[0].seen == 5


def test_what_was_counted_only_in_part_says_so(paced):
    source = """
    import torch
    def fall(n):
        t = torch.ones(2)
        return t if n == 0 else fall(n - 1)
    for n in range(400):
        x = fall(2)
    """
    lines = {line.line: line for line in told(textwrap.dedent(source).lstrip()).lines}
    assert lines[3].at_least
    assert note(lines[3]).endswith("+")
    assert (lines[6].count, lines[6].at_least) == (400, False)


NAN = """
import torch
w = torch.ones(3, requires_grad=True)
def step(n):
    h = w * n
    return torch.sqrt(137.0 - h).sum()
n = 0
{head}
    n = n + 1
    scaled = w * n
    loss = torch.sqrt(137.0 - scaled).sum()
    again = loss * 2
    count = float(n)
    if n == 300:
        break
"""


@pytest.mark.parametrize("head", ["while True:", "for _ in range(1000):"])
def test_the_first_nan_of_a_loop_is_told_to_the_pass_although_it_is_not_followed(head, paced):
    trace = told(NAN.format(head=head).lstrip())
    (mark,) = (
        (line.line, one.name, mark.text)
        for line in trace.lines for one in line.made for mark in one.marks if mark.kind == "nan"
    )  # fmt: skip
    text = "NaN was first seen here at execution 138; it was still finite one pass before"
    assert mark == (10, "loss", text.replace("it was", "again was"))


def test_the_nan_that_ends_a_loop_is_told_to_the_pass(paced):
    source = """
    import torch
    for n in range(1, 300):
        loss = torch.sqrt(torch.tensor(137.0 - n)).mean()
        if loss.isnan():
            break
    """
    trace = told(textwrap.dedent(source).lstrip())
    (made,) = trace.lines[0].made
    assert [mark.text for mark in made.marks if mark.kind == "nan"] == [
        "NaN was first seen here at execution 138; it was still finite one pass before"
    ]


def test_a_nan_that_no_number_of_the_loop_tells_of_says_when_it_was_looked_at_before(paced):
    source = """
    import torch
    for n in range(1, 301):
        x = torch.sqrt(torch.full((4,), 137.0 - n))
    """
    trace = told(textwrap.dedent(source).lstrip())
    (made,) = trace.lines[0].made
    assert [mark.text for mark in made.marks if mark.kind == "nan"] == [
        "NaN was first seen here at execution 300; it was finite at 8, and not looked at in between"
    ]


def test_a_traceback_points_to_the_same_places(paced):
    source = """
    import torch
    def rows(n):
        for row in torch.ones(n, 2):
            yield row @ torch.ones(2 if n < 50 else 3)
    for n in range(1, 60):
        k = 0
        while k < 3:
            k += 1
        for r in rows(
            n
        ):
            while True:
                if n > 57:
                    raise RuntimeError
                break
    """
    source = textwrap.dedent(source).lstrip()
    with pytest.raises(RuntimeError) as plain:
        exec(compile(source, "lesson.py", "exec"), {})
    lens = Lens(Look(trace=True), source, "lesson.py")
    with pytest.raises(RuntimeError) as left:
        lens.run(compile(source, "lesson.py", "exec"), {})
    assert places(left.value) == places(plain.value)
    for wrong in ("for x in 5:\n    pass\n", "for x, y in [(1, 2), 3]:\n    pass\n"):
        with pytest.raises(TypeError) as plain_too:
            exec(compile(wrong, "lesson.py", "exec"), {})
        lens = Lens(Look(trace=True), wrong, "lesson.py")
        with pytest.raises(TypeError) as left_too:
            lens.run(compile(wrong, "lesson.py", "exec"), {})
        assert places(left_too.value) == places(plain_too.value)
        assert str(left_too.value) == str(plain_too.value)


def places(error: BaseException) -> list[object]:
    """Where the frames of the learner's file stand."""
    frames = traceback.extract_tb(error.__traceback__)
    return [
        (f.name, f.lineno, getattr(f, "end_lineno", 0), getattr(f, "colno", 0))
        for f in frames
        if f.filename == "lesson.py"
    ]


@pytest.mark.parametrize("line", ["import dis", "f = torch.compile(g)", "code = g.__code__"])
def test_a_program_that_looks_at_its_own_code_keeps_it(line):
    assert READS_CODE.search(line)
    assert watch.pacer(line, "lesson.py") is None
