"""Histograms, maps and grids as text: what stands where, in any size, with any signs."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.drawing.png import Pixels, encode
from tensortutor.drawing.spans import Look, text_of, width_of
from tensortutor.drawing.text import drawing_rows, lines
from tensortutor.protocol.drawings import (
    AreaMap,
    Bars,
    Block,
    Box,
    BoxGraph,
    CellGrid,
    Histogram,
    Series,
)
from tests.protocol.strategies import messages

LOOKS = [Look(unicode, colour) for unicode in (True, False) for colour in (True, False)]
ASCII = Look(False, False)


def text(drawing, look=ASCII, width=60) -> list[str]:
    return [line.rstrip() for line in lines(drawing, look, width)]


@given(
    st.sampled_from([Histogram, AreaMap, CellGrid, BoxGraph]).flatmap(messages), st.integers(1, 90),
    st.integers(1, 40), st.sampled_from(LOOKS),
)  # fmt: skip
def test_any_drawing_fits_any_size(drawing, width, height, look):
    rows = drawing_rows(drawing, width, height, look)
    assert len(rows) <= height
    assert all(width_of(text_of(row)) <= width for row in rows)
    if not look.unicode:
        assert all(text_of(row).isascii() for row in rows)


def test_a_histogram_in_ascii():
    bars = Bars("", (1, 4, 2), 9, nan=2, mean=1.2, std=0.5)
    assert text(Histogram("ages", (-0.5, 0.5, 1.5, 2.5), (bars,)), width=34) == [
        "ages",
        "4+          #########",
        " |          #########",
        " |          #########",
        " |          #########",
        "2+          ######### :::::::::",
        " |          ######### #########",
        " |......... ######### #########",
        " |######### ######### #########",
        " |######### ######### #########",
        " +-----+---------+---------+------",
        "       0         1         2",
        "9 values, mean 1.2, std 0.5, 2",
        "NaN.",
    ]


def test_several_series_stand_below_each_other_on_one_axis():
    series = tuple(Bars(label, (1, n, 1), n + 2) for n, label in enumerate("abc", 1))
    rows = text(Histogram("", (0.0, 1.0, 2.0, 3.0), series))
    names = [row.split()[0] for row in rows if row[:1] in "abc" and row.strip()]
    assert names == ["a", "b", "c"]
    assert rows[-1].split() == ["0", "1", "2", "3"]


def area_map(kind: str, numbers: list[list[int]], **fields) -> AreaMap:
    data = bytes(number for row in numbers for number in row)
    png = base64.b64encode(encode(Pixels(len(numbers[0]), len(numbers), 1, data))).decode()
    return AreaMap("map", kind, png, 0.0, 4.0, 0.0, 2.0, **fields)


def test_regions_have_a_texture_and_points_a_sign():
    points = Series("0", (1.0,), (1.0,), "points"), Series("1", (3.0,), (1.0,), "points")
    rows = text(area_map("regions", [[0, 1]], names=("0", "1"), series=points))
    assert rows[0] == "map    *  class 0 (region blank)    +  class 1 (region ...)"
    field = [row.split("|")[-1] for row in rows[1:-2] if "|" in row]
    blank = [row for row in field if "*" not in row]
    assert {row.replace("+", ".") for row in blank} == {" " * 28 + "." * 28}
    assert sum(row.count("*") for row in rows[1:]) == 1
    assert rows[-1].split() == ["0", "1", "2", "3", "4"]


def test_contour_lines_are_the_numbers_of_bands_and_a_path_has_a_start():
    path = Series("sgd", (0.5, 3.5), (0.5, 1.5))
    bands = area_map("contour", [[0, 2, 4, 6]], levels=(1, 2, 3, 4, 5, 6), series=(path,))
    rows = text(bands)
    assert rows[0] == "map    *  sgd   S start"
    assert rows[-1] == "lines: 1 at 2, 2 at 4, 3 at 6"
    field = [row.split("|")[-1] for row in rows if "|" in row]
    assert {sign for row in field for sign in row} == set(" .123*S")
    columns = {n for row in field for n, sign in enumerate(row) if sign in ".123"}
    lettered = {n: sign for row in field for n, sign in enumerate(row) if sign in "123"}
    assert len(columns) == 3
    assert [lettered[n] for n in sorted(columns)] == ["1", "2", "3"]


def test_cells_in_brackets_with_indices():
    block = Block(
        "", (0, 1, 9), (0, 1), tuple("123456"), (1.0, 2, 3, 4, 5, 6), (0, -1, -1, 1, 0, 0)
    )
    grid = CellGrid(
        "", (block,), 2, 1.0, 6.0, ("a", "b"), "int64 [10, 2]", "words", "7 rows left out"
    )
    assert text(grid) == [
        "   0  1",
        "0 [1] 2",
        "1  3 (4)",
        ":",
        "9 [5][6]",
        "[ ] a   ( ) b",
        "words",
        "int64 [10, 2]",
        "7 rows left out",
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_marks_bools_and_nan_are_seen_in_any_terminal(look):
    block = Block("", (0,), (0, 1, 2), ("1", "0", "nan"), (1.0, 0.0, None), (-1, 0, -1))
    rows = text(CellGrid("", (block,), 1, 0.0, 1.0, ("",), "bool [3]"), look)
    assert "nan" in "".join(rows)
    assert ("1#" in "".join(rows)) == (not look.unicode)
    assert any("[" in row.replace("\x1b[", "") for row in rows)


def test_blocks_stand_beside_each_other_while_they_fit():
    blocks = tuple(Block(f"[{n}]", (0,), (0, 1), ("1", "2"), (1.0, 2.0)) for n in range(3))
    grid = CellGrid("", blocks, 3, 1.0, 2.0)
    assert text(grid)[0].split() == ["[0]", "[1]", "[2]"]
    assert [row for row in text(grid, width=20) if row.startswith("[")] == [
        "[0]        [1]", "[2]",
    ]  # fmt: skip


def test_what_does_not_fit_is_said():
    wide = Block("", (0,), tuple(range(20)), ("1000",) * 20, (1.0,) * 20)
    rows = text(CellGrid("", (wide,), 1, 1.0, 1.0), width=40)
    assert rows[-1] == "15 columns do not fit here"
    assert rows[0].split() == ["0", "1", "2", "3", "19"]


def boxes(**parents: str) -> BoxGraph:
    names = list(parents)
    return BoxGraph("", tuple(
        Box(name, ("data 1", "grad 2"), tuple(sorted(map(names.index, behind))))
        for name, behind in parents.items()
    ))  # fmt: skip


def test_a_value_that_is_used_twice_is_one_box_with_two_arrows():
    assert text(boxes(a="", b="", c="ab", d="ac"), width=80) == [
        "+ a ---+",
        "|data 1|-+---------------+",
        "|grad 2| |    + c ---+   |  + d ---+",
        "+------+ +--->|data 1|-+ +->|data 1|",
        "+ b ---+   +->|grad 2| +--->|grad 2|",
        "|data 1|---+  +------+      +------+",
        "|grad 2|",
        "+------+",
    ]


def test_where_every_box_leads_to_every_other_each_line_has_an_end_of_its_own():
    assert text(boxes(a="", b="", c="ab", d="ab"), width=80) == [
        "+ a ---+      + c ---+",
        "|data 1|---+->|data 1|",
        "|grad 2| +-|->|grad 2|",
        "+------+ | |  +------+",
        "+ b ---+ | |  + d ---+",
        "|data 1|-+ +->|data 1|",
        "|grad 2| +--->|grad 2|",
        "+------+      +------+",
    ]


def test_a_graph_that_is_too_wide_is_a_list():
    assert text(boxes(a="", b="a", c="ab"), width=30) == [
        "a  data 1   grad 2",
        "b  data 1   grad 2   from a",
        "c  data 1   grad 2   from a, b",
    ]


def reached(rows: list[str], names: list[str]) -> dict[str, str]:
    """The boxes that the lines of a picture lead to, from each box."""
    sides = {"-": "LR", "|": "UD", "+": "LRUD", ">": "LR"}
    steps = {"L": (-1, 0, "R"), "R": (1, 0, "L"), "U": (0, -1, "D"), "D": (0, 1, "U")}
    wide = max(map(len, rows))
    field = [row.ljust(wide) for row in rows]
    lefts = {
        name: (row.index(f"+ {name} ")) for name in names for row in field if f"+ {name} " in row
    }
    tops = {name: n for name in names for n, row in enumerate(field) if f"+ {name} " in row}
    found = {}
    for name in names:
        start = (lefts[name] + 8, tops[name] + 1)
        waiting, seen, ends = [(start, "L")], set(), set()
        while waiting:
            (x, y), came = waiting.pop()
            if not (0 <= y < len(field) and 0 <= x < wide) or ((x, y), came) in seen:
                continue
            seen.add(((x, y), came))
            sign = field[y][x]
            if sign == ">":
                ends |= {
                    other for other in names if lefts[other] == x + 1 and 0 < y - tops[other] < 3
                }
            elif sign == "|" and came in "LR":  # it passes below the upright line
                dx, dy, back = steps["R"]
                waiting.append(((x + dx, y + dy), back))
            elif sign != " " and came in sides[sign]:
                for side in set(sides[sign]) - {came, "L"}:
                    dx, dy, back = steps[side]
                    waiting.append(((x + dx, y + dy), back))
        found[name] = "".join(sorted(ends))
    return found


@given(st.lists(st.sets(st.integers(0, 6), max_size=2), min_size=2, max_size=7))
def test_the_lines_of_a_graph_lead_to_the_right_boxes(parents):
    names = "abcdefg"[: len(parents)]
    earlier = [sorted(p for p in behind if p < n) for n, behind in enumerate(parents)]
    graph = boxes(**{name: "".join(names[p] for p in behind)
                     for name, behind in zip(names, earlier, strict=True)})  # fmt: skip
    rows = [text_of(row) for row in drawing_rows(graph, 300, 200, ASCII)]
    users = dict.fromkeys(names, "")
    for box in graph.boxes:
        for parent in box.parents:
            users[names[parent]] += box.name
    assert reached(rows, list(names)) == users
