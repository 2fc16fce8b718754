"""Judges lessons/15_distributed/04_ddp.md."""

import contextlib
import copy
import datetime
from collections import Counter
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("micro_batches is a list of pairs")

# A rank that waits for another one raises after this time, so that both come back to the check.
WAIT = datetime.timedelta(seconds=5)

APART = (
    "The replicas have drifted apart: their gradients were not averaged. One backward of the step "
    "has to send, and its forward is a call of ddp itself, outside of no_sync()."
)
SCALE = (
    "The loss of the whole batch is the mean of the micro-batches' losses. Gradients add up over "
    "them, and the optimizer steps once, at the end."
)
ONCE = "Put the forward and the backward of every micro-batch but the last into ddp.no_sync()."
PLAIN = (
    "With one micro-batch a step clears the gradients, calls ddp and backward, and steps once. Is "
    "a gradient of the step before still there, or does something divide the loss?"
)
OLD = "Gradients of an earlier step are still there, and backward adds to them."


@dataclass
class Task:
    """A model, data and an optimizer, drawn alike on all ranks.

    batches: of each rank, a list of (x, y).
    """

    model: nn.Module
    optimizer: type
    options: dict
    loss_fn: object
    batches: list


@dataclass
class Seen:
    """What one rank saw.

    sent: for each step, how often DDP sent each parameter, by name.
    sizes: how many samples each call of the model got.
    order: "forward" and "backward" of the model, as they came.
    sends: whether DDP would send in the next backward, at the end.
    """

    state: list = field(default_factory=list)
    sent: list = field(default_factory=list)
    sizes: list = field(default_factory=list)
    order: list = field(default_factory=list)
    sends: bool = True


def everywhere(value):
    """What each rank holds, on all ranks: all of them fail together, and none waits."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, value)
    return every


def draw(rng, parts, adam=False, frozen=None):
    """A new task, in float64, with `parts` micro-batches on each rank.

    frozen: whether the layer in the middle is; by chance, if it is None.
    adam: with Adam, which a gradient of another size would not change, and with SGD otherwise.
    """
    wide, hidden, out, n = (
        rng.randint(2, 5),
        rng.randint(3, 6),
        rng.randint(2, 4),
        rng.randint(1, 4),
    )
    torch.manual_seed(rng.randint(0, 9999))
    model = nn.Sequential(
        nn.Linear(wide, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
        nn.Linear(hidden, out),
    ).double()  # fmt: skip
    if frozen is None:
        frozen = rng.random() < 0.5
    if frozen:
        model[2].requires_grad_(False)
    optimizer, options = torch.optim.SGD, {"lr": 0.3, "momentum": rng.choice([0.0, 0.9])}
    if adam:
        optimizer, options = torch.optim.Adam, {"lr": 0.05}
    classes = rng.random() < 0.5
    batches = []
    for rank in range(dist.get_world_size()):
        of_rank = []
        for _ in range(parts):
            x = torch.randn(n, wide, dtype=torch.float64) + rank
            y = torch.randint(out, (n,)) if classes else torch.randn(n, out).double()
            of_rank.append((x, y))
        batches.append(of_rank)
    return Task(model, optimizer, options, F.cross_entropy if classes else F.mse_loss, batches)


def attempt(answer, ddp, batches, opt, loss_fn):
    """Run the answer on this rank. Each rank learns how it ended on all before it raises."""
    failed = None
    try:
        answer.ddp_step(ddp, batches, opt, loss_fn)
    except Exception as error:
        failed = error
    troubles = everywhere("" if failed is None else f"{type(failed).__name__}: {failed}")
    waiting = [rank for rank, said in enumerate(troubles) if "gloo" in said]
    expect_true(
        not waiting,
        f"rank {waiting[0] if waiting else 0} waited for a message that another rank did not send",
        hint="All ranks have to send in the same backward.",
    )
    if failed is not None:
        raise failed
    expect_true(not any(troubles), "ddp_step failed on another rank")


def watch(out, order):
    """Note a forward now, and its backward when the gradient of its output comes."""
    order.append("forward")
    if out.requires_grad:
        out.register_hook(lambda _: order.append("backward"))


def run(answer, task, steps=1, leftover=0.0):
    """What each rank saw in `steps` steps of the answer. leftover: a gradient from before."""
    seen, rank = Seen(), dist.get_rank()
    model = copy.deepcopy(task.model)
    names = {id(p): name for name, p in model.named_parameters()}
    model[0].register_forward_pre_hook(lambda _, args: seen.sizes.append(len(args[0])))
    model[-1].register_forward_hook(lambda _, args, out: watch(out, seen.order))
    group = dist.new_group(timeout=WAIT)

    def note(state, bucket):
        seen.sent[-1].update(names[id(p)] for p in bucket.parameters())
        return default_hooks.allreduce_hook(state, bucket)

    # Small buckets: after the first backward each parameter has one of its own.
    ddp = DistributedDataParallel(model, process_group=group, bucket_cap_mb=1e-5)
    try:
        ddp.register_comm_hook(group, note)
        opt = task.optimizer(ddp.parameters(), **task.options)
        if leftover:
            for p in model.parameters():
                p.grad = torch.full_like(p, leftover) if p.requires_grad else None
        for _ in range(steps):
            seen.sent.append(Counter())
            attempt(answer, ddp, list(task.batches[rank]), opt, task.loss_fn)
        seen.sends = ddp.require_backward_grad_sync
        seen.state = [p.detach().clone() for p in model.parameters()]
    finally:
        del ddp, opt
        dist.destroy_process_group(group)
    return everywhere(seen)


def alone(task, steps=1):
    """The weights of one process with the whole batch, in float64."""
    model = copy.deepcopy(task.model)
    opt = task.optimizer(model.parameters(), **task.options)
    x, y = (torch.cat(part) for part in zip(*(pair for of in task.batches for pair in of)))
    for _ in range(steps):
        opt.zero_grad()
        task.loss_fn(model(x), y).backward()
        opt.step()
    return [p.detach() for p in model.parameters()]


def compare(task, every, steps=1, hint=SCALE):
    names = [name for name, _ in task.model.named_parameters()]
    for name, *held in zip(names, *(seen.state for seen in every)):
        apart = max((other - held[0]).abs().max().item() for other in held)
        expect_true(
            apart < 1e-9,
            f"after {steps} steps {name} differs by {apart:.3g} between the ranks",
            hint=APART,
        )
    for rank, seen in enumerate(every):
        for name, got, wanted in zip(names, seen.state, alone(task, steps)):
            expect_close(got, wanted, atol=1e-7, name=f"{name} on rank {rank}", hint=hint)


@check(
    "one micro-batch",
    holds=[
        "which takes one step of the optimizer opt",
        "at least one",
    ],
    both_sides=True,
)
def single(answer, rng, device):
    task = draw(rng, 1)
    compare(task, run(answer, task, 2), 2, hint=PLAIN)


@check(
    "the step of one process with the whole batch",
    holds=[
        "After it every rank has the weights that one process would get from one step on all "
        "samples of all ranks as one batch.",
        "loss_fn(prediction, y) is a mean over samples.",
        "All micro-batches, on all ranks, have the same number of samples.",
        "One optimizer step over all micro-batches.",
        "Parameters may be frozen; their gradients are None.",
    ],
    both_sides=True,
)
def several(answer, rng, device):
    for parts, adam in ((2, False), (rng.randint(3, 5), True)):
        task = draw(rng, parts, adam, frozen=not adam)
        compare(task, run(answer, task, 2), 2)


@check("gradients from before", holds="Gradients that were there before do not count.", hint=OLD)
def leftovers(answer, rng, device):
    task = draw(rng, rng.randint(2, 3))
    compare(task, run(answer, task, 1, leftover=rng.uniform(1, 3)), 1, hint=OLD)


@check(
    "one micro-batch in a forward",
    holds="Memory holds one micro-batch: each goes forward through the model by itself",
    both_sides=True,
)
def one_by_one(answer, rng, device):
    task = draw(rng, rng.randint(2, 4))
    for rank, seen in enumerate(run(answer, task)):
        wanted = [len(x) for x, _ in task.batches[rank]]
        expect_equal(seen.sizes, wanted, name=f"the samples in each forward on rank {rank}")


@check(
    "the backward comes before the next forward",
    holds="and backward before the next one comes",
)
def freed(answer, rng, device):
    task = draw(rng, rng.randint(2, 4))
    for rank, seen in enumerate(run(answer, task)):
        expect_equal(
            seen.order,
            ["forward", "backward"] * len(task.batches[rank]),
            name=f"the calls on rank {rank}",
            hint="The graph of a forward keeps its activations until its backward: call backward "
            "for each micro-batch.",
        )


@check(
    "DDP sends again after the step",
    holds="After the step a backward sends as before.",
)
def restored(answer, rng, device):
    task = draw(rng, rng.randint(1, 3))
    for rank, seen in enumerate(run(answer, task)):
        expect_true(
            seen.sends,
            f"after the step, DDP on rank {rank} would not send in its next backward",
            hint="no_sync() puts the attribute back when its block ends. Who sets "
            "require_backward_grad_sync by hand sets it to True at the end.",
        )


@check(
    "each gradient is sent once",
    holds="DDP sends each gradient once in a step, in the backward of the last micro-batch.",
    both_sides=True,
)
def once(answer, rng, device):
    parts = rng.randint(2, 4)
    task = draw(rng, parts)
    names = [name for name, p in task.model.named_parameters() if p.requires_grad]
    for rank, seen in enumerate(run(answer, task, 3)):
        for step, sent in enumerate(seen.sent):
            for name in names:
                expect_equal(
                    sent[name],
                    1,
                    name=f"how often DDP sends the gradient of {name} in step {step} of {parts} "
                    f"micro-batches, on rank {rank},",
                    hint=ONCE if sent[name] else APART,
                )


@mutant("sends in every backward", caught_by=once)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    for x, y in micro_batches:
        (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@mutant("keeps all in no_sync", caught_by=single)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    with ddp.no_sync():
        for x, y in micro_batches:
            (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@mutant("calls the model and not the wrapper", caught_by=single)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    for x, y in micro_batches:
        (loss_fn(ddp.module(x), y) / len(micro_batches)).backward()
    opt.step()


@mutant("sends the first micro-batch and not the last", caught_by=several)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    (x, y), *rest = micro_batches
    (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    with ddp.no_sync():
        for x, y in rest:
            (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@mutant("does not divide the loss", caught_by=several)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    *early, (x, y) = micro_batches
    with ddp.no_sync():
        for a, b in early:
            loss_fn(ddp(a), b).backward()
    loss_fn(ddp(x), y).backward()
    opt.step()


@mutant("divides by the ranks as well", caught_by=single)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    k = len(micro_batches) * dist.get_world_size()
    *early, (x, y) = micro_batches
    with ddp.no_sync():
        for a, b in early:
            (loss_fn(ddp(a), b) / k).backward()
    (loss_fn(ddp(x), y) / k).backward()
    opt.step()


@mutant("divides gradients that a frozen parameter has not", caught_by=several)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    *early, (x, y) = micro_batches
    with ddp.no_sync():
        for a, b in early:
            loss_fn(ddp(a), b).backward()
    loss_fn(ddp(x), y).backward()
    for p in ddp.parameters():
        p.grad /= len(micro_batches)
    opt.step()


@mutant("takes a step for each micro-batch", caught_by=several)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    for x, y in micro_batches:
        opt.zero_grad()
        loss_fn(ddp(x), y).backward()
        opt.step()


@mutant("has only the backward in no_sync", caught_by=once)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        loss = loss_fn(ddp(x), y) / len(micro_batches)
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else ddp.no_sync():
            loss.backward()
    opt.step()


@mutant("never clears the gradients", caught_by=single)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    *early, (x, y) = micro_batches
    with ddp.no_sync():
        for a, b in early:
            (loss_fn(ddp(a), b) / len(micro_batches)).backward()
    (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@mutant("clears the gradients after the step", caught_by=leftovers)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    *early, (x, y) = micro_batches
    with ddp.no_sync():
        for a, b in early:
            (loss_fn(ddp(a), b) / len(micro_batches)).backward()
    (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()
    opt.zero_grad()


@mutant("one forward with all micro-batches", caught_by=one_by_one)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    x, y = (torch.cat(part) for part in zip(*micro_batches))
    loss_fn(ddp(x), y).backward()
    opt.step()


@mutant("keeps all graphs for one backward", caught_by=freed)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    *early, (x, y) = micro_batches
    with ddp.no_sync():
        total = sum(loss_fn(ddp(a), b) for a, b in early)
    total = (total + loss_fn(ddp(x), y)) / len(micro_batches)
    total.backward()
    opt.step()


@mutant("leaves the attribute that no_sync sets as False", caught_by=restored)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        ddp.require_backward_grad_sync = i == len(micro_batches) - 1
        (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    ddp.require_backward_grad_sync = False
    opt.step()


@mutant("averages by hand, beside DDP", caught_by=once)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    with ddp.no_sync():
        for x, y in micro_batches:
            (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    for p in ddp.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
    opt.step()


@hinted(1, reaches=one_by_one)
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    for x, y in micro_batches:
        (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@accepted("sets the attribute that no_sync sets")
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    for i, (x, y) in enumerate(micro_batches):
        ddp.require_backward_grad_sync = i == len(micro_batches) - 1
        (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@accepted("calls the model for all micro-batches but the last")
def ddp_step(ddp, micro_batches, opt, loss_fn):
    opt.zero_grad()
    *early, (x, y) = micro_batches
    for a, b in early:
        (loss_fn(ddp.module(a), b) / len(micro_batches)).backward()
    (loss_fn(ddp(x), y) / len(micro_batches)).backward()
    opt.step()


@accepted("chooses the context for each, and divides the gradients")
def ddp_step(ddp, micro_batches, opt, loss_fn):
    for p in ddp.parameters():
        p.grad = None
    left = len(micro_batches)
    for x, y in micro_batches:
        left -= 1
        with contextlib.ExitStack() as stack:
            if left:
                stack.enter_context(ddp.no_sync())
            loss_fn(ddp(x), y).backward()
    for p in ddp.parameters():
        if p.grad is not None:
            p.grad /= len(micro_batches)
    opt.step()
