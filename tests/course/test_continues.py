"""Lessons that go on with another lesson's program: what is refused, and what `verify` runs."""

import dataclasses

import pytest

from tensortutor.course.catalog import load_course, open_course, read_course
from tensortutor.course.mutation_testing import survivors
from tensortutor.course.verify import Broken, verify
from tensortutor.protocol.events import Finished, Frame, Raised
from tests.course.fake_runner import DONE, FakeRunner, judged
from tests.course.tiny import FIX, LESSON, Edit, copy_of_tiny

LATER = "lessons/01_basics/02_scales.md"
CHECKS = "checks/01_basics/02_scales.py"
FIRST = "def centre(x):\n    return x - x.mean(dim=1, keepdim=True)"
NEW = "\n\n\n# New in basics/scales\n\n"
STARTER = "def scale(x):\n    return x\n"
SOLUTION = "def scale(x):\n    return centre(x) / 2\n"
JUDGE = """\
import torch

from tensortutor.checking import accepted, check, expect_close, mutant


@check("half of what is centred")
def half(answer, rng, device):
    x = torch.randn(3, 4, device=device)
    expect_close(answer.scale(x), answer.centre(x) / 2)


@mutant("forgets to centre", caught_by=half)
def scale(x):
    return x / 2


@accepted("multiplies")
def scale(x):
    return 0.5 * (x - x.mean(dim=1, keepdim=True))
"""


def course_with(folder, front, *edits):
    """The tiny course with a second lesson in its first chapter, with these keys in its front."""
    root = copy_of_tiny(folder)
    text = (root / LESSON).read_text("utf-8")
    head, exercise, rest = text.partition("```python exercise\n")
    _, hint, rest = rest.partition("```hint\n")
    hints, solution, rest = rest.partition("```python solution\n")
    _, end, rest = rest.partition("```\n")
    text = "".join(
        (head, exercise, STARTER, "```\n", hint, hints, solution, SOLUTION, end, rest)
    ).replace("requires = []", front)
    (root / LATER).write_text(text, "utf-8")
    (root / CHECKS).write_text(JUDGE, "utf-8")
    for edit in edits:
        edit.apply(root)
    return root


GOES_ON = 'requires = ["basics/means"]\ncontinues = "basics/means"'


def test_every_way_of_reading_a_course_knows_the_lesson_before(tmp_path):
    root = course_with(tmp_path, GOES_ON)
    for course in (load_course(root, thorough=True), open_course(root)):
        lesson = course.lessons[1]
        assert lesson.continues == "basics/means"
        assert lesson.continued is course.lessons[0]
        assert lesson.solution == f"{FIRST}{NEW}{SOLUTION}"
        assert course.lessons[0].continued is None


@pytest.mark.parametrize(
    ("front", "edits", "wanted"),
    [
        (
            'requires = []\ncontinues = "basics/mean"',
            (),
            f"{LATER}:5: there is no lesson 'basics/mean'; the nearest are basics/means",
        ),
        (
            'requires = []\ncontinues = "basics/means"',
            (),
            f"{LATER}:5: continues 'basics/means', which is not in requires: add it",
        ),
        (
            'requires = []\ncontinues = "repairs/lost_dim"',
            (Edit(FIX, '["basics/means"]', "[]"),),
            f"{LATER}:5: continues 'repairs/lost_dim', which comes later: move one of the two",
        ),
        (
            'requires = []\ncontinues = "basics/scales"',
            (),
            f"{LATER}:5: continues itself in a circle: basics/scales -> basics/scales",
        ),
        (
            'requires = []\ncontinues = "repairs/lost_dim"',
            (Edit(FIX, '["basics/means"]', '["basics/scales"]'),),
            f"{LATER}:5: continues itself in a circle: "
            "basics/scales -> repairs/lost_dim -> basics/scales",
        ),
        (
            GOES_ON,
            (Edit(LESSON, "```python exercise", "```python fix"),),
            f"{LATER}:4: continues 'basics/means', which has no `python exercise` with a solution",
        ),
        (
            GOES_ON,
            (Edit(LATER, "```python exercise", "```python fix"),),
            f"{LATER}:4: continues 'basics/means', and has no `python exercise` with what is new",
        ),
        (
            'requires = []\ncontinues = ["basics/means"]',
            (),
            f"{LATER}:5: 'continues' must be the id of a lesson such as",
        ),
    ],
    ids=["unknown", "not required", "later", "itself", "circle", "no exercise", "fix", "no id"],
)
def test_what_cannot_be_continued_is_told_in_a_sentence(tmp_path, front, edits, wanted):
    (problem,) = read_course(course_with(tmp_path, front, *edits))[1]
    assert str(problem).startswith(wanted)


def test_verify_puts_the_checks_to_whole_programs(tmp_path):
    course = load_course(course_with(tmp_path, GOES_ON), thorough=True)
    runner = FakeRunner(lambda job: judged(job) if job.judge is not None else [DONE])
    list(verify(course, [course.lessons[1]], runner))
    jobs = [run.job for run in runner.runs if run.job.judge is not None]
    assert {job.judge.variant for job in jobs} == {"", "forgets to centre", "multiplies"}
    assert [job.source for job in jobs] == [
        f"{FIRST}{NEW}{STARTER}",
        *[f"{FIRST}{NEW}{SOLUTION}"] * (len(jobs) - 1),
    ]


def test_a_fault_in_the_earlier_part_is_told_at_the_solution(tmp_path):
    """The line numbers of the whole program are not those of the fence."""
    course = load_course(course_with(tmp_path, GOES_ON), thorough=True)
    lesson = course.lessons[1]
    broken = dataclasses.replace(lesson, judge=dataclasses.replace(lesson.judge, mutants=()))

    def say(job):
        if job.judge is None or "centre(x) / 2" not in job.source or job.judge.variant:
            return [DONE] if job.judge is None else judged(job)
        frame = Frame("centre", 2, "")
        return [Raised("ValueError", "no", (frame,), ""), Finished("raised", 1, "No.", 1.0)]

    found = [f for f in verify(course, [broken], FakeRunner(say)) if isinstance(f, Broken)]
    places = {f.line for f in found if f.what.startswith("the solution")}
    assert places == {lesson.task.solution_line}


def test_mutants_are_made_of_what_is_new_and_run_with_the_rest(tmp_path):
    course = load_course(course_with(tmp_path, GOES_ON), thorough=True)
    runner = FakeRunner(judged)
    fates = list(survivors(course, [course.lessons[1]], runner))
    assert fates
    assert all(fate.path == LATER for fate in fates)
    first, *rest = [run.job.source for run in runner.runs]
    assert first == f"{FIRST}{NEW}{SOLUTION}"
    assert all(source.startswith(f"{FIRST}{NEW}def scale(x):") for source in rest)
    assert first not in rest
    line = course.lessons[1].task.solution_line + 2
    assert {fate.line for fate in fates} == {line}


def test_the_real_checks_hold(tmp_path, runner_on_cpu):
    """The solution passes and the starter fails, with programs that are really run."""
    course = load_course(course_with(tmp_path, GOES_ON), thorough=True)
    found = list(verify(course, [course.lessons[1]], runner_on_cpu, seeds=2))
    said = {f.what: type(f).__name__ for f in found if f.path == CHECKS or "sol" in f.what}
    assert said["the solution passes with 2 seeds"] == "Proved"
    assert set(said.values()) == {"Proved"}
