"""What `hist` counts, of what, and what it refuses."""

import numpy
import pytest
import torch

from tensortutor.lab import hist
from tensortutor.protocol.drawings import MOST_SERIES
from tensortutor.protocol.events import event_to_json
from tensortutor.protocol.framing import LARGEST, encode

ZERO_TO_THREE = (-0.5, 0.5, 1.5, 2.5, 3.5)
VALUES = {
    "ints": torch.tensor([0, 1, 1, 3]),
    "matrix": torch.tensor([[0, 1], [1, 3]]),
    "list": [0, 1, 1, 3],
    "generator": (n for n in (0, 1, 1, 3)),
    "numpy": numpy.array([0.0, 1.0, 1.0, 3.0]),
    "scalars": [torch.tensor(n, requires_grad=True) for n in (0.0, 1.0, 1.0, 3.0)],
    "half": torch.tensor([0, 1, 1, 3], dtype=torch.float16),
    "bfloat16": torch.tensor([0, 1, 1, 3], dtype=torch.bfloat16),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_whole_numbers_have_a_bin_each(sent, values):
    hist(values)
    assert sent[0].edges == ZERO_TO_THREE
    assert [bars.counts for bars in sent[0].series] == [(1, 2, 0, 1)]


def test_series_share_their_bins_and_have_labels(sent):
    hist({"a": torch.zeros(3), "b": [1, 2, 3]}, title="dict")
    hist([torch.zeros(3), torch.ones(2)], title="list")
    hist([[0, 0], [1, 2]], by=["x", "y"], title="lists")
    hist([0, 1, 2, 2], by=torch.tensor([10, 9, 9, 10]), title="values")
    assert [[bars.label for bars in event.series] for event in sent] == [
        ["a", "b"], ["[0]", "[1]"], ["x", "y"], ["9", "10"],
    ]  # fmt: skip
    assert [bars.counts for bars in sent[0].series] == [(3, 0, 0, 0), (0, 1, 1, 1)]
    assert [bars.counts for bars in sent[3].series] == [(0, 1, 1), (1, 0, 1)]


def test_what_is_not_finite_is_counted_apart(sent):
    hist(torch.tensor([0.0, 2.0, torch.nan, torch.inf, -torch.inf, torch.nan]), bins=2)
    (bars,) = sent[0].series
    assert (bars.counts, bars.count, bars.nan, bars.inf) == ((1, 1), 6, 2, 2)
    assert (bars.mean, bars.std) == (1.0, 1.0)
    hist(torch.full((3,), torch.nan), title="nothing")
    assert (sent[1].edges, sent[1].series[0].counts) == ((), ())


def test_many_values_are_all_counted_and_the_event_stays_small(sent):
    hist(torch.arange(1_000_000) % 1_000)
    assert sum(sent[0].series[0].counts) == 1_000_000
    assert len(encode(event_to_json(sent[0]))) < LARGEST / 50
    hist({str(n): [n] for n in range(MOST_SERIES + 3)}, title="series")
    assert (len(sent[1].series), sent[1].left_out) == (MOST_SERIES, 3)


@pytest.mark.parametrize("values", [[3.0], [8e307, -8e307], [1e-300, 2e-300], [2**62, -(2**62)]])
def test_extreme_values_have_bins(sent, values):
    hist(values)
    assert sum(sent[0].series[0].counts) == len(values)


def test_edges_may_be_given(sent):
    hist([0.0, 0.5, 1.0, 9.0], bins=[0, 0.75, 1])
    assert (sent[0].edges, sent[0].series[0].counts) == ((0.0, 0.75, 1.0), (2, 1))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("text",), TypeError, "hist needs numbers, and cannot read this str"),
        ((["a", "b"],), TypeError, "hist needs numbers, and cannot read this list"),
        ((torch.ones(2, dtype=torch.complex64),), TypeError, "give it z.real or z.abs()"),
        ((torch.ones(2, device="meta"),), TypeError, "has none that can be read"),
        (([1, 2], [1, 2, 3]), ValueError, "2 values and 3 labels"),
        (([[1], [2]], "ab"), TypeError, "labels in `by`, and this is a str"),
        (({"a": [1]}, ["a"]), ValueError, "the dict's keys are the labels"),
        (([1, 2], None, 0), ValueError, "1 to 200 bins, and `bins` is 0"),
        (([1, 2], None, [2, 1]), ValueError, "edges in rising order"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_a_sentence(sent, arguments, error, words):
    with pytest.raises(error) as caught:
        hist(*arguments)
    assert words in str(caught.value)


def test_a_loop_counts_only_when_it_is_time(sent, new_display, clock):
    weights = torch.zeros(3)
    for _ in range(1_000):
        hist(weights, title="weights")
        weights += 1  # what was handed in is what is drawn
    new_display.finish()
    assert [event.series[0].mean for event in sent] == [0.0, 999.0]
