"""The rows of the results' tabs as text: what a `look` of a lesson may point at.

The app's tabs, the command line and the author's gate show the same words: they come from here, or
from the tables, trees and lines of this package.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from tensortutor.lens import lines, tables, trees
from tensortutor.protocol.drawings import Drawing
from tensortutor.protocol.events import Event, Output
from tensortutor.protocol.lens import Graph, Modules, Optimizers, Profile, Tensors, Trace

UNTITLED = ("png", "kind", "style")
"""Texts of a drawing that nobody reads."""


@dataclass(frozen=True)
class Row:
    """names: what a look may call it. text: all that it shows. key: what it is to its tab.

    The key is a name of the Tensors tab, a branch's id of Modules and Graph, a line's number of
    the notes and of the output, and else the row's first name.
    """

    names: tuple[str, ...]
    text: str
    key: str


def rows_of(tab: str, events: Iterable[Event | Any], source: str = "") -> list[Row]:
    """The rows that the tab of this name shows after a run.

    tab: "output", "tensors", "modules", "graph", "profile", "plot" or "notes". events: all of the
    run. source: the program, for the notes at its lines. Raises KeyError for any other tab.
    """
    events = list(events)
    if tab == "output":
        printed = "".join(e.text for e in events if isinstance(e, Output))
        return [Row((text,), text, str(n)) for n, text in enumerate(printed.splitlines())]
    if tab == "notes":
        program = source.split("\n")
        return [row for e in events if isinstance(e, Trace) for row in _notes(e, program)]
    return [row for event in events for row in ROWS[tab](event)]


def find_row(rows: Iterable[Row], tab: str, row: str, expect: str = "") -> Row | None:
    """The first row of this name that shows `expect`; of output and notes, a part of the line.

    White space is folded on both sides.
    """
    wanted, shown = folded(row), folded(expect)
    for one in rows:
        names = [folded(name) for name in one.names]
        part_of = tab in ("output", "notes") and any(wanted in name for name in names)
        if (part_of or wanted in names) and shown in folded(one.text):
            return one
    return None


def folded(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())


def _tensors(event: Any) -> Iterator[Row]:
    if not isinstance(event, Tensors):
        return
    table = tables.tensor_table(event)
    for cells, tensor in zip(table.rows, event.tensors, strict=True):
        titled = (
            f"{title} {cell}".strip()
            for title, cell in zip(table.columns, cells, strict=True)
            if cell
        )
        yield Row((cells[0], tensor.name), "  ".join(titled), cells[0])


def _modules(event: Any) -> Iterator[Row]:
    if isinstance(event, Modules):
        for branch in trees.module_tree(event):
            yield Row((branch.id,), branch.text, branch.id)
    elif isinstance(event, Optimizers):
        name = ""
        for cells in tables.optimizer_table(event).rows:
            name = cells[0].partition(":")[0] or name
            yield Row((name, f"{name} {cells[1]}"), "  ".join(filter(None, cells)), name)


def _graph(event: Any) -> Iterator[Row]:
    if not isinstance(event, Graph):
        return
    for node in event.nodes:
        names = tuple(filter(None, (node.variable, node.name)))
        text = f"{trees.node_text(node)}  {trees.backward_sentence(event, node.id)}"
        yield Row(names, text, str(node.id))


def _profile(event: Any) -> Iterator[Row]:
    if not isinstance(event, Profile):
        return
    for table in (
        tables.profile_table(event),
        tables.share_table(event),
        tables.memory_table(event),
    ):
        for cells in table.rows:
            yield Row((cells[0],), "  ".join(filter(None, cells)), cells[0])


def _drawings(event: Any) -> Iterator[Row]:
    if isinstance(event, Drawing):
        yield Row((event.title, *_labels(event)), "  ".join(_texts(event)), event.title)


def _labels(drawing: Drawing) -> Iterator[str]:
    """The labels of what a drawing consists of: its curves, its bars."""
    for field in fields(drawing):
        parts = getattr(drawing, field.name)
        for part in parts if isinstance(parts, tuple) else ():
            if label := getattr(part, "label", ""):
                yield label


def _texts(value: Any) -> Iterator[str]:
    """Every text in a drawing that is there to be read."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in UNTITLED:
                yield from _texts(getattr(value, field.name))


def _notes(trace: Trace, program: list[str]) -> Iterator[Row]:
    notes = lines.notes(trace)
    for line in trace.lines:
        if line.end_line in notes and line.end_line <= len(program):
            code = " ".join(program[line.line - 1 : line.end_line])
            said = " ".join(lines.remarks(line))
            yield Row((code,), f"{notes[line.end_line]}  {said}", str(line.end_line))


ROWS: dict[str, Callable[[Any], Iterator[Row]]] = {
    "tensors": _tensors, "modules": _modules, "graph": _graph, "profile": _profile,
    "plot": _drawings,
}  # fmt: skip
