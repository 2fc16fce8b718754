"""Judges lessons/01_tensors/01_tensor_birth.md."""

import sys

import torch

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_equal,
    expect_shape,
    expect_true,
    mutant,
)


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


@check("the top left cell is 0")
def corner(answer, rng, device):
    n = rng.randrange(2, 9)
    got = answer.checkerboard(n, torch.int64, device)
    expect_shape(got, (n, n), name="the board")
    expect_true(
        got[0, 0].item() == 0,
        f"the top left cell of a board of {n} is not 0",
        hint="The colours are swapped. Which cells have an even i + j?",
    )


@check("neighbours differ, whether n is odd or even")
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


@check("the dtype is the one asked for")
def dtypes(answer, rng, device):
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool):
        n = rng.randrange(3, 9)
        got = answer.checkerboard(n, dtype, device)
        expect_equal(
            got,
            right(n, dtype, device),
            name=f"the board of {n} for {dtype}",
            dtype_hint="dtype is the caller's choice. Convert the finished board to it.",
            hint="Count in integers and convert the finished board: bool cannot count, "
            "and 1 + 1 in bool is still True.",
        )


@check("boards of 0, 1 and 2 work")
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


@check("the board lives on the device asked for")
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


@check("a larger board takes no more Python steps")
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


@mutant("ignores the dtype", caught_by=dtypes)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device)
    return (i.reshape(n, 1) + i) % 2


@mutant("converts before it counts", caught_by=dtypes)
def checkerboard(n, dtype, device):
    i = torch.arange(n, device=device).to(dtype)
    return (i.reshape(n, 1) + i) % 2


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


equivalent(
    "return ((i.reshape(n, 1) + i) % 2).to(dtype)",
    "return ((i.reshape(n, 1) - i) % 2).to(dtype)",
    because="A sum and a difference of two whole numbers are both even or both odd.",
)
