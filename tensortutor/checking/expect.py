"""Expectations: each raises `Unmet` with what a learner needs to see, or returns nothing.

The functions of torch that decide are taken by name when this module is imported, before any
program of a learner runs, so that a program which replaces them changes nothing here.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, isclose, isnan

from tensortutor.checking.causes import cause_of_shape, cause_of_values
from tensortutor.checking.describe import describe, describe_tensor, describe_values

_as_dtype = Tensor.to
PLAIN = (bool, int, float, complex, str, list, tuple, dict)
"""A value of one of these types is wanted as exactly that type."""


class Unmet(AssertionError):
    """An expectation failed. The fields are those of `protocol.events.Verdict`."""

    def __init__(
        self,
        message: str,
        *,
        got: str = "",
        expected: str = "",
        where: str = "",
        cause: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.got = got
        self.expected = expected
        self.where = where
        self.cause = cause
        self.hint = hint


def fail(message: str, *, hint: str = "") -> NoReturn:
    """Fail with a sentence."""
    raise Unmet(message, hint=hint)


def expect_true(condition: object, message: str, *, hint: str = "") -> None:
    """`condition` is true; `message` says what is wrong when it is not."""
    if not condition:
        raise Unmet(message, hint=hint)


def expect_equal(got: Any, wanted: Any, *, name: str = "the result", hint: str = "") -> None:
    """Same type of thing and the same value, item by item in lists, tuples and dicts.

    Tensors: shape, dtype and every bit of value. Any kind of tuple will do for a tuple, and inside
    containers an int for a float. NaN equals NaN.
    """
    if isinstance(got, Tensor) and not isinstance(wanted, Tensor):
        message = f"{name} is a tensor, {_a(wanted)} is wanted"
        raise Unmet(message, got=describe(got), expected=describe(wanted), hint=hint)
    both_tuples = isinstance(got, tuple) and isinstance(wanted, tuple)
    if type(wanted) in PLAIN and type(got) is not type(wanted) and not both_tuples:
        message = f"{name} is of type {type(got).__name__}, {type(wanted).__name__} is wanted"
        raise Unmet(message, got=describe(got), expected=describe(wanted), hint=hint)
    _expect_same(got, wanted, name, "", hint)


def _expect_same(got: Any, wanted: Any, name: str, path: str, hint: str) -> None:
    """Raise Unmet about the first item that differs, however deep."""
    if isinstance(wanted, Tensor):
        expect_close(got, wanted, name=name + path, hint=hint, rtol=0.0, atol=0.0)
    elif (keys := _keys(got, wanted)) is not None:
        for key in keys:
            _expect_same(got[key], wanted[key], name, f"{path}[{key!r}]", hint)
    elif not _same(got, wanted):
        raise Unmet(
            f"{name} is not what it should be",
            got=describe(got),
            expected=describe(wanted),
            where=f"at {path}" if path else "",
            hint=hint,
        )


def _keys(got: Any, wanted: Any) -> Iterable[Any] | None:
    """The indices or keys that two containers of one kind share, or None if they differ."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        return wanted if got.keys() == wanted.keys() else None
    for kind in (list, tuple):
        if isinstance(got, kind) and isinstance(wanted, kind) and len(got) == len(wanted):
            return range(len(wanted))
    return None


def _same(got: Any, wanted: Any) -> bool:
    kinds = {type(got), type(wanted)}
    if type(wanted) in PLAIN and len(kinds) == 2 and kinds != {int, float}:
        return False
    try:
        return bool(got == wanted) or bool(got != got and wanted != wanted)
    except Exception:  # a learner's __eq__ may raise anything
        return False


def _a(value: Any) -> str:
    if value is None:
        return "None"
    word = type(value).__name__
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def expect_tensor(got: Any, *, name: str = "the result", hint: str = "") -> None:
    """`got` is a tensor."""
    if got is None:
        # Only of a call's own result: a part of one may be None for other reasons.
        cause = "A function without `return` gives None." if name == "the result" else ""
        raise Unmet(f"{name} is None", cause=cause, hint=hint)
    if not isinstance(got, Tensor):
        raise Unmet(
            f"{name} is not a tensor", got=describe(got), expected="a torch.Tensor", hint=hint
        )


def expect_shape(
    got: Any, shape: Sequence[int], *, name: str = "the result", hint: str = ""
) -> None:
    """`got` is a tensor of exactly this shape."""
    expect_tensor(got, name=name, hint=hint)
    wanted = tuple(shape)
    if tuple(got.shape) != wanted:
        raise Unmet(
            f"{name} has the wrong shape",
            got=str(list(got.shape)),
            expected=str(list(wanted)),
            cause=cause_of_shape(tuple(got.shape), wanted),
            hint=hint,
        )


def expect_dtype(got: Any, dtype: torch.dtype, *, name: str = "the result", hint: str = "") -> None:
    """`got` is a tensor of exactly this dtype."""
    expect_tensor(got, name=name, hint=hint)
    if got.dtype != dtype:
        raise Unmet(
            f"{name} has the wrong dtype", got=str(got.dtype), expected=str(dtype), hint=hint
        )


def expect_close(
    got: Any,
    wanted: Tensor,
    *,
    name: str = "the result",
    hint: str = "",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    dtype: torch.dtype | None = None,
) -> None:
    """Same shape, dtype, device, and values within atol + rtol * |wanted|; NaN equals NaN.

    dtype: what `got` must have if that is not `wanted.dtype` (a float64 reference, say).
    """
    expect_shape(got, wanted.shape, name=name, hint=hint)
    expect_dtype(got, dtype or wanted.dtype, name=name, hint=hint)
    if got.device != wanted.device:
        raise Unmet(
            f"{name} is on the wrong device",
            got=str(got.device),
            expected=str(wanted.device),
            hint=hint,
        )
    a, b = _comparable(got, wanted)
    if rtol == atol == 0.0:
        same = (a == b) | (isnan(a) & isnan(b))
    else:
        same = isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if bool(same.all()):
        return
    wrong = (~same).nonzero()
    strange = (isnan(a) & ~isnan(b)).nonzero()  # shown first: it is what the cause speaks of
    first = tuple(int(i) for i in (strange if len(strange) else wrong)[0])
    found, right = describe_values(a[first], b[first])
    place = f"at {list(first)}" if first else "in its only element"
    raise Unmet(
        f"{name} {describe_tensor(got)} has {len(wrong)} of {same.numel()} values wrong",
        got=found,
        expected=right,
        where=place,
        cause=cause_of_values(a, b),
        hint=hint,
    )


def _comparable(got: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Both as plain tensors, without history, in one dtype that holds either's values exactly.

    On the CPU, because not every device has float64.
    """
    with torch._C.DisableTorchFunctionSubclass():  # a learner's subclass may answer as it likes
        a, b = (tensor.detach().as_subclass(Tensor).cpu() for tensor in (got, wanted))
    if a.dtype != b.dtype or a.dtype in (torch.float16, torch.bfloat16):
        wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
        return _as_dtype(a, wide), _as_dtype(b, wide)
    return a, b


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def expect_view(got: Any, base: Tensor, *, name: str = "the result", hint: str = "") -> None:
    """`got` shares its storage with `base`."""
    expect_tensor(got, name=name, hint=hint)
    if _storage(got) != _storage(base):
        raise Unmet(
            f"{name} is a copy",
            got="a storage of its own",
            expected="a view of the input's storage",
            hint=hint,
        )


def expect_copy(got: Any, base: Tensor, *, name: str = "the result", hint: str = "") -> None:
    """`got` has a storage of its own."""
    expect_tensor(got, name=name, hint=hint)
    if _storage(got) == _storage(base):
        raise Unmet(
            f"{name} is a view of the input",
            got="the input's storage",
            expected="a storage of its own",
            hint=hint,
        )


@contextmanager
def expect_unchanged(*tensors: Tensor, hint: str = "") -> Iterator[None]:
    """Inside, none of these tensors may change its values."""
    before = [tensor.detach().clone() for tensor in tensors]
    yield
    for number, (tensor, old) in enumerate(zip(tensors, before, strict=True), 1):
        which = "the input" if len(tensors) == 1 else f"input {number}"
        now = tensor.detach()
        same = now.shape == old.shape and bool(((now == old) | ((now != now) & (old != old))).all())
        if not same:
            raise Unmet(
                f"{which} {describe_tensor(tensor)} was changed in place",
                cause="Work on a new tensor: the caller still needs this one.",
                hint=hint,
            )


@contextmanager
def expect_raises(kind: type[Exception], message: str, *, hint: str = "") -> Iterator[None]:
    """Inside, an exception of this kind must be raised; `message` says what is wrong if not."""
    try:
        yield
    except kind:
        return
    raise Unmet(message, expected=kind.__name__, got="no exception", hint=hint)
