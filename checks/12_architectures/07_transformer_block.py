"""Judges lessons/12_architectures/07_transformer_block.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    check,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

PARTS = (
    "n1 and n2 are two norms with weights of their own, mlp is nn.Sequential(nn.Linear(C, 4 * C), "
    "nn.GELU(), nn.Linear(4 * C, C)), attn is the module that was given."
)
STREAM = "Each branch is added to x, and nothing else happens to x: no norm on the sum."
FIRST = "The first branch is x + attn(n1(x), keep): the attention reads the normalised x."
SECOND = "The second branch reads n2 of what the first one has made, and its result is added."
OWN = "`x += ...` writes into the caller's tensor: x = x + ..."
POSITION = "attn(n1(x), keep), by position: the module may call its second argument otherwise."
FLOW = "Two paths lead back to x: x itself, and the branch. No detach(), no no_grad()."
DROP = "Dropout acts on what a branch gives, before it is added: x + drop(branch)."
MODE = "nn.Dropout knows the mode. F.dropout needs training=self.training."


class Mixer(nn.Module):
    """A stand-in for attention that mixes positions, and takes down what it gets."""

    def __init__(self, C):
        super().__init__()
        self.layer = nn.Linear(C, C)
        self.seen = []

    def forward(self, x, mask):
        self.seen.append((x, mask))
        return self.layer(x) + x.cumsum(-2) / 3


def made(answer, device, C, p=None, dtype=torch.float32):
    """A block whose weights are all random, the norms' too. p: None for the default."""
    given = () if p is None else (p,)
    block = answer.Block(C, Mixer(C), *given).to(device=device, dtype=dtype)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.copy_(torch.randn(parameter.shape, device=device) / 2)
    return block


def wanted(block, x):
    """What the pre-norm block with these weights makes of x, in float64."""
    w = {name: p.detach().double() for name, p in block.named_parameters()}
    C = x.shape[-1]
    h = x.double()
    y = F.layer_norm(h, (C,), w["n1.weight"], w["n1.bias"])
    h = h + F.linear(y, w["attn.layer.weight"], w["attn.layer.bias"]) + y.cumsum(-2) / 3
    y = F.layer_norm(h, (C,), w["n2.weight"], w["n2.bias"])
    y = F.gelu(F.linear(y, w["mlp.0.weight"], w["mlp.0.bias"]))
    return h + F.linear(y, w["mlp.2.weight"], w["mlp.2.bias"])


def silence(block, *names):
    """The parameters whose names begin so become zero."""
    with torch.no_grad():
        for name, p in block.named_parameters():
            if name.startswith(names):
                p.zero_()


@check(
    "the parts, by name and size",
    holds=[
        "Write the pre-norm module `Block`",
        "Its parts are named `n1` and `n2`, two norms",
        "The attention comes from outside",
    ],
    both_sides=True,
)
def parts(answer, rng, device):
    C = rng.randint(3, 9)
    attn = Mixer(C)
    block = answer.Block(C, attn)
    got = {name: list(p.shape) for name, p in block.named_parameters()}
    right = {
        "n1.weight": [C], "n1.bias": [C], "n2.weight": [C], "n2.bias": [C],
        "attn.layer.weight": [C, C], "attn.layer.bias": [C],
        "mlp.0.weight": [4 * C, C], "mlp.0.bias": [4 * C],
        "mlp.2.weight": [C, 4 * C], "mlp.2.bias": [C],
    }  # fmt: skip
    expect_equal(got, right, name=f"the parameters of Block({C}, attn)", hint=PARTS)
    expect_true(block.attn is attn, "block.attn is not the module that was given", hint=PARTS)
    expect_true(
        isinstance(block.mlp, nn.Sequential) and isinstance(block.mlp[1], nn.GELU),
        "block.mlp is no nn.Sequential with an nn.GELU in the middle",
        hint=PARTS,
    )
    exact = block.mlp[1].approximate == "none"
    expect_true(exact, "the GELU is an approximation", hint="nn.GELU(), without an argument.")
    for name, norm in (("n1", block.n1), ("n2", block.n2)):
        plain = isinstance(norm, nn.LayerNorm) and norm.eps == nn.LayerNorm(C).eps
        expect_true(plain, f"block.{name} is not nn.LayerNorm(C) with its eps", hint=PARTS)


@check(
    "branches that give zero leave x as it is",
    holds="The stream itself is never dropped",
    side="silent branches",
)
def identity(answer, rng, device):
    class Nothing(nn.Module):
        def forward(self, x, keep):
            return torch.zeros_like(x)

    C = rng.randint(3, 9)
    block = answer.Block(C, Nothing()).to(device)
    silence(block, "mlp.2")
    x = torch.randn(2, 5, C, device=device) * 3
    expect_equal(block(x), x, name="a block whose branches give zero", hint=STREAM)


@check("the first branch: x + attn(n1(x))", holds="as any module that is called as `attn(x, keep)`")
def first(answer, rng, device):
    C = rng.randint(3, 9)
    block = made(answer, device, C).eval()
    silence(block, "mlp.2")
    x = torch.randn(2, 4, C, device=device) * 3 + 1
    right = wanted(block, x)
    with (
        expect_unchanged(x, hint=OWN),
        advising(TypeError, saying="keyword", hint=POSITION),
        torch.no_grad(),
    ):
        got = block(x)
    expect_close(got, right, dtype=x.dtype, atol=1e-4, hint=FIRST)


@check(
    "the second branch: x + mlp(n2(x)), behind the first", holds="That one is an `nn.Sequential`"
)
def second(answer, rng, device):
    for shape in ((2, 4), (1, 1), (7,), (0, 3), (2, 2, 3)):
        C = rng.randint(3, 9)
        block = made(answer, device, C).eval()
        x = torch.randn(*shape, C, device=device) * 3 + 1
        expect_close(block(x), wanted(block, x), dtype=x.dtype, atol=1e-3, rtol=1e-3, hint=SECOND)


@check(
    "keep reaches attn, x stays as it is",
    holds=["`keep` is passed on to `attn` as it is, by position", "x is not changed"],
    both_sides=True,
)
def untouched(answer, rng, device):
    C = rng.randint(3, 9)
    block = made(answer, device, C)
    x = torch.randn(2, 4, C, device=device)
    for keep in (torch.ones(2, 4, dtype=torch.bool, device=device), None):
        block.attn.seen.clear()
        with expect_unchanged(x, hint=OWN), torch.no_grad():
            _ = block(x) if keep is None else block(x, keep)
        calls = len(block.attn.seen)
        expect_true(calls == 1, f"attn was called {calls} times", hint="Once in each forward.")
        message = "attn did not get the keep that the block got"
        expect_true(block.attn.seen[0][1] is keep, message, hint=POSITION)


@check(
    "dropout of each branch, in training only",
    holds=[
        "Dropout with probability p, as `nn.Dropout` does it, acts on what each branch adds, "
        "in training only",
        "with p = 1 the block in training returns x",
    ],
    both_sides=True,
)
def dropout(answer, rng, device):
    C = rng.randint(4, 9)
    x = torch.randn(3, 4, C, device=device) * 2
    for p in (None, 0.0):
        block = made(answer, device, C, p).train()
        hint = "p is 0 unless it is given, and then nothing is dropped: nn.Dropout(p)."
        expect_close(
            block(x), wanted(block, x), dtype=x.dtype, atol=1e-3, rtol=1e-3,
            name=f"in training, with {'the default p' if p is None else 'p = 0'}, the result",
            hint=hint,
        )  # fmt: skip
    block = made(answer, device, C, p=1.0)
    expect_equal(block.train()(x), x, name="a block with p = 1, in training,", hint=DROP)
    hint = f"In eval mode dropout does nothing. {MODE}"
    right = wanted(block, x)
    expect_close(block.eval()(x), right, dtype=x.dtype, atol=1e-3, rtol=1e-3, hint=hint)
    branches = {"attention": "mlp.2", "mlp": "attn.layer"}
    for name, other in branches.items():
        block = made(answer, device, 16, p=0.25)
        silence(block, other)
        if name == "mlp":
            block.attn.forward = lambda x, keep: torch.zeros_like(x)
        y = torch.randn(50, 4, 16, device=device)
        whole, added = block.eval()(y) - y, block.train()(y) - y
        dropped = added.abs() < 1e-6
        share = dropped.float().mean().item()
        message = f"with p = 0.25, {100 * share:.0f} % of what the {name} branch adds is dropped"
        expect_true(0.18 < share < 0.32, message, hint=DROP)
        mixed = (dropped.any(-1) & ~dropped.all(-1)).float().mean().item()
        message = f"of the {name} branch, dropout takes whole positions and not single numbers"
        expect_true(mixed > 0.8, message, hint="nn.Dropout draws for each number.")
        name = f"with p = 0.25, what is left of the {name} branch"
        hint = "nn.Dropout divides what it leaves by 1 - p, so that the mean stays the same."
        left, right = added[~dropped], whole[~dropped] / 0.75
        expect_close(left, right, atol=1e-3, rtol=1e-3, name=name, hint=hint)


@check(
    "gradients along the stream and through the branches",
    holds="Gradients flow along the stream and through the branches.",
    both_sides=True,
)
def flows(answer, rng, device):
    C = rng.randint(3, 9)
    block = made(answer, device, C).eval()
    mine = torch.randn(2, 4, C, device=device).requires_grad_()
    right = mine.detach().clone().requires_grad_()
    seed = torch.randn(2, 4, C, device=device)
    got = block(mine)
    expect_true(got.requires_grad, "the result has no graph", hint=FLOW)
    got.backward(seed)
    wanted(block, right).backward(seed.double())
    expect_true(mine.grad is not None, "no gradient reaches x", hint=FLOW)
    name = "the gradient of x"
    expect_close(mine.grad, right.grad, atol=1e-3, rtol=1e-3, name=name, hint=FLOW)
    for name, p in block.named_parameters():
        expect_true(p.grad is not None, f"no gradient reaches {name}", hint=FLOW)


@check("half precision, and gradients for all parameters", holds="x: (..., C); returns (..., C)")
def learns(answer, rng, device):
    C = rng.randint(3, 9)
    block = made(answer, device, C, dtype=torch.bfloat16)
    x = torch.randn(3, C, 4, device=device).to(torch.bfloat16).mT.requires_grad_()
    got = block(x)
    hint = "Nothing in the block has a dtype of its own."
    expect_close(got, wanted(block, x), dtype=x.dtype, rtol=0.1, atol=0.6, hint=hint)
    got.float().square().sum().backward()
    for name, p in [*block.named_parameters(), ("x", x)]:
        expect_true(p.grad is not None, f"no gradient reaches {name}", hint=FLOW)


class Base(nn.Module):
    def __init__(self, C, attn, p=0.0):
        super().__init__()
        self.n1, self.n2, self.attn = nn.LayerNorm(C), nn.LayerNorm(C), attn
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))
        self.drop = nn.Dropout(p)


@mutant("normalises the stream", caught_by=identity)
class Block(Base):
    def forward(self, x, keep=None):
        x = self.n1(x + self.drop(self.attn(x, keep)))
        return self.n2(x + self.drop(self.mlp(x)))


@mutant("has no residual connections", caught_by=identity)
class Block(Base):
    def forward(self, x, keep=None):
        x = self.drop(self.attn(self.n1(x), keep))
        return self.drop(self.mlp(self.n2(x)))


@mutant("adds to the normalised x", caught_by=identity)
class Block(Base):
    def forward(self, x, keep=None):
        x = self.n1(x)
        x = x + self.drop(self.attn(x, keep))
        x = self.n2(x)
        return x + self.drop(self.mlp(x))


@mutant("gives attention the bare x", caught_by=first)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(x, keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("normalises behind the branch", caught_by=first)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.n1(self.attn(x, keep)))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("gives the MLP the bare x", caught_by=second)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(x))


@mutant("runs the branches side by side", caught_by=second)
class Block(Base):
    def forward(self, x, keep=None):
        return x + self.drop(self.attn(self.n1(x), keep)) + self.drop(self.mlp(self.n2(x)))


@mutant("uses n1 twice", caught_by=second)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n1(x)))


@mutant("puts the MLP first", caught_by=second)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.mlp(self.n2(x)))
        return x + self.drop(self.attn(self.n1(x), keep))


@mutant("shares one norm", caught_by=parts)
class Block(Base):
    def __init__(self, C, attn, p=0.0):
        super().__init__(C, attn, p)
        self.n2 = self.n1

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("has a narrow MLP", caught_by=parts)
class Block(Base):
    def __init__(self, C, attn, p=0.0):
        super().__init__(C, attn, p)
        self.mlp = nn.Sequential(nn.Linear(C, C), nn.GELU(), nn.Linear(C, C))

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("forgets keep", caught_by=untouched)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), None))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("adds in place", caught_by=untouched)
class Block(Base):
    def forward(self, x, keep=None):
        x += self.drop(self.attn(self.n1(x), keep))
        x += self.drop(self.mlp(self.n2(x)))
        return x


@mutant("has no dropout", caught_by=dropout)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.attn(self.n1(x), keep)
        return x + self.mlp(self.n2(x))


@mutant("drops the stream", caught_by=dropout)
class Block(Base):
    def forward(self, x, keep=None):
        x = self.drop(x + self.attn(self.n1(x), keep))
        return self.drop(x + self.mlp(self.n2(x)))


@mutant("drops one branch only", caught_by=dropout)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.attn(self.n1(x), keep)
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("drops in eval mode too", caught_by=dropout)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + F.dropout(self.attn(self.n1(x), keep), self.drop.p)
        return x + F.dropout(self.mlp(self.n2(x)), self.drop.p)


@mutant("does not divide what dropout leaves", caught_by=dropout)
class Block(Base):
    def cut(self, y):
        return y * (torch.rand_like(y) >= self.drop.p) if self.training else y

    def forward(self, x, keep=None):
        x = x + self.cut(self.attn(self.n1(x), keep))
        return x + self.cut(self.mlp(self.n2(x)))


@mutant("drops whole positions", caught_by=dropout)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(torch.ones_like(x[..., :1])) * self.attn(self.n1(x), keep)
        return x + self.drop(torch.ones_like(x[..., :1])) * self.mlp(self.n2(x))


@mutant("drops half unless told otherwise", caught_by=dropout)
class Block(Base):
    def __init__(self, C, attn, p=0.5):
        super().__init__(C, attn, p)

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("takes p for the share that stays", caught_by=dropout)
class Block(Base):
    def __init__(self, C, attn, p=0.0):
        super().__init__(C, attn, 1 - p)

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("passes keep by its own name", caught_by=first)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep=keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("has the GELU with tanh", caught_by=parts)
class Block(Base):
    def __init__(self, C, attn, p=0.0):
        super().__init__(C, attn, p)
        self.mlp[1] = nn.GELU("tanh")

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("has another eps", caught_by=parts)
class Block(Base):
    def __init__(self, C, attn, p=0.0):
        super().__init__(C, attn, p)
        self.n1 = nn.LayerNorm(C, eps=1e-6)

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("cuts the stream off", caught_by=flows)
class Block(Base):
    def forward(self, x, keep=None):
        x = x.detach() + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@mutant("cuts the second branch off", caught_by=flows)
class Block(Base):
    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x.detach())))


@accepted("begins as the identity: the last layer of the MLP is zero")
class Block(Base):
    def __init__(self, C, attn, p=0.0):
        super().__init__(C, attn, p)
        nn.init.zeros_(self.mlp[2].weight)
        nn.init.zeros_(self.mlp[2].bias)

    def forward(self, x, keep=None):
        x = x + self.drop(self.attn(self.n1(x), keep))
        return x + self.drop(self.mlp(self.n2(x)))


@accepted("functional dropout with the mode, a helper for the branches")
class Block(nn.Module):
    def __init__(self, C, attn, p=0.0):
        super().__init__()
        self.p = p
        self.attn = attn
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))
        self.n1, self.n2 = (nn.LayerNorm(C) for _ in range(2))

    def add(self, x, branch):
        return torch.add(x, F.dropout(branch, self.p, self.training))

    def forward(self, x, keep=None):
        x = self.add(x, self.attn(self.n1(x), keep))
        return self.add(x, self.mlp(self.n2(x)))


@accepted("two dropouts, and the sum of the corrections at the end")
class Block(nn.Module):
    def __init__(self, C, attn, p=0.0):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attn, self.drop1, self.drop2 = attn, nn.Dropout(p), nn.Dropout(p)
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def forward(self, x, keep=None):
        first = self.drop1(self.attn(self.n1(x), keep))
        middle = x + first
        return middle + self.drop2(self.mlp(self.n2(middle)))


@hinted(1, reaches=identity)
class Block(nn.Module):
    def __init__(self, C, attn, p=0.0):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attn = attn
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def forward(self, x, keep=None):
        x = x + self.attn(x, keep)
        return x + self.mlp(x)
