"""Judges lessons/01_tensors/02_dtypes.md."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "An image file holds uint8, 0 to 255.",
    "Write both ways.",
    "`x.clamp(low, high)` limits values.",
    "The starter is what many people write first",
)


def image(rng, device):
    """Random pixels (C, H, W), stored as (H, W, C): the way most files are read."""
    h, w, c = rng.randrange(2, 7), rng.randrange(2, 7), rng.choice([1, 3, 4])
    return torch.randint(0, 256, (h, w, c), dtype=torch.uint8).to(device).permute(2, 0, 1)


def as_input(pixels):
    """Pixel values, fractions allowed, as exact model input."""
    return ((pixels.double() - 127.5) / 127.5).float()


@check(
    "0 becomes -1 and 255 becomes 1",
    holds=[
        "In: 0 becomes -1, 255 becomes 1",
        "Pixels to model input: 0 becomes -1, 255 becomes 1.",
    ],
)
def ends(answer, rng, device):
    img = torch.tensor([[[0, 255], [255, 0]]], dtype=torch.uint8, device=device)
    expect_close(
        answer.normalize_u8(img),
        img.float() / 255 * 2 - 1,
        name="the two ends",
        dtype_hint="The model's weights are float32, and they refuse float64.",
        atol=1e-6,
        rtol=0.0,
        hint="Where is the middle between 0 and 255, and how far away are the ends?",
    )


@check("dark pixels come out negative", holds="everything else lies evenly between")
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


@check(
    "any image comes out as float32, in its own shape",
    holds=[
        "The model wants float32 from -1 to 1",
        "everything else lies evenly between",
        "img: uint8, (C, H, W), any sizes",
        "returns: float32, (C, H, W)",
    ],
)
def float32(answer, rng, device):
    some = image(rng, device)
    every = torch.arange(256, dtype=torch.uint8, device=device).reshape(1, 16, 16)
    parts = (some.clamp(20, 200), some, some[:, :1, :1], some[:, :0], some[:0], some[..., ::2])
    for img in (*parts, every):
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


@check(
    "every pixel value finds its way back",
    holds=[
        "what it gives back must become pixels again",
        "Model output to pixels: -1 becomes 0, 1 becomes 255.",
    ],
)
def round_trip(answer, rng, device):
    pixels = torch.arange(256, dtype=torch.uint8)[torch.randperm(256)].to(device)
    pixels = pixels.reshape(1, 16, 16)
    for some in (pixels, pixels.transpose(1, 2), pixels[:, :1, :1], pixels[:, :0], pixels[:0]):
        expect_equal(
            answer.back_to_u8(as_input(some)),
            some,
            name="the picture",
            dtype_hint="Pixels are uint8 again.",
            hint="The way back undoes the way in: -1 is 0 and 1 is 255. Values that are one too "
            "small were cut off: the conversion to uint8 makes 98 of 98.99999.",
        )


@check(
    "a fraction goes to the nearest pixel value",
    holds=["Out: the nearest pixel value.", "returns: uint8, (C, H, W), the nearest pixel values"],
)
def nearest(answer, rng, device):
    pixels = torch.randint(0, 256, (3, 4, 5), dtype=torch.uint8).to(device)
    pixels[0, 0, :2] = torch.tensor([0, 255], device=device)
    aside = torch.rand(3, 4, 5, device=device) * 0.9 - 0.45
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


@check(
    "values beyond -1 and 1 stop at 0 and 255",
    holds=[
        "A model overshoots a little, and what lies beyond -1 or 1 becomes 0 or 255.",
        "some values below -1 or above 1",
    ],
    both_sides=True,
)
def overshoot(answer, rng, device):
    far = torch.tensor([3.0, 1.5, 1.02, 1e4, 1e10, float("inf")], device=device)
    for x, end in ((-far, 0), (far, 255)):
        expect_equal(
            answer.back_to_u8(x.reshape(1, 2, 3)),
            torch.full((1, 2, 3), end, dtype=torch.uint8, device=device),
            name="the picture",
            dtype_hint="Pixels are uint8 again.",
            hint="An integer dtype does not stop at its ends: 300 can become 44 in uint8. Limit "
            "the values while they are still floats.",
        )
    inside = torch.tensor([[[-1.5, -0.5, 0.5, 1.5]]], device=device)
    wanted = torch.tensor([[[0, 64, 191, 255]]], dtype=torch.uint8, device=device)
    expect_equal(
        answer.back_to_u8(inside),
        wanted,
        name="the picture",
        hint="A value that overshoots changes no other value.",
    )


@check(
    "the tensors that came in are unchanged",
    holds="Neither function changes the tensor that it was given.",
)
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


@mutant("takes the smaller half in float16", caught_by=float32)
def normalize_u8(img):
    return ((img.half() - 127.5) / 127.5).float()


@mutant("divides by 128 and moves by 1", caught_by=ends)
def normalize_u8(img):
    return img.float() / 128 - 1


@mutant("reflects what lies below", caught_by=overshoot)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().abs().clamp(max=255).to(torch.uint8)


@mutant("squeezes the picture until nothing overshoots", caught_by=overshoot)
def back_to_u8(x):
    if x.numel():
        x = x / x.abs().max().clamp(min=1)
    return (x * 127.5 + 127.5).round().clamp(0, 255).to(torch.uint8)


@mutant("becomes an integer before it limits", caught_by=overshoot)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().to(torch.int16).clamp(0, 255).to(torch.uint8)


@mutant("rounds before it moves to the middle", caught_by=nearest)
def back_to_u8(x):
    return ((x.clamp(-1, 1) * 127.5).round() + 127.5).to(torch.uint8)


@mutant("limits the upper end alone", caught_by=overshoot)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().clamp(max=255).to(torch.uint8)


@mutant("limits in the caller's tensor", caught_by=untouched)
def back_to_u8(x):
    x[x > 1] = 1
    x[x < -1] = -1
    return (x * 127.5 + 127.5).round().to(torch.uint8)


@hinted(1, reaches=untouched)
def normalize_u8(img):
    return (img.to(torch.float32) - (0 + 255) / 2) / 127.5


@hinted(1, reaches=nearest)
def back_to_u8(x):
    return (x * 127.5 + 127.5).round().to(torch.uint8)


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


@accepted("doubles and subtracts in a wider integer")
def normalize_u8(img):
    return (img.to(torch.int16) * 2 - 255) / 255


@accepted("adds a half, limits and cuts, as torchvision does")
def back_to_u8(x):
    return (x * 127.5).add_(127.5 + 0.5).clamp_(0, 255).to(torch.uint8)


@accepted("works in float64 on the way back")
def back_to_u8(x):
    pixels = torch.round((x.double() + 1) / 2 * 255)
    return torch.clip(pixels, 0, 255).byte()


equivalent(
    "return (img.float() - 127.5) / 127.5",
    "return (img - 127.5) / 127.5",
    because="A Python float promotes uint8 to the default dtype, float32; float() only says so.",
)
