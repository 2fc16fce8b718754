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

EXACT = "A dialogue fits if it fills the row to its last place. No row is empty."
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


def called_on_copy(answer, docs, t):
    """What `pack` returns, for lists that nobody else has."""
    return answer.pack(copy.deepcopy(docs), t)


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
    word = rng.randrange(1, 20)
    short, middle, long = (([word], [word + i] * n) for i, n in ((1, 1), (2, 3), (3, 4)))
    for docs, t, hint in (
        (dialogues(rng), rng.randint(12, 18), ORDER),
        ([long, middle], 9, EXACT),
        ([middle, long, short], 6, ORDER),  # the third would fit beside the first
    ):
        tokens, targets, positions, mask = called_on_copy(answer, docs, t)
        expect_equal(listed(tokens, "tokens"), wanted(docs, t)[0], name="tokens", hint=hint)
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
    got, right = listed(called_on_copy(answer, docs, 14)[1], "targets"), wanted(docs, 14)[1]
    tokens = wanted(docs, 14)[0]
    hint = "The target at a place is the token behind it, if that one belongs to the reply."
    for got_row, right_row, row in zip(got, right, tokens, strict=False):
        last = [i for i, y in enumerate(right_row) if y == -100 and 0 < i < 13 and row[i]]
        if any(got_row[i] == row[i + 1] and row[i + 1] for i in last if i < len(got_row)):
            hint = "The last token of a dialogue would learn to predict the first of the next one."
        elif any(got_row[i] == 0 for i in last if i < len(got_row)):
            hint = (
                "Behind the last dialogue of a row there is padding, and nothing to predict: -100."
            )
    expect_equal(got, right, name="targets", hint=hint)


@check(
    "prompts are read and not learned, and the first word of the reply is learned",
    holds="and -100 everywhere else",
)
def prompts(answer, rng, device):
    docs = dialogues(rng)
    got, right = listed(called_on_copy(answer, docs, 16)[1], "targets"), wanted(docs, 16)[1]
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
    got = listed(called_on_copy(answer, docs, 17)[2], "positions")
    _, _, right, owners = wanted(docs, 17)
    hint = "They count the tokens of a dialogue, prompt and reply: 0, 1, 2 and so on."
    if [len(row) for row in got] == [len(row) for row in right] and len(got) == len(right):
        wrong = [(r, i) for r, row in enumerate(right) for i, p in enumerate(row) if got[r][i] != p]
        if any(owners[r][i] is None for r, i in wrong):
            hint = "Padding has position 0 everywhere."
        elif any(right[r][i] == 0 for r, i in wrong):
            hint = "A dialogue begins at 0, whatever stands before it in the row."
    expect_equal(got, right, name="positions", hint=hint)


@check(
    "the mask: the same dialogue, nothing later, no padding",
    holds=[
        "in the same dialogue, and not later",
        "no dialogue sees padding",
    ],
)
def sees(answer, rng, device):
    # of three short ones in succession two share a row, whatever came before
    docs, t = [*dialogues(rng, 5, 4), *(([3], [4]) for _ in range(3))], rng.randint(9, 13)
    docs.append(([5] * (t - 4), [6]))  # the last row has padding: at most one short one fits in
    mask, owners = called_on_copy(answer, docs, t)[3], wanted(docs, t)[3]
    for r, row in enumerate(owners):
        for q, own in enumerate(row):
            for s in range(t):
                right = own == row[s] and s <= q
                if own is None or bool(mask[r, q, s]) == right:
                    continue
                hint = (
                    "A key may be seen if it is of the same dialogue and at s <= t, and else not."
                )
                expect_true(
                    False,
                    f"row {r}: query {q} (dialogue {own}), key {s} (dialogue {row[s]}):"
                    f" the mask says {bool(mask[r, q, s])}",
                    hint=hint,
                )


@check("padding sees something", holds="as long as it sees something")
def padding(answer, rng, device):
    docs = [(p[:2], r[:2]) for p, r in dialogues(rng, 5)]
    mask = called_on_copy(answer, docs, 11)[3]
    empty = int((~mask.any(-1)).sum())
    expect_true(
        empty == 0,
        f"{empty} places see nothing: their softmax is NaN, and 0 * NaN spreads",
        hint="Let padding see itself.",
    )


@check("a packed row gives the loss that each dialogue has alone", holds="Write `pack`")
def same_loss(answer, rng, device):
    model, docs = Tiny().double(), dialogues(rng, 6, 3)
    tokens, targets, positions, mask = called_on_copy(answer, docs, 15)
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
        tokens, targets, positions, mask = called_on_copy(answer, docs, t)
        right = wanted(docs, t)
        for name, got, want in zip(
            ("tokens", "targets", "positions"), (tokens, targets, positions), right, strict=False
        ):
            expect_equal(listed(got, name), want, name=name, hint=hint)
        expect_true(bool(mask[0, 3, 0]), "the fourth token does not see the first", hint=ORDER)
    got = called_on_copy(answer, docs[2:], 2)
    expect_equal([x.tolist() for x in got[:3]], [[[1, 2]], [[2, -100]], [[0, 1]]], name="one")


@check("0 may be a token", holds="and 0 may be a token of a dialogue too")
def zeros(answer, rng, device):
    docs = [([0, 7], [0, 3]), ([5, 0], [0])]
    rng.shuffle(docs)
    tokens, targets, positions, mask = called_on_copy(answer, docs, 9)
    hint = "A 0 in a dialogue is a token like others: tell padding by its place, not by its value."
    right = wanted(docs, 9)
    expect_equal(listed(tokens, "tokens"), right[0], name="tokens", hint=hint)
    expect_equal(listed(targets, "targets"), right[1], name="targets", hint=hint)
    expect_equal(listed(positions, "positions"), right[2], name="positions", hint=hint)
    for t, own in enumerate(right[3][0]):
        for s, other in enumerate(right[3][0]):
            if own is not None:
                says = f"query {t}, key {s}: the mask says {bool(mask[0, t, s])}"
                expect_true(bool(mask[0, t, s]) == (own == other and s <= t), says, hint=hint)


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


@mutant("keeps a place free at the end of a row", caught_by=layout)
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


@mutant("the last token predicts the 0 of padding", caught_by=shift)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    for i, row in enumerate(rows_of(docs, T)):
        end = row[-1][0] + len(row[-1][1]) + len(row[-1][2])
        targets[i, end - 1] = 0
    return tokens, targets, positions, mask


@mutant("positions of a reply begin at 0 again", caught_by=begins)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    for i, row in enumerate(rows_of(docs, T)):
        for at, prompt, reply in row:
            begin = at + len(prompt)
            positions[i, begin : begin + len(reply)] = torch.arange(len(reply))
    return tokens, targets, positions, mask


@mutant("positions go on in the padding", caught_by=begins)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    for i, row in enumerate(rows_of(docs, T)):
        end = row[-1][0] + len(row[-1][1]) + len(row[-1][2])
        positions[i, end:] = torch.arange(T - end)
    return tokens, targets, positions, mask


@mutant("0 is padding for the mask, whoever wrote it", caught_by=zeros)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    return tokens, targets, positions, mask & (tokens != 0)[:, None] | torch.eye(T).bool()


@mutant("a target of 0 is not learned", caught_by=zeros)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    return tokens, targets.masked_fill(targets == 0, -100), positions, mask


@mutant("fills up earlier rows", caught_by=layout)
def pack(docs, T):
    rows = []
    for doc in docs:
        n = len(doc[0]) + len(doc[1])
        fits = (row for row in rows if sum(len(p) + len(r) for p, r in row) + n <= T)
        row = next(fits, None)
        if row is None:
            row = []
            rows.append(row)
        row.append(doc)
    parts = [body(row, T) for row in rows]
    return tuple(torch.cat(x) for x in zip(*parts, strict=True))


@mutant("dialogues with the same words are one", caught_by=sees)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    for i, row in enumerate(rows_of(docs, T)):
        for at, *doc in row:
            for other, *words in row:
                if words == doc and other < at:
                    n = len(doc[0]) + len(doc[1])
                    mask[i, at : at + n, other : other + n] = True
    return tokens, targets, positions, mask


@mutant("dialogues see the padding", caught_by=sees)
def pack(docs, T):
    tokens, targets, positions, mask = body(docs, T)
    for i, row in enumerate(rows_of(docs, T)):
        end = row[-1][0] + len(row[-1][1]) + len(row[-1][2])
        mask[i, :, end:] = True
    return tokens, targets, positions, mask


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


@accepted("padding belongs to the last dialogue, which does not see it")
def pack(docs, T):
    tokens, targets, starts = [], [], []
    for prompt, reply in docs:
        n = len(prompt) + len(reply)
        if not tokens or len(tokens[-1]) + n > T:
            for made in (tokens, targets, starts):
                made.append([])
        starts[-1].extend([len(tokens[-1])] * n)
        tokens[-1].extend([*prompt, *reply])
        targets[-1].extend([-100] * (len(prompt) - 1) + [*reply, -100])
    owner = torch.tensor([row + [row[-1]] * (T - len(row)) for row in starts])
    for row, other, begins in zip(tokens, targets, starts, strict=True):
        left = T - len(row)
        row += [0] * left
        other += [-100] * left
        begins += range(T - left, T)
    place = torch.arange(T)
    seen = (owner[:, :, None] <= place) & (place <= place[:, None])
    return [torch.tensor(tokens), torch.tensor(targets), place - torch.tensor(starts), seen]


@hinted(1, reaches=layout)
def pack(docs, T):
    tokens = torch.tensor(wanted(docs, T)[0])
    targets = tokens.roll(-1, 1)
    positions = torch.arange(T).expand(len(tokens), T)
    return tokens, targets, positions, torch.ones(len(tokens), T, T).tril().bool()
