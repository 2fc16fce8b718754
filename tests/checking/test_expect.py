"""What each expectation lets pass, and what it says about what it does not."""

import math

import pytest
import torch
from torch import nn

from tensortutor.checking import (
    Unmet,
    advice,
    advising,
    expect_close,
    expect_copy,
    expect_dtype,
    expect_equal,
    expect_raises,
    expect_shape,
    expect_true,
    expect_unchanged,
    expect_view,
    fail,
)
from tensortutor.checking.expect import Advised

ONES = torch.ones(2, 3)


def unmet(expectation, *args, **kwargs) -> Unmet:
    """The failure of an expectation that must fail."""
    with pytest.raises(Unmet) as caught:
        expectation(*args, **kwargs)
    assert str(caught.value) == caught.value.message
    return caught.value


def test_close_passes_within_the_tolerance_and_no_further():
    expect_close(ONES + 5e-5, ONES)
    assert unmet(expect_close, ONES + 5e-3, ONES).message == (
        "the result f32[2, 3] has 6 of 6 values wrong"
    )
    expect_close(ONES + 5e-3, ONES, rtol=1e-2)


def test_close_names_the_first_index_that_differs_and_both_values():
    got = torch.zeros(4, 5)
    got[2, 4] = 0.113
    error = unmet(expect_close, got, torch.zeros(4, 5), name="0.weight.grad", hint="Scale it.")
    assert error.message == "0.weight.grad f32[4, 5] has 1 of 20 values wrong"
    assert (error.got, error.expected, error.where) == ("0.113", "0", "at [2, 4]")
    assert error.hint == "Scale it."


def test_close_speaks_of_a_lone_number():
    error = unmet(expect_close, torch.tensor(2.0), torch.tensor(3.0))
    assert (error.got, error.expected, error.where) == ("2", "3", "in its only element")


def test_close_shows_enough_digits_to_tell_two_values_apart():
    got, wanted = torch.tensor([[0.1 + 1e-8], [0.1]], dtype=torch.float64)
    error = unmet(expect_close, got, wanted, atol=1e-10, rtol=0.0)
    assert (error.got, error.expected) == ("0.10000001", "0.1")


@pytest.mark.parametrize(
    ("got", "message"),
    [
        (None, "the result is None"),
        ([1.0], "the result is not a tensor"),
        (1.0, "the result is not a tensor"),
        (torch.ones(3, 2), "the result has the wrong shape"),
        (torch.ones(2, 3).double(), "the result has the wrong dtype"),
        (torch.ones(2, 3, device="meta"), "the result is on the wrong device"),
    ],
)
def test_close_wants_a_tensor_of_the_same_shape_dtype_and_device(got, message):
    assert unmet(expect_close, got, ONES).message == message


def test_none_is_explained():
    assert "return" in unmet(expect_close, None, ONES).cause


HINT = "Scale it."


@pytest.mark.parametrize(
    ("got", "wanted", "hint"),
    [
        (torch.zeros(2, 3), ONES, HINT),
        (None, ONES, advice.NONE),
        (1.0, ONES, advice.NO_TENSOR),
        (torch.ones(3, 2), ONES, advice.SHAPE),
        (torch.ones(2, 3).double(), ONES, advice.DTYPE),
        (torch.ones(2, 3, device="meta"), ONES, advice.DEVICE),
    ],
    ids=["values", "none", "type", "shape", "dtype", "device"],
)
def test_a_hint_about_values_is_shown_with_wrong_values_alone(got, wanted, hint):
    for expectation in (expect_close, expect_equal):
        assert unmet(expectation, got, wanted, hint=HINT).hint == hint


@pytest.mark.parametrize(
    ("got", "wanted", "hint"),
    [
        (4, 3, HINT),
        ([1, 2], [1, 3], HINT),
        ([1, 2], [1, 2, 3], HINT),
        ([1, None], [1, 3], ""),
        (None, 3, advice.NONE),
        (torch.tensor(3), None, HINT),
        (3, None, HINT),
        (torch.tensor(3), 3, advice.NO_NUMBER),
        ([1, torch.tensor(3)], [1, 3], advice.NO_NUMBER),
        (torch.tensor([3]), [3], advice.NO_CONTAINER),
        ((1, 2), [1, 2], advice.WRONG_TYPE),
        ([(1, 2)], [[1, 2]], advice.WRONG_TYPE),
        ([1, True], [1, 1], advice.WRONG_TYPE),
        ([torch.ones(2)], [torch.ones(3)], advice.SHAPE),
    ],
)
def test_a_hint_about_a_value_says_nothing_of_a_type(got, wanted, hint):
    assert unmet(expect_equal, got, wanted, hint=HINT).hint == hint


LAYERS = [f"blocks.{i}.{kind}" for i in range(4) for kind in ("weight", "bias")]


@pytest.mark.parametrize(
    ("got", "wanted", "where"),
    [
        ({"w": 1}, {"w": 1, "b": 2}, "missing: 'b'"),
        ({"w": 1, "v": 2}, {"w": 1}, "extra: 'v'"),
        ({"m": {"a": 1}}, {"m": {"b": 1}}, "at ['m']\nmissing: 'b'\nextra: 'a'"),
        (
            dict.fromkeys(LAYERS[:2], 0),
            dict.fromkeys(LAYERS, 0),
            "missing: 'blocks.1.weight', 'blocks.1.bias', 'blocks.2.weight', 'blocks.2.bias' "
            "and 2 more",
        ),
        ({1, 2}, {2, 3}, "missing: 3\nextra: 1"),
        (["a", "a", "b"], ["a", "b"], "extra: 'a'"),
        (("a", "c"), ("a", "b", "c"), "missing: 'b'"),
        ([1, 2, 3], [1, 2], "[2] is too many: 3"),
        ([1, 2], [1, 2, torch.ones(3)], "[2] is missing: f32[3]"),
        ([1, 5], [1, 2, 3], "at [1]: 5 instead of 2"),
        ([torch.zeros(2), 5], [torch.ones(2)], "at [0]: f32[2] instead of f32[2]"),
        (["a", "b"], ["a", "c"], "at [1]"),
        (3, 4, ""),
    ],
)
def test_what_two_containers_do_not_share_is_told(got, wanted, where):
    assert unmet(expect_equal, got, wanted).where == where


def test_long_texts_are_cut_where_they_differ():
    error = unmet(expect_equal, "x" * 100 + "one" + "z" * 100, "x" * 100 + "two")
    assert error.got.startswith("…'xxxxxxxxxxxxxxxonez")
    assert error.expected == "…'xxxxxxxxxxxxxxxtwo'"


def test_an_author_may_have_hints_for_shape_and_dtype_too():
    both = {"shape_hint": "Keep the dimension.", "dtype_hint": "Make it long."}
    for expectation in (expect_close, expect_equal):
        assert unmet(expectation, torch.ones(2), ONES, **both).hint == both["shape_hint"]
        assert unmet(expectation, ONES.double(), ONES, **both).hint == both["dtype_hint"]
    assert unmet(expect_shape, ONES, (3,), hint="Keep it.").hint == "Keep it."
    assert unmet(expect_dtype, ONES, torch.int64, hint="Make it long.").hint == "Make it long."


def test_a_hint_about_nan_is_for_nan_and_infinity_alone():
    both = {"hint": HINT, "nan_hint": "0/0 is NaN."}
    for bad in (math.nan, math.inf):
        got = torch.tensor([2.0, bad])
        assert unmet(expect_close, got, torch.ones(2), **both).hint == both["nan_hint"]
        assert unmet(expect_close, got, torch.ones(2), hint=HINT).hint == HINT
    assert unmet(expect_close, torch.zeros(2), torch.ones(2), **both).hint == HINT


def test_lost_digits_are_a_matter_of_the_dtype():
    got = torch.full((2,), 1 + 1e-4, dtype=torch.float64)
    wanted = torch.ones(2, dtype=torch.float64)
    for wrong, hints, hint in (
        (got, {"dtype_hint": "Stay in float64."}, "Stay in float64."),
        (got, {"dtype_hint": "Stay in float64.", "hint": HINT}, HINT),
        (2 * got, {"dtype_hint": "Stay in float64."}, ""),
    ):
        assert unmet(expect_close, wrong, wanted, rtol=1e-9, **hints).hint == hint


@pytest.mark.parametrize("expectation", [expect_shape, expect_dtype, expect_view, expect_copy])
def test_hints_about_a_tensor_say_nothing_of_what_is_none(expectation):
    second = {expect_shape: (2,), expect_dtype: torch.int64}.get(expectation, ONES)
    assert unmet(expectation, [1.0], second, hint=HINT).hint == advice.NO_TENSOR


def test_nobody_knows_why_a_part_is_none():
    error = unmet(expect_close, None, ONES, name="w.grad", hint=HINT)
    assert (error.message, error.cause, error.hint) == ("w.grad is None", "", "")


def test_advice_is_for_one_kind_of_error():
    with pytest.raises(Advised) as caught, advising(KeyError, saying="w", hint=HINT):
        raise KeyError("w")
    assert caught.value.hint == HINT
    assert isinstance(caught.value.error, KeyError)
    with pytest.raises(KeyError, match="v"), advising(KeyError, saying="w", hint=HINT):
        raise KeyError("v")
    with pytest.raises(ValueError, match="w"), advising(KeyError, saying="w", hint=HINT):
        raise ValueError("w")


def test_close_takes_a_reference_in_higher_precision():
    expect_close(ONES, ONES.double(), dtype=torch.float32)
    expect_close(ONES.bfloat16(), ONES.double(), dtype=torch.bfloat16, rtol=1e-2)
    assert "dtype" in unmet(expect_close, ONES.double(), ONES, dtype=torch.float32).message


def test_nan_equals_nan_and_nothing_else():
    strange = torch.tensor([math.nan, math.inf, 1.0])
    expect_close(strange.clone(), strange)
    expect_equal(strange.clone(), strange)
    assert "NaN" in unmet(expect_close, strange, torch.tensor([0.0, math.inf, 1.0])).cause
    assert unmet(expect_close, torch.zeros(3), strange).expected == "nan"


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.complex64],
)
def test_close_and_equal_work_for_every_dtype(dtype):
    wanted = torch.tensor([1, 0, 1]).to(dtype)
    expect_close(wanted.clone(), wanted)
    expect_equal(wanted.clone(), wanted)
    wrong = torch.tensor([1, 1, 1]).to(dtype)
    for expectation in (expect_close, expect_equal):
        assert unmet(expectation, wrong, wanted).where == "at [1]"


def test_close_looks_at_values_not_at_layout_or_history():
    leaf = torch.ones(3, 2, requires_grad=True)
    expect_close((leaf * 1).T, ONES)
    expect_close(ONES[:, :1].expand(2, 3), ONES)
    expect_close(nn.Parameter(ONES.clone()), ONES)
    expect_close(torch.empty(0, 3), torch.empty(0, 3))


def test_a_subclass_cannot_answer_for_its_values():
    class Liar(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            name = getattr(func, "__name__", "")
            with torch._C.DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
            return torch.ones_like(result) if name in ("isclose", "eq") else result

    error = unmet(expect_close, torch.zeros(2, 3).as_subclass(Liar), ONES)
    assert "6 of 6" in error.message


def test_equal_wants_every_bit():
    expect_equal(ONES.clone(), ONES)
    nudged = torch.nextafter(ONES, torch.tensor(2.0))
    error = unmet(expect_equal, nudged, ONES)
    assert error.got != error.expected


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (3, 3),
        ("a", "a"),
        (None, None),
        (math.nan, math.nan),
        (torch.Size([2, 3]), (2, 3)),
        ([torch.Size([2]), 1], [(2,), 1]),
        ([1, 2.0], [1.0, 2.0]),
        (torch.float32, torch.float32),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ([torch.tensor([1, 2])], [torch.tensor([1, 2])]),
        ((torch.ones(2), "x"), (torch.ones(2), "x")),
        ({1, 2}, {2, 1}),
    ],
)
def test_equal_passes(got, wanted):
    expect_equal(got, wanted)


@pytest.mark.parametrize(
    ("got", "wanted", "message"),
    [
        (torch.tensor(3), 3, "n is a tensor, an int is wanted"),
        (torch.tensor(3), None, "n is a tensor, None is wanted"),
        (torch.ones(2), [1.0, 1.0], "n is a tensor, a list is wanted"),
        (3.0, 3, "n is of type float, int is wanted"),
        (True, 1, "n is of type bool, int is wanted"),
        ((1, 2), [1, 2], "n is of type tuple, list is wanted"),
        (None, "a", "n is None"),
        (4, 3, "n is not what it should be"),
        (3, torch.tensor(3), "n is not a tensor"),
        (torch.float64, torch.float32, "n is not what it should be"),
        ([torch.tensor([1, 2])], [[1, 2]], "n is not what it should be"),
        ([1, 2], [torch.tensor(1), 2], "n[0] is not a tensor"),
    ],
)
def test_equal_says_what_is_wrong(got, wanted, message):
    assert unmet(expect_equal, got, wanted, name="n").message == message


@pytest.mark.parametrize(
    ("got", "wanted", "where"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 6], "at [4]"),
        ([1, (2, True)], [1, (2, 1)], "at [1][1]"),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, "at ['a']['b']"),
        ({"a": 1}, {"b": 1}, "missing: 'b'\nextra: 'a'"),
        ([[1], [2, 3]], [[1], [2]], "[1][1] is too many: 3"),
    ],
)
def test_equal_names_the_item_that_differs(got, wanted, where):
    error = unmet(expect_equal, got, wanted)
    assert error.where == where
    assert error.got != error.expected


def test_equal_compares_tensors_inside_containers_as_tensors():
    error = unmet(expect_equal, {"w": [torch.zeros(2)]}, {"w": [torch.ones(2)]}, name="state")
    assert error.message == "state['w'][0] f32[2] has 2 of 2 values wrong"


def test_equal_is_not_fooled_by_an_object_that_equals_everything():
    class Yes:
        def __eq__(self, other):
            return True

    class Broken:
        def __eq__(self, other):
            raise RuntimeError("no")

    for item in (Yes(), Broken()):
        unmet(expect_equal, item, 3)
        unmet(expect_equal, [1, item], [1, 3])
    unmet(expect_equal, Broken(), torch.float32)
    for wanted in (torch.float32, {1, 2}, None, torch.device("cpu"), torch.ones(2)):
        unmet(expect_equal, Yes(), wanted)


def test_what_an_object_says_of_its_class_does_not_count():
    class Claims:
        __class__ = torch.Tensor
        shape, dtype, device = ONES.shape, ONES.dtype, ONES.device

    for expectation in (expect_close, expect_equal):
        assert "not a tensor" in unmet(expectation, Claims(), ONES).message


def test_a_container_is_read_as_it_is():
    class Liar(list):
        def __getitem__(self, index):
            return 3

        def __len__(self):
            return 1

    unmet(expect_equal, [Liar([1, 2])], [[3]])
    unmet(expect_equal, {1: Liar([1])}, {1: [3]})


def test_shape():
    expect_shape(ONES, (2, 3))
    expect_shape(ONES, [2, 3])
    expect_shape(torch.tensor(1.0), ())
    error = unmet(expect_shape, ONES, (3, 2), name="scores")
    assert error.message == "scores has the wrong shape"
    assert (error.got, error.expected) == ("[2, 3]", "[3, 2]")
    assert "transposed" in error.cause


def test_dtype():
    expect_dtype(ONES, torch.float32)
    error = unmet(expect_dtype, ONES, torch.int64)
    assert (error.got, error.expected) == ("torch.float32", "torch.int64")


def test_view_and_copy_tell_by_storage():
    base = torch.arange(6.0)
    for view in (base[1:], base.view(2, 3).T, base.detach(), base):
        expect_view(view, base)
        assert unmet(expect_copy, view, base).message == "the result is a view of the input"
    for copy in (base.clone(), base + 0, base[[0, 1]]):
        expect_copy(copy, base)
        assert unmet(expect_view, copy, base).message == "the result is a copy"


def test_unchanged_passes_when_nothing_is_written():
    values = torch.tensor([1.0, math.nan])
    with expect_unchanged(values, ONES):
        _ = values + 1


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_(1),
        lambda t: t.__setitem__(0, math.nan),
        lambda t: t.resize_(1),
        lambda t: t.numpy().fill(0),
    ],
    ids=["in place", "by index", "resized", "through numpy"],
)
def test_unchanged_notices_a_write(change):
    with pytest.raises(Unmet, match=r"the input f32.* was changed in place"):
        with expect_unchanged(values := torch.ones(3)):
            change(values)


def test_unchanged_counts_several_inputs():
    first, second = torch.ones(2), torch.ones(2)
    with pytest.raises(Unmet, match="input 2"), expect_unchanged(first, second):
        second.zero_()


def test_raises_wants_that_kind_of_exception():
    with expect_raises(ValueError, "A negative size must be refused."):
        raise ValueError
    with pytest.raises(Unmet, match="must be refused") as caught:
        with expect_raises(ValueError, "A negative size must be refused.", hint="Test it."):
            pass
    assert caught.value.expected == "ValueError"
    assert caught.value.hint == "Test it."
    with pytest.raises(KeyError), expect_raises(ValueError, "no"):
        raise KeyError


def test_true_and_fail_say_their_sentence():
    expect_true(1, "unseen")
    assert unmet(expect_true, [], "Three graphs were alive.", hint="h").hint == "h"
    assert unmet(fail, "It never ends.", hint="Look.").message == "It never ends."
