"""`run --lens` and `run --profile`: what the lens saw, after the program's output."""

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tensortutor.lens import lines, tables, trees
from tensortutor.lens.shape_alignment import aligned, error_lines
from tensortutor.protocol.lens import (
    Broadcasts,
    Graph,
    Modules,
    Optimizers,
    Profile,
    Tensors,
    Trace,
)
from tensortutor.report import Printer, neutral

WIDEST_TABLE = 160
MOST_ROOTS = 6
FOLLOW_ALL = "Lines that say 'first N' were not followed past that pass; {} follows all."


class View:
    """Renders the lens's events as lines of text. follow_all: the option that does so."""

    def __init__(self, printer: Printer, source: str, follow_all: str = "--lens-all") -> None:
        self._printer = printer
        self._follow_all = follow_all
        self._source = source.splitlines()

    def event(self, event: Any) -> Iterator[str]:
        """All there is to print of an event; nothing where it is empty."""
        found = list(RENDERED[type(event)](self, event))
        if found:
            yield ""
            yield from found

    def trace(self, trace: Trace) -> Iterator[str]:
        """The file with what its lines made."""
        notes = lines.notes(trace)
        if notes:
            yield self._title("Lines")
            width = min(60, max((len(text) for text in self._source), default=0)) + 2
            digits = len(str(len(self._source)))
            for number, text in enumerate(self._source, 1):
                code = f"{number:>{digits}}  {neutral(text)}"
                note = notes.get(number, "")
                yield self._with_note(code, note, width + digits + 2)
            for line in trace.lines:
                for remark in lines.remarks(line):
                    yield f"line {line.line}: {neutral(remark)}"
            if any(line.first_only for line in trace.lines):
                yield from self._sentences(FOLLOW_ALL.format(self._follow_all))
        yield from self._sentences(trace.note)

    def broadcasts(self, broadcasts: Broadcasts) -> Iterator[str]:
        """Where the program stopped at two shapes that do not match."""
        for one in broadcasts.expressions:
            if one.raised and one.mismatch is not None:
                yield self._title(f"Line {one.line}: these do not fit")
                yield from aligned(one)
        error = broadcasts.error
        if error is not None:
            yield self._title(
                f"Line {error.line}: the shapes of {neutral(error.function)} do not fit"
            )
            yield from map(neutral, error_lines(error))

    def tensors(self, tensors: Tensors) -> Iterator[str]:
        """The table of names."""
        yield from self._table("Tensors", tables.tensor_table(tensors))

    def modules(self, modules: Modules) -> Iterator[str]:
        """The trees of modules."""
        if modules.modules:
            yield self._title("Modules")
        for branch in trees.module_tree(modules):
            yield f"{'  ' * branch.depth}{neutral(branch.text)}"
        yield from self._sentences(modules.note)

    def optimizers(self, optimizers: Optimizers) -> Iterator[str]:
        """The optimizers."""
        yield from self._table("Optimizers", tables.optimizer_table(optimizers))

    def graph(self, graph: Graph) -> Iterator[str]:
        """The graphs, each behind its tensor; those that are part of another are left out."""
        part = {n for root in graph.roots for n in root.order if n != root.node}
        whole = [root for root in graph.roots if root.node not in part]
        for root in whole[:MOST_ROOTS]:
            yield self._title(f"Graph of {neutral(trees.root_title(root))}")
            for branch in trees.graph_tree(graph, root.node):
                yield f"{'  ' * branch.depth}{neutral(branch.text)}"
        yield from self._sentences(graph.note)

    def profile(self, profile: Profile) -> Iterator[str]:
        """Operators, the shares of a training step, memory."""
        yield from self._table(f"Time: {tables.time(profile.ms)}", tables.profile_table(profile))
        if profile.shares:
            yield ""
        yield from self._table("Training step", tables.share_table(profile))
        yield ""
        yield from self._table("Memory", tables.memory_table(profile))

    def _title(self, text: str) -> str:
        return self._printer.paint(text, "bold")

    def _sentences(self, *texts: str) -> Iterator[str]:
        yield from (self._printer.paint(neutral(text), "dim") for text in texts if text)

    def _with_note(self, code: str, note: str, width: int) -> str:
        if not note:
            return code
        return f"{code.ljust(width)}  {self._printer.paint(neutral(note), 'dim')}"

    def _table(self, title: str, table: tables.Table) -> Iterator[str]:
        if not table.rows:
            yield from self._sentences(*table.below)
            return
        yield self._title(title)
        drawn = RichTable(box=None, pad_edge=False, header_style="dim")
        used = [i for i in range(len(table.columns)) if any(row[i] for row in table.rows)]
        for index in used:
            drawn.add_column(
                table.columns[index],
                justify="right" if index in table.right else "left",
                overflow="fold",
            )
        for row in table.rows:
            drawn.add_row(*(Text(neutral(row[index])) for index in used))
        yield from self._render(drawn)
        yield from self._sentences(*table.below)

    def _render(self, what: RichTable) -> Iterator[str]:
        text = io.StringIO()
        console = Console(
            file=text, width=WIDEST_TABLE, force_terminal=self._printer.colour,
            color_system="standard" if self._printer.colour else None, legacy_windows=False,
        )  # fmt: skip
        console.print(what)
        yield from (line.rstrip() for line in text.getvalue().splitlines())


RENDERED: dict[type, Any] = {
    Trace: View.trace, Broadcasts: View.broadcasts, Tensors: View.tensors, Modules: View.modules,
    Optimizers: View.optimizers, Graph: View.graph, Profile: View.profile,
}  # fmt: skip
