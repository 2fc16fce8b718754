"""Looks at a learner's objects without running any of the learner's code.

A class may define `__getattr__`, properties, `__torch_function__`, `__repr__`: none of them is
called. Attributes are read from instance dictionaries, and tensors through the base class's own
descriptors while torch's overrides are switched off.
"""

import contextlib
import warnings
from collections.abc import Iterator
from types import GetSetDescriptorType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from tensortutor.checking.describe import SHORT
from tensortutor.protocol.lens import LONGEST_TEXT

Base: Any = torch._C.TensorBase
get_shape = Base.shape.__get__
get_dtype = Base.dtype.__get__
get_device = Base.device.__get__
get_layout = Base.layout.__get__
get_grad_fn = Base.grad_fn.__get__
get_requires_grad = Base.requires_grad.__get__
get_is_leaf = Base.is_leaf.__get__
get_retains_grad = Base.retains_grad.__get__
get_version = Base._version.__get__
get_is_nested = Base.is_nested.__get__
get_is_quantized = Base.is_quantized.__get__
get_grad = Base.grad.__get__
set_compiler: Any = torch._C._dynamo.eval_frame.set_eval_frame
"""Takes what torch.compile does with a Python function that is called; gives what it was."""
NO_DISPATCH = torch.Tensor.__torch_dispatch__


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """What is done inside is not seen by the program's modes, subclasses, warnings, compilers."""
    # Not `catch_warnings`: it makes Python forget which warnings it has shown already.
    show, warnings.showwarning = warnings.showwarning, lambda *_, **__: None
    compiler = set_compiler(None)
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad(), _disable_current_modes():
            yield
    finally:
        warnings.showwarning = show
        set_compiler(compiler)


def is_tensor(value: Any) -> bool:
    """`isinstance` would ask `value.__class__`, which a class may define."""
    return torch.Tensor in type(value).__mro__


def is_module(value: Any) -> bool:
    """A torch.nn.Module."""
    return torch.nn.Module in type(value).__mro__


def is_plain(tensor: Any) -> bool:
    """Computing with it runs torch's own code alone: nobody has redefined what operators do."""
    return type(tensor).__torch_dispatch__ is NO_DISPATCH and not _is_wrapped(tensor)


def _is_wrapped(tensor: Any) -> bool:
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def attributes(value: Any) -> dict[str, Any]:
    """The instance dictionary, {} if there is none."""
    for kind in type(value).__mro__:
        holder = vars(kind).get("__dict__")
        if holder is not None:
            if type(holder) is not GetSetDescriptorType:
                return {}  # a property of the learner's stands in its place
            found = holder.__get__(value)
            return found if type(found) is dict else {}
    return {}


def attribute(value: Any, name: str) -> Any:
    """An instance attribute, a module's parameter, buffer or child; None if it is not plain."""
    own = attributes(value)
    if name in own:
        return own[name]
    if is_module(value):
        for kind in ("_parameters", "_buffers", "_modules"):
            inner = own.get(kind)
            if type(inner) is dict and name in inner:
                return inner[name]
    return None


def plain(tensor: Any) -> torch.Tensor:
    """The same values as a torch.Tensor of no class of the learner's and of no graph."""
    return torch.Tensor.detach(Base.as_subclass(tensor, torch.Tensor))


def gradient(tensor: Any) -> Any:
    """`.grad`, or None. Asking a tensor that keeps none would print a warning."""
    if get_is_leaf(tensor) or get_retains_grad(tensor):
        return get_grad(tensor)
    return None


def bytes_reached(tensor: Any) -> int:
    """Bytes of its storage up to the end of its last element."""
    last = sum((n - 1) * s for n, s in zip(shape_of(tensor), Base.stride(tensor), strict=True))
    element = Base.element_size(tensor)
    return int((Base.storage_offset(tensor) + last + 1) * element)


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Plain numbers. Raises TypeError on a symbolic shape."""
    return tuple(map(int, get_shape(tensor)))


def storage_bytes(tensor: Any) -> int:
    """What is left of its storage."""
    return int(Base.untyped_storage(tensor).nbytes())


def dtype_name(dtype: torch.dtype) -> str:
    """As torch names it, without "torch."."""
    return str(dtype).removeprefix("torch.")


def words(tensor: Any) -> str:
    """`f32[64, 1]`, and the device if it is not the CPU. Raises what torch raises."""
    return dtype_and_shape(get_dtype(tensor), sizes(tensor), str(get_device(tensor)))


def sizes(tensor: Any) -> str:
    """The shape inside the brackets."""
    if get_is_nested(tensor) and get_layout(tensor) is torch.strided:
        return f"nested, {Base.size(tensor, 0)} parts"  # it has no shape to ask for
    return ", ".join(map(str, get_shape(tensor)))


def words_of_shape(dtype: torch.dtype, shape: tuple[int, ...], device: str = "cpu") -> str:
    """The words of a tensor that is not at hand any more."""
    return dtype_and_shape(dtype, ", ".join(map(str, shape)), device)


def dtype_and_shape(dtype: torch.dtype, inside: str, device: str) -> str:
    """`f32[64, 1]`, and the device if it is not the CPU."""
    where = "" if device == "cpu" else f" {device}"
    return cut(f"{short_dtype(dtype)}[{inside}]{where}")


def short_dtype(dtype: torch.dtype) -> str:
    """`f32`; as torch names it where there is no short name."""
    return SHORT.get(dtype, dtype_name(dtype))


def class_name(value: Any) -> str:
    """The class, in a few characters."""
    return cut(str(type(value).__name__))


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """At most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
