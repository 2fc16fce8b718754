"""At a call whose shapes do not fit, the lens says which dimension of which tensor is why."""

import pytest

from tensortutor.lens.shape_alignment import aligned, error_lines
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Broadcasts
from tensortutor.worker.lens.lens import Lens

HEAD = """import torch
from torch import nn
import torch.nn.functional as F
def t(*shape): return torch.ones(*shape)
def i(*shape): return torch.zeros(*shape, dtype=torch.int64)
"""
CALLS = {
    "einsum": ("a, b = t(3, 4), t(5, 2)", "torch.einsum('ij,jk->ik', a, b)"),
    "conv1d": ("x, w = t(2, 4, 9), t(8, 3, 3)", "F.conv1d(x, w)"),
    "conv2d": ("x, w = t(1, 4, 8, 8), t(8, 3, 3, 3)", "F.conv2d(x, w)"),
    "conv_transpose2d": ("x, w = t(1, 4, 8, 8), t(3, 6, 2, 2)", "F.conv_transpose2d(x, w)"),
    "linear": ("x, w = t(6, 5), t(2, 4)", "F.linear(x, w)"),
    "matmul": ("a, b = t(2, 3, 4), t(2, 5, 6)", "torch.matmul(a, b)"),
    "bmm": ("a, b = t(2, 3, 4), t(2, 5, 6)", "torch.bmm(a, b)"),
    "addmm": ("m, a, b = t(3, 6), t(3, 4), t(5, 6)", "torch.addmm(m, a, b)"),
    "baddbmm": ("m, a, b = t(2, 3, 6), t(2, 3, 4), t(2, 5, 6)", "torch.baddbmm(m, a, b)"),
    "tensordot": ("a, b = t(3, 4, 5), t(4, 6)", "torch.tensordot(a, b, dims=1)"),
    "outer": ("a, b = t(3, 2), t(4)", "torch.outer(a, b)"),
    "cdist": ("a, b = t(3, 4), t(6, 5)", "torch.cdist(a, b)"),
    "scaled_dot_product_attention": (
        "q, k, v = t(2, 3, 8), t(2, 5, 8), t(2, 6, 8)", "F.scaled_dot_product_attention(q, k, v)",
    ),
    "cat": ("a, b = t(3, 4), t(3, 5)", "torch.cat([a, b])"),
    "stack": ("a, b = t(3, 4), t(3, 5)", "torch.stack([a, b], dim=1)"),
    "gather": ("x, n = t(3, 4), i(3)", "x.gather(1, n)"),
    "scatter": ("x, n, s = t(3, 4), i(5, 2), t(5, 2)", "x.scatter(1, n, s)"),
    "index_select": ("x, n = t(3, 4), i(2, 2)", "torch.index_select(x, 0, n)"),
    "index_add": ("x, n, s = t(3, 4), i(2), t(3, 4)", "x.index_add(0, n, s)"),
    "topk": ("x = t(3, 5)", "x.topk(8, dim=1)"),
    "sort": ("x = t(3)", "torch.sort(x, dim=1)"),
    "cumsum": ("x = t(3)", "x.cumsum(1)"),
    "where": ("c, a, b = t(3) > 0, t(3), t(4)", "torch.where(c, a, b)"),
    "masked_fill": ("x, m = t(3, 4), t(3) > 0", "x.masked_fill(m, 0.0)"),
    "pad": ("x = t(3)", "F.pad(x, (1, 1, 1, 1))"),
    "embedding": ("n, w = i(3), t(6)", "F.embedding(n, w)"),
    "layer_norm": ("x = t(2, 5)", "F.layer_norm(x, (4,))"),
    "group_norm": ("x = t(2, 6, 4)", "F.group_norm(x, 4)"),
    "batch_norm": ("x, m, v = t(2, 6, 4), t(5), t(5)", "F.batch_norm(x, m, v)"),
    "cross_entropy": ("x, y = t(4, 3), i(5)", "F.cross_entropy(x, y)"),
    "nll_loss": ("x, y = t(4, 3), i(5)", "F.nll_loss(x, y)"),
    "binary_cross_entropy_with_logits": (
        "x, y = t(4, 1), t(4)", "F.binary_cross_entropy_with_logits(x, y)",
    ),
    "mse_loss": ("x, y = t(4, 3), t(4)", "F.mse_loss(x, y)"),
    "max_pool2d": ("x = t(1, 3, 2, 2)", "F.max_pool2d(x, 4)"),
    "interpolate": ("x = t(1, 3, 8)", "F.interpolate(x, size=(4, 4))"),
    "unfold": ("x = t(5, 5)", "F.unfold(x, (2, 2))"),
    "fold": ("x = t(1, 10, 9)", "F.fold(x, (4, 4), (2, 2))"),
    "unflatten": ("x = t(3, 10)", "x.unflatten(1, (4, 3))"),
    "view": ("x = t(3, 4)", "x.view(5, -1)"),
    "repeat": ("x = t(3, 4)", "x.repeat(2)"),
    "split": ("x = t(7, 2)", "torch.split(x, [3, 3])"),
    "flip": ("x = t(3)", "torch.flip(x, (1,))"),
    "movedim": ("x = t(3)", "x.movedim(0, 1)"),
}  # fmt: skip

REASONS = {
    "einsum": "Dimension 1 of a is 4, dimension 0 of b is 5: here they must be equal.",
    "conv1d": "Dimension 1 of x is 4, dimension 1 of w is 3: here they must be equal.",
    "conv2d": "Dimension 1 of x is 4, dimension 1 of w is 3: here they must be equal.",
    "conv_transpose2d": "Dimension 1 of x is 4, dimension 0 of w is 3: here they must be equal.",
    "linear": "Dimension 1 of x is 5, dimension 1 of w is 4: here they must be equal.",
    "matmul": "Dimension 2 of a is 4, dimension 1 of b is 5: here they must be equal.",
    "bmm": "Dimension 2 of a is 4, dimension 1 of b is 5: here they must be equal.",
    "addmm": "Dimension 1 of a is 4, dimension 0 of b is 5: here they must be equal.",
    "baddbmm": "Dimension 2 of a is 4, dimension 1 of b is 5: here they must be equal.",
    "tensordot": "Dimension 2 of a is 5, dimension 0 of b is 4: here they must be equal.",
    "outer": "a has 2 dimensions, [3, 2]; with 1 dimension it would fit, as [2].",
    "cdist": "Dimension 1 of a is 4, dimension 1 of b is 5: here they must be equal.",
    "scaled_dot_product_attention": (
        "Dimension 1 of k is 5, dimension 1 of v is 6: here they must be equal."
    ),
    "cat": "Dimension 1 of a is 4, dimension 1 of b is 5: here they must be equal.",
    "stack": "Dimension 1 of a is 4, dimension 1 of b is 5: here they must be equal.",
    "gather": "n has 1 dimension, [3]; with 2 dimensions it would fit, as [1, 3].",
    "scatter": "Dimension 0 of x is 3, dimension 0 of n is 5: here they must be equal.",
    "index_select": "n has 2 dimensions, [2, 2]; with 1 dimension it would fit, as [2].",
    "index_add": "Dimension 0 of n is 2, dimension 0 of s is 3: here they must be equal.",
    "topk": "Dimension 1 of x is 5; with 8 it would fit.",
    "sort": "x has 1 dimension, [3]; with 2 dimensions it would fit, as [1, 3].",
    "cumsum": "x has 1 dimension, [3]; with 2 dimensions it would fit, as [1, 3].",
    "where": "Dimension -1: 3 and 4 differ, and neither is 1.",
    "masked_fill": "Dimension 1 of x is 4, dimension 0 of m is 3: here they must be equal.",
    "pad": "x has 1 dimension, [3]; with 2 dimensions it would fit, as [1, 3].",
    "embedding": "w has 1 dimension, [6]; with 2 dimensions it would fit, as [1, 6].",
    "layer_norm": "Dimension 1 of x is 5; with 4 it would fit.",
    "group_norm": "Dimension 1 of x is 6; with 4 it would fit.",
    "batch_norm": "Dimension 1 of x is 6; with 5 it would fit.",
    "cross_entropy": "Dimension 0 of x is 4, dimension 0 of y is 5: here they must be equal.",
    "nll_loss": "Dimension 0 of x is 4, dimension 0 of y is 5: here they must be equal.",
    "binary_cross_entropy_with_logits": (
        "x has 2 dimensions, [4, 1]; with 1 dimension it would fit, as [4]."
    ),
    "mse_loss": "Dimension -1: 3 and 4 differ, and neither is 1.",
    "max_pool2d": "The last 2 dimensions of x are [2, 2]; with [4, 4] they would fit.",
    "interpolate": (
        "x has 3 dimensions, [1, 3, 8]; with 4 dimensions it would fit, as [1, 1, 3, 8]."
    ),
    "unfold": "x has 2 dimensions, [5, 5]; with 3 dimensions it would fit, as [1, 5, 5].",
    "fold": "Dimension 1 of x is 10; with 4 it would fit.",
    "unflatten": "Dimension 1 of x is 10, and 4 x 3 = 12.",
    "view": "The elements of x are 12, which cannot be divided by 5 = 5.",
    "repeat": "x has 2 dimensions, [3, 4]; with 1 dimension it would fit, as [4].",
    "split": "Dimension 0 of x is 7; with 6 it would fit.",
    "flip": "x has 1 dimension, [3]; with 2 dimensions it would fit, as [1, 3].",
    "movedim": "x has 1 dimension, [3]; with 2 dimensions it would fit, as [1, 3].",
}


def shapes_of(source):
    """The event of a program that raises."""
    lens = Lens(Look(trace=True), source, "lesson.py")
    names = {"__name__": "__main__"}
    with pytest.raises((RuntimeError, ValueError, IndexError)) as raised:
        lens.run(compile(source, "lesson.py", "exec"), names)
    (event,) = (e for e in lens.report(names, raised.value) if isinstance(e, Broadcasts))
    assert event.note == ""
    return event


def explanation(event):
    """What is said of the failure."""
    if event.error is not None:
        return "\n".join(error_lines(event.error))
    (pair,) = (one for one in event.expressions if one.raised)
    return "\n".join(aligned(pair))


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", CALLS)
def test_a_mismatch_is_explained(name):
    make, call = CALLS[name]
    text = explanation(shapes_of(f"{HEAD}{make}\nout = {call}\n"))
    assert text.splitlines()[-1] == REASONS[name]


def test_a_module_is_explained_with_its_parameters():
    text = explanation(
        shapes_of(
            f"{HEAD}net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2))\n"
            "net(t(3, 4))\n"
        )
    )
    assert "net[2].weight" in text
    assert "is 8, dimension 1 of net[2].weight is 9: here they must be equal." in text


def test_tensors_that_one_call_gave_are_told_one_by_one():
    event = shapes_of(f"{HEAD}x = t(2, 7)\ntorch.cat(x.split([3, 4], dim=1))\n")
    assert event.error is not None
    assert [one.shape for one in event.error.operands] == [(2, 3), (2, 4)]
    assert explanation(event).splitlines()[-1] == (
        "Dimension 1 of x.split([3, 4], dim=1)[0] is 3, dimension 1 of x.split([3, 4], dim=1)[1] "
        "is 4: here they must be equal."
    )
