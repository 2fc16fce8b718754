"""Judges lessons/13_language_models/09_packing.md."""

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
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("A dialogue is a pair of lists", "None is longer than T")
background("A call that may help")

equivalent(
    "owner = torch.full((len(rows), T), -1)",
    "owner = torch.full((len(rows), T), 0)",
    because="padding stands behind all dialogues, and what it sees is free",
)
equivalent(
    "owner = torch.full((len(rows), T), -1)",
    "owner = torch.full((len(rows), T), -2)",
    because="padding stands behind all dialogues, and what it sees is free",
)
equivalent(
    "owner[r, at:at + n] = number",
    "owner[r, at:] = number",
    because="padding stands behind all dialogues, and what it sees is free",
)

ORDER = "In order, each into the last row while it fits, else into a new one; the rest is 0."


def rows_of(docs, t):
    """Per row: (place, prompt, reply) of its dialogues."""
    rows, used = [[]], 0
    for prompt, reply in docs:
        n = len(prompt) + len(reply)
        if used + n > t:
            rows.append([])
            used = 0
        rows[-1].append((used, prompt, reply))
        used += n
    return rows


def wanted(docs, t):
    """Tokens, targets and positions as lists; the number of the dialogue, or None, per place."""
    tokens, targets, positions, owners = [], [], [], []
    for row in rows_of(docs, t):
        one = [[], [], [], []]
        for number, (_, prompt, reply) in enumerate(row):
            n = len(prompt) + len(reply)
            one[0] += prompt + reply
            one[1] += [-100] * (len(prompt) - 1) + reply + [-100]
            one[2] += range(n)
            one[3] += [number] * n
        left = t - len(one[0])
        for made, part, fill in zip(
            (tokens, targets, positions, owners), one, (0, -100, 0, None), strict=True
        ):
            made.append(part + [fill] * left)
    return tokens, targets, positions, owners


def dialogues(rng, count=None, most=6):
    def words():
        return [rng.randrange(1, 20) for _ in range(rng.randint(1, most))]

    return [(words(), words()) for _ in range(count or rng.randint(4, 7))]


class Tiny(nn.Module):
    """Two layers of attention with positions: enough to notice every leak."""

    def __init__(self, words=20, width=12):
        super().__init__()
        self.tok, self.pos = nn.Embedding(words, width), nn.Embedding(40, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, positions, mask):
        x = self.tok(tokens) + self.pos(positions)
        for layer in self.qkv:
            q, k, v = layer(x).chunk(3, -1)
            s = (q @ k.mT).masked_fill(~mask, -math.inf)
            x = x + s.softmax(-1) @ v
        return self.head(x)


def listed(result, name):
    expect_true(
        isinstance(result, torch.Tensor) and result.dtype == torch.int64,
        f"{name} is {getattr(result, 'dtype', type(result).__name__)}, not a tensor of int64",
        hint="Tokens, targets and positions are whole numbers.",
    )
    return result.tolist()


@check(
    "dialogues stand in rows of T, in order",
    holds=[
        "which lays dialogues into rows of T places",
        "They keep their order: a dialogue stands in the last row if it fits",
        "`tokens` has 0 behind the last dialogue of a row",
        "The first three results are int64, the mask is of bool",
    ],
)
def layout(answer, rng, device):
    for _ in range(2):
        docs, t = dialogues(rng), rng.randint(12, 18)
        tokens, targets, positions, mask = answer.pack(docs, t)
        expect_equal(listed(tokens, "tokens"), wanted(docs, t)[0], name="tokens", hint=ORDER)
        listed(targets, "targets")
        listed(positions, "positions")
        expect_true(
            isinstance(mask, torch.Tensor)
            and mask.dtype == torch.bool
            and mask.shape == (len(tokens), t, t),
            "the mask is not (rows, T, T) of bool",
            hint="True where query t may see key s.",
        )


@check(
    "the targets are the next tokens of the same dialogue",
    holds="`targets` has the next token where that is a token of a reply",
)
def shift(answer, rng, device):
    docs = [(p[:1], r) for p, r in dialogues(rng)]
    got, right = listed(answer.pack(docs, 14)[1], "targets"), wanted(docs, 14)[1]
    crossing = any(
        b == -100 != a
        for one, two in zip(got, right, strict=False)
        for a, b in zip(one, two, strict=False)
    )
    hint = "The target at a place is the token behind it."
    if crossing:
        hint = "The last token of a dialogue would learn to predict the first of the next one."
    expect_equal(got, right, name="targets", hint=hint)


@check(
    "prompts are read and not learned, and the first word of the reply is learned",
    holds="and -100 everywhere else",
)
def prompts(answer, rng, device):
    docs = dialogues(rng)
    got, right = listed(answer.pack(docs, 16)[1], "targets"), wanted(docs, 16)[1]
    count = sum(y != -100 for row in got for y in row)
    replies = sum(len(r) for _, r in docs)
    expect_true(
        count == replies,
        f"{count} places have a target; the replies have {replies} tokens",
        hint="The last token of a prompt predicts the first of its reply.",
    )
    expect_equal(got, right, name="targets", hint="What counts is the token that is predicted.")


@check(
    "each dialogue begins at position 0",
    holds="`positions` begin at 0 with each dialogue, and are 0 at padding",
    both_sides=True,
)
def begins(answer, rng, device):
    docs = dialogues(rng)
    got = listed(answer.pack(docs, 17)[2], "positions")
    hint = "A dialogue does not know that others stand before it in the row. Padding has 0."
    expect_equal(got, wanted(docs, 17)[2], name="positions", hint=hint)


@check(
    "the mask: the same dialogue, nothing later, no padding",
    holds=[
        "in the same dialogue, and not later",
        "no dialogue sees padding",
    ],
)
def sees(answer, rng, device):
    # of three short ones in succession two share a row, whatever came before
    docs, t = [*dialogues(rng, 5, 4), *[([3], [4])] * 3], rng.randint(9, 13)
    mask, owners = answer.pack(docs, t)[3], wanted(docs, t)[3]
    for r, row in enumerate(owners):
        for q, own in enumerate(row):
            for s in range(t):
                right = own == row[s] and s <= q
                if own is None or bool(mask[r, q, s]) == right:
                    continue
                hint = "Only a key of the same dialogue, at s <= t, may be seen."
                expect_true(
                    False,
                    f"row {r}: query {q} (dialogue {own}), key {s} (dialogue {row[s]}):"
                    f" the mask says {bool(mask[r, q, s])}",
                    hint=hint,
                )


@check("padding sees something", holds="as long as it sees something")
def padding(answer, rng, device):
    docs = [(p[:2], r[:2]) for p, r in dialogues(rng, 5)]
    mask = answer.pack(docs, 11)[3]
    empty = int((~mask.any(-1)).sum())
    expect_true(
        empty == 0,
        f"{empty} places see nothing: their softmax is NaN, and 0 * NaN spreads",
        hint="Let padding see itself.",
    )


@check("a packed row gives the loss that each dialogue has alone", holds="Write `pack`")
def same_loss(answer, rng, device):
    model, docs = Tiny().double(), dialogues(rng, 6, 3)
    tokens, targets, positions, mask = answer.pack(docs, 15)
    alone = 0.0
    with torch.no_grad():
        z = model(tokens, positions, mask)
        packed = F.cross_entropy(z.flatten(0, 1), targets.flatten(), reduction="sum").item()
        for prompt, reply in docs:
            text = torch.tensor([prompt + reply])
            n = text.shape[1]
            seen = torch.ones(1, n, n, dtype=torch.bool).tril()
            z = model(text, torch.arange(n)[None], seen)[0, len(prompt) - 1 : -1]
            alone += F.cross_entropy(z, torch.tensor(reply), reduction="sum").item()
    expect_true(
        abs(packed - alone) < 1e-6 * (1 + alone),
        f"summed over the replies: {packed:.3f} packed, {alone:.3f} one by one",
        hint="A dialogue sees a neighbour's words, or misses its own.",
    )


@check(
    "rows that are full, and a row of one dialogue",
    holds="a dialogue stands in the last row if it fits",
)
def full(answer, rng, device):
    docs = [([3, 4], [5, 6]), ([7], [8, 9, 10]), ([1], [2])]
    for t, hint in ((4, "Rows of 4, dialogues of 4: no padding there."), (10, ORDER)):
        tokens, targets, positions, mask = answer.pack(docs, t)
        right = wanted(docs, t)
        for name, got, want in zip(
            ("tokens", "targets", "positions"), (tokens, targets, positions), right, strict=False
        ):
            expect_equal(listed(got, name), want, name=name, hint=hint)
        expect_true(bool(mask[0, 3, 0]), "the fourth token does not see the first", hint=ORDER)
    got = answer.pack(docs[2:], 2)
    expect_equal([x.tolist() for x in got[:3]], [[[1, 2]], [[2, -100]], [[0, 1]]], name="one")


@check("the lists stay", holds="The lists stay as they were.")
def untouched(answer, rng, device):
    docs = dialogues(rng)
    kept = copy.deepcopy(docs)
    answer.pack(docs, 20)
    expect_equal(docs, kept, name="docs", hint="Build new lists; `prompt += reply` changes one.")


def body(
    docs, t, cross=False, off=False, learn=False, shifted=True, run_on=False, mask="right"
):  # fmt: skip
    tokens, targets, positions, owners = wanted(docs, t)
    rows = rows_of(docs, t)
    for i, row in enumerate(rows):
        for at, prompt, reply in row:
            end = at + len(prompt) + len(reply)
            if cross and at:
                targets[i][at - 1] = tokens[i][at]
            if off:
                targets[i][at + len(prompt) - 1] = -100
            if learn:
                targets[i][at : end - 1] = tokens[i][at + 1 : end]
        if not shifted:
            targets[i] = [-100, *targets[i][:-1]]
        if run_on:
            positions[i] = list(range(t))
    owner = torch.tensor([[-1 if o is None else o for o in row] for row in owners])
    same = owner[:, :, None] == owner[:, None, :]
    seen = {
        "right": same.tril(),
        "causal": torch.ones_like(same).tril(),
        "future": same,
        "empty": same.tril() & (owner >= 0)[:, :, None],
    }[mask]
    return torch.tensor(tokens), torch.tensor(targets), torch.tensor(positions), seen


@mutant("a row for each dialogue", caught_by=layout)
def pack(docs, T):
    parts = [body([doc], T) for doc in docs]
    return tuple(torch.cat(x) for x in zip(*parts, strict=True))


@mutant("sorts by length", caught_by=layout)
def pack(docs, T):
    rows = []
    for doc in sorted(docs, key=lambda d: -len(d[0]) - len(d[1])):
        rows.append(doc)
    return body(rows, T)


@mutant("keeps a place free at the end of a row", caught_by=full)
def pack(docs, T):
    wide = body(docs, T - 1) if all(len(p) + len(r) < T for p, r in docs) else None
    if wide is None:
        parts = [body([doc], T) for doc in docs]
        return tuple(torch.cat(x) for x in zip(*parts, strict=True))
    tokens, targets, positions, mask = wide
    more = F.pad(mask, (0, 1, 0, 1))
    more[:, -1, -1] = True
    return F.pad(tokens, (0, 1)), F.pad(targets, (0, 1), value=-100), F.pad(positions, (0, 1)), more


@mutant("the last token predicts the next dialogue", caught_by=shift)
def pack(docs, T):
    return body(docs, T, cross=True)


@mutant("targets are the tokens themselves", caught_by=shift)
def pack(docs, T):
    return body(docs, T, shifted=False)


@mutant("the first word of the reply does not count", caught_by=prompts)
def pack(docs, T):
    return body(docs, T, off=True)


@mutant("learns the prompts too", caught_by=prompts)
def pack(docs, T):
    return body(docs, T, learn=True)


@mutant("positions run through the row", caught_by=begins)
def pack(docs, T):
    return body(docs, T, run_on=True)


@mutant("a causal mask only", caught_by=sees)
def pack(docs, T):
    return body(docs, T, mask="causal")


@mutant("the same dialogue, but the future too", caught_by=same_loss)
def pack(docs, T):
    return body(docs, T, mask="future")


@mutant("padding sees nothing", caught_by=padding)
def pack(docs, T):
    return body(docs, T, mask="empty")


@mutant("a mask of numbers", caught_by=layout)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    return tokens, targets, positions, mask.float()


@mutant("adds the reply to the prompt's own list", caught_by=untouched)
def pack(docs, T):
    result = body(docs, T)
    for prompt, reply in docs:
        prompt += reply
    return result


@accepted("lists per row, padding sees all padding before it")
def pack(docs, T):
    out = []
    for row in rows_of(docs, T):
        tok, tgt, pos, own = [], [], [], []
        for number, (_, p, r) in enumerate(row):
            tok += [*p, *r]
            tgt += [-100] * (len(p) - 1) + [*r, -100]
            pos += range(len(p) + len(r))
            own += [number] * (len(p) + len(r))
        left = T - len(tok)
        own = torch.tensor(own + [-7] * left)
        out.append((
            torch.tensor(tok + [0] * left),
            torch.tensor(tgt + [-100] * left),
            torch.tensor(pos + [0] * left),
            torch.ones(T, T).tril().bool() & (own[:, None] == own),
        ))  # fmt: skip
    return tuple(torch.stack(x) for x in zip(*out, strict=True))


@accepted("block_diag, a place of padding sees itself alone")
def pack(docs, T):
    tokens, targets, positions, _ = body(docs, T)
    mask = []
    for row in rows_of(docs, T):
        sizes = [len(p) + len(r) for _, p, r in row]
        sizes += [1] * (T - sum(sizes))
        mask.append(torch.block_diag(*[torch.ones(n, n) for n in sizes]).tril() > 0)
    return tokens, targets, positions, torch.stack(mask)


@accepted("padding sees everything")
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    empty = ~body(docs, T, mask="empty")[3].any(-1)
    return tokens, targets, positions, mask | empty[..., None]


@hinted(1, reaches=layout)
def pack(docs, T):
    tokens = torch.tensor(wanted(docs, T)[0])
    targets = tokens.roll(-1, 1)
    positions = torch.arange(T).expand(len(tokens), T)
    return tokens, targets, positions, torch.ones(len(tokens), T, T).tril().bool()
