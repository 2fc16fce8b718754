"""Judges lessons/18_capstones/05_ship_trains.md."""

import functools
import inspect
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import DistributedSampler

from tensortutor.checking import accepted, check, expect_equal, expect_true, hinted, mutant
from tensortutor.lab import data

SHARES = "DistributedSampler(range(len(x))) gives each rank its rows of an epoch."
ORDER = "The sampler draws its order from the epoch that set_epoch names."
APART = "Wrap the net in DistributedDataParallel, and call the wrapper."
NAMES = "Return ddp.module.state_dict(): the wrapper's own names begin with `module.`."


def everywhere(value):
    """What each rank holds, on all ranks: all of them fail together, and none waits."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, value)
    return every


def attempt(call):
    """What call returns, on this rank. Each rank learns how it ended on all before it raises."""
    failed = got = None
    try:
        got = call()
    except Exception as error:
        failed = error
    troubles = everywhere("" if failed is None else f"{type(failed).__name__}: {failed}")
    if failed is not None:
        raise failed
    expect_true(not any(troubles), f"train failed on another rank: {''.join(troubles)[:200]}")
    return got


def digits(rng, count):
    d = np.load(data("digits.npz"))
    order = list(range(len(d["labels"])))
    rng.shuffle(order)
    x = torch.from_numpy(d["images"]).float().flatten(1)[order]
    y = torch.from_numpy(d["labels"]).long()[order]
    return x[:count], y[:count], x[count:], y[count:]


def once(work):
    """Decorate work(...): what it made of an answer is kept for other checks and seeds.

    The ranks ask for the same things in the same order, so all of them find it, or none.
    """
    results = {}

    @functools.wraps(work)
    def done(*told):
        key = tuple(inspect.unwrap(of) if callable(of) else of for of in told)
        if key not in results:
            results[key] = work(*told)
        return results[key]

    return done


def state_of(returned):
    if not isinstance(returned, dict):
        raise TypeError(f"train returned {type(returned).__name__}: the state of net() is wanted")
    return returned


class Watched:
    """What a run of train did on this rank.

    state: what it returned. seen: the numbers of the rows that the net saw in training. sizes: how
    many at a time. off: how far its input is from pixels / 16. rates: the learning rate at each
    step of the optimizer. kinds: its class, weight decay and betas. lowest: the smallest gradient
    of a bias of the last layer. own: the gradients of these biases that this rank's rows give, step
    by step. taken: those with which the optimizer stepped. calm: whether the net was called in eval
    mode, with gradients. optimizers: how many different ones stepped.
    """

    def __init__(self, train, x, y, epochs):
        self.seen, self.sizes, self.rates, self.off, self.lowest = [], [], [], 0.0, 0.0
        self.kinds, self.own, self.taken = set(), [], []
        self.calm, self._optimizers = False, []
        self._x = x
        handles = [
            register_module_forward_pre_hook(self._look),
            register_module_forward_hook(self._scored),
            register_optimizer_step_pre_hook(self._step),
        ]
        try:
            self.state = attempt(lambda: state_of(train(x, y, epochs)))
        finally:
            for handle in handles:
                handle.remove()

    def _look(self, module, args):
        first = isinstance(module, nn.Linear) and module.in_features == module.out_features
        self.calm = self.calm or (first and not module.training and torch.is_grad_enabled())
        if first and module.training and torch.is_grad_enabled():
            rows = args[0].detach().reshape(-1, 64)
            apart = torch.cdist(rows, self._x / 16, compute_mode="donot_use_mm_for_euclid_dist")
            gaps, numbers = apart.min(1)
            self.off = max(self.off, gaps.max().item())
            self.seen.extend(numbers.tolist())
            self.sizes.append(len(rows))

    def _scored(self, module, args, out):
        if isinstance(module, nn.Linear) and module.out_features == 10 and out.requires_grad:
            out.register_hook(lambda grad: self.own.append(grad.sum(0).tolist()))

    @property
    def optimizers(self):
        return len(self._optimizers)

    def _step(self, opt, *_):
        if not any(opt is other for other in self._optimizers):
            self._optimizers.append(opt)
        for group in opt.param_groups:
            self.rates.append(group["lr"])
            self.kinds.add((type(opt).__name__, group.get("weight_decay"), group.get("betas")))
            for p in group["params"]:
                if p.shape == (10,) and p.grad is not None:
                    self.lowest = min(self.lowest, p.grad.min().item())
                    self.taken.append(p.grad.tolist())


EPOCHS = 3


@once
def ran(train, half):
    """What train did on each rank in EPOCHS of 2 * half - 1 rows. All have one label: see steps."""
    count = 2 * half - 1
    x, *_ = digits(random.Random(half), count)
    torch.manual_seed(dist.get_rank())
    run = Watched(train, x, torch.full((count,), half % 10), EPOCHS)
    run.state = {name: t.detach().clone() for name, t in run.state.items()}
    names = ("state", "seen", "sizes", "off", "rates", "lowest", "kinds", "own", "taken", "calm",
             "optimizers")  # fmt: skip
    return everywhere({name: getattr(run, name) for name in names})


def half_of(rng):
    """How many rows a rank gets, or one less. Both give two steps of at most 16."""
    return rng.choice([18, 24])


@check("the state fits net()", holds="`net()` can load it")
def names(answer, rng, device):
    wanted = sorted(plain().state_dict())
    for run in ran(answer.train, half_of(rng)):
        expect_equal(sorted(run["state"]), wanted, name="the names of the state", hint=NAMES)


@check(
    "together the ranks read all rows, each a half",
    holds=[
        "is called on all ranks with the same rows",
        "In every epoch the ranks together read all rows, and each rank reads one half.",
        "Of an odd number of rows one may be read twice.",
        "The order is another one in each epoch.",
    ],
    both_sides=True,
)
def shares(answer, rng, device):
    half = half_of(rng)
    runs = ran(answer.train, half)
    off = max(run["off"] for run in runs)
    message = f"what the net is trained with differs by {off:.3g} from pixels / 16"
    expect_true(off < 1e-4, message, hint="Train with x[rows] / 16, as the starter does.")
    calm = any(run["calm"] for run in runs)
    hint = "Train in training mode: dropout is a part of net."
    expect_true(not calm, "train calls the net in eval mode", hint=hint)
    count, every = 2 * half - 1, [run["seen"] for run in runs]
    for rank, numbers in enumerate(every):
        message = (
            f"in {EPOCHS} epochs of {count} rows rank {rank} read {len(numbers)} rows, "
            f"and not {EPOCHS} times {half} or {half - 1}"
        )
        expect_true(len(numbers) in (EPOCHS * half, EPOCHS * (half - 1)), message, hint=SHARES)
    parts = [numbers[e * len(numbers) // EPOCHS : (e + 1) * len(numbers) // EPOCHS]
             for numbers in every for e in range(EPOCHS)]  # fmt: skip
    for epoch in range(EPOCHS):
        numbers = parts[epoch] + parts[EPOCHS + epoch]
        what = f"different rows that were read in epoch {epoch}, of {count}"
        expect_equal(len(set(numbers)), count, name=what, hint=SHARES)
    for rank in range(2):
        orders = {tuple(part) for part in parts[rank * EPOCHS : (rank + 1) * EPOCHS]}
        what = f"different orders in {EPOCHS} epochs"
        expect_equal(len(orders), EPOCHS, name=what, hint=ORDER)


@check(
    "steps as before",
    holds="All else stays as it is: `net`, the optimizer, 16 rows a step.",
)
def steps(answer, rng, device):
    expect_equal(str(answer.net()), str(plain()), name="net()")
    half = half_of(rng)
    for run in ran(answer.train, half):
        share = len(run["seen"]) // EPOCHS
        wanted, hint = [16, share - 16] * EPOCHS, "A step takes 16 rows of the rank's own."
        expect_equal(run["sizes"], wanted, name=f"rows a step, of {share} an epoch", hint=hint)
        hint = "One optimizer, made before the first epoch: it has a memory."
        expect_equal(run["optimizers"], 1, name="optimizers", hint=hint)
        rates = [5e-3] * (2 * EPOCHS)
        expect_equal(run["rates"], rates, name="the optimizer's learning rates")
        kinds = {("AdamW", 0.01, (0.9, 0.999))}
        expect_equal(run["kinds"], kinds, name="the optimizer, its weight decay and its betas")
        lowest = run["lowest"]
        # With one label in all rows a bias has the gradient p - 1, and a sum of two is below -1.
        hint = "Set the gradients to zero in front of each backward; the ranks average."
        what = f"a gradient is {lowest:.2f}, and the mean over one step's rows is not below -1"
        expect_true(lowest > -1.0001, what, hint=hint)


@check("all ranks have one state", holds="All ranks return the same state")
def replicas(answer, rng, device):
    first, second = (run["state"] for run in ran(answer.train, half_of(rng)))
    for name in first:
        apart = (first[name] - second[name]).abs().max().item()
        message = f"{name} differs by {apart:.3g} between the ranks"
        expect_true(apart < 1e-6, message, hint=APART)


@check(
    "each step follows the mean gradient",
    holds="Each step follows the mean of the ranks' gradients.",
    both_sides=True,
)
def mean(answer, rng, device):
    first, second = ran(answer.train, half_of(rng))
    own = [torch.tensor(run["own"]) for run in (first, second)]
    for run in (first, second):
        taken = torch.tensor(run["taken"])
        expect_equal(taken.shape, own[0].shape, name="steps, and biases of the last layer")
        apart = (taken - (own[0] + own[1]) / 2).abs().max().item()
        message = f"a step's gradient differs by {apart:.3g} from the mean of both ranks"
        expect_true(apart < 1e-4, message, hint=APART)


def plain():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))


def fitted(x, y, epochs, share="sampler", orders=True, average=True, module=True, seed=True,
           kind=torch.optim.AdamW, late=None, drop_last=False, calm=False,
           anew=False):  # fmt: skip
    """train, with parts left out."""
    if seed:
        torch.manual_seed(0)
    net = plain()
    ddp = DistributedDataParallel(net) if average else net
    opt = kind(ddp.parameters(), lr=5e-3)
    world, rank = dist.get_world_size(), dist.get_rank()
    sampler = DistributedSampler(range(len(x)), drop_last=drop_last)
    net.train(not calm)
    for epoch in range(epochs):
        if orders:
            sampler.set_epoch(epoch)
        if anew:
            opt = kind(ddp.parameters(), lr=5e-3)
        rows = torch.tensor(list(sampler))
        if share == "all":
            rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        elif share == "own":  # each rank draws for itself
            g = torch.Generator().manual_seed(10 * epoch + rank)
            rows = torch.randperm(len(x), generator=g)[: len(x) // world]
        elif share == "same":
            rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
            rows = rows[: len(x) // world]
        elif share == "slices":
            g = torch.Generator().manual_seed(epoch)
            rows = torch.randperm(len(x), generator=g)[rank::world]
        for part in rows.split(16):
            opt.zero_grad()
            F.cross_entropy(ddp(x[part] / 16), y[part]).backward()
            opt.step()
    for p in net.parameters() if late else ():
        late(p.data)
        if late is dist.all_reduce:
            p.data /= world
    state = net.state_dict() if module else ddp.state_dict()
    return {name: t.clone() for name, t in state.items()}


@mutant("hands on the wrapper's names", caught_by=names)
def train(x, y, epochs):
    return fitted(x, y, epochs, module=False)


@mutant("every rank reads all rows", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, share="all")


@mutant("every rank reads the same half", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, share="same")


@mutant("each rank draws its rows by itself", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, share="own")


@mutant("forgets set_epoch", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, orders=False)


@mutant("leaves the odd row out", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, drop_last=True)


@mutant("trains in eval mode", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, calm=True)


@mutant("makes an optimizer for each epoch", caught_by=steps)
def train(x, y, epochs):
    return fitted(x, y, epochs, anew=True)


@mutant("averages the weights, and that at the end", caught_by=mean)
def train(x, y, epochs):
    return fitted(x, y, epochs, average=False, late=dist.all_reduce)


@mutant("every rank gets the weights of rank 0, at the end", caught_by=mean)
def train(x, y, epochs):
    return fitted(x, y, epochs, average=False, late=lambda weight: dist.broadcast(weight, 0))


@mutant("another optimizer", caught_by=steps)
def train(x, y, epochs):
    return fitted(x, y, epochs, kind=torch.optim.Adam)


@mutant("no gradients are averaged", caught_by=replicas)
def train(x, y, epochs):
    return fitted(x, y, epochs, average=False)


@accepted("shares by slices of one order")
def train(x, y, epochs):
    return fitted(x, y, epochs, share="slices")


@accepted("averages the gradients by hand")
def train(x, y, epochs):
    net = plain()
    for t in net.state_dict().values():
        dist.broadcast(t, 0)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
    rank, world = dist.get_rank(), dist.get_world_size()
    for epoch in range(epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for rows in order.chunk(world)[rank].split(16):
            opt.zero_grad()
            F.cross_entropy(net(x[rows] / 16), y[rows]).backward()
            for p in net.parameters():
                dist.all_reduce(p.grad)
                p.grad /= world
            opt.step()
    return net.state_dict()


@hinted(1, reaches=replicas)
def train(x, y, epochs):
    torch.manual_seed(0)
    ddp = DistributedDataParallel(plain())
    sampler = DistributedSampler(range(len(x)))
    opt = torch.optim.AdamW(ddp.parameters(), lr=5e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(16):
            opt.zero_grad()
            F.cross_entropy(ddp(x[rows] / 16), y[rows]).backward()
            opt.step()
    return ddp.module.state_dict()
