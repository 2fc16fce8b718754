"""Judges lessons/14_performance/09_checkpointing.md."""

import copy
from itertools import pairwise

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "A model of many small blocks: an input kept",
    "Group them.",
)

SAME = "Run the blocks in their order, each once, and hand on what each returns."
GRAPH = "Under no_grad nothing is recorded, not even what to run again."
KEPT = (
    "Hand whole groups to checkpoint: blocks 0 to size - 1, then the next `size`, and at the end "
    "what is left. The graph then keeps what goes into each of them."
)
CUT = "Something cuts the graph, as detach() does. What goes into a group is what came out before."
COPIES = "The blocks themselves have to run. A copy has parameters of its own."
EVERY = (
    "Each group is a checkpoint, the last one too: its blocks run once forward, and once again "
    "backward. A checkpoint inside of another runs them a third time."
)
STAYS = "Call the blocks and nothing else of them. checkpoint works for x as it comes."
MASK = "The second run has to draw the mask of the first: leave preserve_rng_state as it is."
LATER = (
    "The group is called again in the backward pass. A name that the function looks up then has "
    "moved on to the last group: bind the blocks to the function itself."
)
SINGLE = "checkpoint(..., use_reentrant=False) also works where x requires no gradient."


def chain(rng, device, count, dropout=0.0):
    d = rng.randint(4, 9)
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(d, 2 * d), nn.Tanh(), nn.Dropout(dropout), nn.Linear(2 * d, d))
        for _ in range(count)
    ).to(device)
    return blocks, torch.randn(rng.randint(3, 7), d, device=device)


def plain(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def run(function, blocks, x, *size, seed=0, graph_hint=GRAPH):
    """The output and all gradients, x's first, None where there is none."""
    leaf = x.detach().clone().requires_grad_(x.requires_grad)
    blocks.zero_grad()
    torch.manual_seed(seed)
    out = function(blocks, leaf, *size)
    good = isinstance(out, torch.Tensor) and out.requires_grad
    expect_true(good, "the output has no graph", hint=graph_hint)
    with advising(Exception, saying="torch.utils.checkpoint", hint=LATER):
        out.square().sum().backward()
    return out.detach(), [leaf.grad, *(p.grad for p in blocks.parameters())]


def compare(answer, blocks, x, size, hint=LATER, graph_hint=GRAPH):
    right, wanted = run(plain, blocks, x)
    out, grads = run(answer.run_checkpointed, blocks, x, size, graph_hint=graph_hint)
    expect_close(out, right, name="the output", hint=SAME)
    names = ["x", *(name for name, _ in blocks.named_parameters())]
    for name, got, grad in zip(names, grads, wanted):
        if grad is None:
            continue
        missing = CUT if name == "x" else COPIES
        expect_true(got is not None, f"{name} has no gradient", hint=missing)
        expect_close(got, grad, name=f"the gradient of {name}", hint=hint)


@check(
    "output and gradients are those of the plain loop",
    holds=[
        "the output of the blocks, one after the other",
        "Gradients of x and of all parameters are those of the plain loop.",
    ],
)
def same(answer, rng, device):
    blocks, x = chain(rng, device, 6)
    compare(answer, blocks, x.requires_grad_(), 1)
    compare(answer, blocks, x, 3)


@check(
    "a last group that is shorter, and groups of any size",
    holds=[
        "Each group of size blocks is one checkpoint, and the last group may be shorter.",
        "modules that take and return one tensor; 1 or more",
        "size: blocks in a group, 1 or more",
    ],
    both_sides=True,
)
def sizes(answer, rng, device):
    for count, size in ((7, 3), (5, 4), (2, 9), (1, 1), (4, 4)):
        blocks, x = chain(rng, device, count)
        compare(answer, blocks, x.requires_grad_(), size)
        runs = []
        for block in blocks:
            block[0].register_forward_hook(lambda *_, runs=runs: runs.append(1))
        run(answer.run_checkpointed, blocks, x, size)
        text = f"{count} blocks ran {len(runs)} times in a forward and a backward pass"
        expect_true(len(runs) == 2 * count, text, hint=EVERY)


@check(
    "only the inputs of groups are kept",
    holds="The graph keeps the input of each group, and nothing else.",
    both_sides=True,
)
def kept(answer, rng, device):
    # No other way to deal the blocks out makes the same groups.
    size, count = rng.choice([(3, 4), (4, 5), (4, 9), (3, 10)])
    # Each block has a width of its own, so that what is kept tells where the groups begin.
    widths = rng.sample(range(4, 40), count + 1)
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(a, 3), nn.Tanh(), nn.Linear(3, b)) for a, b in pairwise(widths)
    ).to(device)
    x = torch.randn(rng.randint(3, 7), widths[0], device=device, requires_grad=True)
    own = {p.untyped_storage().data_ptr() for p in blocks.parameters()}
    saved = {}

    def pack(t):
        if t.numel() and t.untyped_storage().data_ptr() not in own:
            saved[t.untyped_storage().data_ptr()] = t
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = answer.run_checkpointed(blocks, x, size)
    expect_true(out.requires_grad, "the output has no graph", hint=GRAPH)
    shapes = sorted(list(t.shape) for t in saved.values())
    name = f"with blocks of the widths {widths} in groups of {size}, the list of kept shapes"
    wanted = sorted([len(x), width] for width in widths[:-1:size])
    expect_equal(shapes, wanted, name=name, hint=KEPT)


@check("dropout draws the same mask again", holds="That holds for blocks with dropout, too.")
def dropout(answer, rng, device):
    blocks, x = chain(rng, device, 5, dropout=0.3)
    blocks[1].eval()
    modes = [m.training for m in blocks.modules()]
    answer.run_checkpointed(blocks, x, 2)
    expect_equal([m.training for m in blocks.modules()], modes, name="list of modes", hint=STAYS)
    compare(answer, blocks, x.requires_grad_(), 2, MASK)


@check("x requires no gradient", holds="x need not require gradients.")
def plain_input(answer, rng, device):
    blocks, x = chain(rng, device, 4)
    compare(answer, blocks, x, 2, SINGLE, SINGLE)
    blocks[0].requires_grad_(False)
    compare(answer, blocks, x[:1], 2, SINGLE, SINGLE)


@check(
    "x and the blocks stay as they are",
    hint=STAYS,
    holds="The flags of x and the modes of the blocks stay as they are.",
    both_sides=True,
)
def untouched(answer, rng, device):
    blocks, x = chain(rng, device, 5, dropout=0.3)
    blocks[rng.randint(1, 4)].eval()
    blocks[0][0].weight.requires_grad_(False)
    modes = [m.training for m in blocks.modules()]
    flags = [p.requires_grad for p in blocks.parameters()]
    answer.run_checkpointed(blocks, x, 2).sum().backward()
    expect_equal([m.training for m in blocks.modules()], modes, name="list of modes", hint=STAYS)
    now = [p.requires_grad for p in blocks.parameters()]
    expect_equal(now, flags, name="list of flags", hint=STAYS)
    expect_true(not x.requires_grad, "x requires a gradient now", hint=STAYS)


@mutant("keeps everything", caught_by=sizes)
def run_checkpointed(blocks, x, size):
    for block in blocks:
        x = block(x)
    return x


@mutant("records nothing", caught_by=same)
def run_checkpointed(blocks, x, size):
    with torch.no_grad():
        for block in blocks:
            x = block(x)
    return x


@mutant("cuts the graph between groups", caught_by=same)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        x = checkpoint(nn.Sequential(*blocks[i : i + size]), x.detach(), use_reentrant=False)
    return x


@mutant("checkpoints block by block", caught_by=kept)
def run_checkpointed(blocks, x, size):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x


@mutant("makes one checkpoint of all", caught_by=kept)
def run_checkpointed(blocks, x, size):
    return checkpoint(nn.Sequential(*blocks), x, use_reentrant=False)


@mutant("looks its group up when it is called", caught_by=same)
def run_checkpointed(blocks, x, size):
    start = 0

    def group(h):
        return plain(blocks[start : start + size], h)

    while start < len(blocks):
        x = checkpoint(group, x, use_reentrant=False)
        start += size
    return x


@mutant("checkpoints the first block of each group alone", caught_by=sizes)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        x = checkpoint(blocks[i], x, use_reentrant=False)
        for block in blocks[i + 1 : i + size]:
            x = block(x)
    return x


@mutant("drops the last group if it is shorter", caught_by=sizes)
def run_checkpointed(blocks, x, size):
    for i in range(0, max(len(blocks) - size + 1, 1), size):
        x = checkpoint(nn.Sequential(*blocks[i : i + size]), x, use_reentrant=False)
    return x


@mutant("takes size for the number of groups", caught_by=kept)
def run_checkpointed(blocks, x, size):
    step = -(-len(blocks) // size)
    step = step if step != size else step + 1
    for i in range(0, len(blocks), step):
        x = checkpoint(nn.Sequential(*blocks[i : i + step]), x, use_reentrant=False)
    return x


@mutant("draws a new mask the second time", caught_by=dropout)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        group = nn.Sequential(*blocks[i : i + size])
        x = checkpoint(group, x, use_reentrant=False, preserve_rng_state=False)
    return x


@mutant("takes the older kind", caught_by=plain_input)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        x = checkpoint(nn.Sequential(*blocks[i : i + size]), x, use_reentrant=True)
    return x


@mutant("makes the first group the shorter one", caught_by=kept)
def run_checkpointed(blocks, x, size):
    first = len(blocks) % size
    ends = [*range(first, len(blocks) + 1, size)]
    for a, b in pairwise([0, *ends] if first else ends):
        x = checkpoint(nn.Sequential(*blocks[a:b]), x, use_reentrant=False)
    return x


@mutant("deals the blocks out evenly", caught_by=kept)
def run_checkpointed(blocks, x, size):
    count = -(-len(blocks) // size)
    for part in torch.arange(len(blocks)).tensor_split(count):
        group = nn.Sequential(*(blocks[i] for i in part))
        x = checkpoint(group, x, use_reentrant=False)
    return x


@mutant("makes the groups one block too long", caught_by=kept)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size + 1):
        x = checkpoint(nn.Sequential(*blocks[i : i + size + 1]), x, use_reentrant=False)
    return x


@mutant("runs the last group without a checkpoint", caught_by=sizes)
def run_checkpointed(blocks, x, size):
    last = (len(blocks) - 1) // size * size
    for i in range(0, last, size):
        x = checkpoint(nn.Sequential(*blocks[i : i + size]), x, use_reentrant=False)
    return plain(blocks[last:], x)


@mutant("hands the number of groups to checkpoint_sequential", caught_by=sizes)
def run_checkpointed(blocks, x, size):
    count = -(-len(blocks) // size)
    return checkpoint_sequential(nn.Sequential(*blocks), count, x, use_reentrant=False)


@mutant("checkpoints blocks inside of checkpoints", caught_by=sizes)
def run_checkpointed(blocks, x, size):
    def group(h, part):
        for block in part:
            h = checkpoint(block, h, use_reentrant=False)
        return h

    for i in range(0, len(blocks), size):
        x = checkpoint(group, x, blocks[i : i + size], use_reentrant=False)
    return x


@mutant("runs copies of the blocks", caught_by=same)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        group = nn.Sequential(*copy.deepcopy(blocks[i : i + size]))
        x = checkpoint(group, x, use_reentrant=False)
    return x


@mutant("switches dropout off", caught_by=dropout)
def run_checkpointed(blocks, x, size):
    blocks.eval()
    for i in range(0, len(blocks), size):
        x = checkpoint(nn.Sequential(*blocks[i : i + size]), x, use_reentrant=False)
    return x


@mutant("puts all blocks into training mode", caught_by=dropout)
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        group = nn.Sequential(*blocks[i : i + size]).train()
        x = checkpoint(group, x, use_reentrant=False)
    return x


@mutant("makes x require a gradient", caught_by=untouched)
def run_checkpointed(blocks, x, size):
    x.requires_grad_(x.is_leaf or x.requires_grad)
    for i in range(0, len(blocks), size):
        x = checkpoint(nn.Sequential(*blocks[i : i + size]), x, use_reentrant=True)
    return x


@hinted(1, reaches=same)
def run_checkpointed(blocks, x, size):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x


@accepted("binds the group as a default argument")
def run_checkpointed(blocks, x, size):
    blocks = list(blocks)
    while blocks:

        def group(h, part=blocks[:size]):
            for block in part:
                h = block(h)
            return h

        x, blocks = checkpoint(group, x, use_reentrant=False), blocks[size:]
    return x


@accepted("hands the blocks over as arguments")
def run_checkpointed(blocks, x, size):
    def group(h, part):
        for block in part:
            h = block(h)
        return h

    for i in range(0, len(blocks), size):
        x = checkpoint(group, x, blocks[i : i + size], use_reentrant=False)
    return x


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, x, *params):
        ctx.function, ctx.params, ctx.state = function, params, torch.get_rng_state()
        ctx.save_for_backward(x)
        return function(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        h = x.detach().requires_grad_(ctx.needs_input_grad[1])
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.function(h)
        needed = ctx.needs_input_grad[1:]
        wanted = [t for t, needs in zip((h, *ctx.params), needed, strict=True) if needs]
        grads = iter(torch.autograd.grad(out, wanted, grad))
        return (None, *(next(grads) if needs else None for needs in needed))


@accepted("is an autograd function of its own")
def run_checkpointed(blocks, x, size):
    for i in range(0, len(blocks), size):
        group = nn.Sequential(*blocks[i : i + size])
        x = Recompute.apply(group, x, *group.parameters())
    return x
