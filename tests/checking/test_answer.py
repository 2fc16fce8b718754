"""The learner's program as a check sees it, and the words that its values are described in."""

import inspect
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from torch import nn

from tensortutor.checking import Answer, expect_close, expect_shape, recorded
from tensortutor.checking.answer import MissingName
from tensortutor.checking.describe import LONGEST, describe, describe_call


def double(x, *, times=2):
    """Twice x."""
    return x * times


def answer(**names) -> Answer:
    return Answer(names, "x = 1\n", "printed\n")


def test_source_and_output_are_the_programs():
    program = answer()
    assert (program.source, program.output) == ("x = 1\n", "printed\n")


def test_a_call_is_remembered_with_its_shapes():
    program = answer(double=double)
    assert torch.equal(program.double(torch.ones(2, 3)), torch.full((2, 3), 2.0))
    assert program.last_call == "double(f32[2, 3])"
    program.double(torch.ones(2), times=3)
    assert program.last_call == "double(f32[2], times=3)"


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (None, "None"),
        (torch.ones(2, 3), "f32[2, 3]"),
        ([1, 2], "a list of 2"),
        ({}, "a dict of 0"),
        (3, "an int"),
        (nn.Linear(1, 1), "a Linear"),
    ],
)
def test_what_kind_of_thing_came_back_is_remembered(result, kind):
    program = answer(get=lambda: result)
    assert program.get() is result
    assert program.last_result == kind


class Marked(torch.Tensor):
    """A subclass as a program may define one."""


def test_a_subclass_comes_back_as_a_plain_tensor_and_a_parameter_as_it_is():
    marked, weight = torch.ones(2).as_subclass(Marked), nn.Parameter(torch.ones(2))
    got = answer(get=lambda: marked).get()
    assert (type(got), got.data_ptr()) == (torch.Tensor, marked.data_ptr())
    assert answer(get=lambda: weight).get() is weight
    (first, (second,), third) = answer(get=lambda: [marked, (marked,), {1: marked}]).get()
    assert {type(tensor) for tensor in (first, second, third[1])} == {torch.Tensor}


def test_a_check_may_ask_for_subclasses():
    program = answer(get=lambda: torch.ones(2).as_subclass(Marked))
    program.keeps_subclasses = True
    assert type(program.get()) is Marked
    expect_close(program.get(), torch.ones(2))
    expect_shape(program.get(), [2])


def test_what_comes_back_runs_no_code_of_its_own():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    program = answer(get=Odd, make=lambda: Odd())
    program.make()
    assert program.last_result == "an Odd"


def test_a_call_that_raises_is_remembered_and_followed_up():
    def broken(x):
        raise ValueError("no")

    program = answer(broken=broken)
    calls = []
    program.guard = lambda: lambda: calls.append(program.last_call)
    with pytest.raises(ValueError, match="no"):
        program.broken(4)
    assert calls == ["broken(4)"]


def test_a_wrapped_function_keeps_its_signature():
    function = answer(double=double).double
    assert (function.__name__, function.__doc__) == ("double", "Twice x.")
    assert list(inspect.signature(function).parameters) == ["x", "times"]


def test_classes_values_and_callable_objects_arrive_as_they_are():
    class Net(nn.Linear):
        pass

    model = Net(2, 3)
    program = answer(Net=Net, model=model, size=3, weights=model.weight)
    assert program.Net is Net
    assert program.model is model
    assert program.size == 3
    assert program.weights is model.weight


def test_lambdas_and_torchs_own_functions_are_recorded_too():
    program = answer(f=lambda x: x, g=torch.relu)
    program.f(torch.zeros(1))
    assert program.last_call == "f(f32[1])"
    program.g(torch.zeros(2))
    assert program.last_call == "g(f32[2])"


def test_a_name_that_is_missing_has_a_sentence():
    with pytest.raises(MissingName, match="The program defines no `accumulate`"):
        _ = answer(double=double).accumulate


Pair = namedtuple("Pair", "image label")


class Rude:
    def __repr__(self):
        raise KeyError("no")


class RudeFunction:
    def __call__(self):
        return None

    def __getattr__(self, name):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(2, 3), "f32[2, 3]"),
        (torch.tensor(1), "i64[]"),
        (torch.ones(1, dtype=torch.bfloat16, device="meta"), "bf16[1] meta"),
        (torch.zeros(2, dtype=torch.float8_e4m3fn), "float8_e4m3fn[2]"),
        (nn.Parameter(torch.ones(4)), "f32[4]"),
        (nn.Sequential(nn.ReLU()), "Sequential"),
        ([torch.ones(1), 2], "[f32[1], 2]"),
        ((1, "a"), "(1, 'a')"),
        ((1, 2, 4, 4), "(1, 2, 4, 4)"),
        ([1, 2, 3, 4, 5, 6], "[1, 2, 3, 4, 5, 6]"),
        ([1, 2, 3, 4, 5, 6, 7], "[1, 2, 3, … 7 in all]"),
        (["a" * 20] * 4, f"['{'a' * 20}', '{'a' * 20}', '{'a' * 20}', … 4 in all]"),
        ({1: 2, 3: 4, 5: 6, 7: 8}, "{1: 2, 3: 4, 5: 6, 7: 8}"),
        (set("hgfedcba"), "{'a', 'b', 'c', … 8 in all}"),
        (frozenset("ab"), "{'a', 'b'}"),
        (set(), "set()"),
        ((1,), "(1,)"),
        (double, "double"),
        (nn.ReLU, "ReLU"),
        (torch.float32, "torch.float32"),
        (np.zeros((2, 3), dtype=np.int64), "array i64[2, 3]"),
        (np.zeros((2, 3))[::-1].T, "array f64[3, 2] strides (1, -3)"),
        (np.array("a"), "array <U1[]"),
        (Pair(torch.ones(2), {"n": 1}), "Pair(image=f32[2], label={'n': 1})"),
        (OrderedDict(w=torch.ones(2)), "{'w': f32[2]}"),
        (torch.optim.SGD([torch.zeros(1)], lr=0.1), "SGD"),
        (iter([1, 2]), "a list_iterator"),
        ("two\nlines", "'two\\nlines'"),
    ],
)
def test_values_are_described_in_a_few_words(value, words):
    assert describe(value) == words


def test_values_that_refuse_to_be_described_are_named():
    assert describe(Rude()) == "<Rude: repr raised KeyError>"
    assert describe(RudeFunction()) == "<RudeFunction: repr raised RuntimeError>"


def test_a_long_value_is_cut():
    words = describe("x" * 500)
    assert len(words) == LONGEST
    assert words.endswith("…")


def test_a_call_is_described_as_it_is_written():
    words = describe_call("split_heads", (torch.ones(2, 3, 20), 4), {"mask": None})
    assert words == "split_heads(f32[2, 3, 20], 4, mask=None)"


def test_a_call_shows_how_a_tensor_lies_in_memory_where_its_shape_does_not():
    x = torch.ones(4, 6)
    assert describe_call("f", (x.T,), {}) == "f(f32[6, 4] strides (1, 6))"
    assert describe_call("f", (x[1:],), {}) == "f(f32[3, 6] offset 6)"
    assert describe_call("f", (), {"x": x[1:, ::2]}) == "f(x=f32[3, 3] strides (6, 2) offset 6)"
    assert describe_call("f", (x.to_sparse(), nn.Parameter(x.T)), {}) == "f(f32[4, 6], f32[6, 4])"


def test_what_is_no_function_can_be_recorded_by_a_name():
    program = answer(double=nn.Identity())
    call = recorded(program, "double.forward", program.double)
    assert torch.equal(call(torch.ones(2)), torch.ones(2))
    assert (program.last_call, program.last_result) == ("double.forward(f32[2])", "f32[2]")
