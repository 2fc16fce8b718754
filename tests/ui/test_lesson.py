from dataclasses import replace

import pytest

from tensortutor import __version__
from tensortutor.protocol.events import Finished, Frame, Notice, Output, Raised
from tensortutor.ui.screens.dialogs import Confirm, Page
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.widgets.checks import ChecksPane
from tests.ui.courses import CHECKS, STARTER, WALK
from tests.ui.fakes import DONE, judges, plays, says, waits

SIZES = [(80, 24), (160, 50)]
INSIGHT, RUN, PREDICTION, PRACTICE, LAST = 0, 1, 2, 3, 5


async def arrive(pilot, until) -> LessonScreen:
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, LessonScreen))
    await until(pilot, lambda: app.screen.query("#page"))
    await pilot.pause()
    return app.screen


def output(screen: LessonScreen) -> list[str]:
    return [text for _, text in screen.query_one("#transcript").lines]


def ended(screen: LessonScreen) -> str:
    return str(screen.query_one("#ended").content)


def told(app) -> list[str]:
    return [notice.message for notice in app._notifications]


def check_lines(screen: LessonScreen) -> list[tuple[str, str]]:
    return [(line.check, line.state) for line in screen.query(".check")]


@pytest.mark.parametrize("size", SIZES)
async def test_edit_and_run(setting, until, size):
    setting.runner.script = says("0 tensor(2.)\n")
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f3")
        assert app.focused is screen.editor
        await pilot.press("end", *" # mine")
        await pilot.press("f5")
        await until(pilot, lambda: "The program is done." in ended(screen))
        assert output(screen) == ["0 tensor(2.)"]
        assert ended(screen).startswith("✓")
        (job,) = setting.runner.jobs
        assert job.source == WALK.replace("import torch", "import torch # mine")
        assert job.filename == "accumulation_2.py"
        assert setting.workspace.load(setting.accumulation, RUN) == job.source
        assert screen.results.display
        assert screen.editor.has_focus
        assert screen.results.region.height > 6


async def test_a_wide_screen_shows_all_three_and_a_narrow_one_turns(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        parts = (screen.reader, screen.editor, screen.results)
        assert all(part.region.area for part in parts)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not screen.editor.region.area)
        assert screen.reader.region.size == (80, 22)
        for part in (screen.editor, screen.results, screen.editor):
            await pilot.press("f3")
            await until(pilot, lambda part=part: part.has_focus_within or part.has_focus)
            await until(pilot, lambda: screen.editor.region.height + screen.results.region.height
                        + screen.reader.region.height == 22)  # fmt: skip
            assert all(part.region.width == 80 for part in (screen.editor, screen.results))
            assert screen.editor.region.bottom == screen.results.region.y
        await pilot.press("escape")
        await until(pilot, lambda: not screen.editor.region.area)
        assert screen.reader.has_focus
        await pilot.resize_terminal(160, 50)
        await until(pilot, lambda: all(part.region.area for part in parts))


async def test_resizing_keeps_the_code_and_the_place(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("x", "y")
        await pilot.resize_terminal(50, 10)
        await until(pilot, lambda: screen.query_one("#too-small").display)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not screen.query_one("#too-small").display)
        assert screen.editor.text == "xy" + STARTER
        await until(pilot, lambda: screen.editor.region.area)


async def test_a_program_is_stopped(setting, until):
    setting.runner.script = waits(Output("stdout", "begun\n"))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: output(screen) == ["begun"])
        assert screen.keys.names["lesson.stop"] == "Stop"
        await pilot.press("r")
        assert any("still runs" in text for text in told(app))
        assert len(setting.runner.jobs) == 1
        await pilot.press("f4")
        await until(pilot, lambda: ended(screen).startswith("■ You stopped the program."))
        assert screen.keys.names["lesson.stop"] == ""


async def test_leaving_the_screen_stops_the_program(setting, until):
    setting.runner.script = waits(Output("stdout", "begun\n"))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: output(screen) == ["begun"])
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await until(pilot, lambda: setting.runner.runs[0].stopped.is_set())


@pytest.mark.parametrize("size", SIZES)
async def test_a_failed_check_unfolds_and_a_passed_one_opens_the_next_lesson(setting, until, size):
    setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f9")
        await until(pilot, lambda: "1 checks did not pass" in ended(screen))
        assert ended(screen).startswith("✗")
        assert check_lines(screen) == [(CHECKS[0], "passed"), (CHECKS[1], "failed")]
        assert screen.query_one(ChecksPane).label == "Checks 1/2"
        passed, failed = screen.query(".check")
        assert passed.region.height == 1
        drawn = "\n".join(failed.render_line(y).text for y in range(failed.region.height))
        for word in ("called", "got", "expected", "where", "cause", "hint", "seed", "811", "0.097"):
            assert word in drawn
        assert setting.progress.attempts("autograd/accumulation") == 1
        assert "autograd/accumulation" not in setting.progress.passed()
        assert setting.runner.jobs[0].judge is not None

        setting.runner.script = judges(dict.fromkeys(CHECKS, True))
        await pilot.press("f9")
        await until(pilot, lambda: "All checks passed" in ended(screen))
        assert "autograd/accumulation" in setting.progress.passed()
        panel = screen.query_one("#checks-passed")
        assert panel.display
        assert "2.2 Hooks" in str(panel.content)
        assert "F8 goes on; outside the editor, s shows a solution beside" in str(panel.content)
        await pilot.press("escape", "s")
        await until(pilot, lambda: isinstance(app.screen, Page))
        await pilot.press("escape")
        for _ in range(3):
            await pilot.press("f8")
            await pilot.pause()
        await until(pilot, lambda: getattr(app.screen, "lesson", None) == setting.course.lessons[2])


async def test_equal_failures_are_unfolded_once(setting, until):
    setting.runner.script = judges(dict.fromkeys(CHECKS, False))
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f9")
        await until(pilot, lambda: "2 checks did not pass" in ended(screen))
        await pilot.pause()
        first, second = screen.query(".check")
        drawn = [
            "\n".join(line.render_line(y).text for y in range(line.region.height))
            for line in (first, second)
        ]
        assert "2 checks: 0.weight.grad differs" in drawn[0]
        assert "As above." in drawn[1]
        assert second.region.height == 2
        setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
        await pilot.press("f9")
        await until(pilot, lambda: "1 checks did not pass" in ended(screen))
        await until(pilot, lambda: second.region.height > 2)


async def test_the_next_lesson_waits_for_the_checks(setting, until):
    app = setting.app(setting.accumulation, LAST)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("n")
        await pilot.pause()
        assert app.screen is screen
        assert any("the checks of step 4, Practice" in text for text in told(app))


async def test_going_on_names_the_locked_lessons_that_it_leaves_out(setting, until):
    first, second = setting.course.chapters
    accumulation = replace(second.lessons[0], requires=("autograd/hooks",))
    hooks = replace(second.lessons[1], requires=("tensors/shapes",))
    chapters = (first, replace(second, lessons=(accumulation, hooks)))
    setting.course = replace(setting.course, chapters=chapters)
    setting.progress.mark_passed("tensors/shapes")
    app = setting.app(setting.shapes, 1)
    async with app.run_test(size=(120, 36)) as pilot:
        await arrive(pilot, until)
        await pilot.press("f8")
        await until(pilot, lambda: getattr(app.screen, "lesson", None) == hooks)
        await until(pilot, lambda: any("is left out: it opens after" in t for t in told(app)))


async def test_the_solution_waits_for_the_checks(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape", "s")
        await pilot.pause()
        assert app.screen is screen
        assert any("once the checks have passed" in text for text in told(app))


async def test_checks_belong_to_the_judged_step(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        await pilot.press("c")
        assert any("judge step 4, Practice" in text for text in told(app))
        assert setting.runner.jobs == []


async def test_what_is_no_answer_gets_a_sentence_and_is_not_kept(setting, until):
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        question = screen.reader.questions[0]
        await pilot.press(*"seven", "enter")
        await until(pilot, lambda: question.verdict.startswith("Type a number"))
        assert setting.progress.answers("autograd/accumulation") == {}


async def test_choice_shape_text_and_order(setting, until):
    app = setting.app(setting.shapes)
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await arrive(pilot, until)
        choice, shape, text, order = screen.reader.questions
        choice.field.focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: choice.verdict == "✓ Right.")
        shape.field.focus()
        await pilot.press(*"(2,3)", "enter")
        await until(pilot, lambda: shape.verdict == "✗ Wrong. The answer is (3, 2)")
        text.field.focus()
        await pilot.press(*"torch.float32", "enter")
        await until(pilot, lambda: text.verdict == "✓ Right.")
        order.field.focus()
        await pilot.pause()
        # step, forward, backward: the first line is carried to the end.
        await pilot.press("home", "space", "down", "down", "space", "enter")
        await until(pilot, lambda: order.verdict == "✓ Right.")
        assert order.field.lines == ["forward", "backward", "step"]
        order.field.focus()
        await pilot.press("home", "shift+down", "enter")
        await until(pilot, lambda: order.verdict.startswith("✗ Wrong."))
        answered = setting.progress.answers("tensors/shapes")
        assert {quiz: right for (_, quiz), (_, right) in answered.items()} == {
            0: True, 1: False, 2: True, 3: False,
        }  # fmt: skip


async def test_a_hint_and_a_step_back_leave_the_editor_as_they_find_it(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await arrive(pilot, until)
        screen.panes.turn_to("editor")
        before = screen.editor.text
        await pilot.press("f2")
        await until(pilot, lambda: len(screen.query(".hint")) == 1)
        assert screen.editor.has_focus
        await pilot.press("f7")  # the same as elsewhere, and nothing is selected
        await until(pilot, lambda: screen.session.index == PRACTICE - 1)
        await pilot.press("f8")
        await until(pilot, lambda: screen.session.index == PRACTICE)
        assert screen.editor.text == before


async def test_hints_come_one_by_one_and_stay(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        assert screen.keys.names["lesson.hint"] == "Hint 0/2"
        await pilot.press("f2")
        await until(pilot, lambda: len(screen.query(".hint")) == 1)
        assert screen.query(".hint").first().border_title == "Hint 1 of 2"
        await pilot.press("f2", "f2")
        await until(pilot, lambda: len(screen.query(".hint")) == 2)
        assert setting.progress.hints_shown("autograd/accumulation") == 2
        assert any("all the hints" in text for text in told(app))
        await pilot.press("f7", "f8")
        await until(pilot, lambda: screen.reader.border_title == "Practice")
        await until(pilot, lambda: len(screen.query(".hint")) == 2)


async def test_failing_programs_show_with_their_message(setting, until):
    app = setting.app(setting.accumulation, 4)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        text = screen.query_one("#page Text").source
        assert "```python\nloss.backward()\nloss.backward()\n```" in text
        assert "RuntimeError: Trying to backward" in text
        assert not screen.editor.region.area


async def test_a_failing_line_is_marked_until_the_code_changes(setting, until):
    report = "Traceback (most recent call last):\nValueError: bad"
    frames = (Frame("<module>", 3, "w = ..."), Frame("f", 5, "loss = ..."))
    setting.runner.script = plays(
        Raised("ValueError", "bad", frames, report),
        Finished("raised", 1, "The program ended with a ValueError in line 5.", 3.0),
    )
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f3", "right")
        place = screen.editor.cursor_location
        await pilot.press("f5")
        await until(pilot, lambda: ended(screen).startswith("✗ The program ended with a ValueErr"))
        assert screen.editor.cursor_location == place, "the cursor stays where it was"
        assert output(screen) == report.splitlines()
        assert screen.editor.marks == {3: "called", 5: "failed"}
        assert "5✗" in screen.editor.render_line(4).text
        await pilot.press("x")
        await until(pilot, lambda: screen.editor.marks == {})


async def test_notices_come_before_the_program(setting, until):
    setting.runner.script = plays(Notice("PyTorch is being loaded."), Output("stdout", "hi\n"))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: output(screen) == ["PyTorch is being loaded.", "hi"])


async def test_a_runner_that_cannot_start_says_why_and_the_app_goes_on(setting, until):
    setting.runner.error = RuntimeError("PyTorch is not installed. Install it with: pip.")
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "PyTorch is not installed" in ended(screen))
        setting.runner.error = None
        await pilot.press("r")
        await until(pilot, lambda: "The program is done." in ended(screen))


async def test_quit_and_come_back(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        await pilot.press(*"# mine", "ctrl+q")
    assert app.return_code == 0
    again = setting.app()
    async with again.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        screen = await arrive(pilot, until)
        assert screen.reader.border_title == "Practice"
        assert screen.editor.text == "# mine" + STARTER


async def test_code_is_saved_while_typing(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        await pilot.press("x")
        path = setting.workspace.path(setting.accumulation, PRACTICE)
        await until(pilot, path.exists)
        assert path.read_text() == "x" + STARTER


async def test_reset_asks_and_keeps_a_copy(setting, until):
    setting.workspace.save(setting.accumulation, PRACTICE, "mine\n")
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        assert screen.editor.text == "mine\n"
        await pilot.press("escape", "R")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape")
        await pilot.pause()
        assert screen.editor.text == "mine\n"
        await pilot.press("escape", "R")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: screen.editor.text == STARTER)
        (kept,) = setting.paths.backups.rglob("accumulation.py")
        assert kept.read_text() == "mine\n"
        assert any(str(kept.parents[2]) in text for text in told(app))


async def test_the_screen_stays_when_the_disk_is_full(setting, until, monkeypatch):
    import errno

    from tensortutor.learner import workspace

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        with monkeypatch.context() as patch:
            patch.setattr(workspace, "_write_whole", full)
            await pilot.press("x")
            await until(pilot, lambda: any("the disk is full" in text for text in told(app)))
            await pilot.press("y")
            assert screen.editor.text == "xy" + STARTER
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
            assert len([text for text in told(app) if "the disk is full" in text]) == 1
        await pilot.press("z")
        await until(pilot, lambda: any("works again" in text for text in told(app)))
        path = setting.workspace.path(setting.accumulation, PRACTICE)
        await until(pilot, lambda: path.read_text() == "xyz" + STARTER)


async def test_a_file_edited_elsewhere_is_neither_lost_nor_missed(setting, until, monkeypatch):
    # The second save must not be seen before a key is pressed here, however slow the machine is.
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.POLL_S", 600)
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        path.write_text("from vim\n")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Page))
        await pilot.press("escape")
        await until(pilot, lambda: screen.editor.text == "from vim\n")
        path.write_text("again from vim\n")
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: path.read_text() == "xfrom vim\n")
        (kept,) = setting.paths.backups.rglob("accumulation.py")
        assert kept.read_text() == "again from vim\n"
        assert any("changed by another program" in text for text in told(app))


async def test_an_unreadable_file_is_shown_but_never_overwritten(setting, until):
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    path.write_bytes(b"\xff\xfe")
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await until(pilot, lambda: any("not UTF-8" in text for text in told(app)))
        await pilot.press("x", "f5")
        await until(pilot, lambda: setting.runner.jobs)
        assert screen.editor.text == STARTER
    assert path.read_bytes() == b"\xff\xfe"


async def test_help_lists_the_keys_as_they_are(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        app.set_keymap({"lesson.run": "f6"})
        await pilot.press("escape", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, Page))
        text = str(app.screen.query_one(".page Static").content)
        assert any(line.split() == ["F6", "Run"] for line in text.splitlines()), text
        assert any(line.split() == ["F9", "^T", "c", "Check"] for line in text.splitlines())
        assert "Comment in or out" in text
        parts = ["On this screen", "Its code", "What a run shows", "Results and sizes", "Leaving"]
        assert [line for line in text.splitlines() if line in parts] == parts
        assert any(line.split()[:8] == [*"1234567", "A"] for line in text.splitlines())
        assert "full · cpu, in the corner of a screen: programs see neither your files" in text
        assert text.endswith(f"tensortutor {__version__}")
        assert "Putting lines into order" not in text
        await pilot.press("escape", "f6")
        await until(pilot, lambda: setting.runner.jobs)


async def test_letters_belong_to_the_editor_while_it_has_the_keys(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press(*"rcnphlqs?")
        assert screen.editor.text == "rcnphlqs?" + STARTER
        assert setting.runner.jobs == []
        await pilot.press("escape")
        assert app.focused is screen.reader
        await pilot.press("r")
        await until(pilot, lambda: setting.runner.jobs)


async def test_the_ctrl_twins_of_the_function_keys_work(setting, until):
    setting.runner.script = plays(DONE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        assert app.focused is screen.editor
        await pilot.press("ctrl+g", "ctrl+g")
        assert app.focused is screen.editor
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(setting.runner.jobs) == 1 and not screen.results.is_running)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: len(setting.runner.jobs) == 2 and not screen.results.is_running)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: len(screen.query(".hint")) == 1)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: screen.reader.border_title == "Debugging")
        await pilot.press("shift+f8")
        await until(pilot, lambda: screen.reader.border_title == "Practice")


async def test_a_link_to_a_lesson_opens_it_and_others_are_copied(setting, until):
    app = setting.app(setting.accumulation)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        app.follow_link(setting.accumulation, "https://pytorch.org/docs")
        assert app.clipboard == "https://pytorch.org/docs"
        app.follow_link(setting.accumulation, "../tensors/shapes.md#views")
        await until(pilot, lambda: getattr(app.screen, "lesson", None) == setting.shapes)


async def test_the_rail_shows_what_is_done(setting, until):
    app = setting.app(setting.accumulation)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("n")
        await until(pilot, lambda: screen.reader.border_title == "See it run")
        assert screen.top.rail == ("done", "here", "ahead", "ahead", "ahead", "ahead")
        drawn = screen.top.render_line(0).text
        assert "● ◉ ○ ○ ○ ○" in drawn
        assert "2 Autograd" in drawn
        assert "1 Gradients accumulate" in drawn
        await until(pilot, lambda: "full · cpu" in screen.top.render_line(0).text)


async def test_a_step_on_the_rail_can_be_clicked(setting, until):
    app = setting.app(setting.accumulation, INSIGHT)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        rail = screen._compositor.render_strips()[0].text
        assert "◉ ○ ○ ○ ○ ○" in rail
        await pilot.click(offset=(rail.index("◉") + 6, 0))
        await until(pilot, lambda: screen.session.index == PRACTICE)
        await until(pilot, lambda: screen.reader.border_title == "Practice")
