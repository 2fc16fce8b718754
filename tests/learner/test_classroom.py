import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tensortutor.course.model import Lesson
from tensortutor.learner.classroom import PREFIX, classroom, unlocked
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.unlock import History, credit, state
from tests.learner.courses import course, lesson


def test_a_classroom_looks_like_home_and_knows_nothing_of_the_learner(own_home: Path) -> None:
    own = Paths.find()
    own.settings.write_text('[look]\ntheme = "nord"\n')
    own.ui_state.write_text('{"lens": false}')
    Progress.open(own).mark_passed("c/a")
    room = classroom()
    assert room.settings.read_bytes() == own.settings.read_bytes()
    assert room.ui_state.read_bytes() == own.ui_state.read_bytes()
    assert not room.consent.exists()
    assert Progress.open(room).passed() == frozenset()
    assert room.home.is_relative_to(tempfile.gettempdir())


def test_a_learner_without_a_home_gets_none(own_home: Path) -> None:
    classroom()
    assert not own_home.exists()


def test_the_classroom_of_a_killed_process_goes_when_the_next_one_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = (
        f"import tempfile; tempfile.tempdir = {str(tmp_path)!r};"
        "from tensortutor.learner.classroom import classroom;"
        "print(classroom().home, flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    strange = tmp_path / f"{PREFIX}being-made"
    strange.mkdir()
    own = classroom().home
    assert {theirs, strange, own} == set(tmp_path.iterdir()), "what is in use stays"
    other.kill()
    other.communicate()
    assert theirs.exists()
    os.utime(strange, (0, 0))
    again = classroom().home
    assert {own, again} == set(tmp_path.iterdir())


def test_every_lesson_of_an_unlocked_course_is_open() -> None:
    locked = course({"a": (), "b": ("a",), "c": ("b",)})
    earned = credit(locked, History())
    assert [state(one, earned) for one in unlocked(locked).lessons] == ["open"] * 3
    assert [one.id for one in unlocked(locked).lessons] == [one.id for one in locked.lessons]
    assert locked.lessons[2].requires == ("c/b",)


def test_unlocking_reads_no_lesson() -> None:
    read = []
    whole = lesson("c/a", ("c/b",))

    def reading() -> Lesson:
        read.append(whole.id)
        return whole

    known = {name: value for name, value in vars(whole).items() if name not in ("steps", "judge")}
    late = Lesson.later(reading, **known)
    one = course({"a": ()})
    chapter = replace(one.chapters[0], lessons=(late,))
    (opened,) = unlocked(replace(one, chapters=(chapter,))).lessons
    assert (opened.requires, read) == ((), [])
    assert opened.steps == whole.steps
