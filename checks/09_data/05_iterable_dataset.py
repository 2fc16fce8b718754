"""Judges lessons/09_data/05_iterable_dataset.md."""

from contextlib import contextmanager
from itertools import islice

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torch.utils.data._utils import worker as _worker

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("In a large run there are several processes that train")

ONCE = "Each number belongs to one reader. Number all readers, over ranks and workers, and deal "
ONCE += "the numbers out among them."
MAIN = "Without workers, get_worker_info() is None, and the whole share of the rank is yours."
EVEN = "Deal the numbers out evenly, so that no reader waits for another."
REST = "n need not be a multiple of the number of readers: the rest has to go somewhere."


@contextmanager
def as_worker(ds, worker, workers):
    """Inside, get_worker_info() says what it says in this worker; workers = 0: it says None."""
    info = None
    if workers:
        info = _worker.WorkerInfo(id=worker, num_workers=workers, seed=0, dataset=ds)
    _worker._worker_info = info
    try:
        yield
    finally:
        _worker._worker_info = None


def read(answer, n, ranks=1, workers=0):
    """The items of every reader, each of a copy of a Stream that was made in the main process."""
    found = []
    for rank in range(ranks):
        for worker in range(max(1, workers)):
            ds = answer.Stream(n, rank, ranks)
            with as_worker(ds, worker, workers), advising(AttributeError, hint=MAIN):
                found.append(list(islice(iter(ds), 3 * n + 10)))
    for item in [item for items in found for item in items][:3]:
        kind = type(item).__name__
        expect_true(type(item) is int, f"iter(ds) yields {kind}, ints are wanted")
    return found


def complete(answer, n, ranks=1, workers=0, hint=ONCE):
    found = read(answer, n, ranks, workers)
    who = f"n = {n}, {ranks} ranks of {workers} workers: all items, sorted,"
    together = sorted(item for items in found for item in items)
    expect_equal(together, list(range(n)), name=who, hint=hint)
    for items in found:
        expect_true(items == sorted(items), f"a reader got {items[:9]}, which does not rise")


@check(
    "without workers it is 0 to n - 1",
    holds=["The numbers 0 to n - 1, dealt out to all who read.", "n: an int, 0 or more"],
    both_sides=True,
)
def alone(answer, rng, device):
    for n in (rng.randrange(5, 30), 1, 0):
        with advising(AttributeError, hint=MAIN):
            got = list(islice(iter(answer.Stream(n)), n + 10))
        expect_equal(got, list(range(n)), name=f"list(Stream({n}))", hint=MAIN)


@check(
    "any number of workers together yields each number once",
    holds=["so that every number comes once, over all workers", "the ints of one reader, rising"],
    side="workers",
)
def sharded(answer, rng, device):
    for workers in (1, 2, 3, 5):
        for n in (4 * workers, rng.randrange(20, 40), 1, 0):
            complete(answer, n, 1, workers)


@check(
    "nothing is lost when n is no multiple",
    holds="Over all readers, each of 0 to n - 1 comes exactly once.",
    both_sides=True,
)
def remainder(answer, rng, device):
    for workers in (2, 3, 4):
        for left in range(workers):
            complete(answer, 5 * workers + left, 1, workers, hint=REST)
    complete(answer, 3, 1, 5, hint=REST)


@check(
    "ranks without workers share as well",
    holds="A reader is a worker of a rank, or a rank without workers.",
    side="rank without workers",
)
def ranks_alone(answer, rng, device):
    for ranks in (2, 3):
        complete(answer, rng.randrange(10, 30), ranks, 0)
        complete(answer, 6 * ranks, ranks, 0)


@check(
    "workers of several ranks share all together",
    holds=[
        "so that every number comes once, over all workers of all ranks",
        "A reader is a worker of a rank, or a rank without workers.",
        "Each has a Stream with the same n and ranks",
    ],
    both_sides=True,
)
def ranks_and_workers(answer, rng, device):
    for ranks, workers in ((2, 2), (2, 3), (3, 2), (4, 1), (3, 5)):
        complete(answer, rng.randrange(30, 60), ranks, workers)
        complete(answer, ranks * workers * 3, ranks, workers)


@check(
    "the shares are as equal as they can be",
    holds="The shares of two readers differ by at most one number",
    both_sides=True,
)
def fair(answer, rng, device):
    for ranks, workers in ((1, 3), (2, 2), (3, 0), (2, 3), (3, 5)):
        readers = ranks * max(1, workers)
        for n in (4 * readers, 4 * readers + rng.randrange(1, readers or 2), readers - 1, 0):
            sizes = [len(items) for items in read(answer, n, ranks, workers)]
            message = (
                f"n = {n}, {ranks} ranks of {workers} workers: the shares have {sizes} numbers"
            )
            expect_true(max(sizes) - min(sizes) <= 1, message, hint=EVEN)


@check("each iter begins anew", holds="Every iter(ds) begins anew.", both_sides=True)
def anew(answer, rng, device):
    n = rng.randrange(6, 20)
    for workers in (0, 2):
        ds = answer.Stream(n, 1, 2)
        with as_worker(ds, 1, workers):
            first, second = iter(ds), iter(ds)
            head = next(first)
            expect_true(
                next(second) == head,
                "two iterators of one stream take items from each other",
                hint="Make the iterator in __iter__, each time a new one.",
            )
            list(first)
            again = list(ds)
        expect_true(
            again and again[0] == head,
            "the second pass does not begin where the first did",
            hint="Make the iterator in __iter__, each time a new one.",
        )


@check(
    "it begins at once, however long it is",
    holds="perhaps far too many for a list",
    side="long",
)
def lazy(answer, rng, device):
    with advising(
        MemoryError, hint="Do not build a list: yield the numbers, or take them from a range."
    ):
        ds = answer.Stream(10**15, 1, 3)
        got = list(islice(iter(ds), 4))
    expect_equal(len(set(got)), 4, name="the number of different first items")


@check(
    "in a loader with two real workers, each number comes once",
    holds="the same number of workers: 0 or more",
    both_sides=True,
)
def in_loader(answer, rng, device):
    n = rng.randrange(7, 20)
    loader = DataLoader(
        answer.Stream(n), batch_size=None, num_workers=2, multiprocessing_context="fork"
    )
    got = sorted(int(item) for item in loader)
    expect_equal(got, list(range(n)), name="all items, sorted,", hint=ONCE)


class Base(IterableDataset):
    """What the answers below share."""

    def __init__(self, n, rank=0, ranks=1):
        self.n, self.rank, self.ranks = n, rank, ranks

    def reader(self):
        """(number of this reader, number of readers)."""
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return self.rank * workers + worker, self.ranks * workers


@mutant("every worker yields everything", caught_by=sharded)
class Stream(Base):
    def __iter__(self):
        return iter(range(self.rank, self.n, self.ranks))


@mutant("expects to be in a worker", caught_by=alone)
class Stream(Base):
    def __iter__(self):
        info = get_worker_info()
        reader = self.rank * info.num_workers + info.id
        return iter(range(reader, self.n, self.ranks * info.num_workers))


@mutant("cuts blocks and drops the remainder", caught_by=remainder)
class Stream(Base):
    def __iter__(self):
        reader, readers = self.reader()
        size = self.n // readers
        return iter(range(reader * size, (reader + 1) * size))


@mutant("lets the first reader read everything", caught_by=fair)
class Stream(Base):
    def __iter__(self):
        reader, _ = self.reader()
        return iter(range(0 if reader else self.n))


@mutant("gives the remainder to the last reader", caught_by=fair)
class Stream(Base):
    def __iter__(self):
        reader, readers = self.reader()
        size = self.n // readers
        end = self.n if reader == readers - 1 else (reader + 1) * size
        return iter(range(reader * size, end))


@mutant("yields tensors", caught_by=sharded)
class Stream(Base):
    def __iter__(self):
        reader, readers = self.reader()
        return map(torch.tensor, range(reader, self.n, readers))


@mutant("runs backwards", caught_by=sharded)
class Stream(Base):
    def __iter__(self):
        reader, readers = self.reader()
        return reversed(range(reader, self.n, readers))


@mutant("ignores the rank", caught_by=ranks_alone)
class Stream(Base):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(worker, self.n, workers))


@mutant("adds rank and worker", caught_by=ranks_and_workers)
class Stream(Base):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(self.rank + worker, self.n, self.ranks * workers))


@mutant("multiplies with the number of ranks instead", caught_by=ranks_and_workers)
class Stream(Base):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(self.rank * self.ranks + worker, self.n, self.ranks * workers))


@mutant("asks for its number too early", caught_by=sharded)
class Stream(Base):
    def __init__(self, n, rank=0, ranks=1):
        super().__init__(n, rank, ranks)
        self.place = self.reader()

    def __iter__(self):
        reader, readers = self.place
        return iter(range(reader, self.n, readers))


@mutant("is used up after one pass", caught_by=anew)
class Stream(Base):
    items = None

    def __iter__(self):
        if self.items is None:
            reader, readers = self.reader()
            self.items = iter(range(reader, self.n, readers))
        return self.items


@mutant("builds a list of everything", caught_by=lazy)
class Stream(Base):
    def __iter__(self):
        reader, readers = self.reader()
        everything = torch.arange(self.n) if self.n < 10**9 else [0] * self.n
        return iter([int(i) for i in everything[reader::readers]])


@hinted(1, reaches=ranks_alone)
class Stream(Base):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(self.rank + worker, self.n, self.ranks * workers))


@accepted("deals to the ranks first, then to the workers")
class Stream(Base):
    def __iter__(self):
        info = get_worker_info()
        mine = range(self.rank, self.n, self.ranks)
        yield from mine if info is None else mine[info.id :: info.num_workers]


@accepted("cuts blocks of almost the same size")
class Stream(Base):
    def __iter__(self):
        reader, readers = self.reader()
        first, end = (self.n * k // readers for k in (reader, reader + 1))
        i = first
        while i < end:
            yield i
            i += 1
