"""What `contour` and `regions` draw, and what they leave as it was."""

import base64

import pytest
import torch

from tensortutor.drawing.png import decode
from tensortutor.lab import contour, regions
from tensortutor.protocol.events import event_to_json
from tensortutor.protocol.framing import LARGEST, encode

SIDE = torch.linspace(-2, 2, 41)


def areas(event):
    """The numbers of the areas by row, the highest y first; None where there is none."""
    got = decode(base64.b64decode(event.png))
    step = got.channels
    rows = [
        got.data[at : at + got.width * step] for at in range(0, len(got.data), got.width * step)
    ]
    return [[row[n] if step == 1 or row[n + 1] else None for n in range(0, len(row), step)]
            for row in rows]  # fmt: skip


def bowl(x, y):
    return x**2 + 10 * y**2


def test_a_surface_rises_from_its_middle(sent):
    contour(bowl, SIDE, SIDE)
    rows = areas(sent[0])
    middle = rows[len(rows) // 2]
    assert middle[len(middle) // 2] == 0
    assert rows[0][0] == rows[-1][-1] == len(sent[0].levels)
    # Steeper along y than along x.
    assert rows[0][len(middle) // 2] > middle[0]
    assert list(sent[0].levels) == sorted(sent[0].levels)
    assert sent[0].low_x < -2 < 2 < sent[0].high_x


def test_values_may_be_given_and_axes_may_fall(sent):
    x, y = torch.meshgrid(SIDE, SIDE[:11], indexing="xy")
    contour(x + 100 * y, SIDE, SIDE[:11])
    contour((x + 100 * y).flip(0), SIDE, SIDE[:11].flip(0), title="falling")
    contour((x + 100 * y).tolist(), SIDE.tolist(), SIDE[:11].numpy(), title="lists")
    rows = areas(sent[0])
    assert rows[0][-1] > rows[-1][0] == 0  # the highest y is on top
    assert areas(sent[1]) == areas(sent[2]) == rows


def test_nan_has_no_band_and_a_constant_has_one(sent):
    contour(lambda x, y: torch.where(x < -0.05, torch.nan, x + 0 * y), SIDE, SIDE)
    rows = areas(sent[0])
    assert rows[0][0] is None
    assert rows[0][-1] is not None
    assert "820 of 1681 values NaN or inf" in sent[0].caption
    contour(lambda x, y: torch.tensor(3.0), SIDE, SIDE, title="flat")
    assert {area for row in areas(sent[1]) for area in row} == {0}
    contour(torch.full((2, 2), torch.nan), [0, 1], [0, 1], title="nothing")
    assert "no finite value" in sent[2].caption


def test_paths_are_drawn_as_far_as_they_are_on_the_map(sent):
    walk = [torch.tensor([float(n), 0.0], requires_grad=True) for n in range(5)]
    contour(bowl, SIDE, SIDE, path={"sgd": walk, "adam": torch.tensor([[0.0, torch.nan]])})
    sgd, adam = sent[0].series
    assert (sgd.label, sgd.ys) == ("sgd", (0.0, 0.0, 0.0, None, None))
    assert adam.ys == (None,)
    assert "3 points of paths lie outside" in sent[0].caption
    contour(bowl, SIDE, SIDE, path=torch.rand(100_000, 2), title="long")
    assert len(sent[1].series[0].xs) <= 1024


def test_fine_surfaces_are_bounded(sent):
    contour(bowl, torch.linspace(-2, 2, 5_000), torch.linspace(-2, 2, 4_000))
    assert "every 13th row and column" in sent[0].caption
    assert len(encode(event_to_json(sent[0]))) < LARGEST / 50


def fails(x, y):
    raise KeyError("no")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((fails, SIDE, SIDE), ValueError, "of shape [41, 41] and [41, 41], and it raised KeyError"),
        ((lambda x, y: x[0], SIDE, SIDE), ValueError, "gave the shape [41]"),
        ((torch.zeros(3, 2), [0, 1, 2], [0, 1]), ValueError, "needs the shape [2, 3]"),
        ((bowl, SIDE[:1], SIDE), ValueError, "at least two numbers in xs"),
        ((bowl, SIDE, [0, 1, 1]), ValueError, "needs ys that rise or fall"),
        ((bowl, "ab", SIDE), TypeError, "cannot read this str"),
        ((bowl, SIDE, SIDE, torch.zeros(4)), ValueError, "`path` of shape [N, 2]"),
        ((torch.zeros(2, 2, dtype=torch.complex64), [0, 1], [0, 1]), TypeError, "complex"),
    ],
)
def test_what_is_no_surface_is_refused_in_a_sentence(sent, arguments, error, words):
    with pytest.raises(error) as caught:
        contour(*arguments)
    assert words in str(caught.value)


POINTS = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]])
LABELS = torch.tensor([0, 1, 0, 1])
CLASSIFIERS = {
    "classes": lambda p: (p[:, 0] > 0).long(),
    "bools": lambda p: p[:, 0] > 0,
    "column": lambda p: (p[:, :1] > 0).float(),
    "one score": lambda p: p[:, 0] * 3 + 0.01,
    "scores": lambda p: torch.stack([-p[:, 0], p[:, 0]], 1),
    "module": torch.nn.Linear(2, 2),
}
with torch.no_grad():
    CLASSIFIERS["module"].weight.copy_(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    CLASSIFIERS["module"].bias.zero_()


@pytest.mark.parametrize("classify", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_a_classifier_may_answer_in_many_ways(sent, classify):
    regions(classify, POINTS, LABELS)
    rows = areas(sent[0])
    assert {(row[0], row[-1]) for row in rows} == {(0, 1)}
    assert sent[0].names == ("0", "1")
    assert [sorted(zip(s.xs, s.ys, strict=True)) for s in sent[0].series] == [
        [(-1.0, 0.0), (-1.0, 1.0)], [(1.0, 0.0), (1.0, 1.0)],
    ]  # fmt: skip
    assert sent[0].caption == "0 of 4 points in a region of another class"


def test_wrong_points_and_places_without_a_class_are_told(sent):
    regions(lambda p: torch.where(p[:, 1] > 0.5, torch.nan, 1.0), POINTS, LABELS)
    assert areas(sent[0])[0][0] is None
    assert sent[0].caption == "3 of 4 points in a region of another class"


def test_what_is_drawn_changes_nothing_in_the_program(sent, new_display, clock):
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Dropout(), torch.nn.Linear(2, 2))
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    regions(model, POINTS, LABELS)
    contour(lambda x, y: x + torch.randn_like(y), SIDE, SIDE)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(part.training for part in model.modules())
    assert model[0].num_batches_tracked == 0


def test_a_loop_calls_the_classifier_only_when_it_is_time(sent, new_display, clock):
    calls = []

    def classify(points):
        calls.append(len(points))
        return points[:, 0] > 0

    for _ in range(1_000):
        regions(classify, POINTS, LABELS, title="loop")
    new_display.finish()
    assert len(calls) == len(sent) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((torch.zeros(2), POINTS, LABELS), TypeError, "a function or a module to call"),
        ((lambda p: p[:3, 0], POINTS, LABELS), ValueError, "it gave the shape [3]"),
        ((lambda p: p[0, 9], POINTS, LABELS), ValueError, "it raised IndexError"),
        ((len, POINTS, LABELS[:2]), ValueError, "4 points and 2 labels"),
        ((len, POINTS.T, LABELS), ValueError, "`points` of shape [N, 2]"),
        ((len, POINTS, ["cat"] * 4), TypeError, "cannot read this list"),
        ((len, POINTS, [0.5] * 4), ValueError, "whole numbers in `labels`"),
        ((len, torch.zeros(0, 2), []), ValueError, "at least one point"),
    ],
)
def test_what_is_no_classifier_is_refused_in_a_sentence(sent, arguments, error, words):
    with pytest.raises(error) as caught:
        regions(*arguments)
    assert words in str(caught.value)
