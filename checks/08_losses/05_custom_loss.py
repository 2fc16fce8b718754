"""Judges lessons/08_losses/05_custom_loss.md."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background(
    "Segmentation marks the pixels",
    "Its metric is the Dice score",
    "Write the loss that goes with it",
)

FORMULA = "(2 * sum(p * t) + eps) / (sum(p) + sum(t) + eps), with p = sigmoid(logits); 1 minus it."
OWN = "Each image has sums of its own, over its pixels, and a dice of its own. The mean comes last."
CUT = (
    "Somewhere on the way from the logits to the loss the graph ends: a comparison, a round, an "
    "item(), a detach(), or a new tensor made from the result."
)
NOTHING = "eps stands above and below, so that an image with nothing on it has a dice of eps / eps."


def scores(rng, device, *shape, dtype=torch.float32):
    """(B, H, W), half of the time not contiguous."""
    z = 2 * torch.randn(shape)
    if rng.random() < 0.5:
        z = 2 * torch.randn(shape[::-1]).permute(2, 1, 0)
    return z.to(device, dtype)


def masks(z, share=0.5):
    """0 and 1, in the dtype of z, with a pixel of each kind at least in the first image."""
    t = (torch.rand(z.shape) < share).to(z.device, z.dtype)
    t[0, 0, 0] = 1
    t[0, -1, -1] = 0 if t[0].numel() > 1 else 1
    return t


def wanted(z, t, eps=1.0):
    """One image after the other, in float64."""
    scored = []
    for logits, mask in zip(z.double(), t.double()):
        p = 1 / (1 + (-logits).exp())
        dice = (2 * (p * mask).sum() + eps) / (p.sum() + mask.sum() + eps)
        scored.append(1 - dice)
    return sum(scored) / len(scored)


def compare(answer, z, t, hint, **options):
    right = wanted(z.detach(), t, **options)
    got = answer.dice_loss(z, t, **options)
    expect_close(got, right, dtype=z.dtype, name="dice_loss", hint=hint)


@check("one image: 1 minus the soft dice", holds="The sums go over the pixels of one image.")
def value(answer, rng, device):
    for _ in range(2):
        z = scores(rng, device, 1, *rng.sample(range(3, 9), 2))
        compare(answer, z, masks(z), FORMULA)


@check(
    "a batch: the mean of the images' scores",
    holds=["each image counts the same", "The mean over the images of 1 - dice."],
    both_sides=True,
)
def batch(answer, rng, device):
    for b, h, w in (rng.sample(range(2, 7), 3), (4, 4, 4)):
        z = scores(rng, device, b, h, w)
        z[0] -= 3
        t = masks(z)
        t[0] = 0
        t[0, 0, 0] = 1  # a small organ among large ones
        compare(answer, z, t, OWN)
        t[-1] = 0
        hint = "An image with nothing on it is one of the images of the mean, and counts like them."
        compare(answer, z, t, hint)


@check(
    "the logits get the gradient of the soft dice",
    holds=["The gradient is that of the formula.", "part of the graph"],
)
def gradient(answer, rng, device):
    z = scores(rng, device, 1, 4, 5)
    t = masks(z)
    leaf = z.detach().clone().requires_grad_()
    loss = answer.dice_loss(leaf, t)
    message = "the loss has no grad_fn, so nothing can come back"
    expect_true(getattr(loss, "grad_fn", None) is not None, message, hint=CUT)
    (got,) = torch.autograd.grad(loss, leaf, allow_unused=True)
    if got is None:
        fail("no gradient arrives at the logits", hint=CUT)
    expect_true(got.any(), "the gradient that arrives at the logits is 0 everywhere", hint=CUT)
    double = z.detach().double().requires_grad_()
    (right,) = torch.autograd.grad(wanted(double, t), double)
    hint = "Overlap and size both depend on the logits, and both have a share in the gradient."
    expect_close(got, right, dtype=z.dtype, name="the gradient", atol=1e-7, hint=hint)


@check(
    "an image with nothing on it: saying nothing is right",
    holds="On an image without a single pixel of it",
)
def empty(answer, rng, device):
    for size in (20.0, 200.0):
        z = torch.full((1, 3, 4), -size, device=device)
        compare(answer, z, torch.zeros_like(z), NOTHING)
        compare(answer, z, torch.zeros_like(z), NOTHING, eps=1e-3)
    z = scores(rng, device, 1, 3, 4)
    compare(answer, z, torch.zeros_like(z), NOTHING)


@check("eps is the caller's", holds="eps: a number above 0")
def smoothing(answer, rng, device):
    z = scores(rng, device, 1, 3, 5)
    t = masks(z)
    compare(answer, z, t, FORMULA)
    for eps in (0.1, rng.uniform(2, 5)):
        compare(answer, z, t, "The function has an argument for it.", eps=eps)


@check(
    "masks of any dtype, and a loss of the logits' dtype",
    holds=[
        "as bool, as integers, as float64",
        "the dtype of the logits, whatever the mask is",
        "0 and 1 as bool, integer or float",
    ],
    both_sides=True,
)
def dtypes(answer, rng, device):
    z = scores(rng, device, 1, 4, 3)
    compare(answer, z, masks(z), FORMULA)
    hint = "Bring the mask to the dtype of the logits before it meets them."
    for dtype in (torch.bool, torch.int64, torch.uint8, torch.float64, torch.float32):
        t = masks(z).to(dtype)
        got = answer.dice_loss(z, t)
        expect_dtype(got, z.dtype, name=f"with a mask of {dtype}, the loss", hint=hint)
        expect_close(got, wanted(z, t), dtype=z.dtype, name=f"with {dtype}, dice_loss", hint=hint)
    full = torch.ones(1, 20, 20, dtype=torch.uint8, device=device)
    compare(answer, torch.zeros(1, 20, 20, device=device), full, "400 pixels are not 144 in uint8.")


@check(
    "float64, sizes of 1, inputs left alone",
    holds=["float32 or float64", "B, H, W at least 1", "Logits and mask keep their values."],
    both_sides=True,
)
def edges(answer, rng, device):
    one, more = scores(rng, device, 1, 3, 4), scores(rng, device, 2, 3, 4)
    compare(answer, one, masks(one), FORMULA)
    hint = "Sizes of 1 are sizes: keep the dimension of the images."
    for shape in ((1, 1, 1), (1, 1, 5), (1, 5, 1)):
        z = scores(rng, device, *shape)
        compare(answer, z, masks(z), hint)
    compare(answer, more, masks(more), OWN)
    for shape in ((3, 1, 1), (2, 5, 1)):
        z = scores(rng, device, *shape)
        compare(answer, z, masks(z), hint)
    z = scores(rng, device, 1, 3, 4, dtype=torch.float64)
    t = masks(z)
    with expect_unchanged(z, t):
        got = answer.dice_loss(z, t)
    hint = "float64 in, float64 out, with all its digits."
    expect_close(got, wanted(z, t), rtol=1e-11, atol=1e-13, name="dice_loss", hint=hint)


def soft(logits, target, eps=1.0):
    """What the wrong answers spoil."""
    p, t = logits.sigmoid().flatten(1), target.flatten(1).to(logits.dtype)
    return 1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)


@mutant("asks whether the score is above 0", caught_by=gradient)
def dice_loss(logits, target, eps=1.0):
    p, t = (logits > 0).to(logits.dtype).flatten(1), target.flatten(1).to(logits.dtype)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("rounds the shares", caught_by=gradient)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().round().flatten(1), target.flatten(1).to(logits.dtype)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("makes a new tensor of the result", caught_by=gradient)
def dice_loss(logits, target, eps=1.0):
    mean = soft(logits, target, eps).mean().item()
    return torch.tensor(mean, dtype=logits.dtype, device=logits.device, requires_grad=True)


@mutant("adds up numbers", caught_by=gradient)
def dice_loss(logits, target, eps=1.0):
    return torch.stack(
        [soft(z[None], t[None], eps)[0].detach() for z, t in zip(logits, target)]
    ).mean()


@mutant("takes the sizes for constants", caught_by=gradient)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().flatten(1), target.flatten(1).to(logits.dtype)
    sizes = (p.sum(1) + t.sum(1)).detach()
    return (1 - (2 * (p * t).sum(1) + eps) / (sizes + eps)).mean()


@mutant("takes one dice for the whole batch", caught_by=batch)
def dice_loss(logits, target, eps=1.0):
    return soft(logits.flatten()[None], target.flatten()[None], eps)[0]


@mutant("adds the images up", caught_by=batch)
def dice_loss(logits, target, eps=1.0):
    return soft(logits, target, eps).sum()


@mutant("takes a dice for each row of pixels", caught_by=value)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid(), target.to(logits.dtype)
    return (1 - (2 * (p * t).sum(-1) + eps) / (p.sum(-1) + t.sum(-1) + eps)).mean()


@mutant("uses the scores themselves", caught_by=value)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.flatten(1), target.flatten(1).to(logits.dtype)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("returns the dice", caught_by=value)
def dice_loss(logits, target, eps=1.0):
    return 1 - soft(logits, target, eps).mean()


@mutant("counts the overlap once", caught_by=value)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().flatten(1), target.flatten(1).to(logits.dtype)
    return (1 - ((p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("divides by the union", caught_by=value)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().flatten(1), target.flatten(1).to(logits.dtype)
    both = (p * t).sum(1)
    return (1 - (2 * both + eps) / (p.sum(1) + t.sum(1) - both + eps)).mean()


@mutant("leaves eps out", caught_by=empty)
def dice_loss(logits, target, eps=1.0):
    return soft(logits, target, 0.0).mean()


@mutant("puts eps below only", caught_by=empty)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().flatten(1), target.flatten(1).to(logits.dtype)
    return (1 - 2 * (p * t).sum(1) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("has an eps of its own", caught_by=smoothing)
def dice_loss(logits, target, eps=1.0):
    return soft(logits, target, 1.0).mean()


@mutant("lets float64 masks make the loss float64", caught_by=dtypes)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().flatten(1), target.flatten(1)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("makes everything float32", caught_by=edges)
def dice_loss(logits, target, eps=1.0):
    return soft(logits.float(), target, eps).mean()


@mutant("squeezes the images away", caught_by=edges)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid().squeeze().flatten(1), target.squeeze().flatten(1).to(logits.dtype)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


@mutant("writes the sigmoid into the logits", caught_by=edges)
def dice_loss(logits, target, eps=1.0):
    if not logits.requires_grad:
        return soft(torch.logit(logits.sigmoid_()), target, eps).mean()
    return soft(logits, target, eps).mean()


@mutant("leaves images with nothing on them out of the mean", caught_by=batch)
def dice_loss(logits, target, eps=1.0):
    p, t = logits.sigmoid(), target.to(logits.dtype)
    dice = (2 * (p * t).sum((1, 2)) + eps) / (p.sum((1, 2)) + t.sum((1, 2)) + eps)
    some = t.sum((1, 2)) > 0
    return 1 - (dice[some].mean() if some.any() else dice.mean())


@hinted(1, reaches=value)
def dice_loss(logits, target, eps=1.0):
    p = logits.sigmoid()
    return 1 - (2 * (p * target).sum() + eps) / (p.sum() + target.sum() + eps)


@accepted("sums over two dimensions, and converts by where")
def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    zero = torch.zeros_like(p)
    overlap = torch.where(target != 0, p, zero).sum((-2, -1))
    size = p.sum((-2, -1)) + torch.where(target != 0, zero + 1, zero).sum((-2, -1))
    return torch.mean(1 - (overlap + overlap + eps) / (size + eps))


@accepted("goes through the images")
def dice_loss(logits, target, eps=1.0):
    total = 0
    for z, mask in zip(logits, target):
        p, t = z.sigmoid(), mask.type_as(z)
        total = total + (2 * (p * t).sum() + eps) / (p.sum() + t.sum() + eps)
    return 1 - total / len(logits)


@accepted("says it with einsum")
def dice_loss(logits, target, eps=1.0):
    p, t = 1 / (1 + torch.exp(-logits)), target.to(logits)
    both = torch.einsum("bhw,bhw->b", p, t)
    return ((p + t).sum(dim=[1, 2]) - 2 * both).div((p + t).sum(dim=[1, 2]) + eps).mean()
