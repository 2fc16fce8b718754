"""What a value is by its real type, and tensors without the code of a learner's subclass.

`isinstance` believes an object's `__class__`, and a subclass of Tensor may answer every operation
itself. What judges asks `type` alone, and reads plain tensors.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

OWN_KINDS = (Tensor, Parameter)
"""Types of tensors without code of a program's."""
MOST_NESTED = 5
"""Containers within containers that are looked into."""

# By name, before a program of a learner's can put something else in their place.
_as_subclass = Tensor.as_subclass
_no_functions = torch._C.DisableTorchFunctionSubclass
_no_dispatch = torch._C._DisableTorchDispatch  # type: ignore[attr-defined, unused-ignore]


def is_a(value: object, kind: "type[Any] | tuple[type[Any], ...]") -> bool:
    """Whether a value's type is one of these or made from one, whatever its `__class__` says."""
    return issubclass(type(value), kind)


def plain_tensor(tensor: Any, kinds: tuple[type[Any], ...] = ()) -> Any:
    """The same data as a torch.Tensor if it is of a subclass of the program's, else the tensor.

    kinds: further subclasses that stay.
    """
    if type(tensor) in OWN_KINDS or type(tensor) in kinds or not is_a(tensor, Tensor):
        return tensor
    with _no_functions(), _no_dispatch():
        return _as_subclass(tensor, Tensor)


def plain_values(value: Any, kinds: tuple[type[Any], ...] = (), depth: int = MOST_NESTED) -> Any:
    """A value with plain tensors, in containers as well; the value itself if it has no others."""
    kind = type(value)
    if kind not in (list, tuple, dict):
        return plain_tensor(value, kinds)
    if depth == 0:
        return value
    if kind is dict:
        items = {key: plain_values(item, kinds, depth - 1) for key, item in value.items()}
        same = all(items[key] is item for key, item in value.items())
        return value if same else items
    row = [plain_values(item, kinds, depth - 1) for item in value]
    if all(map(lambda a, b: a is b, row, value)):
        return value
    return row if kind is list else tuple(row)
