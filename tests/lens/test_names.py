"""What the lens tells of a program's tensors, modules and optimizers when it has ended."""

import re
import textwrap

from tensortutor.lens.tables import tensor_table
from tensortutor.protocol.events import Finished, Judged, Raised
from tensortutor.protocol.jobs import Judge, Look
from tensortutor.protocol.lens import LENS, Modules, Optimizers, Tensors

NAMES = Look(names=True)


def table(seen):
    return {(t.scope, t.name): t for t in seen.one(Tensors).tensors}


def test_a_tensor_is_told_with_its_memory_and_values(look):
    seen = look("import torch\nx = torch.arange(12.).reshape(3, 4)\ny = x.T[1:]\n", NAMES)
    tensors = table(seen)
    x, y = tensors["", "x"], tensors["", "y"]
    assert (x.words, x.dtype, x.shape, x.stride, x.offset) == (
        "f32[3, 4]", "float32", (3, 4), (4, 1), 0,
    )  # fmt: skip
    assert (y.shape, y.stride, y.offset, y.contiguous) == ((3, 3), (1, 4), 1, False)
    assert (x.bytes, y.bytes, x.itemsize) == (48, 36, 4)
    assert (x.stats.count, x.stats.minimum, x.stats.mean, x.stats.maximum) == (12, 0, 5.5, 11)
    assert y.sample.values == ("1", "5", "9", "2", "6", "10", "3", "7", "11")


def test_names_that_share_storage_have_its_id_and_its_cells(look):
    source = "import torch\na = torch.arange(4)\nb = a[1:]\nc = a.clone()\nd = [a.view(2, 2)]\n"
    seen = look(source, NAMES)
    tensors = table(seen)
    assert tensors["", "a"].storage == tensors["", "b"].storage == tensors["", "d[0]"].storage
    assert tensors["", "c"].storage != tensors["", "a"].storage
    storages = {storage.id: storage for storage in seen.one(Tensors).storages}
    shared = storages[tensors["", "a"].storage]
    assert (shared.names, shared.bytes, shared.dtype) == (("a", "b", "d[0]"), 32, "int64")
    assert shared.cells == ("0", "1", "2", "3")


def test_gradients_leaves_and_versions(look):
    source = """
    import torch
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = w * 2
    y.sum().backward()
    w.grad.add_(torch.tensor([1.0, 2.0]))
    x = torch.zeros(2); x[0] = 1; x += 1
    """
    tensors = table(look(textwrap.dedent(source), NAMES))
    w, y, x = tensors["", "w"], tensors["", "y"], tensors["", "x"]
    assert (w.requires_grad, w.leaf, w.grad_fn, w.grad) == (True, True, "", "f32[2]")
    assert w.grad_norm == 5.0  # [3, 4]
    assert (y.requires_grad, y.leaf, y.grad_fn, y.grad) == (True, False, "MulBackward0", "")
    assert x.version == 2


def test_nan_and_infinity_are_counted_and_left_out_of_the_rest(look):
    source = "import torch\nx = torch.tensor([1., float('nan'), float('inf'), 3.])\n"
    stats = table(look(source, NAMES))["", "x"].stats
    assert (stats.nan, stats.inf, stats.minimum, stats.mean, stats.maximum) == (1, 1, 1, 2, 3)


def test_tensors_inside_containers_and_objects_have_a_way_to_them(look):
    source = """
    import torch
    from collections import namedtuple
    Pair = namedtuple("Pair", "left right")
    class Net:
        def __init__(self):
            self.w = torch.ones(2)
    net, pair = Net(), Pair(torch.ones(1), 2)
    batch = {"x": torch.ones(3), 7: torch.ones(4)}
    losses = [torch.tensor(float(i)) for i in range(30)]
    """
    seen = look(textwrap.dedent(source), NAMES)
    names = {name for _, name in table(seen)}
    assert {"net.w", "pair.left", 'batch["x"]', "batch[7]", "losses[0]", "losses[29]"} <= names
    assert seen.one(Tensors).left_out == 22


def test_after_an_exception_the_locals_of_the_failing_frame_are_there(look):
    source = """
    import torch
    def outer(a):
        b = a * 2
        return inner(b)
    def inner(c):
        return c @ torch.ones(7)
    outer(torch.ones(3))
    """
    seen = look(textwrap.dedent(source), NAMES)
    tensors = table(seen)
    assert tensors["outer", "b"].words == tensors["inner", "c"].words == "f32[3]"
    assert {(s.name, s.raised) for s in seen.one(Tensors).scopes} == {
        ("outer", True), ("inner", True),
    }  # fmt: skip
    kinds = [type(event) for event in seen]
    assert kinds.index(Raised) < kinds.index(Tensors) < kinds.index(Finished)


def test_the_names_of_a_function_that_returned_are_there_too(look):
    source = """
    import torch
    from torch import nn
    def train():
        model = nn.Linear(2, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.5)
        x = torch.ones(4, 2)
        return 1
    train()
    """
    seen = look(textwrap.dedent(source))
    assert table(seen)["train", "x"].words == "f32[4, 2]"
    assert seen.one(Modules).modules[0].path == "train: model"
    assert seen.one(Optimizers).optimizers[0].name == "train: opt"


def test_of_a_few_calls_the_last_one_is_told_as_behind_the_lines(look):
    source = """
    import torch
    def show(t):
        return t.sum()
    for n in range(1, 4):
        show(torch.ones(n))
    for n in range(4, 41):
        show(torch.ones(n))
    """
    few, many = textwrap.dedent(source).split("for n in range(4")
    assert table(look(few))["show", "t"].words == "f32[3]"
    seen = look(f"{few}for n in range(4{many}").one(Tensors)
    (told,) = re.findall(r"show: seen at call (\d+) of 40\.", "\n".join(tensor_table(seen).below))
    # Of many calls the 16th or, where the time allows it, the 32nd; an earlier one if it does not.
    assert int(told) in {*range(1, 17), 32}
    assert {t.name: t.words for t in seen.tensors if t.scope}["t"] == f"f32[{told}]"


def test_modules_are_told_as_trees(look):
    source = """
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model.tied = nn.Linear(3, 2, bias=False)
    model.tied.weight = model[0].weight
    model[1].weight.requires_grad_(False)
    model.eval()
    model[0](torch.ones(1, 3)).sum().backward()
    """
    seen = look(textwrap.dedent(source), NAMES)
    root, linear, norm, tied = seen.one(Modules).modules
    assert [m.path for m in (root, linear, norm, tied)] == [
        "model", "model.0", "model.1", "model.tied",
    ]  # fmt: skip
    assert (root.depth, linear.depth, linear.type) == (0, 1, "Linear")
    assert (root.count, root.trainable, root.training) == (12, 10, False)
    assert linear.detail.startswith("in_features=3, out_features=2")
    weight = linear.parameters[0]
    assert (weight.name, weight.words, weight.trainable) == ("weight", "f32[2, 3]", True)
    assert abs(weight.grad_norm - 6**0.5) < 1e-5
    assert [p.trainable for p in norm.parameters] == [False, True]
    assert [b.name for b in norm.buffers] == ["running_mean", "running_var", "num_batches_tracked"]
    assert tied.parameters[0].tied == "model.0.weight"


def test_optimizers_are_told_with_groups_and_state(look):
    source = """
    import torch
    w, b = torch.ones(3, requires_grad=True), torch.ones(1, requires_grad=True)
    opt = torch.optim.Adam([{"params": [w]}, {"params": [b], "lr": 0.5}], lr=0.1)
    for _ in range(3):
        (w.sum() + b.sum()).backward()
        opt.step()
    """
    (opt,) = look(textwrap.dedent(source), NAMES).one(Optimizers).optimizers
    assert (opt.name, opt.type, opt.steps) == ("opt", "Adam", 3)
    assert [group.parameters for group in opt.groups] == [("w",), ("b",)]
    assert [{s.name: s.value for s in g.settings}["lr"] for g in opt.groups] == ["0.1", "0.5"]
    assert {(s.name, s.tensors, s.bytes) for s in opt.state} == {
        ("exp_avg", 2, 16), ("exp_avg_sq", 2, 16),
    }  # fmt: skip


def test_without_a_look_nothing_is_told_nor_imported(look):
    source = "import sys\nprint([m for m in sys.modules if 'worker.lens' in m])\n"
    seen = look(source, Look())
    assert not [event for event in seen if isinstance(event, LENS)]


def test_a_judging_is_not_disturbed_by_the_lens(look):
    judge = Judge(
        "from tensortutor.checking import check, expect_equal\n"
        "@check('doubles')\n"
        "def doubles(answer, rng, device):\n    expect_equal(answer.double(2), 4)\n",
        "judge.py", checks=("doubles",),
    )  # fmt: skip
    seen = look("def double(x):\n    return 2 * x\n", judge=judge)
    assert seen.one(Judged).ok


def test_a_program_may_not_forge_what_was_not_asked_for(look):
    source = (
        "import sys\nfrom tensortutor.protocol.lens import Tensors\n"
        "f = sys._getframe()\n"
        "while f.f_back: f = f.f_back\n"
        "import gc\n"
        "c = next(o for o in gc.get_objects() if type(o).__name__ == 'Channel')\n"
        "c.send(Tensors(()))\n"
    )
    assert look(source, Look()).none(Tensors)


def test_memory_is_what_the_cells_hold_beside_what_a_copy_would_need(look):
    source = """
    import torch
    repeated = torch.zeros(3, 1).expand(3, 4)
    windows = torch.arange(6).unfold(0, 3, 1)
    columns = torch.zeros(4, 6)[:, ::2]
    """
    seen = look(textwrap.dedent(source), NAMES)
    tensors = table(seen)
    assert {name: (one.held, one.bytes) for (_, name), one in tensors.items()} == {
        "repeated": (12, 48), "windows": (48, 96), "columns": (48, 48),
    }  # fmt: skip
    told = {row[0]: row[4] for row in tensor_table(seen.one(Tensors)).rows}
    assert told == {"repeated": "12 B for 48 B", "windows": "48 B for 96 B", "columns": "48 B"}
