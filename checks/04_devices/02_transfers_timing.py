"""Judges lessons/04_devices/02_transfers_timing.md."""

import itertools
import math
import statistics
import time

import torch

from tensortutor.checking import accepted, background, check, expect_true, hinted, mutant

background(
    "Write `bench`, once and properly.",
    "It is told how to wait and where to read the time",
    "`time.perf_counter` is the clock of a real run.",
)


class Device:
    """An asynchronous device in a time of its own: nothing here takes real time."""

    def __init__(self, works, launch=0.001, left=0.0):
        """works: seconds of each call of fn in turn, the last one for all others.

        launch: seconds that a call takes on the host. left: work in the queue already.
        """
        self.works, self.launch = list(works), launch
        self.time, self.done, self.calls = 100.0, 100.0 + left, 0

    def fn(self):
        work = self.works[min(self.calls, len(self.works) - 1)]
        self.calls += 1
        self.time += self.launch
        self.done = max(self.done, self.time) + work

    def sync(self):
        self.time = max(self.time, self.done)

    def clock(self):
        return self.time


DIGITS = (
    "Nearly right: digits were lost on the way. A float32 tensor keeps seven of them, and most are "
    "gone when two times of 100 s are subtracted. Subtract Python floats, or use float64."
)
CLOCK = (
    "By this clock no call is so short. `clock` says where the time is read, and it need not be "
    "time.perf_counter: a test brings a clock of its own."
)
LAUNCH = (
    "You have measured the launch: fn returned, and the device was still at work. The clock may "
    "stop when nothing is left to do."
)


def compare(answer, device, wanted, hint, **counts):
    """bench on this device gives the wanted number of seconds. hint: where it is not the launch."""
    got = answer.bench(device.fn, device.sync, device.clock, **counts)
    expect_true(
        isinstance(got, float),
        f"bench returned {type(got).__name__}, a float is wanted",
        hint="One number of seconds, as Python's float.",
    )
    said = ", ".join(f"{key}={value}" for key, value in counts.items())
    launch = math.isclose(got, device.launch, rel_tol=1e-6)
    digits = 6
    if math.isclose(got, wanted, rel_tol=1e-3):
        hint, digits = DIGITS, 12
    if math.isclose(got, wanted * 1e3, rel_tol=1e-3) or math.isclose(got, wanted * 1e6):
        hint = "The result is in seconds, as the clock is."
    elif 0 < got < device.launch / 10:
        hint = CLOCK
    expect_true(
        math.isclose(got, wanted, rel_tol=1e-9),
        f"with {said}, bench says {got:.{digits}g} s where {wanted:.{digits}g} s are right",
        hint=LAUNCH if launch else hint,
    )


@check(
    "the device's work is part of the time",
    holds=[
        "Seconds that one call of fn takes, until its work is done.",
        "starts work that may still go on afterwards",
        "returns when the device has nothing left to do",
        "returns the time, in seconds",
    ],
)
def waits(answer, rng, device):
    work = rng.uniform(0.1, 0.9)
    hint = "Each sample is one call: its launch, and its work on the device. What was called "
    hint += "before is done when the sample's clock starts."
    compare(answer, Device([work]), work + 0.001, hint, warmup=2, iters=1)
    compare(answer, Device([work]), work + 0.001, hint, warmup=2, iters=5)


@check("the host's work is part of it, too", holds="Seconds that one call of fn takes")
def host(answer, rng, device):
    launch = rng.uniform(0.1, 0.9)
    compare(
        answer,
        Device([0.01], launch),
        launch + 0.01,
        "fn itself may take long. The clock starts before it is called.",
        warmup=1,
        iters=3,
    )


@check(
    "work from before is not in it",
    holds="The device may have work left in its queue when bench begins.",
)
def starts_empty(answer, rng, device):
    work = rng.uniform(0.1, 0.9)
    hint = (
        "Work from before leaked into the sample: the device had not finished it when the "
        "clock started. Start on an empty queue."
    )
    compare(answer, Device([work]), work + 0.001, hint, warmup=3, iters=1)
    compare(answer, Device([work], left=5.0), work + 0.001, hint, warmup=0, iters=1)
    compare(answer, Device([work], left=5.0), work + 0.001, hint, warmup=1, iters=2)


@check(
    "the first calls are not representative",
    holds="calls that do not count, 0 or more",
    both_sides=True,
)
def warms_up(answer, rng, device):
    work = rng.uniform(0.1, 0.5)
    hint = "The first `warmup` calls do not count, slow or fast. All others do."
    compare(answer, Device([9.0, 4.0, work]), work + 0.001, hint, warmup=2, iters=1)
    compare(answer, Device([0.0, 0.0, 0.0, work]), work + 0.001, hint, warmup=3, iters=2)
    compare(answer, Device([work, 9.0]), work + 0.001, hint, warmup=0, iters=1)


@check("fn is called warmup + iters times", holds="fn is called warmup + iters times.")
def counts(answer, rng, device):
    warmup, iters = rng.randrange(4), rng.randrange(1, 6)
    cases = (
        ({"warmup": warmup, "iters": iters}, warmup + iters),
        ({"warmup": 0, "iters": 1}, 1),
        ({}, 3 + 10),
    )
    for given, wanted in cases:
        fake = Device([0.1])
        answer.bench(fake.fn, fake.sync, fake.clock, **given)
        said = ", ".join(f"{key}={value}" for key, value in given.items()) or "the defaults"
        expect_true(
            fake.calls == wanted,
            f"with {said}, fn was called {fake.calls} times and not {wanted}",
            hint="A call may cost minutes. None is made that is neither warm-up nor sample.",
        )


@check("one slow call does not move the result", holds="the median of the iters times")
def outlier(answer, rng, device):
    work = rng.uniform(0.1, 0.5)
    works = [0.1] + [work] * 5
    works[rng.randrange(1, 6)] = 50.0
    compare(
        answer,
        Device(works),
        work + 0.001,
        "One of five calls took 50 s. The median does not mind; a mean, or one clock around "
        "all calls, does.",
        warmup=1,
        iters=5,
    )


@check(
    "it is the median, of odd and of even counts",
    holds=[
        "calls that are measured, each by itself, 1 or more",
        "a Python float: the middle one in order of size, or the mean of the middle two",
    ],
    both_sides=True,
)
def middle(answer, rng, device):
    for iters in (1, 2, 3, 4, 6):
        works = [rng.uniform(0.1, 2.0) for _ in range(iters)]
        wanted = statistics.median(works) + 0.001
        compare(
            answer,
            Device([0.5, *works]),
            wanted,
            "Sort by size first. An odd count has one in the middle, an even count has two "
            "and takes their mean. torch.median takes the smaller of the two.",
            warmup=1,
            iters=iters,
        )


@mutant("keeps the times in a float32 tensor", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    stamps = torch.empty(iters, 2)
    for k in range(iters):
        sync()
        stamps[k, 0] = clock()
        fn()
        sync()
        stamps[k, 1] = clock()
    return statistics.median((stamps[:, 1] - stamps[:, 0]).tolist())


@mutant("finds the middle in float32", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return torch.tensor(times).quantile(0.5).item()


@mutant("never waits", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("waits once, after the last sample", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        times.append(clock() - start)
    sync()
    return statistics.median(times)


@mutant("starts the clock when fn has returned", caught_by=host)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        fn()
        start = clock()
        sync()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("does not wait for the warm-up", caught_by=starts_empty)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("waits for the warm-up with the clock running", caught_by=starts_empty)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(iters):
        start = clock()
        sync()
        fn()
        sync()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("times the warm-up as well", caught_by=warms_up)
def bench(fn, sync, clock, warmup=3, iters=10):
    sync()
    times = []
    for _ in range(warmup + iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("takes the warm-up out of the samples", caught_by=counts)
def bench(fn, sync, clock, warmup=3, iters=10):
    sync()
    times = []
    for _ in range(max(iters, warmup + 1)):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return float(statistics.median(times[warmup:]))


@mutant("takes the mean", caught_by=outlier)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    start = clock()
    for _ in range(iters):
        fn()
    sync()
    return (clock() - start) / iters


@mutant("takes the fastest", caught_by=middle)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return min(times)


@mutant("takes the one in the middle without sorting", caught_by=middle)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return (times[(iters - 1) // 2] + times[iters // 2]) / 2


@mutant("takes the upper of two in the middle", caught_by=middle)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return sorted(times)[iters // 2]


@mutant("reads a clock of its own", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = time.perf_counter()
        fn()
        sync()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@mutant("waits for the device with a call of its own", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    def wait():
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

    for _ in range(warmup):
        fn()
    times = []
    for _ in range(iters):
        wait()
        start = clock()
        fn()
        wait()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("calls fn once more to see that it works", caught_by=counts)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(max(warmup, 1)):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("waits for the warm-up, and not for what was there before", caught_by=starts_empty)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
        sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return statistics.median(times)


@mutant("returns milliseconds", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append((clock() - start) * 1000)
    return statistics.median(times)


@mutant("takes the lower of two in the middle", caught_by=middle)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return statistics.median_low(times)


@mutant("returns the median as a tensor", caught_by=waits)
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    times = []
    for _ in range(iters):
        start = clock()
        fn()
        sync()
        times.append(clock() - start)
    return torch.tensor(times, dtype=torch.float64).quantile(0.5)


@hinted(1, reaches=host)
def bench(fn, sync, clock, warmup=3, iters=10):
    start = clock()
    for _ in range(iters):
        fn()
        sync()
    return (clock() - start) / iters


@accepted("takes the middle with torch, in float64")
def bench(fn, sync, clock, warmup=3, iters=10):
    sync()
    for _ in range(warmup):
        fn()
        sync()
    stamps = torch.empty(iters, 2, dtype=torch.float64)
    for row in stamps:
        row[0] = clock()
        fn()
        sync()
        row[1] = clock()
    return (stamps[:, 1] - stamps[:, 0]).quantile(0.5).item()


@accepted("waits before and after every sample, and finds the middle itself")
def bench(fn, sync, clock, warmup=3, iters=10):
    def sample():
        sync()
        start = clock()
        fn()
        sync()
        return clock() - start

    times = sorted([sample() for _ in range(warmup + iters)][warmup:])
    return (times[(iters - 1) // 2] + times[iters // 2]) / 2


@accepted("reads the clock once between two samples")
def bench(fn, sync, clock, warmup=3, iters=10):
    for _ in range(warmup):
        fn()
    sync()
    marks = [clock()]
    for _ in range(iters):
        fn()
        sync()
        marks.append(clock())
    return statistics.median(b - a for a, b in itertools.pairwise(marks))
