"""Any message of the protocol, derived from the dataclasses themselves."""

import dataclasses
import types
import typing
from typing import Any

from hypothesis import strategies as st

from tensortutor.protocol.drawings import (
    AREA_MAPS,
    LONGEST_CELL,
    LONGEST_WORDS,
    PICTURES,
    STYLES,
    AreaMap,
    Bars,
    Block,
    Box,
    BoxGraph,
    CellGrid,
    Histogram,
    Picture,
    Plot,
    Series,
    has_extent,
)
from tensortutor.protocol.setup import SLOW_MODULES, Load
from tensortutor.protocol.wire import LARGEST_INT

# What surrogateescape makes of arbitrary bytes: the text that a program's output arrives as.
TEXT = st.text() | st.binary(max_size=20).map(lambda b: b.decode("utf-8", "surrogateescape"))
INTEGERS = st.integers(-LARGEST_INT, LARGEST_INT)
NUMBERS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: INTEGERS,
    float: NUMBERS,
    bool: st.booleans(),
    Any: JSON,
}


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    if typing.get_origin(hint) is tuple:
        return st.lists(of(typing.get_args(hint)[0]), max_size=3).map(tuple)
    if isinstance(hint, types.UnionType):
        return st.one_of(
            st.none() if option is type(None) else of(option) for option in typing.get_args(hint)
        )
    return messages(hint)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = TEXT.map(lambda text: text[:LONGEST_WORDS])
POINTS = st.lists(st.tuples(FINITE, st.none() | FINITE), max_size=3)


LABELS = st.lists(WORDS, max_size=3).map(tuple)
RISING = (
    st.lists(FINITE, min_size=2, max_size=5, unique=True)
    .map(sorted)
    .filter(lambda edges: has_extent(*edges[:2]))
)


def series(points: list[tuple[float, float | None]], has_band: bool, **fields: Any) -> Series:
    ys = tuple(y for _, y in points)
    fields |= {"low": ys, "high": ys[::-1]} if has_band else {}
    return Series(xs=tuple(x for x, _ in points), ys=ys, **fields)


@st.composite
def histograms(draw: Any) -> Histogram:
    edges = draw(RISING)
    counts = st.lists(st.integers(0, 1000), min_size=len(edges) - 1, max_size=len(edges) - 1)
    bars = st.builds(
        Bars, label=WORDS, counts=counts.map(tuple), count=INTEGERS, nan=INTEGERS,
        inf=INTEGERS, mean=FINITE, std=FINITE,
    )  # fmt: skip
    many = st.lists(bars, max_size=3).map(tuple)
    return Histogram(draw(WORDS), tuple(edges), draw(many), draw(INTEGERS))


@st.composite
def area_maps(draw: Any) -> AreaMap:
    (low_x, high_x), (low_y, high_y) = (draw(RISING)[:2] for _ in "xy")
    return AreaMap(
        draw(WORDS), draw(st.sampled_from(AREA_MAPS)), draw(TEXT), low_x, high_x, low_y, high_y,
        levels=tuple(draw(st.lists(FINITE, max_size=3))), names=draw(LABELS),
        series=tuple(draw(st.lists(messages(Series), max_size=2))), caption=draw(WORDS),
    )  # fmt: skip


INDICES = st.lists(st.integers(0, LARGEST_INT), max_size=3).map(tuple)


@st.composite
def cell_grids(draw: Any) -> CellGrid:
    rows, columns, labelled = draw(INDICES), draw(INDICES), draw(st.booleans())
    label = WORDS.filter(bool) if labelled else st.just("")
    block = label.flatmap(lambda text: blocks(text, rows, columns))
    return CellGrid(
        draw(WORDS), tuple(draw(st.lists(block, max_size=3))), draw(st.integers(0, 4)),
        draw(FINITE), draw(FINITE), draw(LABELS), draw(WORDS), draw(WORDS), draw(WORDS),
    )  # fmt: skip


@st.composite
def blocks(
    draw: Any, label: str = "", rows: tuple[int, ...] = (0,), columns: tuple[int, ...] = (0, 1)
) -> Block:
    size = len(rows) * len(columns)

    def cells(values: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(st.lists(values, min_size=size, max_size=size)))

    texts = TEXT.map(lambda text: text[:LONGEST_CELL])
    marks = cells(st.integers(-1, 2)) if draw(st.booleans()) else ()
    return Block(label, rows, columns, cells(texts), cells(st.none() | FINITE), marks)


@st.composite
def box_graphs(draw: Any) -> BoxGraph:
    lines = st.lists(WORDS, max_size=3).map(tuple)
    made = []
    for number in range(draw(st.integers(0, 6))):
        earlier = st.sets(st.integers(0, number - 1), max_size=3) if number else st.just(set())
        made.append(Box(draw(WORDS), draw(lines), tuple(sorted(draw(earlier)))))
    return BoxGraph(draw(WORDS), tuple(made), draw(WORDS))


# Drawings refuse what is not bounded; these are the fields that they take.
BOUNDED: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    Plot: {"title": WORDS, "left_out": st.integers(0, LARGEST_INT)},
    Picture: {"title": WORDS, "caption": WORDS, "kind": st.sampled_from(PICTURES)}
    | {"low": FINITE, "high": FINITE},
    Load: {"module": st.sampled_from(SLOW_MODULES)},
}
WHOLE: dict[type, Any] = {
    Histogram: histograms, AreaMap: area_maps, CellGrid: cell_grids, Block: blocks,
    BoxGraph: box_graphs, Box: lambda: st.builds(Box, WORDS, LABELS),
}  # fmt: skip
"""Those whose fields depend on each other."""


def messages(kind: type) -> st.SearchStrategy[Any]:
    """Instances of a dataclass, every field drawn."""
    if kind in WHOLE:
        return WHOLE[kind]()
    hints = typing.get_type_hints(kind)
    fields = {field.name: of(hints[field.name]) for field in dataclasses.fields(kind)}
    fields |= BOUNDED.get(kind, {})
    if kind is Series:
        del fields["xs"], fields["ys"], fields["low"], fields["high"]
        fields |= {"label": WORDS, "style": st.sampled_from(STYLES), "first": FINITE}
        return st.builds(series, points=POINTS, has_band=st.booleans(), **fields)
    return st.builds(kind, **fields)
