"""A lesson that goes on with another one's program: what it begins with, and what stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.learner.errors import StorageError
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.reset import reset_lesson
from tensortutor.learner.workspace import Workspace
from tensortutor.protocol.events import Judged
from tests.learner.courses import STARTER, WALK, lesson

RUN, TASK = 1, 2
SOLUTION = "def answer():\n    return 42\n"
NEW = "def more():\n    ...\n"
NEW_SOLUTION = "def more():\n    return answer() + 1\n"


def with_task(of: Lesson, starter: str, solution: str) -> Lesson:
    """The lesson with another exercise."""
    task = of.steps[TASK]
    assert task.pane is not None
    blocks = (replace(task.pane, source=starter),)
    return replace(of, steps=(*of.steps[:TASK], replace(task, blocks=blocks, solution=solution)))


FIRST = with_task(lesson("c/first"), STARTER, SOLUTION)
SECOND = replace(
    with_task(lesson("c/second", ["c/first"]), NEW, NEW_SOLUTION),
    continues="c/first",
    continued=FIRST,
)
THIRD = replace(lesson("c/third", ["c/second"]), continues="c/second", continued=SECOND)
COURSE = Course("Three", (Chapter("c", 1, "C", "", (FIRST, SECOND, THIRD)),), Path("."))
NEW_PART = f"\n\n\n# New in c/second\n\n{NEW}"


@pytest.fixture
def workspace(paths: Paths) -> Workspace:
    return Workspace(paths)


@pytest.fixture
def progress(paths: Paths) -> Progress:
    return Progress.open(paths)


def check(
    of: Lesson, progress: Progress, workspace: Workspace, source: str, *, passes: bool
) -> None:
    """The checks are put to a program, as each face does it."""
    told: list[str] = []
    session = LessonSession(COURSE, of, progress, workspace, told.append, at=TASK)
    session.judge(Judged(("a",), ()) if passes else Judged((), ("a",)), source)
    assert told == []


def test_it_begins_with_what_stands_in_the_file_of_the_earlier_lesson(workspace):
    workspace.save(FIRST, TASK, "mine = 1\n")
    assert workspace.load(SECOND, TASK) == f"mine = 1{NEW_PART}"
    assert not workspace.edited(SECOND, TASK)
    assert workspace.start(SECOND, TASK).read_text() == f"mine = 1{NEW_PART}"
    assert workspace.load(SECOND, RUN) == WALK


def test_the_code_that_passed_comes_before_what_the_file_holds_now(workspace, progress):
    check(FIRST, progress, workspace, "passed = 1\n", passes=True)
    check(FIRST, progress, workspace, "failed = 1\n", passes=False)
    workspace.save(FIRST, TASK, "spoilt = 1\n")
    assert workspace.load(SECOND, TASK) == f"passed = 1{NEW_PART}"
    assert workspace.load(FIRST, TASK) == "spoilt = 1\n"
    check(FIRST, progress, workspace, "passed = 2\n", passes=True)
    assert workspace.load(SECOND, TASK) == f"passed = 2{NEW_PART}"


def test_nothing_is_kept_beside_a_lesson_that_none_continues(workspace, progress):
    check(THIRD, progress, workspace, "passed = 1\n", passes=True)
    assert not workspace.folder(THIRD).exists()


def test_without_any_code_it_begins_with_the_whole_solution_and_says_so(workspace):
    said = "# You have written nothing in c/first yet: this is its solution.\n\n"
    assert workspace.load(SECOND, TASK) == said + SOLUTION.rstrip() + NEW_PART
    text = workspace.load(THIRD, TASK)
    assert text.startswith("# You have written nothing in c/second yet")
    assert SOLUTION in text
    assert NEW_SOLUTION in text
    assert text.endswith(f"# New in c/third\n\n{STARTER}")


def test_a_file_that_was_only_made_is_nothing_written(workspace):
    workspace.start(FIRST, TASK)
    assert workspace.load(SECOND, TASK).startswith("# You have written nothing in c/first yet")
    workspace.save(FIRST, TASK, "mine = 1\n")
    workspace.start(SECOND, TASK)
    assert workspace.load(THIRD, TASK).startswith("# You have written nothing in c/second yet")


def test_a_chain_carries_on_what_was_written_in_each(workspace):
    workspace.save(FIRST, TASK, "mine = 1\n")
    second = workspace.load(SECOND, TASK)
    workspace.save(SECOND, TASK, second.replace("...", "return 2"))
    third = workspace.load(THIRD, TASK)
    assert third.startswith("mine = 1\n")
    assert "return 2\n\n\n# New in c/third" in third


def test_a_change_of_the_earlier_one_leaves_the_later_file_as_it_is(workspace):
    workspace.save(FIRST, TASK, "old = 1\n")
    workspace.save(SECOND, TASK, workspace.load(SECOND, TASK) + "mine = 2\n")
    workspace.save(FIRST, TASK, "new = 1\n")
    assert workspace.load(SECOND, TASK) == f"old = 1{NEW_PART}mine = 2\n"
    assert workspace.load(FIRST, TASK) == "new = 1\n"


def test_a_file_that_nobody_changed_follows_the_earlier_lesson(workspace, progress):
    path = workspace.start(SECOND, TASK)
    assert path.read_text().startswith("# You have written nothing in c/first yet")
    workspace.save(FIRST, TASK, "mine = 1\n")
    assert workspace.load(SECOND, TASK) == f"mine = 1{NEW_PART}"
    assert not workspace.edited(SECOND, TASK)
    check(FIRST, progress, workspace, "passed = 1\n", passes=True)
    assert workspace.start(SECOND, TASK).read_text() == f"passed = 1{NEW_PART}"

    path.write_text(path.read_text() + "mine = 2\n")
    workspace.save(FIRST, TASK, "later = 1\n")
    check(FIRST, progress, workspace, "passed = 2\n", passes=True)
    assert workspace.start(SECOND, TASK).read_text() == f"passed = 1{NEW_PART}mine = 2\n"
    assert workspace.load(SECOND, TASK) == f"passed = 1{NEW_PART}mine = 2\n"


def test_reset_composes_the_later_one_anew(workspace, progress, paths):
    workspace.save(FIRST, TASK, "old = 1\n")
    workspace.start(SECOND, TASK)
    workspace.save(FIRST, TASK, "new = 1\n")
    backup = reset_lesson(COURSE, SECOND, progress, workspace)
    assert (backup / "c/second/second.py").read_text() == f"old = 1{NEW_PART}"
    assert workspace.load(SECOND, TASK) == f"new = 1{NEW_PART}"


def test_reset_of_the_earlier_one_takes_its_passed_code_too(workspace, progress):
    check(FIRST, progress, workspace, "passed = 1\n", passes=True)
    backup = reset_lesson(COURSE, FIRST, progress, workspace)
    assert (backup / "c/first/first_passed.py").read_text() == "passed = 1\n"
    assert workspace.load(SECOND, TASK).startswith("# You have written nothing in c/first")


def test_an_earlier_file_that_is_no_text_is_named(workspace):
    workspace.start(FIRST, TASK).write_bytes(b"\xff")
    with pytest.raises(StorageError, match=r"first\.py is not UTF-8 text .* reset c/first"):
        workspace.load(SECOND, TASK)


def test_typing_goes_on_where_the_earlier_code_has_changed_meanwhile(workspace, progress):
    told: list[str] = []
    session = LessonSession(COURSE, SECOND, progress, workspace, told.append, at=TASK)
    text = session.code().text
    workspace.save(FIRST, TASK, "elsewhere = 1\n")
    session.edit(text + "mine = 2\n")
    assert session.flush()
    assert workspace.load(SECOND, TASK) == text + "mine = 2\n"
    assert told == []
