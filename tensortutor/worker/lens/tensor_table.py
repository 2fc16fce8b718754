"""The table of tensors: what they are, what they hold, which of them share storage."""

from dataclasses import replace
from typing import Any

import torch

from tensortutor.protocol.lens import (
    MOST_TENSORS,
    Sample,
    Scope,
    Stats,
    Storage,
    TensorInfo,
    Tensors,
)
from tensortutor.worker import access
from tensortutor.worker.lens import tensor_values
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.modules import parameters_of
from tensortutor.worker.lens.object_finder import Found

MOST_CELLS = 40_000
"""Values in all samples together: the event must stay well below the size of a frame."""
MOST_STORAGES_SHOWN = 60
LONGEST_NAME = 80
LATE = "there was no time left to look at its values"


def tensors_of(
    found: Found, scopes: tuple[Scope, ...], budget: Budget, *, parameters: bool = True
) -> Tensors:
    """The table: the names, then the modules' parameters.

    First what each tensor is, then, as far as time allows, its values.
    """
    entries = found.tensors[:MOST_TENSORS]
    inner = parameters_of(found.modules) if parameters else ()
    further = [("", name, tensor) for name, tensor in inner]
    entries += further[: max(0, MOST_TENSORS - len(entries))]
    storages = Storages()
    infos = [describe(scope, name, tensor, storages) for scope, name, tensor in entries]
    # The small ones first, so that a large one takes the time of no other.
    order = sorted(range(len(infos)), key=lambda index: infos[index].bytes)
    for index in order:
        infos[index] = with_stats(infos[index], entries[index][2], budget)
    room = MOST_CELLS
    for index in order:
        sample = sample_of(infos[index], entries[index][2], budget) if room > 0 else None
        if sample is not None:
            room -= len(sample.values)
            infos[index] = replace(infos[index], sample=sample)
    left_out = found.left_out + len(found.tensors) + len(further) - len(entries)
    return Tensors(tuple(infos), storages.told(budget), scopes, left_out)


def describe(scope: str, name: str, tensor: Any, storages: "Storages") -> TensorInfo:
    """What a tensor is, without a look at its values. Never raises."""
    try:
        return _describe(scope, name, tensor, storages)
    except Exception as error:  # a broken wrapper, a symbolic shape, a poisoned device
        why = f"torch refuses to tell: {type(error).__name__}: {error}"
        kind = access.class_name(tensor)
        return TensorInfo(
            access.cut(name, LONGEST_NAME), kind, kind, "", (), "", scope, word=access.cut(why)
        )


def _describe(scope: str, name: str, tensor: Any, storages: "Storages") -> TensorInfo:
    layout = access.get_layout(tensor)
    nested = access.get_is_nested(tensor)
    plain = layout is torch.strided and not nested
    shape = () if nested else access.shape_of(tensor)
    itemsize = access.Base.element_size(tensor)
    function = access.get_grad_fn(tensor)
    grad = access.gradient(tensor)
    name = access.cut(name, LONGEST_NAME)
    return TensorInfo(
        name=name,
        words=access.words(tensor),
        kind=access.class_name(tensor),
        dtype=access.dtype_name(access.get_dtype(tensor)),
        shape=shape,
        device=str(access.get_device(tensor)),
        scope=scope,
        layout="nested" if nested else access.dtype_name(layout),
        stride=tuple(map(int, access.Base.stride(tensor))) if plain else (),
        offset=int(access.Base.storage_offset(tensor)) if plain else 0,
        contiguous=bool(access.Base.is_contiguous(tensor)) if plain else False,
        itemsize=itemsize,
        bytes=int(access.Base.numel(tensor)) * itemsize if plain else 0,
        held=tensor_values.held_bytes(tensor) if plain else 0,
        storage=storages.note(f"{scope}: {name}" if scope else name, tensor) if plain else 0,
        requires_grad=access.get_requires_grad(tensor),
        leaf=access.get_is_leaf(tensor),
        grad_fn="" if function is None else access.cut(str(function.name())),
        grad="" if grad is None else access.words(grad),
        version=-1 if access.Base.is_inference(tensor) else int(access.get_version(tensor)),
        word=tensor_values.why_unreadable(tensor),
    )


def with_stats(info: TensorInfo, tensor: Any, budget: Budget) -> TensorInfo:
    """The values in numbers, and the gradient's norm."""
    if info.word:
        return info
    if not budget.left(0.3):
        return replace(info, word=LATE)
    try:
        stats: Stats | None = tensor_values.stats(tensor)
        grad = access.gradient(tensor)
        norm = None if grad is None else tensor_values.norm(grad)
    except Exception as error:  # a dtype without the operators, a poisoned device
        return replace(info, word=access.cut(f"no values: {type(error).__name__}: {error}"))
    return replace(info, stats=stats, grad_norm=norm)


def sample_of(info: TensorInfo, tensor: Any, budget: Budget) -> Sample | None:
    """Values for a heat map, None where there are none or no time."""
    if info.stats is None or not info.stats.count or not budget.left(0.2):
        return None
    try:
        return tensor_values.sample(tensor)
    except Exception:  # as for the stats; the word for it is there already
        return None


class Storages:
    """Numbers the storages in the order in which they are met."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], int] = {}
        self._first: list[Any] = []
        self._names: list[list[str]] = []

    def note(self, name: str, tensor: Any) -> int:
        """The id of a tensor's storage; 0 if it does not tell."""
        try:
            storage = access.Base.untyped_storage(tensor)
        except Exception:  # wrappers have none
            return 0
        key = (str(access.get_device(tensor)), int(storage._cdata))
        if key not in self._ids:
            self._ids[key] = len(self._ids) + 1
            self._first.append(tensor)
            self._names.append([])
        self._names[self._ids[key] - 1].append(name)
        return self._ids[key]

    def told(self, budget: Budget) -> tuple[Storage, ...]:
        """All of them; the cells of the first few, of shared ones before others."""
        order = sorted(range(len(self._first)), key=lambda i: len(self._names[i]) < 2)
        shown = set(order[:MOST_STORAGES_SHOWN])
        return tuple(self._tell(index, index in shown, budget) for index in range(len(self._first)))

    def _tell(self, index: int, shown: bool, budget: Budget) -> Storage:
        tensor = self._first[index]
        storage = Storage(
            index + 1, str(access.get_device(tensor)), access.storage_bytes(tensor),
            tuple(self._names[index]),
        )  # fmt: skip
        if not shown or not budget.left(0.1) or tensor_values.why_unreadable(tensor):
            return storage
        try:
            cells = tensor_values.cells(tensor)
        except Exception:  # as for the stats
            return storage
        return replace(storage, dtype=access.dtype_name(access.get_dtype(tensor)), cells=cells)
