"""What `image` and `show` make of tensors of every kind."""

import base64
import inspect
import warnings

import numpy
import pytest
import torch
from torch.overrides import TorchFunctionMode

from tensortutor.drawing.png import decode
from tensortutor.lab import image, plot, show
from tensortutor.lab.pictures import MOST_CELLS, MOST_IMAGES, MOST_PIXELS
from tensortutor.protocol.events import event_to_json
from tensortutor.protocol.framing import LARGEST, encode


def pixels(picture):
    return decode(base64.b64decode(picture.png))


def rows(picture):
    """The bytes by row, all channels of a pixel together."""
    got = pixels(picture)
    size = got.width * got.channels
    return [list(got.data[at : at + size]) for at in range(0, len(got.data), size)]


GREY = torch.tensor([[0.0, 1.0], [0.5, 0.25]])
RED = torch.stack([torch.ones(2, 2), torch.zeros(2, 2), torch.zeros(2, 2)])


@pytest.mark.parametrize(
    ("tensor", "wanted"),
    [
        (GREY, [[0, 255], [128, 64]]),
        (GREY[None], [[0, 255], [128, 64]]),
        (GREY[None, None], [[0, 255], [128, 64]]),
        (GREY[..., None], [[0, 255], [128, 64]]),
        (GREY.bfloat16().requires_grad_(), [[0, 255], [128, 64]]),
        (GREY.t(), [[0, 128], [255, 64]]),
        (GREY.numpy(), [[0, 255], [128, 64]]),
        (GREY > 0.3, [[0, 255], [255, 0]]),
        (torch.tensor([[0, 200], [255, 7]], dtype=torch.uint8), [[0, 200], [255, 7]]),
        (torch.tensor([[0, 1]], dtype=torch.uint8), [[0, 1]]),
        (torch.tensor([[0, 200], [255, 7]]), [[0, 200], [255, 7]]),
        (RED, [[255, 0, 0, 255, 0, 0]] * 2),
        (RED.movedim(0, -1), [[255, 0, 0, 255, 0, 0]] * 2),
        (torch.cat([RED, torch.full((1, 2, 2), 0.5)]), [[128, 0, 0, 128, 0, 0]] * 2),
        (torch.rand(1, 1, 4, 3)[:, :, :1, :1] * 0 + 1, [[255]]),
        ([[0.0, 1.0]], [[0, 255]]),
    ],
)
def test_an_image_in_every_layout(sent, tensor, wanted):
    image(tensor)
    assert rows(sent[0]) == wanted
    assert "stretched" not in sent[0].caption


def test_values_beyond_are_stretched_and_said(sent):
    image(torch.tensor([[-1.0, 3.0], [1.0, 0.0]]))
    assert rows(sent[0]) == [[0, 255], [128, 64]]
    assert sent[0].caption.endswith("stretched from -1 to 3")


def test_what_is_not_finite_is_transparent(sent):
    image(torch.tensor([[0.0, torch.nan], [1.0, torch.inf]]))
    assert rows(sent[0]) == [[0, 255, 0, 0], [255, 255, 0, 0]]
    image(torch.full((2, 2), torch.nan), title="nothing")
    assert rows(sent[1]) == [[0, 0, 0, 0]] * 2


def test_a_batch_is_a_sheet(sent):
    image(torch.ones(MOST_IMAGES + 6, 1, 5, 5))
    assert (pixels(sent[0]).width, pixels(sent[0]).height) == (8 * 6 - 1, 8 * 6 - 1)
    assert "6 more left out" in sent[0].caption


def test_noise_of_any_size_fits_an_event(sent):
    image(torch.randint(0, 256, (3, MOST_PIXELS, MOST_PIXELS), dtype=torch.uint8))
    image(torch.rand(3, 1100, 700), title="large")
    assert len(encode(event_to_json(sent[0]))) < LARGEST
    assert pixels(sent[1]).height == 367
    assert "3 by 3 pixels in one" in sent[1].caption


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (torch.zeros(3), ValueError, "has the shape [3]. show() draws any shape"),
        (torch.zeros(5, 6, 7), ValueError, "has the shape [5, 6, 7]"),
        (torch.zeros(0, 4), ValueError, "nothing in it"),
        (torch.zeros(2, 2, dtype=torch.complex64), TypeError, "this tensor is complex"),
        ("cat.png", TypeError, "image draws a tensor, and this is of the type str"),
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(sent, value, kind, words):
    with pytest.raises(kind) as error:
        image(value)
    assert words in str(error.value)


def test_a_map_of_values(sent):
    show(torch.tensor([[0.0, 1.0], [2.0, 4.0]]))
    (heat,) = sent
    assert rows(heat) == [[0, 64], [128, 255]]
    assert (heat.kind, heat.low, heat.high) == ("heat", 0.0, 4.0)
    assert heat.caption == "float32 [2, 2] on cpu, min 0, mean 1.75, max 4"


class Own(torch.Tensor):
    """A subclass that is not to be asked."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("the program's own code ran")


with warnings.catch_warnings():  # it is on its way out of torch
    warnings.simplefilter("ignore")
    QUANTISED = torch.quantize_per_tensor(torch.tensor([[0.0, 1.0]]), 0.1, 0, torch.qint8)
NESTED = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.tensor(2.5), "float32 [] on cpu, min 2.5, mean 2.5, max 2.5"),
        (torch.arange(5), "int64 [5] on cpu, min 0, mean 2, max 4"),
        (torch.zeros(0, 3), "float32 [0, 3] on cpu: empty"),
        (torch.ones(2, 0, 3, 3), "float32 [2, 0, 3, 3] on cpu: empty"),
        (torch.ones(2, 2, 3, 3), "float32 [2, 2, 3, 3] on cpu, slice [0, 0], min 1"),
        (torch.ones(2, 2, device="meta"), "float32 [2, 2] on meta: no values to see"),
        (torch.eye(3).to_sparse(), "float32 [3, 3] on cpu, min 0"),
        (QUANTISED, "qint8 [1, 2] on cpu, min 0, mean 0.5, max 1"),
        (NESTED, "no values to see"),
        (torch.tensor([3 + 4j]), "complex64 [1] on cpu, magnitudes, min 5"),
        (torch.tensor([True, False]), "bool [2] on cpu, min 0, mean 0.5, max 1"),
        (torch.tensor([1.0]).to(torch.float8_e5m2), "float8_e5m2 [1]"),
        (torch.tensor([torch.nan, torch.inf, 1.0]), "max 1, 1 NaN, 1 inf"),
        (torch.tensor([torch.nan, torch.nan]), "float32 [2] on cpu, 2 NaN"),
        (torch.tensor([-1e308, 1e308], dtype=torch.float64), "min -1e+308"),
        (torch.ones(3).as_subclass(Own), "float32 [3] on cpu, min 1"),
        (torch.ones(2, 2).conj().neg(), "min -1"),
        (torch.ones(4, 1).expand(4, 4), "float32 [4, 4]"),
        (numpy.ones((2, 2)), "float64 [2, 2]"),
    ],
    ids=range(19),
)
def test_every_kind_of_tensor_is_shown_or_said(sent, tensor, words):
    show(tensor)
    assert words in sent[0].caption
    assert not sent[0].png or pixels(sent[0])


def test_a_spike_in_a_large_tensor_is_seen(sent):
    values = torch.zeros(1000, 300)
    values[777, 33], values[5, 299] = -9.0, torch.nan
    show(values)
    grid = rows(sent[0])
    assert len(grid) <= MOST_CELLS
    assert [0, 255] in [row[at : at + 2] for row in grid for at in range(0, len(row), 2)]
    assert (sent[0].low, sent[0].high) == (-9.0, 0.0)
    assert any(0 in row[1::2] for row in grid)
    assert sent[0].caption.endswith("8 by 3 values in a cell")


def test_a_very_large_tensor_is_looked_at_in_part(sent):
    show(torch.zeros(1).expand(20_000, 20_000))
    assert ", every 10th row and column, min 0" in sent[0].caption


def test_pictures_are_named_by_their_line(sent, new_display, clock):
    line = inspect.currentframe().f_lineno
    show(torch.zeros(1))
    show(torch.zeros(2))
    for size in (3, 4):
        show(torch.zeros(size))
    new_display.finish()
    assert [picture.title for picture in sent] == [
        f"line {line + 1}: show(torch.zeros(1))",
        f"line {line + 2}: show(torch.zeros(2))",
        *[f"line {line + 4}: show(torch.zeros(size))"] * 2,
    ]
    assert "[4]" in sent[-1].caption


def test_a_title_made_of_a_long_line_shows_that_it_is_cut(sent):
    image(torch.eye(2) * torch.tensor([[0.125, 0.25], [0.375, 0.5]]) + torch.eye(2) / 3 - 0.0625)
    (picture,) = sent
    _, line = picture.title.split(": ")
    assert line == "image(torch.eye(2) * torch.tensor([[0.125, 0.25], [0.375,..."


def test_a_program_that_watches_its_calls_does_not_see_ours(sent):
    calls = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            calls.append(function)
            return function(*args, **(kwargs or {}))

    values = torch.rand(4, 4)
    row, scalars = values[0], list(values[0])
    with Watch():
        plot(row, title="row")
        plot(scalars, title="scalars")
        plot(scalars[0], title="scalar")
        show(values)
        image(values)
    assert not calls
    assert len(sent) == 5


def test_compiled_code_draws_and_is_not_traced_into(sent):
    graphs = []

    def backend(graph, _inputs):
        graphs.append([node.name for node in graph.graph.nodes if node.op.startswith("call")])
        return graph.forward

    @torch.compile(backend=backend)
    def double(x):
        y = x * 2
        show(y, title="y")
        plot(y.sum(), title="sum")
        return y

    assert double(torch.ones(2)).tolist() == [2.0, 2.0]
    assert [drawing.title for drawing in sent] == ["y", "sum"]
    assert sent[1].series[0].ys == (4.0,)
    assert graphs == [["y"], ["sum_1"]]


def test_under_vmap_there_are_no_values_of_one_tensor(sent):
    torch.func.vmap(lambda x: (show(x, title="batched"), x)[1])(torch.ones(2, 3))
    assert sent[0].caption == "float32 [3] on cpu: no values to see"
