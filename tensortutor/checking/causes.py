"""Guesses at why a result is wrong, offered only when they explain every element."""

import itertools

import torch
from torch import Tensor, isclose

PRECISION = (
    "Off by less than a thousandth: precision was lost on the way, or a small term is wrong."
)
NONFINITE = "There is NaN where a number belongs.", "There is infinity where a number belongs."
MOST_DIMS = 4
"""Permutations of more dimensions than this are not tried (5! comparisons add little)."""


def cause_of_shape(got: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """A sentence about two shapes that differ, or ""."""
    if sorted(got) == sorted(wanted):
        return "The same sizes in another order: dimensions are transposed."
    if without_ones(got) == without_ones(wanted):
        if len(got) < len(wanted):
            return "A dimension of size 1 was dropped: squeeze() takes all of them."
        return "There is a dimension of size 1 too many."
    if len(got) == len(wanted) + 1 and is_subsequence(wanted, got):
        return "One dimension is still there that should have been reduced or dropped."
    if len(got) + 1 == len(wanted) and is_subsequence(got, wanted):
        return "One dimension is missing."
    if product(got) == product(wanted):
        return "As many elements, but grouped otherwise."
    return ""


def cause_of_values(got: Tensor, wanted: Tensor) -> str:
    """A sentence if one simple mistake turns `wanted` into `got`, or "". Same shapes."""
    if got.dtype == torch.bool:
        return "Every value is inverted." if bool((got != wanted).all()) else ""
    a, b = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in (got, wanted))
    strange = cause_of_nonfinite(a, b)
    if strange:
        return strange
    if bool(isclose(a, b, rtol=1e-3, atol=0.0, equal_nan=True).all()):
        return PRECISION
    if a.numel() < 2:
        return ""
    if bool((a == 0).all()):
        return "Every value is zero."
    if close(a, -b):
        return "The sign is turned round everywhere."
    order = transposition(a, b)
    if order:
        return f"These are the right values with the dimensions permuted as {order}."
    factor = constant_factor(a, b)
    if factor is not None:
        return f"Every value is {factor:.4g} times what it should be."
    offset = (a - b).flatten()
    if close(offset, offset[0].expand_as(offset)):
        return f"Every value is off by {offset[0].item():.4g}."
    return cause_of_order(a, b)


def cause_of_nonfinite(a: Tensor, b: Tensor) -> str:
    """NaN or infinity where a number belongs."""
    if bool((a.isnan() & ~b.isnan()).any()):
        return NONFINITE[0]
    if bool((a.isinf() & ~b.isinf()).any()):
        return NONFINITE[1]
    return ""


def cause_of_order(a: Tensor, b: Tensor) -> str:
    """The right values in the wrong places."""
    for dim in range(b.ndim):
        if b.shape[dim] > 1 and close(a, b.flip(dim)):
            return f"The right values, reversed along dimension {dim}."
        if b.shape[dim] > 2 and close(a, b.roll(1, dim)):
            return f"The right values, shifted by one along dimension {dim}."
    if not a.is_complex() and close(a.flatten().sort().values, b.flatten().sort().values):
        return "The right values, but in the wrong places."
    return ""


def transposition(a: Tensor, b: Tensor) -> tuple[int, ...]:
    """The permutation of dimensions that turns `b` into `a`, or ()."""
    if not 2 <= b.ndim <= MOST_DIMS:
        return ()
    for order in itertools.permutations(range(b.ndim)):
        if order != tuple(range(b.ndim)):
            turned = b.permute(order)
            if turned.shape == a.shape and close(a, turned):
                return order
    return ()


def constant_factor(a: Tensor, b: Tensor) -> float | None:
    """The number c with a = c * b, if there is one other than 0 and 1."""
    if a.is_complex():
        return None
    used = b != 0
    if int(used.sum()) < 2 or bool((a[~used] != 0).any()):
        return None
    ratios = a[used] / b[used]
    first = ratios[0]
    if bool(first == 0) or not close(ratios, first.expand_as(ratios)):
        return None
    return float(first)


def close(a: Tensor, b: Tensor) -> bool:
    """All elements agree within the tolerance that explanations use: relative to the largest."""
    if a.shape != b.shape:
        return False
    finite = b[b.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return bool(isclose(a, b, rtol=1e-3, atol=1e-6 * largest, equal_nan=True).all())


def without_ones(shape: tuple[int, ...]) -> list[int]:
    """The sizes other than 1."""
    return [size for size in shape if size != 1]


def is_subsequence(short: tuple[int, ...], long: tuple[int, ...]) -> bool:
    """`short` is `long` with some items left out."""
    rest = iter(long)
    return all(size in rest for size in short)


def product(shape: tuple[int, ...]) -> int:
    """The number of elements."""
    count = 1
    for size in shape:
        count *= size
    return count
