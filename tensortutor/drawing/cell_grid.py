"""A grid of cells as rows of text: values with their indices, marked ones in brackets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tensortutor.drawing.colours import NOT_FINITE, brightness, palette
from tensortutor.drawing.picture import UPPER
from tensortutor.drawing.scale import written
from tensortutor.drawing.spans import RGB, Look, Row, Span, clean, clip, text_of, width_of, wrap
from tensortutor.protocol.drawings import Block, CellGrid

BRACKETS = (
    ("[", "]"), ("(", ")"), ("{", "}"), ("<", ">"), ("|", "|"), ("*", "*"), ("!", "!"), ("_", "_"),
)  # fmt: skip
"""Of the marks, in their order."""
BOOLS, ASCII_BOOLS = {"0": "0·", "1": "1■"}, {"0": "0.", "1": "1#"}
"""Bools have a shape beside the number."""
BESIDE = 3
"""Cells between two blocks."""
DARK_TEXT, LIGHT_TEXT = (0, 0, 0), (255, 255, 255)
BAR = 24


@dataclass(frozen=True)
class Layout:
    """How much of each block is drawn: which of its rows and columns, by number; cell: the cells
    of a text; margin: those of the row indices; across: blocks beside each other."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    cell: int
    margin: int
    across: int


class Line(NamedTuple):
    """A row of one block, and how many cells it takes."""

    spans: Row
    width: int


def cell_grid_rows(
    grid: CellGrid, width: int, height: int, look: Look, *, titled: bool = True
) -> list[Row]:
    """At most `height` rows of at most `width` cells, words included."""
    width, height = max(width, 1), max(height, 1)
    title = clip(clean(grid.title, look), width) if titled else ""
    head: list[Row] = [[Span(title)]] if title else []
    legend = mark_rows(grid, width, look)
    about = about_rows(grid, width, look)
    room = height - 1
    head, legend = head[: max(room - 3, 0)], legend[: max(room - 4, 0)]
    about = about[: max(room - len(head) - len(legend), 0)]
    rows = height - len(head) - len(legend) - len(about)
    layout = layout_of(grid, width, max(rows, 1), look)
    body = block_rows(grid, layout, width, look)
    missing = hidden_words(grid, layout)
    if missing and rows > 3:
        layout = layout_of(grid, width, rows - 1, look)
        body = block_rows(grid, layout, width, look)
        about.append([Span(clip(hidden_words(grid, layout), width), dim=True)])
        rows -= 1
    return [*head, *body[: max(rows, 1)], *legend, *about][:height]


def natural_height(grid: CellGrid, width: int, look: Look) -> int:
    """So many rows show all of it."""
    layout = layout_of(grid, width, 10_000, look)
    words = 1 + len(mark_rows(grid, width, look)) + len(about_rows(grid, width, look))
    words += bool(hidden_words(grid, layout))
    return len(block_rows(grid, layout, width, look)) + words


def shows_all_columns(grid: CellGrid, width: int, look: Look) -> bool:
    """Whether so many cells show every column."""
    return not hidden_words(grid, layout_of(grid, width, 10_000, look))


def mark_rows(grid: CellGrid, width: int, look: Look) -> list[Row]:
    """What the brackets mean."""
    rows: list[Row] = []
    taken = width
    for number, label in enumerate(grid.marks):
        name = clean(label, look)
        if not name:
            continue
        text = clip(name, max(width - 4, 1))
        size = 4 + width_of(text)
        if taken + 3 + size > width:
            rows.append([])
            taken = 0
        elif taken:
            rows[-1].append(Span("   "))
            taken += 3
        left, right = BRACKETS[number % len(BRACKETS)]
        rows[-1] += [Span(f"{left} {right}", number), Span(f" {text}")]
        taken += size
    return rows


def about_rows(grid: CellGrid, width: int, look: Look) -> list[Row]:
    """The caption, dtype and shape, the colours' scale, what is left out."""
    rows: list[Row] = [[Span(line)] for line in wrap(clean(grid.caption, look).split(), width)]
    line: Row = [Span(clip(clean(grid.about, look), width), dim=True)] if grid.about else []
    if look.colour and look.unicode and grid.low < grid.high:
        low, high = written(grid.low), written(grid.high)
        colours = palette(grid.low, grid.high)
        taken = width_of(text_of(line)) + 3 + len(low) + len(high) + 2
        size = min(width - taken, BAR)
        if size >= 4:
            steps = [colours[n * 255 // (size - 1)] for n in range(size)]
            bar = [Span(UPPER, fore=colour, back=colour) for colour in steps]
            line += [Span(f"   {low} ", dim=True), *bar, Span(f" {high}", dim=True)]
    rows += [line] if line else []
    rows += [[Span(text, dim=True)] for text in wrap(clean(grid.note, look).split(), width)]
    return rows


def hidden_words(grid: CellGrid, layout: Layout) -> str:
    """What does not fit, beyond what the program's side has left out already."""
    if not grid.blocks:
        return ""
    first = grid.blocks[0]
    rows, columns = len(first.rows) - len(layout.rows), len(first.columns) - len(layout.columns)
    parts = [f"{n} {what}" for n, what in ((rows, "rows"), (columns, "columns")) if n > 0]
    return f"{' and '.join(parts)} do not fit here" if parts else ""


def layout_of(grid: CellGrid, width: int, height: int, look: Look) -> Layout:
    """What shows_all_columns."""
    if not grid.blocks:
        return Layout((), (), 1, 0, 1)
    first = grid.blocks[0]
    texts = [cell_text(grid, text, look) for block in grid.blocks for text in block.texts]
    indices = len(str(max(first.columns, default=0))) if grid.dims else 0
    cell = max([len(text) for text in texts] + [indices])
    margin = len(str(max(first.rows, default=0))) + 1 if grid.dims > 1 else 0
    columns = chosen(len(first.columns), first.columns, (width - margin) // (cell + 2), 1)
    taken = margin + row_width(first.columns, columns, cell)
    across = max(min((width + BESIDE) // (taken + BESIDE), len(grid.blocks)), 1)
    down = -(-len(grid.blocks) // across)
    words = bool(first.label) + bool(grid.dims)
    each = (height - (down - 1)) // down - words
    rows = chosen(len(first.rows), first.rows, max(each, 1), 1)
    return Layout(rows, columns, cell, margin, across)


def chosen(count: int, indices: Sequence[int], room: int, gap: int) -> tuple[int, ...]:
    """The numbers of those that fit: the first ones and the last, a gap between counts as one."""
    gaps = sum(b - a > 1 for a, b in pairwise(indices))
    if count + gaps * gap <= max(room, 1):
        return tuple(range(count))
    kept = max(room - 1, 1)
    if kept < 3:
        return tuple(range(kept))
    return (*range(kept - 1), count - 1)


def row_width(indices: Sequence[int], columns: Sequence[int], cell: int) -> int:
    """The cells of a row without the index before it."""
    return len(columns) * (cell + 2) + 2 * len(gaps_before(indices, columns))


def gaps_before(indices: Sequence[int], shown: Sequence[int]) -> set[int]:
    """The numbers before which something is left out."""
    return {b for a, b in pairwise(shown) if indices[b] - indices[a] > 1}


def block_rows(grid: CellGrid, layout: Layout, width: int, look: Look) -> list[Row]:
    """All blocks, side by side as far as they fit."""
    if not grid.blocks:
        return [[Span(clip("nothing in it", width), dim=True)]]
    rows: list[Row] = []
    for start in range(0, len(grid.blocks), layout.across):
        if start:
            rows.append([Span("")])
        beside = [block_lines(grid, b, layout, look)
                  for b in grid.blocks[start : start + layout.across]]  # fmt: skip
        for lines in zip(*beside, strict=True):
            row: Row = []
            for number, line in enumerate(lines):
                if number:
                    row.append(Span(" " * BESIDE))
                row += line.spans
                last = number == len(lines) - 1
                missing = max(one.width for one in beside[number]) - line.width
                if missing and not last:
                    row.append(Span(" " * missing))
            rows.append(row)
    return rows


def block_lines(grid: CellGrid, block: Block, layout: Layout, look: Look) -> list[Line]:
    """One block: its place, the indices of its columns, its rows."""
    lines = []
    gaps = gaps_before(block.columns, layout.columns)
    size = layout.margin + row_width(block.columns, layout.columns, layout.cell)
    if block.label:
        label = clip(clean(block.label, look), size)
        lines.append(Line([Span(label, dim=True)], width_of(label)))
    if grid.dims:
        text = " " * layout.margin
        for column in layout.columns:
            text += (
                ("  " if column in gaps else "")
                + str(block.columns[column]).rjust(layout.cell + 1)
                + " "
            )
        lines.append(Line([Span(text, dim=True)], len(text)))
    more = gaps_before(block.rows, layout.rows)
    colours = palette(grid.low, grid.high)
    for row in layout.rows:
        index = str(block.rows[row]) if grid.dims > 1 else ""
        spans: Row = [Span(f"{index.rjust(layout.margin - 1)} " if layout.margin else "", dim=True)]
        for column in layout.columns:
            if column in gaps:
                spans.append(Span("… " if look.unicode else "..", dim=True))
            spans.append(cell_span(grid, block, row * len(block.columns) + column, layout.cell,
                                   colours, look))  # fmt: skip
        if row in more:
            dots = "⋮" if look.unicode else ":"
            lines.append(Line([Span(dots.rjust(max(layout.margin - 1, 1)), dim=True)],
                              max(layout.margin - 1, 1)))  # fmt: skip
        lines.append(Line(spans, size))
    return lines


def cell_span(
    grid: CellGrid, block: Block, at: int, size: int, colours: Sequence[RGB], look: Look
) -> Span:
    """One cell: its text between the brackets of its mark, on the colour of its value."""
    mark = block.marks[at] if block.marks else -1
    left, right = BRACKETS[mark % len(BRACKETS)] if mark >= 0 else (" ", " ")
    text = f"{left}{cell_text(grid, block.texts[at], look).rjust(size)}{right}"
    if not (look.colour and look.unicode):
        return Span(text, mark)
    value = block.values[at]
    if value is None:
        return Span(text, fore=LIGHT_TEXT, back=NOT_FINITE)
    span = grid.high / 2 - grid.low / 2
    share = (value / 2 - grid.low / 2) / span if span > 0 else 0.5
    back = colours[min(max(round(share * 255), 0), 255)]
    return Span(text, fore=DARK_TEXT if brightness(back) > 0.5 else LIGHT_TEXT, back=back)


def cell_text(grid: CellGrid, text: str, look: Look) -> str:
    """What stands in a cell."""
    text = clean(text, look)
    if grid.about.startswith("bool "):
        return (BOOLS if look.unicode else ASCII_BOOLS).get(text, text)
    return text
