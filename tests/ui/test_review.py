"""The review: questions that are due, and exercises begun anew."""

import sqlite3
from contextlib import closing

from tensortutor.learner.review import cards
from tensortutor.learner.settings import LearnerSettings
from tensortutor.ui.course_rows import ReviewRow
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.screens.review import ReviewScreen
from tensortutor.ui.widgets.questions import Question


def long_ago(setting, table, **values):
    """Write a row that is years old."""
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    with closing(sqlite3.connect(setting.paths.progress)) as record:
        record.execute(
            f"INSERT INTO {table} (at, {names}) VALUES ('2020-01-01T00:00:00+00:00', {marks})",
            tuple(values.values()),
        )
        record.commit()


def asked(lesson):
    return next(i for i, step in enumerate(lesson.steps) if step.quizzes)


async def test_home_says_what_is_due_and_the_review_asks_it(setting, until):
    lesson = setting.accumulation
    step = asked(lesson)
    long_ago(setting, "answer", lesson=lesson.id, step=step, quiz=0, answer="x", correct=0)
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await until(pilot, lambda: app.screen.courses.rows[1] == ReviewRow(1, 0))
        assert "Review    1 question is due" in app.screen.courses.render_line(1).text
        await pilot.press("v")
        await until(pilot, lambda: app.screen.query(".verdict"))
        question = app.screen.query_one(Question)
        question.post_message(Question.Answered(question, question.quiz.answer))
        await until(pilot, lambda: "Right" in question.verdict)
        await until(pilot, lambda: app.focused is not None and app.focused.id == "review")
        assert setting.progress.answers(lesson.id)[step, 0][1] is True
        await pilot.press("n")
        await until(pilot, lambda: app.screen.card is None)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_an_exercise_begins_anew_and_the_solution_is_kept(setting, until):
    lesson = setting.accumulation
    task = lesson.steps.index(lesson.task)
    setting.workspace.save(lesson, task, "mine = 1\n")
    for id in (*lesson.requires, lesson.id):
        setting.progress.mark_passed(id)
    long_ago(setting, "attempt", lesson=lesson.id, passed=1, checks_passed=1, checks_total=1)
    app = setting.app()
    async with app.run_test(size=(160, 50)) as pilot:
        await until(pilot, lambda: app.screen.courses.rows[1] == ReviewRow(0, 1))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and app.screen.card)
        await until(pilot, lambda: app.focused is not None)
        await pilot.press("o")
        await until(pilot, lambda: not isinstance(app.screen, ReviewScreen))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        await until(pilot, lambda: app.screen.editor.text == lesson.task.pane.source)
    (kept,) = setting.paths.backups.rglob("*.py")
    assert kept.read_text() == "mine = 1\n"


async def test_ten_new_cards_a_day_or_as_many_as_the_settings_say(setting, until):
    lesson = setting.shapes
    for quiz in range(len(lesson.steps[0].quizzes)):
        long_ago(setting, "answer", lesson=lesson.id, step=0, quiz=quiz, answer="x", correct=0)
    app = setting.app()
    app.settings = LearnerSettings(new_per_day=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.courses.rows[1].questions == 1)
        line = app.screen.courses.render_line(1).text
        assert "1 question is due: 1 of 4 new cards today" in line
        await pilot.press("v")
        await until(pilot, lambda: app.screen.query(Question))
        await pilot.press("f8")
        page = app.screen.query("#review Static").first
        await until(pilot, lambda: "1 of 4 new cards today; the others" in str(page().content))


async def test_an_empty_review_says_when_the_next_card_is_due(setting, until):
    lesson = setting.accumulation
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        setting.progress.record_answer(lesson.id, asked(lesson), 0, "7", True)
        (card,) = cards(setting.course, setting.progress)
        local = card.due.astimezone()
        await pilot.press("v")
        await until(
            pilot,
            lambda: (
                f"The next card is due on {local:%A, %B} {local.day}, at {local:%H:%M}."
                in str(app.screen.query("#review Static").first().render())
            ),
        )
        assert "Next" not in app.screen.keys.render_line(0).text


async def test_nothing_due_is_said(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await until(
            pilot,
            lambda: "Nothing is due" in str(app.screen.query("#review Static").first().render()),
        )
