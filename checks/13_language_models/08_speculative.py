"""Judges lessons/13_language_models/08_speculative.md."""

import math

import torch

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

background("Calls that may help")

equivalent(
    "ratio = p[:, :K].gather(2, at) / q.gather(2, at)",
    "ratio = p.gather(2, at) / q.gather(2, at)",
    because="gather reads as many places as the index has: K",
)
equivalent(
    "ratio = p[:, :K].gather(2, at) / q.gather(2, at)",
    "ratio = p[:, :].gather(2, at) / q.gather(2, at)",
    because="gather reads as many places as the index has: K",
)
equivalent(
    "kept = u < ratio[..., 0]",
    "kept = u < ratio[..., -1]",
    because="the dimension has one entry",
)
equivalent(
    "kept = u < ratio[..., 0]",
    "kept = u <= ratio[..., 0]",
    because="u equals the ratio by accident only",
)
equivalent(
    "out[rows, n] = last[:, 0]",
    "out[rows, n] = last[:, -1]",
    because="the dimension has one entry",
)
equivalent(
    "u = torch.rand(B, K, generator=generator, device=p.device)",
    "u = torch.rand(B, K, generator=generator)",
    because="the device matters on a GPU only",
)
equivalent(
    "rows = torch.arange(B, device=p.device)",
    "rows = torch.arange(B)",
    because="the device matters on a GPU only",
)
equivalent(
    "place = torch.arange(K + 1, device=p.device)",
    "place = torch.arange(K + 1)",
    because="the device matters on a GPU only",
)

N = 20_000
RULE = (
    "Keep x with chance p(x) / q(x), by a random number for each place of each text. Instead of a"
    " refused x draw from max(p - q, 0)."
)


def distributions(rng, device, vocabulary=None, places=1, dtype=torch.float32):
    """p (K + 1, V) and q (K, V), no entry below 0.1 / V.

    The chance of a token does not depend on what stands before it, so that all can be counted.
    """
    v = vocabulary or rng.choice((3, 4, 5))
    both = torch.randn(2 * places + 1, v, dtype=dtype, device=device) * 1.5
    both = 0.9 * both.softmax(-1) + 0.1 / v
    return both[: places + 1], both[places + 1 :]


def drawn(q, rows):
    """(rows, K): a token of each place's distribution."""
    return torch.stack([torch.multinomial(one, rows, replacement=True) for one in q], 1)


def outcome(answer, p, q, rows):
    """Drafted tokens, and what became of them."""
    drafted = drawn(q, rows)
    out = answer.verify(p.repeat(rows, 1, 1), q.repeat(rows, 1, 1), drafted.clone())
    hint = "A row has K + 1 places, with -1 behind the last token."
    expect_shape(out, (rows, len(q) + 1), hint=hint)
    return drafted, out


def expect_shares(tokens, p, what, hint):
    """tokens: drawn ones. Fails where chance explains it once in 3 million times (5 sigma)."""
    inside = bool(((tokens >= 0) & (tokens < len(p))).all())
    expect_true(inside, f"{what}: not each of them is a token from 0 to {len(p) - 1}", hint=hint)
    counts, want = tokens.bincount(minlength=len(p)).double(), p.double() * len(tokens)
    stat = ((counts - want) ** 2 / want).sum().item()
    df = len(p) - 1
    bound = df * (1 - 2 / (9 * df) + 5 * math.sqrt(2 / (9 * df))) ** 3
    pairs = zip((counts / len(tokens)).tolist(), p.tolist(), strict=True)
    far = ", ".join(f"{got:.3f} for {wanted:.3f}" for got, wanted in pairs)
    says = f"{len(tokens):,} {what}: {far}. chi-square {stat:.0f}, chance explains {bound:.0f}"
    expect_true(stat < bound, says, hint=hint)


@check(
    "a draft equal to the target is kept, and one token added",
    holds="If all K are kept, a token drawn from `p[:, K]`",
)
def perfect(answer, rng, device):
    for rows in (1, N):
        p, _ = distributions(rng, device, places=rng.choice((1, 4)))
        k = len(p) - 1
        drafted, out = outcome(answer, p, p[:k], rows)
        hint = "p = q: the ratio is 1, and everything is kept."
        expect_equal(int((out[:, :k] != drafted).sum()), 0, name="tokens not kept", hint=hint)
        hint = "All K were kept: p[:, K] gives one more token for free."
        expect_equal(int((out[:, k] < 0).sum()), 0, name="texts without token K", hint=hint)
    expect_shares(out[:, k], p[k], "tokens behind K kept ones", "They are drawn from p[:, K].")


@check("a token with p = 0 never comes out", holds="kept with the chance min(1, p / q)")
def never(answer, rng, device):
    p, q = distributions(rng, device, 5)
    p[0, 2] = 0
    p[0] /= p[0].sum()
    drafted, out = outcome(answer, p, q, 4000)
    two, was_two = out[:, 0] == 2, drafted[:, 0] == 2
    hint = "The residual is max(p - q, 0): it is 0 where q is larger than p."
    name = "tokens 2 in place of others, with p = 0"
    expect_equal(int((two & ~was_two).sum()), 0, name=name, hint=hint)
    hint = "The chance to keep a token is p / q: with p = 0 it is refused."
    expect_equal(int((two & was_two).sum()), 0, name="tokens 2 kept, with p = 0", hint=hint)


@check(
    "behind the first refusal nothing stands",
    holds=["Behind it stands -1, whatever was drafted there.", "decides about K drafted tokens"],
)
def stops(answer, rng, device):
    p, q = distributions(rng, device, 4, 3)
    p[0] = torch.tensor([0.0, 0.5, 0.5, 0.0])
    q[0] = torch.tensor([1.0, 0.0, 0.0, 0.0])  # refused
    p[1:3] = q[1:]  # would be kept
    _, out = outcome(answer, p, q, 500)
    hint = "What was drafted behind a refused token does not count, kept or not."
    expect_equal(int((out[:, 1:] >= 0).sum()), 0, name="tokens behind a refused one", hint=hint)
    wrong = int((out[:, 1:] != -1).sum())
    expect_equal(wrong, 0, name="places that are not -1", hint="Behind the last token stands -1.")


@check("as many are kept as can be", holds="of its own probabilities at that place")
def rate(answer, rng, device):
    p, q = distributions(rng, device)
    _, out = outcome(answer, p, q, N)
    got = (out[:, 1] >= 0).double().mean().item()
    want = torch.minimum(p[0], q[0]).sum().item()
    expect_true(
        abs(got - want) < 5 * 0.5 / N**0.5,
        f"{got:.1%} of the drafted tokens were kept, the sum of min(p, q) is {want:.1%}",
        hint="Keep with the chance min(1, p / q), no less and no more, by a random number for each"
        " text. To keep fewer and still have the shares of p is possible, and slower.",
    )


@check(
    "places and texts are decided by numbers of their own",
    holds="Each place of each text has a random number of its own.",
    both_sides=True,
)
def independent(answer, rng, device):
    q = torch.tensor([[0.5, 0.5, 0.0]] * 2, device=device)
    p = torch.tensor([[0.25, 0.25, 0.5]] * 3, device=device)  # each token is kept by 1/2
    _, out = outcome(answer, p, q, 4000)
    both = (out[:, 2] >= 0).double().mean().item()
    expect_true(
        abs(both - 0.25) < 5 * 0.43 / 4000**0.5,
        f"each of two places is kept by 1/2, and both of them in {both:.1%} of the texts",
        hint="Two numbers give 25%: torch.rand of shape (B, K), one for each place of each text.",
    )


@check("the first token has the target's distribution", holds="At the first refused place stands")
def exact(answer, rng, device):
    for _ in range(3):
        p, q = distributions(rng, device)
        _, out = outcome(answer, p, q, N)
        expect_shares(out[:, 0], p[0], "first tokens", RULE)


@check("so has each place of a draft of three", holds="drawn from the residual of that place")
def places(answer, rng, device):
    p, q = distributions(rng, device, 3, 3, torch.float64)
    _, out = outcome(answer, p, q, N)
    for k in range(4):
        seen = out[:, k]
        expect_shares(seen[seen >= 0], p[k], f"tokens at place {k}", RULE)
    n = (out >= 0).sum(1)
    lengths = torch.stack([n == k + 1 for k in range(4)]).double().mean(1)
    a, b, c = torch.minimum(p[:3], q).sum(1).tolist()
    want = torch.tensor([1 - a, a * (1 - b), a * b * (1 - c), a * b * c], dtype=torch.float64)
    hint = "A text goes on as long as no token was refused."
    name = "shares of texts with 1, 2, 3, 4 tokens"
    expect_close(lengths.cpu(), want, name=name, hint=hint, rtol=0, atol=0.02)


@check("the inputs stay as they were", holds="The inputs may require gradients, and keep")
def unchanged(answer, rng, device):
    p, q = distributions(rng, device, 4, 2)
    drafted = drawn(q, 50)
    p = p.repeat(50, 1, 1).mT.contiguous().mT.requires_grad_()
    q = q.repeat(50, 1, 1).requires_grad_()
    with expect_unchanged(p, q, drafted, hint="Write the replacements to a new tensor."):
        out = answer.verify(p, q, drafted)
    expect_shape(out, (50, 3))


@check(
    "the generator decides all draws",
    holds=["The draws use `generator`", "stands on the device of `p`"],
)
def seeds(answer, rng, device):
    p, q = distributions(rng, device, 5, 3)
    p, q, drafted = p.expand(200, -1, -1), q.expand(200, -1, -1), drawn(q, 200)
    seed = rng.randrange(1000)
    one = answer.verify(p, q, drafted, torch.Generator(device).manual_seed(seed))
    torch.rand(1, device=device)
    two = answer.verify(p, q, drafted, torch.Generator(device).manual_seed(seed))
    three = answer.verify(p, q, drafted, torch.Generator(device).manual_seed(seed + 1))
    hint = "The same seed gave other tokens: give the generator to every draw."
    expect_equal(two, one, name="tokens of the same seed", hint=hint)
    differs = bool((three != one).any())
    expect_true(differs, "another seed gives the same tokens", hint="Draw with the generator.")


@check("without a generator the global one draws", holds="None is the global one.")
def default(answer, rng, device):
    p, q = distributions(rng, device, 5, 3)
    p, q, drafted = p.repeat(200, 1, 1), q.repeat(200, 1, 1), drawn(q, 200)
    torch.manual_seed(rng.randrange(1000))
    state = torch.get_rng_state() if device.type == "cpu" else None
    one, two = answer.verify(p, q, drafted), answer.verify(p, q, drafted)
    hint = "Hand generator=None on: torch.rand and torch.multinomial then use the global generator."
    differs = bool((one != two).any())
    expect_true(differs, "two calls without a generator drew the same tokens", hint=hint)
    if state is not None:
        torch.set_rng_state(state)
        again = answer.verify(p, q, drafted)
        expect_equal(again, one, name="tokens of the same global state", hint=hint)


def body(
    p, q, drafted, generator=None, rule="ratio", rest="residual", stop=True, bonus=True, gen="both",
    numbers="both", together=False,
):  # fmt: skip
    (b, k, _), at = q.shape, drafted[..., None]
    mine, theirs = p[:, :k].gather(2, at)[..., 0], q.gather(2, at)[..., 0]
    first = generator if gen in ("both", "first") else None
    shape = {"both": (b, k), "text": (b, 1), "place": (1, k)}[numbers]
    u = torch.rand(shape, generator=first, device=p.device)
    kept = {
        "ratio": u < mine / theirs,
        "greedy": mine >= theirs,
        "inverted": u < theirs / mine,
        "p": u < mine,
    }[rule]
    n = kept.cumprod(1).sum(1)
    n = n.min().expand(b) if together else n
    choice = {"residual": (p[:, :k] - q).clamp(min=0), "p": p[:, :k], "abs": (p[:, :k] - q).abs()}
    rows, table = torch.arange(b, device=p.device), torch.cat([choice[rest] + 1e-12, p[:, k:]], 1)
    second = generator if gen in ("both", "second") else None
    last = torch.multinomial(table[rows, n], 1, generator=second)
    out = torch.cat([drafted, last], 1)
    out[rows, n] = last[:, 0]
    place = torch.arange(k + 1, device=p.device)
    void = place > n[:, None]
    if not stop:
        void &= torch.cat([~kept, torch.ones_like(kept[:, :1])], 1)
    if not bonus:
        void |= (n == k)[:, None] & (place == k)
    return out.masked_fill(void, -1)


@mutant("no token after K kept ones", caught_by=perfect)
def verify(*args):
    return body(*args, bonus=False)


@mutant("the added token is drawn from the last place before it", caught_by=perfect)
def verify(p, *args):
    return body(torch.cat([p[:, :-1], p[:, -2:-1]], 1), *args)


@mutant("keeps everything", caught_by=never)
def verify(p, q, drafted, generator=None):
    return torch.cat([drafted, torch.multinomial(p[:, -1], 1, generator=generator)], 1)


@mutant("q / p", caught_by=never)
def verify(*args):
    return body(*args, rule="inverted", rest="p")


@mutant("decides at each place by itself", caught_by=stops)
def verify(*args):
    return body(*args, stop=False)


@mutant("draws the first token from p", caught_by=rate)
def verify(p, q, drafted, generator=None):
    right = torch.full_like(torch.cat([drafted, drafted[:, :1]], 1), -1)
    right[:, :1] = torch.multinomial(p[:, 0], 1, generator=generator)
    more = torch.multinomial(p[:, 1], 1, generator=generator)[:, 0]
    right[:, 1] = torch.where(right[:, 0] == drafted[:, 0], more, -1)
    return right


@mutant("a refused token is drawn again from p", caught_by=exact)
def verify(*args):
    return body(*args, rest="p")


@mutant("the residual is |p - q|", caught_by=exact)
def verify(*args):
    return body(*args, rest="abs")


@mutant("keeps where p >= q, and nothing else", caught_by=exact)
def verify(*args):
    return body(*args, rule="greedy")


@mutant("keeps with chance p", caught_by=exact)
def verify(*args):
    return body(*args, rule="p")


@mutant("replaces with the residual of place 0", caught_by=places)
def verify(p, q, drafted, generator=None):
    out = body(p, q, drafted, generator)
    n, k = (out >= 0).sum(1) - 1, q.shape[1]
    rows = torch.arange(len(q), device=p.device)
    rest = (p[:, 0] - q[:, 0]).clamp(min=0) + 1e-12
    other = torch.multinomial(rest, 1, generator=generator)[:, 0]
    out[rows, n] = torch.where(n < k, other, out[rows, n])
    return out


@mutant("rand without the generator", caught_by=seeds)
def verify(*args):
    return body(*args, gen="second")


@mutant("multinomial without the generator", caught_by=seeds)
def verify(*args):
    return body(*args, gen="first")


@mutant("without a generator it begins one with seed 0", caught_by=default)
def verify(p, q, drafted, generator=None):
    if generator is None:
        generator = torch.Generator(p.device).manual_seed(0)
    return body(p, q, drafted, generator)


@mutant("without a generator it begins one with a random seed", caught_by=default)
def verify(p, q, drafted, generator=None):
    if generator is None:
        generator = torch.Generator(p.device)
        generator.seed()
    return body(p, q, drafted, generator)


@mutant("one random number for all places of a text", caught_by=independent)
def verify(*args):
    return body(*args, numbers="text")


@mutant("one random number for all texts of a place", caught_by=independent)
def verify(*args):
    return body(*args, numbers="place")


@mutant("all texts stop where the first of them stops", caught_by=rate)
def verify(*args):
    return body(*args, together=True)


@mutant("the place of the refused token is left, the replacement stands behind it", caught_by=never)
def verify(p, q, drafted, generator=None):
    out = body(p, q, drafted, generator)
    n, rows = (out >= 0).sum(1) - 1, torch.arange(len(p), device=p.device)
    late = (n + 1).clamp(max=drafted.shape[1])
    last = out[rows, n]
    out[rows, n] = torch.cat([drafted, out[:, -1:]], 1)[rows, n]
    out[rows, late] = last
    return out


@mutant("the likeliest token of the residual", caught_by=exact)
def verify(p, q, drafted, generator=None):
    out = body(p, q, drafted, generator)
    n, k, rows = (out >= 0).sum(1) - 1, q.shape[1], torch.arange(len(q), device=p.device)
    likeliest = (p[:, :k] - q).argmax(-1)[rows, n.clamp(max=k - 1)]
    out[rows, n] = torch.where(n < k, likeliest, out[rows, n])
    return out


@mutant("subtracts q from p in place", caught_by=unchanged)
def verify(p, q, drafted, generator=None):
    with torch.no_grad():
        out = body(p, q, drafted, generator)
        p[:, :-1] -= q
    return out


@mutant("writes into the drafted tokens", caught_by=unchanged)
def verify(p, q, drafted, generator=None):
    out = body(p, q, drafted, generator)
    drafted.copy_(out[:, :-1])
    return out


@accepted("a loop over the places")
def verify(p, q, drafted, generator=None):
    (b, k, _), device = q.shape, p.device
    out = torch.full((b, k + 1), -1, device=device)
    going, rows = torch.ones(b, dtype=torch.bool, device=device), torch.arange(b, device=device)
    for i in range(k):
        x = drafted[:, i]
        u = torch.rand(b, generator=generator, device=device)
        good = going & (u * q[rows, i, x] < p[rows, i, x])
        bad = going & ~good
        out[good, i] = x[good]
        if bad.any():
            rest = torch.relu(p[bad, i] - q[bad, i])
            out[bad, i] = torch.multinomial(rest, 1, generator=generator)[:, 0]
        going = good
    if going.any():
        out[going, k] = torch.multinomial(p[going, k], 1, generator=generator)[:, 0]
    return out


@accepted("inverts the cumulated residual")
def verify(p, q, drafted, generator=None):
    (b, k, v), device = q.shape, p.device
    u = torch.rand(b, k + 1, generator=generator, device=device, dtype=torch.float64)
    x = drafted.unsqueeze(-1)
    kept = u[:, :k].log() < (p[:, :-1].gather(2, x).log() - q.gather(2, x).log()).squeeze(2)
    first = torch.where(kept, k, torch.arange(k, device=device)).amin(1)
    zero = torch.zeros_like(q[:, :1])
    rest = (p - torch.cat([q, zero], 1)).clamp_min(0)[torch.arange(b, device=device), first]
    total = rest.double().cumsum(1)
    last = (u[:, k:] * total[:, -1:] >= total).sum(1).clamp(max=v - 1)
    place = torch.arange(k + 1, device=device)[None]
    out = torch.where(place < first[:, None], torch.cat([drafted, drafted[:, :1]], 1), -1)
    return torch.where(place == first[:, None], last[:, None], out)


@accepted("exponential race instead of multinomial, in float64, bernoulli")
def verify(p, q, drafted, generator=None):
    p, q = p.detach().double(), q.detach().double()
    (b, k, _), device = q.shape, p.device
    rows, places = torch.arange(b, device=device)[:, None], torch.arange(k, device=device)
    chance = (p[rows, places, drafted] / q[rows, places, drafted]).clamp(max=1)
    kept = torch.bernoulli(chance, generator=generator).bool()
    out = torch.full((b, k + 1), -1, device=device)
    going = torch.ones(b, dtype=torch.bool, device=device)
    for i in range(k + 1):
        rest = p[:, i] if i == k else (p[:, i] - q[:, i]).clamp(min=0)
        last = (rest / torch.empty_like(rest).exponential_(generator=generator)).argmax(1)
        here = torch.where(kept[:, i], drafted[:, i], last) if i < k else last
        out[:, i] = torch.where(going, here, -1)
        going = going & kept[:, i] if i < k else going
    return out


@hinted(1, reaches=never)
def verify(p, q, drafted, generator=None):
    k, at = drafted.shape[1], drafted[..., None]
    ratio = p[:, :k].gather(2, at) / q.gather(2, at)
    u = torch.rand(drafted.shape, generator=generator, device=p.device)
    more = torch.multinomial(p[:, k], 1, generator=generator)
    return torch.cat([torch.where(u < ratio[..., 0], drafted, -1), more], 1)
