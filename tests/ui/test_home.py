from dataclasses import replace

import pytest
from textual.screen import Screen
from textual.widgets import Button

from tensortutor.learner.skipping import question_of
from tensortutor.ui.course_rows import ChapterRow, ContinueRow, LessonRow, ReviewRow
from tensortutor.ui.screens.dialogs import Confirm, Locked
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.screens.review import ReviewScreen
from tensortutor.ui.screens.skip import SkipScreen
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.questions import Question
from tests.ui.fakes import judges


def footer(screen):
    """The ids of the keys that the footer shows."""
    return [binding.id for binding in screen.query_one(KeyBar).shown()]


def titles(screen: HomeScreen) -> list[str]:
    return [row.lesson.title for row in screen.courses.rows if isinstance(row, LessonRow)]


def about(screen: HomeScreen) -> str:
    return str(screen.query_one("#about").content)


def words(screen: Screen) -> str:
    return str(screen.query_one("Static").content)


async def test_the_first_row_begins_and_enter_opens_it(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        row = app.screen.courses.row
        assert isinstance(row, ContinueRow)
        assert (row.lesson.id, row.begun) == ("tensors/shapes", False)
        assert app.focused is app.screen.courses
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        assert app.screen.lesson.id == "tensors/shapes"


async def test_it_goes_on_where_the_learner_was(setting, until):
    setting.progress.mark_passed("tensors/shapes")
    setting.progress.set_place("autograd/accumulation", 3)
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        await until(pilot, lambda: app.screen.reader.border_title == "Practice")


async def test_states_are_told_by_a_sign_and_a_word(setting):
    setting.progress.mark_passed("tensors/shapes")
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen = app.screen
        for key in ("down", "down", "right", "down", "down", "right"):
            await pilot.press(key)
        drawn = [screen.courses.render_line(y).text for y in range(9)]
        text = "\n".join(drawn)
        assert any("✓" in line and "Shapes" in line and "done" in line for line in drawn), text
        assert any("○" in line and "accumulate" in line and "open" in line for line in drawn), text
        assert any("–" in line and "Hooks" in line and "locked" in line for line in drawn), text
        assert any("Autograd" in line and "0/2" in line for line in drawn), text


async def test_the_panel_tells_what_opens_a_locked_lesson(setting):
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "down")
        assert app.screen.courses.row.lesson.id == "autograd/accumulation"
        assert "Explain why .grad adds up" in about(app.screen)
        assert "12 min" in about(app.screen)
        assert "locked: it opens after 1.1 Shapes" in about(app.screen)


async def test_a_locked_lesson_can_be_read_and_nothing_is_recorded(setting, until):
    app = setting.app()
    before = setting.paths.progress.read_bytes()
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        assert "1 lesson that it builds on does not count yet" in words(app.screen)
        edge = app.screen.query_one(".buttons").region.right
        assert all(button.region.right <= edge for button in app.screen.query(Button))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        screen = app.screen
        await until(pilot, lambda: screen.query("#page"))
        assert screen.lesson.id == "autograd/accumulation"
        assert screen.top.place[-1] == "reading, nothing is recorded"
        for _ in screen.lesson.steps[1:]:
            await pilot.press("f8", "f8")
            await pilot.pause()
        assert screen.session.index > 1
        await pilot.press("f10")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await pilot.pause()
        assert setting.paths.progress.read_bytes() == before
        assert app.screen.courses.rows[0].lesson.id == "tensors/shapes"


@pytest.mark.parametrize("act", ["f9", "f2"])
async def test_who_reads_is_asked_before_working_on_the_lesson(setting, until, act):
    setting.runner.script = judges({"returns x": True})
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        app.open_lesson(setting.course.lessons[2], 1)
        await until(pilot, lambda: isinstance(app.screen, Locked))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        screen = app.screen
        await until(pilot, lambda: screen.query("#page"))
        await pilot.press(act)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "counts for this lesson alone" in words(app.screen)
        await pilot.press("n")
        await until(pilot, lambda: app.screen is screen)
        assert (screen.session.reading, setting.runner.jobs) == (True, [])
        await pilot.press(act)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: app.screen is screen)
        if act == "f2":
            await until(pilot, lambda: setting.progress.hints_shown("autograd/hooks") == 1)
        else:
            await until(pilot, lambda: setting.progress.passed() == {"autograd/hooks"})
            panel = screen.query_one("#checks-passed")
            await until(pilot, lambda: panel.display)
            assert "It also counts for:\n  1.1 Shapes\n" in str(panel.content)
        assert screen.top.place[-1] != "reading, nothing is recorded"


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_a_locked_lesson_opens_by_a_question_of_each_that_is_skipped(setting, until, size):
    app = setting.app()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "end")
        assert app.screen.courses.row.lesson.id == "autograd/hooks"
        assert app.screen.courses.row.state == "locked"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        assert "it opens after 2.1 Gradients accumulate" in words(app.screen)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, SkipScreen))
        screen = app.screen

        async def give(right):
            await until(pilot, lambda: screen.query(Question))
            question = screen.query_one(Question)
            value = question.quiz.answer if right else "a copy"
            question.post_message(Question.Answered(question, value))
            await until(pilot, lambda: app.focused is not None and app.focused.id == "review")
            await pilot.press("n")
            await until(pilot, lambda: not question.is_attached)

        await until(pilot, lambda: screen.top.place[-1] == "1 of 2: 2.1 Gradients accumulate")
        await give(True)
        await until(pilot, lambda: screen.top.place[-1] == "2 of 2: 1.1 Shapes")
        await give(False)
        end = screen.query("#review Static").first
        await until(pilot, lambda: "2.2 Hooks is open." in str(end().content))
        assert "1 lesson does not count: 1.1 Shapes." in str(end().content)
        assert not screen.query_one("#review").border_title, "that of the last question"
        await until(pilot, lambda: "skip.open" in footer(screen))
        assert "skip.next" not in footer(screen), "nothing comes next"
        assert setting.progress.history().answered == {"autograd/accumulation"}
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        await until(pilot, lambda: app.screen.query("#page"))
        await pilot.pause()
        assert not app.screen.session.reading
        await pilot.press("f10")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        home = app.screen
        await until(pilot, lambda: home.top.word == "0 of 3 lessons done, 1 known")
        await pilot.press("end", "up")
        assert home.courses.row.lesson.id == "autograd/accumulation"
        assert home.courses.row.state == "known"
        assert "◐ known: you skipped it and answered a question of it" in about(home)


async def test_lessons_without_a_question_left_are_named_and_not_counted_as_questions(
    setting, until
):
    shapes, accumulation, _ = setting.course.lessons

    def ask_all_of(lesson):
        while (question := question_of(lesson, setting.progress)) is not None:
            setting.progress.record_asked(lesson.id, question.step, question.number, False)

    ask_all_of(shapes)
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        assert "Every question of 1.1 Shapes has been asked: it counts once passed." in words(
            app.screen
        )
        assert "Answer 1 question " in str(app.screen.query_one("#skip", Button).label)
        await pilot.press("escape")
        ask_all_of(accumulation)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        assert not app.screen.query("#skip"), "there is nothing to be asked"
        await pilot.press("a")
        await pilot.pause()
        assert isinstance(app.screen, Locked)


async def test_without_a_right_answer_the_end_of_skipping_offers_the_way_back_alone(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, SkipScreen))
        screen = app.screen
        for number in (1, 2):
            await until(pilot, lambda n=number: screen.top.place[-1].startswith(f"{n} of 2"))
            await until(pilot, lambda: screen.query(Question))
            await pilot.press("f8")
        end = screen.query("#review Static").first
        await until(pilot, lambda: "2.2 Hooks stays locked." in str(end().content))
        assert "2 lessons do not count: 2.1 Gradients accumulate and 1.1 Shapes." in str(
            end().content
        )
        await until(pilot, lambda: footer(screen)[:1] == ["skip.back"])
        assert not {"skip.next", "skip.open"} & {*footer(screen)}


async def test_chapters_fold(setting):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert titles(app.screen) == ["Shapes"]
        await pilot.press("down", "down", "left")
        await pilot.pause()
        assert titles(app.screen) == []
        assert isinstance(app.screen.courses.row, ChapterRow)
        await pilot.press("space")
        await pilot.pause()
        assert titles(app.screen) == ["Shapes"]


async def test_the_whole_course_fits_the_smallest_terminal(setting):
    app = setting.app()
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert not app.screen.query_one("#too-small").display
        for y in range(3):
            assert app.screen.courses.render_line(y).cell_length == app.screen.courses.size.width


async def test_a_smaller_window_shows_a_sentence_and_comes_back(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(50, 24)
        await until(pilot, lambda: app.screen.query_one("#too-small").display)
        assert not app.screen.courses.parent.parent.display
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert app.screen.query_one("#too-small").display
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not app.screen.query_one("#too-small").display)
        assert app.screen.courses.parent.parent.display


async def test_what_is_begun_again_is_open_and_the_place_to_go_on(setting, until):
    setting.progress.mark_passed("autograd/hooks")
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("p", "enter", "down")
        await until(pilot, lambda: getattr(app.screen, "chosen", None) is not None)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: setting.progress.begun_again() == {"tensors/shapes"})
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        home = app.screen
        await until(pilot, lambda: home.top.word == "1 of 3 lessons done")
        assert home.courses.rows[0].lesson.id == "tensors/shapes"
        opened = [row for row in home.courses.rows if isinstance(row, LessonRow)]
        assert opened[0].state == "open"


async def test_a_chapter_counts_what_is_known_apart(setting):
    setting.progress.mark_passed("autograd/hooks")
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        chapters = [row for row in app.screen.courses.rows if isinstance(row, ChapterRow)]
        assert [(row.done, row.known) for row in chapters] == [(0, 1), (1, 0)]
        await pilot.press("end")
        while not isinstance(app.screen.courses.row, ChapterRow):
            await pilot.press("up")
        assert "1 of 2 lessons done · 12 min to go" in about(app.screen)


async def test_a_device_that_not_every_machine_has_stands_beside_the_lesson(setting):
    shapes, *rest = setting.course.chapters
    lessons = (replace(shapes.lessons[0], device="cuda"),)
    setting.course = replace(setting.course, chapters=(replace(shapes, lessons=lessons), *rest))
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        drawn = [app.screen.courses.render_line(y).text for y in range(6)]
        assert any("Shapes" in line and "GPU" in line and "10 min" in line for line in drawn)


async def test_the_review_has_a_row_that_a_click_opens(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.courses.rows[1] == ReviewRow(0, 0))
        assert "nothing is due" in app.screen.courses.render_line(1).text
        # The blank line below is no row.
        await pilot.click(app.screen.courses, offset=(5, 2))
        assert isinstance(app.screen.courses.row, ContinueRow)
        await pilot.click(app.screen.courses, offset=(5, 1))
        assert "at growing intervals" in about(app.screen)
        await pilot.click(app.screen.courses, offset=(5, 1))
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
