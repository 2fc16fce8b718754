"""Which of a course's files differ from a git revision."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tensortutor.course.model import Lesson

FOLDERS = ("lessons", "checks")


class NoHistory(Exception):
    """There is nothing to compare with. `str` is the sentence that says why."""


def changed_files(root: Path, revision: str) -> frozenset[Path]:
    """The lesson and check files below `root` that differ from `revision`, new ones too.

    Raises NoHistory if the course is in no git checkout, the revision is unknown, or git missing.
    """
    try:
        _git(root, "rev-parse", "--is-inside-work-tree")
    except NoHistory as error:
        raise NoHistory(f"{root} is in no git checkout that could be compared: {error}") from None
    try:
        commit = _git(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except NoHistory:
        raise NoHistory(f"git knows no revision {revision!r} of {root}.") from None
    listed = _git(root, "diff", "--name-only", "--relative", "-z", commit.strip(), "--", *FOLDERS)
    listed += _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *FOLDERS)
    return frozenset(root / name for name in listed.split("\0") if name)


def changed_lessons(lessons: Iterable[Lesson], files: frozenset[Path]) -> list[Lesson]:
    """The lessons whose own file or check file is among `files`."""
    return [lesson for lesson in lessons if files & {lesson.path, lesson.judge.path}]


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
    except OSError as error:
        raise NoHistory(f"git cannot be started: {error.strerror}.") from None
    if done.returncode:
        raise NoHistory((done.stderr.strip().splitlines() or ["git failed"])[0])
    return done.stdout
