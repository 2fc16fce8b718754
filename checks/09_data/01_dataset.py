"""Judges lessons/09_data/01_dataset.md."""

from itertools import islice

import torch
from torch.utils.data import DataLoader, Dataset

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_raises,
    expect_shape,
    expect_true,
    expect_unchanged,
    expect_view,
    fail,
    hinted,
    mutant,
)

background("The starter forgets the horizon")

LENGTH = "The last item is the one whose target is the last entry of the series."
KIND = "It must be an IndexError: a loop ends at that, and passes other errors on."
TARGET = "The window ends at i + w - 1, and the target is h steps after that."


def series_of(rng, device, n, dtype=torch.float32, columns=0):
    """Different numbers, so that an entry shows where it is from. Often strided or transposed."""
    shape = (n, columns) if columns else (n,)
    x = torch.randperm(n * max(1, columns), device=device).reshape(shape).to(dtype)
    layout = rng.randrange(3)
    if layout == 1:
        x = torch.stack([x, x], -1)[..., 0]
    if layout == 2 and columns:
        x = x.T.contiguous().T
    return x


def sizes(rng):
    """N, w and h with several items, and w and h that differ."""
    w, h = rng.sample(range(2, 6), 2)
    return w + h + rng.randrange(3, 9), w, h


def item(ds, i):
    """Item i: a pair of tensors."""
    hint = f"ds[{i}] must return a window and its target: -1 is the last item, as with a list."
    with advising(Exception, hint=hint):
        got = ds[i]
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        fail(f"ds[{i}] is no pair", hint="Return the window and the target.")
    return got


def compare(ds, i, series, w, h, position=None):
    """Item i is the one at `position` of the series."""
    at = i if position is None else position
    window, target = item(ds, i)
    expect_equal(
        window,
        series[at : at + w],
        name=f"the window of ds[{i}]",
        hint="It begins at entry i and has w entries. A negative index counts from the end of "
        "the items.",
        shape_hint="A window has w entries, with all their columns.",
    )
    expect_equal(
        target,
        series[at + w + h - 1],
        name=f"the target of ds[{i}]",
        hint=TARGET,
        shape_hint="The target is a single entry of the series.",
    )


@check("every window with a target is counted", holds="how many windows have a target")
def length(answer, rng, device):
    n, w, h = sizes(rng)
    for size in (n, w + h, w + h + 1):
        got = len(answer.Windows(series_of(rng, device, size), w, h))
        expect_equal(
            got, size - w - h + 1, name=f"the length for N = {size}, w = {w}, h = {h}", hint=LENGTH
        )
    expect_equal(len(answer.Windows(series_of(rng, device, 5), 1, 1)), 4, name="for w = h = 1")


@check(
    "a series that is too short has length 0",
    holds=["how many windows have a target, 0 if there is none", "N may be 0"],
)
def short(answer, rng, device):
    for n, w, h in ((4, 4, 1), (5, 3, 3), (0, 2, 2), (1, 6, 4)):
        ds = answer.Windows(series_of(rng, device, n), w, h)
        with_hint = "A length cannot be below 0: Python's len() refuses it."
        try:
            got = len(ds)
        except ValueError as error:
            fail(f"len() for N = {n}, w = {w}, h = {h}: {error}", hint=with_hint)
        expect_equal(got, 0, name=f"the length for N = {n}, w = {w}, h = {h}", hint=LENGTH)
        with (
            advising(ValueError, hint=KIND),
            expect_raises(IndexError, "an empty dataset has an item", hint="It has no item 0."),
        ):
            ds[0]


@check(
    "an item is its window, and the number h steps after it",
    holds=[
        "Write Windows for forecasts",
        "The window is series[i] to series[i + w - 1]",
        "The target is h steps after the window's last entry",
        "w, h: ints, 1 or more",
        "nothing is copied or changed",
    ],
    both_sides=True,
)
def items(answer, rng, device):
    n, w, h = sizes(rng)
    for shape in ((n, w, h), (n, 1, h), (n, w, 1), (w + h, w, h)):
        series = series_of(rng, device, shape[0])
        ds = answer.Windows(series, *shape[1:])
        with expect_unchanged(series):
            for i in range(shape[0] - shape[1] - shape[2] + 1):
                compare(ds, i, series, *shape[1:])


DTYPES = (
    (torch.float64, 0),
    (torch.int64, 3),
    (torch.uint8, 0),
    (torch.bool, 2),
    (torch.bfloat16, 1),
    (torch.complex64, 0),
)


@check(
    "any dtype will do, and D numbers per time",
    holds=[
        "(N,), or (N, D) with D numbers per time",
        "any dtype, any strides",
        "shape (w,) or (w, D)",
        "shape () or (D,)",
    ],
    both_sides=True,
)
def columns(answer, rng, device):
    n, w, h = sizes(rng)
    for dtype, d in (*DTYPES, (torch.float32, w), (torch.float32, n)):
        series = series_of(rng, device, n, dtype, d)
        ds = answer.Windows(series, w, h)
        expect_equal(
            len(ds), n - w - h + 1, name=f"the length for {list(series.shape)}", hint=LENGTH
        )
        for i in (0, n - w - h):
            compare(ds, i, series, w, h)


@check("a loop over it ends", holds="it has an end")
def ends(answer, rng, device):
    n, w, h = sizes(rng)
    count = n - w - h + 1
    ds = answer.Windows(series_of(rng, device, n), w, h)
    got = sum(1 for _ in islice(ds, count + 50))
    expect_true(
        got <= count,
        f"a loop got more than the {count} items that there are",
        hint="A loop goes on until __getitem__ raises IndexError. Slices never do.",
    )
    expect_equal(got, count, name="the number of items in a loop", hint="IndexError came too soon.")


@check("outside it raises IndexError", holds="whatever lies outside raises IndexError")
def outside(answer, rng, device):
    n, w, h = sizes(rng)
    count = n - w - h + 1
    ds = answer.Windows(series_of(rng, device, n), w, h)
    for i in (count, count + 1, n, 10 * n, -count - 1, -n - 1, -10 * n):
        message = f"ds[{i}] of {count} items is no error"
        hint = "A list of that length has items from -len to len - 1."
        with advising(ValueError, hint=KIND), expect_raises(IndexError, message, hint=hint):
            ds[i]


@check(
    "negative indices count from the last item",
    holds=["knows negative indices", "as with a list of that length: -1 is the last item"],
)
def negative(answer, rng, device):
    n, w, h = sizes(rng)
    count = n - w - h + 1
    series = series_of(rng, device, n)
    ds = answer.Windows(series, w, h)
    for i in (-1, -2, -count):
        compare(ds, i, series, w, h, position=count + i)


@check("nothing is copied", holds="Both are views of series", both_sides=True)
def views(answer, rng, device):
    n, w, h = sizes(rng)
    plain = torch.rand(n, 6, device=device)
    for series in (plain, plain[:, 1], plain[:, ::2], plain[:, :3].T.contiguous().T):
        ds = answer.Windows(series, w, h)
        for part, name in zip(item(ds, 1), ("the window", "the target"), strict=True):
            hint = "Index the series with a number or a slice: both give views."
            expect_view(part, series, name=name, hint=hint)
    base = torch.arange(float(n), device=device)
    ds = answer.Windows(base, w, h)
    base += 100
    compare(ds, 0, base, w, h)


@check(
    "two loops at a time do not disturb each other",
    holds="Two loops at a time, one inside the other, each see all of it.",
    both_sides=True,
)
def nested(answer, rng, device):
    n, w, h = sizes(rng)
    count = n - w - h + 1
    ds = answer.Windows(series_of(rng, device, n), w, h)
    inner = [sum(1 for _ in islice(ds, count + 50)) for _ in islice(ds, count + 50)]
    expect_equal(
        inner,
        [count] * count,
        name="the list of what the inner loop saw, for each item of the outer one,",
        hint="A place that the object itself remembers is shared by all loops. An index has none.",
    )


@check("a loader makes batches of it", holds="works for a loop as for a loader")
def loads(answer, rng, device):
    n, w, h = sizes(rng)
    series = series_of(rng, device, n)
    count = n - w - h + 1
    batches = list(DataLoader(answer.Windows(series, w, h), batch_size=count))
    expect_equal(len(batches), 1, name="the number of batches of that size", hint=LENGTH)
    x, y = batches[0]
    expect_shape(x, (count, w), name="the windows of a batch")
    expect_shape(y, (count,), name="the targets of a batch")
    expect_equal(y, series[w + h - 1 :].clone(), name="the targets of a batch", hint=TARGET)


class Base(Dataset):
    """What the wrong answers below share."""

    def __init__(self, series, w, h):
        self.series, self.w, self.h = series, w, h

    def __len__(self):
        return max(0, len(self.series) - self.w - self.h + 1)

    def __getitem__(self, i):
        i = range(len(self))[i]
        return self.series[i : i + self.w], self.series[i + self.w + self.h - 1]


@mutant("counts windows without a target", caught_by=length)
class Windows(Base):
    def __len__(self):
        return max(0, len(self.series) - self.w)


@mutant("loses the last window", caught_by=length)
class Windows(Base):
    def __len__(self):
        return max(0, len(self.series) - self.w - self.h)


@mutant("has a negative length", caught_by=short)
class Windows(Base):
    def __len__(self):
        return len(self.series) - self.w - self.h + 1


@mutant("takes the target one step late", caught_by=items)
class Windows(Base):
    def __len__(self):
        return max(0, len(self.series) - self.w - self.h)

    def __getitem__(self, i):
        i = range(len(self))[i]
        return self.series[i : i + self.w], self.series[i + self.w + self.h]


@mutant("takes the target from the window", caught_by=items)
class Windows(Base):
    def __getitem__(self, i):
        i = range(len(self))[i]
        return self.series[i : i + self.w], self.series[i + self.w - 1]


@mutant("leaves the end to the tensor", caught_by=outside)
class Windows(Base):
    def __getitem__(self, i):
        return self.series[i : i + self.w], self.series[i + self.w + self.h - 1]


@mutant("goes on for ever", caught_by=ends)
class Windows(Base):
    def __getitem__(self, i):
        i = i % len(self)
        return self.series[i : i + self.w], self.series[i + self.w + self.h - 1]


@mutant("stops at negative indices", caught_by=negative)
class Windows(Base):
    def __getitem__(self, i):
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.series[i : i + self.w], self.series[i + self.w + self.h - 1]


@mutant("picks the window with a list of indices", caught_by=views)
class Windows(Base):
    def __getitem__(self, i):
        i = range(len(self))[i]
        return self.series[list(range(i, i + self.w))], self.series[i + self.w + self.h - 1]


@mutant("knows one number per time only", caught_by=columns)
class Windows(Base):
    def __len__(self):
        return max(0, self.series.numel() - self.w - self.h + 1)


@mutant("is its own iterator", caught_by=nested)
class Windows(Base):
    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        if self.at >= len(self):
            raise StopIteration
        self.at += 1
        return self[self.at - 1]


@mutant("counts negative indices from the end of the series", caught_by=negative)
class Windows(Base):
    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        if i < 0:
            i += len(self.series) - self.w
        return self.series[i : i + self.w], self.series[i + self.w + self.h - 1]


@mutant("raises ValueError outside", caught_by=outside)
class Windows(Base):
    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise ValueError(f"no item {i}")
        i %= len(self)
        return self.series[i : i + self.w], self.series[i + self.w + self.h - 1]


@mutant("makes floats of the series", caught_by=columns)
class Windows(Base):
    def __init__(self, series, w, h):
        super().__init__(series.float(), w, h)


@mutant("copies a strided series", caught_by=columns)
class Windows(Base):
    def __init__(self, series, w, h):
        super().__init__(series.view(-1), w, h)


@mutant("stacks all windows at the start", caught_by=views)
class Windows(Base):
    def __init__(self, series, w, h):
        super().__init__(series, w, h)
        self.windows = [series[i : i + w].clone() for i in range(len(self))]

    def __getitem__(self, i):
        return self.windows[i], self.series[range(len(self))[i] + self.w + self.h - 1]


@mutant("makes the series contiguous", caught_by=views)
class Windows(Base):
    def __init__(self, series, w, h):
        super().__init__(series.contiguous(), w, h)


@mutant("keeps the target's dimension", caught_by=items)
class Windows(Base):
    def __getitem__(self, i):
        i = range(len(self))[i]
        end = i + self.w + self.h
        return self.series[i : i + self.w], self.series[end - 1 : end]


@hinted(1, reaches=length)
class Windows(Base):
    def __len__(self):
        return max(0, len(self.series) - self.w - self.h + 1)

    def __getitem__(self, i):
        return self.series[i : i + self.w], self.series[i + self.w - 1]


@accepted("loops by a generator of its own")
class Windows(Base):
    def __iter__(self):
        for i in range(len(self)):
            yield self[i]


@accepted("is a list")
class Windows(list):
    def __init__(self, series, w, h):
        last = len(series) - w - h
        super().__init__((series[i : i + w], series[i + w + h - 1]) for i in range(last + 1))


@accepted("makes a list of views at the start")
class Windows:
    def __init__(self, series, w, h):
        self.pairs = [
            (series[i : i + w], series[i + w + h - 1]) for i in range(len(series) - w - h + 1)
        ]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


@accepted("says what lies outside, and wraps by hand")
class Windows:
    def __init__(self, series, w, h):
        self.series, self.w, self.h = series, w, h
        self.n = max(0, series.shape[0] - w - h + 1)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i < -self.n or i >= self.n:
            raise IndexError(f"no item {i} among {self.n}")
        if i < 0:
            i += self.n
        return self.series.narrow(0, i, self.w), self.series[i + self.w - 1 + self.h]


@accepted("looks the items up in unfolded views")
class Windows(Dataset):
    def __init__(self, series, w, h):
        self.h, self.w = h, w
        n = len(series) - w - h + 1
        self.series = series
        self.starts = list(range(n)) if n > 0 else []

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        start = self.starts[i]
        window = self.series.unfold(0, self.w, 1)[start]
        return window.movedim(-1, 0), self.series[start + self.w + self.h - 1]
