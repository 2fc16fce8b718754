"""What `plot` takes, what it sends and how often, seen from the program that calls it."""

import collections
import math

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.lab import downsample, plot
from tensortutor.lab.display import EVERY_S, SHARE
from tensortutor.protocol.drawings import MOST_DRAWINGS, MOST_POINTS, MOST_SERIES

LEAF = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
VALUES = {
    "floats": [1.0, 2.0, 3.0],
    "ints": (1, 2, 3),
    "bools and ints": [True, 2, 3.0],
    "range": range(1, 4),
    "generator": (n for n in (1, 2, 3)),
    "deque": collections.deque([1, 2, 3], maxlen=3),
    "values of a dict": {"a": 1, "b": 2, "c": 3}.values(),
    "scalars with gradients": [value * 1 for value in LEAF],
    "scalars of several kinds": [torch.tensor(1), torch.tensor(2.0), numpy.float32(3)],
    "one element each": [torch.tensor([[1.0]]), torch.tensor([2.0]), torch.tensor([3.0])],
    "leaf": LEAF,
    "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0])),
    "bfloat16": torch.tensor([1, 2, 3], dtype=torch.bfloat16),
    "float8": torch.tensor([1.0, 2.0, 3.0]).to(torch.float8_e4m3fn),
    "int64": torch.tensor([1, 2, 3]),
    "uint8": torch.tensor([1, 2, 3], dtype=torch.uint8),
    "column": torch.tensor([[1.0], [2.0], [3.0]]),
    "every second": torch.arange(1, 6)[::2] / 2 + 0.5,
    "sparse": torch.tensor([1.0, 2.0, 3.0]).to_sparse(),
    "numpy": numpy.array([1, 2, 3], dtype=numpy.int16),
}


def last(sent):
    return sent[-1].series[0]


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_series_can_be_many_things(sent, values):
    plot(values)
    assert last(sent).ys == (1.0, 2.0, 3.0)
    assert last(sent).xs == (0.0, 1.0, 2.0)


def test_a_device_without_a_name_here_would_go_through_the_cpu(sent):
    with torch.device("meta"):  # what the program makes lies elsewhere; what it plots does not
        plot([torch.tensor(1.0, device="cpu"), 2.0])
    assert last(sent).ys == (1.0, 2.0)


def test_single_numbers_become_a_curve(sent, new_display):
    for step, loss in enumerate([torch.tensor(4.0, requires_grad=True), 2, numpy.float64(1.0)]):
        plot(loss, label="loss")
        plot(loss, 10 * step, label="steps")
    new_display.finish()
    curve, steps = sent[-1].series
    assert (curve.xs, curve.ys) == ((0.0, 1.0, 2.0), (4.0, 2.0, 1.0))
    assert steps.xs == (0.0, 10.0, 20.0)


def test_places_may_be_given(sent):
    plot([5, 6], torch.tensor([0.1, 0.2], dtype=torch.float64))
    assert last(sent).xs == (0.1, 0.2)
    plot([5, 6], [1, 2], points=True, title="cloud")
    assert last(sent).style == "points"


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((torch.zeros(3, 4),), ValueError, "shape [3, 4]. Plot one row of it"),
        ((torch.zeros(2, dtype=torch.complex64),), TypeError, "z.real or z.abs()"),
        ((torch.zeros(2, device="meta"),), TypeError, "none that can be read"),
        (("abc",), TypeError, "this is of the type str"),
        ((None,), TypeError, "this is of the type NoneType"),
        (({1: 2},), TypeError, "this is of the type dict"),
        (([1, "2"],), TypeError, "there is a str among them"),
        (([[1], [2]],), TypeError, "there is a list among them"),
        (([torch.zeros(2)],), TypeError, "there is a tensor of shape [2] among them"),
        (([torch.zeros((), device="meta")],), TypeError, "a tensor of shape []"),
        (([1, 2], [1, 2, 3]), ValueError, "2 ys and 3 xs"),
        (([1, 2], 3), TypeError, "many ys and a single x"),
    ],
)
def test_what_is_no_series_is_refused_in_a_sentence(sent, arguments, kind, words):
    with pytest.raises(kind) as error:
        plot(*arguments)
    assert words in str(error.value)
    assert not sent


def test_what_is_not_finite_is_a_gap_and_counted(sent):
    plot([1, math.nan, 3, math.inf, None, -math.inf, 10**400, 5])
    series = last(sent)
    assert series.ys == (1.0, None, 3.0, None, None, None, None, 5.0)
    assert (series.count, series.nan, series.inf, series.first) == (8, 2, 3, 1.0)


def test_a_point_without_a_place_is_left_out(sent):
    plot([1, 2, math.nan], [math.nan, 7, 8])
    assert (last(sent).xs, last(sent).ys, last(sent).first) == ((7.0, 8.0), (2.0, None), 8.0)


def test_labels_share_a_plot_and_titles_do_not(sent, new_display):
    plot([1], label="a", title="one")
    plot([2], label="b", title="one")
    plot([3], label="a", title="one")
    plot([4], title="two")
    new_display.finish()
    found = {plot.title: {s.label: s.ys for s in plot.series} for plot in sent}
    assert found == {"one": {"a": (3.0,), "b": (2.0,)}, "two": {"": (4.0,)}}


def test_series_beyond_the_most_are_counted(sent, new_display):
    for number in range(MOST_SERIES + 3):
        plot([number], label=f"{number}")
        plot([number], label=f"{number}")
    new_display.finish()
    assert len(sent[-1].series) == MOST_SERIES
    assert sent[-1].left_out == 3


def test_titles_without_end_send_no_more_than_shows_that_there_are_more(sent):
    for number in range(3 * MOST_DRAWINGS):
        plot([number], title=f"{number}")
    assert len(sent) == MOST_DRAWINGS + 1


class Counting(list):
    """A list that knows how often it has been gone through."""

    reads = 0

    def __iter__(self):
        type(self).reads += 1
        return super().__iter__()


def test_a_loop_reads_its_list_only_when_it_is_time(sent, new_display, clock, monkeypatch):
    monkeypatch.setattr(Counting, "reads", 0)
    losses = Counting()
    for step in range(10_000):
        losses.append(step)
        plot(losses)
        clock.now += EVERY_S / 100
    assert Counting.reads == len(sent) <= 101
    new_display.finish()
    assert last(sent).count == 10_000
    assert last(sent).ys[-1] == 9_999


def test_drawing_takes_no_more_than_its_share_of_the_time(sent, clock):
    class Slow(list):
        def __iter__(self):
            clock.now += 2.0
            return super().__iter__()

    plot(Slow([1.0]))
    begun = clock.now
    while len(sent) == 1:
        clock.now += 0.5
        plot(Slow([1.0]))
    assert clock.now - 2.0 - begun >= 2.0 / SHARE


def test_a_state_that_was_passed_over_is_sent_in_the_end_once(sent, new_display):
    plot([1])
    plot([1, 2])
    assert len(sent) == 1
    new_display.finish()
    new_display.finish()
    assert [plot.series[0].count for plot in sent] == [1, 2]


def test_a_list_is_drawn_as_long_as_it_was(sent, new_display):
    values = [1, 2]
    plot([0])
    plot(values)
    values.append(3)
    new_display.finish()
    assert last(sent).ys == (1.0, 2.0)


def test_a_list_that_is_emptied_keeps_its_last_curve(sent, new_display, clock):
    window = [1, 2, 3]
    plot(window)
    clock.now += 1
    window.append(4)
    plot(window)
    window.append(5)
    plot(window)
    window.clear()
    new_display.finish()
    assert last(sent).ys == (1.0, 2.0, 3.0, 4.0)


def test_a_tensor_that_changes_in_place_was_drawn_as_it_was(sent, new_display):
    weights = torch.ones(3)
    plot([0])
    plot(weights)
    weights.zero_()
    new_display.finish()
    assert last(sent).ys == (1.0, 1.0, 1.0)


def test_a_line_that_is_closed_does_not_stop_the_program(new_display):
    def closed(_drawing):
        raise BrokenPipeError

    new_display.connect(closed)
    plot([1, 2])


def test_words_of_any_length_fit(sent):
    plot([1], label="l" * 1000, title="t" * 1000)
    assert len(sent[0].title) == len(sent[0].series[0].label) == 200


NUMBERS = st.floats(width=32) | st.sampled_from([math.nan, math.inf, 0.0])


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.integers(1, 400), st.booleans())
def test_thinning_keeps_the_ends_the_extremes_and_the_order(some, times, winds):
    ys = some * times
    xs = [math.sin(n) for n in range(len(ys))] if winds else None
    series = downsample.series("", "line", xs, ys)
    assert len(series.xs) <= min(len(ys), MOST_POINTS)
    finite = [y for y in ys if math.isfinite(y)]
    kept = [y for y in series.ys if y is not None]
    assert (series.nan, series.inf) == (
        sum(map(math.isnan, ys)),
        sum(map(math.isinf, ys)),
    )
    assert (len(kept) < len(series.ys)) == (len(finite) < len(ys))
    if finite:
        short = downsample.short
        assert (min(kept), max(kept)) == (short(min(finite)), short(max(finite)))
    if winds:
        assert max(series.xs) == downsample.short(max(xs))
    else:
        assert (series.xs[0], series.xs[-1]) == (0.0, float(len(ys) - 1))
        assert list(series.xs) == sorted(series.xs)


def test_a_spike_among_many_values_stays(sent):
    values = [0.0] * 100_000
    values[12_345], values[77_777] = 50.0, -50.0
    plot(values)
    assert {50.0, -50.0} <= set(last(sent).ys)
    assert last(sent).count == 100_000
