"""The gate can fail: each broken copy of a proved lesson gives a finding at the right line."""

from dataclasses import dataclass

import pytest

from tensortutor.course.catalog import load_course, open_course, read_course
from tensortutor.course.verify import Proved, verify
from tensortutor.protocol.jobs import Limits
from tests.course.tiny import CHECKS, FIX, FIX_CHECKS, LESSON, TINY, Edit, copy_of_tiny, line_of


@pytest.fixture
def runner(runner_on_cpu):
    return runner_on_cpu


def gate(root, lesson, runner):
    """What does not hold in one lesson of the course at `root`."""
    course = load_course(root, thorough=True)
    lessons = [known for known in course.lessons if known.path == root / lesson]
    assert lessons
    found = verify(course, lessons, runner, seeds=5, limits=Limits(wall_s=5.0))
    return [finding for finding in found if type(finding) is not Proved]


@pytest.mark.parametrize("lesson", [LESSON, FIX])
def test_the_unbroken_lessons_are_proved(runner, lesson):
    assert gate(TINY, lesson, runner) == []


@dataclass(frozen=True)
class Case:
    """A rule, the edit that breaks it, and what is found.

    at: what the finding's line in the edited file holds, or its number. more: how many findings
    follow from the first one.
    """

    rule: str
    edit: Edit
    at: str | int
    words: str
    more: int = 0


def lesson(rule, old, new, at, words, more=0):
    return Case(rule, Edit(LESSON, old, new), at, words, more)


def judge(rule, old, new, at, words):
    return Case(rule, Edit(CHECKS, old, new), at, words)


def fix(rule, old, new, at, words, more=0):
    return Case(rule, Edit(FIX, old, new), at, words, more)


RIGHT = "return x - x.mean(dim=1, keepdim=True)"
CASES = [
    lesson(
        "another output",
        "torch.Size([2, 1])",
        "torch.Size([2])",
        "torch.Size([2])",
        "it prints 'torch.Size([2, 1])', not 'torch.Size([2])'",
    ),
    lesson(
        "a line too many",
        "tensor([1., 4.])\n",
        "tensor([1., 4.])\ntensor(0.)\n",
        "tensor(0.)",
        "it prints 'torch.Size([2, 1])', not 'tensor(0.)'",
    ),
    lesson(
        "a program raises",
        "print(x.mean(dim=1))",
        "print(x.mean(dim=7))",
        "dim=7",
        "it raises IndexError: Dimension out of range",
    ),
    lesson(
        "a prediction is never held against the truth",
        "print(y)\n```\n```output\ntensor([1.5000, 2.5000, 3.5000])\n",
        "",
        "```python predict",
        "it prints nothing: the run must reveal the answer",
    ),
    fix(
        "a program never ends",
        "print((torch.ones(2, 3) - torch.ones(2, 1)).shape)",
        "while True: pass",
        "```python run",
        "Stopped after 5 s, the limit of a run",
        1,
    ),
    lesson(
        "wrong number", "answer = 3.5", "answer = 3.6", 50, "the proof gives 3.5, the answer is 3.6"
    ),
    lesson("wrong truth", "answer = false", "answer = true", 58, "gives False"),
    lesson("wrong shape", "answer = [3]", "answer = [1, 3]", 65, "gives [3]"),
    lesson(
        "wrong text", 'answer = "torch.float32"', 'answer = "float32"', 72, "gives 'torch.float32'"
    ),
    lesson(
        "wrong order",
        '["x.mean()", "x.mean(dim=1)", "x.mean(dim=0)"]',
        '["x.mean(dim=1)", "x.mean()", "x.mean(dim=0)"]',
        89,
        "gives ['x.mean()'",
    ),
    lesson(
        "a proof raises",
        'proof = "y[-1]"',
        'proof = "z[-1]"',
        50,
        "the proof raises NameError: name 'z' is not defined",
    ),
    lesson(
        "another message",
        "mean(): could not infer",
        "mean(): cannot infer",
        "mean(): cannot infer",
        "it raises 'RuntimeError: mean(): could not infer output dtype",
    ),
    lesson(
        "nothing is raised",
        "torch.arange(3).mean()",
        "torch.arange(3.0).mean()",
        "RuntimeError: mean()",
        "it raises nothing, nor warns",
    ),
    lesson(
        "another warning",
        'warnings.warn("the mean',
        'warnings.warn("a mean',
        "UserWarning: the mean",
        "UserWarning: a mean of one value",
    ),
    lesson(
        "the starter is right",
        "return x - x.mean()",
        RIGHT.replace("dim=1", "dim=-1"),
        "```python exercise",
        "it passes every check with seed 0",
    ),
    lesson(
        "the solution is wrong",
        f"    {RIGHT}\n```\n\n## Deb",
        "    return 2 * x - x.mean(dim=1, keepdim=True)\n```\n\n## Deb",
        "```python solution",
        "'every row is centred on its own mean' fails with seed 0",
    ),
    lesson(
        "the solution is wrong now and then",
        f"    {RIGHT}\n```\n\n## Deb",
        "    return x - x.mean(dim=1, keepdim=True) * (x.shape[0] < 4)\n```\n\n## Deb",
        "```python solution",
        "'every row is centred on its own mean' fails with seed",
    ),
    lesson(
        "the solution raises",
        f"def centre(x):\n    {RIGHT}",
        f"1 / 0\ndef centre(x):\n    {RIGHT}",
        "1 / 0",
        "it raises ZeroDivisionError: division by zero",
        4,
    ),
    judge(
        "a right mutant",
        "return x - x.mean(dim=0, keepdim=True)",
        RIGHT.replace("dim=1", "dim=-1"),
        '@mutant("averages',
        "with seed 0: no check fails",
    ),
    judge(
        "a mutant that is right now and then",
        "return x - x.mean(dim=0, keepdim=True)",
        "return x - x.mean(dim=1, keepdim=True) * (x.shape[0] > 3)",
        '@mutant("averages',
        "it passes 'every row is centred on its own mean' with seed",
    ),
    judge(
        "a mutant caught by another check",
        '"averages the columns", caught_by=centred',
        '"averages the columns", caught_by=untouched',
        '@mutant("averages',
        "only 'every row is centred on its own mean' fails",
    ),
    judge(
        "a wrong accepted answer",
        "x.mean(1)[:, None]",
        "x.mean(0)[None]",
        "@accepted",
        "'every row is centred on its own mean' fails with seed 5",
    ),
    judge(
        "a shortcut that nothing refuses",
        "torch.nn.functional.layer_norm",
        "torch.nn.LayerNormal",
        "forbid=",
        "passes a program whose functions call it",
    ),
    fix(
        "a program to fix that works",
        "def scale(x):\n    return x / x.amax(dim=1)\n",
        "def scale(x):\n    return x / x.amax(dim=0)\n",
        "```python fix",
        "it runs without an error, so there is nothing to fix",
        1,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule(tmp_path, runner, case):
    root = copy_of_tiny(tmp_path, case.edit)
    file = case.edit.file
    found = gate(root, FIX if file == FIX else LESSON, runner)
    line = case.at if isinstance(case.at, int) else line_of(root, file, case.at)
    said = "\n".join(map(str, found))
    assert len(found) == 1 + case.more, said
    assert (found[0].path, found[0].line) == (file, line), said
    assert case.words in found[0].message


def test_evidence_for_another_lesson_must_be_caught_by_the_check_that_is_named(tmp_path, runner):
    edit = Edit(FIX_CHECKS, "caught_by=largest,\n", "caught_by=runs,\n")
    root = copy_of_tiny(tmp_path, edit)
    (broken,) = gate(root, FIX, runner)
    assert broken.path == FIX_CHECKS
    assert broken.what.endswith("which is evidence for basics/means")
    assert "it passes 'the program runs to its end'" in broken.message


def test_evidence_names_a_mistake_that_the_other_lesson_has(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(FIX_CHECKS, '"averages the columns"', '"averages all"'))
    (problem,) = read_course(root)[1]
    assert problem.path == FIX_CHECKS
    assert "basics/means has no mutant 'averages all'; it has averages the columns" in str(problem)


def test_evidence_is_read_without_the_rest_of_the_lesson(tmp_path):
    root = copy_of_tiny(tmp_path)
    means, repair = open_course(root).lessons
    (root / FIX).unlink()
    assert (means.shows, repair.shows) == ((), ("basics/means",))
    assert load_course(TINY).lessons[1].shows == ("basics/means",)


def test_a_check_that_raises_fails_right_answers(tmp_path, runner):
    edit = Edit(CHECKS, "torch.zeros((), device", "torch.zeroes((), device")
    found = gate(copy_of_tiny(tmp_path, edit), LESSON, runner)
    assert [(finding.path, finding.line) for finding in found] == [(LESSON, 115), (CHECKS, 42)]
    for finding in found:
        assert "AttributeError: module 'torch' has no attribute 'zeroes'" in finding.message
