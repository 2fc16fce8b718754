"""Judges lessons/01_tensors/02_dtypes.md."""

import torch

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    mutant,
)


def image(rng, device):
    """Random pixels (C, H, W), stored as (H, W, C): the way most files are read."""
    h, w, c = rng.randrange(2, 7), rng.randrange(2, 7), rng.choice([1, 3, 4])
    return torch.randint(0, 256, (h, w, c), dtype=torch.uint8).to(device).permute(2, 0, 1)


def as_input(pixels):
    """Pixel values, fractions allowed, as exact model input."""
    return ((pixels.double() - 127.5) / 127.5).float()


@check("0 becomes -1 and 255 becomes 1")
def ends(answer, rng, device):
    img = torch.tensor([[[0, 255], [255, 0]]], dtype=torch.uint8, device=device)
    expect_close(
        answer.normalize_u8(img),
        img.float() / 255 * 2 - 1,
        name="the two ends",
        atol=1e-6,
        rtol=0.0,
        hint="Where is the middle between 0 and 255, and how far away are the ends?",
    )


@check("dark pixels come out negative")
def dark(answer, rng, device):
    img = torch.randint(1, 127, (1, 3, 5), dtype=torch.uint8).to(device)
    got = answer.normalize_u8(img)
    expect_shape(got, img.shape, name="the model's input")
    most = got.max().item()
    wrapped = (
        "uint8 has no negative numbers: 10 - 128 wraps to 138 before the division "
        "sees it. In which dtype must you subtract?"
    )
    shifted = "The middle between 0 and 255 becomes 0, and what is darker lies below."
    expect_true(
        most < 0,
        f"pixels from 1 to 126 came out as large as {most:.3g}",
        hint=wrapped if most > 1 else shifted,
    )


@check("any image comes out as float32, in its own shape")
def float32(answer, rng, device):
    some = image(rng, device)
    for img in (some.clamp(20, 200), some, some[:, :1, :1], some[:, :0]):
        got = answer.normalize_u8(img)
        expect_dtype(
            got,
            torch.float32,
            name="the model's input",
            hint="Models train in float32. float64 doubles the memory, and the model's "
            "weights will refuse it.",
        )
        expect_close(
            got,
            as_input(img),
            name="the model's input",
            hint="One pixel value gives one number, whatever else the image holds, and "
            "equal steps stay equal.",
        )


@check("every pixel value finds its way back")
def round_trip(answer, rng, device):
    pixels = torch.arange(256, dtype=torch.uint8)[torch.randperm(256)].to(device)
    pixels = pixels.reshape(1, 16, 16)
    for some in (pixels, pixels.transpose(1, 2), pixels[:, :1, :1], pixels[:, :0]):
        expect_equal(
            answer.back_to_u8(as_input(some)),
            some,
            name="the picture",
            dtype_hint="Pixels are uint8 again.",
            hint="The way back undoes the way in: -1 is 0 and 1 is 255.",
        )


@check("a fraction goes to the nearest pixel value")
def nearest(answer, rng, device):
    pixels = torch.randint(1, 255, (3, 4, 5), dtype=torch.uint8).to(device)
    aside = torch.rand(3, 4, 5, device=device) * 0.8 - 0.4
    got = answer.back_to_u8(as_input(pixels + aside))
    expect_shape(got, pixels.shape, name="the picture")
    off = got.double() - pixels.double()
    near = off.abs().max() <= 1
    cut = (
        "A conversion to uint8 cuts the fraction off: 99.9 becomes 99, and the "
        "picture gets darker each time."
    )
    if off.max() > 0:
        cut = "The nearest value lies above some numbers and below others. Round to it."
    expect_equal(
        got,
        pixels,
        name="the picture",
        dtype_hint="Pixels are uint8 again.",
        hint=cut if near else "The way back undoes the way in: -1 is 0 and 1 is 255.",
    )


@check("values beyond -1 and 1 stop at 0 and 255")
def overshoot(answer, rng, device):
    x = torch.tensor([[[-3.0, -1.5, -1.02, 1.02, 1.5, 3.0]]], device=device)
    wanted = torch.tensor([[[0, 0, 0, 255, 255, 255]]], dtype=torch.uint8, device=device)
    expect_equal(
        answer.back_to_u8(x),
        wanted,
        name="the picture",
        dtype_hint="Pixels are uint8 again.",
        hint="uint8 does not stop at its ends, it wraps: 300 becomes 44. Limit the "
        "values while they are still floats.",
    )


@check("the tensors that came in are unchanged")
def untouched(answer, rng, device):
    img, x = image(rng, device), torch.randn(3, 4, 5, device=device)
    hint = "Methods that end in _ and operators such as += write into the caller's block."
    with expect_unchanged(img, hint=hint):
        answer.normalize_u8(img)
    with expect_unchanged(x, hint=hint):
        answer.back_to_u8(x)


@mutant("subtracts while the pixels are uint8", caught_by=dark)
def normalize_u8(img):
    return (img - 128) / 127.5


@mutant("scales to 0 and 1", caught_by=ends)
def normalize_u8(img):
    return img / 255


@mutant("takes 127 and 128", caught_by=ends)
def normalize_u8(img):
    return (img.float() - 127) / 128


@mutant("stretches each image to its own range", caught_by=float32)
def normalize_u8(img):
    x = img.float()
    if x.numel() == 0 or x.max() == x.min():
        return x * 0
    return (x - x.min()) / (x.max() - x.min()) * 2 - 1


@mutant("works in float64", caught_by=float32)
def normalize_u8(img):
    return (img.double() - 127.5) / 127.5


@mutant("cuts the fraction off", caught_by=nearest)
def back_to_u8(x):
    return (x * 127.5 + 127.5).clamp(0, 255).to(torch.uint8)


@mutant("rounds up", caught_by=nearest)
def back_to_u8(x):
    return (x * 127.5 + 127.5).ceil().clamp(0, 255).to(torch.uint8)


@mutant("lets the values wrap", caught_by=overshoot)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().to(torch.uint8)


@mutant("clamps when it is too late", caught_by=overshoot)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().to(torch.uint8).clamp(0, 255)


@mutant("leaves the pixels as floats", caught_by=round_trip)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().clamp(0, 255)


@mutant("inverts a scale that was not used", caught_by=round_trip)
def back_to_u8(x):
    return (x * 255).round().clamp(0, 255).to(torch.uint8)


@mutant("scales in place", caught_by=untouched)
def back_to_u8(x):
    return x.mul_(127.5).add_(127.5).round_().clamp_(0, 255).to(torch.uint8)


@accepted("lets a Python float promote the pixels")
def normalize_u8(img):
    return (img - 127.5) / 127.5


@accepted("looks each pixel up in a table of 256")
def normalize_u8(img):
    return torch.linspace(-1, 1, 256, device=img.device)[img.long()]


@accepted("goes by 0 and 1")
def normalize_u8(img):
    return img.to(torch.float32) / 255 * 2 - 1


@accepted("works in place on its own copy")
def normalize_u8(img):
    x = img.to(torch.float32, copy=True)
    x -= 127.5
    x /= 127.5
    return x


@accepted("clamps first and adds a half before the cut")
def back_to_u8(x):
    return ((x.clamp(-1, 1) + 1) * 127.5 + 0.5).to(torch.uint8)


@accepted("works in float64 on the way back")
def back_to_u8(x):
    pixels = torch.round((x.double() + 1) / 2 * 255)
    return torch.clip(pixels, 0, 255).byte()


equivalent(
    "return (img.float() - 127.5) / 127.5",
    "return (img - 127.5) / 127.5",
    because="A Python float promotes uint8 to the default dtype, float32; float() only says so.",
)
