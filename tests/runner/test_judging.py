"""Checks put to a program: verdicts, forbidden shortcuts, and attempts to cheat."""

import sys

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tensortutor.protocol.events import Judged, Notice, Output, Verdict
from tensortutor.protocol.jobs import Job, Judge
from tensortutor.worker.judge import seen

CHECKS = """
import torch
from tensortutor.checking import accepted, check, expect_close, expect_true, mutant

@check("doubles a vector")
def vector(answer, rng, device):
    x = torch.randn(rng.randrange(3, 6), device=device)
    expect_close(answer.double(x), 2 * x, hint="Twice, not thrice.")

@check("does not add", forbid=("torch.add",))
def no_adding(answer, rng, device):
    answer.double(torch.ones(2))

@check("multiplies once", counts_calls=True)
def counts(answer, rng, device):
    answer.double(torch.ones(2))
    expect_true(answer.calls["mul"] + answer.calls["rmul"] == 1, f"calls: {dict(answer.calls)}")

@mutant("thrice", caught_by=vector)
def double(x):
    return 3 * x
"""
NAMES = ("doubles a vector", "does not add", "multiplies once")


@pytest.fixture
def runner(runner_anywhere):
    return runner_anywhere


def judge(runner, source, seeds=(1,), variant="", checks=CHECKS, names=NAMES):
    job = Job(source, "double.py", judge=Judge(checks, "checks/double.py", seeds, names, variant))
    events = list(runner.start(job))
    verdicts = {e.check: e for e in events if isinstance(e, Verdict)}
    (judged,) = (e for e in events if isinstance(e, Judged))
    return events, verdicts, judged


def test_a_right_answer_passes(runner):
    _, verdicts, judged = judge(
        runner, "def double(x):\n    return 2 * x\n", seeds=tuple(range(20))
    )
    assert judged.ok
    assert judged.passed == NAMES
    assert all(v.passed for v in verdicts.values())


LOW = """
from tensortutor.checking import check, expect_true

@check("the first number is low")
def low(answer, rng, device):
    expect_true(answer.low(rng.random()), "it is high")

@check("always")
def always(answer, rng, device):
    pass
"""


@pytest.mark.parametrize(
    ("seeds", "every", "low"),
    [
        ((2, 4), False, (True, 4)),
        ((2, 4, 1), False, (False, 1)),
        ((1, 4), True, (True, 4)),
        ((1, 3), True, (False, 3)),
    ],
)
def test_a_check_fails_with_any_seed_or_only_with_every_seed(runner, seeds, every, low):
    # The first numbers of these even seeds are low, those of the odd ones high.
    both = ("the first number is low", "always")
    for until in ((), both[:1], both[1:]):
        judge = Judge(LOW, "checks/low.py", seeds, both, every=every, until=until)
        events = list(runner.start(Job("def low(x):\n    return x < 0.5\n", judge=judge)))
        verdicts = {e.check: (e.passed, e.seed) for e in events if isinstance(e, Verdict)}
        assert verdicts[both[0]] == low
        ends_early = not low[0] and both[0] in until
        assert (both[1] in verdicts) is not ends_early


def test_a_wrong_answer_is_told_what_where_and_why(runner):
    _, verdicts, judged = judge(runner, "def double(x):\n    return 3 * x\n", seeds=(811,))
    verdict = verdicts["doubles a vector"]
    assert not judged.ok
    assert judged.failed == ("doubles a vector",)
    assert verdict.called.startswith("double(f32[")
    assert verdict.seed == 811
    assert "1.5 times" in verdict.cause
    assert verdict.hint == "Twice, not thrice."
    assert verdict.got
    assert verdict.expected
    assert verdict.where == "at [0]"


def test_the_same_seed_gives_the_same_inputs(runner):
    source = "def double(x):\n    return 3 * x\n"
    first, again, other = (
        judge(runner, source, seeds=(s,))[1]["doubles a vector"] for s in (5, 5, 6)
    )
    assert (first.got, first.called) == (again.got, again.called)
    assert first.got != other.got


@pytest.mark.parametrize("body", ["x + x", "torch.add(x, x)", "x.add(x)", "x.clone().add_(x)"])
def test_a_forbidden_shortcut_is_refused_under_any_name(runner, body):
    _, verdicts, _ = judge(runner, f"import torch\ndef double(x):\n    return {body}\n")
    assert "`add`" in verdicts["does not add"].message


def test_a_swallowed_refusal_still_counts(runner):
    source = (
        "def double(x):\n    try:\n        return x + x\n    except Exception:\n"
        "        return 2 * x\n"
    )
    _, verdicts, _ = judge(runner, source)
    assert not verdicts["does not add"].passed


def test_an_exception_in_the_answer_names_the_learners_line(runner):
    _, verdicts, _ = judge(runner, "def double(x):\n    y = 2 * x\n    return y.view(99)\n")
    verdict = verdicts["doubles a vector"]
    assert verdict.message.startswith("RuntimeError: shape '[99]' is invalid")
    assert verdict.where == "line 3: return y.view(99)"


@pytest.mark.parametrize(
    ("source", "message", "where", "hint"),
    [
        ("def double(x):\n    return 2 * y\n", "NameError: name 'y'", "line 2: return 2 * y",
         "missing import"),
        ("def double(value):\n    return 2 * valeu\n",
         "NameError: name 'valeu' is not defined. Did you mean: 'value'?",
         "line 2: return 2 * valeu", "missing import"),
        ("def double(x):\n    n, = x.shape, 1\n", "ValueError: too many", "line 2: n, = ",
         "number of things"),
        ("def double(x):\n    return x.bmm(x)\n", "RuntimeError: batch1 must", "line 2: ", ""),
        ("def double(x, y):\n    return 2 * x\n", "TypeError: double() missing 1", "", "arguments"),
    ],
)  # fmt: skip
def test_an_error_comes_with_the_line_and_a_word_of_advice(runner, source, message, where, hint):
    _, verdicts, _ = judge(runner, source)
    verdict = verdicts["doubles a vector"]
    assert verdict.message.startswith(message)
    assert verdict.where.startswith(where)
    assert bool(verdict.where) == bool(where)
    assert hint in verdict.hint
    assert bool(verdict.hint) == bool(hint)
    assert verdict.called.startswith("double(f32[")
    assert "Twice" not in verdict.hint


USES = """
import torch
from tensortutor.checking import advising, check

@check("uses what comes back")
def uses(answer, rng, device):
    answer.double(torch.ones(2)).sum()

@check("expects an error")
def expects(answer, rng, device):
    with advising(RuntimeError, saying="second time", hint="Keep the graph."):
        answer.double(torch.ones(2, requires_grad=True))
"""


def test_what_came_back_is_told_when_a_check_cannot_use_it(runner):
    _, verdicts, _ = judge(runner, "def double(x):\n    2 * x\n", checks=USES, names=())
    verdict = verdicts["uses what comes back"]
    assert "AttributeError: 'NoneType'" in verdict.message
    assert verdict.got == "None"
    # Before Python 3.11 it is not known which part of a line was under way.
    assert "when the check ran `answer.double(torch.ones(2)).sum" in verdict.cause
    assert "`return`" in verdict.hint


GOES_ON = """
import torch
from tensortutor.checking import check, expect_true

@check("trains", hint="Write nowhere.")
def trains(answer, rng, device):
    x = torch.ones(2, requires_grad=True)
    answer.Model().forward(x).sum().backward()

@check("is a model")
def chained(answer, rng, device):
    first, second = answer.Model().train()
    answer.Model().train().forward(torch.ones(2))

@check("can be walked through")
def weight(answer, rng, device):
    list(
        answer.Model()
    )

@check("is small", hint="Make it small.")
def small(answer, rng, device):
    expect_true(False, "it is not small")
    expect_true(False, "it is not small at all", hint="Never seen.")
"""
MODEL = """
class Model:
    def forward(self, x):
        y = x.exp()
        y += 1
        return y
    def train(self):
        pass
"""


def test_an_error_that_no_line_of_the_learner_raised_names_what_the_check_did(runner):
    _, verdicts, _ = judge(runner, MODEL, checks=GOES_ON, names=())
    trains, chained, weight, small = verdicts.values()
    assert "modified by an inplace operation" in trains.message
    assert "`answer.Model().forward(x).sum().backward()`" in trains.cause
    assert trains.hint == "Write nowhere."
    # Of an assignment the left side alone would say nothing.
    assert "`first, second = answer.Model().train()`" in chained.cause
    assert "NoneType" in chained.message
    assert "`return`" in chained.hint
    assert "`list( answer.Model() )`" in weight.cause or sys.version_info < (3, 11)
    assert "type that the task says" in weight.hint
    assert (small.message, small.cause, small.hint) == ("it is not small", "", "Make it small.")
    assert not any(verdict.where for verdict in verdicts.values())


def test_an_authors_hint_is_for_the_error_it_names(runner):
    twice = "def double(x):\n    y = (x * x).sum()\n    y.backward()\n    y.backward()\n"
    for source, hint in (
        (twice, "Keep the graph."),
        ("def double(x):\n    x.backward()\n", ""),
        ("def double(x):\n    return z\n", "Nothing has this name"),
    ):
        _, verdicts, _ = judge(runner, source, checks=USES, names=())
        verdict = verdicts["expects an error"]
        assert verdict.where.startswith("line ")
        assert verdict.hint.startswith(hint)
        assert bool(verdict.hint) == bool(hint)


def test_warnings_of_the_check_itself_are_no_concern_of_the_learner(runner):
    checks = """
import warnings
from tensortutor.checking import check

@check("warns and is warned")
def warns(answer, rng, device):
    warnings.warn("from the check")
    answer.double(1)
"""
    source = "import warnings\ndef double(x):\n    warnings.warn('from the answer')\n"
    events, _, judged = judge(runner, source, checks=checks, names=())
    errors = "".join(e.text for e in events if isinstance(e, Output) and e.stream == "stderr")
    assert judged.ok
    assert "double.py:3: UserWarning: from the answer" in errors
    assert "from the check" not in errors


def test_a_missing_name_is_said(runner):
    _, verdicts, _ = judge(runner, "def duble(x):\n    return 2 * x\n")
    assert "defines no `double`" in verdicts["doubles a vector"].message


def test_a_variant_replaces_the_function(runner):
    _, _, judged = judge(runner, "def double(x):\n    return 2 * x\n", variant="thrice")
    assert "doubles a vector" in judged.failed


@pytest.mark.parametrize(
    "attack",
    [
        "import os\ndef double(x):\n    os._exit(0)\n",
        "import sys\ndef double(x):\n    sys.exit(0)\n",
        "import torch\ntorch.isclose = lambda *a, **k: torch.ones(1, dtype=torch.bool)\n"
        "def double(x):\n    return 3 * x\n",
        "from tensortutor.checking import expect\n"
        "expect.expect_close = lambda *a, **k: None\n"
        "def double(x):\n    expect.isclose = lambda a, b, **k: a == a\n    return 3 * x\n",
        "import tensortutor.checking as c\nc.expect_close = lambda *a, **k: None\n"
        "def double(x):\n    return 3 * x\n",
        "class Yes(float):\n    pass\nimport builtins\nbuiltins.isinstance = lambda *a: True\n"
        "def double(x):\n    return 3 * x\n",
        "import torch\ntorch.Tensor.all = lambda self: True\n"
        "def double(x):\n    torch.Tensor.all = lambda self: True\n    return 3 * x\n",
        "from tensortutor.checking import expect\n"
        "def double(x):\n"
        "    expect.expect_close.__code__ = (lambda *a, **k: None).__code__\n    return 3 * x\n",
        "import sys\nsys.modules['the_checks'].expect_close = lambda *a, **k: None\n"
        "def double(x):\n    return 3 * x\n",
        "import tensortutor.worker.judge as j\nfrom tensortutor.protocol.events import Verdict\n"
        "j.judge_once = lambda check, answer, seed, *a: Verdict(check.name, True, seed, 0.0)\n"
        "def double(x):\n    return 3 * x\n",
        "import torch\nfrom torch.overrides import TorchFunctionMode\n"
        "class Liar(TorchFunctionMode):\n"
        "    def __torch_function__(self, f, t, a=(), k=None):\n"
        "        return torch.ones(1, dtype=torch.bool) if f.__name__ == 'isclose' "
        "else f(*a, **(k or {}))\n"
        "Liar().__enter__()\n"
        "def double(x):\n    Liar().__enter__()\n    return 3 * x\n",
        "import tensortutor.worker.integrity as i\n"
        "i.Snapshot.mark = lambda self: lambda: None\ni.restore = lambda snapshot: None\n"
        "import torch\ntorch.isclose = lambda *a, **k: torch.ones(1, dtype=torch.bool)\n"
        "from tensortutor.checking import expect\n"
        "def double(x):\n    expect.isclose = torch.isclose\n    return 3 * x\n",
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
        "def double(x):\n    return 2 * x\n",
        "import gc\nfrom tensortutor.checking.declare import declared\n"
        "declared.checks.clear()\ndef double(x):\n    return 3 * x\n",
    ],
)
def test_no_trick_passes(runner, attack):
    _, _, judged = judge(runner, attack)
    assert not judged.ok


SEES_CHECKS = """
import sys
frame, found = sys._getframe(), []
while frame is not None:
    found += [repr(value) for value in frame.f_locals.values() if value is not found]
    frame = frame.f_back
print(any("doubles a" + " vector" in text for text in found))
"""


def test_a_check_file_that_was_prepared_serves_that_file_alone(runner):
    source = "def double(x):\n    return 2 * x\n"
    for _ in range(4):  # more than there are waiting processes: some have prepared for it
        assert judge(runner, source)[2].ok
    events = list(runner.start(Job(SEES_CHECKS)))
    assert [e.text for e in events if isinstance(e, Output)] == ["False\n"]
    other = CHECKS.replace("doubles a vector", "is told apart")
    _, verdicts, judged = judge(runner, source, checks=other, names=("is told apart", *NAMES[1:]))
    assert judged.ok
    assert "is told apart" in verdicts
    broken = Judge("def", "checks/b.py", (1,), NAMES)
    for _ in range(4):
        ended = list(runner.start(Job(source, judge=broken)))[-1]
        assert ended.outcome == "lost"
    assert judge(runner, source)[2].ok


def test_a_forged_verdict_does_not_count(runner):
    source = """
import json, os, struct
def double(x):
    for name in ("doubles a vector", "does not add", "multiplies once"):
        data = json.dumps({"event": "verdict", "check": name, "passed": True, "seed": 1, "ms": 0.0,
                           "message": "", "called": "", "got": "", "expected": "", "where": "",
                           "cause": "", "hint": "", "mac": "00" * 64}).encode()
        for fd in range(3, 64):
            try:
                os.write(fd, struct.pack(">I", len(data)) + data)
            except OSError:
                pass
    os._exit(0)
"""
    events, _, judged = judge(runner, source)
    assert not judged.ok
    assert any(isinstance(e, Notice) and "does not count" in e.text for e in events)


def test_a_check_file_that_fails_is_not_a_pass(runner):
    source = "def double(x):\n    return 2 * x\n"
    job = Job(source, judge=Judge("raise RuntimeError('broken')", "checks/b.py", (1,), NAMES))
    events = list(runner.start(job))
    (judged,) = (e for e in events if isinstance(e, Judged))
    assert not judged.ok
    assert judged.missing == NAMES


def test_a_variant_may_not_take_the_shortcut_either(runner):
    checks = CHECKS + '@mutant("adds", caught_by=no_adding)\ndef double(x):\n    return x + x\n'
    source = "def double(x):\n    return 2 * x\n"
    _, verdicts, _ = judge(runner, source, variant="adds", checks=checks)
    assert "`add`" in verdicts["does not add"].message


def test_a_mode_sees_a_backward_that_goes_past_modes_by_itself():
    """As torch.autograd.backward does in PyTorch 2.6 and 2.9."""
    given, seen_by_mode = [], []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen_by_mode.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def backward(tensors, grad_tensors=None):
        given.append((tensors, grad_tensors))

    x = torch.ones(1)
    called = seen(backward)
    called([x], grad_tensors=2)
    assert (given, seen_by_mode) == ([([x], 2)], [])
    with Mode():
        called(x, 3)
    assert seen_by_mode == ["backward"]
    assert given[1:] == [(x, 3)]
    assert seen(called) is called
