"""What the values of a tensor are like, at a bounded price."""

import math
from typing import Any

import torch

from tensortutor.protocol.lens import CELLS, SIDE, Sample, Stats
from tensortutor.worker import access

MOST_VALUES = 1 << 16
"""A tensor with more values is sampled."""
SAMPLED = 1 << 12
"""To about so many: each may lie on a page of memory of its own."""
LARGEST_NORM = 1 << 22
"""Elements. A larger tensor's norm would take too long."""


def why_unreadable(tensor: Any) -> str:
    """Why there are no values to look at, in a word; "" if there are. Runs no operator."""
    if not access.is_plain(tensor):
        return "a class with operators of its own; its values are not looked at"
    layout = access.get_layout(tensor)
    if access.get_is_nested(tensor):
        return "nested; its parts are not looked at"
    if layout is not torch.strided:
        return f"{access.dtype_name(layout)}{stored(tensor)}; its values are not looked at"
    device = access.get_device(tensor)
    if device.type == "meta":
        return "on meta: a shape without values"
    if access.get_is_quantized(tensor):
        return "quantised; its values are not looked at"
    if access.Base.numel(tensor) and access.bytes_reached(tensor) > access.storage_bytes(tensor):
        return "its storage has been freed or made smaller"
    if device.type == "cuda" and not torch.cuda.current_stream(device).query():
        return f"{device} was still at work; its values were not waited for"
    return ""


def stored(tensor: Any) -> str:
    """How many elements a sparse tensor keeps."""
    if not access.dtype_name(access.get_layout(tensor)).startswith("sparse"):
        return ""
    return f", {access.Base._nnz(tensor)} of {access.Base.numel(tensor)} stored"


def held_bytes(tensor: Any) -> int:
    """Bytes of the cells that its elements lie in: fewer than elements where strides overlap."""
    own = int(access.Base.numel(tensor) * access.Base.element_size(tensor))
    begin = int(access.Base.storage_offset(tensor) * access.Base.element_size(tensor))
    return min(own, access.bytes_reached(tensor) - begin) if own else 0


def thinned(tensor: torch.Tensor) -> torch.Tensor:
    """A view of all values, or of about SAMPLED that are taken evenly over all dimensions."""
    if tensor.numel() <= MOST_VALUES:
        return tensor
    while tensor.numel() > SAMPLED:
        largest = max(range(tensor.dim()), key=lambda d: tensor.shape[d])
        step = min(tensor.shape[largest], max(2, math.ceil(tensor.numel() / SAMPLED)))
        whole = [slice(None)] * tensor.dim()
        whole[largest] = slice(None, None, step)
        tensor = tensor[tuple(whole)]
    return tensor


def on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Real values on the CPU: the absolute ones of complex numbers, numbers for truth values."""
    tensor = tensor.cpu()
    if tensor.is_complex():
        return tensor.abs().double()
    return tensor if tensor.dtype in (torch.float64, torch.int64) else tensor.double()


def stats(tensor: torch.Tensor) -> Stats:
    """The values in numbers. Only for a tensor that `why_unreadable` has nothing against."""
    values = on_cpu(thinned(access.plain(tensor)))
    count, finite = values.numel(), values[values.isfinite()]
    nan = int(values.isnan().sum())
    inf = count - nan - finite.numel()
    if not finite.numel():
        return Stats(count, nan, inf)
    low, high = (float(v) for v in finite.aminmax())
    mean = float(finite.mean(dtype=torch.float64))
    return Stats(count, nan, inf, low, mean if math.isfinite(mean) else None, high)


def sample(tensor: torch.Tensor) -> Sample:
    """Values for a heat map: of the last two dimensions, the first of every other."""
    tensor = access.plain(tensor)
    slice_ = ""
    if tensor.dim() > 2:
        slice_ = f"[{', '.join('0' for _ in range(tensor.dim() - 2))}]"
        tensor = tensor[(0,) * (tensor.dim() - 2)]
    while tensor.dim() < 2:
        tensor = tensor.unsqueeze(0)
    rows, columns = evenly(tensor.shape[0]), evenly(tensor.shape[1])
    # Slices with a step and not lists of indices: a view, so nothing large is copied.
    kept = tensor[
        : len(rows) * step(rows) : step(rows), : len(columns) * step(columns) : step(columns)
    ]
    return Sample(rows, columns, texts(kept), slice_)


def evenly(size: int) -> tuple[int, ...]:
    """At most SIDE indices below size, with a constant step."""
    return tuple(range(0, size, max(1, math.ceil(size / SIDE))))


def step(indices: tuple[int, ...]) -> int:
    """The step of `evenly`."""
    return indices[1] - indices[0] if len(indices) > 1 else 1


def cells(tensor: torch.Tensor) -> tuple[str, ...]:
    """The first cells of its storage, read as its dtype."""
    tensor = access.plain(tensor)
    count = min(CELLS, access.storage_bytes(tensor) // tensor.element_size())
    return texts(tensor.as_strided((count,), (1,), 0))


def texts(tensor: torch.Tensor) -> tuple[str, ...]:
    """The values one after the other, in few digits."""
    return tuple(map(text, tensor.cpu().reshape(-1).tolist()))


def text(value: Any) -> str:
    """`0.1235`, `1.2e-08`, `nan`, `7`, `True`, `(1+2j)`."""
    if type(value) is float:
        return f"{value:.4g}"
    if type(value) is complex:
        return f"({value.real:.3g}{value.imag:+.3g}j)"
    return str(value)


def norm(tensor: Any) -> float | None:
    """The Euclidean norm, None where there is none that can be told cheaply."""
    if access.Base.numel(tensor) > LARGEST_NORM or why_unreadable(tensor):
        return None
    plain = access.plain(tensor)
    if not (plain.is_floating_point() or plain.is_complex()):
        return None
    value = float(torch.linalg.vector_norm(plain, dtype=WIDE.get(plain.dtype)))
    return value if math.isfinite(value) else None


WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
}
"""Norms of narrow numbers would overflow."""
