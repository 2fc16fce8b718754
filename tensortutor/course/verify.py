"""The author's gate: runs everything that lessons claim, and says what does not hold."""

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from tensortutor.course.claim_checks import Fault
from tensortutor.course.claims import NEEDS_CUDA, Claim, Trial, trial_of, trials
from tensortutor.course.job_pool import JobPool, Runner
from tensortutor.course.model import Course, Lesson
from tensortutor.course.run_record import Record
from tensortutor.course.scaffold import unfinished
from tensortutor.protocol.jobs import Limits


@dataclass(frozen=True)
class Proved:
    """A claim that holds. path: relative to the course. seconds: what its runs took.

    Claims that share a run with others before them took no time of their own.
    """

    lesson: str
    path: str
    line: int
    what: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Broken(Proved):
    """A claim that does not hold. message: what the run showed."""

    message: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: claimed: {self.what}; but {self.message}"


@dataclass(frozen=True)
class Unfinished(Broken):
    """A place that its author has marked with TODO. message: what stands behind the mark."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: TODO: {self.message}"


@dataclass(frozen=True)
class Skipped(Proved):
    """A lesson, or an error of the atlas, that could not be proved here. message: why."""

    message: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: not proved: {self.message}"


Finding = Proved | Broken | Skipped


def verify(
    course: Course,
    lessons: Iterable[Lesson],
    runner: Runner,
    *,
    seeds: int = 20,
    jobs: int = 2,
    device: str = "cpu",
    limits: Limits | None = None,
) -> Iterator[Finding]:
    """Prove what the lessons claim; one finding for each claim, in the lessons' order.

    seeds: how many each right answer must pass with. jobs: how many runs at once. device: the one
    that the runner uses; lessons for CUDA alone are skipped on others. limits: what a run may use
    where its lesson asks for no more. The lessons must have been read without problems
    (`load_course(root, thorough=True)`). Closing the iterator stops what is under way.
    """
    lessons = list(lessons)
    waiting = {lesson.id: lesson for lesson in lessons}
    plan = _plan(lessons, seeds, device, limits or Limits())
    with closing(_runs(plan, runner, jobs)) as runs:
        for trial, done in runs:
            if trial.of in waiting:
                yield from _left(course, waiting.pop(trial.of))
            yield from _findings(course, trial, done)


def prove(
    course: Course, trials: Iterable[Trial], runner: Runner, *, jobs: int = 2
) -> Iterator[Finding]:
    """Make these trials, `jobs` at once; one finding for each claim, in the order of the trials."""
    with closing(_runs(trials, runner, jobs)) as runs:
        for trial, done in runs:
            yield from _findings(course, trial, done)


def _runs(
    trials: Iterable[Trial], runner: Runner, jobs: int
) -> Generator[tuple[Trial, tuple[Record, float] | None], None, None]:
    """Each trial with its run and the seconds that it took."""
    plan = list(trials)
    job_pool = JobPool(runner)
    with ThreadPoolExecutor(jobs, thread_name_prefix="verify") as pool:
        try:
            under_way = [
                None if trial.job is None else pool.submit(job_pool.run, trial.job)
                for trial in plan
            ]
            for trial, work in zip(plan, under_way, strict=True):
                yield trial, None if work is None else work.result()
        finally:
            job_pool.close()
            pool.shutdown(cancel_futures=True)


def count(lessons: Iterable[Lesson], *, seeds: int = 20, device: str = "cpu") -> int:
    """How many findings `verify` will yield."""
    lessons = list(lessons)
    left = sum(len(list(unfinished(lesson))) for lesson in lessons)
    return left + sum(len(trial.claims) for trial in _plan(lessons, seeds, device, Limits()))


def _plan(lessons: Iterable[Lesson], seeds: int, device: str, limits: Limits) -> Iterator[Trial]:
    for lesson in lessons:
        if lesson.device == "cuda" and not device.startswith("cuda"):
            claim = Claim(1, "the lesson", unproved)
            yield trial_of(lesson, None, claim, skipped=NEEDS_CUDA)
        else:
            yield from trials(lesson, seeds, limits, device)


def _left(course: Course, lesson: Lesson) -> Iterator[Unfinished]:
    """What the author has marked as still to be done."""
    for file, line, what in unfinished(lesson):
        path = file.relative_to(course.root).as_posix()
        yield Unfinished(lesson.id, path, line, "nothing is left to do", 0.0, what)


def unproved(_: Record) -> Fault | None:
    """What is skipped has no run that could show a fault."""
    return None


def _findings(course: Course, trial: Trial, done: tuple[Record, float] | None) -> Iterator[Finding]:
    """done: the trial's run and its seconds."""
    for claim in trial.claims:
        path = trial.files[claim.judge].relative_to(course.root).as_posix()
        if done is None:
            yield Skipped(trial.of, path, claim.line, claim.what, 0.0, trial.skipped)
            continue
        record, seconds = done
        fault = claim.fault(record)
        if fault is None:
            yield Proved(trial.of, path, claim.line, claim.what, seconds)
        else:
            line = fault.line or claim.line
            yield Broken(trial.of, path, line, claim.what, seconds, fault.message)
        done = record, 0.0
