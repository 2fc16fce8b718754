"""Puts a lesson's checks to wrong programs made by single edits: which of them go unnoticed?"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from tensortutor.course.check_file import Equivalent
from tensortutor.course.claim_checks import passes
from tensortutor.course.job_pool import JobPool, Runner
from tensortutor.course.jobs import check_job
from tensortutor.course.model import Course, Lesson
from tensortutor.course.mutants import Mutant, mutants_of
from tensortutor.course.problems import nearest
from tensortutor.course.run_record import Record
from tensortutor.protocol.jobs import Job

SEEDS = (0, 1, 2)
"""The inputs that a mutant is judged with; one that any of them tells from the solution is dead."""
WALL_S = 10.0
"""A mutant may run so long, or SLOWER times as long as the solution: it may loop for ever."""
SLOWER = 5.0
UNRUN = ("lost", "stopped")
"""Outcomes of runs that say nothing about the program."""


@dataclass(frozen=True)
class Tried:
    """A mutant that was judged. path: relative to the course. seconds: what its run took."""

    lesson: str
    path: str
    line: int
    kind: str
    before: str
    after: str
    seconds: float

    @property
    def edit(self) -> str:
        """The edit on one line."""
        return f"{self.before}  ->  {self.after}"


@dataclass(frozen=True)
class Killed(Tried):
    """A mutant that was noticed. by: the first check that failed, or how the run ended."""

    by: str = ""


@dataclass(frozen=True)
class Survived(Tried):
    """A mutant that nothing noticed."""


@dataclass(frozen=True)
class Excused(Tried):
    """A survivor that the check file declares to be equivalent. because: its reason."""

    because: str = ""


@dataclass(frozen=True)
class Unsound:
    """What makes the counts of a lesson worthless, or its declarations wrong."""

    lesson: str
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


Fate = Killed | Survived | Excused | Unsound


def survivors(
    course: Course, lessons: Iterable[Lesson], runner: Runner, *, jobs: int = 2, device: str = "cpu"
) -> Iterator[Fate]:
    """Judge every mutant of the lessons' solutions, in the lessons' order.

    jobs: how many runs at once. device: the one that the runner uses; lessons for CUDA alone are
    left out on others. The lessons must have been read without problems. Raises LibraryMissing.
    Closing the iterator stops what is under way.
    """
    job_pool = JobPool(runner)
    with ThreadPoolExecutor(jobs, thread_name_prefix="mutants") as pool:
        try:
            for hunt in [_Hunt(course, lesson, job_pool, pool) for lesson in here(lessons, device)]:
                yield from hunt.fates()
        finally:
            job_pool.close()
            pool.shutdown(cancel_futures=True)


def count(lessons: Iterable[Lesson], *, device: str = "cpu") -> int:
    """How many mutants `survivors` will judge. Raises LibraryMissing."""
    return sum(len(mutants(lesson)) for lesson in here(lessons, device))


def here(lessons: Iterable[Lesson], device: str) -> list[Lesson]:
    """The lessons that can be judged on a device."""
    on_cuda = device.startswith("cuda")
    return [lesson for lesson in lessons if lesson.device != "cuda" or on_cuda]


def mutants(lesson: Lesson) -> tuple[Mutant, ...]:
    """The mutants of a lesson's solution; of one that continues another, those of what is new.

    Raises LibraryMissing.
    """
    return mutants_of(lesson.task.solution or "", lesson.judge.source)


class _Hunt:
    """The mutants of one lesson. Making it puts all their runs into the pool's queue."""

    def __init__(
        self, course: Course, lesson: Lesson, job_pool: JobPool, pool: ThreadPoolExecutor
    ) -> None:
        self._course = course
        self._lesson = lesson
        self._job_pool = job_pool
        self._mutants = mutants(lesson)
        # First in, first out: whatever waits for the solution's run stands behind it.
        self._right = pool.submit(job_pool.run, self._job(lesson.solution))
        self._runs = [pool.submit(self._judge, mutant) for mutant in self._mutants]

    def fates(self) -> Iterator[Fate]:
        """What became of each mutant, then what is wrong with the declarations."""
        line = self._lesson.task.solution_line
        record, _ = self._right.result()
        fault = passes(0 if self._lesson.continued is not None else line)(record)
        if fault is not None:
            message = f"no mutants of a solution that fails: {fault.message}"
            yield Unsound(self._lesson.id, self._shown(), fault.line or line, message)
            return
        tried = []
        for mutant, run in zip(self._mutants, self._runs, strict=True):
            fate = self._fate(mutant, run)
            tried.append(fate)
            yield fate
        yield from self._stale([fate for fate in tried if not isinstance(fate, Unsound)])

    def _job(self, source: str, wall_s: float = 0.0) -> Job:
        """Judge a program, with all seeds in one run."""
        job = check_job(self._lesson, source, f"{self._lesson.slug}.py", seeds=SEEDS)
        assert job.judge is not None
        # The first check that fails says all that is asked.
        judge = replace(job.judge, until=job.judge.checks)
        limits = replace(job.limits, wall_s=wall_s or job.limits.wall_s * len(SEEDS))
        return replace(job, scratch="", limits=limits, judge=judge)

    def _judge(self, mutant: Mutant) -> tuple[Record, float]:
        right, seconds = self._right.result()
        if passes(0)(right) is not None:
            return right, 0.0  # nobody will ask
        wall_s = max(WALL_S, SLOWER * seconds)
        return self._job_pool.run(self._job(self._lesson.program(mutant.source), wall_s))

    def _fate(self, mutant: Mutant, run: "Future[tuple[Record, float]]") -> Fate:
        record, seconds = run.result()
        line = self._lesson.task.solution_line + mutant.line
        if record.finished.outcome in UNRUN:
            message = f"the mutant {mutant.edit} could not be run: {record.finished.sentence}"
            return Unsound(self._lesson.id, self._shown(), line, message)
        by = killed_by(record)
        about = (
            self._lesson.id, self._shown(), line, mutant.kind, mutant.before, mutant.after, seconds
        )  # fmt: skip
        if by:
            return Killed(*about, by)
        declared = next((e for e in self._lesson.judge.equivalents if _is_about(e, mutant)), None)
        return Excused(*about, declared.because) if declared else Survived(*about)

    def _stale(self, tried: Sequence[Tried]) -> Iterator[Unsound]:
        """Declarations that excuse no survivor."""
        path = self._lesson.judge.path.relative_to(self._course.root).as_posix()
        for declared in self._lesson.judge.equivalents:
            about = [fate for fate in tried if _is_about(declared, fate)]
            if any(isinstance(fate, Excused) for fate in about):
                continue
            if about:
                by = next(fate.by for fate in about if isinstance(fate, Killed))
                message = f"this edit is no equivalent: {by}; remove the declaration"
            else:
                known = [fate.edit for fate in tried]
                near = nearest(f"{declared.before}  ->  {declared.after}", known) or ["none"]
                message = f"no edit of the solution is like this; the nearest is {near[0]!r}"
            yield Unsound(self._lesson.id, path, declared.line, message)

    def _shown(self) -> str:
        return self._lesson.path.relative_to(self._course.root).as_posix()


def killed_by(record: Record) -> str:
    """What noticed the mutant: the first check that failed, or the run's end; "" for nothing."""
    failed = next((verdict for verdict in record.verdicts if not verdict.passed), None)
    if failed is not None:
        return f"{failed.check!r} fails with seed {failed.seed}"
    fault = passes(0)(record)
    return fault.message if fault is not None else ""


def _is_about(declared: Equivalent, edit: Mutant | Tried) -> bool:
    return (_squeezed(declared.before), _squeezed(declared.after)) == (
        _squeezed(edit.before),
        _squeezed(edit.after),
    )


def _squeezed(code: str) -> str:
    return "".join(code.split())
