"""Grids: a tensor as cells with their values, some of them marked."""

import math
from collections.abc import Sequence
from itertools import islice, product
from typing import Any

import torch

from tensortutor.lab import inputs
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.isolation import hidden_from_modes, never_traced
from tensortutor.lab.numbers import kept
from tensortutor.lab.pictures import calling_line
from tensortutor.protocol.drawings import (
    LONGEST_CELL,
    LONGEST_WORDS,
    MOST_BLOCKS,
    MOST_COLUMNS,
    MOST_ROWS,
    MOST_SERIES,
    Block,
    CellGrid,
)


@never_traced
def grid(tensor: Any, marks: Any = None, caption: str | None = None, *, title: str = "") -> None:
    """Draw a tensor as cells with their values, their indices beside them.

    tensor: real numbers or bools of any shape; a tensor, an array or (nested) lists. One dimension
    is a row, three are a row of blocks with their index, more are blocks as well. Bools are 1 and
    0 with a sign. marks: cells to mark, by an index as one would write it in brackets (a tuple of
    ints and slices, or an int: `(0, 2)`, `(slice(None), 1)`), a list of these, or a mask of bools
    of the tensor's shape; or a dict from labels to any of these, each with brackets of its own. Of
    two marks on one cell the later shows. caption: words below. title: a later grid of the same
    title takes this one's place. If left out, those of the same line of the program do.

    Of more than 16 rows, 24 columns or 8 blocks the first and the last are drawn, fewer where the
    window is small, and a line says how many are left out. NaN and infinite values are written as
    "nan" and "inf". The cells' colours stand for their values.

    Raises TypeError for what has no real numbers, ValueError for a mask of another shape,
    IndexError for a mark outside of the tensor.
    """
    title = (str(title) or calling_line())[:LONGEST_WORDS]
    shape, dtype = getattr(tensor, "shape", None), getattr(tensor, "dtype", None)
    held = kept(part_of(tensor) if isinstance(tensor, torch.Tensor) else tensor)
    cells, words = kept(marks), str(caption or "")[:LONGEST_WORDS]

    def make() -> CellGrid:
        with hidden_from_modes(), torch.no_grad():
            values = inputs.real_tensor(held, "grid")
            about = f"{str(dtype or values.dtype).removeprefix('torch.')}"
            whole = list(values.shape if shape is None else shape)
            return cell_grid(title, values, whole, cells, about, words)

    DISPLAY.draw(title, make)


def part_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; of a large strided one the cells that are drawn, so that a copy costs little."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.dim() == 0:
        return tensor
    for dim, most in zip((-1, -2), (MOST_COLUMNS, MOST_ROWS), strict=True):
        if tensor.dim() >= -dim and tensor.shape[dim] > most:
            chosen = torch.tensor(ends_of(tensor.shape[dim], most), device=tensor.device)
            tensor = tensor.index_select(dim, chosen)
    return tensor


def cell_grid(
    title: str, values: torch.Tensor, shape: list[int], marks: Any, dtype: str, caption: str
) -> CellGrid:
    """The event of a grid. values: those that are drawn of each matrix, and all matrices."""
    masks = dict(islice(inputs.marked_cells(marks, shape).items(), MOST_SERIES))
    matrices = values.reshape(*[1] * max(2 - values.dim(), 0), *values.shape)
    tall, wide = ([1, 1, *shape])[-2:]
    rows, columns = ends_of(tall, MOST_ROWS), ends_of(wide, MOST_COLUMNS)
    if matrices.shape[-2:] == (tall, wide):
        matrices = matrices[..., rows, :][..., columns]
    leading = shape[:-2]
    places = list(islice(product(*map(range, leading)), MOST_BLOCKS))
    shown = torch.stack([matrices[place] for place in places]) if places else matrices[:0]
    texts = inputs.cell_texts(shown)
    number_of = numbers_of_marks(masks, shape)
    size = len(rows) * len(columns)
    blocks = []
    for number, place in enumerate(places):
        own = shown[number].reshape(-1).to(torch.float64).tolist()
        chosen = None
        if masks:
            chosen = number_of[place][rows][:, columns].reshape(-1).tolist()
        blocks.append(Block(
            f"[{', '.join(map(str, place))}]" if leading else "", tuple(rows), tuple(columns),
            tuple(text[:LONGEST_CELL] for text in texts[number * size : (number + 1) * size]),
            tuple(value if math.isfinite(value) else None for value in own), tuple(chosen or ()),
        ))  # fmt: skip
    finite = [value for block in blocks for value in block.values if value is not None]
    drawn = sum(mark >= 0 for block in blocks for mark in block.marks)
    hidden = int((number_of >= 0).sum()) - drawn if masks else 0
    return CellGrid(
        title, tuple(blocks), len(shape), min(finite, default=0.0), max(finite, default=0.0),
        tuple(label[:LONGEST_WORDS] for label in masks), f"{dtype} {shape}", caption,
        left_out(shape, rows, columns, len(places), hidden),
    )  # fmt: skip


def ends_of(count: int, most: int) -> list[int]:
    """The first and the last two of `count` indices, at most `most`."""
    if count <= most:
        return list(range(count))
    return [*range(most - 2), count - 2, count - 1]


def numbers_of_marks(masks: dict[str, torch.Tensor], shape: Sequence[int]) -> torch.Tensor:
    """The number of the last mark on each cell, -1 for none, as matrices."""
    numbers = torch.full((*[1] * max(2 - len(shape), 0), *shape), -1)
    for number, mask in enumerate(masks.values()):
        numbers[mask.reshape(numbers.shape)] = number
    return numbers


def left_out(
    shape: Sequence[int], rows: Sequence[int], columns: Sequence[int], blocks: int, marks: int
) -> str:
    """What of the tensor is not drawn."""
    tall, wide = ([1, 1, *shape])[-2:]
    parts = [
        (tall - len(rows), "rows"), (wide - len(columns), "columns"),
        (math.prod(shape[:-2]) - blocks, "blocks"), (marks, "marked cells"),
    ]  # fmt: skip
    named = [f"{count} {name}" for count, name in parts if count > 0]
    return f"{', '.join(named)} left out" if named else ""
