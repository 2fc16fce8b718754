"""Judges lessons/12_architectures/02_cnn.md."""

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background("Calls of convolutions, poolings and `unfold` are refused.")
background("A **dilation** of d leaves d - 1 pixels between the taps")

SIZE = "(size + 2 * padding - reach) // stride + 1, from layer to layer, rounded down."
FIELD = "A layer adds (reach - 1) times the product of the strides of the layers before it."
PAD = "Padding enlarges the map by 2 * padding, and leaves the field alone."
DILATION = "With dilation d a kernel reaches over d * (k - 1) + 1 pixels, in size and in field."
FITS = "A kernel of just the size of the padded map fits once. A larger one is an error."
EMPTY = "Without layers the map is the image, and each pixel sees itself."


def built(layers):
    net = nn.Sequential(
        *(nn.Conv2d(1, 1, k, s, p, dilation=d, bias=False) for k, s, p, d in layers)
    ).double()
    for p in net.parameters():
        nn.init.ones_(p)
    return net


def real_size(size, layers):
    """What PyTorch makes of an image of that size."""
    return built(layers)(torch.zeros(1, 1, size, size).double()).shape[-1]


def real_field(layers):
    """From the first to the last row that a gradient reaches, on an image large enough."""
    span, step = 1, 1
    for k, s, _, d in layers:
        span, step = span + d * (k - 1) * step, step * s
    net = built([(k, s, 0, d) for k, s, _, d in layers])
    x = torch.ones(1, 1, span + 3 * step, 1).double().expand(-1, -1, -1, span + 3 * step)
    x = x.clone().requires_grad_()
    net(x)[0, 0, 0, 0].backward()
    rows = (x.grad[0, 0].sum(1) != 0).nonzero()[:, 0]
    return int(rows[-1] - rows[0] + 1)


def expect_plan(answer, size, layers, field_hint=FIELD, size_hint=SIZE):
    got = answer.plan(size, list(layers))
    call = f"plan({size}, {layers})"
    expect_true(
        isinstance(got, (tuple, list)) and len(got) == 2,
        f"{call} is not a pair",
        hint="Return the size and the field: two numbers.",
    )
    for place, (name, wanted, hint) in enumerate((
        ("the size, first", real_size(size, layers), size_hint),
        ("the field, second", real_field(layers), field_hint),
    )):  # fmt: skip
        expect_equal(got[place], wanted, name=f"{name} of {call},", hint=hint)


def expect_error(answer, size, layers):
    call = f"plan({size}, {layers})"
    hint = "Compare size + 2 * padding with the reach, in each layer, before the division."
    try:
        answer.plan(size, list(layers))
    except ValueError:
        return
    except Exception as error:
        fail(f"{call} raises {type(error).__name__}, ValueError is wanted", hint=hint)
    fail(f"{call} raises no ValueError", hint=hint)


@check(
    "kernels alone",
    forbid=("torch.conv2d", "torch.max_pool2d", "torch.avg_pool2d"),
    counts_calls=True,
    holds=[
        "Write `plan`, which works out a stack on paper",
        "Size of the last map, and receptive field, of a stack",
    ],
    both_sides=True,
)
def kernels(answer, rng, device):
    for count in (1, 2, 3):
        layers = [(rng.choice((1, 2, 3, 5)), 1, 0, 1) for _ in range(count)]
        expect_plan(answer, rng.randint(20, 30), layers)
    built = [name for name in answer.calls if any(s in name for s in ("conv", "pool", "fold"))]
    message = f"the program calls torch's {''.join(built[:1])}"
    expect_true(not built, message, hint="Two formulas are all it takes.")


@check("no layers", holds="may be empty")
def nothing(answer, rng, device):
    expect_plan(answer, rng.randint(1, 40), [], EMPTY, EMPTY)


@check("two ints", holds="returns: (side of the last map, side of the field), ints")
def ints(answer, rng, device):
    for stride in (1, 2):
        for number in answer.plan(24, [(3, stride, rng.randint(0, 1), 1)]):
            message = f"one of the two is a {type(number).__name__}, int is wanted"
            expect_true(isinstance(number, int), message, hint="// gives an int, and / a float.")


@check("the list stays as it is", holds="The list `layers` stays as it is.")
def untouched(answer, rng, device):
    layers = [(3, 1, 1, 1), (2, 2, 0, 1), (rng.randint(1, 3), 1, 0, 1)]
    before = list(layers)
    answer.plan(24, layers)
    expect_equal(layers, before, name="layers, afterwards,", hint="Loop over it: no pop, no del.")


@check("padding", holds="(kernel, stride, padding, dilation)", side="padding")
def padding(answer, rng, device):
    for pad in (1, 2):
        layers = [(3, 1, pad, 1), (5, 1, 2, 1), (1, 1, rng.randint(0, 2), 1)]
        expect_plan(answer, rng.randint(12, 20), layers, PAD, PAD)


@check(
    "strides, in every layer",
    holds=["in their order", "(kernel, stride, padding, dilation)"],
    side="stride",
)
def strides(answer, rng, device):
    expect_plan(answer, 18, [(3, 2, 1, 1), (3, 2, 1, 1)])
    expect_plan(answer, 32, [(3, 1, 1, 1), (2, 2, 0, 1), (3, 1, 1, 1), (2, 2, 0, 1)])
    expect_plan(answer, 29, [(2, 3, 0, 1), (1, 2, 0, 1), (3, 1, 0, 1)])
    expect_plan(answer, 28, [(3, 1, 0, 1), (3, 2, 0, 1)])  # a stride that comes last


@check("sizes that do not divide are rounded down", holds="side of the last map")
def rounded(answer, rng, device):
    for size in range(17, 23):
        expect_plan(answer, size, [(3, 2, 1, 1), (2, 2, 0, 1)])


@check(
    "dilation",
    holds=[
        "For size and field alike, that reach takes the place of k",
        "the kernel reaches over d * (k - 1) + 1 pixels",
    ],
    both_sides=True,
)
def dilations(answer, rng, device):
    for size, layers in (
        (32, [(3, 1, 0, 2)]),
        (40, [(3, 2, 2, 2), (2, 1, 0, 3), (1, 1, 0, 5)]),
        (30, [(3, 1, 4, 4), (5, 2, 1, rng.randint(1, 3))]),
    ):
        expect_plan(answer, size, layers, DILATION, DILATION)


@check(
    "a kernel that reaches over more than the padded map is a ValueError",
    holds="If a kernel reaches over more than the padded map",
)
def too_small(answer, rng, device):
    for size, layers in (
        (2, [(3, 1, 0, 1)]),
        (4, [(3, 1, 0, 1), (3, 1, 0, 1)]),
        (4, [(3, 1, 0, 2)]),
        (8, [(2, 2, 0, 1), (2, 2, 0, 1), (5, 3, 1, 1)]),
        (2, [(3, 1, 0, 1), (1, 1, 2, 1)]),  # padding cannot bring back what is gone
    ):
        expect_error(answer, size, layers)
    for size, layers in ((3, [(3, 1, 0, 1)]), (1, [(3, 2, 1, 1)]), (5, [(3, 4, 0, 2)])):
        with advising(ValueError, hint=FITS):
            wide = f"{FIELD} It may be larger than the image."
            expect_plan(answer, size, layers, wide, FITS)


@mutant("adds k - 1 whatever the strides", caught_by=strides)
def plan(size, layers):
    field = 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field = (size + 2 * p - reach) // s + 1, field + reach - 1
    return size, field


@mutant("counts a layer's own stride for itself", caught_by=strides)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        step *= s
        size, field = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step
    return size, field


@mutant("knows the stride of the layer before, not the product", caught_by=strides)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, s
    return size, field


@mutant("rounds up", caught_by=rounded)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size = -((reach - size - 2 * p) // s) + 1
        field, step = field + (reach - 1) * step, step * s
    return size, field


@mutant("ignores the padding", caught_by=padding)
def plan(size, layers):
    field, step = 1, 1
    for k, s, _, d in layers:
        reach = d * (k - 1) + 1
        if size < reach:
            raise ValueError
        size, field, step = (size - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("pads one side only", caught_by=padding)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + p < reach:
            raise ValueError
        size, field, step = (size + p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("lets the padding widen the field", caught_by=padding)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field = (size + 2 * p - reach) // s + 1, field + (reach - 1 + 2 * p) * step
        step *= s
    return size, field


@mutant("multiplies k by the dilation", caught_by=dilations)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * k
        if size + 2 * p < reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("dilates the field and not the size", caught_by=dilations)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        if size + 2 * p < d * (k - 1) + 1:
            raise ValueError
        size, field, step = (size + 2 * p - k) // s + 1, field + d * (k - 1) * step, step * s
    return size, field


@mutant("never complains", caught_by=too_small)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("complains at the end only", caught_by=too_small)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    if size < 1:
        raise ValueError
    return size, field


@mutant("rounds a negative quotient towards 0", caught_by=too_small)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        size, field, step = (
            int((size + 2 * p - reach) / s) + 1,
            field + (reach - 1) * step,
            step * s,
        )
        if size < 1:
            raise ValueError
    return size, field


@mutant("raises another error", caught_by=too_small)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise RuntimeError("too small")
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("compares with the map in front of the padding", caught_by=too_small)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size < reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("ends the field at the rim of the image", caught_by=too_small)
def plan(size, layers):
    first, field, step = size, 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, min(field, first)


@mutant("takes the layers out of the list", caught_by=untouched)
def plan(size, layers):
    field, step = 1, 1
    while layers:
        k, s, p, d = layers.pop(0)
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("divides with /, and rounds to a float", caught_by=ints)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field, step = (size + 2.0 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@mutant("gives the field first", caught_by=kernels)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p < reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return field, size


@mutant("counts the columns of unfold", caught_by=kernels)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        x = torch.zeros(1, 1, size, size)
        try:
            columns = nn.functional.unfold(x, k, dilation=d, padding=p, stride=s)
        except RuntimeError as error:
            raise ValueError("too small") from error
        size, field, step = int(columns.shape[-1] ** 0.5), field + d * (k - 1) * step, step * s
    return size, field


@mutant("refuses a kernel that fits just once", caught_by=too_small)
def plan(size, layers):
    field, step = 1, 1
    for k, s, p, d in layers:
        reach = d * (k - 1) + 1
        if size + 2 * p <= reach:
            raise ValueError
        size, field, step = (size + 2 * p - reach) // s + 1, field + (reach - 1) * step, step * s
    return size, field


@accepted("goes back from one output to the pixels it needs")
def plan(size, layers):
    for k, s, p, d in layers:
        size = (size + 2 * p - d * (k - 1) - 1) // s + 1
        if size < 1:
            raise ValueError("nothing is left")
    field = 1
    for k, s, _, d in reversed(layers):
        field = (field - 1) * s + d * (k - 1) + 1
    return size, field


@accepted("follows the first and the last pixel back, and returns a list")
def plan(size, layers):
    first = last = 0
    for k, s, _, d in reversed(layers):
        first, last = first * s, last * s + d * (k - 1)
    for k, s, p, d in layers:
        room = size + 2 * p - d * (k - 1)
        if room <= 0:
            raise ValueError("the kernel does not fit")
        size = -(-room // s)
    return [size, last - first + 1]


@accepted("counts the places of a range")
def plan(size, layers):
    field, strides = 1, []
    for k, s, p, d in layers:
        places = range(0, size + 2 * p - d * (k - 1), s)
        if not places:
            raise ValueError("the kernel does not fit")
        step = 1
        for stride in strides:
            step *= stride
        field += step * d * (k - 1)
        strides.append(s)
        size = len(places)
    return size, field


@hinted(1, reaches=padding)
def plan(size, layers):
    field = 1
    for k, _stride, pad, _dilation in layers:
        size = size + 2 * pad - k + 1
        field = field + k - 1
    return size, field
