"""Plots as text: what stands where, in any size, with any signs."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.drawing.plot import plot_rows
from tensortutor.drawing.scale import Scale, scale_of, written
from tensortutor.drawing.spans import Look, clean, text_of, width_of
from tensortutor.protocol.drawings import Plot, Series
from tests.protocol.strategies import messages

LOOKS = [Look(unicode, colour) for unicode in (True, False) for colour in (True, False)]


def series(ys, label="", xs=None, **more):
    xs = tuple(map(float, range(len(ys)))) if xs is None else xs
    return Series(label, xs, tuple(ys), count=len(ys), **more)


def drawn(plot, width=40, height=10, look=LOOKS[0], **more):
    return [text_of(row).rstrip() for row in plot_rows(plot, width, height, look, **more)]


LOSS = Plot("loss", (series([8.0, 4.0, 2.0, 1.0, 0.5], "train"),))


def test_a_curve_with_axes_in_braille():
    assert drawn(LOSS, 30, 9) == [
        "loss   ● train 0.5",
        "7.5┤⠑⢄",
        "   │  ⠑⠤⡀",
        "5.0┤    ⠈⠢⡀",
        "   │      ⠈⠑⠢⢄⡀",
        "2.5┤          ⠈⠑⠢⠤⢄⣀",
        "   │                ⠉⠉⠑⠒⠒⠤⠤⠤⣀⣀",
        "   └┬────────────┬───────────┬",
        "    0            2           4",
    ]


def test_the_same_in_ascii():
    assert drawn(LOSS, 30, 9, LOOKS[2]) == [
        "loss   * train 0.5",
        "7.5+'.",
        "   |  '.",
        "5.0+    '.",
        "   |      ''.",
        "2.5+         '''....",
        "   |                '''''''...",
        "   ++-----------+------------+",
        "    0           2            4",
    ]


def test_several_curves_keep_apart_by_sign_and_colour():
    both = Plot("", (series([0.0, 1.0], "up"), series([1.0, 0.0], "down")))
    for look in LOOKS:
        rows = plot_rows(both, 40, 12, look)
        signs = "●○" if look.unicode else "*+"
        assert text_of(rows[0]) == f"{signs[0]} up 1   {signs[1]} down 0"
        for number, sign in enumerate(signs):
            spans = [span for row in rows[1:] for span in row if sign in span.text]
            assert any(span.series == number for span in spans), (look, sign)
            # ASCII's own axis has a "+" too; what belongs to no series is no curve.
            assert {span.series for span in spans} <= {number, -1}


def test_points_are_not_joined():
    ys, xs = (0.0, 5.0, 10.0), (0.0, 10.0, 5.0)
    joined = "".join(drawn(Plot("", (series(ys, xs=xs),))))
    apart = "".join(drawn(Plot("", (series(ys, xs=xs, style="points"),))))
    assert sum(char > "⠀" for char in apart) == 3
    assert sum("⠀" < char <= "⣿" for char in joined) > 10


def test_a_gap_is_left_and_said():
    plot = Plot("", (series([1.0, 1.0, None, None, 1.0, 1.0], "a", nan=1, inf=1, first=2.0),))
    rows = drawn(plot, 44, 8)
    (curve,) = (row for row in rows if "⠉" in row)
    assert curve == "1.0┤" + "⠉" * 8 + "⠁" + " " * 22 + "⠈" + "⠉" * 8
    assert rows[-1] == "a: 1 NaN and 1 inf of 6 values, first at 2."


def test_series_left_out_are_said():
    assert drawn(Plot("", (series([1.0]),), left_out=2))[-1] == "2 more series are not drawn."


@pytest.mark.parametrize("ys", [(), (None, None)])
def test_without_numbers_there_are_words(ys):
    assert "no numbers to draw yet" in drawn(Plot("t", (series(ys),)))


def test_words_from_outside_do_nothing_to_a_terminal():
    plot = Plot("\x1b[2J\u202e", (series([1.0], "\x1b]0;x\x07日本\n"),))
    for look in LOOKS:
        text = "".join(map(text_of, plot_rows(plot, 60, 10, look)))
        assert text.isprintable()
        assert "日本" in text or not look.unicode


@given(messages(Plot), st.integers(1, 60), st.integers(1, 20), st.sampled_from(LOOKS))
def test_any_plot_fits_any_size(plot, width, height, look):
    rows = plot_rows(plot, width, height, look)
    assert len(rows) <= height
    for row in rows:
        text = text_of(row)
        assert width_of(text) <= width
        assert text.isprintable()
        assert look.unicode or text.isascii()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4))
def test_any_scale_holds_its_values_and_its_ticks(values):
    scale = scale_of(values)
    assert scale is not None
    assert scale.low < scale.high
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert scale.place(scale.low, 50) == 0
    assert scale.place(scale.high, 50) == 49
    for most in (1, 3, 8):
        ticks = scale.ticks(most)
        assert len(ticks) <= most + 1
        assert all(len(text) < 20 for _, text in ticks)
        assert len({text for _, text in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("scale", "most", "texts"),
    [
        (Scale(0, 1), 3, ["0.0", "0.5", "1.0"]),
        (Scale(0, 1), 4, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (Scale(0.02, 1.31), 3, ["0.5", "1.0"]),
        (Scale(-3, 7), 5, ["-2", "0", "2", "4", "6"]),
        (Scale(-0.001, 0.001), 4, ["-0.0010", "-0.0005", "0.0000", "0.0005", "0.0010"]),
        (Scale(0, 3e-6), 3, ["0", "1e-6", "2e-6", "3e-6"]),
        (Scale(0, 25_000_000), 3, ["0", "1e7", "2e7"]),
        (Scale(1e7, 1.0002e7), 3, ["1.0000e7", "1.0001e7", "1.0002e7"]),
        (Scale(0, 4, whole=True), 9, ["0", "1", "2", "3", "4"]),
        (Scale(100, 10_000), 5, ["2000", "4000", "6000", "8000", "10000"]),
    ],
)
def test_ticks_are_round_numbers(scale, most, texts):
    assert [text for _, text in scale.ticks(most)] == texts


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.0, "3"), (-0.123456, "-0.1235"), (1e-9, "1e-9"), (123456.0, "123456")],
)
def test_numbers_are_short(value, text):
    assert written(value) == text


def test_what_is_short_of_room_gives_way_in_order():
    plot = dataclasses.replace(LOSS, left_out=1)
    assert drawn(plot, 40, 7)[0].startswith("loss")
    assert len(drawn(plot, 40, 5)) == 5
    assert not any("loss" in row for row in drawn(plot, 40, 5))
    assert drawn(plot, 6, 3) == drawn(plot, 6, 3, titled=False)


def test_text_is_measured_in_cells():
    assert width_of("日本é") == 5
    assert clean("e\u0301 \t x\x00", LOOKS[0]) == "e\u0301 x?"
    assert clean("é", LOOKS[2]) == "?"


def earlier_rows(new, old, look=LOOKS[0], height=12):
    rows = plot_rows(Plot("", (series(new, "train"),)), 40, height, look, earlier=[series(old)])
    return [row for row in rows if len(row) > 1]


@pytest.mark.parametrize("look", LOOKS)
def test_an_earlier_run_is_drawn_dimmed_behind(look):
    head, *rows = earlier_rows([4.0, 2.0, 1.0], [4.0, 3.5, 3.0, 2.5, 2.0], look)
    assert text_of(head).endswith("an earlier run")
    field = [span for row in rows for span in row[1:] if span.text.strip()]
    assert {(span.series, span.dim) for span in field} == {(0, False), (-1, True)}
    # The axis reaches as far as the earlier curve: the new one ends half way.
    before = [text_of(row[:n]) for row in rows for n, span in enumerate(row) if span.series == 0]
    assert max(map(len, before)) < 25


def test_an_earlier_run_that_blew_up_does_not_flatten_this_one():
    new = [4.0, 2.0, 1.0]
    rows = earlier_rows(new, [4.0, 1e30, 3.0])
    alone = plot_rows(Plot("", (series(new, "train"),)), 40, 12, LOOKS[0])
    margins = [[row[0].text for row in some if "│" in row[0].text] for some in (rows, alone)]
    assert margins[0] == margins[1]
