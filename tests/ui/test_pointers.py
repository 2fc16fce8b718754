"""Looks and tries of a lesson's text, through the app's keys."""

from dataclasses import replace

import pytest

from tensortutor.course.material import CudaOutput, Look, Pane, Prose, Step, Try
from tensortutor.protocol.events import Output
from tensortutor.ui.widgets.lens import GraphPane
from tensortutor.ui.widgets.markdown import Text
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.pointers import Pointer
from tensortutor.ui.widgets.tensors import TensorsPane
from tests.ui.courses import WALK
from tests.ui.test_lens import GRAPH, TENSORS, TRACE, run
from tests.ui.test_lesson import RUN, arrive, told

SIZES = [(80, 24), (160, 50)]
CLEAR = Try(
    "Clear the gradient.", (("    loss = 2", "    w.grad = None\n    loss = 2"),), 1, output=""
)
CLEARED = WALK.replace("    loss = 2", "    w.grad = None\n    loss = 2")


def with_blocks(setting, *blocks):
    """The accumulation lesson, with these blocks behind the program of its second step."""
    lesson = setting.accumulation
    steps = list(lesson.steps)
    steps[RUN] = replace(steps[RUN], blocks=(*steps[RUN].blocks, *blocks))
    return put(setting, replace(lesson, steps=tuple(steps)))


def put(setting, lesson):
    """The lesson in the place of the one of its id."""
    tensors, autograd = setting.course.chapters
    lessons = tuple(lesson if one.id == lesson.id else one for one in autograd.lessons)
    chapters = tensors, replace(autograd, lessons=lessons)
    setting.course = replace(setting.course, chapters=chapters)
    return lesson


def look(tab, row, expect=""):
    return Look(tab, row, expect, "There it is.", 1)


@pytest.mark.parametrize("size", SIZES)
async def test_a_look_opens_the_tab_at_its_row(setting, until, size):
    lesson = with_blocks(setting, look("tensors", "loss"), look("graph", "w", "accumulated"))
    async with setting.app(lesson, RUN).run_test(size=size) as pilot:
        screen = await run(pilot, until, setting, TENSORS, GRAPH)
        await pilot.press("escape", "t")
        await until(pilot, lambda: isinstance(screen.results.front, TensorsPane))
        grid = screen.query_one(TensorsPane).grid
        assert str(grid.get_row_at(grid.cursor_row)[0]) == "loss"
        assert pilot.app.focused is grid
        await pilot.press("t")  # the next one, from wherever the focus is
        await until(pilot, lambda: isinstance(screen.results.front, GraphPane))
        tree = screen.query_one("#pane-graph Tree")
        await until(pilot, lambda: tree.cursor_node is not None)
        assert "w: f32[3]" in str(tree.cursor_node.label)


async def test_a_look_at_printed_text_and_at_the_notes(setting, until):
    lesson = with_blocks(setting, look("output", "2 tensor"), look("notes", "w = torch"))
    async with setting.app(lesson, RUN).run_test(size=(160, 50)) as pilot:
        printed = Output("stdout", "0 tensor(2.)\n1 tensor(4.)\n2 tensor(6.)\n")
        screen = await run(pilot, until, setting, printed, TRACE)
        await pilot.press("escape", "t")
        assert isinstance(screen.results.front, OutputPane)
        await pilot.press("t")
        assert pilot.app.focused is screen.editor
        assert screen.editor.cursor_location == (2, 0)


async def test_a_look_that_found_nothing_comes_again_once(setting, until):
    lesson = with_blocks(setting, look("tensors", "loss"), CLEAR)
    async with setting.app(lesson, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        before = screen.editor.text
        await pilot.press("t")  # nothing has run
        assert told(pilot.app)[-1].startswith("loss is not there.")
        screen = await run(pilot, until, setting, TENSORS)
        await pilot.press("escape", "t")
        grid = screen.query_one(TensorsPane).grid
        await until(pilot, lambda: pilot.app.focused is grid)
        assert str(grid.get_row_at(grid.cursor_row)[0]) == "loss"
        assert screen.editor.text == before
        await pilot.press("t")
        assert screen.editor.text == CLEARED


async def test_a_look_that_finds_nothing_twice_does_not_keep_the_others_waiting(setting, until):
    lesson = with_blocks(setting, look("tensors", "gone"), CLEAR)
    async with setting.app(lesson, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        before = screen.editor.text
        await pilot.press("t", "t")
        assert screen.editor.text == before
        await pilot.press("t")
        assert screen.editor.text == CLEARED


async def test_before_a_run_a_look_says_what_to_do(setting, until):
    lesson = with_blocks(setting, look("tensors", "loss"))
    async with setting.app(lesson, RUN).run_test(size=(160, 50)) as pilot:
        await arrive(pilot, until)
        await pilot.press("t")
        assert told(pilot.app)[-1] == "loss is not there. Run the step's code first: F5."


@pytest.mark.parametrize("size", SIZES)
async def test_a_try_edits_the_program_and_takes_the_edit_back(setting, until, size):
    lesson = with_blocks(setting, CLEAR)
    async with setting.app(lesson, RUN).run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("t")
        assert screen.editor.text == CLEARED
        assert "The edit is made. F5 runs the code" in told(pilot.app)[-1]
        assert screen.query_one(Pointer).has_class("-made")
        await pilot.press("t")
        assert screen.editor.text == WALK
        await pilot.press("t")
        screen.editor.undo()
        assert screen.editor.text == WALK
        await pilot.press("t")  # made, but undone by hand: nothing is overwritten
        assert screen.editor.text == WALK
        assert setting.workspace.load(lesson, RUN) in (WALK, CLEARED)


async def test_a_try_that_does_not_fit_the_learners_code_changes_nothing(setting, until):
    lesson = with_blocks(setting, CLEAR)
    async with setting.app(lesson, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        mine = WALK.replace("    loss = 2", "    cost = 2")
        screen.editor.renew(mine)
        screen.query_one(Pointer).focus()
        await pilot.press("enter")
        await until(pilot, lambda: told(pilot.app))
        assert "does not fit the code any more: 'loss = 2'" in told(pilot.app)[-1]
        assert screen.editor.text == mine


@pytest.mark.parametrize(
    ("say", "shown"),
    [("torch.sum adds.", "torch.sum adds."), ("without it, nothing.", "Without it, nothing.")],
)
async def test_a_name_keeps_its_small_letters(setting, until, say, shown):
    lesson = with_blocks(setting, replace(CLEAR, say=say))
    async with setting.app(lesson, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        assert screen.query_one(Pointer).query_one(Text).source.startswith(shown)


async def test_a_derivation_may_be_skipped(setting, until):
    lesson = setting.accumulation
    pane = Pane("derive", WALK, 1, "")
    derive = Step("Derivation: sums", (Prose("One by one.", 1), pane, *lesson.steps[2].quizzes), 1)
    steps = (lesson.steps[0], derive, *lesson.steps[2:])
    lesson = put(setting, replace(lesson, steps=steps))
    async with setting.app(lesson, 1).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        assert "may be skipped" in str(screen.reader.border_title)
        await pilot.press("f8")
        await until(pilot, lambda: screen.session.index == 2)
        assert 1 in screen.session.steps_done  # its question has no answer, and no gap is left


@pytest.mark.parametrize("size", SIZES)
async def test_a_program_for_a_gpu_says_what_a_gpu_prints(setting, until, size):
    lesson = setting.accumulation
    output = CudaOutput("3.2 TB/s\n", "A Card", "2.13.0+cu130", "2026-11-24")
    pane = Pane("run", WALK, 1, needs="cuda", recorded=output)
    steps = list(lesson.steps)
    steps[RUN] = replace(steps[RUN], blocks=(pane,))
    lesson = put(setting, replace(lesson, steps=tuple(steps)))
    async with setting.app(lesson, RUN).run_test(size=size) as pilot:
        await arrive(pilot, until)
        lines = pilot.app.screen._compositor.render_strips()
        shown = " ".join("".join(s.text for s in strip) for strip in lines)
        for words in ("needs a CUDA GPU", "A Card", "3.2 TB/s"):
            assert words in shown
