"""Judges lessons/01_tensors/01_tensor_birth.md."""

import sys

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_shape,
    expect_true,
    hinted,
    mutant,
)

background("F5 draws your board, F9 checks it, F2 gives a hint.")


def right(n, dtype, device):
    """The board, cell by cell."""
    cells = [[(i + j) % 2 for j in range(n)] for i in range(n)]
    return torch.tensor(cells, dtype=dtype, device=device).reshape(n, n)


def steps_of(call):
    """How many lines Python executes during `call`; a turn of a loop counts as one at least."""
    count = 0

    def tracer(frame, event, arg):
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@check("the top left cell is 0", holds=["The top left cell is 0.", "the top left cell is 0."])
def corner(answer, rng, device):
    n = rng.randrange(2, 9)
    got = answer.checkerboard(n, torch.int64, device)
    expect_shape(got, (n, n), name="the board")
    expect_true(
        got[0, 0].item() == 0,
        f"the top left cell of a board of {n} is not 0",
        hint="The colours are swapped. Which cells have an even i + j?",
    )


@check(
    "neighbours differ, whether n is odd or even",
    holds=[
        "an n by n tensor of zeros and ones in which every cell differs from the cells beside, "
        "above and below it",
        "Zeros and ones in turn",
        "returns: tensor of shape (n, n)",
    ],
)
def neighbours(answer, rng, device):
    for n in (2 * rng.randrange(1, 5) + 1, 2 * rng.randrange(1, 5)):
        got = answer.checkerboard(n, torch.int64, device)
        expect_shape(got, (n, n), name="the board")
        hint = "The colour hangs on the row and on the column, and each step changes it."
        expect_true(
            bool((got[:, 1:] != got[:, :-1]).all()),
            f"on a board of {n}, a cell is equal to the one on its right",
            hint=hint,
        )
        expect_true(
            bool((got[1:] != got[:-1]).all()),
            f"on a board of {n}, a cell is equal to the one below it",
            hint=hint + " Numbering all cells and taking every second one gives "
            "stripes when n is even: each row begins like the one above.",
        )


@check(
    "the dtype is the one asked for",
    holds=[
        "The caller says which dtype comes out",
        "dtype: of the result, such as torch.float32 or torch.bool",
    ],
    both_sides=True,
)
def dtypes(answer, rng, device):
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool, torch.float16):
        n = rng.randrange(3, 9)
        counting = "bool cannot count. Count in integers, and convert the finished board."
        with advising(NotImplementedError, hint=counting):
            got = answer.checkerboard(n, dtype, device)
        expect_equal(
            got,
            right(n, dtype, device),
            name=f"the board of {n} for {dtype}",
            dtype_hint="dtype is the caller's choice. Convert the finished board to it.",
            hint="Count in integers and convert the finished board: bool cannot count, "
            "and 1 + 1 in bool is still True.",
        )


@check(
    "a larger board takes no more Python steps",
    holds="Use whole tensors, no loop and no comprehension.",
)
def no_loop(answer, rng, device):
    few, many = 4, 4 + 8 * rng.randrange(7, 10)

    def build(n):
        got = answer.checkerboard(n, torch.float32, device)
        expect_shape(got, (n, n), name="the board")

    build(few)  # whatever is imported at the first call is not counted
    small, large = steps_of(lambda: build(few)), steps_of(lambda: build(many))
    expect_true(
        large < small + 40,
        f"a board of {few} takes {small} steps of Python, a board of {many} takes {large}",
        hint="Something goes round once per row or per cell. Let a column meet a row: "
        "one expression makes all cells.",
    )


@check("boards of 0, 1 and 2 work", holds="n: rows and columns, 0 or more", both_sides=True)
def small(answer, rng, device):
    for n in (0, 1, 2):
        got = answer.checkerboard(n, torch.float32, device)
        expect_equal(
            got,
            right(n, torch.float32, device),
            name=f"the board of {n}",
            shape_hint="n is the number of rows and of columns, be it 0. Most tensor "
            "code needs no special case for that.",
            hint="A board of 1 is a 0. A board of 2 is 0 1 above 1 0.",
        )


@check(
    "a large board in a small dtype has no error in it",
    holds=["every cell differs from the cells beside, above and below it", "dtype: of the result"],
    both_sides=True,
)
def large(answer, rng, device):
    for dtype, least in ((torch.bfloat16, 300), (torch.int8, 300), (torch.float16, 1100)):
        n = rng.randrange(least, least + 30)
        i = torch.arange(n, device=device)
        expect_equal(
            answer.checkerboard(n, dtype, device),
            ((i[:, None] ^ i) & 1).to(dtype),
            name=f"the board of {n} for {dtype}",
            hint="A small dtype cannot count that far. Count in integers, and convert the "
            "finished board.",
        )


@check(
    "the board lives on the device asked for",
    holds=[
        "on which device it lives",
        "The device `meta` may be asked for too",
        "device: where the result lives",
    ],
)
def devices(answer, rng, device):
    for where in (device, torch.device("meta")):
        n = rng.randrange(2, 9)
        got = answer.checkerboard(n, torch.float32, where)
        expect_shape(got, (n, n), name="the board")
        expect_true(
            got.device == torch.empty(0, device=where).device,
            f"the board is on {got.device}, the caller asked for {where}",
            hint="A factory that is told no device builds on the CPU. Each factory "
            "that you call takes device=.",
        )


@mutant("counts in float16, whatever comes out", caught_by=large)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device).half()
    return ((i[:, None] + i) % 2).to(dtype)


@mutant("starts with 1", caught_by=corner)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return ((i.reshape(n, 1) + i + 1) % 2).to(dtype)


@mutant("numbers the cells and takes every second one", caught_by=neighbours)
def checkerboard(n, dtype, device):
    return (torch.arange(n * n, device=device).reshape(n, n) % 2).to(dtype)


@mutant("multiplies row and column", caught_by=neighbours)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return ((i.reshape(n, 1) * i) % 2).to(dtype)


@mutant("alternates along the row only", caught_by=neighbours)
def checkerboard(n, dtype, device):
    row = torch.arange(n, device=device) % 2
    return (torch.zeros(n, 1, dtype=torch.int64, device=device) + row).to(dtype)


@mutant("tiles a small board and does not cut it", caught_by=neighbours)
def checkerboard(n, dtype, device):
    tile = torch.tensor([[0, 1], [1, 0]], dtype=dtype, device=device)
    return tile.repeat(n // 2, n // 2)


@mutant("writes the ones of every second row only", caught_by=neighbours)
def checkerboard(n, dtype, device):
    board = torch.zeros(n, n, dtype=dtype, device=device)
    board[::2, 1::2] = 1
    return board


@mutant("stacks rows that a comprehension makes", caught_by=no_loop)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return torch.stack([(i + r) % 2 for r in range(n)]).to(dtype)


@mutant("ignores the dtype", caught_by=dtypes)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return (i.reshape(n, 1) + i) % 2


@mutant("converts before it counts", caught_by=dtypes)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device).to(dtype)
    return (i.reshape(n, 1) + i) % 2


@mutant("converts before it counts, bool excepted", caught_by=large)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    if dtype != torch.bool:
        i = i.to(dtype)
    return ((i.reshape(n, 1) + i) % 2).to(dtype)


@mutant("leaves the sums, which are more than zeros and ones", caught_by=dtypes)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return (i.reshape(n, 1) + i).to(dtype)


@mutant("forgets the smallest boards", caught_by=small)
def checkerboard(n, dtype, device):
    i = torch.arange(max(n, 2), device=device)
    return ((i.reshape(-1, 1) + i) % 2).to(dtype)


@mutant("builds on the CPU", caught_by=devices)
def checkerboard(n, dtype, device):
    i = torch.arange(n)
    return ((i.reshape(n, 1) + i) % 2).to(dtype)


@mutant("fills cell by cell", caught_by=no_loop)
def checkerboard(n, dtype, device):
    board = torch.zeros(n, n, dtype=dtype, device=device)
    for i in range(n):
        for j in range(n):
            board[i, j] = (i + j) % 2
    return board


@mutant("builds the lists in a comprehension", caught_by=no_loop)
def checkerboard(n, dtype, device):
    cells = [[(i + j) % 2 for j in range(n)] for i in range(n)]
    return torch.tensor(cells, dtype=dtype, device=device).reshape(n, n)


@mutant("makes rows by repeating a list", caught_by=no_loop)
def checkerboard(n, dtype, device):
    even, odd = [j % 2 for j in range(n)], [1 - j % 2 for j in range(n)]
    rows = [even if i % 2 == 0 else odd for i in range(n)]
    return torch.tensor(rows, dtype=dtype, device=device).reshape(n, n)


@hinted(1, reaches=neighbours)
def checkerboard(n, dtype, device):
    column = torch.arange(n).reshape(n, 1)
    return column + torch.arange(n)


@accepted("writes ones into every second cell of every second row")
def checkerboard(n, dtype, device):
    board = torch.zeros(n, n, dtype=dtype, device=device)
    board[::2, 1::2] = 1
    board[1::2, ::2] = 1
    return board


@accepted("asks whether row and column differ in parity")
def checkerboard(n, dtype, device):
    odd = torch.arange(n, device=device) % 2 == 1
    return (odd[:, None] != odd).to(dtype)


@accepted("tiles a small board and cuts it to size")
def checkerboard(n, dtype, device):
    tile = torch.tensor([[0, 1], [1, 0]], dtype=dtype, device=device)
    half = (n + 1) // 2
    return tile.repeat(half, half)[:n, :n]


@accepted("writes the coordinates out with meshgrid")
def checkerboard(n, dtype, device):
    axis = torch.arange(n, device=device)
    i, j = torch.meshgrid(axis, axis, indexing="ij")
    return torch.remainder(i + j, 2).to(dtype)


@accepted("compares the last bits of row and column")
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return ((i[:, None] ^ i) & 1).to(dtype)


@accepted("numbers the cells of an odd width and cuts the board to size")
def checkerboard(n, dtype, device):
    width = n + 1 - n % 2
    cells = torch.arange(n * width, device=device).reshape(n, width)
    return (cells[:, :n] % 2).to(dtype)


equivalent(
    "return ((i.reshape(n, 1) + i) % 2).to(dtype)",
    "return ((i.reshape(n, 1) - i) % 2).to(dtype)",
    because="A sum and a difference of two whole numbers are both even or both odd.",
)
