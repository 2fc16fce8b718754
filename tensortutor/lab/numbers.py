"""Numbers out of whatever a program has: lists, tensors, arrays, and lists of tensors."""

import contextlib
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

import torch

NO_NUMBERS = "plot needs numbers, and this tensor has none that can be read."
Snapshot = Collection[Any] | torch.Tensor
SMALL = 1 << 16
"""Tensors of so many elements are copied when they are handed in: it takes microseconds."""


def is_number(value: Any) -> bool:
    """A single number: of Python or numpy, or a tensor of no dimension."""
    if isinstance(value, torch.Tensor):
        return value.dim() == 0
    if isinstance(value, (str, bytes)):
        return False
    return hasattr(value, "__float__") and not getattr(value, "shape", ())


def snapshot(values: Any) -> Snapshot:
    """Something that gives the same numbers later.

    Lists are held as they are, since they usually grow at the end: see `numbers`. Tensors and
    arrays change in place, so small ones are copied; what can be read only once is read now.
    Raises ValueError or TypeError, in a sentence, for what is no series of numbers.
    """
    if isinstance(values, torch.Tensor):
        return tensor_snapshot(values)
    if hasattr(values, "__array__"):
        return tensor_snapshot(torch.as_tensor(values))
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, Iterable):
        raise TypeError(f"plot needs numbers, and this is of the type {type(values).__name__}.")
    return values if isinstance(values, Collection) else list(values)


def tensor_snapshot(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of one dimension, detached."""
    if tensor.is_nested or tensor.is_meta:
        raise TypeError(NO_NUMBERS)
    shape = list(tensor.shape)
    if sum(size != 1 for size in shape) > 1:
        raise ValueError(
            f"plot draws one series of numbers, and this tensor has the shape {shape}. "
            "Plot one row of it, or see all of it with show() or image()."
        )
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    flat = (tensor.dequantize() if tensor.is_quantized else tensor).reshape(-1)
    if not tensor.is_complex():
        return flat.clone() if flat.numel() <= SMALL else flat
    raise TypeError("plot draws real numbers, and this tensor is complex: plot z.real or z.abs().")


def numbers(values: Snapshot, count: int) -> list[float]:
    """The first `count` values as floats, NaN where there is none.

    Raises TypeError, in a sentence, for an element that is no number.
    """
    if isinstance(values, torch.Tensor):
        floats: list[float] = values.cpu().to(torch.float64).tolist()
        return floats
    items = list(islice(values, count))
    kinds = set(map(type, items))
    if kinds <= {float}:
        return items
    if all(issubclass(kind, torch.Tensor) for kind in kinds):
        items = scalars(items)
    return [number(item) for item in items]


def scalars(items: list[torch.Tensor]) -> list[Any]:
    """The values of tensors of one kind; other tensors as they are."""
    # Stacked, they are read at once: ten times as fast, and with one transfer from a GPU.
    if len({(t.device, t.dtype, t.shape) for t in items}) > 1 or items[0].dim():
        return items
    with torch.no_grad(), contextlib.suppress(RuntimeError):  # `number` says what is wrong
        values: list[Any] = torch.stack(items).tolist()
        return values
    return items


def number(item: Any) -> float:
    """One element as a float."""
    try:
        if isinstance(item, torch.Tensor):
            return float(item.detach().item())
        if item is None:
            return float("nan")
        if not isinstance(item, (str, bytes)):
            return float(item)
    except OverflowError:
        return float("inf") if item > 0 else float("-inf")
    except (TypeError, ValueError, RuntimeError):
        pass
    tensor = isinstance(item, torch.Tensor)
    what = f"a tensor of shape {list(item.shape)}" if tensor else f"a {type(item).__name__}"
    raise TypeError(f"plot needs numbers, and there is {what} among them.")


def kept(values: Any) -> Any:
    """Something that gives the same values later, or nearly: small tensors are copied.

    Lists are held as they are, their tensors too unless they are series of their own.
    """
    if isinstance(values, torch.Tensor):
        tensor = values.detach()
        return tensor.clone() if tensor.numel() <= SMALL and not tensor.is_nested else tensor
    if hasattr(values, "__array__"):
        return kept(torch.as_tensor(values)) if is_numeric(values) else values
    if isinstance(values, dict):
        return {label: kept(part) for label, part in values.items()}
    if isinstance(values, (list, tuple)) and values and getattr(values[0], "shape", ()):
        return (
            type(values)([kept(part) for part in values])
            if type(values) in (list, tuple)
            else values
        )
    if isinstance(values, Iterable) and not isinstance(values, Collection):
        return list(values)
    return values


def is_numeric(array: Any) -> bool:
    """An array of numbers, not of strings or objects."""
    return getattr(getattr(array, "dtype", None), "kind", "f") in "biuf"
