"""The tabs of the lens: tensors, modules, the autograd graph, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from tensortutor.protocol.lens import Graph, Modules, Optimizers, Profile, Tensors
from tensortutor.ui import keys
from tensortutor.ui.plain import visible
from tensortutor.ui.widgets.panes import Occasion, ResultPane

if TYPE_CHECKING:
    from textual.widgets import DataTable, Tree

    from tensortutor.protocol.events import Event
    from tensortutor.protocol.lens import GraphRoot, TensorInfo

ORDER = (0, 1, 10, 11, 5, 9, 2, 3, 4, 6, 7, 8)
"""The columns of the tensor table in the order of what is looked for first."""


class LensPane(ResultPane):
    """A tab that shows the last event of its kinds; until then a word."""

    NOTHING = ""
    KINDS: tuple[type, ...] = ()

    def compose(self) -> ComposeResult:
        """A word as long as there is nothing, and room below it."""
        yield Static(self.NOTHING, classes="lens-word", markup=False)
        yield Vertical(classes="lens-room")

    @property
    def room(self) -> Vertical:
        """Where the pane shows what it has."""
        return self.query_one(".lens-room", Vertical)

    def begin(self, occasion: Occasion) -> None:
        """What the last run showed goes."""
        del occasion
        self.forget()

    def forget(self) -> None:
        """Show the word alone."""
        self.room.remove_children()
        self.query_one(".lens-word", Static).update(self.NOTHING)
        self.query_one(".lens-word").display = True

    def concerns(self, event: Event) -> bool:
        """Its kinds, when there is something in them."""
        return isinstance(event, self.KINDS) and has_content(event)

    def take(self, events: Sequence[Event]) -> None:
        """Show what concerns this pane."""
        mine = [event for event in events if self.concerns(event)]
        if mine:
            self.query_one(".lens-word").display = False
            self.present(mine)

    def present(self, events: Sequence[Event]) -> None:
        """Show events of its kinds."""
        raise NotImplementedError


def has_content(event: Event) -> bool:
    """Whether an event of the lens has anything to be shown."""
    return any(
        getattr(event, name, ())
        for name in ("tensors", "modules", "optimizers", "roots", "rows", "note")
    )


class TensorsPane(LensPane):
    """A table of the names, and behind each a screen of its own."""

    TITLE = "Tensors"
    NOTHING = "No tensors yet. After a run, the names that hold tensors stand here."
    KINDS = (Tensors,)
    BINDINGS: ClassVar[list[BindingType]] = [*keys.TENSORS]

    def __init__(self) -> None:
        super().__init__(id="pane-tensors")
        self._event: Tensors | None = None
        self._marked = ""
        self._sorted = 0

    def forget(self) -> None:
        """Nothing is known, nothing is marked."""
        self._event, self._marked, self._sorted = None, "", 0
        super().forget()

    def present(self, events: Sequence[Event]) -> None:
        """Fill the table."""
        from textual.widgets import DataTable

        from tensortutor.lens.tables import tensor_table

        event = events[-1]
        assert isinstance(event, Tensors)
        self._event = event
        table = tensor_table(event)
        grid: DataTable[str] = DataTable(cursor_type="row", zebra_stripes=False, id="tensors")
        used = [i for i in ORDER if any(row[i] for row in table.rows)]
        self.room.remove_children()
        self.room.mount(grid)
        grid.add_columns(*(table.columns[i] or "note" for i in used))
        for number, row in enumerate(table.rows):
            grid.add_row(*(visible(row[i]) for i in used), key=str(number))
        if table.below:
            self.room.mount(Static(visible("\n".join(table.below)), markup=False))

    @property
    def grid(self) -> DataTable[str] | None:
        """The table, once there is one."""
        from textual.widgets import DataTable

        return next(iter(self.query(DataTable)), None)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the tensor of a row, with the marked one beside it."""
        from tensortutor.ui.screens.tensor import TensorScreen

        event.stop()
        if self._event is None or event.row_key.value is None:
            return
        tensor = self._event.tensors[int(event.row_key.value)]
        other = self._find(self._marked)
        self.app.push_screen(TensorScreen(self._event, tensor, other))

    def _find(self, key: str) -> TensorInfo | None:
        return self._event.tensors[int(key)] if self._event is not None and key else None

    def action_pair(self) -> None:
        """Mark the tensor under the cursor: the next one that is opened stands beside it."""
        grid = self.grid
        if grid is None or not grid.row_count:
            return
        key = grid.coordinate_to_cell_key(grid.cursor_coordinate).row_key.value or ""
        self._marked = "" if key == self._marked else key
        one = self._find(self._marked)
        self.notify(
            f"{one.name} is marked: open another tensor to see which cells they share."
            if one is not None else "Nothing is marked.",
            markup=False,
        )  # fmt: skip

    def action_sort(self) -> None:
        """Sort by the next column; after the last, as the program has it."""
        grid = self.grid
        if grid is None:
            return
        columns = list(grid.columns)
        self._sorted = (self._sorted + 1) % (len(columns) + 1)
        if self._sorted:
            grid.sort(columns[self._sorted - 1], key=sortable)
            self.notify(f"Sorted by {grid.columns[columns[self._sorted - 1]].label}.")
        else:
            grid.sort(*columns, key=lambda _: 0)
            self.notify("Sorted no more.")


def sortable(text: str) -> tuple[int, float, str]:
    """Numbers by size, words by letter."""
    try:
        return (0, float(text.split()[0]), "")
    except (ValueError, IndexError):
        return (1, 0.0, text)


class ModulesPane(LensPane):
    """Modules as trees that fold, optimizers below."""

    TITLE = "Modules"
    NOTHING = "No modules yet. After a run, models and optimizers stand here."
    KINDS = (Modules, Optimizers)

    def __init__(self) -> None:
        super().__init__(id="pane-modules")

    def present(self, events: Sequence[Event]) -> None:
        """A tree for the modules, a table for the optimizers."""
        from textual.widgets import Tree

        from tensortutor.lens.tables import optimizer_table
        from tensortutor.lens.text import table_lines
        from tensortutor.lens.trees import module_tree

        for event in events:
            if isinstance(event, Modules):
                tree: Tree[str] = Tree("modules", id="modules")
                tree.show_root = False
                self.room.mount(tree, before=0)
                grow(tree, [(b.depth, b.id, b.text) for b in module_tree(event)])
                if event.note:
                    self.room.mount(Static(visible(event.note), markup=False))
            elif isinstance(event, Optimizers):
                text = "\n".join(table_lines(optimizer_table(event)))
                self.room.mount(VerticalScroll(Static(visible(text), markup=False), can_focus=True))


def grow(tree: Tree[str], branches: Sequence[tuple[int, str, str]]) -> None:
    """Fill a tree with branches (depth, id, text), in the order in which they are read."""
    from rich.text import Text

    path = [tree.root]
    for number, (depth, id, text) in enumerate(branches):
        deeper = number + 1 < len(branches) and branches[number + 1][0] > depth
        del path[depth + 1 :]
        label = Text(visible(text))
        above = path[-1]
        path.append(above.add(label, id, expand=True) if deeper else above.add_leaf(label, id))


class GraphPane(LensPane):
    """The autograd graph as a tree, and a walk through it as backward goes."""

    TITLE = "Graph"
    NOTHING = "No graph yet. After a run, the graph behind each tensor with a grad_fn stands here."
    KINDS = (Graph,)
    BINDINGS: ClassVar[list[BindingType]] = [*keys.GRAPH]

    def __init__(self) -> None:
        super().__init__(id="pane-graph")
        self._graph: Graph | None = None
        self._step = 0

    def forget(self) -> None:
        """No graph, no walk."""
        self._graph, self._step = None, 0
        super().forget()

    def present(self, events: Sequence[Event]) -> None:
        """A tree for each tensor that no other tree contains."""
        from textual.widgets import Tree

        from tensortutor.lens.trees import graph_tree

        event = events[-1]
        assert isinstance(event, Graph)
        self._graph = event
        tree: Tree[str] = Tree("graphs", id="graph")
        tree.show_root = False
        self.room.remove_children()
        self.room.mount(tree, Static("", id="graph-step", markup=False))
        branches = []
        for root in whole_roots(event):
            often = f", backward {root.backward} of {root.backwards}" if root.backward else ""
            where = f", line {root.line}" if root.line else ""
            branches.append((0, "", f"{root.name or 'a tensor'}{where}{often}"))
            branches += [(b.depth + 1, b.id, b.text) for b in graph_tree(event, root.node)]
        grow(tree, branches)
        self._say(event.note)

    def action_step(self, by: int) -> None:
        """One node on, as backward goes, or one back."""
        from tensortutor.lens.trees import backward_sentence

        graph = self._graph
        roots = whole_roots(graph) if graph is not None else []
        walk = [node for root in roots for node in root.order]
        if graph is None or not walk:
            self._say("Backward has not passed here: there is nothing to walk.")
            return
        self._step = min(max(self._step + by, 0), len(walk))
        if not self._step:
            self._say("")
            return
        node = walk[self._step - 1]
        self._say(f"{self._step} of {len(walk)}: {backward_sentence(graph, node)}")
        self._go_to(node)

    def _go_to(self, node: int) -> None:
        from textual.widgets import Tree

        tree: Tree[str] = self.query_one("#graph", Tree)
        todo = [tree.root]
        for one in todo:  # grows while it is walked
            if one.data == str(node):
                tree.move_cursor(one)
                return
            todo += one.children

    def _say(self, text: str) -> None:
        for line in self.query("#graph-step").results(Static):
            line.update(visible(text))


def whole_roots(graph: Graph) -> list[GraphRoot]:
    """The roots that are no part of another's graph."""
    part = {node for root in graph.roots for node in root.order if node != root.node}
    return [root for root in graph.roots if root.node not in part]


class ProfilePane(LensPane):
    """Where time and memory went."""

    TITLE = "Profile"
    KINDS = (Profile,)
    NOTHING = "Not profiled. P, or the palette, runs the code under torch's profiler."
    BINDINGS: ClassVar[list[BindingType]] = [*keys.PROFILE]

    def __init__(self) -> None:
        super().__init__(id="pane-profile")
        self._profile: Profile | None = None
        self._by_memory = False

    def forget(self) -> None:
        """Nothing was measured."""
        self._profile = None
        super().forget()

    def asks(self, events: Sequence[Event]) -> bool:
        """Who asks for a profile wants to see it."""
        return any(self.concerns(event) for event in events)

    def present(self, events: Sequence[Event]) -> None:
        """The shares of a step, the operators, memory."""
        event = events[-1]
        assert isinstance(event, Profile)
        self._profile = event
        self.room.remove_children()
        page = VerticalScroll(Static("", id="profile", markup=False), can_focus=True)
        self.room.mount(page)
        self.call_after_refresh(self._draw)

    def action_sort(self) -> None:
        """By time or by memory."""
        self._by_memory = not self._by_memory
        self._draw()

    def _draw(self) -> None:
        from dataclasses import replace

        from tensortutor.lens import tables
        from tensortutor.lens.text import table_lines

        if self._profile is None:
            return
        profile = self._profile
        if self._by_memory:
            rows = tuple(sorted(profile.rows, key=lambda row: -abs(row.self_bytes)))
            profile = replace(profile, rows=rows)
        order = "memory" if self._by_memory else "self time"
        parts = [
            f"{tables.time(profile.ms)} under the profiler, which is longer than without.",
            "", *table_lines(tables.share_table(profile)),
            "", f"Operators by {order}", *table_lines(tables.profile_table(profile)),
            "", "Memory", *table_lines(tables.memory_table(profile)),
        ]  # fmt: skip
        for page in self.query("#profile").results(Static):
            page.update(visible("\n".join(parts)))


LENS_PANES: tuple[type[ResultPane], ...] = (TensorsPane, ModulesPane, GraphPane, ProfilePane)
