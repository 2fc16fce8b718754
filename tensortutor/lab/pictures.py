"""Pictures: tensors as images, and as maps of their values."""

import base64
import ctypes
import linecache
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.functional import avg_pool2d, max_pool2d

from tensortutor.drawing.png import Pixels, encode
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.isolation import hidden_from_modes, never_traced
from tensortutor.protocol.drawings import LONGEST_WORDS, Picture

OWN_MODULES = ("tensortutor.lab.", "torch._dynamo.")
"""Modules that stand between a program's line and what it calls here."""
MOST_PIXELS = 480
"""Pixels along a side of an image: even noise of this size fits an event."""
MOST_CELLS = 128
"""Cells along a side of a map of values."""
MOST_VALUES = 1 << 22
"""Values that are looked at; of larger tensors every so manyth row and column is."""
MOST_IMAGES = 64
LONGEST_SOURCE = 60


class Shown(NamedTuple):
    """A picture without its name: the pixels, and what the caption and the colours say of them."""

    pixels: Pixels | None
    caption: str
    low: float = 0.0
    high: float = 0.0


@never_traced
def image(tensor: Any, *, title: str = "") -> None:
    """Draw a tensor as an image.

    tensor: (H, W), or with channels (C, H, W) as PyTorch has them or (H, W, C); of a batch
    (N, C, H, W) or (N, H, W, C) the first 64 are drawn side by side. C is 1 for grey, 3 for red,
    green and blue, 4 with opacity. Where both orders fit, the first is meant. Integers are
    brightness from 0 to 255, floats from 0 to 1; other values are stretched to that, which the
    caption says. NaN stands out in magenta, or as "?". More than 480 pixels a side are averaged.
    title: a later picture of the same title takes this one's place. If left out, pictures of the
    same line of the program do.

    Raises ValueError for any other shape, TypeError for what is no tensor or has complex values.
    """
    tensor = as_tensor(tensor, "image")
    images = layers(tensor)
    draw("image", str(title) or calling_line(), tensor, lambda: drawn_image(tensor.shape, images))


@never_traced
def show(tensor: Any, *, title: str = "") -> None:
    """Draw the values of a tensor as a map, and its shape, dtype, device and range below.

    tensor: of any shape; of more than two dimensions the first slice is drawn, as in `x[0, 0]`. Of
    a large tensor each cell shows the value of largest magnitude in its block, so spikes and NaN
    stay. Without values to see (on the meta device, say) there are the words alone.
    title: as for `image`.

    Raises TypeError for what is no tensor.
    """
    tensor = as_tensor(tensor, "show")
    draw("heat", str(title) or calling_line(), tensor, lambda: drawn_values(tensor))


def as_tensor(value: Any, function: str) -> torch.Tensor:
    """A tensor that does not change any more when the program's own does."""
    if not isinstance(value, torch.Tensor):
        try:
            return torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            kind = type(value).__name__
            raise TypeError(f"{function} draws a tensor, and this is of the type {kind}.") from None
    return value.detach()


def calling_line() -> str:
    """The line of the program that has called, as a title: its number and its text, cut if long."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(OWN_MODULES):
        frame = frame.f_back
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    if len(source) > LONGEST_SOURCE:
        source = f"{source[: LONGEST_SOURCE - 3]}..."
    where = f"line {frame.f_lineno}"
    return f"{where}: {source}" if source else where


def draw(kind: str, title: str, tensor: torch.Tensor, make: Callable[[], Shown]) -> None:
    """Put a picture of a tensor on the display."""

    def made() -> Picture:
        with hidden_from_modes(), torch.no_grad():
            try:
                shown = make()
            except (RuntimeError, TypeError):  # a stand-in of some kind: meta, fake, batched
                about = described(tensor.dtype, tensor.shape, tensor.device)
                shown = Shown(None, f"{about}: no values to see")
            return picture(kind, title, shown)

    DISPLAY.draw(title[:LONGEST_WORDS], made)


def picture(kind: str, title: str, shown: Shown) -> Picture:
    """The event of a picture."""
    pixels, caption, low, high = shown
    png = base64_of(pixels) if pixels is not None else ""
    return Picture(title[:LONGEST_WORDS], kind, png, caption[:LONGEST_WORDS], low, high)


def base64_of(pixels: Pixels) -> str:
    """The pixels as a PNG file in base64."""
    return base64.b64encode(encode(pixels)).decode()


# Images


def layers(tensor: torch.Tensor) -> torch.Tensor:
    """The images as (N, C, H, W). Raises ValueError for a shape that is none."""
    shape = list(tensor.shape)
    if tensor.is_complex():
        raise TypeError("image draws real numbers, and this tensor is complex.")
    if 0 in shape:
        raise ValueError(f"image got a tensor of shape {shape}: there is nothing in it.")
    if tensor.dim() == 2:
        return tensor[None, None]
    if tensor.dim() in (3, 4) and shape[-3] in (1, 3, 4):
        return tensor if tensor.dim() == 4 else tensor[None]
    if tensor.dim() in (3, 4) and shape[-1] in (1, 3, 4):
        last_first = tensor.movedim(-1, -3)
        return last_first if tensor.dim() == 4 else last_first[None]
    raise ValueError(
        f"image draws (H, W), (C, H, W) or (H, W, C) with 1, 3 or 4 channels, or a batch of these, "
        f"and this tensor has the shape {shape}. show() draws any shape."
    )


def drawn_image(shape: torch.Size, images: torch.Tensor) -> Shown:
    """The images as one."""
    about = described(images.dtype, shape, images.device)
    values, note = brightness(side_by_side(images[:MOST_IMAGES]))
    pixels, averaged, _, _ = drawn_pixels(values, MOST_PIXELS)
    left_out = len(images) - MOST_IMAGES
    more = f", {left_out} more left out" if left_out > 0 else ""
    return Shown(pixels, about + note + averaged + more)


def drawn_pixels(values: torch.Tensor, most: int) -> Shown:
    """(C, H, W) from 0 to 1, NaN where there is none, as pixels: at most `most` along a side."""
    finite = values.isfinite()
    step, note = math.ceil(max(values.shape[-2:]) / most), ""
    if step > 1:
        values, finite = (
            avg_pool2d(t.float()[None], step, ceil_mode=True, count_include_pad=False)[0]
            for t in (values, finite)
        )
        note = f", {step} by {step} pixels in one"
    if values.shape[0] == 4:
        values = values[:3] * values[3:].clamp(0, 1)
    opaque = finite.min(0, keepdim=True).values.eq(1)
    parts = [(values.nan_to_num(0, 0, 0).clamp(0, 1) * 255).round()]
    if not bool(opaque.all()):
        parts.append(opaque.float() * 255)
    return Shown(pixels_of(torch.cat(parts)), note)


def side_by_side(images: torch.Tensor) -> torch.Tensor:
    """A batch as one image, in rows, a dark pixel between neighbours."""
    count, channels, height, width = images.shape
    if count == 1:
        return images[0].cpu()
    across = math.ceil(math.sqrt(count * height / width))
    across = min(max(across, 1), count)
    down = math.ceil(count / across)
    tiled = images.new_zeros(channels, down * (height + 1) - 1, across * (width + 1) - 1)
    for number in range(count):
        top, left = number // across * (height + 1), number % across * (width + 1)
        tiled[:, top : top + height, left : left + width] = images[number]
    return tiled.cpu()


def brightness(values: torch.Tensor) -> tuple[torch.Tensor, str]:
    """The values from 0 to 1, and what had to be done for that."""
    dtype = values.dtype
    values = values.to(torch.float32)
    if dtype == torch.uint8:
        return values / 255, ""
    finite = values[values.isfinite()]
    if not finite.numel():
        return values, ""
    low, high = finite.min().item(), finite.max().item()
    if low >= 0 and high <= 1:
        return values, ""
    if low >= 0 and high <= 255 and not dtype.is_floating_point:
        return values / 255, ""
    return (values - low) / ((high - low) or 1.0), f", stretched from {low:.4g} to {high:.4g}"


def pixels_of(values: torch.Tensor) -> Pixels:
    """(C, H, W) from 0 to 255 as bytes."""
    channels, height, width = values.shape
    data = values.to(torch.uint8).permute(1, 2, 0).contiguous()
    return Pixels(width, height, channels, ctypes.string_at(data.data_ptr(), data.numel()))


# Maps of values


def drawn_values(tensor: torch.Tensor) -> Shown:
    """The map of a tensor's values."""
    about = described(tensor.dtype, tensor.shape, tensor.device)
    values, note = matrix(tensor)
    if not values.numel():
        return Shown(None, f"{about}: empty")
    finite = values[values.isfinite()]
    about += note + summary(values, finite)
    if not finite.numel():
        return Shown(pixels_of(torch.zeros(2, *values.shape)), about)
    blocks = [math.ceil(size / MOST_CELLS) for size in values.shape]
    if max(blocks) > 1:
        values = largest(values, blocks)
        about += f", {blocks[0]} by {blocks[1]} values in a cell"
    finite = values[values.isfinite()]
    if not finite.numel():
        return Shown(pixels_of(torch.zeros(2, *values.shape)), about)
    low, high = finite.min().item(), finite.max().item()
    # Halved, because the difference of two floats may be no float any more.
    span = high / 2 - low / 2
    grey = (values / 2 - low / 2) / span if span else values * 0 + 0.5
    parts = torch.stack([(grey.nan_to_num(0, 0, 0) * 255).round(), values.isfinite() * 255.0])
    return Shown(pixels_of(parts if len(finite) < values.numel() else parts[:1]), about, low, high)


def matrix(tensor: torch.Tensor) -> tuple[torch.Tensor, str]:
    """Two dimensions of a tensor as float64 on the CPU, and which part of it they are.

    Raises RuntimeError or TypeError if it has no values that can be looked at.
    """
    note = ""
    is_sparse = tensor.layout != torch.strided
    if tensor.is_meta or tensor.is_nested or (is_sparse and tensor.numel() > MOST_VALUES):
        raise TypeError
    if is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.dim() > 2 and tensor.numel():
        first = (0,) * (tensor.dim() - 2)
        note = f", slice [{', '.join(map(str, first))}]"
        tensor = tensor[first]
    tensor = tensor.reshape(1, -1) if tensor.dim() < 2 else tensor
    if tensor.numel() > MOST_VALUES and tensor.dim() == 2:
        every = math.ceil(math.sqrt(tensor.numel() / MOST_VALUES))
        steps = [min(every, size) for size in tensor.shape]
        tensor = tensor[:: steps[0], :: steps[1]]
        note += f", every {every}th row and column"
    tensor = tensor.cpu()
    if tensor.is_complex():
        tensor, note = tensor.abs(), f"{note}, magnitudes"
    return tensor.to(torch.float64), note


def largest(values: torch.Tensor, blocks: list[int]) -> torch.Tensor:
    """Of each block the value of largest magnitude; NaN is larger than all."""
    size = (blocks[0], blocks[1])
    _, places = max_pool2d(values.abs()[None], size, ceil_mode=True, return_indices=True)
    return values.flatten()[places[0]]


def summary(values: torch.Tensor, finite: torch.Tensor) -> str:
    """The range of the values that are finite, and how many are not."""
    text = ""
    if finite.numel():
        low, mean, high = finite.min().item(), finite.mean().item(), finite.max().item()
        text = f", min {low:.4g}, mean {mean:.4g}, max {high:.4g}"
    nan, inf = int(values.isnan().sum()), int(values.isinf().sum())
    return text + (f", {nan} NaN" if nan else "") + (f", {inf} inf" if inf else "")


def described(dtype: torch.dtype, shape: torch.Size, device: torch.device) -> str:
    """float32 [2, 3] on cpu."""
    return f"{str(dtype).removeprefix('torch.')} {list(shape)} on {device}"
