"""Judges lessons/03_maths/05_special_stable.md."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

shows = ["maths/reductions"]

INF = float("inf")
NAN = float("nan")

background(
    "A mixture model explains a sample by K components.",
    "An image of 3072 numbers, each as likely as a coin's head, has a log-probability of -2129",
    "Then write mixture_log_prob, with any of torch's functions.",
    "Two helpers.",
    "torch.where(a, b, c) takes b where the bool tensor a is True, and c elsewhere.",
    "y.squeeze(dim) drops a dimension of size 1.",
)

BORROWED = ("logsumexp", "logcumsumexp", "logaddexp", "softmax")
"""Parts of the names of torch's operators that shift, take the exp and add up."""


class Borrows(TorchDispatchMode):
    """Notes which of torch's own stable sums runs, under whatever name it was called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::")
        if any(part in name for part in BORROWED):
            self.names.append(name.partition(".")[0].strip("_"))
        return func(*args, **(kwargs or {}))


def scores(rng, device, *shape, dtype=torch.float32):
    """Scores around 0, half of the time not contiguous."""
    x = 2 * torch.randn(*shape)
    if rng.random() < 0.5:
        x = 2 * torch.randn(*reversed(shape)).permute(*reversed(range(len(shape))))
    return x.to(device, dtype)


def compare(answer, x, dim, tolerance=1e-4, **hints):
    right = torch.logsumexp(x.double(), dim)
    expect_close(
        answer.my_logsumexp(x, dim),
        right,
        dtype=x.dtype,
        rtol=tolerance,
        atol=tolerance,
        name=f"my_logsumexp(x, {dim})",
        **hints,
    )


def wanted_mixture(logits, log_probs):
    """In float64, with the weights' logs normalised."""
    logs = logits.double() - torch.logsumexp(logits.double(), 0)
    return torch.logsumexp(logs + log_probs.double(), -1)


def compare_mixture(answer, logits, log_probs, tolerance=1e-4, **hints):
    expect_close(
        answer.mixture_log_prob(logits, log_probs),
        wanted_mixture(logits, log_probs),
        dtype=log_probs.dtype,
        rtol=tolerance,
        atol=tolerance,
        name="mixture_log_prob",
        **hints,
    )


@check("moderate scores: the log of the sum of their exps", holds="The log of the sum of exp(x)")
def moderate(answer, rng, device):
    x = scores(rng, device, *rng.sample(range(2, 8), 2))
    compare(answer, x, 1, hint="exp, sum, log, in this order; what was subtracted is added again.")


@check(
    "my_logsumexp is built from exp, sum and log",
    holds=[
        "Write my_logsumexp from exp, sum and log.",
        "what calls these inside, do not pass there",
    ],
)
def built(answer, rng, device):
    x = scores(rng, device, *rng.sample(range(2, 8), 2))
    for dim in (0, 1):
        with Borrows() as borrows:
            answer.my_logsumexp(x, dim)
        expect_true(
            not borrows.names,
            f"torch's `{''.join(borrows.names[:1])}` runs inside of my_logsumexp",
            hint="It does what you are to build here. exp, sum and log are enough.",
        )


@check(
    "any dimension can be the one that disappears",
    holds=["dim: an int, may be negative", "returns: the shape of x without dim"],
)
def dims(answer, rng, device):
    n = rng.randint(2, 4)
    hint = (
        "The maximum, the sum and the dimension that is dropped at the end all go along `dim`. "
        "Other dimensions stay, whatever their size."
    )
    for x in (scores(rng, device, *rng.sample(range(2, 8), 3)), scores(rng, device, n, n, n)):
        for dim in (0, 1, 2, -1, -2, -3):
            compare(answer, x, dim, hint=hint, shape_hint=hint)


@check("scores around 1000 do not overflow")
def large(answer, rng, device):
    x = scores(rng, device, 3, rng.randrange(2, 6))
    hint = "exp of more than 88.7 is inf, in float64 of more than 709. Subtract the largest score "
    hint += "first."
    for far in (200, 1000, 3000):
        compare(answer, x + far, 1, hint=hint)


@check("each row is shifted by its own maximum")
def own_maximum(answer, rng, device):
    x = scores(rng, device, 4, rng.randrange(2, 6))
    x = x + torch.tensor([900.0, 600.0, 0.0, 300.0], device=device)[:, None]
    compare(
        answer,
        x,
        1,
        hint="With one maximum for the whole tensor, the rows far below it underflow to -inf.",
    )
    compare(answer, x.mT, 0, hint="The columns have maxima of their own, too.")


@check("one score far from the others does not overflow either")
def spread(answer, rng, device):
    x = scores(rng, device, 3, rng.randrange(3, 6)).contiguous()
    x[0, 0] += 600
    x[1, 0] -= 600
    compare(
        answer,
        x,
        1,
        hint="Any constant cancels, but only the largest score makes every exponent 0 or less. "
        "Less a mean, or less the largest size, some exp overflows or all of them vanish.",
    )


@check("scores around -1000 do not vanish", holds="and its exp is 0")
def small(answer, rng, device):
    x = scores(rng, device, 3, rng.randrange(2, 6))
    hint = "The exps are all 0, and log(0) is -inf. Relative to their own maximum, the scores "
    hint += "are near 0."
    for far in (200, 1000, 3000):
        compare(answer, x - far, 1, hint=hint)


@check(
    "a row of nothing but -inf gives -inf",
    holds="Where all are -inf, the result is -inf.",
)
def all_minus_inf(answer, rng, device):
    x = scores(rng, device, 3, rng.randrange(1, 5)).contiguous()
    x[1] = -INF
    compare(
        answer,
        x,
        1,
        nan_hint="The maximum of that row is -inf, and -inf minus -inf is nan.",
        hint="That row is the sum of probabilities that are all 0: 0, and the log of it.",
    )


@check("a single -inf does no harm", holds="may hold inf and -inf")
def some_minus_inf(answer, rng, device):
    x = scores(rng, device, 3, 4).contiguous()
    x[0, 0] = x[2, 1] = x[2, 3] = -INF
    compare(answer, x, 1, hint="exp(-inf) is 0: that score adds nothing to its row.")


@check("inf gives inf", holds="Where one is inf, it is inf.")
def plus_inf(answer, rng, device):
    x = scores(rng, device, 3, 4).contiguous()
    x[1, 2] = INF
    x[2, :2] = INF
    compare(
        answer,
        x,
        1,
        nan_hint="inf minus inf is nan. A maximum that is not finite cannot be subtracted.",
        hint="A sum with inf in it is inf.",
    )
    x[2, 0] = -INF
    compare(answer, x, 1, hint="inf and -inf in one row: the sum of inf and 0.")


@check(
    "nan is not hidden",
    holds="Where one is nan, it is nan, with an inf beside it as well.",
)
def nan_stays(answer, rng, device):
    for beside in (None, INF, -INF):
        x = scores(rng, device, 3, 4).contiguous()
        row, place = rng.randrange(3), rng.randrange(4)
        x[row, place] = NAN
        if beside is not None:
            x[row, place - 1] = beside
        compare(
            answer,
            x,
            1,
            hint="A nan that comes in has a cause upstream. Whoever replaces it by a number hides "
            "it.",
        )


@check(
    "sizes of 1 and 0 work",
    holds=["the size along it is 1 or more, and another size may be 0", "one dimension or more"],
    both_sides=True,
)
def sizes(answer, rng, device):
    hint = "Drop the dimension that was reduced, and only that one."
    for shape, dim in (((1, 3), 0), ((3, 1), 1), ((1, 1), 0), ((1, 3), 1), ((2, 1, 3), 2)):
        compare(answer, scores(rng, device, *shape), dim, shape_hint=hint)
    for shape, dim, hint in (
        ((4,), 0, "A vector gives one number, of rank 0."),
        ((0, 3), 1, "No rows, no results: the shape is (0,)."),
        ((2, 3, 0), 1, "The result is empty: (2, 0)."),
    ):
        compare(answer, scores(rng, device, *shape), dim, shape_hint=hint)


@check("the dtype stays, and so does its precision", holds=["x: floating point", "the dtype of x"])
def dtypes(answer, rng, device):
    x = scores(rng, device, 3, 5, dtype=torch.float64)
    compare(answer, x, 1, tolerance=1e-11, dtype_hint="float64 came in: no detour over float32.")
    for dtype in (torch.float16, torch.bfloat16):
        x = scores(rng, device, 3, 5, dtype=dtype) + 60
        compare(
            answer,
            x,
            1,
            tolerance=2e-2,
            dtype_hint="Somewhere a fixed dtype got in.",
            nan_hint="The exp of float16 ends at 11: larger scores overflow.",
        )


@check(
    "the inputs are left as they were",
    holds="Both leave their inputs as they are.",
    both_sides=True,
)
def unchanged(answer, rng, device):
    x = scores(rng, device, 3, 4)
    with expect_unchanged(x):
        answer.my_logsumexp(x, 1)
    logits = scores(rng, device, 4)
    with expect_unchanged(logits, x):
        answer.mixture_log_prob(logits, x)


@check(
    "mixture: each sample gets one log-probability",
    holds=[
        "Component k is drawn with the probability softmax(logits)[k].",
        "It gives sample n the log-probability log_probs[n, k]:",
        "The log-probability of each sample under the mixture.",
        "logits: (K,), K is 1 or more",
        "log_probs: (..., K)",
        "returns: (...,)",
    ],
    both_sides=True,
)
def mixture(answer, rng, device):
    k = rng.randrange(2, 6)
    hint = "The weights are logits.log_softmax(0), one for each component: the last dimension."
    last = "The components lie along the last dimension of log_probs, whatever its rank: dim=-1."
    logits = scores(rng, device, k)
    for lead in ((rng.randrange(6, 9),), (k,), (2, 3), (), (0,), (1,)):
        log_probs = scores(rng, device, *lead, k)
        with advising(IndexError, hint=last), advising(RuntimeError, hint=last):
            compare_mixture(answer, logits, log_probs, hint=hint, shape_hint=last)
    one = scores(rng, device, 1)
    compare_mixture(answer, one, scores(rng, device, 5, 1), hint="One component has the weight 1.")


@check("mixture: a constant on all logits changes nothing")
def normalised(answer, rng, device):
    logits, log_probs = scores(rng, device, 4), scores(rng, device, 3, 4)
    compare_mixture(
        answer,
        logits + rng.choice((-7, 5, 30)),
        log_probs,
        hint="The weights are a softmax: they add up to 1. The logits are not yet their logs.",
    )


@check(
    "mixture: samples at -2000 keep their log-probability",
    holds="has a log-probability of -2129, and its exp is 0",
)
def far_samples(answer, rng, device):
    logits, log_probs = scores(rng, device, 4), scores(rng, device, 3, 4)
    compare_mixture(
        answer,
        logits,
        log_probs - 2000,
        hint="exp(-2000) is 0 in every dtype. A product of probabilities is a sum of their logs.",
    )


@check("mixture: a rare component can be the one that explains")
def rare(answer, rng, device):
    logits = torch.tensor([0.0, rng.uniform(200, 400)], device=device)
    log_probs = torch.tensor([[-3.0, -9000.0], [-9000.0, -3.0]], device=device)
    compare_mixture(
        answer,
        logits,
        log_probs,
        hint="The share of the first component underflows to 0, and its log to -inf. Ask for "
        "the logs of the shares directly.",
    )


@check(
    "mixture: a component with the logit -inf is switched off",
    holds=["-inf switches a component off, and one stays on", "the same dtype, may hold -inf"],
)
def switched_off(answer, rng, device):
    logits, log_probs = scores(rng, device, 3), scores(rng, device, 4, 3)
    logits, log_probs = logits.contiguous(), log_probs.contiguous()
    logits[1] = -INF
    log_probs[0, 0] = -INF
    log_probs[2, [0, 2]] = -INF  # only the one that is switched off could explain it
    compare_mixture(
        answer,
        logits,
        log_probs,
        hint="Weight 0 is the log-weight -inf. A sample that no live component explains has "
        "the probability 0, and the log -inf.",
    )


@check("mixture: the dtype stays, and so does its precision", holds="the dtype of log_probs")
def mixture_dtypes(answer, rng, device):
    k = rng.randrange(2, 6)
    for dtype, tolerance in ((torch.float64, 1e-11), (torch.bfloat16, 2e-2), (torch.float16, 5e-3)):
        compare_mixture(
            answer,
            scores(rng, device, k, dtype=dtype),
            scores(rng, device, 4, k, dtype=dtype) - 30,
            tolerance=tolerance,
            dtype_hint="Somewhere a fixed dtype got in.",
        )


@mutant("takes exp, sum and log as they stand", caught_by=large)
def my_logsumexp(x, dim):
    return x.exp().sum(dim).log()


@mutant("does it in float64", caught_by=large)
def my_logsumexp(x, dim):
    return x.double().exp().sum(dim).log().to(x.dtype)


@mutant("subtracts the mean", caught_by=spread)
def my_logsumexp(x, dim):
    m = x.mean(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)


@mutant("subtracts the largest size", caught_by=spread)
def my_logsumexp(x, dim):
    m = x.abs().amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)


@mutant("cuts the scores off at 88", caught_by=large)
def my_logsumexp(x, dim):
    return x.clamp(max=88).exp().sum(dim).log()


@mutant("adds a small number before the log", caught_by=small)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True).clamp(min=0)
    m = torch.where(m.isfinite(), m, 0)
    return ((x - m).exp().sum(dim, keepdim=True) + 1e-12).log().add(m).squeeze(dim)


@mutant(
    "subtracts the maximum of the whole tensor",
    caught_by=own_maximum,
    misconception="maths/reductions",
    like="takes the statistics of the whole tensor",
)
def my_logsumexp(x, dim):
    m = x.max() if x.numel() else torch.zeros((), device=x.device)
    m = torch.where(m.isfinite(), m, 0)
    return (x - m).exp().sum(dim).log() + m


@mutant("does not guard rows of -inf", caught_by=all_minus_inf)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m == INF, 0, m)
    return ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)


@mutant("guards -inf and forgets inf", caught_by=plus_inf)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m == -INF, 0, m)
    return ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)


@mutant("replaces nan at the end", caught_by=nan_stays)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    out = ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)
    return torch.where(out.isnan(), -INF, out)


@mutant("forgets to add the maximum again", caught_by=moderate)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return (x - m).exp().sum(dim).log()


@mutant("asks torch", caught_by=built)
def my_logsumexp(x, dim):
    return x.log_softmax(dim).sub(x).neg().amax(dim)


@mutant("asks torch.special", caught_by=built)
def my_logsumexp(x, dim):
    return torch.special.logsumexp(x, dim)


@mutant("lets a loss ask torch", caught_by=built)
def my_logsumexp(x, dim):
    y = x.movedim(dim, 1)
    zeros = torch.zeros_like(y[:, 0], dtype=torch.int64)
    return cross_entropy(y, zeros, reduction="none") + y[:, 0]


@mutant("adds up cumulatively", caught_by=built)
def my_logsumexp(x, dim):
    return x.logcumsumexp(dim).select(dim, -1)


@mutant("lets inf win over nan", caught_by=nan_stays)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    out = ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)
    return torch.where((x == INF).any(dim), INF, out)


@mutant("takes the mean of the exps", caught_by=moderate)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return ((x - m).exp().mean(dim, keepdim=True).log() + m).squeeze(dim)


@mutant("squeezes every size of 1", caught_by=sizes)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze()


@mutant("always reduces the last dimension", caught_by=dims)
def my_logsumexp(x, dim):
    m = x.amax(-1, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return ((x - m).exp().sum(-1, keepdim=True).log() + m).squeeze(-1)


@mutant("works in float32 and converts back", caught_by=dtypes)
def my_logsumexp(x, dim):
    y = x.float()
    m = y.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    return ((y - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim).to(x.dtype)


@mutant("subtracts the maximum in place", caught_by=unchanged)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.isfinite(), m, 0)
    x -= m
    return (x.exp().sum(dim, keepdim=True).log() + m).squeeze(dim)


@mutant("leaves the log for the product", caught_by=far_samples)
def mixture_log_prob(logits, log_probs):
    return (logits.softmax(0) * log_probs.exp()).sum(-1).log()


@mutant("adds up along dimension 1", caught_by=mixture)
def mixture_log_prob(logits, log_probs):
    return (logits.log_softmax(0) + log_probs).logsumexp(1 if log_probs.ndim > 1 else 0)


@mutant("returns to probabilities before the sum", caught_by=far_samples)
def mixture_log_prob(logits, log_probs):
    return (logits.log_softmax(0) + log_probs).exp().sum(-1).log()


@mutant("adds the logits as they are", caught_by=normalised)
def mixture_log_prob(logits, log_probs):
    return (logits + log_probs).logsumexp(-1)


@mutant("takes the log of the softmax", caught_by=rare)
def mixture_log_prob(logits, log_probs):
    return (logits.softmax(0).log() + log_probs).logsumexp(-1)


@mutant("weighs the log-probabilities", caught_by=mixture)
def mixture_log_prob(logits, log_probs):
    return (logits.softmax(0) * log_probs).sum(-1)


@mutant("gives all components the same weight", caught_by=mixture)
def mixture_log_prob(logits, log_probs):
    return torch.logsumexp(torch.zeros_like(logits).log_softmax(0) + log_probs, -1)


@mutant("normalises the sum", caught_by=mixture)
def mixture_log_prob(logits, log_probs):
    return (logits + log_probs).log_softmax(-1).logsumexp(-1)


@mutant("replaces -inf by a large number", caught_by=switched_off)
def mixture_log_prob(logits, log_probs):
    logs = logits.log_softmax(0).clamp(min=-1e4)
    return (logs + log_probs).logsumexp(-1)


@mutant("works in float32 and leaves it so", caught_by=mixture_dtypes)
def mixture_log_prob(logits, log_probs):
    return (logits.float().log_softmax(0) + log_probs.float()).logsumexp(-1)


@mutant("writes the weights into the log-probabilities", caught_by=unchanged)
def mixture_log_prob(logits, log_probs):
    log_probs += logits.log_softmax(0)
    return log_probs.logsumexp(-1)


@hinted(1, reaches=small)
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    return ((x - m).exp().sum(dim, keepdim=True).log() + m).squeeze(dim)


@accepted("subtracts in place, from a copy")
def my_logsumexp(x, dim):
    top = x.amax(dim, keepdim=True)
    top = top.masked_fill(top.isinf() | top.isnan(), 0)
    y = x.clone().sub_(top).exp_()
    return y.sum(dim).log_().add_(top.squeeze(dim))


@accepted("joins two scores at a time, shifted by the larger")
def my_logsumexp(x, dim):
    total, *others = x.unbind(dim)
    total = total.clone()
    for new in others:
        m = torch.maximum(total, new)
        m = torch.where(m.isfinite(), m, 0)
        total = m + ((total - m).exp() + (new - m).exp()).log()
    return total


@accepted("scales by powers of two")
def my_logsumexp(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m.abs() < INF, m, torch.zeros_like(m))
    total = torch.exp2((x - m) * 1.4426950408889634).sum(dim)
    return torch.log2(total) * 0.6931471805599453 + m.squeeze(dim)


@accepted("clamps the maximum to the largest float")
def my_logsumexp(x, dim):
    ends = torch.finfo(x.dtype)
    m = x.amax(dim, keepdim=True).clamp(ends.min, ends.max)
    return (x - m).exp().sum(dim).log() + m.squeeze(dim)


@accepted("takes one slice after the other")
def my_logsumexp(x, dim):
    total, *others = x.unbind(dim)
    for new in others:
        high, low = torch.maximum(total, new), torch.minimum(total, new)
        both = high + (low - high).exp().log1p()
        total = torch.where(high.isinf(), high, both)
    return total


@accepted("replaces what is not finite in the maximum")
def my_logsumexp(x, dim):
    m = torch.max(x, dim=dim).values.nan_to_num(0, 0, 0).unsqueeze(dim)
    return m.squeeze(dim) + torch.log(torch.exp(x - m).sum(dim=dim))


@accepted("divides by the sum of the weights at the end")
def mixture_log_prob(logits, log_probs):
    return torch.logsumexp(logits + log_probs, -1) - torch.logsumexp(logits, 0)


@accepted("stacks the components one by one")
def mixture_log_prob(logits, log_probs):
    logs = logits.log_softmax(-1)
    parts = [log_probs[..., k] + logs[k] for k in range(len(logits))]
    return torch.stack(parts).logsumexp(0)


equivalent(
    "m = torch.where(m.isfinite(), m, 0)",
    "m = torch.where(m.isfinite(), m, 1)",
    because="Any finite shift is right: it is added again outside.",
)


equivalent(
    "m = torch.where(m.isfinite(), m, 0)",
    "m = torch.where(m.isfinite(), m, -1)",
    because="Any finite shift is right: it is added again outside.",
)


equivalent(
    "return my_logsumexp(logits.log_softmax(0) + log_probs, -1)",
    "return my_logsumexp(logits.log_softmax(-1) + log_probs, -1)",
    because="The logits have one dimension: 0 and -1 name the same one.",
)
