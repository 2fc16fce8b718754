"""Expectations: each raises `Unmet` with what a learner needs to see, or returns nothing.

Each asks one question, which its name says, and `hint` is shown when the answer to that question
is no: `expect_close` asks for values, `expect_shape` for the shape. When it fails before it comes
to its question (a list where a tensor is wanted, the wrong shape where values are compared), the
hint would speak of something else, and a general one takes its place. Where the author has a
better one, `shape_hint` and `dtype_hint` are for these; `nan_hint` is for NaN or infinity in the
place of a number, where that is another mistake than a wrong number. Digits that are lost speak
of a dtype: without a `hint`, they get the `dtype_hint`.

The functions of torch that decide are taken by name when this module is imported, before any
program of a learner runs, so that a program which replaces them changes nothing here.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, isclose, isnan

from tensortutor.checking import advice
from tensortutor.checking.causes import NONFINITE, PRECISION, cause_of_shape, cause_of_values
from tensortutor.checking.describe import (
    describe,
    describe_tensor,
    describe_values,
    with_article,
)
from tensortutor.checking.differences import describe_both, difference
from tensortutor.checking.plain_values import is_a, plain_tensor

_as_dtype, _detach = Tensor.to, Tensor.detach
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


class Hints(NamedTuple):
    """An author's hints, by what they speak of."""

    value: str
    shape: str
    dtype: str
    nan: str


def fail(message: str, *, hint: str = "") -> NoReturn:
    """Fail with a sentence."""
    raise Unmet(message, hint=hint)


def expect_true(condition: object, message: str, *, hint: str = "") -> None:
    """`condition` is true; `message` says what is wrong when it is not."""
    if not condition:
        raise Unmet(message, hint=hint)


def expect_equal(
    got: Any,
    wanted: Any,
    *,
    name: str = "the result",
    hint: str = "",
    shape_hint: str = "",
    dtype_hint: str = "",
    nan_hint: str = "",
) -> None:
    """Same type of thing and the same value, item by item in lists, tuples and dicts.

    Tensors: shape, dtype and every bit of value. Any kind of tuple will do for a tuple, and inside
    containers an int for a float. NaN equals NaN.
    """
    if got is None and wanted is not None:
        raise _none(name, wanted)
    if is_a(got, Tensor) and not is_a(wanted, Tensor):
        kind = "None" if wanted is None else with_article(type(wanted).__name__)
        message = f"{name} is a tensor, {kind} is wanted"
    elif _is_of_another_type(got, wanted):
        message = f"{name} is of type {type(got).__name__}, {type(wanted).__name__} is wanted"
    else:
        return _expect_same(got, wanted, name, "", Hints(hint, shape_hint, dtype_hint, nan_hint))
    general = advice.on_type(got, wanted)
    raise Unmet(
        message,
        got=describe(got),
        expected=describe(wanted),
        hint=hint if wanted is None else general,
    )


def _is_of_another_type(got: Any, wanted: Any) -> bool:
    """Any kind of tuple is a tuple."""
    both_tuples = is_a(got, tuple) and is_a(wanted, tuple)
    return type(wanted) in PLAIN and type(got) is not type(wanted) and not both_tuples


def _expect_same(got: Any, wanted: Any, name: str, path: str, hints: Hints) -> None:
    """Raise Unmet about the first item that differs, however deep."""
    if is_a(wanted, Tensor):
        _expect_tensor(got, wanted, name + path, hints, (0.0, 0.0), wanted.dtype)
    elif (keys := _keys(got, wanted)) is not None:
        for key in keys:
            _expect_same(_item(got, key), wanted[key], name, f"{path}[{key!r}]", hints)
    elif not _same(got, wanted):
        number = {type(got), type(wanted)} == {int, float}
        other_type = _is_of_another_type(got, wanted) and not number
        found, right = describe_both(got, wanted)
        raise Unmet(
            f"{name} is not what it should be",
            got=found,
            expected=right,
            where=_where(got, wanted, path),
            hint=advice.on_type(got, wanted) if other_type else hints.value,
        )


def _where(got: Any, wanted: Any, path: str) -> str:
    """Where two values differ, beyond what their descriptions say."""

    def same(index: int) -> bool:
        try:
            _expect_same(got[index], wanted[index], "", "", Hints("", "", "", ""))
        except Unmet:
            return False
        return True

    return difference(got, wanted, path, same)


def _keys(got: Any, wanted: Any) -> Iterable[Any] | None:
    """The indices or keys that two containers of one kind share, or None if they differ."""
    if is_a(got, dict) and is_a(wanted, dict):
        return wanted if dict.keys(got) == dict.keys(wanted) else None
    for kind in (list, tuple):
        if is_a(got, kind) and is_a(wanted, kind) and kind.__len__(got) == kind.__len__(wanted):
            return range(kind.__len__(wanted))
    return None


def _item(container: Any, key: Any) -> Any:
    """What a list, tuple or dict holds, whatever a subclass of the program's says."""
    kind = next(kind for kind in (dict, list, tuple) if is_a(container, kind))
    return kind.__getitem__(container, key)


def _same(got: Any, wanted: Any) -> bool:
    kinds = {type(got), type(wanted)}
    if type(wanted) in PLAIN and len(kinds) == 2 and kinds != {int, float}:
        return False
    try:
        if type(got) not in PLAIN and type(got) is not type(wanted):
            # Only the wanted value is asked: the other may say that it is equal to everything.
            is_equal: Any = type(wanted).__eq__
            return is_equal(wanted, got) is True
        return bool(got == wanted) or bool(got != got and wanted != wanted)
    except Exception:  # a learner's __eq__ may raise anything
        return False


def _none(name: str, wanted: Any = None) -> Unmet:
    """None where something is wanted. Only of a call's own result is it plain how that happens."""
    message = f"{name} is None"
    expected = "a torch.Tensor" if wanted is None else describe(wanted)
    if name != "the result":
        return Unmet(message, expected=expected)
    cause = "A function without `return` gives None."
    return Unmet(message, expected=expected, cause=cause, hint=advice.NONE)


def expect_tensor(got: Any, *, name: str = "the result") -> None:
    """`got` is a tensor."""
    _tensor(got, name)


def _tensor(got: Any, name: str) -> Tensor:
    """`got` as a plain tensor. Raises Unmet if it is none, by its type."""
    if got is None:
        raise _none(name)
    if not is_a(got, Tensor):
        raise Unmet(
            f"{name} is not a tensor",
            got=describe(got),
            expected="a torch.Tensor",
            hint=advice.NO_TENSOR,
        )
    plain: Tensor = plain_tensor(got)
    return plain


def expect_shape(
    got: Any, shape: Sequence[int], *, name: str = "the result", hint: str = ""
) -> None:
    """`got` is a tensor of exactly this shape."""
    got = _tensor(got, name)
    wanted = tuple(shape)
    if tuple(got.shape) != wanted:
        raise Unmet(
            f"{name} has the wrong shape",
            got=str(list(got.shape)),
            expected=str(list(wanted)),
            cause=cause_of_shape(tuple(got.shape), wanted),
            hint=hint or advice.SHAPE,
        )


def expect_dtype(got: Any, dtype: torch.dtype, *, name: str = "the result", hint: str = "") -> None:
    """`got` is a tensor of exactly this dtype."""
    got = _tensor(got, name)
    if got.dtype != dtype:
        raise Unmet(
            f"{name} has the wrong dtype",
            got=str(got.dtype),
            expected=str(dtype),
            hint=hint or advice.DTYPE,
        )


def expect_close(
    got: Any,
    wanted: Tensor,
    *,
    name: str = "the result",
    hint: str = "",
    shape_hint: str = "",
    dtype_hint: str = "",
    nan_hint: str = "",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    dtype: torch.dtype | None = None,
) -> None:
    """Same shape, dtype, device, and values within atol + rtol * |wanted|; NaN equals NaN.

    dtype: what `got` must have if that is not `wanted.dtype` (a float64 reference, say).
    """
    hints = Hints(hint, shape_hint, dtype_hint, nan_hint)
    _expect_tensor(got, wanted, name, hints, (rtol, atol), dtype or wanted.dtype)


def _expect_tensor(
    got: Any,
    wanted: Tensor,
    name: str,
    hints: Hints,
    tolerance: tuple[float, float],
    dtype: torch.dtype,
) -> None:
    """tolerance: relative and absolute; zeros for every bit."""
    got, wanted = _tensor(got, name), plain_tensor(wanted)
    expect_shape(got, wanted.shape, name=name, hint=hints.shape)
    expect_dtype(got, dtype, name=name, hint=hints.dtype)
    if got.device != wanted.device:
        raise Unmet(
            f"{name} is on the wrong device",
            got=str(got.device),
            expected=str(wanted.device),
            hint=advice.DEVICE,
        )
    a, b = _comparable(got, wanted)
    rtol, atol = tolerance
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
    cause = cause_of_values(a, b)
    raise Unmet(
        f"{name} {describe_tensor(got)} has {len(wrong)} of {same.numel()} values wrong",
        got=found,
        expected=right,
        where=place,
        cause=cause,
        hint=_hint_for(cause, hints),
    )


def _hint_for(cause: str, hints: Hints) -> str:
    """The hint that speaks of wrong values of this kind. Lost digits are a matter of dtypes."""
    if hints.nan and cause in NONFINITE:
        return hints.nan
    return hints.value or (hints.dtype if cause == PRECISION else "")


def _comparable(got: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Both as plain tensors, without history, in one dtype that holds either's values exactly.

    On the CPU, because not every device has float64.
    """
    a, b = (_detach(tensor).cpu() for tensor in (got, wanted))
    if a.dtype != b.dtype or a.dtype in (torch.float16, torch.bfloat16):
        wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
        return _as_dtype(a, wide), _as_dtype(b, wide)
    return a, b


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def expect_view(got: Any, base: Tensor, *, name: str = "the result", hint: str = "") -> None:
    """`got` shares its storage with `base`."""
    got, base = _tensor(got, name), plain_tensor(base)
    if _storage(got) != _storage(base):
        raise Unmet(
            f"{name} is a copy",
            got="a storage of its own",
            expected="a view of the input's storage",
            hint=hint,
        )


def expect_copy(got: Any, base: Tensor, *, name: str = "the result", hint: str = "") -> None:
    """`got` has a storage of its own."""
    got, base = _tensor(got, name), plain_tensor(base)
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
    tensors = tuple(plain_tensor(tensor) for tensor in tensors)
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


class Advised(Exception):
    """An error of the answer that the author has a hint for. error: as it was raised."""

    def __init__(self, error: Exception, hint: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.hint = hint


@contextmanager
def advising(kind: type[Exception], *, saying: str = "", hint: str) -> Iterator[None]:
    """Inside, an exception of this kind is reported as ever, with `hint` beside it.

    saying: only if this stands in its message. Without a hint of the author, an error gets the
    general one for its kind.
    """
    try:
        yield
    except kind as error:
        if saying not in str(error):
            raise
        raise Advised(error, hint) from error
