"""What torch's operations do to shapes and dtypes, by rule alone: nothing is computed.

A rule takes values (see `Value`) and gives one, or raises Unknown. Facts from the documentation of
torch: broadcasting semantics, type promotion, and the functions themselves.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tensortutor.worker.lens.layers import Layer


class Unknown(Exception):
    """There is no telling what comes out."""


class Mismatch(Exception):
    """The operation cannot be done; torch raises an error here."""


class Value(NamedTuple):
    """A tensor that is known by its shape and dtype."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: str = "cpu"


Shape = tuple[int, ...]
NUMBERS = (int, float, bool, complex)


def broadcast(left: Shape, right: Shape) -> tuple[Shape, int | None]:
    """The common shape, and None; or (), and the dimension, from the right, that cannot match."""
    result = []
    for index in range(1, max(len(left), len(right)) + 1):
        a = left[-index] if index <= len(left) else 1
        b = right[-index] if index <= len(right) else 1
        if a != b and a != 1 and b != 1:
            return (), -index
        result.append(b if a == 1 else a)
    return tuple(reversed(result)), None


def stretched(shape: Shape, result: Shape) -> tuple[int, ...]:
    """The dimensions of the result, from the right, along which a tensor of this shape repeats."""
    return tuple(
        -index
        for index in range(1, len(result) + 1)
        if result[-index] != 1 and (index > len(shape) or shape[-index] == 1)
    )


def rank(dtype: torch.dtype) -> int:
    """Truth values, integers, floating point, complex."""
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype is torch.bool else 1


def promoted(left: Any, right: Any) -> torch.dtype:
    """The dtype of arithmetic between two operands. Raises Unknown."""
    if not isinstance(left, Value):
        left, right = right, left
    if not isinstance(left, Value):
        raise Unknown
    if type(right) in NUMBERS:
        kind = {bool: 0, int: 1, float: 2, complex: 3}[type(right)]
        if kind <= rank(left.dtype):
            return left.dtype
        return {1: torch.int64, 2: torch.get_default_dtype(), 3: torch.complex64}[kind]
    if not isinstance(right, Value):
        raise Unknown
    # A 0-d tensor changes the dtype only by being of a higher kind, as a number does.
    if bool(left.shape) != bool(right.shape):
        whole, scalar = (left, right) if left.shape else (right, left)
        if rank(scalar.dtype) <= rank(whole.dtype):
            return whole.dtype
    return torch.promote_types(left.dtype, right.dtype)


def inner(shape: Shape, dim: int) -> int:
    """A dimension counted from the left. Raises Unknown if it is out of range."""
    if type(dim) is not int or not -len(shape) <= dim < max(1, len(shape)):
        raise Unknown
    return dim % len(shape) if shape else 0


def dims_of(shape: Shape, dim: Any) -> tuple[int, ...]:
    """The dimensions that a reduction takes; None and () for all."""
    if dim is None or dim == ():
        return tuple(range(len(shape)))
    many = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(inner(shape, one) for one in many)


def reduced(value: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """Some dimensions gone, or kept as 1."""
    gone = dims_of(value.shape, dim)
    shape = [1 if i in gone else n for i, n in enumerate(value.shape) if keepdim or i not in gone]
    return value._replace(shape=tuple(shape))


def with_size(value: Value, wanted: Any) -> Value:
    """Another shape of as many elements, one of whose sizes may be -1."""
    if not all(type(n) is int for n in wanted):
        raise Unknown
    known = math.prod(n for n in wanted if n != -1)
    count = math.prod(value.shape)
    if -1 in wanted:
        if not known or count % known:
            raise Mismatch
        wanted = [count // known if n == -1 else n for n in wanted]
    if math.prod(wanted) != count:
        raise Mismatch
    return value._replace(shape=tuple(wanted))


def sizes(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """`(2, 3)` as well as `2, 3`."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        return tuple(arguments[0])
    return arguments


def matmul(left: Value, right: Value) -> Value:
    """`@`. Raises Mismatch."""
    a, b = left.shape, right.shape
    if not a or not b:
        raise Mismatch
    wide = (1, *a) if len(a) == 1 else a
    tall = (*b, 1) if len(b) == 1 else b
    if wide[-1] != tall[-2]:
        raise Mismatch
    batch, wrong = broadcast(wide[:-2], tall[:-2])
    if wrong is not None:
        raise Mismatch
    rows = () if len(a) == 1 else (wide[-2],)
    columns = () if len(b) == 1 else (tall[-1],)
    return left._replace(shape=(*batch, *rows, *columns))


def permuted(value: Value, order: tuple[int, ...]) -> Value:
    """The dimensions in another order."""
    if len(order) != len(value.shape):
        raise Mismatch
    return value._replace(shape=tuple(value.shape[inner(value.shape, d)] for d in order))


def transposed(value: Value, first: int, second: int) -> Value:
    """Two dimensions exchanged."""
    shape = list(value.shape)
    a, b = inner(value.shape, first), inner(value.shape, second)
    if shape:
        shape[a], shape[b] = shape[b], shape[a]
    return value._replace(shape=tuple(shape))


def unsqueezed(value: Value, dim: int) -> Value:
    """A dimension of size 1 more."""
    if type(dim) is not int:
        raise Unknown
    at = dim % (len(value.shape) + 1)
    return value._replace(shape=(*value.shape[:at], 1, *value.shape[at:]))


def squeezed(value: Value, dim: Any = None) -> Value:
    """Dimensions of size 1 gone."""
    chosen = dims_of(value.shape, dim)
    kept = (n for i, n in enumerate(value.shape) if n != 1 or i not in chosen)
    return value._replace(shape=tuple(kept))


def expanded(value: Value, wanted: tuple[int, ...]) -> Value:
    """Repeated along dimensions of size 1; -1 keeps a size."""
    padded = (1,) * (len(wanted) - len(value.shape)) + value.shape
    if len(padded) != len(wanted):
        raise Mismatch
    shape = tuple(n if w == -1 else w for n, w in zip(padded, wanted, strict=True))
    if any(n not in (1, s) for n, s in zip(padded, shape, strict=True)):
        raise Mismatch
    return value._replace(shape=shape)


def flattened(value: Value, start: int = 0, end: int = -1) -> Value:
    """Some neighbouring dimensions made one."""
    if not value.shape:
        return value._replace(shape=(1,))
    a, b = inner(value.shape, start), inner(value.shape, end)
    shape = (*value.shape[:a], math.prod(value.shape[a : b + 1]), *value.shape[b + 1 :])
    return value._replace(shape=shape)


def joined(values: Any, dim: int = 0) -> Value:
    """`cat`."""
    first: Value = values[0]
    at = inner(first.shape, dim)
    return first._replace(
        shape=tuple(sum(v.shape[i] for v in values) if i == at else n
                    for i, n in enumerate(first.shape))
    )  # fmt: skip


def stacked(values: Any, dim: int = 0) -> Value:
    """`stack`."""
    at = dim % (len(values[0].shape) + 1)
    shape = values[0].shape
    return Value((*shape[:at], len(values), *shape[at:]), values[0].dtype, values[0].device)


def through(layer: Layer, value: Value) -> Value:
    """What one of torch's modules makes of a tensor. Raises Mismatch, Unknown."""
    kind, needs = layer
    shape = value.shape
    if kind == "same":
        return value
    if kind == "linear":
        if not shape or shape[-1] != needs[0]:
            raise Mismatch
        return value._replace(shape=(*shape[:-1], needs[1]))
    if kind == "embedding":
        return value._replace(shape=(*shape, needs[0]), dtype=needs[1])
    if kind == "flatten":
        return flattened(value, *needs)
    if kind == "chain":
        for one in needs:
            value = through(one, value)
        return value
    raise Unknown


Rule = Callable[..., Any]
