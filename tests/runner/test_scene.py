"""What a failed line worked on, reported by a real worker: names, shapes, torch's own names."""

import sys

import pytest

from tensortutor.protocol.events import Finished, Judged, Output, Raised, Verdict, Warned
from tensortutor.protocol.jobs import Job, Judge

NET = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(12, 64), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(64, 3), nn.Linear(60, 3)])

    def forward(self, x):
        h = self.body(x)
        return [head(h) for head in self.heads]

net = Net()
"""


@pytest.fixture
def runner(runner_on_cpu):
    return runner_on_cpu


def scene_of(runner, source, kind=Raised):
    events = list(runner.start(Job(source)))
    assert isinstance(events[-1], Finished)
    (event,) = (event for event in events if isinstance(event, kind))
    return event.scene


def words(scene):
    """name: type, and the roles that have to do with what failed."""
    return [
        (o.name, f"{o.dtype}{list(o.shape)}" if o.dtype else o.kind, o.roles)
        for o in scene.operands
    ]


needs_columns = pytest.mark.skipif(
    sys.version_info < (3, 11),
    reason="Python 3.10 does not say what part of a line with several operations has failed",
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            "import torch\nx, d = torch.ones(3, 4), {'b': torch.ones(3)}\nz = x + d['b']",
            [("x", "f32[3, 4]", ("left",)), ("d['b']", "f32[3]", ("right",))],
            marks=needs_columns,
        ),
        (
            "import torch\nx = torch.ones(3, 4)\ny = x @ x",
            [("x", "f32[3, 4]", ("left", "right"))],
        ),
        (
            "import torch\ntotal, row = torch.zeros(3), torch.ones(2, 3)\ntotal += row",
            [("total", "f32[3]", ("left",)), ("row", "f32[2, 3]", ("right",))],
        ),
        (
            "import torch\nx, n = torch.zeros(7, 3), 8\nx.view(n, -1)",
            [("x", "f32[7, 3]", ("owner",)), ("n", "int", ("arg0",))],
        ),
        (
            "import torch\nx = torch.zeros(3, 4)\nkeep = torch.ones(4, dtype=torch.bool)\n"
            "x[keep] = 1.0",
            [("x", "f32[3, 4]", ("owner",)), ("keep", "bool[4]", ("index",))],
        ),
        (
            "import torch\nparts = [torch.ones(2), torch.ones(3)]\ntorch.stack(parts)",
            [
                ("parts", "list", ("arg0",)),
                ("parts[0]", "f32[2]", ("item0",)),
                ("parts[1]", "f32[3]", ("item1",)),
            ],
        ),
        (
            "import numpy as np\nimport torch\na = np.arange(3.0)[::-1]\ntorch.from_numpy(a)",
            [("a", "float64[3]", ("arg0",))],
        ),
        (
            "import torch\nw = torch.ones(2, requires_grad=True)\n(w * 2).backward()",
            [("", "f32[2]", ("owner",)), ("w", "f32[2]", ())],
        ),
        (
            "import torch\nt = torch.ones(2)\nif (t\n        and t):\n    u = t",
            # From 3.12 on, Python says which of the two was asked for its truth.
            [("t", "f32[2]", ("value",) if sys.version_info >= (3, 12) else ())],
        ),
    ],
)
def test_the_operands_of_a_line(runner, source, expected):
    assert words(scene_of(runner, source)) == expected


@needs_columns
def test_torchs_functions_tell_what_has_no_name_in_the_program(runner):
    source = NET + "logits, y = torch.zeros(4, 3), torch.tensor([0, 1, 2, 3])\n"
    scene = scene_of(runner, source + "loss = F.cross_entropy(logits.relu(), y)")
    assert words(scene) == [
        ("y", "i64[4]", ("arg1", "target")),
        ("logits.relu()", "f32[4, 3]", ("input",)),
        ("logits", "f32[4, 3]", ()),
    ]
    assert scene.inside == ("functional.cross_entropy",)
    assert scene.operands[0].values == "0 to 3"
    assert scene.code == "loss = F.cross_entropy(logits.relu(), y)"


def test_a_module_deep_inside_is_named_as_the_program_reaches_it(runner):
    h = ("h", "f32[2, 64]", ("arg0", "input"))
    expected = [
        ("head", "Linear", ("callee", "module")),
        h,
        ("head.weight", "f32[3, 60]", ("weight",)),
    ]
    if sys.version_info >= (3, 12):  # the name of a list comprehension is gone when it has failed
        expected = [
            h,
            ("self.heads[1]", "Linear", ("module",)),
            ("self.heads[1].weight", "f32[3, 60]", ("weight",)),
        ]
    assert words(scene_of(runner, NET + "net(torch.ones(2, 3, 4))"))[:3] == expected
    deep = scene_of(runner, NET + "model = nn.Sequential(net.body)\nmodel(torch.ones(2, 5))")
    assert words(deep) == [
        ("model", "Sequential", ("callee",)),
        ("net.body[1]", "Linear", ("module",)),
        ("torch.ones(2, 5)", "f32[2, 5]", ("input",)),
        ("net.body[1].weight", "f32[64, 12]", ("weight",)),
        ("net.body[1].bias", "f32[64]", ("bias",)),
    ]


def test_a_loss_that_is_constructed_instead_of_called_shows_in_torchs_functions(runner):
    source = "import torch\nx = torch.ones(4, 3)\ntorch.nn.CrossEntropyLoss(x, x)"
    assert "loss.__init__" in scene_of(runner, source).inside


def test_facts_about_a_tensor(runner):
    source = (
        "import torch\nw = torch.tensor([[1.5, float('nan')]] * 3, requires_grad=True).T\nw.view(6)"
    )
    (operand,) = scene_of(runner, source).operands
    assert (operand.device, operand.requires_grad, operand.leaf) == ("cpu", True, False)
    assert not operand.contiguous
    assert operand.values == "1.5, 3 NaN"


def test_a_warning_is_an_event_after_its_text(runner):
    source = (
        NET + "p, y = torch.zeros(4, 1), torch.zeros(4)\nfor _ in range(3):\n    F.mse_loss(p, y)"
    )
    events = list(runner.start(Job(source)))
    kinds = [type(e) for e in events if isinstance(e, (Output, Warned))]
    assert kinds == [Output, Warned]
    (warned,) = (e for e in events if isinstance(e, Warned))
    assert warned.type == "UserWarning"
    assert warned.message.startswith("Using a target size (torch.Size([4])) that is")
    assert warned.line == source.count("\n") + 1
    assert words(warned.scene) == [
        ("p", "f32[4, 1]", ("arg0", "input")), ("y", "f32[4]", ("arg1", "target")),
    ]  # fmt: skip


def test_a_flood_of_warnings_is_reported_only_so_far(runner):
    source = "import warnings\nfor i in range(500):\n    warnings.warn(f'number {i}')"
    events = list(runner.start(Job(source)))
    assert sum(isinstance(e, Warned) for e in events) == 20
    text = "".join(e.text for e in events if isinstance(e, Output))
    assert text.count("UserWarning: number") == 500


CHECKS = """
import torch
from tensortutor.checking import check, expect_close

@check("doubles")
def doubles(answer, rng, device):
    expect_close(answer.double(torch.ones(2, 3)), torch.ones(2, 3))
"""


def test_an_answer_that_raises_within_a_check_has_its_scene(runner):
    source = "import torch\nw = torch.ones(4)\n\ndef double(x):\n    return x + w\n"
    judge = Judge(CHECKS, "checks.py", checks=("doubles",))
    events = list(runner.start(Job(source, judge=judge)))
    (verdict,) = (e for e in events if isinstance(e, Verdict))
    assert verdict.message.startswith("RuntimeError: The size of tensor a (3)")
    assert words(verdict.scene) == [
        ("x", "f32[2, 3]", ("left",)), ("w", "f32[4]", ("right",)),
    ]  # fmt: skip
    (judged,) = (e for e in events if isinstance(e, Judged))
    assert judged.failed == ("doubles",)


STRANGE = """
import time
import torch
from torch.utils._python_dispatch import TorchDispatchMode

calls = []

class Odd:
    def __getattr__(self, name):
        calls.append(name)
        raise KeyboardInterrupt
    def __repr__(self):
        time.sleep(1000)
    def __eq__(self, other):
        calls.append("eq")
        raise SystemExit
    __hash__ = None
    @property
    def shape(self):
        calls.append("shape")

class Watched(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})

class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        calls.append(func)
        return func(*args, **(kwargs or {}))

odd, watched = Odd(), torch.ones(3).as_subclass(Watched)
freed = torch.zeros(2000)
freed.untyped_storage().resize_(0)
values = [
    odd, watched, freed, torch.zeros(0, 3), torch.tensor(7), torch.ones(2, device="meta"),
    torch.eye(2).to_sparse(), torch.ones(2, dtype=torch.complex64), torch.zeros(10**6),
]
"""


@pytest.mark.parametrize("number", range(9))
def test_no_value_is_asked_anything_that_runs_the_programs_code(runner, number):
    source = STRANGE + (
        "import atexit\natexit.register(lambda: print(calls))\n"
        f"v = values[{number}]\nmode = Mode().__enter__()\ndel calls[:]\n"
        "ord(v)  # refuses it by its type\n"
    )
    events = list(runner.start(Job(source)))
    assert [e.text for e in events if isinstance(e, Output)] == ["[]\n"]
    (raised,) = (e for e in events if isinstance(e, Raised))
    assert [o.name for o in raised.scene.operands] == ["v"]
    assert events[-1].outcome == "raised"


def test_the_program_may_break_what_the_report_is_made_with(runner):
    source = (
        "import ast, torch\nast.parse = torch.Tensor.is_contiguous = None\n"
        "x = torch.ones(2)\nx.view(3)"
    )
    events = list(runner.start(Job(source)))
    (raised,) = (e for e in events if isinstance(e, Raised))
    assert raised.scene.operands == ()
    assert raised.message == "shape '[3]' is invalid for input of size 2"
    assert raised.text.startswith("Traceback (most recent call last):\n  File ")
    assert raised.text.endswith("RuntimeError: shape '[3]' is invalid for input of size 2\n")


def test_errors_of_other_kinds_need_no_scene(runner):
    for source in ("x = (", "import sys\nraise KeyboardInterrupt", "def f(): f()\nf()"):
        events = list(runner.start(Job(source)))
        (raised,) = (e for e in events if isinstance(e, Raised))
        assert len(raised.scene.operands) == 0
