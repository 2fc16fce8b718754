"""`verify` and `new`: what those who write lessons need."""

import time
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby, takewhile
from pathlib import Path

from tensortutor.commands.errors import Refused
from tensortutor.commands.mutation import expected_mutants, try_mutants
from tensortutor.commands.session import Session, chosen
from tensortutor.commands.verify_watch import watch
from tensortutor.course.atlas import ATLAS, Entry, check_atlas
from tensortutor.course.atlas_claims import NAME as ATLAS_NAME
from tensortutor.course.atlas_claims import atlas_trials, keeps_columns
from tensortutor.course.catalog import UnknownLesson, find_course, find_lessons, read_course
from tensortutor.course.claims import Trial
from tensortutor.course.drill_claims import NAME as DRILLS
from tensortutor.course.drill_claims import drill_problems, drill_trials
from tensortutor.course.drills import Drill, read_drills
from tensortutor.course.git_changes import NoHistory, changed_files, changed_lessons
from tensortutor.course.model import Course, Lesson
from tensortutor.course.problems import CourseError, Problem, listed
from tensortutor.course.reference import Page
from tensortutor.course.reference_claims import NAME as REFERENCE
from tensortutor.course.reference_claims import check_reference, page_trials
from tensortutor.course.scaffold import CannotBegin, begin_lesson
from tensortutor.course.verify import Broken, Finding, Skipped, count, prove, verify
from tensortutor.protocol.wire import to_wire

FAILED = 1
PACKAGE = Path(__file__).resolve().parents[1]
"""Where an installed tensortutor keeps the built-in course: no place to write in."""


@dataclass(frozen=True)
class Parts:
    """What is to be proved."""

    lessons: Sequence[Lesson] = ()
    entries: Sequence[Entry] = ()
    pages: Sequence[Page] = ()
    drills: Sequence[Drill] = ()

    def trials(
        self, course: Course, device: str, seeds: int, *, columns: bool = True
    ) -> Iterator[Trial]:
        """The runs for all but the lessons."""
        of_atlas = atlas_trials(course, self.entries, device, columns=columns)
        return chain(of_atlas, page_trials(self.pages), drill_trials(self.drills, seeds))


def new_lesson(session: Session, arguments: Namespace) -> int:
    """Begin a lesson: two files that hold together, with TODO where the author writes."""
    root = find_course(session.options.course)
    if root == PACKAGE:
        raise Refused("Say which course gets the lesson: tensortutor --course PATH new ...")
    try:
        lesson, checks = begin_lesson(root, arguments.name)
    except CannotBegin as error:
        raise Refused(str(error)) from None
    id = f"{lesson.parent.name[3:]}/{lesson.stem[3:]}"
    for line in (
        f"The lesson: {lesson}",
        f"Its checks: {checks}",
        f"Watch it stand while you write: tensortutor verify --watch {id}{chosen(session.options)}",
    ):
        session.printer.line(line)
    return 0


def verify_lessons(session: Session, arguments: Namespace) -> int:
    """Prove lessons, drills, the atlas and the reference, and print what does not hold.

    Returns 1 if there is anything.
    """
    course, problems = _read(session)
    lessons = _named(course, arguments.lessons)
    has_atlas = not arguments.lessons or ATLAS_NAME in arguments.lessons
    if arguments.changed is not None:
        files = _changed(course, arguments.changed)
        lessons = changed_lessons(lessons, files)
        has_atlas = has_atlas and course.root / ATLAS in files
    everything = not arguments.lessons and arguments.changed is None
    if arguments.watch:
        return _watch(session, arguments, course.root, [] if everything else lessons)
    names = {path for lesson in lessons for path in _files(course, lesson)}
    told = [problem for problem in problems if everything or problem.path in names]
    entries, wrong = check_atlas(course) if has_atlas else ((), [])
    pages, of_pages = _pages(course, arguments)
    drills, of_drills = _drills(course, arguments)
    told += [*wrong, *of_pages, *of_drills]
    parts = Parts(lessons, entries, pages, drills)
    return 0 if _prove(session, arguments, course, told, parts) else FAILED


def _drills(course: Course, arguments: Namespace) -> tuple[Sequence[Drill], list[Problem]]:
    """The drills that are asked for, and what is wrong with them."""
    if arguments.lessons and DRILLS not in arguments.lessons:
        return (), []
    drills, problems = read_drills(course)
    problems += drill_problems(course, drills)
    if arguments.changed is not None:
        files = _changed(course, arguments.changed)
        drills = tuple(drill for drill in drills if drill.path in files)
        problems = _among(course, problems, files)
    return drills, problems


def _pages(course: Course, arguments: Namespace) -> tuple[list[Page], list[Problem]]:
    """The pages of the reference that are asked for, and what is wrong with them."""
    names, revision = arguments.lessons, arguments.changed
    if names and not any(map(_is_reference, names)):
        return [], []
    pages, problems = check_reference(course)
    files = {page.path for page in pages}
    if names and REFERENCE not in names:
        known = {f"{REFERENCE}/{page.id}": page.path for page in pages}
        for name in filter(_is_reference, names):
            if name not in known:
                raise Refused(f"There is no page {name!r}. The pages: {listed(list(known))}.")
        files = {path for name, path in known.items() if name in names}
        problems = _among(course, problems, files)
    if revision is not None:
        files &= _changed(course, revision)
        problems = _among(course, problems, files)
    return [page for page in pages if page.path in files], list(problems)


def _among(course: Course, problems: Sequence[Problem], files: Collection[Path]) -> list[Problem]:
    """What is wrong with these files."""
    return [problem for problem in problems if course.root / problem.path in files]


def _is_reference(name: str) -> bool:
    return name.partition("/")[0] == REFERENCE


def _watch(session: Session, arguments: Namespace, root: Path, lessons: Sequence[Lesson]) -> int:
    """Prove again what is saved; only of these lessons, if there are any."""
    only = {lesson.id for lesson in lessons}

    def prove(saved: Collection[Path], is_stale: Callable[[], bool]) -> None:
        course, problems = _read(session)
        touched = changed_lessons(course.lessons, frozenset(saved))
        chosen_ones = [lesson for lesson in touched if not only or lesson.id in only]
        files = {path.relative_to(root).as_posix() for path in saved}
        files |= {path for lesson in chosen_ones for path in _files(course, lesson)}
        told = [problem for problem in problems if problem.path in files]
        pages, wrong = check_reference(course)
        drills, of_drills = read_drills(course)
        told += _among(course, [*wrong, *of_drills, *drill_problems(course, drills)], saved)
        parts = Parts(
            chosen_ones,
            pages=[page for page in pages if page.path in saved],
            drills=[drill for drill in drills if drill.path in saved],
        )
        _prove(session, arguments, course, told, parts, is_stale)

    first = [path for lesson in lessons for path in (lesson.path, lesson.judge.path)]
    return watch(session, root, first, prove)


def _prove(
    session: Session,
    arguments: Namespace,
    course: Course,
    problems: Sequence[Problem],
    parts: Parts,
    is_stale: Callable[[], bool] = lambda: False,
) -> bool:
    """Prove the parts that have no problems; print what does not hold.

    is_stale: says that the files have changed, so that nobody wants to know any more. Returns
    whether all is well.
    """
    begun = time.monotonic()
    for problem in problems:
        _tell_problem(session, problem)
    spoilt = {problem.path for problem in problems}

    def is_sound(path: Path) -> bool:
        return path.relative_to(course.root).as_posix() not in spoilt

    sound = Parts(
        [lesson for lesson in parts.lessons if not spoilt & _files(course, lesson)],
        parts.entries if ATLAS not in spoilt else (),
        [page for page in parts.pages if is_sound(page.path)],
        [drill for drill in parts.drills if is_sound(drill.path)],
    )
    mutated = _with_new_checks(course, sound.lessons, arguments.mutate_since)
    expected = expected_mutants(mutated) if arguments.mutate else 0
    others = sound.trials(course, "cpu", arguments.seeds)
    claims = sum(len(trial.claims) for trial in others)
    tally = _Tally(session, count(sound.lessons, seeds=arguments.seeds) + claims)
    found = _findings(session, course, sound, arguments)
    found = takewhile(lambda _: not is_stale(), found)
    for id, findings in groupby(found, _lesson_of):
        tally.add(id, findings)
    if is_stale():
        return False
    tally.tell(time.monotonic() - begun)
    noticed = not arguments.mutate or try_mutants(
        session, course, mutated, expected, arguments.jobs
    )
    return not problems and not tally.broken and noticed


def _with_new_checks(
    course: Course, lessons: Sequence[Lesson], revision: str | None
) -> Sequence[Lesson]:
    """The lessons whose check files differ from a git revision; all without one.

    A text that changed can let no mutant through: the checks decide about them.
    """
    if revision is None:
        return lessons
    files = _changed(course, revision)
    return [lesson for lesson in lessons if lesson.judge.path in files]


def _read(session: Session) -> tuple[Course, tuple[Problem, ...]]:
    try:
        return read_course(find_course(session.options.course), thorough=True)
    except CourseError as error:
        raise Refused(str(error)) from None


def _named(course: Course, names: Sequence[str]) -> list[Lesson]:
    try:
        named = [
            lesson
            for name in names
            if name not in (ATLAS_NAME, DRILLS) and not _is_reference(name)
            for lesson in find_lessons(course, name)
        ]
    except UnknownLesson as error:
        raise Refused(str(error)) from None
    if ATLAS_NAME in names and not (course.root / ATLAS).is_file():
        raise Refused(f"This course has no atlas: there is no {course.root / ATLAS}")
    once = {lesson.id: lesson for lesson in named}
    return list(once.values()) if names else list(course.lessons)


def _changed(course: Course, revision: str) -> frozenset[Path]:
    """The files that differ from a git revision."""
    try:
        return changed_files(course.root, revision)
    except NoHistory as error:
        raise Refused(str(error)) from None


def _files(course: Course, lesson: Lesson) -> set[str]:
    """A lesson's files as problems name them."""
    return {path.relative_to(course.root).as_posix() for path in (lesson.path, lesson.judge.path)}


def _tell_problem(session: Session, problem: Problem) -> None:
    if session.json:
        session.printer.json({"event": "problem", **asdict(problem)})
    else:
        session.printer.line(str(problem))


def _findings(
    session: Session, course: Course, parts: Parts, arguments: Namespace
) -> Iterator[Finding]:
    if parts.lessons or parts.entries or parts.pages or parts.drills:
        runner = session.runner(preload=True)
        yield from verify(
            course, parts.lessons, runner, seeds=arguments.seeds, jobs=arguments.jobs,
            device=runner.device,
        )  # fmt: skip
        columns = keeps_columns(runner.status.python)
        others = parts.trials(course, runner.device, arguments.seeds, columns=columns)
        yield from prove(course, others, runner, jobs=arguments.jobs)


def _lesson_of(finding: Finding) -> str:
    return finding.lesson


class _Tally:
    """Counts findings and prints them: what does not hold in full, the rest as a sum."""

    def __init__(self, session: Session, expected: int) -> None:
        self._session = session
        self._printer = session.printer
        self._expected = expected
        self._seen = 0
        self._skipped = 0
        self.broken = 0

    def add(self, lesson: str, findings: Iterable[Finding]) -> None:
        """The findings of one lesson, as they come."""
        broken, seen, skipped, seconds = self.broken, self._seen, self._skipped, 0.0
        for finding in findings:
            self._seen += 1
            seconds += finding.seconds
            self.broken += isinstance(finding, Broken)
            self._skipped += isinstance(finding, Skipped)
            self._tell_one(finding)
        wrong = self.broken - broken
        claims = self._seen - seen - (self._skipped - skipped)
        if self._session.json or not claims:
            return
        style, sign = ("red", "✗ failed") if wrong else ("green", "✓ passed")
        mark = self._printer.paint(sign, style)
        said = f"{wrong} of {claims} claims do not hold" if wrong else f"{claims} claims hold"
        self._printer.line(f"{mark}  {lesson}: {said}, {seconds:.1f} s")

    def _tell_one(self, finding: Finding) -> None:
        if self._session.json:
            name = type(finding).__name__.lower()
            self._printer.json({"event": name, **to_wire(finding)})
            return
        if isinstance(finding, (Broken, Skipped)):
            self._printer.line(str(finding))
        said = f"{finding.lesson}: {finding.what}"
        self._printer.progress(self._seen, self._expected, said)

    def tell(self, seconds: float) -> None:
        """The sum."""
        if self._session.json:
            return
        held = self._seen - self.broken - self._skipped
        parts = [f"{held} claims hold", f"{self.broken} do not"]
        if self._skipped:
            parts.append(f"{self._skipped} could not be proved here")
        self._printer.line(f"{', '.join(parts)} ({seconds:.0f} s)")
