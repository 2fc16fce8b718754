"""Judges lessons/12_architectures/02_cnn.md."""

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_raises,
    expect_true,
    hinted,
    mutant,
)

background("Calls of convolutions and poolings are refused.")
background("A **dilation** of d leaves d - 1 pixels between the taps")

SIZE = "(size + 2 * padding - reach) // stride + 1, from layer to layer, rounded down."
FIELD = "A layer adds (reach - 1) times the product of the strides of the layers before it."
PAD = "Padding enlarges the map by 2 * padding, and leaves the field alone."
DILATION = "With dilation d a kernel reaches over d * (k - 1) + 1 pixels, in size and in field."
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


def expect_plan(answer, size, layers, hint):
    got = answer.plan(size, list(layers))
    call = f"plan({size}, {layers})"
    expect_true(
        isinstance(got, tuple) and len(got) == 2,
        f"{call} is not a pair",
        hint="Return the size and the field: two numbers.",
    )
    wanted = (real_size(size, layers), real_field(layers))
    expect_equal(got, wanted, name=f"(size, field) of {call}", hint=hint)


@check(
    "kernels alone",
    forbid=("torch.conv2d", "torch.max_pool2d", "torch.avg_pool2d"),
    holds=[
        "Write `plan`, which works out a stack on paper",
        "Size of the last map, and receptive field, of a stack",
    ],
    both_sides=True,
)
def kernels(answer, rng, device):
    for count in (1, 2, 3):
        layers = [(rng.choice((1, 2, 3, 5)), 1, 0, 1) for _ in range(count)]
        expect_plan(answer, rng.randint(20, 30), layers, FIELD)


@check("no layers", holds="may be empty")
def nothing(answer, rng, device):
    expect_plan(answer, rng.randint(1, 40), [], EMPTY)


@check("padding", holds="(kernel, stride, padding, dilation)", side="padding")
def padding(answer, rng, device):
    for pad in (1, 2):
        layers = [(3, 1, pad, 1), (5, 1, 2, 1), (1, 1, rng.randint(0, 2), 1)]
        expect_plan(answer, rng.randint(12, 20), layers, PAD)


@check(
    "strides, in every layer",
    holds=["in their order", "(kernel, stride, padding, dilation)"],
    side="stride",
)
def strides(answer, rng, device):
    expect_plan(answer, 18, [(3, 2, 1, 1), (3, 2, 1, 1)], FIELD)
    expect_plan(answer, 32, [(3, 1, 1, 1), (2, 2, 0, 1), (3, 1, 1, 1), (2, 2, 0, 1)], FIELD)
    expect_plan(answer, 29, [(2, 3, 0, 1), (1, 2, 0, 1), (3, 1, 0, 1)], FIELD)
    expect_plan(answer, 28, [(3, 1, 0, 1), (3, 2, 0, 1)], FIELD)  # a stride that comes last


@check("sizes that do not divide are rounded down", holds="side of the last map")
def rounded(answer, rng, device):
    for size in range(17, 23):
        expect_plan(answer, size, [(3, 2, 1, 1), (2, 2, 0, 1)], SIZE)


@check(
    "dilation",
    holds=[
        "For size and field alike, that reach takes the place of k",
        "the kernel reaches over d * (k - 1) + 1 pixels",
    ],
    both_sides=True,
)
def dilations(answer, rng, device):
    expect_plan(answer, 32, [(3, 1, 0, 2)], DILATION)
    expect_plan(answer, 40, [(3, 2, 2, 2), (2, 1, 0, 3), (1, 1, 0, 5)], DILATION)
    expect_plan(answer, 30, [(3, 1, 4, 4), (5, 2, 1, rng.randint(1, 3))], DILATION)


@check(
    "a kernel that reaches over more than the padded map is a ValueError",
    holds="If a kernel reaches over more than the padded map",
)
def too_small(answer, rng, device):
    hint = "Compare size + 2 * padding with the reach, in each layer, before the division."
    for size, layers in (
        (2, [(3, 1, 0, 1)]),
        (4, [(3, 1, 0, 1), (3, 1, 0, 1)]),
        (4, [(3, 1, 0, 2)]),
        (8, [(2, 2, 0, 1), (2, 2, 0, 1), (5, 3, 1, 1)]),
    ):
        message = f"plan({size}, {layers}) raises no ValueError"
        with expect_raises(ValueError, message, hint=hint):
            answer.plan(size, layers)
    for size, layers in ((3, [(3, 1, 0, 1)]), (1, [(3, 2, 1, 1)]), (5, [(3, 4, 0, 2)])):
        expect_plan(answer, size, layers, "A kernel of just the size of the padded map fits once.")


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
    if size < 0:
        raise ValueError
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
