"""Histograms, maps and grids as text: what stands where, in any size, with any signs."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.drawing.png import Pixels, encode
from tensortutor.drawing.spans import Look, text_of, width_of
from tensortutor.drawing.text import drawing_rows, lines
from tensortutor.protocol.drawings import AreaMap, Bars, Block, CellGrid, Histogram, Series
from tests.protocol.strategies import messages

LOOKS = [Look(unicode, colour) for unicode in (True, False) for colour in (True, False)]
ASCII = Look(False, False)


def text(drawing, look=ASCII, width=60) -> list[str]:
    return [line.rstrip() for line in lines(drawing, look, width)]


@given(
    st.sampled_from([Histogram, AreaMap, CellGrid]).flatmap(messages), st.integers(1, 90),
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
    assert rows[-1] == "0 2 1 4 2 6 3"
    field = [row.split("|")[-1] for row in rows if "|" in row]
    assert {sign for row in field for sign in row} == set(" 123*S")
    assert "".join(field[0].split()) == "123"


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
