"""Judges lessons/15_distributed/08_hangs.md."""

import datetime

import torch
import torch.distributed as dist

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

background(
    "The ranks read streams of different lengths",
    "Write run_together",
)

# A rank that waits for another one raises after this time, so that both come back to the check.
WAIT = datetime.timedelta(seconds=3)

equivalent(
    "flag = torch.tensor([0 if batch is end else 1])",
    "flag = torch.tensor([0 if batch is end else 2])",
    because="the minimum is 0 as before where one rank has run out, and any other number goes on.",
)

equivalent(
    "if flag.item() == 0:",
    "if flag == 0:",
    because="a comparison of a tensor with one number is true or false by itself.",
)

FEWEST = (
    "All ranks must learn in each round whether one of them has run out, and the one that has "
    "run out must take part in that round."
)


def uneven(rng):
    """Numbers of batches of the two ranks; both ranks draw the same."""
    few = rng.randint(1, 3)
    return rng.choice([[few, few + rng.randint(1, 3)], [few + rng.randint(1, 3), few]])


class Alike:
    """A batch that says it equals whatever it is compared with, as an array may."""

    def __eq__(self, other):
        return True

    __hash__ = None

    def __repr__(self):
        return "Alike()"


class Stream:
    """A generator's manners, and how many batches were read."""

    def __init__(self, batches):
        self.batches = list(batches)
        self.read = 0

    def __iter__(self):
        for batch in self.batches:
            self.read += 1
            yield batch


def everywhere(value):
    """What each rank found, on all ranks: all of them fail together, and none waits."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, value)
    return every


def attempt(answer, batches, step, group):
    """Run the answer on this rank; its result, after all ranks have said how it ended."""
    failed, result = None, None
    try:
        result = answer.run_together(batches, step, group)
    except Exception as error:
        failed = error
    troubles = everywhere("" if failed is None else f"{type(failed).__name__}: {failed}")
    waiting = [rank for rank, said in enumerate(troubles) if "gloo" in said]
    expect_true(
        not waiting,
        f"rank {waiting[0] if waiting else 0} waited for a call that another rank did not make",
        hint=FEWEST,
    )
    if failed is not None:
        raise failed
    expect_true(not any(troubles), "run_together failed on another rank")
    return result


def stops_together(answer, lengths, hint=FEWEST):
    """Each rank gets its own numbers; compare all ranks with the shortest."""
    rank, group = dist.get_rank(), dist.new_group(timeout=WAIT)
    mine = [10 * rank + i for i in range(lengths[rank])]
    seen = []
    steps = attempt(answer, mine, seen.append, group)
    wanted = min(lengths)
    for number, (got, count) in enumerate(everywhere((seen, steps))):
        first = [10 * number + i for i in range(wanted)]
        expect_equal(got, first, name=f"the batches that step got on rank {number}", hint=hint)
        expect_equal(count, wanted, name=f"the number of steps on rank {number}", hint=hint)


@check(
    "as many steps as the shortest rank has batches",
    holds=[
        "Each rank makes the same number of steps: that of the rank with the fewest batches.",
        "It calls step with this rank's batches, in order, while every rank still has a batch.",
        "It returns the number of steps.",
        "Call step(batch) as long as all ranks have a batch.",
    ],
    both_sides=True,
)
def shortest(answer, rng, device):
    lengths = uneven(rng)
    stops_together(answer, lengths)
    stops_together(answer, lengths[::-1])
    stops_together(answer, [lengths[0]] * 2, hint="All ranks have the same number here.")


@check(
    "a rank without a batch",
    holds="A rank may have no batch at all.",
    both_sides=True,
)
def nothing(answer, rng, device):
    stops_together(answer, rng.choice([[0, 2], [2, 0]]))
    stops_together(answer, [0, 0])


@check(
    "a generator, read no further than needed",
    holds=[
        "batches is any iterable, also a generator without a length.",
        "At most one batch is read that no step gets.",
    ],
    both_sides=True,
)
def lazily(answer, rng, device):
    rank, group = dist.get_rank(), dist.new_group(timeout=WAIT)
    few, many = rng.randint(1, 3), rng.randint(6, 9)
    lengths = rng.choice([[few, many], [many, few]])
    stream, seen = Stream(range(lengths[rank])), []
    attempt(answer, iter(stream), seen.append, group)
    for number, (got, read) in enumerate(everywhere((seen, stream.read))):
        expect_equal(
            got, list(range(few)), name=f"the batches that step got on rank {number}", hint=FEWEST
        )
        expect_true(
            read <= few + 1,
            f"rank {number} read {read} batches for {few} steps",
            hint="Ask in each round, and read one batch at a time.",
        )


@check(
    "batches of any kind",
    holds="A batch may be any object, also None.",
    both_sides=True,
)
def anything(answer, rng, device):
    group = dist.new_group(timeout=WAIT)
    odd = [None, [], 0, torch.zeros(2, 2), False, StopIteration, Alike()]
    rng.shuffle(odd)
    seen = []
    attempt(answer, list(odd), seen.append, group)
    for number, kinds in enumerate(everywhere([repr(batch) for batch in seen])):
        expect_equal(
            kinds,
            [repr(batch) for batch in odd],
            name=f"the batches that step got on rank {number}",
            hint="How do you tell the end of the stream from a batch that is None, or empty, or "
            "says that it equals everything? Compare with `is`, or catch StopIteration.",
        )


@check(
    "steps that make collectives",
    holds="step makes collectives in the same group.",
    hint="Rounds and steps must come in the same order on all ranks.",
)
def collectives(answer, rng, device):
    rank, group, lengths = dist.get_rank(), dist.new_group(timeout=WAIT), uneven(rng)
    sums = []

    def step(batch):
        t = torch.tensor([float(batch)])
        dist.all_reduce(t, group=group)
        sums.append(t.item())

    attempt(answer, (100 * rank + 7 * i + 5 for i in range(lengths[rank])), step, group)
    wanted = [110.0 + 14 * i for i in range(min(lengths))]
    for number, got in enumerate(everywhere(sums)):
        expect_equal(got, wanted, name=f"what the steps summed on rank {number}", hint=FEWEST)


@check(
    "the group that is given",
    holds="Yours run in group, and only its ranks take part.",
    side="group",
)
def given(answer, rng, device):
    rank, lengths = dist.get_rank(), uneven(rng)
    alone = [dist.new_group([r], timeout=WAIT) for r in range(dist.get_world_size())]
    seen = []
    steps = attempt(answer, range(lengths[rank]), seen.append, alone[rank])
    hint = "This group has one rank. It agrees with itself."
    for number, got in enumerate(everywhere((len(seen), steps))):
        expect_equal(got, (lengths[number],) * 2, name=f"the steps of rank {number}", hint=hint)


@check(
    "the group of all ranks",
    holds=["only its ranks take part", "None is the group of all ranks."],
    side="none",
)
def default(answer, rng, device):
    lengths, rank, seen = uneven(rng), dist.get_rank(), []
    steps = attempt(answer, range(lengths[rank]), seen.append, None)
    for number, got in enumerate(everywhere((len(seen), steps))):
        expect_equal(got, (min(lengths),) * 2, name=f"the steps of rank {number}", hint=FEWEST)


@mutant("runs its own batches", caught_by=shortest)
def run_together(batches, step, group=None):
    steps = 0
    for batch in batches:
        step(batch)
        steps += 1
    return steps


@mutant("leaves without a word", caught_by=shortest)
def run_together(batches, step, group=None):
    steps = 0
    for batch in batches:
        flag = torch.tensor([1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            break
        step(batch)
        steps += 1
    return steps


@mutant("agrees after the step", caught_by=shortest)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    while True:
        batch = next(stream, end)
        if batch is not end:
            step(batch)
        flag = torch.tensor([0 if batch is end else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        steps += 1


@mutant("goes on with the last batch", caught_by=shortest)
def run_together(batches, step, group=None):
    stream, end, steps, batch = iter(batches), object(), 0, None
    while True:
        new = next(stream, end)
        flag = torch.tensor([0 if new is end else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=group)
        if flag.item() == 0:
            return steps
        batch = batch if new is end else new
        step(batch)
        steps += 1


@mutant("counts the last round", caught_by=shortest)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    while True:
        batch = next(stream, end)
        steps += 1
        flag = torch.tensor([0 if batch is end else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        step(batch)


@mutant("takes one step before it asks", caught_by=nothing)
def run_together(batches, step, group=None):
    batches = list(batches)
    n = torch.tensor([len(batches)])
    dist.all_reduce(n, op=dist.ReduceOp.MIN, group=group)
    steps = max(1, n.item())
    for batch in batches[:steps]:
        step(batch)
    return steps


@mutant("reads the whole stream", caught_by=lazily)
def run_together(batches, step, group=None):
    batches = list(batches)
    n = torch.tensor([len(batches)])
    dist.all_reduce(n, op=dist.ReduceOp.MIN, group=group)
    for batch in batches[: n.item()]:
        step(batch)
    return n.item()


@mutant("takes None for the end", caught_by=anything)
def run_together(batches, step, group=None):
    stream, steps = iter(batches), 0
    while True:
        batch = next(stream, None)
        flag = torch.tensor([0 if batch is None else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        step(batch)
        steps += 1


@mutant("compares with the end by ==", caught_by=anything)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    while True:
        batch = next(stream, end)
        flag = torch.tensor([0 if batch == end else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        step(batch)
        steps += 1


@mutant("takes an empty batch for the end", caught_by=anything)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    while True:
        batch = next(stream, end)
        has = batch is not end and (isinstance(batch, torch.Tensor) or bool(batch))
        flag = torch.tensor([int(has or batch is None)])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        step(batch)
        steps += 1


@mutant("reads one batch ahead", caught_by=lazily)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    batch, ahead = next(stream, end), next(stream, end)
    while True:
        flag = torch.tensor([0 if batch is end else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        step(batch)
        steps += 1
        batch, ahead = ahead, next(stream, end)


@mutant("asks in the group of all", caught_by=given)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    while True:
        batch = next(stream, end)
        flag = torch.tensor([0 if batch is end else 1])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN)
        if flag.item() == 0:
            return steps
        step(batch)
        steps += 1


@mutant("skips the question without a group", caught_by=default)
def run_together(batches, step, group=None):
    stream, end, steps = iter(batches), object(), 0
    while True:
        batch = next(stream, end)
        flag = torch.tensor([0 if batch is end else 1])
        if group is not None:
            dist.all_reduce(flag, op=dist.ReduceOp.MIN, group=group)
        if flag.item() == 0:
            return steps
        step(batch)
        steps += 1


@hinted(1, reaches=shortest)
def run_together(batches, step, group=None):
    stream, steps = iter(batches), 0
    while True:
        batch = next(stream, None)
        has = torch.tensor([float(batch is not None)])
        dist.all_reduce(has, group=group)
        if has.item() < dist.get_world_size(group):
            return steps
        step(batch)
        steps += 1


@accepted("counts the ranks that have a batch")
def run_together(batches, step, group=None):
    steps, stream = 0, iter(batches)
    while True:
        try:
            batch, has = next(stream), 1
        except StopIteration:
            batch, has = None, 0
        total = torch.tensor([has])
        dist.all_reduce(total, group=group)
        if total.item() < dist.get_world_size(group):
            return steps
        step(batch)
        steps += 1


@accepted("a loop over the batches, and an answer after it")
def run_together(batches, step, group=None):
    def all_have(one):
        total = torch.tensor([float(one)])
        dist.all_reduce(total, op=dist.ReduceOp.PRODUCT, group=group)
        return total.item() == 1

    steps = 0
    for batch in batches:
        if not all_have(True):
            return steps
        step(batch)
        steps += 1
    all_have(False)
    return steps


@accepted("gathers a word from each rank")
def run_together(batches, step, group=None):
    steps, stream, end = 0, iter(batches), object()
    while True:
        batch = next(stream, end)
        words = [None] * dist.get_world_size(group)
        dist.all_gather_object(words, "end" if batch is end else "go", group=group)
        if "end" in words:
            return steps
        step(batch)
        steps += 1
