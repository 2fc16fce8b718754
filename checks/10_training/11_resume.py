"""Judges lessons/10_training/11_resume.md."""

import io
import itertools
import pickle
import random
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    check,
    expect_dtype,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

PLACE = (
    "The order of an epoch is drawn as a whole when the epoch begins. A state that was read after "
    "that draws the next order. Keep the generator's state from before the draw, and how much of "
    "the order is done, this batch included."
)
ENDS = "After an epoch's last batch, which may be short, comes the first of the next epoch."
ALL = "The state holds all that the stream needs: the new stream may have another seed."
DICE = (
    "torch.get_rng_state() is the state of the CPU's generator, torch.cuda.get_rng_state_all() "
    "that of each GPU. set_... puts them back. A seed is where a generator began, not where it "
    "stands."
)
PYTHON = "random.getstate() tells where Python's generator stands, random.setstate(s) puts it back."
LARGE = (
    "The state holds numbers of the order. The order can be drawn again: from the generator's "
    "state before it was drawn."
)
OWN = "Draw from a torch.Generator of the stream's own, passed on as generator=."
PLAIN = "weights_only=True reads tensors, containers and plain values, no objects of other classes."


def take(batches, count):
    """The next (batch, state) pairs, each as it was when it was yielded."""
    pairs = list(itertools.islice(batches, count))
    message = f"the stream ends after {len(pairs)} batches, and {count} were asked for"
    expect_true(len(pairs) == count, message, hint=ENDS)
    return pairs


def begin(answer, *args):
    batches = answer.stream(*args)
    expect_true(
        hasattr(batches, "__next__"),
        "stream(...) returns nothing that next() can be called on",
        hint="A function with a `yield` in it returns such an iterator.",
    )
    return batches


def indices(pairs):
    """The batches alone, as lists."""
    return [batch.tolist() for batch, _ in pairs]


def steps_of(n, size):
    """How many batches an epoch has."""
    return -(-n // size)


def through_a_file(state, what):
    """What torch.load reads of what torch.save wrote, on the CPU, and its size in bytes."""
    file = io.BytesIO()
    torch.save(state, file)
    length = len(file.getvalue())
    file.seek(0)
    try:
        return torch.load(file, map_location="cpu", weights_only=True), length
    except pickle.UnpicklingError as error:
        words = str(error).partition("Unsupported ")[2].partition(" was")[0]
        fail(f"torch.load refuses {what}: unsupported {words}", hint=PLAIN)


def elsewhere_in_time(rng):
    """Another day: the generators stand somewhere else."""
    torch.manual_seed(rng.randrange(2**31))
    random.seed(rng.randrange(2**31))


@check(
    "an epoch has every index once, in an order of its own",
    holds=[
        "Write the `stream` of its batches",
        "n: int, samples; size: int, the length of a batch; from 1 on",
        "1-D int64 tensor of indices",
        "In an epoch's last batch there may be fewer.",
        "Each epoch has every index from 0 to n - 1 once, in an order that is drawn for it",
        "Yield (batch, state), epoch after epoch, without end.",
    ],
    both_sides=True,
)
def epochs(answer, rng, device):
    sizes = [(rng.randrange(20, 40), 6), (24, 6), (7, 1), (1, 1), (5, 9), (1, 3)]
    for n, size in sizes:
        per, seed = steps_of(n, size), rng.randrange(2**31)
        pairs = take(begin(answer, n, size, seed), 3 * per)
        for batch, _ in pairs:
            expect_dtype(batch, torch.int64, name="a batch")
        lengths = [tuple(batch.shape) for batch, _ in pairs]
        wanted = [(min(size, n - k),) for k in range(0, n, size)] * 3
        name = f"the list of the batches' shapes, with n={n} and size={size}"
        expect_equal(lengths, wanted, name=name, hint=ENDS)
        orders = [list(itertools.chain(*indices(pairs[e * per : (e + 1) * per]))) for e in range(3)]
        for order in orders:
            name = f"the sorted indices of an epoch of {n}"
            expect_equal(sorted(order), list(range(n)), name=name)
        for old, new in itertools.pairwise(orders):
            message = f"two epochs of {n} samples have the same order"
            expect_true(n < 20 or old != new, message, hint="Draw a new order for each epoch.")


@check(
    "one generator gives all orders of a stream",
    holds="A run draws its orders from one generator that is not seeded again.",
)
def one_generator(answer, rng, device):
    n, seed = rng.randrange(30, 40), rng.randrange(2**31)
    orders = []
    for own in (seed, seed + 1):
        batches = indices(take(begin(answer, n, n, own), 3))
        orders.append(batches)
    for epoch, order in enumerate(orders[0]):
        hint = "Seed the generator once, with `seed` alone: seed + epoch is another stream's seed."
        message = f"epoch 0 of seed {seed + 1} has the order of epoch {epoch} of seed {seed}"
        expect_true(orders[1][0] != order, message, hint=hint)


@check(
    "a stream that begins in the middle of an epoch goes on where the other stood",
    holds=[
        "where the stream stands after this batch",
        "A stream that begins with it yields the same batches as this one from here on.",
    ],
)
def middle(answer, rng, device):
    n, size = rng.randrange(20, 40), rng.randrange(3, 6)
    per, seed = steps_of(n, size), rng.randrange(2**31)
    for done in (2, per + 1, per + 3):
        batches = begin(answer, n, size, seed)
        _, state = take(batches, done)[-1]
        wanted = indices(take(batches, 2 * per))
        got = indices(take(begin(answer, n, size, seed, state), 2 * per))
        name = f"the list of the next batches, {done % per} of {per} of the epoch done,"
        expect_equal(got, wanted, name=name, hint=PLACE)


@check(
    "a stream that begins between two epochs goes on where the other stood",
    holds="A stream that begins with it yields the same batches as this one from here on.",
)
def between(answer, rng, device):
    for n, size in ((rng.randrange(20, 40), 5), (24, 6), (3, 5), (6, 1), (1, 1)):
        per, seed = steps_of(n, size), rng.randrange(2**31)
        for done in (1, per, 2 * per, 2 * per - 1 or 1):
            batches = begin(answer, n, size, seed)
            _, state = take(batches, done)[-1]
            wanted = indices(take(batches, 2 * per))
            got = indices(take(begin(answer, n, size, seed, state), 2 * per))
            name = f"the list of the next batches after {done} batches (n={n}, size={size})"
            expect_equal(got, wanted, name=name, hint=f"{ENDS} {PLACE}")


@check(
    "a state suffices, whatever the seed of the stream that takes it",
    holds="None to begin, or one that a stream of the same n and size has yielded, whatever its "
    "seed",
    both_sides=True,
)
def other_seed(answer, rng, device):
    n, size, seed = rng.randrange(20, 40), rng.randrange(3, 6), rng.randrange(2**30)
    first = indices(take(begin(answer, n, size, seed), 3))
    again = indices(take(begin(answer, n, size, seed, None), 3))
    expect_equal(again, first, name="the list of the batches of a second stream with the seed")
    other = indices(take(begin(answer, n, size, seed + 1), 3))
    message = "streams of two seeds yield the same batches"
    expect_true(other != first, message, hint="The stream's generator is seeded with seed.")
    batches = begin(answer, n, size, seed)
    _, state = take(batches, 4)[-1]
    wanted = take(batches, 12)
    resumed = begin(answer, n, size, seed + 1, state)
    got = take(resumed, 5)
    name = "the list of the next batches, in a stream of another seed,"
    expect_equal(indices(got), indices(wanted[:5]), name=name, hint=ALL)
    once_more = begin(answer, n, size, 0, got[-1][1])
    name = "the list of the next batches of a run that was resumed twice"
    expect_equal(indices(take(once_more, 7)), indices(wanted[5:]), name=name, hint=ALL)


@check(
    "a state that was yielded does not change any more",
    holds="It does not change any more",
)
def stays(answer, rng, device):
    n, size, seed = rng.randrange(20, 40), rng.randrange(3, 6), rng.randrange(2**31)
    batches = begin(answer, n, size, seed)
    pairs = take(batches, 5)
    wanted = indices(pairs[3:]) + indices(take(batches, 9))
    hint = "Every yield needs a dict of its own. One that is written to again changes the states "
    hint += "that were handed out."
    got = indices(take(begin(answer, n, size, seed, pairs[2][1]), 11))
    expect_equal(got, wanted, name="the list of the batches from an earlier state", hint=hint)
    got = indices(take(begin(answer, n, size, seed, pairs[2][1]), 11))
    expect_equal(got, wanted, name="the list of the batches from a state used twice", hint=hint)


@check(
    "a state goes through a file, and is small",
    holds=[
        "it is as large for 100,000 samples as for 10",
        "torch.save can write it and torch.load read it with weights_only=True",
        "maybe from a file",
    ],
)
def small(answer, rng, device):
    n, size, seed = rng.randrange(20, 40), rng.randrange(3, 6), rng.randrange(2**31)
    batches = begin(answer, n, size, seed)
    found, _ = through_a_file(take(batches, 3)[-1][1], "the stream's state")
    wanted = indices(take(batches, 9))
    got = indices(take(begin(answer, n, size, 0, found), 9))
    expect_equal(got, wanted, name="the list of the batches from a state in a file", hint=ALL)
    lengths = []
    for samples in (10, 100_000):
        _, state = take(begin(answer, samples, 4, seed), 2)[-1]
        lengths.append(through_a_file(state, "the stream's state")[1])
    message = f"the state takes {lengths[0]:,} bytes for 10 samples, {lengths[1]:,} for 100,000"
    expect_true(abs(lengths[1] - lengths[0]) < 1000, message, hint=LARGE)


@check(
    "the stream moves no generator but its own",
    holds=[
        "torch's default generator and Python's random are not moved",
        "seed: int, for a generator of the stream's own",
    ],
)
def quiet(answer, rng, device):
    n, size = rng.randrange(20, 40), rng.randrange(3, 6)
    elsewhere_in_time(rng)
    before, python = torch.get_rng_state(), random.getstate()
    batches = begin(answer, n, size, rng.randrange(2**31))
    _, state = take(batches, 12)[-1]
    take(begin(answer, n, size, 5, state), 12)
    moved = not torch.equal(torch.get_rng_state(), before)
    expect_true(not moved, "torch's default generator has moved", hint=OWN)
    expect_true(random.getstate() == python, "Python's random has moved", hint=OWN)
    wanted = indices(take(begin(answer, n, size, 5, state), 6))
    between_them = begin(answer, n, size, 5, state)
    got = []
    for _ in range(6):
        got.append(next(between_them)[0].tolist())
        torch.rand(3), random.random()
    name = "the list of the batches, while others draw,"
    expect_equal(got, wanted, name=name, hint=OWN)


def read_chance(answer):
    """What random_state returns; reading it moves nothing."""
    before = torch.get_rng_state(), random.getstate()
    state = answer.random_state()
    after = torch.get_rng_state(), random.getstate()
    same = torch.equal(before[0], after[0]) and before[1] == after[1]
    expect_true(same, "random_state has moved a generator", hint="Reading a state draws nothing.")
    return state


def draws(device):
    return [torch.rand(4), torch.rand(4, device=device).cpu(), torch.randperm(9)]


@check(
    "torch's generators go on where they stood",
    holds=[
        "Write the `stream` of its batches, and the pair that saves and restores all other chance.",
        "the CPU's generator, that of each GPU",
        "Put them to where random_state() found them.",
    ],
    both_sides=True,
)
def generators(answer, rng, device):
    elsewhere_in_time(rng)
    torch.rand(rng.randrange(1, 9)), torch.rand(3, device=device)  # no longer at the seed
    torch.randn(1)  # normal numbers come in pairs: the second is part of the state
    state = read_chance(answer)
    wanted = torch.randn(3), draws(device)
    elsewhere_in_time(rng)
    answer.set_random_state(state)
    got = torch.randn(3), draws(device)
    if device.type in ("cpu", "cuda"):
        expect_equal(got, wanted, name="what torch draws next", hint=DICE)


@check("the states of all GPUs are saved and put back", holds="that of each GPU", both_sides=True)
def gpus(answer, rng, device):
    states = [torch.randint(256, (16,), dtype=torch.uint8) for _ in range(2)]
    found = [None, None]

    def number(which="cuda"):
        return which if isinstance(which, int) else torch.device(which).index or 0

    def put(state, which="cuda"):
        found[number(which)] = state.clone()

    def put_all(given):
        for i, state in enumerate(given):
            put(state, i)

    # Two GPUs, here too: this is all that the program can ask for or set.
    with mock.patch.multiple(
        torch.cuda,
        device_count=lambda: 2,
        is_available=lambda: True,
        current_device=lambda: 0,
        get_rng_state=lambda which="cuda": states[number(which)].clone(),
        get_rng_state_all=lambda: [state.clone() for state in states],
        set_rng_state=put,
        set_rng_state_all=put_all,
    ):
        answer.set_random_state(answer.random_state())
    hint = "torch.cuda.get_rng_state_all() is a list with a state for each GPU, empty without one."
    for i, (got, wanted) in enumerate(zip(found, states, strict=True)):
        expect_true(got is not None, f"on a machine with two GPUs, GPU {i} is not set", hint=hint)
        expect_equal(got, wanted, name=f"the state that GPU {i} is set to", hint=hint)


@check("Python's random goes on where it stood", holds="and that of Python's random")
def pythons(answer, rng, device):
    elsewhere_in_time(rng)
    random.random(), random.gauss(0, 1)
    state = read_chance(answer)
    wanted = [random.gauss(0, 1) for _ in range(3)], [random.random() for _ in range(3)]
    elsewhere_in_time(rng)
    answer.set_random_state(state)
    got = [random.gauss(0, 1) for _ in range(3)], [random.random() for _ in range(3)]
    expect_equal(got, wanted, name="what Python's random draws next", hint=PYTHON)


@check(
    "the random state goes through a file, and is read without a trace",
    holds=[
        "a value that torch.save can write and torch.load read with weights_only=True",
        "None of them is moved",
        'what it returned, maybe from a file that was loaded with map_location="cpu"',
        "It can be used again",
    ],
)
def through_file(answer, rng, device):
    elsewhere_in_time(rng)
    state = read_chance(answer)
    found, _ = through_a_file(state, "the random state")
    wanted = draws(device), random.random()
    for time in ("once", "twice"):
        elsewhere_in_time(rng)
        answer.set_random_state(found)
        got = draws(device), random.random()
        if device.type in ("cpu", "cuda"):
            name = f"what is drawn after a state from a file was set {time}"
            expect_equal(got, wanted, name=name, hint=DICE)


@check(
    "a run with dropout and noise has the bits of one that was not interrupted",
    holds="the pair that saves and restores all other chance",
)
def bits(answer, rng, device):
    n, size, seed = rng.randrange(20, 40), rng.randrange(3, 6), rng.randrange(2**31)
    x = torch.randn(n, 3).to(device)
    drop = 0.4 if device.type in ("cpu", "cuda") else 0.0

    def build():
        return nn.Sequential(nn.Linear(3, 6), nn.Dropout(drop), nn.Linear(6, 1)).to(device)

    def train(model, batches, steps):
        for _ in range(steps):
            i, state = next(batches)
            noise = torch.randn(len(i), 1).to(device) + random.random()
            loss = F.mse_loss(model(x[i.to(device)]), noise)
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
        return state

    model, batches = build(), begin(answer, n, size, seed)
    place, chance = train(model, batches, 7), answer.random_state()
    weights = {name: t.clone() for name, t in model.state_dict().items()}
    train(model, batches, 7)
    other = build()
    other.load_state_dict(weights)
    elsewhere_in_time(rng)
    batches = begin(answer, n, size, 0, place)
    answer.set_random_state(chance)
    train(other, batches, 7)
    hint = "Orders, dropout, noise: one of them was not where it was."
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        expect_equal(q.detach(), p.detach(), name=f"{name} after 14 steps", hint=hint)


@mutant("seeds a generator for each epoch", caught_by=one_generator)
def stream(n, size, seed, state=None):
    seed, epoch, done = state or (seed, 0, 0)
    while True:
        g = torch.Generator().manual_seed(seed + epoch)
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], (seed, epoch, k + size)
        epoch, done = epoch + 1, 0


@mutant("reads the generator after the order was drawn", caught_by=middle)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["start"])
        done = state["done"]
    while True:
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], {"start": g.get_state(), "done": k + size}
        done = 0


@mutant("keeps no position in the epoch", caught_by=middle)
def stream(n, size, seed, state=None):
    g = torch.Generator().manual_seed(seed)
    if state is not None:
        g.set_state(state["start"])
    while True:
        start = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(0, n, size):
            yield order[k : k + size], {"start": start}


@mutant("counts the batch that is being handed out as to come", caught_by=middle)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["start"])
        done = state["done"]
    while True:
        start = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], {"start": start, "done": k}
        done = 0


@mutant("ends when the epoch it was resumed in is over", caught_by=epochs)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["start"])
        done = state["done"]
    start = g.get_state()
    order = torch.randperm(n, generator=g)
    for k in range(done, n, size):
        yield order[k : k + size], {"start": start, "done": k + size}


@mutant("skips in each epoch what was done in the first", caught_by=middle)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["start"])
        done = state["done"]
    while True:
        start = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], {"start": start, "done": k + size}


@mutant("yields the epoch and the batch, and takes the new stream's seed", caught_by=other_seed)
def stream(n, size, seed, state=None):
    epoch, done = (0, 0) if state is None else (state["epoch"], state["done"])
    while True:
        g = torch.Generator().manual_seed(seed)
        for _ in range(epoch + 1):
            order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], {"epoch": epoch, "done": k + size}
        epoch, done = epoch + 1, 0


@mutant("draws one order for all epochs", caught_by=epochs)
def stream(n, size, seed, state=None):
    seed, done = (seed, 0) if state is None else (state["seed"], state["done"])
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    while True:
        for k in range(done, n, size):
            yield order[k : k + size], {"seed": seed, "done": k + size}
        done = 0


@mutant("drops a short last batch", caught_by=epochs)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["start"])
        done = state["done"]
    while True:
        start = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(done, n - size + 1 if n >= size else n, size):
            yield order[k : k + size], {"start": start, "done": k + size}
        done = 0


@mutant("keeps the order that is left", caught_by=small)
def stream(n, size, seed, state=None):
    g = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=g)
    if state is not None:
        g.set_state(state["generator"])
        order = state["left"]
    while True:
        while len(order):
            batch, order = order[:size], order[size:]
            yield batch, {"generator": g.get_state(), "left": order.clone()}
        order = torch.randperm(n, generator=g)


@mutant("writes every position into one dict", caught_by=stays)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["start"])
        done = state["done"]
    place = {}
    while True:
        place["start"] = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            place["done"] = k + size
            yield order[k : k + size], place
        done = 0


@mutant("writes into the state that it was given", caught_by=stays)
def stream(n, size, seed, state=None):
    g = torch.Generator().manual_seed(seed)
    state = {"start": g.get_state(), "done": 0} if state is None else state
    g.set_state(state["start"])
    while True:
        state["start"] = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(state["done"], n, size):
            state["done"] = k + size
            yield order[k : k + size], dict(state)
        state["done"] = 0


@mutant("draws from the default generator", caught_by=quiet)
def stream(n, size, seed, state=None):
    if state is None:
        torch.manual_seed(seed)
    else:
        torch.set_rng_state(state["start"])
    done = 0 if state is None else state["done"]
    while True:
        start = torch.get_rng_state()
        order = torch.randperm(n)
        for k in range(done, n, size):
            yield order[k : k + size], {"start": start, "done": k + size}
        done = 0


@mutant("shuffles with Python's random", caught_by=quiet)
def stream(n, size, seed, state=None):
    seed, epoch, done = state or (seed, 0, 0)
    while True:
        random.seed(f"{seed} {epoch}")
        order = torch.tensor(random.sample(range(n), n))
        for k in range(done, n, size):
            yield order[k : k + size], (seed, epoch, k + size)
        epoch, done = epoch + 1, 0


@mutant("saves the generator itself", caught_by=small)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(bytes_of(state["start"]))
        done = state["done"]
    while True:
        start = g.get_state().numpy()
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], {"start": start, "done": k + size}
        done = 0


def bytes_of(array):
    return torch.tensor(array)


@mutant("saves the seed of the generator, not its state", caught_by=generators)
def random_state():
    begin = torch.Generator().manual_seed(torch.initial_seed())
    gpus = torch.cuda.get_rng_state_all()
    return {"cpu": begin.get_state(), "gpus": gpus, "python": random.getstate()}


@mutant("draws a seed for later", caught_by=generators)
def random_state():
    seed = torch.randint(2**31, ()).item()
    begin = torch.Generator().manual_seed(seed)
    gpus = torch.cuda.get_rng_state_all()
    return {"cpu": begin.get_state(), "gpus": gpus, "python": random.getstate()}


@mutant("draws a number to see where it is", caught_by=generators)
def random_state():
    torch.rand(1)
    return {
        "cpu": torch.get_rng_state(),
        "gpus": torch.cuda.get_rng_state_all(),
        "python": random.getstate(),
    }


@mutant("forgets the GPUs", caught_by=gpus)
def random_state():
    return {"cpu": torch.get_rng_state(), "gpus": [], "python": random.getstate()}


@mutant("forgets Python's random", caught_by=pythons)
def set_random_state(state):
    torch.set_rng_state(state["cpu"])
    torch.cuda.set_rng_state_all(state["gpus"])


@mutant("forgets torch", caught_by=generators)
def set_random_state(state):
    random.setstate(state["python"])


@mutant("seeds Python's random from its state", caught_by=pythons)
def set_random_state(state):
    torch.set_rng_state(state["cpu"])
    torch.cuda.set_rng_state_all(state["gpus"])
    random.seed(str(state["python"]))


@mutant("takes the states out of the dict", caught_by=through_file)
def set_random_state(state):
    torch.set_rng_state(state.pop("cpu"))
    torch.cuda.set_rng_state_all(state.pop("gpus"))
    random.setstate(state.pop("python"))


@mutant("saves Python's generator as an object", caught_by=through_file)
def random_state():
    python = random.Random()
    python.setstate(random.getstate())
    return {
        "cpu": torch.get_rng_state(),
        "gpus": torch.cuda.get_rng_state_all(),
        "python": random.getstate(),
        "object": python,
    }


@hinted(1, reaches=quiet)
def stream(n, size, seed, state=None):
    g, done = torch.Generator().manual_seed(seed), 0
    if state is not None:
        g.set_state(state["generator"])
        done = state["done"]
    while True:
        before = g.get_state()
        order = torch.randperm(n, generator=g)
        for k in range(done, n, size):
            yield order[k : k + size], {"generator": before, "done": k + size}
        done = 0


@accepted("orders as a function of seed and epoch")
def stream(n, size, seed, state=None):
    seed, epoch, done = (seed, 0, 0) if state is None else state
    for now in itertools.count(epoch):
        g = torch.Generator().manual_seed(seed)
        for _ in range(now + 1):
            order = torch.randperm(n, generator=g)
        for k, batch in enumerate(order.split(size)):
            if now > epoch or k >= done:
                yield batch, (seed, now, k + 1)


@accepted("a class, which counts batches since the beginning")
class stream:
    def __init__(self, n, size, seed, state=None):
        self.n, self.size = n, size
        self.seed, self.steps = state or (seed, 0)
        self.g, self.left = torch.Generator().manual_seed(self.seed), []
        for _ in range(self.steps):
            self.draw()

    def draw(self):
        self.left = self.left or list(torch.randperm(self.n, generator=self.g).split(self.size))
        return self.left.pop(0)

    def __iter__(self):
        return self

    def __next__(self):
        batch, self.steps = self.draw(), self.steps + 1
        return batch, (self.seed, self.steps)


@accepted("asks the generators themselves, GPU by GPU")
def random_state():
    gpus = [torch.cuda.get_rng_state(i) for i in range(torch.cuda.device_count())]
    version, numbers, pair = random.getstate()
    state = torch.default_generator.get_state()
    return {"cpu": state, "gpus": gpus, "python": (version, numbers, pair)}


@accepted("Python's first, and GPU by GPU")
def set_random_state(state):
    random.setstate(state["python"])
    torch.random.set_rng_state(state["cpu"].clone())
    for i, gpu in enumerate(state["gpus"]):
        torch.cuda.set_rng_state(gpu, i)
