"""What stands in the cells of `grid`, and what of a large tensor is left out."""

import numpy
import pytest
import torch

from tensortutor.lab import grid
from tensortutor.protocol.events import event_to_json
from tensortutor.protocol.framing import LARGEST, encode

NAN, INF = torch.nan, torch.inf


@pytest.mark.parametrize(
    ("tensor", "texts"),
    [
        (torch.tensor([1, -20]), ("1", "-20")),
        (torch.tensor([1.0, 2.0]), ("1.", "2.")),
        (torch.tensor([0.5, 1 / 3]), ("0.50", "0.33")),
        (torch.tensor([0.5, -0.25]), ("0.50", "-0.25")),
        (torch.tensor([-0.001, 1.0]), ("0.00", "1.00")),
        (torch.tensor([1e-5, 0.0]), ("1e-5", "0.")),
        (torch.tensor([1e9, 2.5]), ("1e9", "2.5e0")),
        (torch.tensor([NAN, INF]), ("nan", "inf")),
        (torch.tensor([-INF, 1.0]), ("-inf", "1.")),
        (torch.tensor([True, False]), ("1", "0")),
        (torch.tensor([2**40, 1]), ("1.1e12", "1")),
        (torch.tensor([1.5, 2.0], dtype=torch.bfloat16), ("1.5", "2.0")),
        (numpy.array([1, 2], dtype=numpy.uint8), ("1", "2")),
        ([torch.tensor(1.0, requires_grad=True), 2], ("1.", "2.")),
    ],
)
def test_values_are_written_short(sent, tensor, texts):
    grid(tensor)
    assert sent[0].blocks[0].texts == texts


@pytest.mark.parametrize(
    ("shape", "labels", "rows"),
    [
        ((), [""], 1), ((3,), [""], 1), ((2, 3), [""], 2), ((2, 2, 3), ["[0]", "[1]"], 2),
        ((2, 1, 2, 3), ["[0, 0]", "[1, 0]"], 2),
    ],
)  # fmt: skip
def test_each_matrix_is_a_block(sent, shape, labels, rows):
    values = torch.arange(torch.Size(shape).numel()).reshape(shape)
    grid(values)
    blocks = sent[0].blocks
    assert [block.label for block in blocks] == labels
    assert {len(block.rows) for block in blocks} == {rows}
    assert [float(t) for b in blocks for t in b.texts] == values.reshape(-1).tolist()
    assert sent[0].about == f"int64 {list(shape)}"


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [
        ((0, 2), [(0, 2)]),
        (1, [(1, 0), (1, 1), (1, 2)]),
        ((slice(None), -1), [(0, 2), (1, 2)]),
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)]),
        (torch.tensor([[0, 0], [1, 1]]), [(0, 0), (1, 1)]),
        (torch.tensor([[True, False, False], [False, True, False]]), [(0, 0), (1, 1)]),
        ([[True, False, False], [False, True, False]], [(0, 0), (1, 1)]),
        (numpy.eye(2, 3, dtype=bool), [(0, 0), (1, 1)]),
        ([], []),
    ],
)
def test_cells_are_marked_by_index_or_mask(sent, marks, wanted):
    grid(torch.zeros(2, 3), marks)
    marked = [n for n, mark in enumerate(sent[0].blocks[0].marks) if mark == 0]
    assert marked == [row * 3 + column for row, column in wanted]


def test_marks_have_labels_and_the_later_shows(sent):
    grid(torch.zeros(3), {"old": [0, 1], "new": [1]}, "two marks")
    assert sent[0].marks == ("old", "new")
    assert sent[0].blocks[0].marks == (0, 1, -1)
    assert sent[0].caption == "two marks"


def test_a_large_tensor_shows_its_ends_and_tells_the_rest(sent):
    grid(torch.arange(40 * 60 * 100).reshape(100, 40, 60), marks=(0, 20))
    event = sent[0]
    assert len(event.blocks) == 8
    assert event.blocks[0].rows == (*range(14), 38, 39)
    assert event.blocks[0].columns[-3:] == (21, 58, 59)
    assert event.blocks[1].texts[-1] == str(2 * 40 * 60 - 1)
    assert event.note == "24 rows, 36 columns, 92 blocks, 60 marked cells left out"
    assert len(encode(event_to_json(event))) < LARGEST / 10
    grid(torch.zeros(1).expand(10_000, 10_000), title="expanded")
    assert sent[1].note.startswith("9984 rows, 9976 columns")


def test_what_is_not_finite_has_no_colour(sent):
    grid(torch.tensor([NAN, 1.0, INF, 3.0]))
    assert sent[0].blocks[0].values == (None, 1.0, None, 3.0)
    assert (sent[0].low, sent[0].high) == (1.0, 3.0)
    grid(torch.zeros(0, 3), title="empty")
    assert sent[1].blocks[0].texts == ()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("text",), TypeError, "cannot read this str"),
        ((torch.zeros(2, dtype=torch.complex64),), TypeError, "z.real or z.abs()"),
        ((torch.zeros(2, device="meta"),), TypeError, "none that can be read"),
        ((torch.zeros(2, 3), (2, 0)), IndexError, "cannot mark (2, 0) in a tensor of shape [2, 3]"),
        ((torch.zeros(2), torch.zeros(3) > 0), ValueError, "mask of shape [3]"),
        (([torch.zeros(2), torch.zeros(3)],), ValueError, "different shapes: [2], [3]"),
    ],
)
def test_what_has_no_cells_is_refused_in_a_sentence(sent, arguments, error, words):
    with pytest.raises(error) as caught:
        grid(*arguments)
    assert words in str(caught.value)
