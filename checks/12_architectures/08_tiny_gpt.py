"""Judges lessons/12_architectures/08_tiny_gpt.md."""

import copy
import math

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    check,
    expect_close,
    expect_equal,
    expect_raises,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

LAST = (
    "The logits at the last position speak of the next token: [:, -1]. Each row draws from the "
    "softmax of its own, over the last dimension."
)
CROP = "Pass the last ctx tokens only: idx[:, -ctx:]. With fewer that slice takes all."
ONCE = "One call model(idx[:, -ctx:]) in each turn of the loop, of the model that was given."
DRAW = (
    "Draw from the softmax over the last dimension with torch.multinomial: for each row anew, and "
    "with gen as it comes. argmax always says the same."
)
TEMP = "Divide the logits by temp, before the softmax: below 1 makes large ones larger."
TOPK = "What is smaller than the k-th largest logit gets -inf before the softmax."
MANY = "From V on all tokens take part, and topk raises for k above V: take min(topk, V)."
GEN = "Pass gen on: torch.multinomial(p, 1, generator=gen)."
MODES = (
    "eval() while you draw; afterwards each module's own mode is back, in the case of an error too."
)
ROWS = "Each row of (B, V) has its own k largest: take the k-th along the last dimension."
GRAPH = "torch.no_grad() around the loop."


def by_jump(V):
    """The logits of the tokens i + 1, i + 2 and so on, after token i."""
    return [2.0, 1.5, *(-1 - 0.1 * n for n in range(V - 2))]


class Fake(nn.Module):
    """Logits that are known: after token i, i + 1 has 2, i + 2 has 1.5, the others -1 and less.

    Only the last position says so; the others speak of token 0. sharp: factor of all logits.
    shift: what is added to all.
    """

    def __init__(self, V, ctx, sharp=1.0, shift=0.0):
        super().__init__()
        self.V, self.ctx, self.sharp, self.shift = V, ctx, sharp, shift
        self.weight = nn.Parameter(torch.zeros(V))
        self.drop = nn.Dropout(0.5)
        self.texts, self.modes = [], []

    def forward(self, ids):
        self.texts.append(ids.clone())
        self.modes.append((self.training, self.drop.training))
        if ids.shape[1] > self.ctx:
            raise IndexError(f"{ids.shape[1]} tokens, and a context of {self.ctx}")
        logits = torch.full((*ids.shape, self.V), -1.0, device=ids.device)
        logits[:, :-1, 0] = 50.0
        jump = (torch.arange(self.V, device=ids.device) - ids[:, -1:] - 1) % self.V
        logits[:, -1] = torch.tensor(by_jump(self.V), device=ids.device)[jump]
        return logits * self.sharp + self.shift + self.weight


class Uneven(Fake):
    """The same chances, from logits that are larger by 10 from row to row."""

    def forward(self, ids):
        rows = torch.arange(len(ids), device=ids.device).view(-1, 1, 1)
        return super().forward(ids) + 10.0 * rows


def problem(rng, device, B=None, t=1, V=7, ctx=4, **options):
    model = Fake(V, ctx, **options).to(device)
    idx = torch.randint(V, (B or rng.randint(2, 5), t), device=device)
    gen = torch.Generator(device).manual_seed(rng.randrange(2**31))
    return model, idx, gen


def jumps(out, t, V):
    """By how much each sampled token is above the one before it, modulo V."""
    return (out[:, t:] - out[:, t - 1 : -1]) % V


def chances(temp, V, topk=None):
    """Of a jump by 1 and by 2."""
    weights = [math.exp(z / temp) for z in by_jump(V)[:topk]]
    return [weight / sum(weights) for weight in weights[:2]]


def expect_chances(out, t, V, temp, topk, hint):
    moved = jumps(out, t, V)
    for jump, right in zip((1, 2), chances(temp, V, topk), strict=False):
        got = (moved == jump).float().mean().item()
        message = (
            f"the token with chance {right:.2f} was drawn in {got:.2f} of {moved.numel()} cases "
            f"(temp={temp}, topk={topk})"
        )
        expect_true(abs(got - right) < 0.06, message, hint=hint)


def expect_all_drawn(out, t, V, topk, hint):
    rare = V - int(jumps(out, t, V).unique().numel())
    message = f"{rare} of the {V} tokens were drawn in no case (topk={topk}), and each has a chance"
    expect_true(rare == 0, message, hint=hint)


@check(
    "rows begin with idx and grow by n",
    holds=[
        "Write `sample`, which continues texts",
        "Append n sampled tokens to each row",
        "returns: int64 (B, t + n), which begins with idx",
    ],
    both_sides=True,
)
def grows(answer, rng, device):
    for B, t, n in ((3, 1, 5), (1, 3, 1), (2, 2, 0), (4, 4, 2)):
        model, idx, gen = problem(rng, device, B, t, ctx=20)
        with expect_unchanged(idx, hint="torch.cat makes a new tensor. Write nothing into idx."):
            out = answer.sample(model, idx, n, 20, 1.0, None, gen)
        expect_shape(out, (B, t + n), hint="One token more in each row, n times.")
        expect_equal(out[:, :t], idx, name="the beginning of the result", hint="idx comes first.")
    expect_unshared(answer, rng, device)


def expect_unshared(answer, rng, device):
    model, idx, gen = problem(rng, device, 2, 2)
    before = idx.clone()
    answer.sample(model, idx, 2, 4, 1.0, None, gen)
    expect_equal(idx, before, name="idx afterwards", hint="Write nothing into idx.")


@check(
    "the last position decides",
    holds="Each new token is drawn from the logits at the last position",
    side="which position",
)
def last(answer, rng, device):
    for t in (1, 3):
        model, idx, gen = problem(rng, device, t=t, ctx=20, sharp=100.0)
        out = answer.sample(model, idx, 9, 20, 1.0, None, gen)
        moved = jumps(out, t, 7)
        expect_equal(moved, torch.ones_like(moved), name="steps of a model that counts", hint=LAST)


@check(
    "the last ctx tokens go in, once for each new token",
    holds=[
        "and t may be at most `ctx`",
        "The model is called once for each new token, with the last `ctx` tokens or all there are",
    ],
    both_sides=True,
)
def cropped(answer, rng, device):
    for t, ctx in ((6, 4), (1, 3), (2, 1)):
        model, idx, gen = problem(rng, device, t=t, ctx=ctx)
        with advising(IndexError, saying="and a context of", hint=CROP):
            out = answer.sample(model, idx, 6, ctx, 1.0, None, gen)
        calls = len(model.texts)
        message = f"for 6 new tokens the model was called {calls} times"
        expect_true(calls == 6, message, hint=ONCE)
        for new, text in enumerate(model.texts):
            right = out[:, : t + new][:, -ctx:]
            message = (
                f"{text.shape[1]} tokens went in, with ctx = {ctx} and a text of {t + new}: they "
                f"are not its last {right.shape[1]}"
            )
            expect_true(torch.equal(text, right), message, hint=CROP)


@check(
    "tokens are drawn, with their chances",
    holds="Each new token is drawn from the logits at the last position",
    side="chance",
)
def drawn(answer, rng, device):
    model, idx, gen = problem(rng, device, B=200, t=2)
    out = answer.sample(model, idx, 12, 4, gen=gen)
    expect_chances(out, 2, 7, 1.0, None, DRAW)
    expect_all_drawn(out, 2, 7, None, DRAW)


@check("temperature divides the logits", holds="divided by `temp`")
def temperature(answer, rng, device):
    for temp in (0.5, 3.0):
        model, idx, gen = problem(rng, device, B=200)
        out = answer.sample(model, idx, 12, 4, temp, None, gen)
        expect_chances(out, 1, 7, temp, None, TEMP)


@check(
    "top k, for any k",
    holds=[
        "If `topk` is given, only the `topk` largest logits take part",
        "a number above V means all",
    ],
    both_sides=True,
)
def top(answer, rng, device):
    for topk, temp, shift in ((2, 1.0, 0.0), (2, 2.0, -100.0), (1, 5.0, 0.0)):
        model, idx, gen = problem(rng, device, B=200, shift=shift)
        out = answer.sample(model, idx, 12, 4, temp, topk, gen)
        most = int(jumps(out, 1, 7).sub(1).remainder(7).max()) + 1
        expect_true(most <= topk, f"a token outside of the top {topk} was drawn", hint=TOPK)
        expect_chances(out, 1, 7, temp, topk, TOPK)
    for topk in (7, 50):
        model, idx, gen = problem(rng, device, B=200)
        with advising(RuntimeError, saying="out of range", hint=MANY):
            out = answer.sample(model, idx, 12, 4, 1.0, topk, gen)
        expect_chances(out, 1, 7, 1.0, None, MANY)
        expect_all_drawn(out, 1, 7, topk, MANY)
    _, idx, gen = problem(rng, device, B=20)
    out = answer.sample(Uneven(7, 4).to(device), idx, 12, 4, 1.0, 1, gen)
    ahead = bool((jumps(out, 1, 7) == 1).all())
    expect_true(ahead, "a row was not cut to the largest of its own logits", hint=ROWS)


@check(
    "gen is the source of chance",
    holds=["with `gen` as the source of chance", "or None for the global one"],
    both_sides=True,
)
def generator(answer, rng, device):
    model, idx, _ = problem(rng, device, B=4)
    seed = rng.randrange(2**31)
    runs = []
    for offset in (0, 0, 1):
        gen = torch.Generator(device).manual_seed(seed + offset)
        state = torch.get_rng_state()
        runs.append(answer.sample(model, idx, 30, 4, 1.0, None, gen))
        unmoved = torch.equal(state, torch.get_rng_state())
        expect_true(unmoved, "the global generator has moved, though gen was given", hint=GEN)
    expect_equal(
        runs[1], runs[0], name="the second run with a generator of the same seed", hint=GEN
    )
    other = not torch.equal(runs[2], runs[0])
    expect_true(other, "another seed gives the same text", hint=GEN)
    torch.manual_seed(seed)
    one = answer.sample(model, idx, 30, 4)
    torch.manual_seed(seed)
    two = answer.sample(model, idx, 30, 4)
    expect_equal(two, one, name="the second run after the same torch.manual_seed", hint=GEN)
    three = answer.sample(model, idx, 30, 4)
    again = torch.equal(three, two)
    expect_true(not again, "two runs without gen are the same", hint="Seed nothing.")


@check(
    "eval mode while drawing, and each module's mode afterwards",
    holds=[
        "afterwards each of its modules is in the mode it was in",
        "An error in the model changes nothing about that, and reaches the caller",
    ],
    both_sides=True,
)
def modes(answer, rng, device):
    for whole, part in ((True, True), (True, False), (False, False), (False, True)):
        model, idx, gen = problem(rng, device)
        model.training, model.drop.training = whole, part
        answer.sample(model, idx, 3, 4, 1.0, None, gen)
        expect_true(model.modes, "the model itself was not called", hint=ONCE)
        expect_true(not any(map(any, model.modes)), "the model was in training mode", hint=MODES)
        after = (model.training, model.drop.training)
        name = "training of the model and of its dropout, afterwards"
        expect_equal(after, (whole, part), name=name, hint=MODES)
    model, idx, gen = problem(rng, device, ctx=2)
    hint = "finally puts the modes back and lets the error pass. An except has to raise it again."
    with expect_raises(IndexError, "an error in the model does not reach the caller", hint=hint):
        answer.sample(model, torch.cat([idx] * 3, 1), 3, 4, 1.0, None, gen)  # ctx is wrong
    expect_true(model.training, "after an error in the model it is left in eval mode", hint=MODES)


@check(
    "no graph, and gradients on or off as before",
    holds="No graph is built, and `idx` stays as it is",
    both_sides=True,
)
def graphless(answer, rng, device):
    for enabled in (True, False):
        model, idx, gen = problem(rng, device)
        grads = []
        model.register_forward_hook(lambda m, i, out, grads=grads: grads.append(out.requires_grad))
        before = idx.clone()
        with torch.set_grad_enabled(enabled):
            out = answer.sample(model, idx, 3, 4, 1.0, None, gen)
            now = torch.is_grad_enabled()
        expect_true(not any(grads), "the model's logits have a graph", hint=GRAPH)
        expect_true(not out.requires_grad, "the result has a graph", hint=GRAPH)
        expect_true(now == enabled, "gradients are switched on or off afterwards", hint=GRAPH)
        expect_equal(idx, before, name="idx", hint="torch.cat makes a new tensor.")


@check("logits in half precision", holds="called with ids (B, t) it returns logits (B, t, V)")
def halves(answer, rng, device):
    model, idx, gen = problem(rng, device, B=100)
    model.register_forward_hook(lambda m, i, out: out.to(torch.bfloat16))
    out = answer.sample(model, idx, 12, 4, 1.0, 2, gen)
    expect_chances(
        out, 1, 7, 1.0, 2, "multinomial takes bfloat16 as well: convert nothing, or all."
    )
    expect_close(out[:, :1], idx, name="the beginning of the result", hint="idx comes first.")


def loop(
    model, idx, n, ctx, temp, topk, gen, crop=True, at=-1, hot=False, greedy=False, top=True,
    lowest=-torch.inf,
):  # fmt: skip
    for _ in range(n):
        z = model(idx[:, -ctx:] if crop else idx)[:, at]
        z = z * temp if hot else z / temp
        if topk is not None and top:
            least = z.topk(min(topk, z.shape[-1])).values[:, -1:]
            z = z.masked_fill(z < least, lowest)
        p = z.softmax(-1)
        new = p.argmax(-1, keepdim=True) if greedy else p.multinomial(1, generator=gen)
        idx = torch.cat([idx, new], 1)
    return idx


def safely(model, *args, **options):
    """The loop without a graph, in eval mode."""
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return loop(model, *args, **options)
    finally:
        for module, mode in modes:
            module.training = mode


@mutant("takes one threshold for all rows", caught_by=top)
@torch.no_grad()
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        for _ in range(n):
            z = model(idx[:, -ctx:])[:, -1] / temp
            if topk is not None:
                least = z.topk(min(topk, z.shape[-1])).values.min()
                z = z.masked_fill(z < least, -torch.inf)
            new = z.softmax(-1).multinomial(1, generator=gen)
            idx = torch.cat([idx, new], 1)
    finally:
        for module, mode in modes:
            module.training = mode
    return idx


@mutant("passes the whole text", caught_by=cropped)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen, crop=False)


@mutant("passes the first tokens", caught_by=cropped)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    with torch.no_grad():
        for _ in range(n):
            new = safely(model, idx[:, :ctx], 1, ctx, temp, topk, gen)[:, -1:]
            idx = torch.cat([idx, new], 1)
    for module, mode in modes:
        module.training = mode
    return idx


@mutant("passes the last token alone", caught_by=cropped)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, 1, temp, topk, gen)


@mutant("looks at the first position", caught_by=last)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen, at=0)


@mutant("takes the largest", caught_by=drawn)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen, greedy=True)


@mutant("multiplies by the temperature", caught_by=temperature)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen, hot=True)


@mutant("ignores the temperature", caught_by=temperature)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, 1.0, topk, gen)


@mutant("ignores top k", caught_by=top)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen, top=False)


@mutant("keeps one token too many", caught_by=top)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk and topk + 1, gen)


@mutant("leaves out the rarest for a large k", caught_by=top)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk and min(topk, 6), gen)


@mutant("hides with -10", caught_by=top)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen, lowest=-10.0)


@mutant("draws one number for all rows", caught_by=drawn)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    for _ in range(n):
        one = safely(model, idx, 1, ctx, temp, topk, gen)[:, -1:]
        step = (one - idx[:, -1:])[:1]
        idx = torch.cat([idx, (idx[:, -1:] + step) % 7], 1)
    return idx


@mutant("seeds a generator of its own in each step", caught_by=drawn)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    for _ in range(n):
        own = torch.Generator(idx.device).manual_seed(0 if gen is None else gen.initial_seed())
        idx = safely(model, idx, 1, ctx, temp, topk, own)
    return idx


@mutant("calls the model twice for each token", caught_by=cropped)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    for _ in range(n):
        safely_logits(model, idx[:, -ctx:])
        idx = safely(model, idx, 1, ctx, temp, topk, gen)
    return idx


@mutant("samples from a copy of the model", caught_by=modes)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(copy.deepcopy(model), idx, n, ctx, temp, topk, gen)


@mutant("swallows the model's error", caught_by=modes)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    try:
        return safely(model, idx, n, ctx, temp, topk, gen)
    except Exception:
        return idx


@mutant("raises for a large k", caught_by=top)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    if topk is not None:
        torch.zeros(7).topk(topk)
    return safely(model, idx, n, ctx, temp, topk, gen)


@mutant("zeroes logits in place of hiding them", caught_by=top)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    class Cut(nn.Module):
        def forward(self, ids):
            z = safely_logits(model, ids)
            if topk is not None:
                z = z.masked_fill(z < z.topk(min(topk, z.shape[-1])).values[..., -1:], 0)
            return z

    return safely(Cut(), idx, n, ctx, temp, None, gen)


def safely_logits(model, ids):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        return model(ids)
    finally:
        for module, mode in modes:
            module.training = mode


@mutant("ignores the generator", caught_by=generator)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, None)


@mutant("seeds in every call", caught_by=generator)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    if gen is None:
        torch.manual_seed(0)
    return safely(model, idx, n, ctx, temp, topk, gen)


@mutant("leaves the mode as it is", caught_by=modes)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    with torch.no_grad():
        return loop(model, idx, n, ctx, temp, topk, gen)


@mutant("calls train() at the end", caught_by=modes)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    model.eval()
    with torch.no_grad():
        out = loop(model, idx, n, ctx, temp, topk, gen)
    model.train()
    return out


@mutant("restores the mode of the whole, and so of every part", caught_by=modes)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    mode = model.training
    model.eval()
    with torch.no_grad():
        try:
            return loop(model, idx, n, ctx, temp, topk, gen)
        finally:
            model.train(mode)


@mutant("forgets the mode when the model raises", caught_by=modes)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    with torch.no_grad():
        out = loop(model, idx, n, ctx, temp, topk, gen)
    for module, mode in modes:
        module.training = mode
    return out


@mutant("builds a graph", caught_by=graphless)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        return loop(model, idx, n, ctx, temp, topk, gen)
    finally:
        for module, mode in modes:
            module.training = mode


@mutant("switches gradients off for good", caught_by=graphless)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    out = safely(model, idx, n, ctx, temp, topk, gen)
    torch.set_grad_enabled(False)
    return out


@mutant("returns the new tokens alone", caught_by=grows)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    return safely(model, idx, n, ctx, temp, topk, gen)[:, idx.shape[1] :]


@accepted("a tensor of the final size, draws among the top k by their places")
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    B, t = idx.shape
    out = idx.new_zeros(B, t + n)
    out[:, :t] = idx
    was = {m: m.training for m in model.modules()}
    try:
        model.train(False)
        with torch.inference_mode():
            for end in range(t, t + n):
                z = model(out[:, max(0, end - ctx) : end])[:, -1, :]
                k = z.shape[-1] if topk is None else min(topk, z.shape[-1])
                values, places = z.float().topk(k, dim=-1)
                p = torch.softmax(values / temp, -1)
                choice = torch.multinomial(p, 1, generator=gen)
                out[:, end] = places.gather(1, choice)[:, 0]
    finally:
        for m, mode in was.items():
            m.training = mode
    return out


@accepted("Gumbel noise and argmax")
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(n):
                z = model(idx[:, -ctx:])[:, -1].double() / temp
                if topk is not None and topk < z.shape[-1]:
                    z = torch.where(z < z.sort(-1).values[:, -topk, None], -torch.inf, z)
                noise = torch.empty_like(z).exponential_(generator=gen)
                new = (z - noise.log()).argmax(-1)
                idx = torch.cat((idx, new[:, None]), dim=1)
    finally:
        for m, mode in modes:
            m.training = mode
    return idx


@hinted(1, reaches=cropped)
def sample(model, idx, n, ctx, temp=1.0, topk=None, gen=None):
    for _ in range(n):
        logits = model(idx[:, -ctx:])[:, -1]
        idx = torch.cat([idx, logits.argmax(-1, keepdim=True)], 1)
    return idx
