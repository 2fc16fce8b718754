"""Questions of each kind, and the guesses that a run reveals."""

import pytest

from tensortutor.learner.guesses import EDITED, OWN
from tensortutor.protocol.events import Finished, Output, Probed
from tests.ui.courses import PREDICT
from tests.ui.fakes import plays, says, waits
from tests.ui.test_lesson import PREDICTION, SIZES, arrive, ended, output, told


def explained(question) -> str:
    return " ".join(part.source for part in question.query(".explain"))


@pytest.mark.parametrize("size", SIZES)
async def test_guesses_come_first_and_the_run_reveals_them(setting, until, size):
    setting.runner.script = says("7.0\n")
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        first, second = screen.reader.questions
        assert first.border_title == "Predict, then run: 1 of 2"
        assert app.focused is first.field
        await pilot.press("f5")
        await pilot.pause()
        assert setting.runner.jobs == []
        assert any("Guess first" in text for text in told(app))
        assert app.focused is first.field
        await pilot.press("4", "enter")
        await until(pilot, lambda: first.verdict == "Your guess: 4. 1 more to guess.")
        assert explained(first) == ""
        assert app.focused is second.field
        await pilot.press("f5")
        await pilot.pause()
        assert setting.runner.jobs == []
        assert app.focused is second.field
        await pilot.press("down", "enter")
        await until(pilot, lambda: second.verdict.startswith("Your guess: False. F5 runs"))
        assert first.verdict == "Your guess: 4.", "nothing is left to guess"
        await pilot.press("f5")
        await until(pilot, lambda: len(output(screen)) == 5)
        assert output(screen) == [
            "7.0", "", "✗ Guess 1 was 4; it is 7.", "✓ Guess 2 was right.", "The text says why.",
        ]  # fmt: skip
        await until(pilot, lambda: second.verdict == "✓ Right.")
        assert first.verdict == "✗ Wrong. The answer is 7"
        assert "the share of `x * x` alone" in explained(first)
        assert "uses x twice" in explained(first)
        assert setting.runner.jobs[0].source == PREDICT
        assert setting.progress.answers("autograd/accumulation") == {
            (PREDICTION, 0): ("4", False),
            (PREDICTION, 1): ("False", True),
        }
        if size == (80, 24):
            assert screen.results.region.height > 3
            assert first.region.area

        # What is known by now is judged at once, and another run has nothing to reveal.
        first.field.focus()
        await pilot.press("backspace", "7", "enter")
        await until(pilot, lambda: first.verdict == "✓ Right.")
        await pilot.press("f5")
        await until(pilot, lambda: output(screen) == ["7.0"] and "is done" in ended(screen))


@pytest.mark.parametrize(
    ("probed", "first", "second", "notes"),
    [
        # The learner's own code gives another answer: the guess is held against that.
        (
            [Probed(0, 4.0), Probed(1, False)],
            "✓ Right, for your own code. It gives 4\nThe lesson's code gives 7",
            "✓ Right, for your own code. It gives False",
            ["✓ Guess 1 was right.", "✓ Guess 2 was right.", OWN],
        ),
        (
            [Probed(0, 5), Probed(1, True)],
            "✗ Wrong, for your own code. It gives 5\nThe lesson's code gives 7",
            "✗ Wrong, for your own code. It gives True\nThe lesson's code gives False",
            ["✗ Guess 1 was 4; your code gives 5.",
             "✗ Guess 2 was False; your code gives True.", OWN],
        ),
        # What the question is about is no longer there, or is something else.
        (
            [Probed(0, None, "NameError: first"), Probed(1, "no")],
            "✗ Wrong. The answer is 7",
            "✓ Right.",
            ["✗ Guess 1 was 4; it is 7.", "✓ Guess 2 was right.", EDITED],
        ),
    ],
)  # fmt: skip
async def test_a_guess_about_changed_code_is_held_against_what_that_code_gives(
    setting, until, probed, first, second, notes
):
    setting.runner.script = plays(Output("stdout", "4\n"), *probed)
    setting.workspace.save(setting.accumulation, PREDICTION, "first = 4.0\n")
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        one, two = screen.reader.questions
        await pilot.press("4", "enter")
        await until(pilot, lambda: one.verdict.startswith("Your guess: 4."))
        await pilot.press("f5")
        await pilot.press("down", "enter")
        await until(pilot, lambda: two.verdict.startswith("Your guess: False."))
        await pilot.press("f5")
        await until(pilot, lambda: output(screen)[2:] == [*notes, "The text says why."])
        assert (one.verdict, two.verdict) == (first, second)
        step = setting.accumulation.steps[PREDICTION]
        assert setting.runner.jobs[0].probes == tuple(quiz.proof for quiz in step.quizzes)
        # The record is about the lesson's code: the review asks about that.
        assert setting.progress.answers("autograd/accumulation")[PREDICTION, 0] == ("4", False)


async def test_the_lessons_own_code_is_not_asked_for_its_answers(setting, until):
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        await pilot.press("escape", "x")
        await until(pilot, lambda: setting.runner.jobs)
        assert setting.runner.jobs[0].probes == ()


async def test_a_guess_can_be_changed_before_the_run_and_waits_for_it(setting, until):
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        first, second = screen.reader.questions
        await pilot.press("4", "enter")
        await until(pilot, lambda: first.verdict.startswith("Your guess: 4."))
        first.field.focus()
        await pilot.press("backspace", "7", "enter")
        await until(pilot, lambda: first.verdict.startswith("Your guess: 7."))
        second.field.focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: second.verdict.startswith("Your guess: False."))
        await pilot.press("escape", "p")
        await until(pilot, lambda: screen.reader.border_title == "See it run")
        await pilot.press("n")
        await until(pilot, lambda: screen.reader.border_title == "Predict")
        await until(pilot, lambda: screen.reader.questions[0].verdict == "Your guess: 7.")
        assert screen.reader.questions[0].field.value == "7"
        assert screen.reader.has_focus

        # It is left only on purpose.
        await pilot.press("n")
        await until(pilot, lambda: any("Your guess waits: F5 runs" in text for text in told(app)))
        assert screen.reader.border_title == "Predict"
        await pilot.press("n")
        await until(pilot, lambda: screen.reader.border_title == "Practice")


async def test_the_next_visit_shows_what_a_guess_was_worth(setting, until):
    setting.progress.record_answer("autograd/accumulation", PREDICTION, 0, "4", False)
    setting.progress.record_answer("autograd/accumulation", PREDICTION, 1, "False", True)
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        first, _ = screen.reader.questions
        await until(pilot, lambda: first.verdict == "✗ Wrong. The answer is 7")


async def test_x_runs_without_a_guess_and_is_not_hit_while_typing(setting, until):
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        first, _ = screen.reader.questions
        assert "Outside the field, x runs the code without a guess." in first.verdict
        first.field.focus()
        await pilot.press("x", "f5")
        await pilot.pause()
        assert first.field.value == "x"
        assert setting.runner.jobs == []
        await pilot.press("escape", "x")
        await until(pilot, lambda: output(screen) == ["hello"])
        assert setting.progress.answers("autograd/accumulation") == {}
        # Nobody is asked twice, and an answer is judged now that the output is known.
        await pilot.press("f5")
        await until(pilot, lambda: len(setting.runner.jobs) == 2)
        first.field.focus()
        await pilot.press("backspace", "7", "enter")
        await until(pilot, lambda: first.verdict == "✓ Right.")


async def test_there_is_no_guess_to_skip_elsewhere(setting, until):
    app = setting.app(setting.accumulation, PREDICTION + 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        await pilot.press("escape", "x")
        await until(pilot, lambda: told(app) == ["No guess is asked for here."])
        assert setting.runner.jobs == []


async def test_a_run_that_was_stopped_reveals_nothing_and_edited_code_is_said(setting, until):
    setting.runner.script = waits()
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        first, second = screen.reader.questions
        await pilot.press("4", "enter")
        second.field.focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: second.verdict.startswith("Your guess: False."))
        await pilot.press("f5")
        await until(pilot, lambda: screen.results.is_running)
        await pilot.press("f4")
        await until(pilot, lambda: "stopped" in ended(screen))
        assert first.verdict.startswith("Your guess: 4.")
        assert output(screen) == []

        screen.editor.insert("# mine\n", (0, 0))
        setting.runner.script = plays(Finished("failed", 1, "The program failed.", 1.0))
        await pilot.press("f5")
        await until(pilot, lambda: first.verdict.startswith("✗ Wrong."))
        assert "about the code as the lesson has it" in " ".join(output(screen))


@pytest.mark.parametrize("size", SIZES)
async def test_every_kind_of_question_can_be_seen_and_answered(setting, until, size):
    """Each field has a line per choice, nothing is cut, and says how to answer."""
    app = setting.app(setting.shapes)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        for question, how in zip(
            screen.reader.questions,
            ("Choose with the arrows", "Type the sizes", "Type the answer", "Space picks a line"),
            strict=True,
        ):
            assert question.verdict.startswith(how)
            question.field.focus()
            await until(pilot, lambda question=question: question.field.has_focus)
            lines = len(question.quiz.choices) or 1
            assert question.field.region.height == lines
            assert question.region.width <= screen.reader.region.width
