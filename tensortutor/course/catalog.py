"""Finds courses, loads them, and finds lessons in them."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tensortutor.course.course_toml import Entry, read_contents
from tensortutor.course.frontmatter import (
    FrontMatter,
    minutes_of,
    read_front_matter,
    requires_line,
)
from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.course.prerequisites import continued_problem, prerequisite_problems
from tensortutor.course.problems import CourseError, Problem, Report, listed, nearest
from tensortutor.course.read_file import read_course_file

if TYPE_CHECKING:
    from tensortutor.course.check_file import CheckFile

GROUP = "tensortutor.courses"
CONTENTS = "lessons/course.toml"
LESSON = re.compile(r"(\d\d)_([a-z0-9][a-z0-9_]*)\.md")
NUMBERED = re.compile(r"(\d+)\.(\d+)")


class UnknownLesson(LookupError):
    """No lesson has this name. `str` is the sentence for the learner, with the nearest ids."""


def find_course(path: Path | None = None) -> Path:
    """The folder of a course: the one that holds `lessons/` and `checks/`.

    path: a folder, or the name of an entry point in the group `tensortutor.courses` that names a
    package or a path; None for the built-in course. Raises CourseError if there is no course.
    """
    try:
        if path is None:
            candidates = _own_folders()
        elif path.is_dir():
            candidates = [path.resolve()]
        else:
            candidates = list(_installed(str(path)))
        for candidate in candidates:
            if (candidate / CONTENTS).is_file():
                return candidate
    except OSError as error:  # a folder that only others may enter, a name that is too long
        why = f"this folder cannot be read: {error.strerror or error}"
        raise CourseError([Problem(str(path), 0, why)]) from None
    raise CourseError([Problem(str(path or candidates[-1]), 0, _why_none(path, candidates))])


def find_tour() -> Path:
    """The folder of the short course that shows the app. Raises CourseError if it is missing."""
    folders = [folder / "tour" for folder in _own_folders()]
    return find_course(next(filter(Path.is_dir, folders), folders[-1]))


def _own_folders() -> list[Path]:
    """Where the built-in course may be: in a clone, and in an installed package."""
    package = Path(__file__).resolve().parent.parent
    return [package.parent, package]


def is_own(root: Path) -> bool:
    """Whether this is the folder of the built-in course."""
    return root.resolve() in _own_folders()


def open_course(root: Path) -> Course:
    """The course in `root` for learners: its lessons are read when they are opened.

    Raises CourseError with what is wrong with the list of lessons. What is wrong inside a lesson
    is raised when its steps are first asked for.
    """
    contents, problems = read_contents(root)
    chapters = []
    before: dict[str, Lesson] = {}
    for entry in contents.entries:
        lessons = []
        for path in _files(entry.folder):
            if named := LESSON.fullmatch(path.name):
                lesson, found = _front_matter_only(root, path, f"{entry.id}/{named[2]}", before)
                lessons.append(lesson)
                before[lesson.id] = lesson
                problems += found
        if lessons:
            chapters.append(
                Chapter(entry.id, entry.number, entry.title, entry.blurb, tuple(lessons))
            )
    course = Course(contents.title, tuple(chapters), root)
    problems += _prerequisites(course)
    if problems:
        raise CourseError(problems)
    return course


def _files(folder: Path) -> list[Path]:
    """What lies in a chapter's folder, in order."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _front_matter_only(
    root: Path, path: Path, id: str, before: Mapping[str, Lesson]
) -> tuple[Lesson, list[Problem]]:
    """A lesson of which only the front matter has been read. before: those before it, by id."""
    name = path.relative_to(root).as_posix()
    report = Report(name)
    data = read_course_file(path, report)
    front, text, start = FrontMatter(), "", 0
    if data is not None:
        text = data.decode("utf-8", "replace")
        front, start = read_front_matter(text, report)

    def read() -> Lesson:
        from tensortutor.course.parse import parse_lesson  # not before a lesson is opened

        shown = Report(name)
        judge, wrong = _read_check_file(root, path, shown, thorough=False)
        data = read_course_file(path, shown)
        if data is None:
            raise CourseError(shown.problems)
        lesson, problems = parse_lesson(data, id, judge, path, root)
        if whole := [*shown.problems, *problems, *wrong]:
            raise CourseError(whole)
        return lesson

    def shows() -> tuple[str, ...]:
        from tensortutor.course.check_file_reader import read_shows

        return read_shows(_check_file_of(root, path))

    known = {**vars(front), "continued": before.get(front.continues)}
    del known["minutes"]
    minutes = partial(minutes_of, front, text, start)
    return Lesson.later(read, shows, minutes, id=id, path=path, **known), report.problems


def load_course(root: Path, *, thorough: bool = False) -> Course:
    """The course in `root`. Raises CourseError with everything that is wrong with it.

    thorough: parse every line of the check files too, as the author's gate does.
    """
    course, problems = read_course(root, thorough=thorough)
    if problems:
        raise CourseError(problems)
    return course


def read_course(root: Path, *, thorough: bool = True) -> tuple[Course, tuple[Problem, ...]]:
    """What can be made out of the course in `root`, and everything that is wrong with it."""
    contents, problems = read_contents(root)
    chapters = []
    before: dict[str, Lesson] = {}
    for entry in contents.entries:
        lessons, found = _read_chapter(root, entry, thorough, before)
        problems += found
        if lessons:
            chapters.append(
                Chapter(entry.id, entry.number, entry.title, entry.blurb, tuple(lessons))
            )
    course = Course(contents.title, tuple(chapters), root)
    problems += _across(course)
    return course, tuple(problems)


def find_chapter(course: Course, name: str) -> Chapter | None:
    """The chapter of this id or number, if there is one."""
    known = {key: one for one in course.chapters for key in (one.id, str(one.number))}
    return known.get(name)


def find_lessons(course: Course, name: str) -> tuple[Lesson, ...]:
    """The lessons of the chapter called `name`, or the one lesson. Raises UnknownLesson."""
    chapter = find_chapter(course, name)
    return (find_lesson(course, name),) if chapter is None else chapter.lessons


def find_lesson(course: Course, name: str) -> Lesson:
    """The lesson called `name`: its id, its slug if no other has it, or "chapter.lesson" by number.

    Raises UnknownLesson.
    """
    lessons = {lesson.id: lesson for lesson in course.lessons}
    if name in lessons:
        return lessons[name]
    by_number = NUMBERED.fullmatch(name)
    if by_number:
        return _numbered(course, int(by_number[1]), int(by_number[2]))
    same = [lesson for lesson in course.lessons if lesson.slug == name]
    if len(same) == 1:
        return same[0]
    if same:
        ids = listed([lesson.id for lesson in same])
        raise UnknownLesson(f"{len(same)} lessons are called {name!r}: {ids}. Say which.")
    chapter = find_chapter(course, name)
    if chapter is not None:
        ids = listed([lesson.id for lesson in chapter.lessons], "or")
        raise UnknownLesson(f"{name!r} is a chapter. Say which of its lessons: {ids}.")
    raise UnknownLesson(f"There is no lesson {name!r}. {_near(name, course)}")


def _numbered(course: Course, chapter: int, number: int) -> Lesson:
    found = next((c for c in course.chapters if c.number == chapter), None)
    if found is None:
        numbers = listed([str(c.number) for c in course.chapters])
        raise UnknownLesson(f"There is no chapter {chapter}. The course has chapters {numbers}.")
    if not 1 <= number <= len(found.lessons):
        count = len(found.lessons)
        raise UnknownLesson(
            f"There is no lesson {chapter}.{number}. Chapter {chapter} has {count} "
            f"lesson{'s' if count > 1 else ''}, from {chapter}.1 to {chapter}.{count}."
        )
    return found.lessons[number - 1]


def _near(name: str, course: Course) -> str:
    """The nearest three ids, as a sentence; slugs count when the name has no chapter."""
    ids = [lesson.id for lesson in course.lessons]
    if not ids:
        return "The course has no lessons yet."
    if "/" in name:
        near = nearest(name, ids, 3)
    else:
        slugs = nearest(name, list(dict.fromkeys(lesson.slug for lesson in course.lessons)), 3)
        near = [id for slug in slugs for id in ids if id.partition("/")[2] == slug][:3]
    return f"The nearest: {listed(near)}."


def _read_chapter(
    root: Path, entry: Entry, thorough: bool, before: dict[str, Lesson]
) -> tuple[list[Lesson], list[Problem]]:
    """The lessons of one folder, in order. before: those of the chapters before, by id; they are
    added to it."""
    from tensortutor.course.parse import parse_lesson
    from tensortutor.course.second_edition import edition_problems

    lessons: list[Lesson] = []
    problems: list[Problem] = []
    taken: dict[str, str] = {}
    for path in sorted(entry.folder.glob("*.md")):
        shown = Report(path.relative_to(root).as_posix())
        named = LESSON.fullmatch(path.name)
        if named is None:
            shown.add(1, f"a lesson's file is named NN_slug.md: rename it {_better(path.name)}")
            problems += shown.problems
            continue
        number, slug = named.groups()
        for what in (f"the id '{entry.id}/{slug}'", f"the number {number}"):
            if what in taken:
                shown.add(1, f"{what} belongs to {taken[what]} already: rename this file")
            taken.setdefault(what, path.name)
        judge, found = _read_check_file(root, path, shown, thorough)
        data = read_course_file(path, shown)
        if data is None:
            problems += [*shown.problems, *found]
            continue
        lesson, wrong = parse_lesson(data, f"{entry.id}/{slug}", judge, path, root)
        lesson = replace(lesson, continued=before.get(lesson.continues))
        if unfit := continued_problem(lesson):
            line = requires_line(data.decode("utf-8", "replace"), lesson.continues)
            wrong.append(Problem(shown.path, line, unfit))
            lesson = replace(lesson, continued=None)
        before[lesson.id] = lesson
        lessons.append(lesson)
        problems += [*shown.problems, *wrong, *found]
        if thorough and not wrong and not found:
            problems += edition_problems(lesson, root)
    problems += _orphans(root, entry)
    return lessons, problems


def _read_check_file(
    root: Path, path: Path, shown: Report, thorough: bool
) -> tuple["CheckFile", list[Problem]]:
    """The check file beside the lesson at `path`; its absence is the lesson's problem."""
    from tensortutor.course.check_file import CheckFile
    from tensortutor.course.check_file_reader import read_check_file

    judge = _check_file_of(root, path)
    name = judge.relative_to(root).as_posix()
    if not os.path.lexists(judge):
        shown.add(1, f"its check file is missing: write {name}")
        return CheckFile(judge, "", (), (), ()), []
    report = Report(name)
    return read_check_file(judge, report, thorough=thorough), report.problems


def _check_file_of(root: Path, path: Path) -> Path:
    """Where the check file of the lesson at `path` lies."""
    return root / "checks" / path.parent.name / f"{path.stem}.py"


def _orphans(root: Path, entry: Entry) -> Iterator[Problem]:
    """Check files that judge no lesson."""
    for path in sorted((root / "checks" / entry.folder.name).glob("[!_]*.py")):
        if not (entry.folder / f"{path.stem}.md").is_file():
            lesson = f"lessons/{entry.folder.name}/{path.stem}.md"
            yield Problem(
                path.relative_to(root).as_posix(), 1, f"there is no {lesson} for it to judge"
            )


def _better(name: str) -> str:
    """A name of the right form that is like `name`."""
    stem = re.sub(r"[^a-z0-9]+", "_", name.removesuffix(".md").lower()).strip("_")
    number, _, slug = stem.partition("_")
    return f"{int(number):02d}_{slug}.md" if number.isdigit() and slug else f"NN_{stem}.md"


def _across(course: Course) -> Iterator[Problem]:
    """What only the whole course can tell: prerequisites and links."""
    from tensortutor.course.links import broken_links
    from tensortutor.course.second_edition import evidence_problems

    yield from _prerequisites(course)
    yield from evidence_problems(course.lessons, course.root)
    for lesson in course.lessons:
        for line, target in broken_links(lesson):
            yield Problem(_shown(course, lesson), line, f"this link leads to no file: {target}")


def _prerequisites(course: Course) -> Iterator[Problem]:
    for lesson, required, message in prerequisite_problems(course.lessons):
        data = read_course_file(lesson.path, Report("")) or b""
        text = data.decode("utf-8", "replace")
        yield Problem(_shown(course, lesson), requires_line(text, required), message)


def _shown(course: Course, lesson: Lesson) -> str:
    return lesson.path.relative_to(course.root).as_posix()


def _installed(name: str) -> Iterator[Path]:
    """The folders that installed distributions offer under this name."""
    from importlib.metadata import entry_points  # 20 ms that the built-in course does without

    for point in entry_points(group=GROUP, name=name):
        target = point.load()
        if isinstance(target, (str, Path)):
            yield Path(target).resolve()
        elif getattr(target, "__file__", None):
            yield Path(target.__file__).resolve().parent


def _why_none(path: Path | None, candidates: list[Path]) -> str:
    if path is None:
        return f"the built-in course is missing: there is no {CONTENTS}; install tensortutor again"
    if candidates:
        return f"this is no course: there is no {candidates[0] / CONTENTS}"
    return f"there is no such folder, and no installed course of that name (group {GROUP!r})"
