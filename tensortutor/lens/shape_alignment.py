"""Two shapes one under the other, aligned from the right, as broadcasting sees them."""

from collections.abc import Iterator

from tensortutor.protocol.lens import Broadcast, Operand, ShapeError


def aligned(one: Broadcast) -> Iterator[str]:
    """Lines: each side with its dimensions, the result, and what happened."""
    sides = (one.left, one.right)
    width = max(len(name(side)) for side in sides)
    rank = max(len(one.left.shape), len(one.right.shape), len(one.result or ()))
    columns = [
        max(len(cell(shape, -i)) for shape in (*(s.shape for s in sides), one.result or ()))
        for i in range(rank, 0, -1)
    ]
    for side in sides:
        yield row(name(side), side.shape, columns, width)
    if one.result is not None:
        yield row("result", one.result, columns, width)
    if one.operator == "@":
        yield from product(one)
        return
    for side in sides:
        if side.stretched and side.words:
            dims = ", ".join(map(str, side.stretched))
            yield f"{name(side)} is repeated along {plural(side)} {dims}."
    if one.mismatch is not None:
        a, b = (cell(side.shape, one.mismatch) for side in sides)
        yield f"Dimension {one.mismatch}: {a} and {b} differ, and neither is 1."


def error_lines(error: ShapeError) -> Iterator[str]:
    """The tensors of a call that raised, one under the other, and why."""
    width = max((len(side.text) for side in error.operands), default=0)
    for side in error.operands:
        yield f"{side.text.ljust(width)}  {side.words}"
    yield from error.why


def product(one: Broadcast) -> Iterator[str]:
    """A matrix product has a rule of its own."""
    if one.mismatch is not None:
        yield (
            f"The last dimension of {name(one.left)} must be the last but one of {name(one.right)}."
        )


def name(side: Operand) -> str:
    """Its source."""
    return side.text


def plural(side: Operand) -> str:
    """`dimension` or `dimensions`."""
    return "dimension" if len(side.stretched) == 1 else "dimensions"


def cell(shape: tuple[int, ...], index: int) -> str:
    """The size at an index from the right; "" where there is none."""
    return str(shape[index]) if -index <= len(shape) else ""


def row(label: str, shape: tuple[int, ...], columns: list[int], width: int) -> str:
    """`x       64   1`."""
    places = zip(range(len(columns), 0, -1), columns, strict=True)
    cells = (cell(shape, -index).rjust(size) for index, size in places)
    return f"{label.ljust(max(width, 6))}  {'  '.join(cells)}".rstrip()
