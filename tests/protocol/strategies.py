"""Any message of the protocol, derived from the dataclasses themselves."""

import dataclasses
import types
import typing
from typing import Any

from hypothesis import strategies as st

from tensortutor.protocol.drawings import LONGEST_WORDS, PICTURES, STYLES, Picture, Plot, Series

# What surrogateescape makes of arbitrary bytes: the text that a program's output arrives as.
TEXT = st.text() | st.binary(max_size=20).map(lambda b: b.decode("utf-8", "surrogateescape"))
NUMBERS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(),
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


def series(points: list[tuple[float, float | None]], **fields: Any) -> Series:
    return Series(xs=tuple(x for x, _ in points), ys=tuple(y for _, y in points), **fields)


# Drawings refuse what is not bounded; these are the fields that they take.
BOUNDED: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    Plot: {"title": WORDS},
    Picture: {"title": WORDS, "caption": WORDS, "kind": st.sampled_from(PICTURES)}
    | {"low": FINITE, "high": FINITE},
}


def messages(kind: type) -> st.SearchStrategy[Any]:
    """Instances of a dataclass, every field drawn."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: of(hints[field.name]) for field in dataclasses.fields(kind)}
    fields |= BOUNDED.get(kind, {})
    if kind is Series:
        del fields["xs"], fields["ys"]
        fields |= {"label": WORDS, "style": st.sampled_from(STYLES), "first": FINITE}
        return st.builds(series, points=POINTS, **fields)
    return st.builds(kind, **fields)
