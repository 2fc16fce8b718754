"""One tensor in full: its facts, the walk through its storage, its values as a map of shades."""

import math
from collections.abc import Iterator

from tensortutor.lens import tables
from tensortutor.lens.strides import cells_of, shared
from tensortutor.protocol.lens import Sample, Storage, TensorInfo

SHADES = " ░▒▓█"
ASCII_SHADES = " .:+#"
SIGNS = {(True, True): "#", (True, False): "1", (False, True): "2", (False, False): "·"}
"""A cell by whether the first and the second of two tensors look at it."""
MOST_ELEMENTS = 4096
"""The elements of a tensor whose cells are looked up, from its first."""


def facts(one: TensorInfo) -> Iterator[tuple[str, str]]:
    """What there is to say about it: pairs of a label and a text."""
    yield "tensor", f"{one.words}, {one.kind}" if one.kind != "Tensor" else one.words
    if one.layout == "strided":
        contiguous = "contiguous" if one.contiguous else "not contiguous"
        yield "stride", f"({', '.join(map(str, one.stride))}), {contiguous}"
        yield "offset", f"{one.offset}"
    else:
        yield "layout", one.layout
    if tables.is_repeated(one):
        yield (
            "memory",
            (
                f"holds {tables.size(one.held)}; a copy would need {tables.size(one.bytes)}, "
                f"{one.itemsize} B an element"
            ),
        )
    else:
        yield "memory", f"{tables.size(one.bytes)}, {one.itemsize} B an element"
    yield "graph", tables.grad_word(one) or "requires no gradient"
    if one.version > 0:
        yield "in place", f"changed {one.version} time{'s' if one.version > 1 else ''}"
    if one.stats is not None:
        stats = one.stats
        numbers = (("min", stats.minimum), ("mean", stats.mean), ("max", stats.maximum))
        parts = [f"{name} {tables.number(value)}" for name, value in numbers if value is not None]
        parts += [
            f"{count} {name}" for name, count in (("NaN", stats.nan), ("Inf", stats.inf)) if count
        ]
        if parts:
            yield "values", ", ".join(parts)
    if one.word:
        yield "", one.word


def step(one: TensorInfo, index: tuple[int, ...]) -> str:
    """How an index becomes a cell: `offset 0 + 1 x 4 + 2 x 1 = cell 6`."""
    parts = [f"{i} x {stride}" for i, stride in zip(index, one.stride, strict=True)]
    return f"{' + '.join((f'offset {one.offset}', *parts))} = cell {cell(one, index)}"


def cell(one: TensorInfo, index: tuple[int, ...]) -> int:
    """The cell of the storage, in elements, at which an element lies."""
    return one.offset + sum(i * stride for i, stride in zip(index, one.stride, strict=True))


def walk(one: TensorInfo, index: tuple[int, ...], dim: int) -> set[int]:
    """The cells that are passed when one index, up to MOST_ELEMENTS, runs and the others stand."""
    return {
        cell(one, (*index[:dim], i, *index[dim + 1 :]))
        for i in range(min(one.shape[dim], MOST_ELEMENTS))
    }  # fmt: skip


def strip(
    one: TensorInfo, storage: Storage, index: tuple[int, ...], dim: int, width: int
) -> Iterator[str]:
    """The storage as rows of cells: [5] is the element, (4) where dimension `dim` leads.

    Cells that the tensor does not look at are shown as dots. Nothing where cells cannot be read.
    """
    mine = set(cells_of(one, MOST_ELEMENTS))
    here, way = cell(one, index), walk(one, index, dim) if one.shape else set()
    values = [_short(value) for value in storage.cells]
    size = max((len(value) for value in values), default=1) + 2
    across = max((width - 7) // size, 1)
    for start in range(0, len(values), across):
        cells = []
        for number in range(start, min(start + across, len(values))):
            text = values[number].rjust(size - 2)
            if number == here:
                cells.append(f"[{text}]")
            elif number in way:
                cells.append(f"({text})")
            else:
                cells.append(f" {text} " if number in mine else " " + "·".rjust(size - 2) + " ")
        yield f"{start:>5}  {''.join(cells)}"
    total = storage.bytes // one.itemsize if one.itemsize else 0
    if total > len(values):
        yield f"       ... and {total - len(values):,} more cells"


def heat_map(sample: Sample, ascii: bool) -> Iterator[str]:
    """The values as shades, two columns for each, and the scale below."""
    shades = ASCII_SHADES if ascii else SHADES
    try:
        values = [float(value) for value in sample.values]
    except ValueError:
        return  # complex numbers have no order
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return
    low, high = min(finite), max(finite)
    across = max(len(sample.columns), 1)
    for start in range(0, len(values), across):
        yield "".join(
            shade(value, low, high, shades) * 2 for value in values[start : start + across]
        )
    odd = " NaN: ??  Inf: !!" if len(finite) < len(values) else ""
    where = f" of {sample.slice}" if sample.slice else ""
    scale = f"{shades[0] * 2} {tables.number(low)}  to  {shades[-1] * 2} {tables.number(high)}"
    yield f"{scale}{where}{odd}"


def shade(value: float, low: float, high: float, shades: str) -> str:
    """The sign of one value."""
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "!"
    # Halved: the difference of two numbers may be infinite.
    part = (value / 2 - low / 2) / (high / 2 - low / 2) if high / 2 > low / 2 else 0.5
    return shades[min(int(part * len(shades)), len(shades) - 1)]


def together(one: TensorInfo, other: TensorInfo) -> Iterator[str]:
    """What two tensors have in common, in words."""
    names = f"{tables.full_name(one)} and {tables.full_name(other)}"
    if not one.storage or one.storage != other.storage:
        yield f"{names} lie in different storages: no write to one shows in the other."
        return
    common = shared(one, other)
    if not common:
        yield f"{names} lie in one storage and have no cell in common."
        return
    count = len(common) // max(one.itemsize, 1)
    yield f"{names} share {count:,} cell{'s' if count > 1 else ''}: a write there shows in both."


def both(one: TensorInfo, other: TensorInfo, storage: Storage, width: int) -> Iterator[str]:
    """The storage, each cell marked: 1 for the first tensor, 2 for the second, # for both."""
    first, second = set(cells_of(one, MOST_ELEMENTS)), set(cells_of(other, MOST_ELEMENTS))
    across = max((width - 7) // 2, 1)
    for start in range(0, len(storage.cells), across):
        cells = range(start, min(start + across, len(storage.cells)))
        signs = (SIGNS[at in first, at in second] for at in cells)
        yield f"{start:>5}  {' '.join(signs)}"


def _short(value: str) -> str:
    """A value in at most seven characters."""
    try:
        number = float(value)
    except ValueError:
        return value[:7]
    text = f"{number:.3g}"
    return text[:7]
