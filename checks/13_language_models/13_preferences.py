"""Judges lessons/13_language_models/13_preferences.md."""

import copy
import math

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
    mutant,
)

background("A side of the pairs is a tuple", "It has at least one token")

equivalent(
    "z = model(ids[:, :-1]).log_softmax(-1)",
    "z = model(ids).log_softmax(-1)",
    because="gather reads as many places as the index has: the last place is not read",
)
equivalent(
    "z = model(ids[:, :-1]).log_softmax(-1)",
    "z = model(ids[:, :]).log_softmax(-1)",
    because="gather reads as many places as the index has: the last place is not read",
)
equivalent(
    "each = z.gather(-1, ids[:, 1:, None])[..., 0]",
    "each = z.gather(-1, ids[:, 1:, None])[..., -1]",
    because="the last dimension has one entry",
)

EVEN = "Nothing is preferred yet: the margin is 0 and the loss ln 2."
SUM = (
    "Sum, not mean, the log-probabilities of the reply's tokens: each is read off at the place"
    " before it, and prompt and padding do not count. The mean is taken"
    " over the losses of the pairs."
)
BETA = "beta stands inside the sigmoid: -logsigmoid(beta * margin), then the mean over the pairs."
EPS = "eps is added to the deviation, behind the root, and its value is the argument."
STABLE = "sigmoid has become 0 and its log minus infinity: F.logsigmoid does not take that way."
GROUP = "Mean and deviation, divided by n, of the group and not of the batch; eps is added to it."
KEPT = "Do not call eval() or requires_grad_() in here: the models belong to the caller."

VARIANTS = (
    ({"mean": True}, "Sum the log-probabilities of a reply's tokens, and do not divide."),
    (
        {"shift": False},
        "The logits at a place are for the next token: read them one place earlier.",
    ),
    ({"mask": False}, "Padding counts here: multiply by the mask before you add up."),
    ({"late": True}, "The first token of the reply is predicted too, by the last of the prompt."),
    ({"flip": True}, "Chosen minus rejected, policy minus reference."),
    ({"noref": True}, "The reference's difference is subtracted."),
    ({"total": True}, "The mean over the pairs, not the sum."),
    (
        {"early": True},
        "First the loss of each pair, then the mean: not the loss of the mean margin.",
    ),
    ({"beta": 1.0}, "The margin is multiplied by beta."),
)


class LM(nn.Module):
    """A small causal model: it sees the sum of the embeddings so far."""

    def __init__(self, sharp=1.0):
        super().__init__()
        self.embedding, self.head, self.sharp = nn.Embedding(11, 8), nn.Linear(8, 11), sharp

    def forward(self, ids):
        return self.head(self.embedding(ids).cumsum(1).tanh()) * self.sharp


def rows(rng, device, prompts, T):
    """Ids and reply mask: prompts of their own length, replies, then padding of 0."""
    ids = torch.randint(1, 11, (len(prompts), T), device=device)
    reply = torch.zeros(len(prompts), T, dtype=torch.bool, device=device)
    for b, start in enumerate(prompts):
        end = rng.randint(start + 1, T - 2 if b == 0 else T)  # one row is padded at least
        reply[b, start:end] = True
        ids[b, end:] = 0
    return ids, reply


def problem(rng, device, sharp=1.0, B=None):
    B, T = B or rng.randint(3, 4), rng.choice([8, 9])
    prompts = [rng.randint(1, 4) for _ in range(B)]
    lengths = [T, T + 2] if rng.random() < 0.5 else [T + 2, T]
    c, r = (rows(rng, device, prompts, n) for n in lengths)
    for b, start in enumerate(prompts):
        r[0][b, :start] = c[0][b, :start]
    return LM(sharp).to(device), LM(sharp).to(device), c, r


def one_logp(model, ids, reply):
    """Token by token, in float64."""
    sums = []
    for row, keep in zip(ids, reply, strict=True):
        p = model(row[None])[0].double().log_softmax(-1)
        sums.append(sum(p[t - 1, row[t]] for t in range(1, len(row)) if keep[t]))
    return torch.stack(sums)


@torch.no_grad()
def wanted(policy, reference, chosen, rejected, beta=0.1):
    """The loss, and the mean margin."""
    ours = one_logp(policy, *chosen) - one_logp(policy, *rejected)
    theirs = one_logp(reference, *chosen) - one_logp(reference, *rejected)
    margin = ours - theirs
    return F.softplus(-beta * margin).mean().float(), margin.mean().item()


def told(got, p, q, c, r, otherwise):
    """The hint for a loss that one known mistake explains, or the other one."""
    with torch.no_grad():
        for mistake, hint in VARIANTS:
            wrong = body(p, q, c, r, **mistake)
            if got.shape == wrong.shape and torch.allclose(got.float(), wrong, rtol=1e-5, atol=0):
                return hint
    return otherwise


@check("equal models have the loss ln 2", holds="Write `dpo`, the DPO loss")
def even(answer, rng, device):
    p, _, c, r = problem(rng, device)
    got = answer.dpo(p, copy.deepcopy(p), c, r, 0.5)
    expect_shape(got, (), name="the loss", hint="The mean over the pairs is one number.")
    right = torch.tensor(math.log(2), device=device)
    hint = EVEN
    if torch.allclose(got, right * len(c[0]), rtol=1e-4):
        hint = "The mean over the pairs, not the sum."
    elif torch.allclose(got, -right, rtol=1e-4):
        hint = "The loss is minus the log of the sigmoid."
    expect_close(got, right, name="the loss", hint=hint)


@check(
    "models and ids stay as they were",
    holds=["The models keep their modes and each", "Neither function changes the values"],
    both_sides=True,
)
def kept(answer, rng, device):
    p, q, c, r = problem(rng, device)
    for one, two in ((True, False), (False, True)):
        p.train(one), q.train(two)
        with expect_unchanged(*c, *r, hint="Make new tensors, as with masked_fill."):
            answer.dpo(p, q, c, r)
        modes = [m.training for model in (p, q) for m in model.modules()]
        expect_equal(modes, [one] * 3 + [two] * 3, name="the modes of the models", hint=KEPT)
        frozen = [w.requires_grad for model in (p, q) for w in model.parameters()]
        expect_equal(frozen, [True] * 6, name="requires_grad of the parameters", hint=KEPT)


@check(
    "the loss of replies of all lengths",
    holds=[
        "its mean over the pairs of a batch",
        "The two sides may have different lengths T, and padding does not count",
        "and the logits at a place are for the next token",
        "Each row of `ids` is a prompt, a reply and padding",
        "Rows of the same number in `chosen` and `rejected` begin with the same prompt",
        "returns: the loss, a tensor of shape ()",
        "policy, reference: causal models",
    ],
    both_sides=True,
)
def value(answer, rng, device):
    for B in (None, 1):
        p, q, c, r = problem(rng, device, B=B)
        got, right = answer.dpo(p, q, c, r), wanted(p, q, c, r)[0]
        hint = told(got.detach(), p, q, c, r, SUM)
        expect_close(got, right, name="the loss", hint=hint, rtol=1e-4, atol=1e-5)


@check("beta multiplies the margin", holds="the DPO loss")
def scaling(answer, rng, device):
    p, q = LM().to(device), LM().to(device)
    c = torch.randint(1, 11, (4, 5), device=device)
    r = c.clone()
    r[:, 4] = c[:, 4] % 10 + 1
    reply = torch.zeros(4, 5, dtype=torch.bool, device=device)
    reply[:, 4] = True  # one token each: sum and mean are the same
    for beta in (0.05, 2.0):
        sides = (c, reply), (r, reply)
        right = wanted(p, q, *sides, beta)[0]
        expect_close(answer.dpo(p, q, *sides, beta), right, name="the loss", hint=BETA, rtol=1e-4)


@check("less loss, more margin", holds="The policy gets a gradient", side="the policy")
def sign(answer, rng, device):
    p, q, c, r = problem(rng, device)
    opt = torch.optim.SGD(p.parameters(), lr=0.05)
    before = wanted(p, q, c, r)[1]
    for _ in range(5):
        opt.zero_grad()
        loss = answer.dpo(p, q, c, r, 0.5)
        hint = "Only the reference is computed under no_grad."
        expect_true(loss.requires_grad, "the loss has no gradient for the policy", hint=hint)
        loss.backward()
        opt.step()
    said = "five steps down the loss made the rejected reply more likely than the chosen"
    expect_true(
        wanted(p, q, c, r)[1] > before,
        said,
        hint="Chosen minus rejected, policy minus reference.",
    )


@check("padding does not count", holds="padding does not count", both_sides=True)
def masked(answer, rng, device):
    p, q, c, r = problem(rng, device)
    with torch.no_grad():
        first = answer.dpo(p, q, c, r)
        ids = c[0].clone()
        for row, keep in zip(ids, c[1], strict=True):
            row[int(keep.nonzero().max()) + 1 :] = 7
        hint = "Other padding, another loss: multiply by the mask before you add up."
        expect_close(answer.dpo(p, q, (ids, c[1]), r), first, hint=hint, atol=1e-5)


@check(
    "the reference gets no gradient",
    holds="The policy gets a gradient and the reference none",
    both_sides=True,
)
def frozen(answer, rng, device):
    p, q, c, r = problem(rng, device)
    answer.dpo(p, q, c, r).backward()
    still = all(w.grad is None or not w.grad.any() for w in q.parameters())
    expect_true(still, "the reference has gradients", hint="Its part is a constant.")
    moves = any(w.grad is not None and bool(w.grad.any()) for w in p.parameters())
    expect_true(moves, "the policy has no gradient")
    twin = copy.deepcopy(p)
    twin.zero_grad()
    ours = one_logp(twin, *c) - one_logp(twin, *r)
    with torch.no_grad():
        theirs = one_logp(q, *c) - one_logp(q, *r)
    F.softplus(-0.1 * (ours - theirs)).mean().backward()
    hint = "It comes from both replies, through each token: detach the reference's part alone."
    for (name, w), v in zip(p.named_parameters(), twin.parameters(), strict=True):
        name = f"the policy's gradient of {name}"
        expect_close(w.grad, v.grad, name=name, hint=hint, rtol=1e-3, atol=1e-4)


@check("large margins stay finite", holds="The loss is finite, and right", both_sides=True)
def stable(answer, rng, device):
    p, q, c, r = problem(rng, device, 300.0)
    for one, two in ((c, r), (r, c)):
        got = answer.dpo(p, q, one, two, 1.0)
        expect_true(bool(got.isfinite()), f"the loss is {got.item()}", hint=STABLE)
        right = wanted(p, q, one, two, 1.0)[0]
        hint = "A margin of -m has a loss of about m."
        expect_close(got, right, hint=hint, rtol=1e-3, atol=1e-3)


@check(
    "each group by itself",
    holds=[
        "Write `advantages`, those of the insight",
        "The standard deviation of a group of n divides by n",
        "rewards: (groups, n) -> (groups, n).",
    ],
)
def groups(answer, rng, device):
    w = torch.rand(rng.randint(2, 4), rng.randint(4, 6), device=device)
    w[0] += 100
    right = torch.stack(
        [(g - g.mean()) / ((g - g.mean()).square().mean().sqrt() + 1e-4) for g in w.double()]
    ).float()
    got = answer.advantages(w)
    hint, d = GROUP, w - w.mean(1, keepdim=True)
    for wrong, told_for in (
        (d / (w.std(1, keepdim=True) + 1e-4), "std divides by n - 1: correction=0 divides by n."),
        ((w - w.mean()) / (w.std(correction=0) + 1e-4), "Mean and deviation are the group's own."),
        (d, "The difference is divided by the deviation of the group."),
        (d / (w.var(1, keepdim=True, correction=0) + 1e-4), "That is the variance: take the root."),
    ):
        if got.shape == wrong.shape and torch.allclose(got.float(), wrong, rtol=1e-3, atol=1e-3):
            hint = told_for
    expect_close(got, right, name="advantages", hint=hint, rtol=1e-4, atol=3e-3)
    got = answer.advantages(w[1:].T.contiguous().T, 0.5)
    right = torch.stack(
        [(g - g.mean()) / ((g - g.mean()).square().mean().sqrt() + 0.5) for g in w[1:].double()]
    ).float()
    expect_close(got, right, name="advantages with eps = 0.5", hint=EPS)


@check("a group that agrees", holds="A group with equal rewards gives 0.")
def agreed(answer, rng, device):
    w = torch.full((2, rng.randint(3, 6)), rng.choice([0.0, 1.0]), device=device)
    w[1, 0] = 0.5
    got = answer.advantages(w)
    hint = "A group with equal rewards has the deviation 0, and 0 / 0 is NaN: add eps."
    expect_close(got[0], torch.zeros_like(w[0]), name="advantages", hint=hint, nan_hint=hint)
    expect_true(bool(got[1].isfinite().all()), "the other group has no numbers")


@check("rewards stay as they were", holds="Neither function changes the values that it gets.")
def rewards_kept(answer, rng, device):
    w = torch.rand(3, 5, device=device)
    with expect_unchanged(w, hint="Subtract into a new tensor: `-=` writes into the caller's."):
        answer.advantages(w)


def body(
    policy, reference, chosen, rejected, beta=0.1, mean=False, shift=True, mask=True, flip=False,
    outside=False, grad=False, unstable=False, noref=False, prompt=False, total=False, late=False,
    early=False, half=False,
):  # fmt: skip
    """The loss, with one mistake at a time."""

    def logp(model, ids, reply):
        if shift:
            z, y, m = model(ids[:, :-1]).log_softmax(-1), ids[:, 1:], reply[:, 1:]
        else:
            z, y, m = model(ids).log_softmax(-1), ids, reply
        if late:
            m = m & reply[:, :-1]
        if prompt:
            m = m.flip(1).cumsum(1).flip(1) > 0
        each = z.gather(-1, y[..., None])[..., 0]
        if not mask:
            return each.sum(-1)
        s = (each * m).sum(-1)
        return s / m.sum(-1) if mean else s

    with torch.set_grad_enabled(grad):
        theirs = logp(reference, *chosen) - logp(reference, *rejected)
    worse = logp(policy, *rejected)
    ours = logp(policy, *chosen) - (worse.detach() if half else worse)
    d = ours if noref else ours - theirs
    d = -d if flip else d
    d = d.mean() if early else d
    if unstable:
        return -torch.sigmoid(beta * d).log().mean()
    if total:
        return -F.logsigmoid(beta * d).sum()
    return -beta * F.logsigmoid(d).mean() if outside else -F.logsigmoid(beta * d).mean()


@mutant("mean over the tokens", caught_by=value)
def dpo(*a, **k):
    return body(*a, **k, mean=True)


@mutant("each token scores itself", caught_by=value)
def dpo(*a, **k):
    return body(*a, **k, shift=False)


@mutant("sums the pairs", caught_by=even)
def dpo(*a, **k):
    return body(*a, **k, total=True)


@mutant("padding counts", caught_by=masked)
def dpo(*a, **k):
    return body(*a, **k, mask=False)


@mutant("rejected minus chosen", caught_by=sign)
def dpo(*a, **k):
    return body(*a, **k, flip=True)


@mutant("no reference", caught_by=even)
def dpo(*a, **k):
    return body(*a, **k, noref=True)


@mutant("beta outside", caught_by=scaling)
def dpo(*a, **k):
    return body(*a, **k, outside=True)


@mutant("the reference learns too", caught_by=frozen)
def dpo(*a, **k):
    return body(*a, **k, grad=True)


@mutant("the rejected reply is a constant", caught_by=frozen)
def dpo(*a, **k):
    return body(*a, **k, half=True)


@mutant("the loss of the mean margin", caught_by=value)
def dpo(*a, **k):
    return body(*a, **k, early=True)


@mutant("leaves out the first token of the reply", caught_by=value)
def dpo(*a, **k):
    return body(*a, **k, late=True)


@mutant("freezes the reference for good", caught_by=kept)
def dpo(policy, reference, *a, **k):
    return body(policy, reference.requires_grad_(False), *a, **k)


@mutant("puts the models into eval mode", caught_by=kept)
def dpo(policy, reference, *a, **k):
    return body(policy.eval(), reference.eval(), *a, **k)


@mutant("writes 0 where no reply stands", caught_by=kept)
def dpo(policy, reference, chosen, rejected, beta=0.1):
    loss = body(policy, reference, chosen, rejected, beta)
    for ids, reply in (chosen, rejected):
        ids[~reply] = 0
    return loss


@mutant("holds the margin between -50 and 50", caught_by=stable)
def dpo(policy, reference, chosen, rejected, beta=0.1):
    loss = body(policy, reference, chosen, rejected, beta)
    return loss.clamp(max=50.0)


@mutant("log of sigmoid", caught_by=stable)
def dpo(*a, **k):
    return body(*a, **k, unstable=True)


@mutant("advantages over the whole batch", caught_by=groups)
def advantages(rewards, eps=1e-4):
    return (rewards - rewards.mean()) / (rewards.std(correction=0) + eps)


@mutant("no eps", caught_by=agreed)
def advantages(rewards, eps=1e-4):
    return (rewards - rewards.mean(-1, keepdim=True)) / rewards.std(-1, keepdim=True, correction=0)


@mutant("eps under the root", caught_by=groups)
def advantages(rewards, eps=1e-4):
    d = rewards - rewards.mean(-1, keepdim=True)
    return d / (d.square().mean(-1, keepdim=True) + eps).sqrt()


@mutant("centres the rewards in place", caught_by=rewards_kept)
def advantages(rewards, eps=1e-4):
    rewards -= rewards.mean(-1, keepdim=True)
    return rewards / (rewards.std(-1, keepdim=True, correction=0) + eps)


@mutant("divides by n - 1", caught_by=groups)
def advantages(rewards, eps=1e-4):
    return (rewards - rewards.mean(-1, keepdim=True)) / (rewards.std(-1, keepdim=True) + eps)


@hinted(1, reaches=even)
def dpo(policy, reference, chosen, rejected, beta=0.1):
    def logp(model, ids, reply):
        return model(ids).log_softmax(-1).amax(-1).mean(-1)

    ours = logp(policy, *chosen) - logp(policy, *rejected)
    with torch.no_grad():
        theirs = logp(reference, *chosen) - logp(reference, *rejected)
    return -F.logsigmoid(beta * (ours - theirs)).mean()


@accepted("cross_entropy with ignored places, and softplus")
def dpo(policy, reference, chosen, rejected, beta=0.1):
    def sums(model):
        out = []
        for ids, reply in (chosen, rejected):
            y = ids[:, 1:].masked_fill(~reply[:, 1:], -100)
            z = model(ids)[:, :-1].transpose(1, 2)
            out.append(-F.cross_entropy(z, y, reduction="none").sum(1))
        return out

    c, r = sums(policy)
    with torch.no_grad():
        rc, rr = sums(reference)
    return F.softplus(-beta * ((c - rc) - (r - rr))).mean()


@accepted("both sides in one padded batch, detach, binary cross-entropy")
def dpo(policy, reference, chosen, rejected, beta=0.1):
    T = max(chosen[0].shape[1], rejected[0].shape[1])
    ids, keep = (
        torch.cat([F.pad(side[i], (0, T - side[i].shape[1])) for side in (chosen, rejected)])
        for i in (0, 1)
    )

    def logp(model):
        z = model(ids)[:, :-1]
        each = torch.take_along_dim(z, ids[:, 1:, None], -1).squeeze(-1) - z.logsumexp(-1)
        return each.where(keep[:, 1:], 0.0).sum(1)

    c, r = (logp(policy) - logp(reference).detach()).chunk(2)
    return F.binary_cross_entropy_with_logits(beta * (c - r), torch.ones_like(c))


@accepted("counts the prompt on both sides: it cancels")
def dpo(*a, **k):
    return body(*a, **k, prompt=True)


@accepted("advantages by hand")
def advantages(rewards, eps=1e-4):
    d = rewards - rewards.mean(1)[:, None]
    return d / (d.pow(2).mean(1).sqrt() + eps)[:, None]
