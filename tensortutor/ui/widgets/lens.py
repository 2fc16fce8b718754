"""The tabs of the lens: tensors (see tensors.py), modules, the autograd graph, time and memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tensortutor.plaintext import visible
from tensortutor.protocol.lens import Graph, Modules, Optimizers, Profile, Tensors, Trace
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText
from tensortutor.ui.widgets.lenspane import LensPane
from tensortutor.ui.widgets.panes import ResultPane
from tensortutor.ui.widgets.tensors import TensorsPane

if TYPE_CHECKING:
    from textual.widgets import Tree

    from tensortutor.protocol.events import Event
    from tensortutor.protocol.lens import GraphRoot
    from tensortutor.ui.terminal.terminal_app import TerminalApp

BAR = re.compile("[▏▎▍▌▋▊▉█]+")


class ModulesPane(LensPane):
    """Modules as trees that fold, optimizers below."""

    TITLE = "Modules"
    NOTHING = "No modules yet. After a run, models and optimizers stand here."
    KINDS = (Modules, Optimizers)

    def __init__(self) -> None:
        super().__init__(id="pane-modules")

    def take(self, events: Sequence[Event]) -> None:
        """A tree for the modules, a table for the optimizers."""
        from textual.widgets import Tree

        from tensortutor.lens.table_text import table_lines
        from tensortutor.lens.tables import optimizer_table
        from tensortutor.lens.trees import module_tree

        for event in self.relevant(events):
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

    path = [tree.root]
    for number, (depth, id, text) in enumerate(branches):
        deeper = number + 1 < len(branches) and branches[number + 1][0] > depth
        del path[depth + 1 :]
        label = OutsideText(text).rich()
        above = path[-1]
        path.append(above.add(label, id, expand=True) if deeper else above.add_leaf(label, id))


NO_GRAPH = "No graph: no tensor that this run left has a grad_fn."


class GraphPane(LensPane):
    """The autograd graph as a tree, and a walk through it as backward goes."""

    TITLE = "Graph"
    NOTHING = "No graph yet. After a run, the graph behind each tensor with a grad_fn stands here."
    KINDS = (Graph,)
    _lines: dict[str, int]
    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.GRAPH]

    def __init__(self) -> None:
        super().__init__(id="pane-graph")
        self._graph: Graph | None = None
        self._step = 0
        self._lines = {}

    def forget(self) -> None:
        """No graph, no walk."""
        self._graph, self._step, self._lines = None, 0, {}
        super().forget()

    def take(self, events: Sequence[Event]) -> None:
        """A tree for each tensor that no other tree contains."""
        from tensortutor.lens.trees import graph_tree, root_title
        from tensortutor.ui.widgets.graph_tree import GraphTree

        for trace in events:
            if isinstance(trace, Trace):
                self._lines = {made.name: line.line for line in trace.lines for made in line.made}
        event = next(reversed(self.relevant(events)), None)
        if any(isinstance(one, Tensors) for one in events):  # the run was followed
            self.query_one(".lens-word", Static).update(NO_GRAPH)
        if not isinstance(event, Graph):
            return
        self._graph = event
        tree = GraphTree("graphs", id="graph")
        tree.show_root = False
        self.empty()
        self.room.mount(tree, Static("", id="graph-step", markup=False))
        branches = []
        for root in whole_roots(event):
            branches.append((0, "", root_title(root)))
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
        variable = next((one.variable for one in graph.nodes if one.id == node), "")
        line = self._lines.get(variable, 0)
        place = f", line {line}" if line else ""
        self._say(f"{self._step} of {len(walk)}{place}: {backward_sentence(graph, node)}")
        self._go_to(node)

    def _go_to(self, node: int) -> None:
        from textual.widgets import Tree

        tree: Tree[str] = self.room.query_one("#graph", Tree)
        todo = [tree.root]
        for one in todo:  # grows while it is walked
            if one.data == str(node):
                tree.move_cursor(one)
                return
            todo += one.children

    def _say(self, text: str) -> None:
        for line in self.room.query("#graph-step").results(Static):
            line.update(visible(text))


def whole_roots(graph: Graph) -> list[GraphRoot]:
    """The roots that are no part of another's graph."""
    part = {node for root in graph.roots for node in root.order if node != root.node}
    return [root for root in graph.roots if root.node not in part]


class ProfilePane(LensPane):
    """Where time and memory went."""

    TITLE = "Profile"
    KINDS = (Profile,)
    NOTHING = "Not profiled. {}, or the palette, runs the code under torch's profiler."
    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.PROFILE]

    @property
    def nothing(self) -> str:
        """How there comes to be something."""
        return self.NOTHING.format(cast("TerminalApp", self.app).key_name("lesson.profile"))

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

    def take(self, events: Sequence[Event]) -> None:
        """The shares of a step, the operators, memory."""
        event = next(reversed(self.relevant(events)), None)
        if not isinstance(event, Profile):
            return
        self._profile = event
        self.empty()
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
        from tensortutor.lens.table_text import table_lines

        if self._profile is None:
            return
        profile = self._profile
        if self._by_memory:
            rows = tuple(sorted(profile.rows, key=lambda row: -abs(row.self_bytes)))
            profile = replace(profile, rows=rows)
        order = "memory" if self._by_memory else "self time"
        operators = tables.profile_table(profile, self._by_memory)
        parts = [
            f"{tables.time(profile.ms)} under the profiler, which is longer than without.",
            "", *table_lines(tables.share_table(profile)),
            "", f"Operators by {order}", *table_lines(operators),
            "", "Memory", *table_lines(tables.memory_table(profile)),
        ]  # fmt: skip
        for page in self.room.query("#profile").results(Static):
            page.update(_with_bars(visible("\n".join(parts))))


def _with_bars(text: str) -> Content:
    """A page of tables, its bars coloured."""
    content = Content(text)
    for found in BAR.finditer(text):
        content = content.stylize("$accent", found.start(), found.end())
    return content


LENS_PANES: tuple[type[ResultPane], ...] = (TensorsPane, ModulesPane, GraphPane, ProfilePane)
