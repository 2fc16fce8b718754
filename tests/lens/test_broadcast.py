"""Expressions with two sides: shapes, what is stretched, what cannot match."""

import textwrap

import pytest

from tensortutor.lens.shape_alignment import aligned
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Broadcasts

TRACE = Look(trace=True)


def expressions(seen):
    return seen.one(Broadcasts).expressions


def test_an_expression_is_told_with_its_place_and_what_is_stretched(look):
    source = 'import torch\nö = torch.ones(64, 1)\ny = torch.ones(64)\ns = "ü"; d = ö - y\n'
    (one,) = expressions(look(source, TRACE))
    assert (one.line, one.column, one.end_line, one.end_column) == (4, 14, 4, 19)
    assert (one.operator, one.result, one.words) == ("-", (64, 64), "f32[64, 64]")
    assert (one.left.text, one.left.words, one.left.stretched) == ("ö", "f32[64, 1]", (-1,))
    assert (one.right.text, one.right.shape, one.right.stretched) == ("y", (64,), (-2,))
    assert list(aligned(one)) == [
        "ö       64   1",
        "y           64",
        "result  64  64",
        "ö is repeated along dimension -1.",
        "y is repeated along dimension -2.",
    ]


def test_parts_of_an_expression_are_told_too(look):
    source = """
    import torch
    import torch.nn.functional as F
    from torch import nn
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    class Net(nn.Module):
        def __init__(self): super().__init__(); self.fc = nn.Linear(4, 1)
        def forward(self, x):
            return self.fc(x)
    mine = Net()
    x, y = torch.ones(6, 4), torch.ones(6)
    loss = ((net(x) - y) ** 2).mean()
    loss = (mine(x).squeeze(-1) - y).abs().sum()
    z = (x - x.mean(0)) / x.std(1, keepdim=True)
    e = F.mse_loss(net(x), y)
    k = torch.where(x > 0, x, y[:, None])
    d = x[:, None, :] - x[None]
    m = x @ x.T
    x.add_(y[:, None])
    """
    told = {one.left.text + one.operator + one.right.text: one
            for one in expressions(look(textwrap.dedent(source), TRACE))}  # fmt: skip
    assert told["net(x)-y"].result == (6, 6)
    assert told["mine(x).squeeze(-1)-y"].result == (6,)
    assert told["x-x.mean(0)"].right.stretched == (-2,)
    assert told["x - x.mean(0)/x.std(1, keepdim=True)"].result == (6, 4)
    assert told["net(x)F.mse_lossy"].result == (6, 6)
    assert told["xtorch.wherey[:, None]"].result == (6, 4)
    assert told["x[:, None, :]-x[None]"].result == (6, 6, 4)
    assert (told["x@x.T"].result, told["x@x.T"].left.stretched) == ((6, 6), ())
    assert told["xx.add_y[:, None]"].right.stretched == (-1,)
    assert not any(one.raised for one in told.values())


def test_the_expression_that_raised_tells_the_dimension(look):
    source = """
    import torch
    def f(a, b):
        return (a * 2 + b).sum()
    f(torch.ones(2, 3), torch.ones(2))
    """
    found = expressions(look(textwrap.dedent(source), TRACE))
    (one,) = (one for one in found if one.raised)
    assert (one.left.text, one.right.text) == ("a * 2", "b")
    assert (one.result, one.mismatch) == (None, -1)
    assert list(aligned(one))[-1] == "Dimension -1: 3 and 2 differ, and neither is 1."


def test_in_place_the_left_side_cannot_be_stretched(look):
    source = "import torch\nx = torch.ones(3)\nx += torch.ones(2, 3)\n"
    (one,) = (one for one in expressions(look(source, TRACE)) if one.raised)
    assert one.mismatch == -2


def test_the_last_execution_counts(look):
    source = """
    import torch
    for x in torch.ones(10, 2).split(4):
        y = x - torch.ones(2)
    """
    (one,) = expressions(look(textwrap.dedent(source), TRACE))
    assert one.left.shape == (2, 2)


EXACT = """
import torch
torch.manual_seed(0)
a, b, c, i = torch.ones(4, 3), torch.ones(3), torch.ones(2, 1, 3), torch.arange(3)
flags = a > 0
results = []
"""


@pytest.mark.parametrize(
    "expression",
    [
        "a + b", "b - a[:, :1]", "a * c", "a / i", "i / i", "i // 2 + i", "a @ b + 1",
        "c @ a.T * i[:, None].float().sum()", "a.sum(0) + a.mean(1, keepdim=True)",
        "a.view(2, -1) + b.repeat(2)", "a.max(1).values - a.argmax(1)", "a.reshape(-1, 1) + b",
        "a[None, ..., 0] + a[1:, 0].unsqueeze(0).expand(2, 3).sum(1, keepdim=True)",
        "torch.stack([b, b]) + torch.cat([b, b]).view(2, 3)", "a[i] + a[0]", "flags & (i > 1)",
        "a.flatten(1) + torch.zeros(1, 3)", "a.permute(1, 0) - a.t()", "a.double() + b",
        "a.softmax(-1) * torch.tensor([1, 2, 3])", "a.squeeze() + torch.arange(0, 6, 2)",
        "torch.maximum(a, b) + a.clamp(min=0)", "a.norm(dim=1, keepdim=True) + a", "i + True",
        "a.any(1) | a.all(1)", "a.transpose(0, 1).unsqueeze(-1) + b", "a.half() * 2 + a.half()",
        "a.std(0) + torch.full((4, 1), 2)", "a ** 2 - 2 ** a", "(a == b) != (a < c)",
        "a[:, [0]] + b",
    ],
)  # fmt: skip
def test_what_is_worked_out_is_what_torch_does(expression):
    """Directly: what is worked out against torch itself, for every part that is claimed."""
    import ast

    import torch

    from tensortutor.worker.lens.budget import Budget
    from tensortutor.worker.lens.expression_shapes import ExpressionShapes, Unknown, Value
    from tensortutor.worker.lens.snapshots import MISSING, operand_snapshot

    names: dict[str, object] = {}
    exec(EXACT, names)
    known = {(name,): found for name, value in names.items()
             if (found := operand_snapshot(value, "", where=False)) is not MISSING}  # fmt: skip
    evaluator = ExpressionShapes(known, {}, {"torch": "torch"}, Budget(60))
    try:
        value = evaluator.value(ast.parse(expression, mode="eval").body)
    except Unknown:
        value = None
    wanted = eval(expression, names)
    assert isinstance(wanted, torch.Tensor)
    if value is not None:
        assert isinstance(value, Value)
        assert (value.shape, value.dtype) == (tuple(wanted.shape), wanted.dtype)
    assert evaluator.pairs or "[0]" in expression
    for pair in evaluator.pairs:
        got = eval(ast.unparse(pair.node), names)
        assert (pair.result.shape, pair.result.dtype) == (tuple(got.shape), got.dtype)


def test_plain_numbers_are_no_reason_to_lose_the_others(look):
    source = """
    import torch
    p, n = torch.ones(4, 1), 3
    e = p - torch.ones(4)
    b = p.numel() > n
    big = n ** 2 & 1
    try:
        c = n / 0
    except ZeroDivisionError:
        pass
    """
    seen = look(textwrap.dedent(source).lstrip(), TRACE)
    assert seen.one(Broadcasts).note == ""
    assert [one.result for one in expressions(seen)] == [(4, 4)]
