"""The gate's own part: what it runs, in which order it reports, how it ends."""

import dataclasses
import threading

import pytest

from tensortutor.course.catalog import load_course
from tensortutor.course.verify import Broken, Proved, Skipped, count, verify
from tensortutor.protocol.drawings import Plot, Series
from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Judge, Limits
from tests.course.fake_runner import DONE, FakeRunner, judged, printed, raised
from tests.course.tiny import CHECKS, LESSON, TINY

CENTRED = "every row is centred on its own mean"
COMPUTED = "the mean is computed, not looked up"
UNTOUCHED = "the input stays as it was"


@pytest.fixture(scope="module")
def course():
    return load_course(TINY, thorough=True)


@pytest.fixture(scope="module")
def means(course):
    return course.lessons[0]


def as_written(job):
    """What the lesson `basics/means` says about each of its programs."""
    if job.judge is None:
        if "arange(3).mean" in job.source:
            return raised("RuntimeError", "mean(): could not infer output dtype. Input dtype ...")
        if "warnings" in job.source:
            text = "means.py:3: UserWarning: the mean of one value says little\n"
            return [Output("stderr", text), DONE]
        if job.probes:
            order = ["x.mean()", "x.mean(dim=1)", "x.mean(dim=0)"]
            text = "tensor([1.5000, 2.5000, 3.5000])\n"
            return printed(text, 3.5, False, [3], "torch.float32", "the rows", order)
        return printed("tensor([1., 4.])\ntorch.Size([2, 1])\n")
    if "x - x.mean()" in job.source:
        return judged(job, CENTRED)
    if "_shortcut" in job.source:
        return judged(job, COMPUTED, message="`layer_norm` is called, and it is what ...")
    wrong = {"averages the columns": CENTRED, "subtracts in place": UNTOUCHED}
    return judged(job, *filter(None, [wrong.get(job.judge.variant)]))


def findings(course, lessons, say, **options):
    return list(verify(course, lessons, FakeRunner(say), **options))


def test_a_lesson_that_keeps_its_word_is_proved(course, means):
    found = findings(course, [means], as_written)
    assert {type(finding) for finding in found} == {Proved}
    assert [(finding.path, finding.line) for finding in found] == [
        (LESSON, line) for line in (23, 40, 50, 58, 65, 72, 79, 89, 124, 135, 104, 115)
    ] + [(CHECKS, line) for line in (32, 37, 42, 19)]
    assert {finding.lesson for finding in found} == {"basics/means"}


def test_what_a_program_draws_is_no_output(course, means):
    def draws(job):
        return [Plot("loss", (Series("", (0.0,), (1.0,)),)), *as_written(job)]

    found = findings(course, [means], draws)
    assert {type(finding) for finding in found} == {Proved}


def test_the_claims_can_be_counted_before(course, means):
    assert count([means]) == len(findings(course, [means], as_written)) == 16


def test_with_which_seeds_right_answers_must_pass_and_wrong_ones_fail(course, means):
    runner = FakeRunner(as_written)
    list(verify(course, [means], runner, seeds=7))
    seeds = {}
    for run in runner.runs:
        if run.job.judge is not None and "_shortcut" not in run.job.source:
            key = "starter" if "x - x.mean()" in run.job.source else run.job.judge.variant
            assert key not in seeds
            seeds[key] = (run.job.judge.seeds, run.job.judge.every, run.job.judge.until)
    right, wrong = (tuple(range(7)), False, ()), ((0, 1, 2), True)
    assert seeds == {
        "starter": (*wrong, (CENTRED, COMPUTED, UNTOUCHED)),
        "": right,
        "averages the columns": (*wrong, (CENTRED,)),
        "subtracts in place": (*wrong, (UNTOUCHED,)),
        "adds a dimension by hand": ((7, 8), False, ()),
    }


def test_jobs_carry_the_lessons_limits_and_checks(course, means):
    raised_limit = dataclasses.replace(means, limits=(("wall_s", 90.0), ("memory_gib", 16.0)))
    runner = FakeRunner(as_written)
    list(verify(course, [raised_limit], runner, seeds=4, limits=Limits(wall_s=5.0)))
    jobs = [run.job for run in runner.runs]
    assert {job.limits.wall_s for job in jobs} == {90.0, 3 * 90.0, 4 * 90.0}
    assert {job.limits.memory_bytes for job in jobs} == {16 << 30}
    judges = [job.judge for job in jobs if job.judge is not None]
    assert {judge.checks for judge in judges} == {(CENTRED, COMPUTED, UNTOUCHED)}
    assert {judge.filename for judge in judges} == {CHECKS}


def test_findings_keep_their_order_when_runs_overtake_each_other(course, means):
    second_is_done = threading.Event()

    def say(job):
        if job.source == means.steps[1].pane.source:
            assert second_is_done.wait(30)
        elif job.source == means.steps[2].pane.source:
            second_is_done.set()
        return as_written(job)

    found = findings(course, [means], say, jobs=2)
    assert [finding.line for finding in found][:2] == [23, 40]


def test_a_wrong_answer_that_passes_with_one_seed_is_found(course, means):
    def say(job):
        if job.judge is not None and job.judge.variant == "averages the columns":
            return judged(dataclasses.replace(job, judge=Judge("", "", (1,), job.judge.checks)))
        return as_written(job)

    (broken,) = [f for f in findings(course, [means], say) if isinstance(f, Broken)]
    assert (broken.path, broken.line) == (CHECKS, 32)
    assert str(broken) == (
        f"{CHECKS}:32: claimed: the mutant 'averages the columns' is caught by '{CENTRED}'; "
        f"but it passes '{CENTRED}' with seed 1: no check fails"
    )


def test_a_shortcut_refused_for_another_reason_is_not_refused(course, means):
    def say(job):
        if "_shortcut" in job.source:
            return judged(job, COMPUTED, message="the result is not a tensor")
        return as_written(job)

    (broken,) = [f for f in findings(course, [means], say) if isinstance(f, Broken)]
    assert "fails for another reason" in broken.message
    assert "the result is not a tensor" in broken.message


def test_cuda_lessons_are_skipped_elsewhere_and_said_to_be(course, means):
    cuda = dataclasses.replace(means, device="cuda")
    (skipped,) = findings(course, [cuda], as_written)
    assert isinstance(skipped, Skipped)
    assert str(skipped) == f"{LESSON}:1: not proved: it needs a CUDA device"
    assert count([cuda]) == 1
    assert len(findings(course, [cuda], as_written, device="cuda:0")) == 16


def test_closing_stops_what_is_under_way(course, means):
    begun, stopped = threading.Event(), threading.Event()

    class Endless(FakeRunner):
        def start(self, job):
            run = super().start(job)
            run.stop = stopped.set
            return run

    def say(job):
        if job.source != means.steps[1].pane.source:
            begun.set()
            assert stopped.wait(30)
        return as_written(job)

    runner = Endless(say)
    going = verify(course, [means], runner, jobs=2)
    assert isinstance(next(going), Proved)
    assert begun.wait(30)
    going.close()
    assert stopped.is_set()
    assert len(runner.runs) <= 3  # the first, and one more in each of the two threads
