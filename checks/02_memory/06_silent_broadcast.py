"""Judges lessons/02_memory/06_silent_broadcast.md."""

import re

import torch
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    advising,
    check,
    equivalent,
    expect_close,
    expect_shape,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

PAIRS = (
    "Two shapes belong together if they are equal, or if pred has one dimension more, the last, "
    "of size 1. Everything else is a ValueError."
)


def wanted(pred, target):
    """The mean over the pairs, in float64; both are read in their own order."""
    difference = pred.detach().double().flatten() - target.double().flatten()
    return difference.square().sum() / target.numel()


def absolute(pred, target):
    """The mean of the absolute differences, in float64."""
    return (pred.detach().double().flatten() - target.double().flatten()).abs().mean()


def all_pairs(pred, target):
    """The mean over every prediction with every target, in float64."""
    difference = pred.detach().double().flatten()[:, None] - target.double().flatten()
    return difference.square().mean()


def loss(answer, pred, target, hint):
    """What the answer returns for shapes that it must take."""
    try:
        return answer.safe_mse(pred, target)
    except ValueError:
        shapes = f"pred {tuple(pred.shape)} with target {tuple(target.shape)}"
        fail(f"{shapes} is refused, they belong together", hint=hint)


def expect_loss(answer, pred, target, hint):
    # Before the call: it might change what it is given.
    right, off, pairs = wanted(pred, target), absolute(pred, target), all_pairs(pred, target)
    got = loss(answer, pred, target, hint)
    expect_shape(got, (), name="the loss", hint="One number: the mean over all pairs.")
    if torch.isclose(got.detach().double(), right * target.numel(), rtol=1e-4):
        hint = "That is the sum over the pairs. The loss is their mean."
    elif torch.isclose(got.detach().double(), right.sqrt(), rtol=1e-4):
        hint = "That is the root of the loss. The mean squared error is the mean of the squares."
    elif torch.isclose(got.detach().double(), off, rtol=1e-4):
        hint = "That is the mean of the absolute differences. Square each difference instead."
    elif target.ndim > 1 and torch.isclose(
        got.detach().double(), right * target.numel() / len(target), rtol=1e-4
    ):
        hint = (
            "That is a mean over the rows. The mean is over all pairs, not over dimension 0 alone."
        )
    elif not torch.isclose(got.detach().double(), pairs, rtol=1e-4):
        hint = "Square the difference of each pair, and take the mean of the squares. " + hint
    expect_close(got, right, dtype=pred.dtype, name="the loss", hint=hint)


def refusal(answer, p, t, device, hint):
    """The text of the ValueError for a pred of shape p and a target of shape t."""
    pred, target = torch.randn(p, device=device), torch.randn(t, device=device)
    try:
        answer.safe_mse(pred, target)
    except ValueError as error:
        return str(error)
    except Exception as error:
        got = f"raises {type(error).__name__}"
    else:
        got = "gives a loss"
    return fail(f"pred {p} with target {t} {got}, ValueError is wanted", hint=hint)


@check(
    "each prediction of a column meets its own target",
    holds=["compares each prediction with its own target", "So (N, 1) goes with (N,)"],
    side="its own target",
)
def column(answer, rng, device):
    n = rng.randint(3, 40)
    hint = "Column and vector make all pairs, (N, N). Bring both to one shape before you subtract."
    y = torch.randn(n, 2, device=device)[:, 1]
    expect_loss(answer, y[:, None].clone(), y, hint)
    expect_loss(answer, torch.randn(n, 3, device=device)[:, 1:2], y, hint)
    expect_loss(answer, 5 + 0.1 * torch.randn(n, 1, device=device), y, hint)


@check(
    "equal shapes are compared place by place",
    holds=["It takes equal shapes.", "floating point, of target's shape", "same dtype"],
)
def equal_shapes(answer, rng, device):
    m, n = rng.sample(range(2, 9), 2)
    hint = "Equal shapes belong together as they are, whatever their rank, and with sizes of 1 too."
    for shape in ((n,), (m, n), (n, n), (n, 1), (1, n), (m, n, 1), ()):
        pred, target = torch.randn(shape, device=device), torch.randn(shape, device=device)
        expect_loss(answer, pred, target, hint)
    pred, target = torch.randn(m, n, device=device).T, torch.randn(n, m, device=device)
    expect_loss(answer, pred, target, "The tensors need not be contiguous.")
    for dtype in (torch.float64, torch.float16):
        hint = "The dtype is the one that comes in."
        whole = target.round().to(dtype)
        expect_loss(answer, whole + 3, whole, hint)


@check(
    "a last dimension of size 1 is allowed at any rank",
    holds=[
        "it also takes predictions with one dimension more, if that is the last one",
        "and (B, T, 1) with (B, T)",
    ],
)
def any_rank(answer, rng, device):
    m, n = rng.sample(range(2, 9), 2)
    hint = "It is about the last dimension: (B, T, 1) for (B, T), and (1,) for a single number."
    for shape in ((m, n), (m, 1), (1, n), (m, n, 3), ()):
        pred = torch.randn(*shape, 1, device=device)
        expect_loss(answer, pred, torch.randn(shape, device=device), hint)


@check("a batch of one is a batch", holds="at least one element", both_sides=True)
def one(answer, rng, device):
    hint = "`squeeze()` takes every size of 1, the batch's too. Only the last dimension may go."
    for p, t in (((1, 1), (1,)), ((1,), (1,)), ((1, 1), (1, 1)), ((1, 1, 1), (1, 1))):
        expect_loss(answer, torch.randn(p, device=device), torch.randn(t, device=device), hint)


@check(
    "shapes that only broadcast are refused",
    holds=["with its own target or not at all", "Every other pair of shapes is"],
    side="not at all",
)
def broadcast(answer, rng, device):
    m, n = rng.sample(range(3, 9), 2)
    for p, t in (
        ((n,), ()),
        ((n,), (1,)),
        ((n, 1), (1,)),
        ((n, 1), ()),
        ((1, 1), ()),
        ((m, n), (n,)),
        ((n, 1), (1, n)),
        ((m, n, 1), (n,)),
        ((n, 1), (m,)),
        ((1,), (n,)),
    ):
        refusal(answer, p, t, device, PAIRS + " That PyTorch can stretch one does not matter.")


@check(
    "two columns are not a prediction",
    holds=["and has the size 1", "Every other pair of shapes is"],
)
def columns(answer, rng, device):
    n = rng.randint(3, 9)
    hint = "(N, 2) holds two numbers for each target. Taking the first would hide a mistake."
    for p, t in (((n, 2), (n,)), ((n, n), (n,)), ((n, 4, 3), (n, 4)), ((n, 0), (n,))):
        refusal(answer, p, t, device, PAIRS + " " + hint)


@check("as many elements are not enough", holds="also where the number of elements agrees")
def same_count(answer, rng, device):
    m, n = rng.sample(range(2, 9), 2)
    hint = "flatten, view and reshape make shapes agree that do not belong together."
    for p, t in (((m, n), (n, m)), ((m * n,), (m, n)), ((n,), (n, 1)), ((1, n), (n,))):
        refusal(answer, p, t, device, PAIRS + " " + hint)
    refusal(answer, (m, n, 1), (n, m), device, PAIRS + " " + hint)
    ones = "squeeze() on both sides makes them agree, and they do not belong together."
    for p, t in (((n, 1, 1), (1, n)), ((1, n, 1), (n, 1)), ((n, 1, 1), (1, n, 1))):
        refusal(answer, p, t, device, PAIRS + " " + ones)


@check(
    "the refusal names both shapes",
    holds="Its text names both shapes, as",
    both_sides=True,
)
def names_shapes(answer, rng, device):
    a, b, c = rng.sample(range(11, 60), 3)
    for p, t in (((a, b), (a, c)), ((a, 1), (b,)), ((a,), (b, c))):
        text = refusal(answer, p, t, device, PAIRS)
        numbers = {int(word) for word in re.findall(r"\d+", text)}
        expect_true(
            set(p) | set(t) <= numbers,
            f"pred {p} with target {t} is refused with the words {text!r}",
            hint="The shapes that the caller passed, all sizes of them, belong into the text.",
        )


@check(
    "training can follow the loss back",
    holds=[
        "0-d tensor, made with tensor operations alone",
        "training follows the operations back to both tensors",
    ],
    both_sides=True,
)
def gradient(answer, rng, device):
    n = rng.randint(3, 9)
    hint = "`item()`, `float()`, `detach()` and new tensors cut the loss off from what it was made "
    hint += "of."
    stays = (
        "A method that ends in _ changes the tensor that it is called on. Both stay as they are."
    )
    for shape in ((n, 1), (n,)):
        pred = torch.randn(shape, device=device, requires_grad=True)
        target = torch.randn(n, device=device, requires_grad=True)
        with advising(RuntimeError, saying="in-place operation", hint=stays):
            got = loss(answer, pred, target, hint)
        expect_shape(got, (), name="the loss")
        expect_true(got.requires_grad, "the loss has no way back to the predictions", hint=hint)
        got.backward()
        right = 2 * (pred.detach() - target.detach().reshape(shape)) / n
        expect_close(pred.grad, right, name="the gradient of the predictions", hint=hint)
        back = target.grad is not None
        expect_true(back, "the loss has no way back to the targets", hint=hint)
        expect_close(target.grad, -right.reshape(n), name="the gradient of the targets", hint=hint)


@check(
    "predictions and targets stay as they are",
    holds="Both tensors stay as they are.",
    both_sides=True,
)
def untouched(answer, rng, device):
    n = rng.randint(3, 9)
    target = torch.randn(n, device=device)
    for pred in (torch.randn(n, 1, device=device), torch.randn(n, device=device)):
        with expect_unchanged(pred, target):
            loss(answer, pred, target, "`-=` writes into the caller's tensor.")


def paired(pred, target):
    """The predictions in the shape of their targets, or a ValueError."""
    if pred.ndim == target.ndim + 1 and pred.shape[-1] == 1:
        pred = pred[..., 0]
    if pred.shape != target.shape:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return pred


@mutant("cuts the targets off", caught_by=gradient)
def safe_mse(pred, target):
    return (paired(pred, target) - target.detach()).square().mean()


@mutant("compares every prediction with every target", caught_by=column)
def safe_mse(pred, target):
    return ((pred - target) ** 2).mean()


@mutant("adds up and does not divide", caught_by=column)
def safe_mse(pred, target):
    return ((paired(pred, target) - target) ** 2).sum()


@mutant("takes the root", caught_by=column)
def safe_mse(pred, target):
    return ((paired(pred, target) - target) ** 2).mean().sqrt()


@mutant("allows the extra dimension on either side", caught_by=same_count)
def safe_mse(pred, target):
    if target.ndim == pred.ndim + 1 and target.shape[-1] == 1:
        target = target[..., 0]
    return ((paired(pred, target) - target) ** 2).mean()


@mutant("squeezes both", caught_by=same_count)
def safe_mse(pred, target):
    pred, target = pred.squeeze(), target.squeeze()
    if pred.shape != target.shape:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return ((pred - target) ** 2).mean()


@mutant("squeezes both where pred has one dimension more", caught_by=same_count)
def safe_mse(pred, target):
    given = f"{tuple(pred.shape)} and {tuple(target.shape)}"
    if pred.ndim == target.ndim + 1 and pred.shape[-1] == 1:
        pred, target = pred.squeeze(), target.squeeze()
    if pred.shape != target.shape:
        raise ValueError(given)
    return ((pred - target) ** 2).mean()


@mutant("flattens both", caught_by=same_count)
def safe_mse(pred, target):
    if pred.numel() != target.numel():
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return ((pred.flatten() - target.flatten()) ** 2).mean()


@mutant("squeezes the batch of one away", caught_by=one)
def safe_mse(pred, target):
    if pred.shape != target.shape:
        pred = pred.squeeze()
    if pred.shape != target.shape:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return ((pred - target) ** 2).mean()


@mutant("takes the first of several columns", caught_by=columns)
def safe_mse(pred, target):
    first = pred[..., 0] if pred.ndim == target.ndim + 1 else pred
    if first.shape != target.shape:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return ((first - target) ** 2).mean()


@mutant("takes whatever broadcasts to pred's shape", caught_by=broadcast)
def safe_mse(pred, target):
    if pred.ndim == target.ndim + 1 and pred.shape[-1] == 1:
        pred = pred[..., 0]
    try:
        target.expand(pred.shape)
    except RuntimeError:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}") from None
    return ((pred - target) ** 2).mean()


@mutant("knows a column and nothing of higher rank", caught_by=any_rank)
def safe_mse(pred, target):
    if pred.ndim == 2 and target.ndim == 1 and pred.shape[1] == 1:
        pred = pred[:, 0]
    if pred.shape != target.shape:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return ((pred - target) ** 2).mean()


@mutant("drops the last 1 of equal shapes too", caught_by=equal_shapes)
def safe_mse(pred, target):
    first = pred[..., 0] if pred.ndim and pred.shape[-1] == 1 else pred
    if first.shape != target.shape:
        raise ValueError(f"{tuple(pred.shape)} and {tuple(target.shape)}")
    return ((first - target) ** 2).mean()


@mutant("asserts", caught_by=broadcast)
def safe_mse(pred, target):
    if pred.ndim == target.ndim + 1 and pred.shape[-1] == 1:
        pred = pred[..., 0]
    assert pred.shape == target.shape, (pred.shape, target.shape)
    return ((pred - target) ** 2).mean()


@mutant("refuses without a word", caught_by=names_shapes)
def safe_mse(pred, target):
    try:
        pred = paired(pred, target)
    except ValueError:
        raise ValueError("the shapes do not fit") from None
    return ((pred - target) ** 2).mean()


@mutant("makes a new tensor of the number", caught_by=gradient)
def safe_mse(pred, target):
    value = ((paired(pred, target) - target) ** 2).mean().item()
    return torch.tensor(value, dtype=pred.dtype, device=pred.device)


@mutant("subtracts in place", caught_by=untouched)
def safe_mse(pred, target):
    pred = paired(pred, target)
    if pred.requires_grad:
        return ((pred - target) ** 2).mean()
    pred -= target
    return (pred**2).mean()


@hinted(1, reaches=column)
def safe_mse(pred, target):
    if pred.shape[-1] == 1:
        pred = pred[..., 0]
    if pred.shape != target.shape:
        raise ValueError("the shapes differ")
    return ((pred - target) ** 2).mean()


@accepted("gives the target the dimension it lacks")
def safe_mse(pred, target):
    if pred.shape not in (target.shape, (*target.shape, 1)):
        raise ValueError(f"{list(pred.shape)} against {list(target.shape)}")
    return functional.mse_loss(pred, target.reshape(pred.shape))


@accepted("compares the leading sizes and the last one")
def safe_mse(pred, target):
    column = pred.dim() == target.dim() + 1 and pred.size(-1) == 1
    flat = pred.squeeze(-1) if column else pred
    if flat.size() != target.size():
        raise ValueError(f"pred {pred.shape}, target {target.shape}")
    difference = flat - target
    return (difference * difference).sum() / target.numel()


equivalent(
    "paired = pred[..., 0]",
    "paired = pred[..., -1]",
    because="The last dimension has the size 1 here: 0 and -1 name the same place.",
)
