"""A line is followed for its first passes; then it is let go, and the names tell what came last."""

import sys
import textwrap

import pytest

from tensortutor.lens.lines import note, remarks
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Trace
from tensortutor.worker.lens import recorder
from tensortutor.worker.lens.lens import Lens
from tensortutor.worker.lens.recorder import Activation

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
            ); w = z * 2
    """,
    "match": """
        for n in range(100):
            match n % 3:
                case 0:
                    x = torch.ones(n + 1)
                case 1 | 2:
                    y = torch.ones(n + 1)
                    y.add_(
                        1
                    )
    """,
}  # fmt: skip


def trace_of(source: str, *, everything: bool = False) -> Trace:
    """The lines of a program that runs here."""
    source = "import torch\n" + textwrap.dedent(source).lstrip()
    lens = Lens(Look(trace=True, everything=everything), source, "lesson.py")
    error = None
    names = {"__name__": "__main__"}
    try:
        lens.run(compile(source, "lesson.py", "exec"), names)
    except RuntimeError as raised:
        error = raised
    trace = next(event for event in lens.report(names, error) if isinstance(event, Trace))
    assert not trace.note
    return trace


def by_name(trace: Trace) -> dict[tuple[int, str], tuple[str, int, bool]]:
    """(line, name) -> (words, count, whether there were more)."""
    return {
        (line.line, one.name): (one.words, line.count, line.first_only)
        for line in trace.lines
        for one in line.made
    }


def marks(trace: Trace, kind: str) -> list[tuple[int, str, str]]:
    """(line, name, text) of all marks of a kind."""
    return [
        (line.line, one.name, mark.text)
        for line in trace.lines for one in line.made for mark in one.marks if mark.kind == kind
    ]  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_said_of_the_first_passes_is_what_following_everything_says(name):
    first = by_name(trace_of(PROGRAMS[name]))
    every = by_name(trace_of(PROGRAMS[name], everything=True))
    assert first.keys() == every.keys()
    for place, (_, count, more) in every.items():
        assert not more
        words, seen, let_go = first[place]
        assert seen <= min(count, 64), place
        assert let_go == (seen < count), place
        if not let_go:
            assert words == every[place][0], place


def test_a_line_is_followed_64_times_and_its_name_tells_what_it_held_last():
    trace = trace_of("""
        for n in range(900):
            x = torch.ones(n + 1)
        z = torch.ones(2)
    """)
    assert by_name(trace) == {(3, "x"): ("f32[900]", 64, True), (4, "z"): ("f32[2]", 1, False)}
    assert [note(line) for line in trace.lines] == ["x: f32[900]  first 64", "z: f32[2]"]
    assert trace.lines[0].made[0].seen == 0
    told = list(remarks(trace.lines[0], "press I to follow everything"))
    assert told == ["not followed past pass 64; press I to follow everything"]


def test_statements_that_share_a_line_count_as_one():
    found = by_name(
        trace_of("""
        for n in range(4):
            x = torch.ones(
                n + 1); y = x + 1
    """)
    )
    assert found == {(3, "x"): ("f32[4]", 4, False), (3, "y"): ("f32[4]", 4, False)}


def test_what_a_return_over_several_lines_gives_back_is_told():
    found = by_name(
        trace_of("""
        def f(x):
            return torch.stack([
                x, x])
        f(torch.ones(2))
    """)
    )
    assert found[3, "return"] == ("f32[2, 2]", 1, False)


def test_what_a_case_of_a_match_stores_is_told_at_its_own_line_alone():
    found = by_name(
        trace_of("""
        for n in range(3):
            match n:
                case 0:
                    x = torch.ones(1)
                case _:
                    x.add_(1)
    """)
    )
    assert found == {(5, "x"): ("f32[1]", 1, False), (7, "x"): ("f32[1]", 2, False)}


def test_the_names_of_a_function_tell_what_they_held_when_it_returned():
    found = by_name(
        trace_of("""
        def train(steps):
            for n in range(steps):
                x = torch.ones(n + 1)
            y = x + 1
            return y
        y = train(200)
    """)
    )
    assert found[4, "x"] == ("f32[200]", 64, True)
    assert found[5, "y"] == found[7, "y"] == ("f32[200]", 1, False)


def test_a_branch_that_is_taken_late_is_followed():
    found = by_name(
        trace_of("""
        def late(n):
            q = torch.ones(n)
            return q
        for n in range(400):
            if n == 300:
                x = late(n)
                y = x + 1
            z = torch.ones(2)
    """)
    )
    assert found[7, "x"] == found[8, "y"] == found[3, "q"] == ("f32[300]", 1, False)


def test_when_the_lens_has_used_up_its_time_it_follows_fewer_passes(monkeypatch):
    monkeypatch.setattr(recorder, "BUDGET_S", 0.0)
    trace = trace_of("for n in range(30):\n    x = torch.ones(n + 1)\n")
    assert by_name(trace) == {(3, "x"): ("f32[30]", 4, True)}
    assert note(trace.lines[0]) == "x: f32[30]  first 4"
    every = trace_of("for n in range(30):\n    x = torch.ones(n + 1)\n", everything=True)
    assert by_name(every) == {(3, "x"): ("f32[30]", 30, False)}


def test_lines_that_were_let_go_cost_no_look(monkeypatch):
    looks = []
    finish = Activation._finish
    monkeypatch.setattr(Activation, "_finish", lambda *a: (looks.append(1), finish(*a))[1])
    trace_of("for n in range(5000):\n    x = torch.ones(n + 1)\n")
    assert 0 < len(looks) < 200


NAN = """
def step(n):
    h = w * n
    return torch.sqrt(137.0 - h).sum()
w = torch.ones(3, requires_grad=True)
for n in range(300):
    scaled = w * n
    loss = torch.sqrt(137.0 - scaled).sum()
    again = loss * 2
final = loss + 1
"""


def test_a_nan_past_the_first_passes_says_that_they_were_not_followed():
    ((line, name, text),) = marks(trace_of(NAN), "nan")
    assert (line, name) == (8, "loss")
    assert text == "NaN was here at the end; not followed past pass 64"


def test_following_everything_tells_the_pass_of_the_first_nan():
    ((line, name, text),) = marks(trace_of(NAN, everything=True), "nan")
    assert (line, name) == (8, "loss")
    assert text == "NaN was first seen here at pass 139"


def test_a_nan_within_the_first_passes_tells_its_pass():
    trace = trace_of("""
        for n in range(300):
            x = torch.sqrt(torch.full((4,), 37.0 - n))
    """)
    assert marks(trace, "nan") == [(3, "x", "NaN was first seen here at pass 39")]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="settrace is used below Python 3.12")
def test_functions_called_without_end_are_not_traced_for_ever(monkeypatch):
    from tensortutor.worker.lens import line_tracing, settrace

    monkeypatch.setattr(settrace, "MOST_CALLS", 500)
    source = textwrap.dedent("""
        def f(n):
            return n + 1
        for n in range(2000):
            k = f(n)
    """).lstrip()
    lens = Lens(Look(trace=True), source, "lesson.py")
    names = {"__name__": "__main__"}
    lens.run(compile(source, "lesson.py", "exec"), names)
    (trace, _) = lens.report(names, None)
    assert trace.note == line_tracing.GAVE_UP
