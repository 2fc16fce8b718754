"""Judges lessons/03_maths/08_reproducibility.md."""

import builtins
import contextlib
import os
import random
from unittest import mock

import numpy as np
import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Somebody's code draws from the default streams",
    "You cannot give it a generator.",
    "torch.accelerator.device_count() is the number of GPUs",
    "torch.accelerator.current_accelerator().type is their kind",
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


@check(
    "what fn returns comes back, after one call",
    holds=[
        "Write isolated.",
        "It runs fn once",
        "returns: what fn returns",
        "fn: a function without arguments",
    ],
)
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


@check(
    "one seed, one result: in all three libraries",
    holds=[
        "with all three streams seeded",
        "what random, NumPy's global generator and torch's default generators draw depends on seed "
        "alone",
    ],
)
def repeats(answer, rng, device):
    seed = seeds_of(rng)
    fn = drawer(device)
    first = answer.isolated(fn, seed)
    torch.manual_seed(rng.randrange(2**31))
    drawer(device)()
    second = answer.isolated(fn, seed)
    for name in STREAMS:
        expect_true(
            isinstance(first, dict) and isinstance(second, dict) and first[name] == second[name],
            f"two calls with the seed {seed} draw different numbers from {name}",
            hint="Each library has a stream of its own, and each needs the seed.",
        )


@check(
    "another seed gives other numbers, in all three libraries",
    holds="generators draw depends on seed alone",
)
def seeds_differ(answer, rng, device):
    seed = seeds_of(rng)
    first, second = (answer.isolated(drawer(device), s) for s in (seed, seed - 1))
    for name in STREAMS:
        expect_true(
            isinstance(first, dict) and isinstance(second, dict) and first[name] != second[name],
            f"the seeds {seed} and {seed - 1} draw the same numbers from {name}",
            hint="The caller chooses the seed.",
        )


@check("seeds of 0 and 2**32 - 1 work", holds="seed: an int, from 0 to 2**32 - 1")
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


@check(
    "the caller's streams stand where they stood",
    holds=[
        "Afterwards each of them stands where it stood before, whether fn returned or raised.",
    ],
    side="returned",
)
def untouched(answer, rng, device):
    seed = seeds_of(rng)
    leaves_alone(
        lambda: answer.isolated(drawer(device), seed),
        device,
        hint="Keep the state before you seed, and put the same state back at the end. Each "
        "library keeps its own.",
    )


@check("a stream goes on, it does not begin again", holds="stands where it stood before")
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


@check("half of a pair of normal numbers survives", holds="stands where it stood before")
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


@check(
    "also when fn raises",
    holds=[
        "Afterwards each of them stands where it stood before, whether fn returned or raised.",
        "Ctrl+C is an exception as well.",
        "what fn raises is raised",
    ],
    side="raised",
)
def on_exception(answer, rng, device):
    seed = seeds_of(rng)
    for kind in (KeyError, ValueError, Stopped):
        raised, calls = [], []

        def fn(kind=kind, calls=calls):
            calls.append(1)
            drawer(device)()
            raise kind("from fn")

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
        expect_true(
            len(calls) == 1,
            f"fn raised {kind.__name__}, and isolated called it {len(calls)} times",
            hint="One call is one try. Whether to try again is up to the caller.",
        )


@contextlib.contextmanager
def two_gpus():
    """As if there were two GPUs of the kind cuda, as far as their random states go.

    Gives the generators that stand for theirs.
    """
    generators = torch.Generator(), torch.Generator()

    def index(place):
        number = place if isinstance(place, int) else torch.device(place).index
        return number or 0

    def seed_all(seed):
        for generator in generators:
            generator.manual_seed(seed)

    def set_all(states):
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)

    stand_ins = {
        "is_available": lambda: True,
        "device_count": lambda: len(generators),
        "default_generators": generators,
        "get_rng_state": lambda device="cuda": generators[index(device)].get_state(),
        "get_rng_state_all": lambda: [generator.get_state() for generator in generators],
        "set_rng_state": lambda state, device="cuda": generators[index(device)].set_state(state),
        "set_rng_state_all": set_all,
        "manual_seed": lambda seed: generators[0].manual_seed(seed),
        "manual_seed_all": seed_all,
    }
    with contextlib.ExitStack() as stack:
        for name, value in stand_ins.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        for name, value in (
            ("is_available", lambda: True),
            ("device_count", lambda: len(generators)),
            ("current_accelerator", lambda *args, **kwargs: torch.device("cuda")),
        ):
            stack.enter_context(mock.patch.object(torch.accelerator, name, value))
        yield generators


@check(
    "the generators of the GPUs go back too",
    holds="`torch.manual_seed` also seeds the GPUs, so their generators go back too.",
)
def gpus_go_back(answer, rng, device):
    if torch.accelerator.is_available():
        return  # the other checks draw from a real one
    seed = seeds_of(rng)
    with two_gpus() as generators:
        for generator in generators:
            generator.manual_seed(rng.randrange(2**32))
            torch.rand(rng.randrange(1, 5), generator=generator)
        before = [generator.get_state() for generator in generators]
        answer.isolated(drawer(device), seed)
        for number, (generator, state) in enumerate(zip(generators, before, strict=True)):
            expect_true(
                torch.equal(generator.get_state(), state),
                f"after the call, the generator of GPU {number} of 2 is not where it was before",
                hint="torch.manual_seed seeds the GPUs as well. fork_rng keeps the generators of "
                "all that it is told: devices=range(torch.accelerator.device_count()). (This "
                "check pretends that there are two.)",
            )


@check("isolated calls can be nested", holds="fn may call isolated itself.")
def nested(answer, rng, device):
    outer, inner = seeds_of(rng), rng.randrange(2**32)

    def broken():
        drawer(device)()
        raise KeyError("from the inner fn")

    def fn(deep):
        before = drawer(device)()
        if deep:
            answer.isolated(drawer(device), inner)
            with contextlib.suppress(KeyError):
                answer.isolated(broken, inner)
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


HASH = hash


def salted(value):
    """hash(value) as another process could have it: strings have another one in each."""
    own = HASH(value)
    return own ^ 0x5DEECE66D if "'" in repr(value) or '"' in repr(value) else own


@check("another process draws the same", holds="in another process too")
def other_process(answer, rng, device):
    seed = seeds_of(rng)
    here = answer.isolated(drawer(device), seed)
    with (
        mock.patch.object(builtins, "hash", salted),
        mock.patch.object(builtins, "id", return_value=12345),
        mock.patch.object(os, "getpid", return_value=999_999),
    ):
        there = answer.isolated(drawer(device), seed)
    for name in STREAMS:
        expect_true(
            here[name] == there[name],
            f"another process draws other numbers from {name}",
            hint="hash() of a string, id() and the number of the process differ between processes.",
        )


SEEDED_BY_ENVIRONMENT = ("PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "CUDNN_DETERMINISTIC")
"""Variables that code for reproducible runs likes to set."""


def switches_now():
    return {
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "filling of uninitialized memory": torch.utils.deterministic.fill_uninitialized_memory,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "the number of threads": torch.get_num_threads(),
        "the default dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "the environment": dict(os.environ),
    }


def put_switches(kept):
    torch.use_deterministic_algorithms(
        kept["deterministic algorithms"], warn_only=kept["warn_only"]
    )
    torch.utils.deterministic.fill_uninitialized_memory = kept["filling of uninitialized memory"]
    torch.backends.cudnn.benchmark = kept["cudnn.benchmark"]
    torch.backends.cudnn.deterministic = kept["cudnn.deterministic"]
    torch.set_num_threads(kept["the number of threads"])
    torch.set_default_dtype(kept["the default dtype"])
    torch.set_grad_enabled(kept["gradients"])
    for name in set(os.environ) - set(kept["the environment"]):
        del os.environ[name]
    os.environ.update(kept["the environment"])


@check(
    "no other switch is moved",
    holds="No switch of torch is moved, and no environment variable.",
)
def switches(answer, rng, device):
    kept, seed = switches_now(), seeds_of(rng)
    for on in (True, False):
        # An earlier call may have moved a switch: each is tried from both sides.
        torch.use_deterministic_algorithms(on, warn_only=True)
        torch.backends.cudnn.benchmark = not on
        torch.backends.cudnn.deterministic = on
        for name in SEEDED_BY_ENVIRONMENT:
            os.environ.pop(name, None)
        before, seen = switches_now(), {}
        try:
            answer.isolated(lambda seen=seen: seen.update(switches_now()), seed)
            after = switches_now()
        finally:
            put_switches(kept)
        for name, value in before.items():
            for when, now in (("during", seen), ("after", after)):
                env = name == "the environment"
                what = "" if env else f": {value} before, {now.get(name)} then"
                expect_true(
                    now.get(name) == value,
                    f"{name} is not the same {when} the call{what}",
                    hint="The task is about streams. A switch for the whole program is the "
                    "caller's.",
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
    'with torch.random.fork_rng(devices=gpus, device_type=kind.type if kind else "cuda"):',
    'with torch.random.fork_rng(device_type=kind.type if kind else "cuda"):',
    because="without devices it keeps the generators of all GPUs too, and only warns where there "
    "are several; on a CPU there is none",
)
equivalent(
    'with torch.random.fork_rng(devices=gpus, device_type=kind.type if kind else "cuda"):',
    "with torch.random.fork_rng(devices=gpus):",
    because="torch 2.13 asks for the kind of GPU itself; on a CPU there is none",
)
equivalent(
    "kind = torch.accelerator.current_accelerator() if gpus else None",
    "kind = torch.accelerator.current_accelerator() if not gpus else None",
    because="on a CPU there is no GPU, and both are None",
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


@mutant("keeps torch's state on the CPU alone", caught_by=gpus_go_back)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(seed)
        return fn()
    finally:
        put_back(kept)


@mutant("keeps the state of the first GPU alone", caught_by=gpus_go_back)
def isolated(fn, seed):
    kept = states()
    with torch.random.fork_rng(devices=range(min(1, torch.accelerator.device_count()))):
        try:
            seed_all(seed)
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


@mutant("makes cuDNN deterministic for good", caught_by=switches)
def isolated(fn, seed):
    kept = states()
    try:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        seed_all(seed)
        return fn()
    finally:
        put_back(kept)


@mutant("sets PYTHONHASHSEED", caught_by=switches)
def isolated(fn, seed):
    kept = states()
    try:
        os.environ["PYTHONHASHSEED"] = str(seed)
        seed_all(seed)
        return fn()
    finally:
        put_back(kept)


@mutant("switches deterministic algorithms on for the call", caught_by=switches)
def isolated(fn, seed):
    kept = states()
    before = torch.are_deterministic_algorithms_enabled()
    try:
        torch.use_deterministic_algorithms(True)
        seed_all(seed)
        return fn()
    finally:
        torch.use_deterministic_algorithms(before)
        put_back(kept)


@mutant("seeds from the hash of a string", caught_by=other_process)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(hash(f"isolated {seed}") % 2**32)
        return fn()
    finally:
        put_back(kept)


@mutant("mixes torch's old seed in", caught_by=repeats)
def isolated(fn, seed):
    kept = states()
    try:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed ^ torch.initial_seed())
        return fn()
    finally:
        put_back(kept)


@mutant("puts back torch and Python, and seeds NumPy from the clock again", caught_by=untouched)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(seed)
        return fn()
    finally:
        put_back(kept)
        np.random.seed()


@mutant("calls fn once more after an exception", caught_by=on_exception)
def isolated(fn, seed):
    kept = states()
    try:
        seed_all(seed)
        return fn()
    except Exception:
        return fn()
    finally:
        put_back(kept)


@hinted(1, reaches=half_a_pair)
def isolated(fn, seed):
    python, numpy, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    result = fn()
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(torch_state)
    return result


def gpu_states():
    return torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


@accepted("asks SeedSequence for three seeds")
def isolated(fn, seed):
    python, numpy = random.getstate(), np.random.get_state(legacy=False)
    seeds = np.random.SeedSequence(seed).generate_state(3).tolist()
    try:
        with torch.random.fork_rng():
            for seeder, own in zip(
                (random.seed, np.random.seed, torch.manual_seed), seeds, strict=True
            ):
                seeder(own)
            return fn()
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@accepted("is a context manager and a call")
def isolated(fn, seed):
    @contextlib.contextmanager
    def fence():
        kept, gpus = states(), gpu_states()
        seed_all(seed)
        try:
            yield
        finally:
            put_back(kept)
            if gpus:
                torch.cuda.set_rng_state_all(gpus)

    with fence():
        return fn()


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
