"""Judges lessons/09_data/06_workers.md."""

import functools
import tempfile
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "All samples fit into memory.",
    "No two processes ask for the same sample at the same time",
)

COPIES = (
    "Each worker writes into its own copy of what Cached holds. What one process has read must be "
    "seen by all: share the samples, and which of them are there."
)
MARK = "Any value can be a sample's own. Note apart from the values which samples are there."
ALIAS = "A row of a tensor is a view of it. Hand out a copy."
OWN = "ds[i], whatever another Cached holds: keep everything in self."
AGAIN = "ds[i] can be read again now. Remember what is there, not what failed."
LAZY = "Ask ds[i] in self[i], and not before."
FIRST = "First read, then note that it is there."


class Counting(Dataset):
    """Samples from a list, and how often each was asked for, by all processes together."""

    def __init__(self, samples):
        self.samples = samples
        self.calls = torch.zeros(len(samples), dtype=torch.int64).share_memory_()
        self.broken = set()

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        self.calls[i] += 1
        if i in self.broken:
            raise OSError(f"sample {i} cannot be read")
        return self.samples[i].clone()


def floats(rng, n, shape=(3, 2), dtype=torch.float32):
    return Counting([torch.randn(shape).to(dtype) for _ in range(n)])


def odd(rng):
    """(shape, dtype, samples): zeros, NaN, halves, bools, scalars, transposed, empty ones."""
    n = rng.randrange(3, 7)
    nan, inf = float("nan"), float("inf")
    yield (2,), torch.float32, [torch.zeros(2)] * n
    yield (2,), torch.float32, [torch.full((2,), nan), torch.tensor([nan, 0.0]), torch.ones(2)]
    yield (), torch.float16, [torch.tensor(v).half() for v in (0.0, inf, -inf, 65504.0)]
    yield (3,), torch.bool, [torch.randint(2, (3,)) == 1 for _ in range(n)]
    yield (), torch.int64, [torch.tensor(v) for v in (0, -1, 2**62, 2**53 + 1)]
    yield (3, 2), torch.float64, [torch.randn(2, 3, dtype=torch.float64).T for _ in range(n)]
    yield (2,), torch.bfloat16, [torch.randn(2).bfloat16() for _ in range(n)]
    yield (), torch.complex64, [torch.randn((), dtype=torch.complex64) for _ in range(n)]
    yield (2,), torch.uint8, [torch.tensor([0, 255], dtype=torch.uint8)] * n
    yield (2, 0), torch.float32, [torch.zeros(2, 0)] * n
    yield (2,), torch.float32, []


def compare(got, wanted, name, **hints):
    """Equal bit for bit, NaN to NaN."""
    expect_true(
        got.dtype == wanted.dtype,
        f"{name} is of dtype {got.dtype}, not {wanted.dtype}",
        hint="The dtype is an argument of Cached.",
    )
    expect_equal(got, wanted, name=name, **hints)


@check(
    "self[i] is ds[i], the first time and later",
    holds=[
        "self[i]: the tensor ds[i], for i from 0 to len(self) - 1",
        "map-style, 0 or more samples",
        "shape and dtype, and any values, 0 and NaN too",
        "perhaps (); dtype: any",
    ],
    both_sides=True,
)
def values(answer, rng, device):
    for shape, dtype, samples in odd(rng):
        cached = answer.Cached(Counting(samples), shape, dtype)
        expect_equal(len(cached), len(samples), name="len(cached)")
        for turn in ("first", "second"):
            for i in rng.sample(range(len(samples)), len(samples)):
                name = f"the {turn} cached[{i}], {dtype} of shape {shape},"
                compare(cached[i], samples[i], name, hint=OWN)


@check(
    "in one process, ds[i] is called once",
    holds="ds[i] is called once for each i.",
    both_sides=True,
)
def alone(answer, rng, device):
    for shape, dtype, samples in odd(rng):
        ds = Counting(samples)
        cached = answer.Cached(ds, shape, dtype)
        asked = [*range(len(samples))] * 3
        rng.shuffle(asked)
        for i in asked:
            cached[i]
        such = f", as {samples[0].tolist()}" if samples else ""
        name = f"with samples of {dtype}{such}, the list of calls for each sample"
        expect_equal(ds.calls.tolist(), [1] * len(samples), name=name, hint=MARK)


@check(
    "ds[i] is not called too early",
    holds="ds[i] is not called before somebody asks for self[i]",
)
def lazy(answer, rng, device):
    n = rng.randrange(4, 9)
    ds = floats(rng, n)
    cached = answer.Cached(ds, (3, 2), torch.float32)
    expect_equal(int(ds.calls.sum()), 0, name="the calls while Cached is made", hint=LAZY)
    i = rng.randrange(n)
    cached[i], len(cached)
    wanted = [int(k == i) for k in range(n)]
    expect_equal(ds.calls.tolist(), wanted, name=f"the calls after cached[{i}]", hint=LAZY)


TOGETHER = "the calls for each sample, workers and main process together,"


def loaded(cached, n, workers, bs=2):
    """One pass in order, with new workers: (n, ...)."""
    how = {"num_workers": workers, "multiprocessing_context": "fork"} if workers else {}
    return torch.cat(list(DataLoader(cached, bs, shuffle=False, **how)))


@check(
    "over several epochs with new workers, ds[i] is called once",
    holds=[
        "asks a dataset for each sample once: over all epochs, all workers and the main process",
        "the workers start after `Cached` was made, as forks",
    ],
    side="epochs",
)
def epochs(answer, rng, device):
    n = rng.randrange(7, 12)
    ds = floats(rng, n)
    cached = answer.Cached(ds, (3, 2), torch.float32)
    wanted = torch.stack(ds.samples)
    for epoch, workers in enumerate((2, 2)):
        compare(loaded(cached, n, workers), wanted, f"epoch {epoch} with {workers} workers",
                hint=COPIES)  # fmt: skip
        expect_equal(ds.calls.tolist(), [1] * n, hint=COPIES,
                     name=f"the calls for each sample after epoch {epoch}")  # fmt: skip


@check(
    "workers that stay and the main process share as well",
    holds="asks a dataset for each sample once: over all epochs, all workers and the main process",
    side="workers and the main process",
)
def together(answer, rng, device):
    n = rng.randrange(7, 12)
    ds = floats(rng, n, (), torch.float64)
    cached = answer.Cached(ds, (), torch.float64)
    wanted = torch.stack(ds.samples)
    here = rng.randrange(n)
    compare(cached[here], wanted[here], f"cached[{here}]")
    loader = DataLoader(
        cached,
        2,
        shuffle=True,
        num_workers=2,
        multiprocessing_context="fork",
        persistent_workers=True,
        generator=torch.Generator().manual_seed(rng.randrange(2**31)),
    )
    for epoch in range(3):
        got = torch.cat(list(loader))
        compare(got.sort().values, wanted.sort().values, f"shuffled epoch {epoch}, sorted",
                hint=COPIES)  # fmt: skip
        expect_equal(ds.calls.tolist(), [1] * n, name=TOGETHER, hint=COPIES)
    for i in range(n):
        compare(cached[i], wanted[i], f"cached[{i}] in the main process, after the workers",
                hint=COPIES)  # fmt: skip
    expect_equal(ds.calls.tolist(), [1] * n, name=TOGETHER, hint=COPIES)


@check(
    "writing into a sample does not reach the cache",
    holds="What a caller writes into it changes no later one.",
)
def own(answer, rng, device):
    for shape in ((3, 2), ()):
        n = rng.randrange(3, 6)
        ds = floats(rng, n, shape)
        cached = answer.Cached(ds, shape, torch.float32)
        wanted = [sample.clone() for sample in ds.samples]
        for turn in ("first", "second", "third"):
            for i in range(n):
                got = cached[i]
                compare(got, wanted[i], f"the {turn} cached[{i}]", hint=ALIAS)
                got.add_(1).mul_(-3)
    series = torch.randn(rng.randrange(5, 9))
    windows, wanted = series.unfold(0, 3, 1), series.unfold(0, 3, 1).clone()
    cached = answer.Cached(windows, (3,), torch.float32)
    hint = "ds[i] may be a view of what ds[i + 1] is made of. Hand out a copy the first time too."
    for i in range(len(wanted)):
        got = cached[i]
        compare(got, wanted[i], f"cached[{i}] of windows that share their numbers,", hint=hint)
        got.add_(1)


@check(
    "a sample that cannot be read is tried again",
    holds="If ds[i] raises, so does self[i], and the next self[i] tries again.",
    both_sides=True,
)
def broken(answer, rng, device):
    n = rng.randrange(3, 7)
    ds = floats(rng, n)
    cached = answer.Cached(ds, (3, 2), torch.float32)
    i = rng.randrange(n)
    ds.broken.add(i)
    for _ in range(2):
        try:
            cached[i]
        except OSError:
            pass
        else:
            expect_true(False, f"ds[{i}] raises OSError, and cached[{i}] does not", hint=FIRST)
    ds.broken.clear()
    with advising(OSError, hint=AGAIN):
        for turn in ("first", "second"):
            name = f"the {turn} cached[{i}], once it can be read,"
            compare(cached[i], ds.samples[i], name, hint=FIRST)
    expect_equal(int(ds.calls[i]), 3, name=f"the calls of ds[{i}], two of which raise,", hint=FIRST)


class Right(Dataset):
    """A right answer in steps, for the answers below to differ in one."""

    def __init__(self, ds, shape, dtype):
        self.ds = ds
        self.kept = torch.zeros(len(ds), *shape, dtype=dtype).share_memory_()
        self.there = torch.zeros(len(ds), dtype=torch.bool).share_memory_()

    def __len__(self):
        return len(self.ds)

    def __getitem__(self, i):
        if not self.there[i]:
            self.kept[i] = self.ds[i]
            self.there[i] = True
        return self.kept[i].clone()


@mutant("keeps a dict", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds, self.kept = ds, {}

    def __getitem__(self, i):
        if i not in self.kept:
            self.kept[i] = self.ds[i]
        return self.kept[i].clone()


@mutant("leans on lru_cache", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds = ds
        self.ask = functools.lru_cache(None)(ds.__getitem__)

    def __getitem__(self, i):
        return self.ask(i).clone()


@mutant("shares the values and not which are there", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        self.there = [False] * len(ds)


@mutant("shares which are there and not the values", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        self.kept = torch.zeros(len(ds), *shape, dtype=dtype)


@mutant("shares nothing", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        self.kept, self.there = self.kept.clone(), self.there.clone()


@mutant("counts what is there", caught_by=alone)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        self.count = torch.zeros((), dtype=torch.int64).share_memory_()

    def __getitem__(self, i):
        if self.count < len(self):
            self.kept[i] = self.ds[i]
            self.count += 1
        return self.kept[i].clone()


@mutant("shares at the first call", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds, self.args = ds, (ds, shape, dtype)

    def __getitem__(self, i):
        if "kept" not in self.__dict__:
            super().__init__(*self.args)
        return super().__getitem__(i)


@mutant("shares each sample in a dict of its own", caught_by=epochs)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds, self.kept = ds, {}

    def __getitem__(self, i):
        if i not in self.kept:
            self.kept[i] = self.ds[i].share_memory_()
        return self.kept[i].clone()


EVERY = {}


@mutant("has one dict for all", caught_by=values)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds = ds

    def __getitem__(self, i):
        if i not in EVERY:
            EVERY[i] = self.ds[i]
        return EVERY[i].clone()


@mutant("gives up on what failed once", caught_by=broken)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        self.failed = set()

    def __getitem__(self, i):
        if i in self.failed:
            raise OSError("failed before")
        self.failed.add(i)
        got = super().__getitem__(i)
        self.failed.discard(i)
        return got


@mutant("takes a zero for a gap", caught_by=alone)
class Cached(Right):
    def __getitem__(self, i):
        if not self.kept[i].any():
            self.kept[i] = self.ds[i]
        return self.kept[i].clone()


@mutant("takes a NaN for a gap", caught_by=alone)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        if dtype.is_floating_point:
            self.kept.fill_(torch.nan)
            self.there.fill_(True)

    def __getitem__(self, i):
        if not self.there[i] or self.kept[i].isnan().any():
            self.kept[i], self.there[i] = self.ds[i], True
        return self.kept[i].clone()


@mutant("reads everything at the start", caught_by=lazy)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        for i in range(len(ds)):
            self[i]


@mutant("keeps float32", caught_by=values)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, torch.float32)


@mutant("goes by way of NumPy", caught_by=values)
class Cached(Right):
    def __getitem__(self, i):
        super().__getitem__(i)
        return torch.from_numpy(self.kept[i].numpy().copy())


@mutant("hands out rows of the cache", caught_by=own)
class Cached(Right):
    def __getitem__(self, i):
        super().__getitem__(i)
        return self.kept[i]


@mutant("notes first and reads then", caught_by=broken)
class Cached(Right):
    def __getitem__(self, i):
        if not self.there[i]:
            self.there[i] = True
            self.kept[i] = self.ds[i]
        return self.kept[i].clone()


@mutant("swallows what ds raises", caught_by=broken)
class Cached(Right):
    def __getitem__(self, i):
        try:
            return super().__getitem__(i)
        except OSError:
            return self.kept[i].clone()


@mutant("reads ahead", caught_by=lazy)
class Cached(Right):
    def __getitem__(self, i):
        if i + 1 < len(self):
            super().__getitem__(i + 1)
        return super().__getitem__(i)


@hinted(1, reaches=lazy)
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        super().__init__(ds, shape, dtype)
        self.there = set()

    def __getitem__(self, i):
        if i not in self.there:
            self.kept[i] = self.ds[i]
            self.there.add(i)
        return self.kept[i]


@mutant("hands out what ds has made, the first time", caught_by=own)
class Cached(Right):
    def __getitem__(self, i):
        if self.there[i]:
            return self.kept[i].clone()
        sample = self.ds[i]
        self.kept[i].copy_(sample)
        self.there[i] = True
        return sample


@accepted("keeps one shared tensor for each sample")
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds = ds
        self.rows = [torch.empty(shape, dtype=dtype).share_memory_() for _ in range(len(ds))]
        self.there = torch.multiprocessing.get_context("fork").Array("b", len(ds))

    def __getitem__(self, i):
        if self.there[i] == 0:
            self.rows[i].copy_(self.ds[i])
            self.there[i] = 1
        return self.rows[i].detach().clone()


@accepted("keeps files")
class Cached(Right):
    def __init__(self, ds, shape, dtype):
        self.ds, self.folder = ds, Path(tempfile.mkdtemp())

    def __getitem__(self, i):
        path = self.folder / f"{i}.pt"
        if not path.exists():
            torch.save(self.ds[i], path)
        return torch.load(path)


equivalent(
    "self.there = torch.zeros(n, dtype=torch.bool).share_memory_()",
    "self.there = torch.zeros(n).share_memory_()",
    because="0.0 and 1.0 are as false and true as False and True.",
)
