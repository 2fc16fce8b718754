"""Judges lessons/01_tensors/03_low_precision.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "You want to store a tensor in 16 bits.",
    "Storing and coming back is `x.to(dtype).float()`.",
    "The methods `.abs()`, `.all()` and `.any()` look at every element",
)

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


def among(rng, device, *special):
    """These values at random places of a 3-d tensor, among values that every format holds.

    None of them is 0: what becomes of zeros is another check's question.
    """
    shape = rng.randrange(2, 5), rng.randrange(2, 5), rng.randrange(2, 5)
    x = torch.randint(1, 9, shape) * (2 * torch.randint(0, 2, shape) - 1)
    x = x.float().to(device)
    places = rng.sample(range(x.numel()), len(special))
    x.view(-1)[places] = torch.tensor(special, device=device)
    return x.transpose(0, 2)  # not contiguous


def errors(x, dtype):
    """The relative error of each value other than zero, in float64."""
    x = x[x != 0].double()
    return ((x.to(SINGLE).to(dtype).double() - x) / x).abs()


def right(x, tol):
    """The dtype wanted, or None if an error lies too near to tol to be judged fairly."""
    for dtype in (HALF, BRAIN):
        off = errors(x, dtype)
        if bool((off / tol - 1).abs().lt(1e-3).any()):
            return None
        if bool((off <= tol).all()):
            return dtype
    return SINGLE


def expect_choice(answer, x, tol, wanted, which, *, loses="", keeps=""):
    """loses: the hint for a choice that does not keep x; keeps: for one that keeps it too well."""
    got = answer.pick_dtype(x, tol)
    expect_true(
        isinstance(got, torch.dtype),
        f"pick_dtype returns {got!r}, a dtype is wanted",
        hint="A dtype is an object, `torch.float16`, and not its name.",
    )
    order = [HALF, BRAIN, SINGLE]
    too_early = got in order and order.index(got) < order.index(wanted)
    general = f"{wanted} is asked before {got}, and keeps every value: no error is larger than "
    general += f"{tol:g} times the size of its value."
    hint = loses if too_early else keeps or general
    expect_equal(got, wanted, name=f"the choice for {which}", hint=hint)


@check(
    "numbers that float16 holds go to float16",
    holds=["it says whether float16 will do", "returns: a torch.dtype"],
    side="float16 will do",
)
def fits(answer, rng, device):
    hint = "float16 is asked first: it keeps more digits, as long as the numbers fit. What it "
    hint += "holds exactly has the error 0, within any tolerance: make the trip and measure."
    size = "The size of the value counts, without its sign: below zero, tol * value is less than "
    size += "any error."
    whole = torch.randint(1, 2049, (4, 5)) * (2 * torch.randint(0, 2, (4, 5)) - 1)
    for x, tol in (
        (torch.tensor([1.0, 2.5, 3.0]), 1e-3),
        (torch.tensor([1.001, 1000.5]), 1e-3),
        (torch.tensor([-1.0, -2.5, -1.001]), 1e-3),
        (torch.tensor([65504.0, -65504.0]), 1e-3),
        (whole.float(), 1e-6),
    ):
        which = f"values up to {x.abs().max():g}"
        keeps = size if x.max() < 0 else hint
        expect_choice(answer, x.to(device), tol, HALF, which, keeps=keeps)


@check(
    "a large number moves to bfloat16, whatever its sign",
    holds=["or else bfloat16", "x: float32, any shape, finite values, may be empty"],
    side="bfloat16 will do",
)
def large(answer, rng, device):
    for value in (70000.0, -70000.0, -1e6, 3e38):
        far = "float16 ends at 65504. What is larger becomes inf there."
        negative = (
            "The largest value is not the one farthest from zero: max() does not see "
            f"{value:g}, and that is far beyond float16."
        )
        x = among(rng, device, value)
        which = f"a tensor with {value:g} in it"
        expect_choice(answer, x, 1e-2, BRAIN, which, loses=far if value > 0 else negative)


@check(
    "a tiny number moves to bfloat16",
    holds=["or else bfloat16", "if every value survives the trip there"],
    side="bfloat16 will do",
)
def tiny(answer, rng, device):
    hint = (
        "Numbers can be too small as well: float16 makes 1e-8 a 0 and 1e-6 inexact. Both "
        "are finite, and both are lost."
    )
    for value in (1e-8, -1e-8, 1e-6, -1e-7):
        x = among(rng, device, value)
        expect_choice(answer, x, 1e-2, BRAIN, f"a tensor with {value:g} in it", loses=hint)


@check(
    "each error is measured against its own value",
    holds=[
        "if every value survives the trip there with a relative error",
        "the stored value lies within `tol * |value|` of the value",
    ],
    side="above tol for one value alone",
)
def own_size(answer, rng, device):
    hint = (
        "Beside 30000 every error of 1e-7 looks small. Relative means relative to the "
        "value that was rounded."
    )
    x = among(rng, device, 30000.0, rng.choice([-1e-7, 1e-7]))
    expect_choice(answer, x, 1e-2, BRAIN, "30000 beside 1e-7", loses=hint)


@check(
    "bfloat16 has to pass the same test",
    holds=["or only float32", "The first of float16, bfloat16, float32 that keeps x within tol."],
    side="float32 alone will do",
)
def same_test(answer, rng, device):
    hint = (
        "bfloat16 reaches far but rounds at the third digit. When it fails too, only "
        "float32 is left."
    )
    for special, tol in (
        ((70000.0, 1.001), 1e-4),  # one too large for float16, one too precise for bfloat16
        ((3.401e38,), 1e-2),  # beyond bfloat16's largest
        ((70000.0,), 1e-4),
    ):
        which = f"a tensor with {' and '.join(f'{v:g}' for v in special)} in it"
        expect_choice(answer, among(rng, device, *special), tol, SINGLE, which, loses=hint)


@check(
    "an error downwards counts as much as one upwards",
    holds="the stored value lies within `tol * |value|` of the value",
    side="above tol downwards",
)
def both_ways(answer, rng, device):
    hint = "Rounding goes both ways. Compare the size of the error, not its sign."
    for value in (1e6, -1e6):  # bfloat16 takes both 0.06 % nearer to zero
        x = among(rng, device, value)
        expect_choice(answer, x, 1e-4, SINGLE, f"a tensor with {value:g} in it", loses=hint)


@check("a zero does not spoil the test", holds="A zero must stay zero.")
def zeros(answer, rng, device):
    hint = "0 is stored exactly: its error is 0, and so is tol * 0. `<` refuses that, and so does "
    hint += "a quotient: 0 / 0 is nan, and nan <= tol is False."
    shape = "x may have any shape, () too. A tensor without dimensions has no rows to go through."
    with advising(TypeError, saying="0-d", hint=shape):
        for x in (torch.tensor([0.0, 1.0]), torch.zeros(2, 3), torch.tensor(0.0)):
            which = f"{x.tolist()}"
            expect_choice(answer, x.to(device), 1e-3, HALF, which, keeps=hint)


@check("an empty tensor takes float16", holds="any shape, finite values, may be empty")
def empty(answer, rng, device):
    hint = (
        "With no values, none is lost. `.all()` of nothing is True, while `.max()` of "
        "nothing raises."
    )
    with advising(RuntimeError, hint=hint):
        for shape in ((0,), (2, 0, 3)):
            x = torch.zeros(shape, device=device)
            expect_choice(answer, x, 1e-3, HALF, f"the shape {list(shape)}", keeps=hint)


@check(
    "an error of exactly tol will do",
    holds="with a relative error of at most `tol`",
    side="exactly tol",
)
def at_bound(answer, rng, device):
    # 2 ** -25 lies in the middle between 0 and float16's smallest number: it becomes 0, which
    # is a relative error of 1, exactly.
    for value in (2.0**-25, -(2.0**-25), 2.0**-26):
        x, which = among(rng, device, value), f"a tensor with {value:g} in it, within "
        keeps = "At most tol: an error of exactly tol is allowed."
        expect_choice(answer, x, 1.0, HALF, which + "1,", keeps=keeps)
        loses = f"float16 makes {value:g} a 0: a relative error of 1. Add nothing to the value "
        loses += "that the error is measured against."
        expect_choice(answer, x, 0.99, BRAIN, which + "0.99,", loses=loses)


@check(
    "with a tolerance of 0 each bit counts",
    holds=["with a relative error of at most `tol`", "tol: the largest relative error allowed"],
    side="above tol",
)
def no_tolerance(answer, rng, device):
    hint = "Within 0 means that the number comes back as it was."
    cases = (2.5, HALF), (2.0**17, BRAIN), (-(2.0**-30), BRAIN), (1.001, SINGLE), (7e4, SINGLE)
    for value, wanted in cases:
        which, x = f"a tensor with {value:g} in it, within 0,", among(rng, device, value)
        expect_choice(answer, x, 0.0, wanted, which, loses=hint, keeps=hint)


@check("the caller's tolerance decides", holds="tol: the largest relative error allowed")
def tolerance(answer, rng, device):
    hint = "The same tensor may need another dtype when the caller asks for more digits."
    for value, tol, wanted in (
        (1.001, 1e-2, HALF),
        (1.001, 1e-5, SINGLE),
        (70000.0, 1e-2, BRAIN),
        (70000.0, 1e-3, SINGLE),
    ):
        which = f"a tensor with {value:g} in it, within {tol:g},"
        x = among(rng, device, value)
        expect_choice(answer, x, tol, wanted, which, loses=hint)


@check(
    "any numbers, any tolerance",
    holds="The first of float16, bfloat16, float32 that keeps x within tol.",
)
def anything(answer, rng, device):
    hint = (
        "Range and precision both count, and the caller says how much. Judge by what the "
        "trip does to each value."
    )
    judged = 0
    while judged < 20:
        low, high = sorted(rng.uniform(-9, 9) for _ in range(2))
        sizes = torch.rand(rng.randrange(1, 6), rng.randrange(1, 6)) * (high - low) + low
        x = torch.randn(sizes.shape).sign() * 10**sizes
        tol = 10 ** rng.uniform(-5, -1)
        wanted = right(x, tol)
        if wanted is None:
            continue
        judged += 1
        which = f"sizes from {x.abs().min():.2g} to {x.abs().max():.2g} within {tol:.2g}"
        expect_choice(answer, x.to(device), tol, wanted, which, loses=hint)


@check("the tensor that came in is unchanged", holds="`x` keeps its values.")
def untouched(answer, rng, device):
    x = torch.randn(3, 4, device=device)
    with expect_unchanged(x, hint="Methods that end in _ write into the caller's block."):
        answer.pick_dtype(x, 1e-3)


@mutant("looks at the largest value only", caught_by=large)
def pick_dtype(x, tol):
    if x.numel() == 0 or x.max() <= 65504:
        return torch.float16
    return torch.bfloat16


@mutant("takes bfloat16 for everything", caught_by=fits)
def pick_dtype(x, tol):
    return torch.bfloat16


@mutant("asks only whether the copy is finite", caught_by=tiny)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if x.to(dtype).isfinite().all():
            return dtype
    return torch.float32


@mutant("compares with the limits that finfo gives", caught_by=same_test)
def pick_dtype(x, tol):
    size = x[x != 0].abs()
    for dtype in (torch.float16, torch.bfloat16):
        info = torch.finfo(dtype)
        if ((size >= info.tiny) & (size <= info.max)).all():
            return dtype
    return torch.float32


@mutant("measures the error against the largest value", caught_by=own_size)
def pick_dtype(x, tol):
    if x.numel() == 0:
        return torch.float16
    for dtype in (torch.float16, torch.bfloat16):
        if (x.to(dtype).float() - x).abs().max() <= tol * x.abs().max():
            return dtype
    return torch.float32


@mutant("measures the absolute error", caught_by=tiny)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if ((x.to(dtype).float() - x).abs() <= tol).all():
            return dtype
    return torch.float32


@mutant("uses a tolerance of its own", caught_by=tolerance)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if ((x.to(dtype).float() - x).abs() <= 1e-3 * x.abs()).all():
            return dtype
    return torch.float32


@mutant("looks at the mean error", caught_by=own_size)
def pick_dtype(x, tol):
    if x.numel() == 0:
        return torch.float16
    for dtype in (torch.float16, torch.bfloat16):
        if (x.to(dtype).float() - x).abs().mean() <= tol * x.abs().mean():
            return dtype
    return torch.float32


@mutant("drops the signs in place", caught_by=untouched)
def pick_dtype(x, tol):
    x.abs_()
    for dtype in (torch.float16, torch.bfloat16):
        if ((x.to(dtype).float() - x).abs() <= tol * x).all():
            return dtype
    return torch.float32


@mutant("stops at bfloat16", caught_by=same_test)
def pick_dtype(x, tol):
    back = x.half().float()
    good = ((back - x).abs() <= tol * x.abs()).all()
    return torch.float16 if good else torch.bfloat16


@mutant("forgets that errors have a sign", caught_by=both_ways)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if (back - x <= tol * x.abs()).all():
            return dtype
    return torch.float32


@mutant("divides by zero", caught_by=zeros)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if (((back - x) / x).abs() <= tol).all():
            return dtype
    return torch.float32


@mutant("wants the error below the bound", caught_by=zeros)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if ((x.to(dtype).float() - x).abs() < tol * x.abs()).all():
            return dtype
    return torch.float32


@mutant("wants the relative error below tol, zeros left out", caught_by=at_bound)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        values = x[x != 0]
        back = values.to(dtype).float()
        if (((back - values) / values).abs() < max(tol, 1e-30)).all():
            return dtype
    return torch.float32


@mutant("returns the name of the dtype", caught_by=fits)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if ((back - x).abs() <= tol * x.abs()).all():
            return str(dtype)
    return "torch.float32"


@mutant("asks bfloat16 first", caught_by=fits)
def pick_dtype(x, tol):
    for dtype in (torch.bfloat16, torch.float16):
        back = x.to(dtype).float()
        if ((back - x).abs() <= tol * x.abs()).all():
            return dtype
    return torch.float32


@mutant("is content when one value survives", caught_by=large)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if x.numel() == 0 or ((back - x).abs() <= tol * x.abs()).any():
            return dtype
    return torch.float32


@mutant("measures against the stored value", caught_by=large)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if ((back - x).abs() <= tol * back.abs()).all():
            return dtype
    return torch.float32


@mutant("adds a small number to the divisor", caught_by=at_bound)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        off = (x.to(dtype).float() - x).abs() / (x.abs() + 1e-8)
        if (off <= tol).all():
            return dtype
    return torch.float32


@hinted(1, reaches=both_ways)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if (((back - x) / x).abs() <= tol).all():
            return dtype
    return torch.float32


@mutant("leaves the sign in the bound", caught_by=fits)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if ((x.to(dtype).float() - x).abs() <= tol * x).all():
            return dtype
    return torch.float32


@mutant("lets allclose add its absolute tolerance", caught_by=tiny)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if torch.allclose(x.to(dtype).float(), x, rtol=tol):
            return dtype
    return torch.float32


@mutant("gives up on an empty tensor", caught_by=empty)
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).float()
        if x.numel() and ((back - x).abs() <= tol * x.abs()).all():
            return dtype
    return torch.float32


@accepted("lets allclose compare, with no absolute tolerance")
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        if torch.allclose(x.to(dtype).float(), x, rtol=tol, atol=0.0):
            return dtype
    return torch.float32


@accepted("leaves the zeros out and divides")
def pick_dtype(x, tol):
    def keeps(dtype):
        values = x[x != 0].double()
        stored = x.to(dtype)[x != 0].double()
        return not ((stored / values - 1).abs() > tol).any()

    if keeps(torch.float16):
        return torch.float16
    return torch.bfloat16 if keeps(torch.bfloat16) else torch.float32


@accepted("goes through Python floats")
def pick_dtype(x, tol):
    values = x.flatten().tolist()
    for dtype in (torch.float16, torch.bfloat16):
        pairs = zip(x.to(dtype).flatten().tolist(), values, strict=True)
        if all(abs(stored - value) <= tol * abs(value) for stored, value in pairs):
            return dtype
    return torch.float32


@accepted("tests for infinity first")
def pick_dtype(x, tol):
    for dtype in (torch.float16, torch.bfloat16):
        back = x.to(dtype).to(torch.float32)
        lost = torch.isinf(back) | ((x - back).abs() > x.abs() * tol)
        if not lost.any():
            return dtype
    return torch.float32


equivalent(
    "back = x.to(dtype).float()",
    "back = x.to(dtype)",
    because="The subtraction from x promotes to float32, exactly; float() only says so.",
)
