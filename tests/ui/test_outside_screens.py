"""Hostile text in what `test_outside` does not open: smaller screens, popups, drills, a class."""

import importlib
import os
import pkgutil
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from textual.screen import Screen

from tensortutor.learner.class_report import LONGEST_NAME, Report, Sent, encode
from tensortutor.learner.own_files import own_program
from tensortutor.learner.settings import LearnerSettings
from tensortutor.protocol import lens
from tensortutor.protocol.assist import Completions, Documentation
from tensortutor.protocol.drawings import LONGEST_WORDS, Block, CellGrid
from tensortutor.protocol.events import Judged, Output, Raised, Verdict, Warned
from tensortutor.ui import screens
from tensortutor.ui.class_app import ClassApp
from tensortutor.ui.lesson.card import card
from tensortutor.ui.screens.dialogs import Locked, Page
from tensortutor.ui.screens.skip import SkipScreen
from tensortutor.ui.widgets.drill import DrillView
from tensortutor.ui.widgets.lens import GraphPane
from tensortutor.ui.widgets.popup import Popup
from tests.ui.fakes import FAILURE, plays
from tests.ui.test_completion import opened
from tests.ui.test_drawings import plot
from tests.ui.test_drill import drilled, open_review
from tests.ui.test_lens import EVERYTHING, OUTER, TENSORS, TRACE
from tests.ui.test_lesson import PRACTICE, RUN, arrive, ended
from tests.ui.test_outside import EVIL, LONG, clean, evil, hostile
from tests.ui.test_own_program import app_of
from tests.ui.test_own_program import arrive as arrive_own

__all__ = ["drilled", "hostile"]
MARK = "[/] a[/b] [@click=app.quit]c"
SEEN = "[@click"
OPENED = {
    "TutorScreen", "Dialog", "Page",  # what others are made of
    "HomeScreen", "ProgressScreen", "ReferenceScreen", "SearchScreen", "HelpPage", "LessonScreen",
    "Confirm", "ReviewScreen", "SolutionPage", "TensorScreen", "TeachScreen", "OwnProgramScreen",
    "ClassScreen", "Locked", "SkipScreen",
}  # fmt: skip
"""The screens that a test here or in `test_outside` fills with hostile text."""


def test_no_screen_is_left_out():
    for module in pkgutil.iter_modules(screens.__path__):
        importlib.import_module(f"{screens.__name__}.{module.name}")
    todo, found = [Screen], set()
    while todo:
        below = todo.pop().__subclasses__()
        todo += below
        found |= {one.__name__ for one in below if one.__module__.startswith(screens.__name__)}
    assert found == OPENED


async def test_a_locked_lesson_and_the_questions_that_open_it(hostile, until):
    app = hostile.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        await until(pilot, lambda: SEEN in clean(app.screen))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, SkipScreen))
        await until(pilot, lambda: MARK in clean(app.screen))
        for _ in range(3):
            await pilot.press("escape", "n")
            await pilot.pause()
            if isinstance(app.screen, SkipScreen):
                clean(app.screen)
    assert not app.return_code


async def test_names_that_are_offered_and_what_is_said_of_them(setting, until):
    def answers(question):
        if question.kind == "explain":
            words = (question.number, f"a{EVIL}", f"function{EVIL}", (f"f({EVIL})",), LONG)
            return Documentation(*words)
        line = question.source.split("\n")[question.line - 1]
        return Completions(question.number, line.rindex(".") + 1, (f"sort{EVIL}", "size" + LONG))

    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(setting, pilot, until, "import torch\ntorch")
        await pilot.press(".")
        await until(pilot, lambda: app.screen.query(Popup))
        await until(pilot, lambda: MARK in clean(app.screen))
        await pilot.press("down", "down")
        clean(app.screen)
        await pilot.press("escape", "f11")
        await until(pilot, lambda: isinstance(app.screen, Page) or app.screen.query(Popup))
        await pilot.pause()
        clean(app.screen)
    assert not app.return_code


async def test_the_strip_the_expression_and_the_walk_of_a_run(setting, until):
    sample = lens.Sample((0,), range(2), (f"1.0{EVIL[:9]}", "nan"))
    info = evil(replace(TENSORS.tensors[0], sample=sample))
    trace = evil(replace(TRACE, lines=(replace(TRACE.lines[0], line=1),)))
    name = trace.lines[0].made[0].name
    setting.runner.script = plays(
        trace, replace(evil(TENSORS), tensors=(replace(info, name=name),)),
        lens.Broadcasts((evil(OUTER),)), *map(evil, EVERYTHING[3:]),
    )  # fmt: skip
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "The program is done." in ended(screen))
        screen.panes.turn_to("editor")
        screen.editor.move_cursor((0, 6))
        await pilot.pause()
        clean(screen)
        await pilot.press("escape", "b")
        await pilot.pause()
        clean(app.screen)
        while app.screen is not screen:
            await pilot.press("escape")
        screen.results.show(GraphPane)
        screen.query_one("#graph").focus()
        for _ in range(3):
            await pilot.press("full_stop")
            assert SEEN in clean(screen)
    assert not app.return_code


async def test_a_drill(drilled, until):
    def script(run):
        block = Block("", (0,), (0, 1), ("1", f"2{EVIL[:9]}"), (1.0, None))
        grid = CellGrid(EVIL[:LONGEST_WORDS], (block,), about=EVIL, caption=EVIL)
        failed = replace(FAILURE, message=LONG, got=LONG, check="x")
        yield from plays(
            grid, Output("stdout", LONG), failed, Judged((), ("x",)), Verdict("x", False, 1, 1.0)
        )(run)

    drilled.runner.script = script
    async with drilled.app().run_test(size=(120, 40)) as pilot:
        screen = await open_review(pilot, until)
        view = screen.query_one(DrillView)
        view.drill = replace(view.drill, answer=f"x {EVIL}", wrong=())
        await pilot.pause()
        clean(screen)
        view.field.value = "x[0]"
        await pilot.press("enter")
        await until(pilot, lambda: view.verdict and "running" not in view.verdict, tries=2000)
        assert MARK in view.verdict
        clean(screen)
        view.show_answer()
        await until(pilot, lambda: "is right" in view.verdict)
        clean(screen)
    assert not pilot.app.return_code


async def test_a_run_of_a_program_of_ones_own(setting, until, tmp_path):
    (tmp_path / "own").mkdir()
    program = tmp_path / "own" / "train.py"
    program.write_text(f"print(1)  # {EVIL}\n", "utf-8", "replace")
    setting.runner.script = plays(
        Output("stdout", EVIL + "\n"), Warned("W" + EVIL, LONG, 1),
        Raised("E" + EVIL, LONG, (), LONG), *map(evil, EVERYTHING),
    )  # fmt: skip
    app = app_of(setting, own_program(program, (EVIL,), (), ()))
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await arrive_own(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: setting.runner.jobs and not screen.results.is_running)
        for pane in screen.results.panes:
            screen.results.action_show(pane.id)
            await pilot.pause()
            assert SEEN in clean(screen), pane.id
    assert not app.return_code


async def test_a_class(hostile, until, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    shortened = (EVIL * 9)[:LONGEST_NAME]
    sent = Sent(shortened, 2, 5.0, True, EVIL + "y" * 9000)
    report = Report(shortened, 4, 5, 2, 1.79e9, 1, 2, (shortened,), 3, sent=(sent,))
    (folder / f"{os.geteuid()}.json").write_bytes(encode(report))
    (folder / EVIL.encode("utf-8", "replace").decode().replace("/", "_")).write_text("{}")
    app = ClassApp(folder, hostile.course, LearnerSettings())
    async with app.run_test(size=(140, 40)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.query("#class-rows") and screen.rows.option_count == 1)
        await until(pilot, lambda: SEEN in clean(screen))
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, Page))
        await until(pilot, lambda: MARK in clean(app.screen))
        await pilot.press("escape", "f")
        await pilot.pause()
        clean(screen)
    assert not app.return_code


@pytest.mark.parametrize("sign", ["\ufffe", "\uffff", "\x00", "\x0b", "\ud800", "\U0001fffe"])
def test_a_card_is_a_picture_whatever_stands_in_it(sign):
    words = f"{sign}{EVIL}]]><!--"
    svg = card(words, f"x = '{words}'\n", [plot(1.0, 2.0)], [("failed", words)])
    ElementTree.fromstring(svg.encode("utf-8"))
    assert "\x1b" not in svg
