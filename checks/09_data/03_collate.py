"""Judges lessons/09_data/03_collate.md."""

import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_copy,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("The starter works on the batch that it is shown.", "It takes 0 for filling")

KEYS = ("x", "mask", "len", "y")
SKIPPED = -100
FROM_LENGTHS = "Place t of row b is data if t is smaller than the length of sequence b, whatever "
FROM_LENGTHS += "number stands there."


def batch_of(rng, lengths, dtype=torch.int64, low=1):
    """Sequences of these lengths without a 0, and their targets, 0 to 4."""
    return [(torch.randint(low, 100, (n,)).to(dtype), torch.randint(5, (n,))) for n in lengths]


def with_targets(sequences):
    """Each sequence and targets of its length, all different."""
    return [(s, torch.arange(len(s)) + 10 * b) for b, s in enumerate(sequences)]


def collated(answer, samples):
    """What pad_collate returns: a dict of four tensors."""
    got = answer.pad_collate(samples)
    if not isinstance(got, dict):
        fail(f"pad_collate returns a {type(got).__name__}, a dict is wanted")
    missing = [key for key in KEYS if key not in got]
    expect_true(not missing, f"the batch has no {missing}", hint="The keys are x, mask, len and y.")
    return got


def wanted(samples):
    lengths = [len(s) for s, _ in samples]
    T = max(lengths)
    x = torch.zeros(len(samples), T, dtype=samples[0][0].dtype)
    mask = torch.zeros(len(samples), T, dtype=torch.bool)
    y = torch.full((len(samples), T), SKIPPED)
    for b, (s, targets) in enumerate(samples):
        x[b, : lengths[b]] = s
        mask[b, : lengths[b]] = True
        y[b, : lengths[b]] = targets
    return {"x": x, "mask": mask, "len": torch.tensor(lengths), "y": y}


HINTS = {
    "x": "Row b is sequence b, in the order of the samples, then zeros up to the longest.",
    "mask": FROM_LENGTHS,
    "len": "The length is that of the sequence as it came.",
    "y": "Row b has the targets of sequence b in their places, and -100 behind them: 0 is a class.",
}


def compare(answer, samples, keys=KEYS, hints=HINTS):
    right = wanted(samples)
    got = collated(answer, list(samples))
    for key in keys:
        expect_equal(
            got[key],
            right[key],
            name=f'"{key}"',
            hint=hints[key],
            shape_hint="T is the longest length of this batch, B the number of samples.",
            dtype_hint="x has the dtype of the sequences, mask is bool, len and y are int64.",
        )


def lengths_of(rng):
    """Different lengths, the longest in any place."""
    lengths = rng.sample(range(1, 9), rng.randrange(3, 6))
    rng.shuffle(lengths)
    return lengths


@check(
    "sequences come first in their rows, then zeros",
    holds=[
        "(B, T), the dtype of the sequences, filled up with 0",
        "T being the longest length of this batch",
    ],
)
def rows(answer, rng, device):
    for lengths in (lengths_of(rng), [2, 5, 1, 5], [1, 6]):
        compare(answer, batch_of(rng, lengths), keys=("x",))


@check(
    "the mask is true for data, and only there",
    holds=["(B, T) bool, True where x holds data", "(B,) int64, the lengths"],
)
def masks(answer, rng, device):
    lengths = lengths_of(rng)
    samples = batch_of(rng, lengths)
    got = collated(answer, samples)["mask"]
    expect_shape(got, (len(lengths), max(lengths)), name="the mask")
    expect_dtype(got, torch.bool, name="the mask")
    compare(answer, samples, keys=("mask", "len"))


@check(
    "a 0 in a sequence is data",
    holds="Whoever gets the batch must be able to tell data from filling, whatever the data is.",
)
def zeros(answer, rng, device):
    samples = batch_of(rng, lengths_of(rng), low=0)
    for s, _ in samples:
        s[-1] = 0
        s[rng.randrange(len(s))] = 0
    compare(answer, samples)
    compare(answer, with_targets(torch.zeros(n, dtype=torch.int64) for n in (3, 1, 4)))


@check(
    "targets keep their places, and -100 fills up behind them",
    holds=[
        "Write pad_collate for sequences with targets, one for every place",
        "that is what targets are filled up with: 0 is a class",
        "A target may be -100 from the start, where the caller wants no loss.",
        "Its place is still data.",
        "any integers, classes from 0 or -100",
        "(B, T) int64, the targets, filled up with -100",
    ],
    both_sides=True,
)
def targets(answer, rng, device):
    compare(answer, batch_of(rng, [*lengths_of(rng), 9]), keys=("y",))
    samples = batch_of(rng, [3, 5, 2])
    samples[1][1][:2] = SKIPPED  # the caller skips the first two places
    samples[0][1][-1] = 0
    compare(answer, samples)
    samples[1][1][:] = SKIPPED  # and all places of a sequence
    compare(answer, samples, keys=("y", "mask"))
    for dtype in (torch.int32, torch.int16, torch.uint8):
        samples = [(s, y.to(dtype)) for s, y in batch_of(rng, lengths_of(rng), torch.float32)]
        compare(answer, samples, keys=("y", "mask"))
    large = [(s, y + 2**53 + 1) for s, y in batch_of(rng, lengths_of(rng))]
    compare(answer, large, keys=("y",))


KINDS = (torch.int64, torch.int32, torch.uint8, torch.bool)
KINDS += (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64)


@check(
    "the dtype is that of the sequences",
    holds=["all of one dtype, any", "the dtype of the sequences"],
)
def dtypes(answer, rng, device):
    for dtype in KINDS:
        samples = batch_of(rng, lengths_of(rng), dtype)
        got = collated(answer, samples)
        expect_dtype(
            got["x"],
            dtype,
            name='"x"',
            hint="Token numbers stay integers: an embedding takes no floats.",
        )
        compare(answer, samples)


@check(
    "a loss over the batch is that over the sequences",
    holds=[
        "The loss must not see the filling.",
        "F.cross_entropy leaves out places whose target is -100",
    ],
)
def loss(answer, rng, device):
    samples = batch_of(rng, [4, 1, 6])
    samples[0][1][0] = SKIPPED
    got, table = collated(answer, samples), torch.randn(100, 5)
    one_by_one = [F.cross_entropy(table[s], y, reduction="sum") for s, y in samples]
    count = sum(int((y != SKIPPED).sum()) for _, y in samples)
    value = F.cross_entropy(table[got["x"]].flatten(0, 1), got["y"].flatten())
    expect_close(value, sum(one_by_one) / count, name="the mean loss of the batch",
                 hint="cross_entropy leaves out targets of -100, and nothing else.")  # fmt: skip


BITS = "No bit of a sequence changes: copy it into a tensor of its own dtype, by way of no other."


@check(
    "no number is a sign of filling",
    holds="Whoever gets the batch must be able to tell data from filling, whatever the data is.",
)
def any_number(answer, rng, device):
    whole, inf = torch.iinfo(torch.int64), float("inf")
    odd = [-1, -100, whole.min, whole.max, 2**53 + 1, -(2**53) - 1, 0, 999]
    rng.shuffle(odd)
    rows = [torch.tensor(odd), torch.tensor(odd[:3]), torch.tensor(odd[3:])]
    first_the_mask = ("mask", "x", "len", "y")
    hints = {**HINTS, "x": BITS}
    compare(answer, with_targets(rows), first_the_mask, hints)
    for dtype in (torch.float32, torch.float64):
        ends = torch.finfo(dtype)
        odd = [float("nan"), inf, -inf, -1.0, 0.0, ends.min, ends.max, -100.0]
        rng.shuffle(odd)
        rows = [torch.tensor(part, dtype=dtype) for part in (odd, odd[:3], odd[3:])]
        compare(answer, with_targets(rows), first_the_mask, hints)


@check(
    "an empty sequence is a row of zeros, and no data",
    holds="each of its own T, which may be 0",
    both_sides=True,
)
def empty(answer, rng, device):
    for lengths in ([0, *lengths_of(rng)], [3, 0, 1], [4, 2, 0], [0, 0], [0]):
        compare(answer, batch_of(rng, lengths))


@check(
    "lengths and targets are int64 and keep their order",
    holds=["in their order", "(B,) int64, the lengths"],
)
def order(answer, rng, device):
    lengths = lengths_of(rng)
    samples = with_targets(s for s, _ in batch_of(rng, lengths))
    got = collated(answer, samples)
    for key in ("len", "y"):
        expect_dtype(got[key], torch.int64, name=f'"{key}"')
    compare(answer, samples, keys=("len", "y"))


@check("a batch of one is padded by nothing", holds="list of one or more pairs", both_sides=True)
def one(answer, rng, device):
    compare(answer, batch_of(rng, [rng.randrange(1, 9)]))
    compare(answer, batch_of(rng, [rng.randrange(1, 9)] * 3))
    compare(answer, batch_of(rng, [rng.randrange(1, 9) for _ in range(40)]))


@check("no memory is shared with the samples", holds="share no memory with the batch")
def copied(answer, rng, device):
    hint = "Edit the batch, and the dataset's sample is edited too. Copy it into a new tensor."
    for lengths in ([5], [4, 4], [3, 5]):
        samples = batch_of(rng, lengths)
        got = collated(answer, samples)
        for s, y in samples:
            expect_copy(got["x"], s, name='"x"', hint=hint)
            expect_copy(got["y"], y, name='"y"', hint=hint)


@check(
    "strided sequences will do, and none is changed",
    holds=["any strides", "The samples are left as they are"],
)
def untouched(answer, rng, device):
    base = torch.randint(1, 100, (4, 12))
    samples = with_targets(base[b, : 2 * n : 2] for b, n in enumerate((3, 5, 1, 2)))
    column = torch.randint(5, (6, 2))[:, 0]
    samples += [(torch.tensor(7).expand(6), column)]
    given = list(samples)
    with expect_unchanged(base, *(y for _, y in samples)):
        got = collated(answer, samples)
        expect_true(
            len(samples) == len(given) and all(a is b for a, b in zip(samples, given, strict=True)),
            "the list of samples was changed",
            hint="The caller still needs it, in this order.",
        )
        got["x"].add_(1)
        got["y"].add_(1)
    compare(answer, samples)


@check(
    "in a loader, each batch is as long as its longest",
    holds="T being the longest length of this batch",
)
def loads(answer, rng, device):
    samples = batch_of(rng, [1, 2, 3, 4, 5, 6, 7])
    loader = DataLoader(samples, batch_size=3, collate_fn=answer.pad_collate)
    shapes = ((3, 3), (3, 6), (1, 7))
    for n, (batch, shape) in enumerate(zip(loader, shapes, strict=True)):
        expect_shape(
            batch["x"],
            shape,
            name=f'"x" of batch {n}, of {shape[0]} sequences of at most {shape[1]},',
            hint="(B, T): a row for each sample, and T is the longest length of this batch.",
        )


def right(samples):
    return wanted(samples)


@mutant("takes each 0 for filling", caught_by=zeros)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "mask": batch["x"] != 0}


@mutant("counts what is not 0", caught_by=zeros)
def pad_collate(samples):
    batch = right(samples)
    count = (batch["x"] != 0).sum(1)
    return {**batch, "len": count, "mask": torch.arange(batch["x"].shape[1]) < count[:, None]}


def filled(samples, number):
    """Fill with this number in float64, read the mask off it, and cast."""
    x = pad_sequence([s.double() for s, _ in samples], batch_first=True, padding_value=number)
    mask = ~x.isnan() if number != number else x != number
    x = x.masked_fill(~mask, 0).to(samples[0][0].dtype)
    return {**right(samples), "x": x, "mask": mask}


@mutant("fills with -1, and looks for it", caught_by=any_number)
def pad_collate(samples):
    return filled(samples, -1.0)


@mutant("fills with NaN, and looks for it", caught_by=any_number)
def pad_collate(samples):
    return filled(samples, float("nan"))


@mutant("fills with the smallest number of all", caught_by=any_number)
def pad_collate(samples):
    dtype = samples[0][0].dtype
    low = (torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype).min
    x = torch.full_like(right(samples)["x"], low)
    for row, (s, _) in zip(x, samples, strict=True):
        row[: len(s)] = s
    return {**right(samples), "x": x.masked_fill(x == low, 0), "mask": x != low}


@mutant("goes by way of float64", caught_by=any_number)
def pad_collate(samples):
    return right([(s.double().to(s.dtype), label) for s, label in samples])


@mutant("has the batch in the second place", caught_by=rows)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "x": batch["x"].T.contiguous()}


@mutant("makes floats of the tokens", caught_by=dtypes)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "x": batch["x"].float()}


@mutant("makes integers of everything", caught_by=dtypes)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "x": batch["x"].long()}


@mutant("masks one place too many", caught_by=masks)
def pad_collate(samples):
    batch = right(samples)
    T = batch["x"].shape[1]
    return {**batch, "mask": torch.arange(T) <= batch["len"][:, None]}


@mutant("masks the filling", caught_by=masks)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "mask": ~batch["mask"]}


@mutant("stacks", caught_by=rows)
def pad_collate(samples):
    return {**right(samples), "x": torch.stack([s for s, _ in samples])}


@mutant("fills up on the left", caught_by=rows)
def pad_collate(samples):
    x = right(samples)["x"]
    for b, (s, _) in enumerate(samples):
        x[b] = 0
        x[b, x.shape[1] - len(s) :] = s
    return {**right(samples), "x": x}


@mutant("makes every batch ten long", caught_by=loads)
def pad_collate(samples):
    batch = right(samples)
    more = 10 - batch["x"].shape[1]
    return {
        **batch,
        "x": torch.nn.functional.pad(batch["x"], (0, more)),
        "mask": torch.nn.functional.pad(batch["mask"], (0, more)),
    }


@mutant("gives empty sequences a place", caught_by=empty)
def pad_collate(samples):
    batch = right(samples)
    lengths = batch["len"].clamp(min=1)
    return {**batch, "len": lengths, "mask": torch.arange(int(lengths.max())) < lengths[:, None]}


@mutant("sorts the samples by length", caught_by=order)
def pad_collate(samples):
    return right(sorted(samples, key=lambda sample: -len(sample[0])))


@mutant("sorts the caller's list", caught_by=untouched)
def pad_collate(samples):
    batch = right(samples)
    samples.sort(key=lambda sample: len(sample[0]))
    return batch


@mutant("fills the targets with 0, a class", caught_by=targets)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "y": batch["y"].masked_fill(~batch["mask"], 0)}


@mutant("skips each place where x is 0", caught_by=zeros)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "y": batch["y"].masked_fill(batch["x"] == 0, SKIPPED)}


@mutant("reads the mask off the targets", caught_by=targets)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "mask": batch["y"] != SKIPPED}


@mutant("fills the targets with -1", caught_by=loss)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "y": batch["y"].masked_fill(~batch["mask"], -1)}


@mutant("makes float targets", caught_by=order)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "y": batch["y"].float()}


@mutant("returns a view of a single sample", caught_by=copied)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "x": samples[0][0][None]} if len(samples) == 1 else batch


@mutant("stacks what is of one length, in the targets' dtype", caught_by=targets)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "y": batch["y"].to(samples[0][1].dtype)}


@mutant("fills the targets by way of float32", caught_by=targets)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "y": batch["y"].float().long()}


@mutant("takes the length from the targets that count", caught_by=targets)
def pad_collate(samples):
    batch = right(samples)
    lengths = torch.tensor([int((y != SKIPPED).sum()) for _, y in samples])
    return {**batch, "mask": torch.arange(batch["x"].shape[1]) < lengths[:, None]}


@mutant("cannot copy into a bool", caught_by=dtypes)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "x": batch["x"].long() if batch["x"].dtype == torch.bool else batch["x"]}


@mutant("loses imaginary parts", caught_by=dtypes)
def pad_collate(samples):
    batch = right(samples)
    return {**batch, "x": batch["x"].real}


@mutant("has no place for nothing but empty sequences", caught_by=empty)
def pad_collate(samples):
    batch = right([*samples, (samples[0][0].new_zeros(1), torch.zeros(1, dtype=torch.int64))])
    return {key: value[:-1] for key, value in batch.items()}


@hinted(1, reaches=masks)
def pad_collate(samples):
    T = max(len(s) for s, _ in samples)
    x = torch.zeros(len(samples), T, dtype=samples[0][0].dtype)
    for row, (s, _) in zip(x, samples, strict=True):
        row[: len(s)] = s
    y = torch.zeros(len(samples), T)
    for row, (_, t) in zip(y, samples, strict=True):
        row[: len(t)] = t
    lengths = torch.tensor([len(s) for s, _ in samples])
    mask = torch.stack([torch.arange(T) < n for n in lengths])
    return {"x": x, "mask": mask, "len": lengths, "y": y}


@accepted("leaves the padding to pad_sequence, twice")
def pad_collate(samples):
    sequences, y = map(list, zip(*samples, strict=True))
    ones = [torch.ones_like(s, dtype=torch.bool) for s in sequences]
    mask = pad_sequence(ones, batch_first=True)
    x = pad_sequence(sequences, batch_first=True)
    y = pad_sequence([t.long() for t in y], batch_first=True, padding_value=SKIPPED)
    return {"y": y, "x": x, "mask": mask, "len": mask.sum(dim=1)}


@accepted("fills what the mask says in one go")
def pad_collate(samples):
    lengths = torch.as_tensor([s.numel() for s, _ in samples])
    mask = torch.arange(lengths.amax().item()).expand(len(samples), -1) < lengths.unsqueeze(1)
    x = torch.zeros(mask.shape, dtype=samples[0][0].dtype)
    x[mask] = torch.cat([s for s, _ in samples])
    y = torch.full(mask.shape, SKIPPED).masked_scatter(
        mask, torch.cat([y.long() for _, y in samples])
    )
    return {"x": x, "mask": mask, "len": lengths, "y": y}


equivalent(
    "T = int(lengths.max())",
    "T = lengths.max()",
    because="torch.zeros and torch.arange take a tensor of no dimension for a number.",
)
equivalent(
    "x = torch.zeros(len(samples), T, dtype=samples[0][0].dtype)",
    "x = torch.zeros(len(samples), T, dtype=samples[-1][0].dtype)",
    because="All sequences have one dtype.",
)
