"""Short words for values: `f32[2, 3]`, as the lens and the checks show them."""

import itertools
import re
from collections import OrderedDict
from typing import Any

import torch

from tensortutor.checking.plain_values import is_a, plain_tensor

SHORT = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
BY_NAME = {str(dtype).removeprefix("torch."): word for dtype, word in SHORT.items()}
LONGEST = 60
MOST, FEWEST = 6, 3
"""Items of a container that are shown: so many if they are short, else so few."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
"""Says nothing to a learner: such a value is told by its type."""


def describe(value: Any) -> str:
    """A value in a few words: tensors by dtype and shape, containers by their first items."""
    if is_a(value, torch.Tensor):
        return describe_tensor(plain_tensor(value))
    if is_a(value, torch.device):
        return str(value)
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return describe_array(value)
    if is_a(value, (torch.nn.Module, torch.optim.Optimizer)):
        return type(value).__name__
    if type(value) in (list, tuple):
        comma = "," if type(value) is tuple and len(value) == 1 else ""
        items = listed([describe(item) for item in value[:MOST]], len(value)) + comma
        return f"[{items}]" if type(value) is list else f"({items})"
    if is_a(value, tuple) and hasattr(value, "_fields"):
        return describe_named(value)
    if type(value) in (dict, OrderedDict):
        some = itertools.islice(value.items(), MOST)
        pairs = [f"{describe(key)}: {describe(item)}" for key, item in some]
        return f"{{{listed(pairs, len(value))}}}"
    if type(value) in (set, frozenset) and value:
        items = listed(sorted(map(describe, value))[:MOST], len(value))  # a set has no order
        return f"{{{items}}}"
    try:
        if callable(value) and hasattr(value, "__name__"):
            return str(value.__name__)
        text = repr(value)
        return with_article(type(value).__name__) if ADDRESS.search(text) else shorten(text)
    except Exception as error:  # a learner's __repr__ may raise anything
        return f"<{type(value).__name__}: repr raised {type(error).__name__}>"


def listed(words: list[str], count: int) -> str:
    """The first items of a container of so many, as words. Up to six short ones are all shown."""
    text = ", ".join(words)
    if len(words) == count and (count <= FEWEST or len(text) <= LONGEST):
        return text
    return f"{', '.join(words[:FEWEST])}, … {count} in all"


def describe_tensor(tensor: torch.Tensor) -> str:
    """`f32[2, 3]`, with the device if it is not the CPU."""
    dtype = SHORT.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
    where = "" if tensor.device.type == "cpu" else f" {tensor.device}"
    return f"{dtype}[{', '.join(map(str, tensor.shape))}]{where}"


def describe_named(value: Any) -> str:
    """`Pair(image=f32[3], label=i64[])`: a named tuple."""
    items = zip(value._fields, tuple.__iter__(value), strict=False)
    words = ", ".join(f"{name}={describe(item)}" for name, item in items)
    return f"{type(value).__name__}({words})"


def describe_array(array: Any) -> str:
    """`array f64[2, 3]`: a NumPy array, with its strides in elements if it is not contiguous."""
    dtype = BY_NAME.get(str(array.dtype), str(array.dtype))
    strides = tuple(step // array.itemsize for step in array.strides)
    where = "" if array.flags.c_contiguous else f" strides {strides}"
    return f"array {dtype}[{', '.join(map(str, array.shape))}]{where}"


def describe_kind(value: Any) -> str:
    """What kind of thing a value is. No code of its own runs, its items stay unseen."""
    if value is None:
        return "None"
    if type(value) is torch.Tensor:
        return describe_tensor(value)
    count = f" of {len(value)}" if type(value) in (list, tuple, dict) else ""
    return f"{with_article(type(value).__name__)}{count}"


def with_article(word: str) -> str:
    """The word with its article."""
    return f"{'an' if word[:1].lower() in tuple('aeiou') else 'a'} {word}"


def describe_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """`split_heads(f32[2, 3, 20], 4)`, with the strides of what is not contiguous."""
    words = [describe(arg) + layout(arg) for arg in args]
    words += [f"{key}={describe(value)}{layout(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(words)})"


def layout(value: Any) -> str:
    """How a tensor lies in memory, where that is not as its shape says: ` strides (1, 6)`."""
    if type(value) is not torch.Tensor or value.layout != torch.strided:
        return ""
    strides = "" if value.is_contiguous() else f" strides {value.stride()}"
    offset = value.storage_offset()
    return f"{strides} offset {offset}" if offset else strides


def describe_values(got: torch.Tensor, wanted: torch.Tensor) -> tuple[str, str]:
    """Two 0-d tensors that differ, with as many digits as it takes to tell them apart."""
    a, b = got.item(), wanted.item()
    if isinstance(a, float) and isinstance(b, float):
        short = f"{a:.6g}", f"{b:.6g}"
        return short if short[0] != short[1] else (repr(a), repr(b))
    return str(a), str(b)


def shorten(text: str, longest: int = LONGEST) -> str:
    """At most so many characters, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
