"""Judges lessons/16_debugging/01_shape_forensics.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    key_line_shown,
    mutant,
)

background(
    "It stops with an error, and behind the error wait two more wrong shapes.",
    "One of them raises nothing.",
)

key_line_shown(
    "Flatten",
    because="the layer stands in the case too; the exercise is to find which of them is wrong",
)

equivalent(
    "return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), "
    "nn.Flatten(), nn.Linear(8 * side * side, classes))",
    "return nn.Sequential(nn.Conv2d(1, 8, 3), nn.MaxPool2d(2), nn.ReLU(), "
    "nn.Flatten(), nn.Linear(8 * side * side, classes))",
    because="the largest of several ReLUs is the ReLU of the largest",
)
equivalent(
    'x = torch.from_numpy(d["images"]).float()[:, None] / 16',
    'x = torch.from_numpy(d["images"])[:, None] / 16',
    because="a division of whole numbers gives float32 too",
)
equivalent("with torch.no_grad():", "if True:", because="the score is the same, with a graph")
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="the score is the same, with a graph",
)
equivalent(
    "model = build(8, 10)",
    "model = build(9, 10)",
    because="(9 - 2) // 2 is 3 as well: it is the same model",
)

FLATTEN = "The batch is axis 0, and no module of this model may touch it."
SIDE = "A window of 3 without padding takes 2 off each side; cells of 2 halve what is left."
MEET = "Both sides of == have the shape (batch,)."
SHARE = "The mean of the matches, from 0 to 1. " + MEET
FLOAT = "`.item()` makes a float of a tensor with one value."
KEEP = "One convolution of 8 windows, one linear layer, both with a bias: no other parameters."


def images(rng, device, size=None, batch=None):
    size = size or rng.randint(8, 20)
    batch = batch or rng.randint(2, 9)
    return torch.rand(batch, 1, size, size, device=device), size


@check("images of 8 by 8, as in the program", holds="The result is (batch, classes).")
def digits(answer, rng, device):
    x, _ = images(rng, device, size=8)
    classes = rng.randint(2, 30)
    model = answer.build(8, classes).to(device)
    expect_shape(model(x), (len(x), classes), name="the scores", hint=FLATTEN)


@check(
    "images of other sizes",
    holds=[
        "makes a model for images (batch, 1, size, size)",
        "It works for every size from 8 on and for a batch of one.",
    ],
    side="every size",
    hint=SIDE,
)
def sizes(answer, rng, device):
    for extra in (rng.choice([0, 2, 4]), rng.choice([1, 3, 5])):
        x, size = images(rng, device, size=9 + extra)
        classes = rng.randint(2, 30)
        z = answer.build(size, classes).to(device)(x)
        expect_shape(z, (len(x), classes), name=f"the scores for size {size}", hint=SIDE)


@check("a batch of one", holds="for a batch of one", side="a batch of one")
def one(answer, rng, device):
    x, size = images(rng, device, batch=1)
    z = answer.build(size, 4).to(device)(x)
    expect_shape(z, (1, 4), name="the scores of one image", hint=FLATTEN)
    z = torch.randn(1, 5, device=device)
    got = answer.accuracy(z, z.argmax(1))
    expect_equal(got, 1.0, name="the accuracy of one right answer", hint=SHARE)


@check(
    "each image is judged by itself",
    hint=FLATTEN,
    holds="images (batch, 1, size, size)",
)
def apart(answer, rng, device):
    x, size = images(rng, device, batch=4)
    model = answer.build(size, 3).to(device).eval()
    whole = model(x)
    expect_close(whole[2:3], model(x[2:3]), name="the scores of image 2", hint=FLATTEN, rtol=1e-4)


@check(
    "the layers are kept",
    holds="one convolution with 8 windows of 3 by 3 and no padding, a ReLU, a maximum over whole",
)
def layers(answer, rng, device):
    even = 2 * rng.randint(4, 9)
    for size in (even, even + 1):
        same_layers(answer, rng, device, size)


def same_layers(answer, rng, device, size):
    x, _ = images(rng, device, size)
    classes = rng.randint(2, 9)
    model = answer.build(size, classes).to(device)
    model(x)
    side = (size - 2) // 2
    wanted = 8 * 9 + 8 + classes * 8 * side * side + classes
    got = sum(p.numel() for p in model.parameters())
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    expect_equal(len(convs), 1, name="the number of convolutions", hint=KEEP)
    expect_equal(len(linears), 1, name="the number of linear layers", hint=KEEP)
    expect_equal(convs[0].out_channels, 8, name="the windows of the convolution", hint=KEEP)
    kept = convs[0].padding in (0, (0, 0), "valid") and convs[0].kernel_size == (3, 3)
    expect_true(kept, "the convolution has another window or padding", hint=SIDE)
    expect_true(convs[0].bias is not None, "the convolution has lost its bias", hint=KEEP)
    expect_equal(got, wanted, name=f"the number of parameters for size {size}", hint=SIDE)
    (linear,) = linears
    x = torch.randn(2, 1, size, size, device=device)
    with torch.no_grad():
        features = F.max_pool2d(convs[0](x).relu(), 2).flatten(1)
        hint = "Convolution, ReLU, largest of each cell, linear layer, and no other."
        expect_close(model(x), linear(features), name="the scores", hint=hint)


@check(
    "the share of right answers",
    holds=[
        "is the share of right answers as a float, for scores",
        "labels (batch,)",
    ],
)
def share(answer, rng, device):
    n, k = rng.randint(20, 40), rng.randint(11, 15)
    z = torch.randn(n, k, device=device, dtype=rng.choice([torch.float32, torch.float64]))
    z[-1, -1] = 9.0
    y = z.argmax(1)
    wrong = rng.randint(1, n // 3)
    y[:wrong] = (y[:wrong] + 1) % k
    got = answer.accuracy(z, y)
    expect_true(isinstance(got, float), "accuracy does not return a float", hint=FLOAT)
    expect_close(torch.tensor(got), torch.tensor((n - wrong) / n), name="the accuracy", hint=SHARE)


@check("scores and labels stay", holds="Both keep their values.", both_sides=True)
def untouched(answer, rng, device):
    z = torch.randn(9, 5, device=device)
    y = torch.randint(5, (9,), device=device)
    with expect_unchanged(z, y):
        answer.accuracy(z, y)


@check("the program reaches 0.9", holds="This program should print an accuracy above 0.9.")
def score(answer, rng, device):
    expect_true(isinstance(answer.score, float), f"score is {answer.score!r}", hint=FLOAT)
    expect_true(answer.score > 0.9, f"score is {answer.score!r}", hint=MEET)


@check(
    "data and training are as they were",
    holds="Mend all three, and leave data and training as they are.",
)
def as_before(answer, rng, device):
    hint = "The faults are in build and accuracy."
    expect_equal(answer.x.dtype, torch.float32, name="the dtype of x", hint=hint)
    expect_equal(answer.x.max().item(), 1.0, name="the largest value of x", hint=hint)
    expect_equal(answer.y.dtype, torch.int64, name="the dtype of y", hint=hint)
    expect_shape(answer.model(answer.x[:3]), (3, 10), name="the scores of 3 images", hint=hint)


@mutant("flattens the batch too", caught_by=digits)
def build(size, classes):
    side = (size - 2) // 2
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(0),
        nn.Linear(8 * side * side, classes),
    )  # fmt: skip


@mutant("writes the number from the message", caught_by=sizes)
def build(size, classes):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, classes)
    )


@mutant("pads the convolution so that the old formula holds", caught_by=layers)
def build(size, classes):
    side = size // 2
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * side * side, classes),
    )  # fmt: skip


@mutant("drops the maximum over cells", caught_by=layers)
def build(size, classes):
    side = size - 2
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * side * side, classes)
    )


@mutant("subtracts after halving", caught_by=sizes)
def build(size, classes):
    side = -(-(size - 2) // 2)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * side * side, classes),
    )  # fmt: skip


@mutant("rounds the number of cells up", caught_by=layers)
def build(size, classes):
    side = (size - 1) // 2
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(),
        nn.Linear(8 * side * side, classes),
    )  # fmt: skip


@mutant("takes another activation", caught_by=layers)
def build(size, classes):
    side = (size - 2) // 2
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * side * side, classes),
    )  # fmt: skip


@mutant("looks at ten classes", caught_by=share)
def accuracy(z, y):
    return (z[:, :10].argmax(1) == y).float().mean().item()


@mutant("subtracts in place", caught_by=untouched)
def accuracy(z, y):
    z -= z.max(1, keepdim=True).values
    return (z.argmax(1) == y).float().mean().item()


@mutant("compares each answer with every label", caught_by=share)
def accuracy(z, y):
    return (z.argmax(1, keepdim=True) == y).float().mean().item()


@mutant("squeezes a batch of one away", caught_by=one)
def accuracy(z, y):
    said = z.argmax(1, keepdim=True).squeeze()
    return sum(int(s) == int(t) for s, t in zip(said, y)) / len(y)


@mutant("takes the best row of each class", caught_by=share)
def accuracy(z, y):
    return (z.argmax(0)[:1] == y).float().mean().item()


@mutant("returns a tensor", caught_by=share)
def accuracy(z, y):
    return (z.argmax(1) == y).float().mean()


@hinted(1, reaches=digits)
def build(size, classes):
    side = (size - 2) // 2
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(1),
        nn.Linear(8 * side * side, classes),
    )  # fmt: skip


@accepted("names the padding, and takes the maximum before the ReLU")
def build(size, classes):
    side = size // 2 - 1
    return nn.Sequential(
        nn.Conv2d(1, 8, (3, 3), padding="valid"), nn.MaxPool2d((2, 2)), nn.ReLU(),
        nn.Flatten(start_dim=1), nn.Linear(side**2 * 8, classes),
    )  # fmt: skip


@accepted("a class with LazyLinear, which asks its first input")
def build(size, classes):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(classes)
    )


@accepted("asks the layers for their size, and adds an axis to the labels")
def build(size, classes):
    first = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(1))
    with torch.no_grad():
        features = first(torch.zeros(1, 1, size, size)).shape[1]
    first.append(nn.Linear(features, classes))
    return first


def accuracy(z, y):
    said = z.argmax(1, keepdim=True)
    return (said == y[:, None]).double().mean().item()
