"""Judges lessons/03_maths/08_reproducibility.md."""

import contextlib
import random

import numpy as np
import torch

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_equal,
    expect_true,
    fail,
    mutant,
)

STREAMS = {
    "Python's random": lambda device: random.random(),
    "NumPy's global generator": lambda device: np.random.rand(),
    "torch's default generator": lambda device: torch.rand(2).tolist(),
    "the device's default generator": lambda device: torch.rand(2, device=device).tolist(),
}
"""A draw from each of the streams."""


class Stopped(BaseException):
    """As Ctrl+C: no Exception."""


def drawer(device):
    """A function that draws from every stream."""
    return lambda: {name: draw(device) for name, draw in STREAMS.items()}


def seeds_of(rng):
    """A seed, and how far everyone else has drawn from each stream."""
    random.seed(rng.randrange(2**32))
    np.random.seed(rng.randrange(2**32))
    return rng.randrange(1, 2**32)


def leaves_alone(call, device, hint):
    """`call` moves no stream: what follows is what would have followed without it."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def back():
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if gpu is not None:
            torch.cuda.set_rng_state(gpu, device)

    expected = drawer(device)()
    back()
    try:
        call()
        got = drawer(device)()
    finally:
        back()
    for name, value in expected.items():
        expect_true(
            got[name] == value,
            f"after the call, {name} is not where it was before",
            hint=hint,
        )


@check("what fn returns comes back, after one call")
def returns(answer, rng, device):
    calls = []
    wanted = torch.randn(3, device=device)

    def fn():
        calls.append(1)
        return wanted

    seed = seeds_of(rng)
    got = answer.isolated(fn, seed)
    expect_true(got is wanted, "isolated does not return what fn returned", hint="`return fn()`.")
    expect_true(len(calls) == 1, f"fn was called {len(calls)} times, once is wanted")
    expect_true(
        answer.isolated(lambda: "another", seed) == "another",
        "another fn, with the seed of the call before, does not get its own result",
        hint="Same numbers drawn does not mean same result. Run fn each time.",
    )


@check("one seed, one result: in all three libraries")
def repeats(answer, rng, device):
    seed = seeds_of(rng)
    fn = drawer(device)
    first = answer.isolated(fn, seed)
    drawer(device)()
    second = answer.isolated(fn, seed)
    for name in STREAMS:
        expect_true(
            isinstance(first, dict) and isinstance(second, dict) and first[name] == second[name],
            f"two calls with the seed {seed} draw different numbers from {name}",
            hint="Each library has a stream of its own, and each needs the seed.",
        )


@check("another seed gives other numbers, in all three libraries")
def seeds_differ(answer, rng, device):
    seed = seeds_of(rng)
    first, second = (answer.isolated(drawer(device), s) for s in (seed, seed - 1))
    for name in STREAMS:
        expect_true(
            isinstance(first, dict) and isinstance(second, dict) and first[name] != second[name],
            f"the seeds {seed} and {seed - 1} draw the same numbers from {name}",
            hint="The caller chooses the seed.",
        )


@check("seeds of 0 and 2**32 - 1 work")
def extreme_seeds(answer, rng, device):
    for seed in (0, 2**32 - 1):
        seeds_of(rng)
        first = answer.isolated(drawer(device), seed)
        drawer(device)()
        expect_equal(
            answer.isolated(drawer(device), seed),
            first,
            name=f"the numbers drawn with the seed {seed}, a second time,",
            hint="0 is a seed like any other, though an `if` takes it for False.",
        )


@check("the caller's streams stand where they stood")
def untouched(answer, rng, device):
    seed = seeds_of(rng)
    leaves_alone(
        lambda: answer.isolated(drawer(device), seed),
        device,
        hint="Keep the state before you seed, and put the same state back at the end. Each "
        "library keeps its own.",
    )


@check("a stream goes on, it does not begin again")
def goes_on(answer, rng, device):
    torch.manual_seed(rng.randrange(2**31))
    seed = seeds_of(rng)
    for _ in range(rng.randrange(2, 6)):
        drawer(device)()
    leaves_alone(
        lambda: answer.isolated(drawer(device), seed),
        device,
        hint="The seed of a stream says where it began. Where it stands now is in its state.",
    )


@check("half of a pair of normal numbers survives")
def half_a_pair(answer, rng, device):
    seed = seeds_of(rng)
    random.gauss(0, 1), np.random.randn(), torch.randn(1)
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
    wanted = random.gauss(0, 1), np.random.randn(), torch.randn(1).item()
    random.setstate(kept[0])
    np.random.set_state(kept[1])
    torch.set_rng_state(kept[2])

    answer.isolated(lambda: (random.gauss(0, 1), np.random.randn(), torch.randn(1)), seed)
    got = random.gauss(0, 1), np.random.randn(), torch.randn(1).item()
    for name, a, b in zip(STREAMS, got, wanted, strict=False):
        expect_true(
            a == b,
            f"the next normal number from {name} is another one after the call",
            hint="Normal numbers are made in pairs, and the second waits in the state. Put the "
            "whole state back, as you got it.",
        )


@check("also when fn raises")
def on_exception(answer, rng, device):
    seed = seeds_of(rng)
    for kind in (KeyError, ValueError, Stopped):

        def fn(kind=kind):
            drawer(device)()
            raise kind("from fn")

        raised = []

        def call(fn=fn, kind=kind, raised=raised):
            try:
                answer.isolated(fn, seed)
            except kind as error:
                raised.append(error)
            except Exception as error:
                other = type(error).__name__
                fail(
                    f"fn raised {kind.__name__}, and isolated raised {other} in its place",
                    hint="Let the exception pass as it is: no `except` is needed, only `finally`.",
                )

        leaves_alone(
            call,
            device,
            hint="An exception leaves the function at once. `finally` is run whatever happens, "
            "Ctrl+C included.",
        )
        expect_true(
            len(raised) == 1,
            f"fn raised {kind.__name__}, and isolated did not pass it on",
            hint="The caller must learn that fn failed.",
        )


@check("isolated calls can be nested")
def nested(answer, rng, device):
    outer, inner = seeds_of(rng), rng.randrange(2**32)

    def fn(deep):
        before = drawer(device)()
        if deep:
            answer.isolated(drawer(device), inner)
        return before, drawer(device)()

    hint = "To the inner call, the outer fn is the caller. Each call must keep its own states."
    plain = answer.isolated(lambda: fn(False), outer)
    expect_equal(
        answer.isolated(lambda: fn(True), outer),
        plain,
        name="what the outer fn draws, with an inner call in between,",
        hint=hint,
    )
    outer = seeds_of(rng)
    leaves_alone(lambda: answer.isolated(lambda: fn(True), outer), device, hint=hint)


@check("no other switch is moved")
def switches(answer, rng, device):
    def look():
        return {
            "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
            "cudnn.benchmark": torch.backends.cudnn.benchmark,
            "cudnn.deterministic": torch.backends.cudnn.deterministic,
            "the number of threads": torch.get_num_threads(),
            "the default dtype": torch.get_default_dtype(),
        }

    before = look()
    answer.isolated(lambda: None, seeds_of(rng))
    after = look()
    if after != before:
        torch.use_deterministic_algorithms(before["deterministic algorithms"])
        torch.backends.cudnn.benchmark = before["cudnn.benchmark"]
        torch.backends.cudnn.deterministic = before["cudnn.deterministic"]
        torch.set_num_threads(before["the number of threads"])
    for name, value in before.items():
        expect_true(
            after[name] == value,
            f"{name}: {value} before the call, {after[name]} after it",
            hint="The task is about streams. A switch for the whole program is the caller's.",
        )


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def states():
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def put_back(kept):
    random.setstate(kept[0])
    np.random.set_state(kept[1])
    torch.set_rng_state(kept[2])


equivalent(
    "with torch.random.fork_rng(devices=gpus):",
    "with torch.random.fork_rng():",
    because="without devices it keeps the generators of all GPUs too, and only warns where there "
    "are several; on a CPU there is none",
)


@mutant("seeds torch only", caught_by=repeats)
def isolated(fn, seed):
    kept = states()
    try:
        torch.manual_seed(seed)
        return fn()
    finally:
        put_back(kept)


@mutant("forks torch and trusts that this covers all", caught_by=untouched)
def isolated(fn, seed):
    with torch.random.fork_rng(devices=[]):
        seed_all(seed)
        return fn()


@mutant("seeds and leaves it at that", caught_by=untouched)
def isolated(fn, seed):
    seed_all(seed)
    return fn()


@mutant("keeps the states after seeding", caught_by=untouched)
def isolated(fn, seed):
    seed_all(seed)
    kept = states()
    try:
        return fn()
    finally:
        put_back(kept)


@mutant("forgets torch's state", caught_by=untouched)
def isolated(fn, seed):
    python, numpy = random.getstate(), np.random.get_state()
    try:
        seed_all(seed)
        return fn()
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@mutant("puts the old seed back", caught_by=goes_on)
def isolated(fn, seed):
    python, numpy, old = random.getstate(), np.random.get_state(), torch.initial_seed()
    try:
        seed_all(seed)
        return fn()
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.manual_seed(old)


@mutant("puts NumPy's words back without its waiting number", caught_by=half_a_pair)
def isolated(fn, seed):
    kept = states()
    name, words, place, *_ = kept[1]
    try:
        seed_all(seed)
        return fn()
    finally:
        put_back((kept[0], (name, words, place), kept[2]))


@mutant("puts the states back after a success only", caught_by=on_exception)
def isolated(fn, seed):
    kept = states()
    seed_all(seed)
    result = fn()
    put_back(kept)
    return result


@mutant("catches Exception, so Ctrl+C gets through", caught_by=on_exception)
def isolated(fn, seed):
    kept = states()
    seed_all(seed)
    try:
        result = fn()
    except Exception:
        put_back(kept)
        raise
    put_back(kept)
    return result


@mutant("swallows the exception", caught_by=on_exception)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(seed)
        return fn()
    except BaseException:
        return None
    finally:
        put_back(kept)


@mutant("remembers the result of a seed", caught_by=returns)
def isolated(fn, seed, results={}):  # noqa: B006
    kept = states()
    try:
        seed_all(seed)
        return results[seed] if seed in results else results.setdefault(seed, fn())
    finally:
        put_back(kept)


@mutant("raises an exception of its own", caught_by=on_exception)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(seed)
        return fn()
    except Exception as error:
        raise RuntimeError("fn failed") from error
    finally:
        put_back(kept)


@mutant("keeps the states in one place for all calls", caught_by=nested)
def isolated(fn, seed, kept=[]):  # noqa: B006
    kept[:] = states()
    try:
        seed_all(seed)
        return fn()
    finally:
        put_back(kept)


@mutant("takes the seed 0 for no seed", caught_by=extreme_seeds)
def isolated(fn, seed):
    kept = states()
    try:
        if seed:
            seed_all(seed)
        return fn()
    finally:
        put_back(kept)


@mutant("always uses its favourite seed", caught_by=seeds_differ)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(42)
        return fn()
    finally:
        put_back(kept)


@mutant("returns nothing", caught_by=returns)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(seed)
        fn()
    finally:
        put_back(kept)


@mutant("switches deterministic algorithms on for good", caught_by=switches)
def isolated(fn, seed):
    kept = states()
    try:
        torch.use_deterministic_algorithms(True)
        seed_all(seed)
        return fn()
    finally:
        put_back(kept)


def gpu_states():
    return torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


@accepted("keeps every state by hand")
def isolated(fn, seed):
    kept, gpus = states(), gpu_states()
    seed_all(seed)
    try:
        return fn()
    finally:
        put_back(kept)
        if gpus:
            torch.cuda.set_rng_state_all(gpus)


@accepted("puts three fences on one stack")
def isolated(fn, seed):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng())
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        for seeder in (random.seed, np.random.seed, torch.manual_seed):
            seeder(seed)
        return fn()


@accepted("gives each library a seed of its own")
def isolated(fn, seed):
    kept, gpus = states(), gpu_states()
    try:
        own = random.Random(seed)
        random.seed(own.random())
        np.random.seed(own.randrange(2**32))
        torch.manual_seed(own.randrange(2**63))
        return fn()
    finally:
        put_back(kept)
        if gpus:
            torch.cuda.set_rng_state_all(gpus)
