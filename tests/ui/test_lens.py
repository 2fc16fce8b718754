"""The lens in the app: tabs, notes behind lines, the expression under the cursor."""

from dataclasses import replace

import pytest

from tensortutor.lens.tensor_filter import matching_rows
from tensortutor.protocol import lens
from tensortutor.protocol.events import Raised
from tensortutor.ui.lesson.line_notes import expression_at
from tensortutor.ui.screens.tensor import TensorScreen
from tensortutor.ui.widgets.code import fitting
from tensortutor.ui.widgets.graph_tree import PARTS
from tensortutor.ui.widgets.lens import GraphPane, ModulesPane, ProfilePane
from tensortutor.ui.widgets.lenspane import LensPane
from tensortutor.ui.widgets.tensors import TensorsPane
from tests.ui.fakes import judges, plays
from tests.ui.test_drawings import drawn, front, tabs
from tests.ui.test_lesson import PRACTICE, RUN, arrive, ended, told

SIZES = [(80, 24), (160, 50)]
X = lens.TensorInfo(
    "x", "f32[2, 3]", "Tensor", "float32", (2, 3), "cpu", stride=(3, 1), itemsize=4, bytes=24,
    storage=1, stats=lens.Stats(6, minimum=0.0, mean=2.5, maximum=5.0),
    sample=lens.Sample((0, 1), (0, 1, 2), ("0.0", "1.0", "2.0", "3.0", "4.0", "5.0")),
)  # fmt: skip
ROW = lens.TensorInfo(
    "row", "f32[2]", "Tensor", "float32", (2,), "cpu", stride=(1,), offset=1, itemsize=4, bytes=8,
    storage=1,
)  # fmt: skip
LOSS = lens.TensorInfo("loss", "f32[]", "Tensor", "float32", (), "cpu", grad_fn="SumBackward0",
                       itemsize=4, bytes=4, requires_grad=True, leaf=False)  # fmt: skip
TENSORS = lens.Tensors(
    (X, ROW, LOSS),
    (lens.Storage(1, "cpu", 24, ("x", "row"), "float32", X.sample.values),),
)  # fmt: skip
MODULES = lens.Modules(
    (lens.ModuleInfo("net", 0, "Linear", "in_features=3, out_features=1", count=4, trainable=4,
                     parameters=(lens.ParameterInfo("weight", "f32[1, 3]", 3, True, 1.0, 0.5),)),)
)  # fmt: skip
OPTIMIZERS = lens.Optimizers(
    (lens.OptimizerInfo("opt", "SGD", (lens.Group((lens.Setting("lr", "0.1"),), ("w",), 1, 3),)),)
)
GRAPH = lens.Graph(
    (lens.GraphRoot("loss", 1, 3, 1, 1, (1, 2, 3)),),
    (lens.GraphNode(1, "SumBackward0", "op", "loss", "f32[]", grad="f32[]", grad_norm=1.0),
     lens.GraphNode(2, "MulBackward0", "op", "", "f32[3]", (lens.Saved("self", "f32[3]", "w"),),
                    "f32[3]", 1.7, ("freed",)),
     lens.GraphNode(3, "Tensor", "leaf", "w", "f32[3]", grad="f32[3]", grad_norm=3.5,
                    marks=("accumulated",))),
    (lens.GraphEdge(1, 2, 0), lens.GraphEdge(2, 3, 0)),
)  # fmt: skip
TRACE = lens.Trace((
    lens.Line(2, 2, 3, (lens.Made("w", "f32[3]", marks=(lens.Mark("copy", "a copy"),)),)),
))  # fmt: skip
OUTER = lens.Broadcast(
    1, 1, 1, 20, "+", lens.Operand("a", "f32[3, 1]", (3, 1), (-1,)),
    lens.Operand("b", "f32[4]", (4,), (-2,)), (3, 4), "f32[3, 4]",
)  # fmt: skip
INNER = lens.Broadcast(
    1, 5, 1, 9, "*", lens.Operand("c", "f32[3]", (3,)), lens.Operand("d", "f32[4]", (4,)), None,
    mismatch=-1, raised=True,
)  # fmt: skip
PROFILE = lens.Profile(
    12.0,
    (lens.ProfileRow("aten::mm", 2, 5.0, 6.0, 400), lens.ProfileRow("aten::add", 1, 9.0, 9.0)),
    (lens.Share("forward", 6.0, 0.5),), 2, (lens.Peak("tensors", 4096, "What was handed out."),),
)  # fmt: skip
EVERYTHING = (TRACE, lens.Broadcasts((OUTER, INNER)), TENSORS, MODULES, OPTIMIZERS, GRAPH)


async def run(pilot, until, setting, *events):
    setting.runner.script = plays(*events)
    screen = await arrive(pilot, until)
    await pilot.press("f5")
    await until(pilot, lambda: "The program is done." in ended(screen))
    return screen


@pytest.mark.parametrize("size", SIZES)
async def test_every_tab_shows_its_part(setting, until, size):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await run(pilot, until, setting, *EVERYTHING)
        assert front(screen) == "Output", "nothing pushes itself forward"
        assert "Tensors •" in tabs(screen)
        screen.panes.turn_to("results")
        results = screen.results
        for pane, words in (
            (TensorsPane, ["x", "f32[2, 3]", "A"]),
            (ModulesPane, ["net: Linear(in_features=3, out_features=1)", "grad 0.5", "lr=0.1"]),
            (GraphPane, ["loss, line 3", "MulBackward0", "saved self=w", "accumulated"]),
        ):
            results.show(pane)
            await until(pilot, lambda words=words: all(word in drawn(screen) for word in words))
        assert "Tensors •" not in tabs(screen)


async def test_numbers_end_at_one_edge_and_an_offset_of_zero_everywhere_is_left_out(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, TENSORS)
        await pilot.press("4")
        await until(pilot, lambda: "offset" in drawn(screen))
        rows = [row for row in drawn(screen).splitlines() if " B " in row and "share" not in row]
        assert len({row.index(" B ") for row in rows}) == 1, rows
        assert len({len(row.partition(" B ")[0].split()[-1]) for row in rows}) == 2
        setting.runner.script = plays(lens.Tensors((X, LOSS), TENSORS.storages))
        await pilot.press("f5")
        await until(pilot, lambda: len(setting.runner.jobs) == 2 and "Tensors •" in tabs(screen))
        await pilot.press("4")
        await until(pilot, lambda: "SumBackward0" in drawn(screen) and "memory" in drawn(screen))
        assert "offset" not in drawn(screen)


async def test_a_run_without_a_graph_says_so(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("6")
        await until(pilot, lambda: "No graph yet" in drawn(screen))
        await run(pilot, until, setting, lens.Tensors((X,)))
        await pilot.press("6")
        await until(pilot, lambda: "no tensor that this run left has a grad_fn" in drawn(screen))
        await pilot.press("f8", "escape", "6")
        await until(pilot, lambda: "No graph yet" in drawn(screen))


async def test_digits_lead_to_the_tabs_and_another_step_has_nothing_new(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await run(pilot, until, setting, *EVERYTHING)
        await pilot.press("escape", "5")
        await until(pilot, lambda: front(screen) == "Modules")
        await pilot.press("1", "7")
        await until(pilot, lambda: front(screen) == "Profile")
        await pilot.press("f3", "4")
        assert screen.editor.text.startswith("4"), "in the code a digit is a digit"
        assert front(screen) == "Profile"
        assert "Graph •" in tabs(screen)
        await pilot.press("f8")
        await until(pilot, lambda: screen.session.index != RUN)
        await until(pilot, lambda: front(screen) == "Output")
        assert "•" not in tabs(screen)


async def test_only_runs_of_the_learner_are_looked_into(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, TENSORS)
        for count in (2, 3, 4):
            await pilot.press("I", "f5")
            await until(pilot, lambda count=count: len(setting.runner.jobs) == count)
            await until(pilot, lambda: not screen.results.is_running)
        first, everything, off, again = (job.look for job in setting.runner.jobs)
        assert (first.trace, first.names, first.profile, first.everything) == (
            True, True, False, False,
        )  # fmt: skip
        assert everything == replace(first, everything=True), "a key follows all passes"
        assert not any(vars(off).values()), "and once more switches off"
        assert again == first


async def test_checks_are_not_looked_into(setting, until):
    setting.runner.script = judges({"one": True})
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        await arrive(pilot, until)
        await pilot.press("f9")
        await until(pilot, lambda: setting.runner.jobs)
        assert not any(vars(setting.runner.jobs[0].look).values())


async def test_notes_stand_behind_lines_and_go_when_the_line_is_edited(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, TRACE)
        editor = screen.editor
        await until(pilot, lambda: "w: f32[3] copy  ×3" in drawn(screen))
        screen.panes.turn_to("editor")
        editor.move_cursor((0, 0))
        await pilot.press("enter")
        assert editor.note_of(2).startswith("w: f32[3]"), "it moves along with its line"
        editor.move_cursor((2, 0))
        await pilot.press("x")
        assert editor.note_of(2) == ""
        await pilot.press("backspace")
        assert editor.note_of(2) != ""
        await pilot.press("escape", "v")
        assert "w: f32[3] copy" not in drawn(screen)
        assert any(text.startswith("No notes behind the lines") for text in told(app))


@pytest.mark.parametrize("size", SIZES)
async def test_a_tensor_opens_and_its_index_walks_through_the_storage(setting, until, size):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await run(pilot, until, setting, TENSORS)
        screen.panes.turn_to("results")
        screen.results.show(TensorsPane)
        screen.query_one("#tensors").focus()
        await pilot.press("m", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, TensorScreen))
        await until(pilot, lambda: "offset 1 + 0 x 1 = cell 1" in drawn(app.screen))
        await pilot.press("right")
        await until(pilot, lambda: "offset 1 + 1 x 1 = cell 2" in drawn(app.screen))
        assert "[2]" in drawn(app.screen)
        assert "(1)" in drawn(app.screen)
        text = str(app.screen.query_one("#tensor").render())
        assert "row and x share 2 cells" in text
        assert "2 # # 2 2 2" in text
        await pilot.press("escape")
        assert app.screen is screen


async def test_the_walk_through_the_graph_says_what_each_node_does(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, TRACE, GRAPH)
        screen.results.show(GraphPane)
        screen.query_one("#graph").focus()
        said = screen.query_one("#graph-step")
        await pilot.press("full_stop", "full_stop")
        assert str(said.render()) == (
            "2 of 3: MulBackward0 takes a gradient f32[3] of norm 1.7, with the saved self w, "
            "and passes f32[3] to w."
        )
        await pilot.press("full_stop", "full_stop")
        assert str(said.render()).startswith("3 of 3, line 2: ")
        assert "is added to w.grad" in str(said.render())
        await pilot.press("comma")
        assert str(said.render()).startswith("2 of 3")


async def test_a_profile_is_asked_for_and_sorted(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        setting.runner.script = plays(PROFILE)
        await pilot.press("P")
        await until(pilot, lambda: "aten::mm" in drawn(screen))
        assert setting.runner.jobs[0].look.profile
        assert front(screen) == "Profile"
        assert "Operators by self time" in drawn(screen)
        assert bars(screen) == {"aten::mm": "██████▋", "aten::add": "████████████"}
        screen.query_one(ProfilePane).query("VerticalScroll").first().focus()
        await pilot.press("o")
        await until(pilot, lambda: "Operators by memory" in drawn(screen))
        assert bars(screen) == {"aten::mm": "████████████"}


def made(line, name, words, count=1):
    return lens.Line(line, line, count, (lens.Made(name, words),))


async def test_a_shape_that_is_another_than_in_the_last_run_says_what_it_was(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        first = lens.Trace((made(3, "w", "f32[4, 10]"), made(5, "loss", "f32[]")))
        screen = await run(pilot, until, setting, first)
        assert screen.editor.note_of(2) == "w: f32[4, 10]"
        second = lens.Trace((made(3, "w", "f32[4, 12]"), made(5, "loss", "f32[]")))
        screen = await run(pilot, until, setting, second)
        assert screen.editor.note_of(2) == "w: was f32[4, 10], now f32[4, 12]"
        assert screen.editor.note_of(4) == "loss: f32[]"
        await run(pilot, until, setting, lens.Trace((made(3, "w", "f32[4, 12]"),)))
        assert screen.editor.note_of(2) == "w: f32[4, 12]"
        await pilot.press("f8", "f7")
        await until(pilot, lambda: screen.session.index == RUN)
        await run(pilot, until, setting, first)
        assert screen.editor.note_of(2) == "w: f32[4, 10]", "another step has no last run"


async def test_the_tensor_of_the_cursors_line_stands_below_the_code(setting, until):
    app = setting.app(setting.accumulation, RUN)
    values = ("0.0", "1.0", "nan", "3.0001")
    info = replace(
        TENSORS.tensors[0], name="w[/]", words="f32[4]", sample=lens.Sample((0,), range(4), values),
        stats=lens.Stats(4, nan=1, minimum=0.0, mean=1.3, maximum=3.0),
    )  # fmt: skip
    async with app.run_test(size=(120, 40)) as pilot:
        trace = lens.Trace((made(3, "w[/]", "f32[4]"), made(4, "step", "f32[]")))
        screen = await run(pilot, until, setting, trace, replace(TENSORS, tensors=(info,)))
        screen.panes.turn_to("editor")
        await pilot.press("down", "down")
        shown = "w[/] f32[4]  ██?█  0 to 3  1 NaN"
        await until(pilot, lambda: shown in drawn(screen))
        await pilot.press("down")
        await until(pilot, lambda: "0 to 3" not in drawn(screen))
        await pilot.press("up")
        await until(pilot, lambda: shown in drawn(screen))
        await pilot.press("x")
        await until(pilot, lambda: "0 to 3" not in drawn(screen))


def bars(screen):
    """The bar of each operator that has one."""
    lines = [line for line in drawn(screen).splitlines() if "aten::" in line]
    cells = [line.replace("│", " ").split() for line in lines]
    return {row[row.index(name)]: row[-1] for row in cells for name in row
            if name.startswith("aten::") and row[-1][0] in "▏▎▍▌▋▊▉█"}  # fmt: skip


def test_the_parts_of_a_graphs_node_differ_in_colour(setting):
    label = "MulBackward0  y: f32[2]  saved other=x  grad 1.4  freed"
    parts = {found.lastgroup: found[0] for found in PARTS.finditer(label)}
    assert parts == {
        "name": "MulBackward0", "saved": "saved other=x", "grad": "grad 1.4", "mark": "freed",
    }  # fmt: skip


def test_the_smallest_expression_around_the_cursor_counts():
    found = (OUTER, INNER)
    assert expression_at(found, 1, 7) is INNER
    assert expression_at(found, 1, 15) is OUTER
    assert expression_at(found, 1, 40) is OUTER, "the line has one"
    assert expression_at(found, 3, 1) is None


async def test_broadcasting_under_the_cursor(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("b")
        assert "Run the code" in told(app)[0]
        screen = await run(pilot, until, setting, lens.Broadcasts((OUTER, INNER)))
        screen.panes.turn_to("editor")
        screen.editor.move_cursor((0, 6))
        await pilot.press("escape", "b")
        await until(pilot, lambda: "3 and 4 differ, and neither is 1" in drawn(app.screen))


async def test_the_signs_of_a_line_are_told_in_words(setting, until):
    app = setting.app(setting.accumulation, RUN)
    text = "NaN was here at the end; not followed past pass 64"
    made = lens.Made("loss", "f32[]", marks=(lens.Mark("nan", text),))
    line = lens.Line(1, 1, 64, (made,), first_only=True)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, lens.Trace((line,)))
        screen.panes.turn_to("editor")
        screen.editor.move_cursor((0, 0))
        await pilot.press("escape", "b")
        await until(pilot, lambda: "NaN was here at the end" in drawn(app.screen))
        assert "past pass 64; press I to follow everything" in drawn(app.screen)


async def test_a_call_whose_shapes_do_not_fit_is_explained_at_its_line(setting, until):
    app = setting.app(setting.accumulation, RUN)
    sides = (lens.Operand("x", "f32[1, 4, 8, 8]", (1, 4, 8, 8)),)
    why = ("Dimension 1 of x is 4; with 3 it would fit.",)
    error = lens.ShapeError(1, 1, 1, 9, "conv", sides, why)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, lens.Broadcasts((), error=error))
        screen.panes.turn_to("editor")
        screen.editor.move_cursor((0, 0))
        await pilot.press("escape", "b")
        await until(pilot, lambda: "Dimension 1 of x is 4" in drawn(app.screen))


def test_a_note_that_is_cut_keeps_its_nan():
    assert fitting("loss: f32[] NaN  ×200", 24) == "   loss: f32[] NaN  ×200"
    assert fitting("loss: f32[] NaN  ×200", 16) == "   loss: f32…NaN"
    assert fitting("loss: f32[] NaN  ×200", 20) == "   loss: f32[] NaN …"
    assert fitting("predicted: f32[64, 10]", 16) == "   predicted: f…"


async def test_an_error_keeps_the_front(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        error = Raised("ValueError", "no", (), "Traceback ...\nValueError: no\n")
        screen = await run(pilot, until, setting, error, *EVERYTHING)
        assert front(screen) == "Output"


async def test_a_run_may_end_before_what_the_last_one_showed_has_gone(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, *EVERYTHING, PROFILE)
        for pane in screen.results.panes:
            if isinstance(pane, LensPane):
                pane.forget()
                pane.take((*EVERYTHING, PROFILE))
        await until(pilot, lambda: len(screen.query(".lens-room")) == 4)
        for id in ("#tensors", "#tensors-below", "#modules", "#graph", "#graph-step", "#profile"):
            assert len(screen.query(id)) == 1, id


async def test_another_step_shows_nothing_of_the_last_run(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await run(pilot, until, setting, *EVERYTHING)
        await pilot.press("f8")
        await until(pilot, lambda: not screen.query("#tensors"))
        assert not screen.query("#graph")


BAD = lens.TensorInfo("bad", "f16[7, 64]", "Tensor", "float16", (7, 64), "cpu", itemsize=2,
                      bytes=896, stats=lens.Stats(448, 2, 1, -1.0, 0.0, 9.0))  # fmt: skip


async def test_the_table_is_filtered_while_one_types_and_sorted(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        tensors = lens.Tensors((X, ROW, LOSS, BAD), TENSORS.storages)
        screen = await run(pilot, until, setting, tensors)
        screen.panes.turn_to("results")
        screen.results.show(TensorsPane)
        pane = screen.query_one(TensorsPane)
        pane.grid.focus()

        def rows():
            return [str(pane.grid.get_row_at(i)[0]) for i in range(pane.grid.row_count)]

        assert rows() == ["x", "row", "loss", "bad"]
        assert "2 NaN, 1 Inf" in [str(cell) for cell in pane.grid.get_row_at(3)]
        await pilot.press("f", *"dtype:f16")
        await until(pilot, lambda: rows() == ["bad"])
        await pilot.press("enter")
        assert app.focused is pane.grid
        assert "1 of 4 fit: dtype:f16" in drawn(screen)
        await pilot.press("f", "escape")
        await until(pilot, lambda: len(rows()) == 4)
        await pilot.press("o", "o")
        await until(pilot, lambda: rows()[:2] == ["bad", "x"])
        await pilot.press("f", *"o shape:2")
        await until(pilot, lambda: rows() == ["row"])
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, TensorScreen))
        assert "row" in drawn(app.screen), "a row stays that of its tensor"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("", "x row loss bad"), ("nan", "bad"), ("inf", "bad"), ("grad", "loss"),
        ("shape:64", "bad"), ("shape:[2,3]", "x"), ("O", "row loss"),
        ("dtype:float32 w", "row"), ("device:cuda", ""), ("f16", "bad"),
    ],
)  # fmt: skip
def test_the_words_of_the_filter(wanted, found):
    every = (X, ROW, LOSS, BAD)
    assert [every[i].name for i in matching_rows(every, wanted)] == found.split()


async def test_names_by_the_hundred_are_filtered_without_being_drawn(setting, until):
    many = [replace(ROW, name=f"t{n}") for n in range(lens.MOST_TENSORS)]
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await run(pilot, until, setting, lens.Tensors(tuple(many), (), left_out=4700))
        screen.panes.turn_to("results")
        screen.results.show(TensorsPane)
        pane = screen.query_one(TensorsPane)
        assert pane.grid.row_count == lens.MOST_TENSORS
        assert pane.grid.size.height < 24
        pane.grid.focus()
        await pilot.press("f", *"t29")
        await until(pilot, lambda: pane.grid.row_count == 11)
