"""Values that are odd, huge, hostile or many: told or skipped with a word, never an exception."""

import textwrap

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import LENS, MOST_TENSORS, Tensors
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.object_finder import Found
from tensortutor.worker.lens.snapshots import nonfinite, tensor_snapshot
from tensortutor.worker.lens.tensor_table import tensors_of

NAMES = Look(names=True)
ODD = {
    "meta": ("torch.empty(3, 4, device='meta')", "f32[3, 4] meta", "on meta"),
    "coo": ("torch.eye(3).to_sparse()", "f32[3, 3]", "sparse_coo, 3 of 9 stored"),
    "csr": ("torch.eye(3).to_sparse_csr()", "f32[3, 3]", "sparse_csr, 3 of 9"),
    "quantised": (
        "torch.quantize_per_tensor(torch.ones(3), .1, 0, torch.qint8)", "qint8[3]", "quantised",
    ),
    "nested": (
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])", "f32[nested, 2 parts]",
        "nested",
    ),
    "jagged": (
        "torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)",
        "f32[2, j1, 3]", "operators of its own",
    ),
    "complex": ("torch.tensor([3+4j])", "c64[1]", ""),
    "conjugate": ("torch.tensor([3+4j]).conj()", "c64[1]", ""),
    "scalar": ("torch.tensor(3)", "i64[]", ""),
    "empty": ("torch.empty(0, 3)", "f32[0, 3]", ""),
    "freed": ("gone(torch.ones(5))", "f32[5]", "freed"),
    "small_float": ("torch.ones(3).to(torch.float8_e4m3fn)", "float8_e4m3fn[3]", ""),
    "unsigned": ("torch.ones(3, dtype=torch.uint16)", "uint16[3]", ""),
    "expanded": ("torch.ones(1).expand(1000, 1000)", "f32[1000, 1000]", ""),
    "inference": ("inferred()", "f32[3]", ""),
    "subclass": ("torch.ones(3).as_subclass(Sub)", "f32[3]", ""),
    "dispatching": ("Disp(torch.ones(2))", "f32[2]", "operators of its own"),
    "fake": ("fake()", "f32[3]", "operators of its own"),
    "batched": ("batched()", "f32[3]", "operators of its own"),
    "raising": ("raising()", "f32[4]", ""),
    "astronomic": ("torch.ones(1).expand(1000, 1000, 1000)", "f32[1000, 1000, 1000]", ""),
    "large": ("torch.zeros(30, 1_000_000)", "f32[30, 1000000]", ""),
}  # fmt: skip
HEAD = """
import time, torch, warnings
warnings.simplefilter("ignore")
class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("asked", func)
        return super().__torch_function__(func, types, args, kwargs)
    @property
    def shape(self): print("asked"); raise ValueError
    def detach(self): print("asked"); raise ValueError
    def __repr__(self): print("asked"); raise ValueError
class Disp(torch.Tensor):
    @staticmethod
    def __new__(cls, x): return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print("asked", func); raise ValueError
class Raising(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("asked", func); raise RuntimeError("not this one")
    @property
    def slow(self): time.sleep(100)
    @property
    def grad(self): time.sleep(100)
    def __repr__(self): time.sleep(100)
def raising(): return torch.Tensor._make_subclass(Raising, torch.ones(4))
def gone(t): t.untyped_storage().resize_(0); return t
def inferred():
    with torch.inference_mode(): return torch.ones(3) * 2
def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode(): return torch.ones(3)
def batched():
    kept = []
    torch.func.vmap(lambda a: (kept.append(a), a)[1])(torch.ones(2, 3))
    return kept[0]
"""


@pytest.fixture(scope="module")
def odd(runner_on_cpu):
    """All odd tensors in one run: name -> what is told."""
    from tensortutor.protocol.jobs import Job

    source = HEAD + "".join(f"{name} = {make}\n" for name, (make, _, _) in ODD.items())
    seen = list(runner_on_cpu.start(Job(source, look=NAMES)))
    assert [e.text for e in seen if isinstance(e, Output)] == []
    (tensors,) = (event for event in seen if isinstance(event, Tensors))
    assert tensors.note == ""
    return {tensor.name: tensor for tensor in tensors.tensors}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_tensor_is_told_or_has_a_word(odd, name):
    _, words, why = ODD[name]
    assert odd[name].words == words
    assert why in odd[name].word
    assert (odd[name].stats is None) == bool(why)


def test_huge_tensors_are_sampled_and_say_so(odd):
    assert 0 < odd["large"].stats.count < 30_000_000
    assert len(odd["large"].sample.rows) == 30
    assert len(odd["large"].sample.columns) == 32


class Touched(TorchDispatchMode):
    """Counts the elements that operators read; views read none."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not func.is_view:
            self.count += sum(a.numel() for a in args if isinstance(a, torch.Tensor))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(1).expand(1000, 1000, 1000),
        lambda: torch.empty(100_000_000),  # 400 MB; its pages are not touched here
        lambda: torch.empty(10_000, 10_000).t(),
        lambda: torch.empty(100_000_000, dtype=torch.bool),
    ],
)
def test_of_a_huge_tensor_few_elements_are_read(make):
    tensor = make()
    tensor.requires_grad_(tensor.dtype.is_floating_point)
    found = Found(tensors=[("", "huge", tensor)])
    with torch.no_grad(), Touched() as touched:
        tensors = tensors_of(found, (), Budget(60))
    (told,) = tensors.tensors
    assert told.stats.count > 0
    assert told.sample is not None
    assert 0 < touched.count < 100_000


def test_at_a_line_a_huge_tensor_is_not_read_at_all():
    huge = torch.empty(100_000_000)
    with Touched() as touched:
        assert nonfinite(huge, tensor_snapshot(huge)) is None
    assert touched.count == 0


def test_complex_values_are_told_by_their_size(odd):
    assert odd["complex"].stats.maximum == odd["conjugate"].stats.maximum == 5.0
    assert odd["conjugate"].sample.values == ("(3-4j)",)


def test_hostile_objects_are_not_asked(look):
    source = """
    import torch, time
    class Evil:
        def __getattr__(self, name): print("asked"); raise SystemExit
        def __repr__(self): time.sleep(100)
        def __eq__(self, other): print("asked"); raise SystemExit
        def __len__(self): print("asked"); raise SystemExit
        def __iter__(self): print("asked"); raise SystemExit
        def __bool__(self): print("asked"); raise SystemExit
        @property
        def slow(self): time.sleep(100)
        @property
        def __class__(self): print("asked"); raise SystemExit
        @property
        def __dict__(self): print("asked"); raise SystemExit
    class Net(torch.nn.Module):
        def __init__(self): super().__init__(); vars(self)["evil"] = Evil()
        def __getattr__(self, name): print("asked"); raise SystemExit
        def extra_repr(self): print("asked"); raise SystemExit
    class List(list):
        def __getitem__(self, i): print("asked"); raise SystemExit
        def __iter__(self): print("asked"); raise SystemExit
        def __len__(self): print("asked"); raise SystemExit
    evil, net, many = Evil(), Net(), List([torch.ones(2)])
    evils = [Evil()] * 3
    x = torch.ones(1)
    """
    seen = look(textwrap.dedent(source))
    assert [event for event in seen if isinstance(event, Output)] == []
    assert {t.name for t in seen.one(Tensors).tensors} == {"x", "many[0]"}
    assert seen[-1].outcome == "done"


def test_names_by_the_thousand_are_bounded_and_counted(look):
    source = "import torch\nglobals().update({f'x{i}': torch.ones(3) for i in range(5000)})\n"
    seen = look(source, NAMES)
    tensors = seen.one(Tensors)
    assert len(tensors.tensors) == MOST_TENSORS
    assert tensors.left_out == 5000 - MOST_TENSORS


def test_the_programs_own_modes_and_defaults_are_not_in_the_way(look):
    source = """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    class Loud(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            print("function", func.__name__)
            return func(*args, **(kwargs or {}))
    class Low(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print("dispatch", func)
            return func(*args, **(kwargs or {}))
    x = torch.ones(2, requires_grad=True)
    torch.set_default_device("meta")
    def f():
        with Loud(), Low():
            y = x * 2
            y.sum().backward()
        return y
    y = f()
    """
    source = textwrap.dedent(source)
    plain = "".join(e.text for e in look(source, Look()) if isinstance(e, Output))
    seen = look(source)
    assert "".join(e.text for e in seen if isinstance(e, Output)) == plain != ""
    assert {t.name: t.stats.mean for t in seen.one(Tensors).tensors if not t.scope}["x"] == 1.0


def test_a_program_without_torch_and_one_that_does_not_compile_end_as_ever(look):
    for source, outcome in (("x = 1\n", "done"), ("x = (\n", "raised"), ("exit(3)", "exited")):
        seen = look(source)
        assert isinstance(seen[-1], Finished)
        assert seen[-1].outcome == outcome
        assert all(not event.note for event in seen if isinstance(event, LENS))
