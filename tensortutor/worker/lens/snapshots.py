"""What is kept of a value seen at a line: never the value itself, so that nothing lives longer."""

import weakref
from collections.abc import Mapping
from types import FunctionType
from typing import Any, NamedTuple

import torch

from tensortutor.worker import access
from tensortutor.worker.lens.statements import Path

LARGEST_CHECKED = 1 << 20
"""Elements of a tensor that is searched for NaN at a line."""
LONGEST_TUPLE = 8
LONGEST_STRING = 100
MISSING = object()
NONFINITE = ("nan", "inf")
PLAIN = (int, float, bool, str, type(None))
dispatch_on = torch._C._len_torch_dispatch_stack
profiling = torch._C._autograd._profiler_enabled
tracing = torch._C._get_tracing_state
transforming = torch._C._functorch.peek_interpreter_stack


class TensorSnapshot(NamedTuple):
    """A tensor in passing. shape: a torch.Size. start: where its storage begins, 0 if unknown."""

    shape: Any
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    start: int = 0


class LearnerFunction(NamedTuple):
    """A function of the learner's, or a module with a `forward` of the learner's."""

    code: Any


class ModuleRef(NamedTuple):
    """A module of torch's own, if it is still there."""

    module: "weakref.ref[torch.nn.Module]"


def tensor_snapshot(value: Any, *, where: bool = False) -> TensorSnapshot | None:
    """What there is to see of a tensor, None of anything else. where: its storage too."""
    if not access.is_tensor(value):
        return None
    try:
        with torch._C.DisableTorchFunction():
            start = 0
            if where and access.get_layout(value) is torch.strided:
                start = access.Base.data_ptr(value)
                start -= access.Base.storage_offset(value) * access.Base.element_size(value)
            return TensorSnapshot(
                access.get_shape(value), access.get_dtype(value), access.get_device(value),
                access.get_requires_grad(value), start,
            )  # fmt: skip
    except Exception:  # a wrapper that does not tell; it has its word in the table of tensors
        return None


def operand_snapshot(value: Any, path: str, *, where: bool) -> Any:
    """What an operand was: a snapshot, a plain value; MISSING if nothing of interest.

    path: the learner's file. where: see `tensor_snapshot`.
    """
    kind = type(value)
    if kind in PLAIN:
        return value if kind is not str or len(value) <= LONGEST_STRING else MISSING
    if kind is FunctionType:
        return LearnerFunction(value.__code__) if value.__code__.co_filename == path else MISSING
    if kind in (tuple, list, torch.Size):
        if len(value) <= LONGEST_TUPLE and all(type(item) is int for item in value):
            return tuple(value)
        if len(value) <= LONGEST_TUPLE and all(access.is_tensor(item) for item in value):
            return tuple(tensor_snapshot(item, where=where) or MISSING for item in value)
        return MISSING
    seen = tensor_snapshot(value, where=where)
    if seen is not None:
        return seen
    if kind is torch.dtype or kind is torch.device:
        return value
    if access.is_module(value):
        forward = getattr(kind, "forward", None)
        if type(forward) is FunctionType and forward.__code__.co_filename == path:
            return LearnerFunction(forward.__code__)
        return ModuleRef(weakref.ref(value)) if kind.__module__.startswith("torch.nn.") else MISSING
    return MISSING


def value_at(path: Path, names: Mapping[str, Any], globals_: Mapping[str, Any]) -> Any:
    """The value that a way leads to, MISSING if it leads nowhere without running code."""
    value = names.get(path[0], MISSING)
    if value is MISSING:
        value = globals_.get(path[0], MISSING)
    for part in path[1:]:
        if value is MISSING:
            break
        value = _inside(value, part)
    return value


def _inside(value: Any, part: str) -> Any:
    if part[0] == ".":
        if access.is_tensor(value):
            return _of_tensor(value, part[1:])
        found = access.attribute(value, part[1:])
        return MISSING if found is None else found
    kind = type(value)
    try:
        if kind is dict and part[1] == '"':
            return value.get(part[2:-2], MISSING)
        if kind in (dict, list, tuple) and part[1] != '"':
            return value[int(part[1:-1])]
    except (LookupError, ValueError):
        return MISSING
    return MISSING


def _of_tensor(value: Any, name: str) -> Any:
    if name == "grad":
        found = access.gradient(value)
        return MISSING if found is None else found
    return value if name == "data" else MISSING


def may_compute() -> bool:
    """Nobody would notice an operator: no mode, profiler, tracing or transform of the program."""
    return not (dispatch_on() or profiling() or tracing() is not None or transforming() is not None)


def nonfinite(value: Any, seen: TensorSnapshot) -> tuple[str, ...] | None:
    """Whether a CPU tensor holds "nan", "inf", both or neither; None where that is not looked at.

    Where computing would be noticed by the program, it is not done.
    """
    if seen.device.type != "cpu" or not 0 < seen.shape.numel() <= LARGEST_CHECKED:
        return None
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or not may_compute():
        return None
    with torch._C.DisableTorchFunction():
        if value.layout is not torch.strided or not value.data_ptr():
            return None
        values = value.detach()
        # NaN and infinity survive a sum; one over finite values may come out infinite, too.
        total = (values.sum() if values.dim() else values).item()
        if total - total == 0:
            return ()
        found = (bool(values.isnan().any()), bool(values.isinf().any()))
    return tuple(kind for kind, there in zip(NONFINITE, found, strict=True) if there)
