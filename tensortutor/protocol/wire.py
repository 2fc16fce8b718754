"""Dataclasses to JSON objects and back, validated field by field."""

import dataclasses
import sys
import types
import typing
from functools import cache
from typing import Any, TypeVar

from tensortutor.protocol.framing import ProtocolError

T = TypeVar("T")
LARGEST_INT = 1 << 68
"""More than the bytes of the largest tensor that can be described: 2**63 complex elements.

JSON has no end of digits, but no float is as large as most of them.
"""


def to_wire(value: Any) -> Any:
    """A JSON-ready copy of a message: dataclasses become objects, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_wire(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        # A plot has numbers by the thousand; they need no look each.
        return list(value) if _are_floats(value) else [to_wire(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_wire(item) for key, item in value.items()}
    return value


def from_wire(kind: type[T], data: Any) -> T:
    """Build the dataclass `kind` from a JSON object.

    Raises ProtocolError on a missing or unknown field, on a value of the wrong type and on a whole
    number beyond LARGEST_INT.
    """
    if not isinstance(data, dict):
        raise ProtocolError(f"{kind.__name__} is not an object")
    hints = _hints(typing.cast(type, kind))
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name in data:
            values[field.name] = _value(hints[field.name], data[field.name], kind, field.name)
    unknown = sorted(data.keys() - hints.keys())
    if unknown:
        raise ProtocolError(f"{kind.__name__} has no field {unknown[0]!r}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ProtocolError(f"{kind.__name__}: {error}") from None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))


def _value(hint: Any, value: Any, kind: type, name: str) -> Any:
    origin = typing.get_origin(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(hint)
        if value is None and type(None) in options:
            return None
        (hint,) = (option for option in options if option is not type(None))
        return _value(hint, value, kind, name)
    if origin is tuple:
        if not isinstance(value, list):
            raise ProtocolError(f"{kind.__name__}.{name} is not a list")
        item = typing.get_args(hint)[0]
        if item in (float, float | None) and _are_floats(value):
            return tuple(value)
        return tuple(_value(item, v, kind, name) for v in value)
    if dataclasses.is_dataclass(hint):
        return from_wire(typing.cast(type, hint), value)
    if hint is float and type(value) is int:
        return _to_float(value, kind, name)
    if type(value) is not hint:
        raise ProtocolError(f"{kind.__name__}.{name} is not of type {hint.__name__}")
    if type(value) is int and abs(value) > LARGEST_INT:
        raise ProtocolError(f"{kind.__name__}.{name} is too large")
    return value


def _are_floats(values: list[Any] | tuple[Any, ...]) -> bool:
    return set(map(type, values)) == {float}


def _to_float(value: int, kind: type, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ProtocolError(f"{kind.__name__}.{name} is too large") from None
