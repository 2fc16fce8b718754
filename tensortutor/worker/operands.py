"""A program's values, looked up and described without running any of its code.

Attributes come from dictionaries and slots, never from properties or `__getattr__`; tensors are
asked only what their own C code answers. A value that cannot be had so is `MISSING`.
"""

import ast
import inspect
import types
from collections import OrderedDict, defaultdict
from typing import Any

import torch

from tensortutor.checking.describe import SHORT
from tensortutor.protocol.scene import Operand
from tensortutor.worker import access
from tensortutor.worker.access import is_module, is_tensor
from tensortutor.worker.syntax import key_of

MISSING: Any = object()
PLAIN = (int, float, complex, str, bool, type(None), torch.dtype, torch.device, torch.Size)
TENSORS = tuple(
    kind
    for kind in (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", None))
    if isinstance(kind, type)
)
"""Types whose attributes are torch's own."""
OF_TENSORS = ("shape", "ndim", "dtype", "device", "requires_grad", "is_leaf")
TABLES = (dict, OrderedDict, defaultdict)
MOST_VALUES = 100_000
"""Elements of a tensor whose range is still looked for."""
MOST_DIMENSIONS = 16
LONGEST = 60


def resolve(node: ast.expr, frame: types.FrameType) -> Any:
    """The value of a chain of names in a frame, or MISSING."""
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals):
            if node.id in names:
                return names[node.id]
        return MISSING
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, frame)
        return MISSING if owner is MISSING else attribute(owner, node.attr)
    if isinstance(node, ast.Subscript):
        owner, key = resolve(node.value, frame), _key(node.slice, frame)
        return MISSING if MISSING in (owner, key) else item(owner, key)
    return MISSING


def _key(index: ast.expr, frame: types.FrameType) -> Any:
    node = key_of(index)
    key = MISSING
    if isinstance(node, ast.Constant):
        key = node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        key = -node.operand.value if type(node.operand.value) is int else MISSING
    elif isinstance(node, ast.Name):
        key = resolve(node, frame)
    return key if type(key) in (int, str) else MISSING


def attribute(owner: Any, name: str) -> Any:
    """An attribute that is stored, not computed."""
    if isinstance(owner, types.ModuleType):
        return types.ModuleType.__getattribute__(owner, "__dict__").get(name, MISSING)
    if is_tensor(owner):
        return _of_tensor(owner, name)
    if is_module(owner):
        for table in tables_of(owner):
            if name in table:
                return table[name]
    found = inspect.getattr_static(owner, name, MISSING)
    if isinstance(found, types.MemberDescriptorType) or type(found).__name__ == "_tuplegetter":
        return found.__get__(owner)  # a slot, or a field of a named tuple
    return MISSING if hasattr(type(found), "__get__") else found


def _of_tensor(owner: torch.Tensor, name: str) -> Any:
    if type(owner) not in TENSORS:
        return MISSING
    if name in ("T", "mT"):  # of other ranks than 2, torch warns or refuses
        return getattr(owner, name) if owner.ndim == 2 and not in_a_mode() else MISSING
    if name in OF_TENSORS:
        return getattr(owner, name)
    if name == "grad" and owner.is_leaf:  # of others it is None, and asking gives a warning
        return owner.grad
    return vars(owner).get(name, MISSING)


def item(owner: Any, key: Any) -> Any:
    """An item of a list, tuple, dictionary or container of modules."""
    kind = type(owner)
    if kind in TABLES:
        return dict.get(owner, key, MISSING)
    if kind is list or (isinstance(owner, tuple) and kind.__getitem__ is tuple.__getitem__):
        return owner[key] if type(key) is int and -len(owner) <= key < len(owner) else MISSING
    if is_module(owner):
        children = tables_of(owner)[2]
        if type(key) is int:
            values = list(children.values())
            return values[key] if -len(values) <= key < len(values) else MISSING
        return children.get(key, MISSING)
    return MISSING


def tables_of(module: Any) -> tuple[dict[str, Any], ...]:
    """A module's parameters, buffers, children and other attributes."""
    own = object.__getattribute__(module, "__dict__")
    inner = (own.get(name) for name in ("_parameters", "_buffers", "_modules"))
    return (*(table if isinstance(table, dict) else {} for table in inner), own)


def in_a_mode() -> bool:
    """Some mode would see what is done with a tensor now."""
    return bool(torch._C._len_torch_dispatch_stack())


def describe(value: Any, name: str, roles: tuple[str, ...]) -> Operand | None:
    """What there is to say about a value; None for functions, classes and Python modules."""
    kind = type(value)
    if is_tensor(value):
        return _describe_tensor(value, name, roles)
    if kind in PLAIN:
        return Operand(name, roles, kind.__name__, values=_shown(value))
    if kind in (list, tuple):
        plain = len(value) <= 8 and all(type(entry) in PLAIN for entry in value)
        words = _shown(value) if plain else f"{len(value)} items"
        return Operand(name, roles, kind.__name__, values=words)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        shape = tuple(value.shape)[:MOST_DIMENSIONS]
        dtype = str(value.dtype.name)[:LONGEST]
        return Operand(name, roles, "NumPy array", dtype, shape, "cpu")
    if isinstance(value, (type, types.ModuleType)) or hasattr(kind, "__get__"):
        return None
    if kind.__module__ == "builtins" and kind not in TABLES:
        return None
    return Operand(name, roles, kind.__name__[:LONGEST])


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, (torch.dtype, torch.device)) else repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _describe_tensor(value: torch.Tensor, name: str, roles: tuple[str, ...]) -> Operand:
    kind = type(value).__name__[:LONGEST]
    if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return Operand(name, roles, kind)  # even its shape may be an answer of its own code
    return Operand(
        name,
        roles,
        kind,
        access.short_dtype(value.dtype),
        () if value.is_nested else tuple(value.shape)[:MOST_DIMENSIONS],
        str(value.device),
        value.requires_grad,
        value.is_leaf,
        value.layout is torch.strided and not value.is_nested and value.is_contiguous(),
        range_of(value),
    )


def range_of(value: torch.Tensor) -> str:
    """The least and the greatest of a small tensor's values, and how many are NaN."""
    if not _is_readable(value):
        return ""
    with torch.no_grad():
        numbers = value.detach()
        if value.is_floating_point():
            missing = int(numbers.isnan().sum())
            numbers = numbers[~numbers.isnan()].double()
        else:
            missing = 0
        words = []
        if numbers.numel():
            low, high = (end.item() for end in numbers.aminmax())
            words.append(_number(low) if low == high else f"{_number(low)} to {_number(high)}")
        if missing:
            words.append(f"{missing} NaN")
    return ", ".join(words)


def _is_readable(value: torch.Tensor) -> bool:
    """Its values can be read here: on this machine, in memory of its own, by no mode's leave."""
    if type(value) not in TENSORS or value.device.type != "cpu" or in_a_mode():
        return False
    if value.is_nested or value.layout is not torch.strided or value.is_quantized:
        return False
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return False
    if value.is_complex() or value.dtype not in SHORT or value.dtype is torch.bool:
        return False
    if not 0 < value.numel() <= MOST_VALUES:
        return False
    # Storage may have been given back (`resize_(0)`): reading it would end the process.
    return access.bytes_reached(value) <= access.storage_bytes(value)


def _number(value: float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
