"""Judges lessons/08_losses/03_ce_targets.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Write the loss that language models are trained with")

CLASSES = (
    "Place t scores token t + 1, so the last place and the first token drop out. And the classes "
    "are not in dimension 1 yet: transpose or flatten, since reshape keeps the order of numbers."
)
PADDING = (
    "A place counts when its next token is not pad: what it holds itself, and where in its row it "
    "stands, does not matter."
)
EMPTY = "A sum over nothing is 0. Divide it by something that is never 0, and keep it in the graph."


def scores(rng, device, b, t, v, dtype=torch.float32):
    """(B, T, V), half of the time as a view of (B, V, T)."""
    z = 2 * torch.randn(b, v, t)
    z = z.mT if rng.random() < 0.5 else z.mT.contiguous()
    return z.to(device, dtype)


def texts(device, b, t, v, pad=None):
    """(B, T) tokens, none of them pad."""
    tok = torch.randint(v, (b, t))
    if pad is not None and 0 <= pad < v:
        tok = torch.where(tok == pad, (pad + 1) % v, tok)
    return tok.to(device)


def wanted(logits, tok, pad):
    """By loops, in float64."""
    shares = logits.detach().double().log_softmax(-1)
    rows, places = tok.shape
    each = [
        -shares[b, t, tok[b, t + 1]]
        for b in range(rows)
        for t in range(places - 1)
        if tok[b, t + 1] != pad
    ]
    return torch.stack(each).mean() if each else shares.new_zeros(())


def basic(answer, rng, device):
    """Without padding, and with as many tokens in each row: what all other checks build on."""
    b, t, v = 2, 5, 4
    compare(answer, scores(rng, device, b, t, v), texts(device, b, t, v), -100, CLASSES)


def compare(answer, logits, tok, pad, hint):
    right = wanted(logits, tok, pad)
    got = answer.lm_loss(logits, tok, pad)
    expect_close(got, right, dtype=logits.dtype, name="lm_loss", hint=hint)


@check(
    "place t predicts token t + 1",
    holds=["the mean over all next tokens", "[b, t] scores token t + 1 of row b"],
)
def shifted(answer, rng, device):
    for b in (2, 3):
        t, v = rng.sample(range(4, 8), 2)
        compare(answer, scores(rng, device, b, t, v), texts(device, b, t, v), -100, CLASSES)


@check("the classes are found where T equals V, too", holds="logits: (B, T, V)")
def square(answer, rng, device):
    for n in (4, 5, 6):
        compare(answer, scores(rng, device, n, n, n), texts(device, n, n, n), -100, CLASSES)


@check(
    "padding does not count, wherever it stands",
    holds=[
        "Padding may stand anywhere in a row.",
        "A place counts when its *next* token is not `pad`, whatever it holds itself.",
        "The mean loss over all next tokens that are not pad.",
        "from 0 to V - 1, or pad",
    ],
    both_sides=True,
)
def padded(answer, rng, device):
    basic(answer, rng, device)
    t, v = rng.randint(6, 8), 5
    at_end, in_front, inside = slice(t - rng.randint(2, 3), t), slice(rng.randint(1, 3)), 3
    for pad in (0, rng.randrange(1, v - 1), v - 1):
        for places in (at_end, in_front, inside):
            tok = texts(device, 1, t, v, pad)
            tok[0, places] = pad
            compare(answer, scores(rng, device, 1, t, v), tok, pad, PADDING)


@check(
    "pad may lie outside the vocabulary",
    holds="`pad` may be any int, also one outside the vocabulary such as -100.",
)
def outside(answer, rng, device):
    basic(answer, rng, device)
    t, v = rng.randint(4, 6), 4
    for pad in (-100, -1, v, 1000):
        tok = texts(device, 1, t, v)
        tok[0, -2:] = pad
        hint = "Nothing may be looked up for padding: -100 and 1000 are no positions."
        compare(answer, scores(rng, device, 1, t, v), tok, pad, hint)


@check(
    "every token counts the same, in long rows and short ones",
    holds="Each of them counts the same, whichever row it is in",
    both_sides=True,
)
def tokens_alike(answer, rng, device):
    basic(answer, rng, device)
    b, t, v = 3, 9, 6
    for pad in (0, -100):
        tok = texts(device, b, t, v, pad)
        tok[0, 2:] = pad
        tok[1, 5:] = pad
        logits = scores(rng, device, b, t, v)
        logits[0] *= 4  # the short row differs much from the others
        hint = "One sum over all that counts, one number of them. No means of rows."
        compare(answer, logits, tok, pad, hint)


@check(
    "where no token counts, the loss is 0 and backward leaves zeros",
    holds=["If not a single next token counts, the loss is 0", "B and T are 1 or more"],
    both_sides=True,
)
def nothing(answer, rng, device):
    b, v, pad = rng.randint(1, 3), 4, rng.choice((0, 2, -100))
    for t, filled in ((1, False), (5, True)):
        tok = torch.full((b, t), pad, device=device) if filled else texts(device, b, t, v, pad)
        logits = scores(rng, device, b, t, v).requires_grad_()
        loss = answer.lm_loss(logits, tok, pad)
        zero = torch.zeros((), device=device)
        expect_close(loss, zero, name=f"with T = {t}, the loss", hint=EMPTY)
        expect_true(loss.requires_grad, "the loss of 0 has no graph", hint=EMPTY)
        (grad,) = torch.autograd.grad(loss, logits, allow_unused=True)
        expect_true(grad is not None, "the loss of 0 does not depend on logits", hint=EMPTY)
        expect_close(grad, torch.zeros_like(logits), name="the gradient", hint=EMPTY)


@check(
    "a NaN in scores that count is seen",
    holds="A NaN in scores that count is not hidden: the loss is NaN then.",
)
def visible(answer, rng, device):
    basic(answer, rng, device)
    logits, tok = scores(rng, device, 2, 5, 4), texts(device, 2, 5, 4)
    logits[1, 2, 0] = float("nan")
    loss = answer.lm_loss(logits, tok, -100)
    hint = "nan_to_num makes 0 of 0/0, and of a model that has broken. Avoid the 0/0 instead."
    expect_true(bool(loss.isnan()), f"the loss is {loss.item():.4g}, not NaN", hint=hint)


@check("each place gets its own gradient", holds="the mean over all next tokens")
def gradient(answer, rng, device):
    basic(answer, rng, device)
    b, t, v, pad = 2, rng.randint(4, 6), 5, 0
    tok = texts(device, b, t, v, pad)
    tok[0, -1] = tok[1, 1] = pad  # as many tokens count in each row
    logits = scores(rng, device, b, t, v).requires_grad_()
    hint = "The tokens are the caller's: masked_fill makes new ones."
    with expect_unchanged(logits, tok, hint=hint):
        loss = answer.lm_loss(logits, tok, pad)
    hint = "Compute with torch's operations alone, and detach nothing."
    expect_true(
        isinstance(loss, torch.Tensor) and loss.requires_grad, "the loss has no graph", hint=hint
    )
    (got,) = torch.autograd.grad(loss, logits, allow_unused=True)
    expect_true(got is not None, "the loss does not depend on logits", hint=hint)
    leaf = logits.detach().double().requires_grad_()
    places = [(i, j) for i in range(b) for j in range(t - 1) if tok[i, j + 1] != pad]
    each = [leaf[i, j].logsumexp(0) - leaf[i, j, tok[i, j + 1]] for i, j in places]
    (right,) = torch.autograd.grad(torch.stack(each).mean(), leaf)
    hint = "Places in front of padding, and the last one, are pulled nowhere."
    expect_close(got, right, dtype=logits.dtype, name="the gradient", hint=hint)


@check(
    "one row, two places, float64, inputs left alone",
    holds=["float32 or float64", "The scores and the tokens keep their values."],
    both_sides=True,
)
def edges(answer, rng, device):
    basic(answer, rng, device)
    logits, tok = scores(rng, device, 1, 2, 5), texts(device, 1, 2, 5)
    compare(answer, logits, tok, -100, "A single token to predict: B is 1 and T is 2.")
    logits, tok = scores(rng, device, 2, 5, 4, torch.float64), texts(device, 2, 5, 4)
    tok[:, 3:] = -100
    right = wanted(logits, tok, -100)
    with expect_unchanged(logits, tok):
        got = answer.lm_loss(logits, tok, -100)
    hint = "float64 in, float64 out, with all its digits."
    expect_close(got, right, rtol=1e-11, atol=1e-13, name="lm_loss", hint=hint)


def mean_of(logits, tok, pad):
    """What the wrong answers build on: logits and targets that belong together."""
    z, y = logits.flatten(0, 1), tok.flatten()
    total = F.cross_entropy(z, y, ignore_index=pad, reduction="sum")
    return total / (y != pad).sum().clamp(min=1)


@mutant("does not shift", caught_by=shifted)
def lm_loss(logits, tok, pad):
    return mean_of(logits, tok, pad)


@mutant("shifts the scores instead of the tokens", caught_by=shifted)
def lm_loss(logits, tok, pad):
    return mean_of(logits[:, 1:], tok[:, :-1], pad)


@mutant("shifts by rolling, and the last place predicts the first token", caught_by=shifted)
def lm_loss(logits, tok, pad):
    return mean_of(logits, tok.roll(-1, 1), pad)


@mutant("reshapes to (B, V, T)", caught_by=shifted)
def lm_loss(logits, tok, pad):
    B, T, V = logits.shape
    z, y = logits[:, :-1].reshape(B, V, T - 1), tok[:, 1:]
    total = F.cross_entropy(z, y, ignore_index=pad, reduction="sum")
    return total / (y != pad).sum().clamp(min=1)


@mutant("leaves the classes last if the sizes allow it", caught_by=square)
def lm_loss(logits, tok, pad):
    z, y = logits[:, :-1], tok[:, 1:]
    full = F.pad(y, (0, 1), value=pad)
    total = (
        F.cross_entropy(logits, full, ignore_index=pad, reduction="sum")
        if logits.shape[1] == logits.shape[2]
        else F.cross_entropy(z.mT, y, ignore_index=pad, reduction="sum")
    )
    return total / (y != pad).sum().clamp(min=1)


@mutant("counts padding", caught_by=padded)
def lm_loss(logits, tok, pad):
    y = tok[:, 1:].where(tok[:, 1:] >= 0, -100)
    return mean_of(logits[:, :-1], y, -100)


@mutant("takes 0 for padding, whatever pad is", caught_by=padded)
def lm_loss(logits, tok, pad):
    return mean_of(logits[:, :-1], tok[:, 1:], 0)


@mutant("leaves out places that hold padding themselves", caught_by=padded)
def lm_loss(logits, tok, pad):
    y = torch.where(tok[:, :-1] == pad, pad, tok[:, 1:])
    return mean_of(logits[:, :-1], y, pad)


@mutant("divides by all places", caught_by=padded)
def lm_loss(logits, tok, pad):
    y = tok[:, 1:].flatten()
    total = F.cross_entropy(logits[:, :-1].flatten(0, 1), y, ignore_index=pad, reduction="sum")
    return total / max(1, y.numel())


@mutant("looks up padding before it is masked", caught_by=outside)
def lm_loss(logits, tok, pad):
    y = tok[:, 1:]
    each = -logits[:, :-1].log_softmax(-1).gather(-1, y[..., None])[..., 0]
    keep = y != pad
    return (each * keep).sum() / keep.sum().clamp(min=1)


@mutant("takes the mean of the rows' means", caught_by=tokens_alike)
def lm_loss(logits, tok, pad):
    return torch.stack(
        [mean_of(z[None, :-1], y[None, 1:], pad) for z, y in zip(logits, tok)]
    ).mean()


@mutant("takes torch's mean, also over nothing", caught_by=nothing)
def lm_loss(logits, tok, pad):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tok[:, 1:].flatten(), ignore_index=pad)


@mutant("returns a 0 without a graph", caught_by=nothing)
def lm_loss(logits, tok, pad):
    if not (tok[:, 1:] != pad).any():
        return torch.zeros((), dtype=logits.dtype, device=logits.device)
    return mean_of(logits[:, :-1], tok[:, 1:], pad)


@mutant("returns a 0 that is a leaf of its own", caught_by=nothing)
def lm_loss(logits, tok, pad):
    if not (tok[:, 1:] != pad).any():
        return torch.tensor(0.0, requires_grad=True, device=logits.device)
    return mean_of(logits[:, :-1], tok[:, 1:], pad)


@mutant("works in float32", caught_by=edges)
def lm_loss(logits, tok, pad):
    return mean_of(logits[:, :-1].float(), tok[:, 1:], pad).to(logits.dtype)


@mutant("marks padding in the caller's tokens", caught_by=edges)
def lm_loss(logits, tok, pad):
    tok[:, 0] = -100
    return mean_of(logits[:, :-1], tok[:, 1:], pad)


@mutant("makes 0 of every NaN", caught_by=visible)
def lm_loss(logits, tok, pad):
    z, y = logits[:, :-1].flatten(0, 1), tok[:, 1:].flatten()
    return F.cross_entropy(z, y, ignore_index=pad).nan_to_num()


@mutant("writes -100 over the caller's padding", caught_by=gradient)
def lm_loss(logits, tok, pad):
    tok[tok == pad] = -100
    z, y = logits[:, :-1].flatten(0, 1), tok[:, 1:].flatten()
    total = F.cross_entropy(z, y, reduction="sum")
    return total / (y != -100).sum().clamp(min=1)


@hinted(1, reaches=square)
def lm_loss(logits, tok, pad):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), tok[:, 1:])


@accepted("transposes, and masks the losses")
def lm_loss(logits, tok, pad):
    y = tok[:, 1:]
    each = F.cross_entropy(logits.transpose(1, 2)[:, :, :-1], y, ignore_index=pad, reduction="none")
    return each.sum() / max(1, int((y != pad).sum()))


@accepted("selects what counts and looks it up")
def lm_loss(logits, tok, pad):
    keep = tok[:, 1:] != pad
    z, y = logits[:, :-1][keep], tok[:, 1:][keep]
    if not len(y):
        return 0 * logits.sum()
    return (z.logsumexp(-1) - z.gather(-1, y[:, None])[:, 0]).mean()


@accepted("hides the last place by padding")
def lm_loss(logits, tok, pad):
    y = torch.cat([tok[:, 1:], torch.full_like(tok[:, :1], pad)], 1)
    return mean_of(logits, y, pad)


@accepted("adds a tiny number to the count")
def lm_loss(logits, tok, pad):
    y = tok[:, 1:].flatten()
    total = F.cross_entropy(logits[:, :-1].flatten(0, 1), y, ignore_index=pad, reduction="sum")
    return total / ((y != pad).sum() + 1e-8)
