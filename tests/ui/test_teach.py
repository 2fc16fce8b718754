"""Teach mode: block by block, answers on demand, everything open, nothing kept."""

import hashlib
from pathlib import Path

import pytest

from tensortutor.learner.classroom import classroom, unlocked
from tensortutor.learner.progress import Progress
from tensortutor.learner.ui_state import UiState
from tensortutor.learner.workspace import Workspace
from tensortutor.ui import teach_mode
from tensortutor.ui.app import TutorApp
from tensortutor.ui.course_rows import ReviewRow
from tensortutor.ui.lesson.code_statements import statements
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.screens.solution import SolutionPage
from tensortutor.ui.screens.teach import TeachScreen
from tensortutor.ui.widgets.board import CodeMark
from tensortutor.ui.widgets.questions import Question
from tests.ui.courses import CHECKS, NUMBER, STARTER
from tests.ui.fakes import judges, says
from tests.ui.test_lesson import (
    INSIGHT,
    LAST,
    PRACTICE,
    PREDICTION,
    RUN,
    SIZES,
    arrive,
    ended,
    output,
    told,
)


def classroom_app(setting, lesson=None, step=0) -> TutorApp:
    """The app as `tensortutor teach` makes it."""
    room = classroom()
    course = unlocked(setting.course)
    progress = Progress.open(room)
    if lesson is not None:
        lesson = next(one for one in course.lessons if one.id == lesson.id)
        progress.set_place(lesson.id, step)
    return TutorApp(
        course, progress, Workspace(room), setting.runner, lesson=lesson, teaching=True,
        ui_state=UiState(room.ui_state),
    )  # fmt: skip


def everything(home: Path) -> dict[str, tuple[str, int]]:
    """All files of a home, with what they hold and when they were written."""
    return {
        str(path.relative_to(home)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in sorted([home, *home.rglob("*")])
    }


def lived_in(setting) -> dict[str, tuple[str, int]]:
    """A learner's home with something in every file."""
    progress, lesson = setting.progress, setting.accumulation
    setting.paths.settings.write_text('[look]\ntheme = "nord"\n')
    setting.paths.ui_state.write_text('{"lens": true}')
    setting.workspace.save(lesson, PRACTICE, "mine = 1\n")
    setting.workspace.save(lesson, RUN, "walked = 1\n")
    progress.mark_passed("tensors/shapes")
    progress.record_answer(lesson.id, PREDICTION, 0, "4", False)
    progress.show_hint(lesson.id)
    progress.set_place(lesson.id, RUN)
    return everything(setting.paths.home)


def standing(screen) -> list[str]:
    """The kinds of the blocks that can be seen."""
    board = screen.reader
    return [type(block).__name__ for block in board._blocks if block.display]


@pytest.mark.parametrize("size", SIZES)
async def test_blocks_come_one_at_a_time_and_then_the_next_step(setting, until, size):
    app = classroom_app(setting, setting.accumulation, INSIGHT)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        assert isinstance(screen, TeachScreen)
        assert "teach mode" in screen.top.render_line(0).text
        assert standing(screen) == ["MarkdownParagraph"]
        assert screen.keys.names["teach.more"] == "More 1/3"
        app.clear_notifications()  # the keys stand where the notice stood
        await pilot.pause()
        assert "Space More 1/3" in screen.keys.render_line(0).text
        await pilot.press("space", "space")
        assert len(standing(screen)) == 3
        assert screen.keys.names["teach.more"] == "Next step"
        await pilot.press("backspace")
        assert len(standing(screen)) == 2
        await pilot.press("right", "pagedown")  # as pointers send it
        await until(pilot, lambda: screen.session.index == RUN)
        await until(pilot, lambda: len(standing(screen)) == 1)
        await pilot.press("left")
        await until(pilot, lambda: screen.session.index == INSIGHT)
        await until(pilot, lambda: len(standing(screen)) == 3)


@pytest.mark.parametrize("size", SIZES)
async def test_the_code_is_covered_until_its_turn(setting, until, size):
    setting.runner.script = says("0 tensor(2.)\n")
    app = classroom_app(setting, setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await until(pilot, lambda: screen.reader.region.width > size[0] - 4)
        assert not screen.editor.region.area
        await pilot.press("space")
        await until(pilot, lambda: screen.editor.region.area)
        assert app.focused is not screen.editor
        assert standing(screen) == ["MarkdownParagraph", "CodeMark"]
        assert "accumulation_2.py" in str(screen.query_one(CodeMark).content)
        await pilot.press("O", "space")
        await until(pilot, lambda: screen.reader.region.area)
        assert standing(screen)[-1] == "MarkdownParagraph"
        await pilot.press("r")
        await until(pilot, lambda: "The program is done." in ended(screen))
        assert output(screen) == ["0 tensor(2.)"]
        await pilot.press(*["backspace"] * 4)  # the paragraph, the code's three statements
        await until(pilot, lambda: not screen.editor.region.area)


@pytest.mark.parametrize("size", SIZES)
async def test_code_comes_statement_by_statement_and_runs_as_far_as_it_is_shown(
    setting, until, size
):
    one, two, three = pieces = statements(setting.accumulation.steps[RUN].pane.source)
    app = classroom_app(setting, setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r", "O")
        # Said twice, it stands there once.
        assert [text for text in told(app) if "board" in text] == ["No code is on the board yet."]
        assert screen.editor.text == ""
        await pilot.press("space")
        await until(pilot, lambda: screen.editor.text == one)
        total = screen.board.total + len(pieces) - 1
        assert screen.keys.names["teach.more"] == f"More 2/{total}"
        await pilot.press("space")
        await until(pilot, lambda: screen.editor.text == one + two)
        await pilot.press("r")
        await until(pilot, lambda: setting.runner.jobs)
        assert setting.runner.jobs[0].source == one + two
        await pilot.press("backspace")
        await until(pilot, lambda: screen.editor.text == one)
        assert screen.editor.region.area

        # What the teacher writes stays, and the rest comes behind it.
        screen.editor.insert("x = 0", screen.editor.document.end)
        await pilot.press("space")
        await until(pilot, lambda: screen.editor.text == f"{one}x = 0\n{two}")
        await pilot.press("O")
        await until(pilot, lambda: screen.editor.text == f"{one}x = 0\n{two}{three}")
        await pilot.press("O")
        await until(pilot, lambda: any("All of the code is shown" in text for text in told(app)))

        assert not any("another program" in text for text in told(app))

        # Another step and back: the code stands as it was left.
        await pilot.press("n")
        await until(pilot, lambda: screen.session.index == PREDICTION)
        await pilot.press("p")
        await until(pilot, lambda: screen.session.index == RUN)
        await pilot.press("space")
        await until(pilot, lambda: screen.editor.text == f"{one}x = 0\n{two}{three}")


async def test_an_exercise_begins_as_a_whole(setting, until):
    app = classroom_app(setting, setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("space")
        await until(pilot, lambda: screen.editor.text == STARTER)
        assert screen.editor.cursor_location == (0, 0)


@pytest.mark.parametrize("size", SIZES)
async def test_answers_stay_hidden_until_they_are_asked_for(setting, until, size):
    app = classroom_app(setting, setting.accumulation, PREDICTION)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("a")
        assert any("No question on the board" in text for text in told(app))
        await pilot.press("o")
        await until(pilot, lambda: all(one.region.area for one in screen.query(Question)[:1]))
        first, second = screen.query(Question)
        assert "7" not in first.verdict
        assert not first.query(".explain")
        await pilot.press("r")  # no prediction holds the teacher up
        await until(pilot, lambda: "The program is done." in ended(screen))
        await pilot.press("a")
        await until(pilot, lambda: "The answer is 7" in first.verdict)
        explanation = first.query_one(".explain")
        assert NUMBER.explain.partition("`")[0] in explanation.source
        assert "The answer" not in second.verdict
        await pilot.press("a")
        await until(pilot, lambda: "The answer is False" in second.verdict)
        await pilot.press("a")
        await pilot.pause()
        assert sum("No question" in text for text in told(app)) == 1


async def test_everything_is_open_and_the_course_goes_on(setting, until):
    app = classroom_app(setting)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        line = app.screen.top.render_line(0).text
        assert "teach mode" in line
        assert "every lesson is open, nothing is kept" in line
        assert not any(isinstance(row, ReviewRow) for row in app.screen.courses.rows)
        # As a search or a link may name it: the learner's own, with its lock.
        app.open_lesson(setting.course.lessons[2])
        screen = await arrive(pilot, until)
        assert not isinstance(app.screen, Confirm)
        assert screen.lesson.requires == ()
        app.open_lesson(app.course.lessons[1])
        await until(pilot, lambda: app.screen is not screen)
        screen = await arrive(pilot, until)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, SolutionPage))
        await pilot.press("escape")
        for _ in range(LAST):
            await pilot.press("n")
        await until(pilot, lambda: screen.session.index == LAST)
        await pilot.press("n")
        await until(pilot, lambda: getattr(app.screen, "lesson", None) is app.course.lessons[2])


async def test_nothing_of_the_learners_changes(setting, until, monkeypatch):
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.SAVE_AFTER_S", 0.01)
    before = lived_in(setting)
    setting.runner.script = judges(dict.fromkeys(CHECKS, True))
    app = classroom_app(setting, setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("o", "h", "f3", "z")
        assert screen.editor.text == "z" + STARTER, "the lesson's code, not the learner's"
        await until(pilot, lambda: app.workspace.load(screen.lesson, PRACTICE) == "z" + STARTER)
        await pilot.press("f9")
        await until(pilot, lambda: "All checks passed" in ended(screen))
        await pilot.press("v", "I", "escape", "p")
        await until(pilot, lambda: screen.session.index == PREDICTION)
        question = screen.query(Question).first()
        question.post_message(Question.Answered(question, 4.0))
        await until(pilot, lambda: "Wrong" in question.verdict)
        app.theme = "gruvbox"
        await pilot.press("escape", "R", "l")
        await until(pilot, lambda: isinstance(app.screen, (HomeScreen, Confirm)))
        assert app.progress.passed() == {screen.lesson.id}
    assert everything(setting.paths.home) == before


async def test_from_the_palette_and_back(setting, until):
    setting.progress.mark_passed("tensors/shapes")
    setting.workspace.save(setting.accumulation, RUN, "mine = 1\n")
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        own = await arrive(pilot, until)
        assert own.editor.text == "mine = 1\n"
        (begin,) = [one for one in app.get_system_commands(own) if one.title == "Teach mode"]
        begin.callback()
        await until(pilot, lambda: isinstance(app.screen, TeachScreen))
        screen = await arrive(pilot, until)
        assert (screen.session.index, app.teaching) == (RUN, True)
        assert screen.editor.text != "mine = 1\n"
        before = everything(setting.paths.home)
        await pilot.press("o", "f3", "q", "escape", "n")
        await until(pilot, lambda: screen.session.index == PREDICTION)
        commands = [one.title for one in app.get_system_commands(screen)]
        assert "Leave teach mode" in commands
        screen.leave()
        assert everything(setting.paths.home) == before
        teach_mode.turn(app)
        await until(pilot, lambda: type(app.screen) is LessonScreen)
        screen = await arrive(pilot, until)
        assert (screen.session.index, screen.editor.text) == (RUN, "mine = 1\n")
        assert app.progress is setting.progress
        assert "teach mode" not in screen.top.render_line(0).text
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        assert "1 of 3 lessons done" in app.screen.top.word
        assert len(app.screen_stack) == 1


async def test_who_was_started_to_teach_cannot_leave(setting, until):
    app = classroom_app(setting)
    async with app.run_test(size=(80, 24)):
        titles = [one.title for one in app.get_system_commands(app.screen)]
        assert not [title for title in titles if "each mode" in title]
