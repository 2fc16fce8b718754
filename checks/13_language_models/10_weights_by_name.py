"""Judges lessons/13_language_models/10_weights_by_name.md."""

import re

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_copy,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Write convert", "Number 3 stands for", "Calls that may help")

MASKS = "h.0.attn.bias and h.0.attn.masked_bias are masks, not weights; c_attn.bias is one."
LAYOUT = "Their Conv1D keeps (in, out), a Linear (out, in). c_fc is up, and c_proj is out or down."
KEPT = "The layers c_... of a block are Conv1D. Embeddings and head keep the layout that they have."
HEAD = "Without lm_head.weight the head is a copy of wte.weight."
PREFIX = "Some files have the prefix transformer., some do not. The new names have none."
DIGITS = "A block's number may have two digits: split at the dots."
SQUARE = "It is square, so no shape complains: transpose by what the layer is."
FUSED = "q, k and v stand side by side along the outputs, in this order."
SHARED = "Whoever writes into one changes both, and a view of a third keeps all of c_attn alive."


# --- theirs: named as in the files of GPT-2 ---


class Conv1D(nn.Module):
    def __init__(self, n_out, n_in):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * 0.3)
        self.bias = nn.Parameter(torch.randn(n_out) * 0.1)

    def forward(self, x):
        return x @ self.weight + self.bias


def attended(q, k, v, heads):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).flatten(2)


class TheirBlock(nn.Module):
    def __init__(self, places, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.c_attn, self.attn.c_proj = Conv1D(3 * width, width), Conv1D(width, width)
        self.attn.register_buffer("bias", torch.ones(1, 1, places, places).tril())
        self.attn.register_buffer("masked_bias", torch.tensor(-1e4))
        self.mlp.c_fc, self.mlp.c_proj = Conv1D(hidden, width), Conv1D(width, hidden)

    def forward(self, x):
        q, k, v = self.attn.c_attn(self.ln_1(x)).chunk(3, -1)
        x = x + self.attn.c_proj(attended(q, k, v, self.heads))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh"))


class Theirs(nn.Module):
    def __init__(self, words, places, width, heads, layers, hidden, tied=True):
        super().__init__()
        blocks = (TheirBlock(places, width, heads, hidden) for _ in range(layers))
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(words, width),
                "wpe": nn.Embedding(places, width),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, words, bias=False)
        if tied:
            self.lm_head.weight = self.transformer["wte"].weight
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                nn.init.normal_(module.weight, 1, 0.2)
                nn.init.normal_(module.bias, 0, 0.2)

    def forward(self, ids):
        parts = self.transformer
        x = parts["wte"](ids) + parts["wpe"].weight[: ids.shape[1]]
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))


# --- ours ---


class OurBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        linears = {name: nn.Linear(width, width) for name in ("q", "k", "v", "out")}
        self.attn = nn.ModuleDict(linears)
        self.mlp = nn.ModuleDict({"up": nn.Linear(width, hidden), "down": nn.Linear(hidden, width)})

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (self.attn[name](n) for name in "qkv")
        x = x + self.attn["out"](attended(q, k, v, self.heads))
        up = self.mlp["up"](self.norm2(x))
        return x + self.mlp["down"](F.gelu(up, approximate="tanh"))


class Ours(nn.Module):
    def __init__(self, words, places, width, heads, layers, hidden):
        super().__init__()
        self.tok, self.pos = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList(OurBlock(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def models(rng, device, tied=True, square=False, layers=None):
    """Theirs, ours with other weights, and tokens."""
    heads = rng.choice([2, 3])
    width = 4 * heads
    layers = layers or rng.randint(2, 3)
    size = (rng.randint(17, 23), 9, width, heads, layers, width if square else 3 * width)
    ids = torch.randint(size[0], (3, 7), device=device)
    return Theirs(*size, tied).to(device).eval(), Ours(*size).to(device).eval(), ids


def compare_names(made, ours, hint=""):
    expect_true(isinstance(made, dict), "convert returns a dict of names and tensors")
    wanted = ours.state_dict()
    missing = [name for name in wanted if name not in made]
    more = [str(name) for name in made if name not in wanted]
    told = f"missing: {', '.join(missing[:3])}"
    if more:
        told += f"; unexpected: {', '.join(more[:3])}"
    if any(name.startswith("transformer.") for name in more):
        hint = PREFIX
    elif missing == ["head.weight"]:
        hint = HEAD
    elif missing and all(re.match(r"blocks\.\d\d", name) for name in missing):
        hint = DIGITS
    expect_true(not missing, told, hint=hint or MASKS)
    expect_true(not more, f"unexpected: {', '.join(more[:3])}", hint=hint or MASKS)


def load(made, ours, hint=""):
    compare_names(made, ours, hint)
    for name, tensor in ours.state_dict().items():
        got = tuple(made[name].shape)
        message = f"{name} has shape {got}, the model wants {tuple(tensor.shape)}"
        layout = LAYOUT if name.startswith("blocks") else KEPT
        expect_true(got == tuple(tensor.shape), message, hint=layout)
    ours.load_state_dict(made)


def compare_scores(theirs, ours, ids, hint):
    """Name the matrix that is wrong, if it is one; else compare scores."""
    for i, (block, other) in enumerate(zip(ours.blocks, theirs.transformer["h"])):
        for name, got, conv in (
            ("attn.out", block.attn["out"], other.attn.c_proj),
            ("mlp.up", block.mlp["up"], other.mlp.c_fc),
            ("mlp.down", block.mlp["down"], other.mlp.c_proj),
        ):
            wrong = torch.equal(got.weight, conv.weight)
            expect_true(not wrong, f"{name} of block {i} is not transposed", hint=SQUARE)
        parts = other.attn.c_attn.weight.T.chunk(3)
        for name, part in zip("qkv", parts):
            right = torch.equal(block.attn[name].weight, part)
            expect_true(right, f"attn.{name} of block {i} is not its part of c_attn", hint=FUSED)
        parts = other.attn.c_attn.bias.chunk(3)
        for name, part in zip("qkv", parts):
            said = f"the bias of attn.{name} of block {i} is not its part of that of c_attn"
            expect_true(torch.equal(block.attn[name].bias, part), said, hint=FUSED)
        for new, old in (("norm1", "ln_1"), ("norm2", "ln_2")):
            right = torch.equal(getattr(block, new).weight, getattr(other, old).weight)
            expect_true(right, f"{new} of block {i} is not {old}", hint="Look at the table again.")
    with torch.no_grad():
        expect_close(ours(ids), theirs(ids), name="the scores", rtol=1e-3, atol=1e-3, hint=hint)


@check(
    "every name finds its place",
    holds=[
        "returns one for this model",
        "are masks and have no place in the result",
        "dict from names to tensors -> such a dict",
    ],
)
def names(answer, rng, device):
    theirs, ours, _ = models(rng, device)
    compare_names(answer.convert(theirs.state_dict()), ours, MASKS)


@check(
    "the same tokens give the same scores",
    holds=[
        "With the result loaded, the model gives the scores of theirs.",
        "In `c_attn` q, k and v stand side by side along the outputs.",
    ],
)
def same(answer, rng, device):
    theirs, ours, ids = models(rng, device)
    load(answer.convert(theirs.state_dict()), ours)
    compare_scores(theirs, ours, ids, "Names and shapes fit, and the scores do not.")


@check("all matrices are square", holds="are Conv1D, with weights (in, out), some of them square")
def square(answer, rng, device):
    theirs, ours, ids = models(rng, device, square=True)
    load(answer.convert(theirs.state_dict()), ours)
    compare_scores(theirs, ours, ids, SQUARE)


@check(
    "the head is stored, left out, or one of its own",
    holds=["A file of a tied model may lack `lm_head.weight`", "If it is stored, it is used."],
    both_sides=True,
)
def head(answer, rng, device):
    theirs, ours, ids = models(rng, device)
    for bare in (False, True):
        state = dict(theirs.state_dict())
        del state["lm_head.weight"]
        if bare:
            state = {name.removeprefix("transformer."): t for name, t in state.items()}
        load(answer.convert(state), ours, HEAD)
        compare_scores(theirs, ours, ids, "The head is the token table.")
    theirs, ours, ids = models(rng, device, tied=False)
    load(answer.convert(theirs.state_dict()), ours)
    compare_scores(theirs, ours, ids, "This file has a head of its own: use it.")


@check(
    "with and without the prefix, and more than ten blocks",
    holds=["Names may begin with `transformer.` or not.", "The names come in any order."],
    both_sides=True,
)
def prefix(answer, rng, device):
    theirs, ours, ids = models(rng, device, layers=12)
    for bare in (False, True):
        state = theirs.state_dict()
        if bare:
            state = {name.removeprefix("transformer."): t for name, t in state.items()}
            shuffled = list(state.items())
            rng.shuffle(shuffled)
            state = dict(shuffled)
        load(answer.convert(state), ours, PREFIX)
        hint = "Block 10 is not block 1, and the order of the names decides nothing."
        for i, (block, other) in enumerate(zip(ours.blocks, theirs.transformer["h"], strict=True)):
            right = torch.equal(block.norm1.weight, other.ln_1.weight)
            expect_true(right, f"block {i} has not the weights of their block {i}", hint=hint)
        compare_scores(theirs, ours, ids, hint)


@check("each tensor keeps its dtype", holds="Every tensor keeps its dtype.", both_sides=True)
def dtypes(answer, rng, device):
    for dtype in (torch.bfloat16, torch.float64):
        theirs, _, _ = models(rng, device)
        state = theirs.to(dtype).state_dict()
        state["transformer.ln_f.weight"] = state["transformer.ln_f.weight"].float()
        made = answer.convert(dict(state))
        for name, tensor in made.items():
            wanted = torch.float32 if name == "norm.weight" else dtype
            expect_dtype(tensor, wanted, name=name, hint="Move numbers, do not round them.")
        expect_close(made["tok.weight"], state["transformer.wte.weight"], name="tok.weight")


@check(
    "their tensors stay theirs",
    holds=[
        "It has memory of its own, as much as its numbers need.",
        "The dict that came in stays as it was, and so do its tensors.",
    ],
    both_sides=True,
)
def own(answer, rng, device):
    theirs, _, _ = models(rng, device)
    for stored in (True, False):
        state = dict(theirs.state_dict())
        if not stored:
            del state["lm_head.weight"]
        keys, tensors = list(state), list(state.values())
        shapes = [tuple(t.shape) for t in tensors]
        with expect_unchanged(*tensors, hint="Transpose into a new tensor: .T and not .t_()."):
            made = answer.convert(state)
        hint = "Read the dict that came in, and write into a new one."
        expect_equal(list(state), keys, name="the names of the dict that came in", hint=hint)
        now = [tuple(t.shape) for t in tensors]
        expect_equal(now, shapes, name="the shapes of their tensors", hint=".T makes a new tensor.")
        for name, tensor in made.items():
            for source in tensors:
                expect_copy(tensor, source, name=name, hint=SHARED)
            needed, held = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
            message = f"{name} needs {needed} bytes, and holds {held}"
            expect_true(held == needed, message, hint="Copy the pieces, and not the fused tensor.")
        starts = [tensor.untyped_storage().data_ptr() for tensor in made.values()]
        shared = [name for name, at in zip(made, starts, strict=True) if starts.count(at) > 1]
        said = f"{' and '.join(shared)} have one memory"
        expect_true(not shared, said, hint="Clone the head too: the model may be untied.")


INSIDE = {
    "ln_1": "norm1",
    "ln_2": "norm2",
    "attn.c_proj": "attn.out",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}
OUTSIDE = {"wte": "tok", "wpe": "pos", "ln_f": "norm"}


def by_heads(t, heads=2):
    """q, k, v head by head, as other models store them."""
    t = t.unflatten(0, (heads, 3, -1)).transpose(0, 1)
    return [piece.flatten(0, 1) for piece in t]


def cut(t):
    return t.chunk(3, 0)


def turned(t):
    return t.T if t.dim() == 2 else t


def converted(theirs, *, turn=turned, fused=cut, masks=(".attn.bias", ".masked_bias"), keep=False):
    """A solution with parts that can be replaced by wrong ones; without a head."""
    ours = {}
    for name, t in theirs.items():
        name = name.removeprefix("transformer.")
        part, _, kind = name.rpartition(".")
        if name.endswith(masks):
            if keep:
                ours[name.replace("h.", "blocks.", 1)] = t.clone()
        elif part in OUTSIDE:
            ours[f"{OUTSIDE[part]}.{kind}"] = t.clone()
        elif name.startswith("h."):
            _, i, part = part.split(".", 2)
            t = turn(t)
            if part == "attn.c_attn":
                for which, piece in zip("qkv", fused(t)):
                    ours[f"blocks.{i}.attn.{which}.{kind}"] = piece.clone()
            else:
                ours[f"blocks.{i}.{INSIDE[part]}.{kind}"] = t.clone()
    return ours


def with_head(ours, theirs):
    ours["head.weight"] = theirs.get("lm_head.weight", ours["tok.weight"]).clone()
    return ours


@mutant("takes the masks along", caught_by=names)
def convert(theirs):
    return with_head(converted(theirs, keep=True), theirs)


@mutant("drops all that ends in attn.bias", caught_by=names)
def convert(theirs):
    return with_head(converted(theirs, masks=("attn.bias", "masked_bias")), theirs)


@mutant("no head", caught_by=names)
def convert(theirs):
    return converted(theirs)


@mutant("nothing transposed", caught_by=same)
def convert(theirs):
    made = converted(theirs, turn=lambda t: t, fused=lambda t: t.chunk(3, -1))
    return with_head(made, theirs)


@mutant("transposes what does not fit", caught_by=same)
def convert(theirs):
    def turn(t):
        return t.T if t.dim() == 2 and t.shape[0] != t.shape[1] else t

    return with_head(converted(theirs, turn=turn), theirs)


@mutant("transposes all but the square ones of the attention", caught_by=square)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    for name, t in made.items():
        if ".mlp." in name and t.dim() == 2 and t.shape[0] == t.shape[1]:
            made[name] = t.T.clone()
    return made


@mutant("k, q, v", caught_by=same)
def convert(theirs):
    return with_head(converted(theirs, fused=lambda t: [cut(t)[i] for i in (1, 0, 2)]), theirs)


@mutant("q, k and v head by head", caught_by=same)
def convert(theirs):
    return with_head(converted(theirs, fused=by_heads), theirs)


@mutant("cuts the fused weight before it is transposed", caught_by=same)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    for name, t in theirs.items():
        if name.endswith("c_attn.weight"):
            i = name.split(".")[2]
            pieces = t.flatten().view(3, t.shape[0], -1)
            for which, piece in zip("qkv", pieces):
                made[f"blocks.{i}.attn.{which}.weight"] = piece.T.clone()
    return made


@mutant("the head is always the token table", caught_by=head)
def convert(theirs):
    return with_head(converted(theirs), {})


@mutant("wants a stored head", caught_by=head)
def convert(theirs):
    made = converted(theirs)
    made["head.weight"] = theirs["lm_head.weight"].clone()
    return made


@mutant("wants the prefix", caught_by=prefix)
def convert(theirs):
    begins = ("transformer.", "lm_head")
    return with_head(converted({n: t for n, t in theirs.items() if n.startswith(begins)}), theirs)


@mutant("a block's number has one digit", caught_by=prefix)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    return {re.sub(r"blocks\.(\d)\d*\.", r"blocks.\1.", name): t for name, t in made.items()}


@mutant("all in float32", caught_by=dtypes)
def convert(theirs):
    return {name: t.float().clone() for name, t in with_head(converted(theirs), theirs).items()}


@mutant("views of theirs", caught_by=own)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    for name, t in theirs.items():
        if name.endswith("c_proj.weight"):
            _, i, part, _ = name.removeprefix("transformer.").split(".", 3)
            made[f"blocks.{i}.{part}.{'out' if part == 'attn' else 'down'}.weight"] = t.T
    return made


@mutant("pieces of one copy", caught_by=own)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    for name, t in theirs.items():
        if name.endswith("c_attn.bias"):
            i = name.removeprefix("transformer.").split(".")[1]
            for which, piece in zip("qkv", t.clone().chunk(3)):
                made[f"blocks.{i}.attn.{which}.bias"] = piece
    return made


@mutant("takes names out of their dict", caught_by=own)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    for name in [name for name in theirs if name.endswith("masked_bias")]:
        del theirs[name]
    return made


@mutant("the head is the tensor of the token table", caught_by=own)
def convert(theirs):
    made = converted(theirs)
    made["head.weight"] = theirs.get("lm_head.weight", made["tok.weight"])
    if "lm_head.weight" in theirs:
        made["head.weight"] = made["head.weight"].clone()
    return made


@mutant("transposes their tensors in place", caught_by=own)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    for name, t in theirs.items():
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            t.t_()
    return made


@mutant("numbers the blocks in the order in which they come", caught_by=prefix)
def convert(theirs):
    made, seen = {}, []
    for name, t in with_head(converted(theirs), theirs).items():
        if name.startswith("blocks."):
            _, i, rest = name.split(".", 2)
            seen += [i] if i not in seen else []
            name = f"blocks.{seen.index(i)}.{rest}"
        made[name] = t
    return made


@mutant("ties the files with a prefix", caught_by=head)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    bare = not any(name.startswith("transformer.") for name in theirs)
    if bare and "lm_head.weight" not in theirs:
        del made["head.weight"]
    return made


@mutant("keeps the prefix where there was one", caught_by=names)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    return {
        f"transformer.{n}" if n in ("tok.weight", "pos.weight") else n: t for n, t in made.items()
    }


@mutant("exchanges the two norms", caught_by=same)
def convert(theirs):
    changed = {n.replace("ln_1", "ln_x").replace("ln_2", "ln_1"): t for n, t in theirs.items()}
    return with_head(converted({n.replace("ln_x", "ln_2"): t for n, t in changed.items()}), theirs)


@mutant("transposes the head", caught_by=same)
def convert(theirs):
    made = with_head(converted(theirs), theirs)
    return {**made, "head.weight": made["head.weight"].T.contiguous()}


@accepted("a table of names, filled by pattern")
def convert(theirs):
    state = {re.sub(r"^transformer\.", "", name): t for name, t in theirs.items()}
    found = (re.match(r"h\.(\d+)\.", name) for name in state)
    layers = 1 + max(int(match[1]) for match in found if match)
    width = state["wte.weight"].shape[1]
    made = {
        "tok.weight": state["wte.weight"],
        "pos.weight": state["wpe.weight"],
        "norm.weight": state["ln_f.weight"],
        "norm.bias": state["ln_f.bias"],
        "head.weight": state.get("lm_head.weight", state["wte.weight"]),
    }
    for i in range(layers):
        for kind in ("weight", "bias"):
            for old, new in INSIDE.items():
                made[f"blocks.{i}.{new}.{kind}"] = turned(state[f"h.{i}.{old}.{kind}"])
            fused = turned(state[f"h.{i}.attn.c_attn.{kind}"])
            for j, which in enumerate("qkv"):
                rows = slice(j * width, (j + 1) * width)
                made[f"blocks.{i}.attn.{which}.{kind}"] = fused[rows]
    return {name: t.detach().clone() for name, t in made.items()}


@accepted("replaces in the names, and copies into empty tensors")
def convert(theirs):
    changes = {
        "transformer.": "",
        "ln_f": "norm",
        "ln_": "norm",
        "attn.c_proj": "attn.out",
        "mlp.c_fc": "mlp.up",
        "mlp.c_proj": "mlp.down",
        "wte": "tok",
        "wpe": "pos",
        "lm_head": "head",
    }
    made = {}
    for name, t in theirs.items():
        for old, new in changes.items():
            name = name.replace(old, new)
        name = re.sub(r"^h\.", "blocks.", name)
        if ".attn.bias" in name or "masked_bias" in name:
            continue
        t = turned(t) if name.startswith("blocks") else t
        pieces = {name: t}
        if "c_attn" in name:
            n = len(t) // 3
            pieces = {
                name.replace("c_attn", which): t[j * n : (j + 1) * n]
                for j, which in enumerate("qkv")
            }
        for new, piece in pieces.items():
            made[new] = torch.empty(piece.shape, dtype=t.dtype, device=t.device).copy_(piece)
    made.setdefault("head.weight", made["tok.weight"].clone())
    return made


@accepted("looks for each name of the result in the file, and makes tensors from lists")
def convert(theirs):
    file = {name.removeprefix("transformer."): t for name, t in theirs.items()}

    def own_tensor(t):
        return torch.tensor(t.tolist(), dtype=t.dtype, device=t.device)

    made = {"head.weight": own_tensor(file.get("lm_head.weight", file["wte.weight"]))}
    for old, new in OUTSIDE.items():
        for kind in ("weight", "bias"):
            if f"{old}.{kind}" in file:
                made[f"{new}.{kind}"] = own_tensor(file[f"{old}.{kind}"])
    for i in sorted({int(name.split(".")[1]) for name in file if name.startswith("h.")}):
        for kind in ("weight", "bias"):
            for old, new in INSIDE.items():
                made[f"blocks.{i}.{new}.{kind}"] = own_tensor(turned(file[f"h.{i}.{old}.{kind}"]))
            for which, piece in zip("qkv", file[f"h.{i}.attn.c_attn.{kind}"].tensor_split(3, -1)):
                made[f"blocks.{i}.attn.{which}.{kind}"] = own_tensor(turned(piece))
    return made


@hinted(1, reaches=names)
def convert(theirs):
    return with_head(converted(theirs, turn=lambda t: t, fused=lambda t: (t, t, t)), theirs)
