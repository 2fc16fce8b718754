import gc
import weakref

import pytest
import torch

from tensortutor.checking.call_arguments import MOST_VALUES, noted, told


def scale(x, factor, *, bias=None):
    return x


def test_small_tensors_are_told_by_the_names_of_the_parameters() -> None:
    x, bias = torch.tensor([[1.0, -2.5], [1 / 3, float("nan")]]), torch.tensor([True, False])
    given = noted(scale, (x, 3), {"bias": bias})
    assert told(given) == "x = [[1, -2.5], [0.3333, nan]]\nbias = [True, False]"


def test_a_tensor_with_many_values_is_left_to_its_shape() -> None:
    assert told(noted(scale, (torch.zeros(MOST_VALUES + 1), torch.zeros(MOST_VALUES)), {})) == (
        f"factor = [{', '.join(['0'] * MOST_VALUES)}]"
    )


def test_what_has_changed_since_the_call_is_not_told() -> None:
    x = torch.ones(2)
    given = noted(scale, (x, 1), {})
    x.add_(1)
    assert told(given) == ""


def test_nothing_is_kept_alive_and_nothing_computed() -> None:
    x = torch.ones(2)
    gone = weakref.ref(x)
    with torch.profiler.profile() as profile:
        given = noted(scale, (x, 1), {})
    assert not [event for event in profile.events() if event.name.startswith("aten::")]
    del x
    gc.collect()
    assert gone() is None
    assert told(given) == ""


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_values_or_versions_are_passed_over() -> None:
    with torch.inference_mode():
        frozen = torch.ones(2)
    nested = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    odd = (frozen, torch.ones(2, device="meta"), nested, torch.ones(3).to_sparse())
    assert told(noted(print, odd, {})) == ""
    assert told(noted(len, (torch.ones(1),), {})) == "#1 = [1]"
