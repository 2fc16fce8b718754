"""A guess is made when it explains every element, and not otherwise."""

import pytest
import torch

from tensortutor.checking.causes import cause_of_shape, cause_of_values

# No two elements alike, no symmetry: only the mistake that was made explains the difference.
WANTED = torch.tensor([[1.0, -2.0, 4.0], [7.0, 11.0, -16.0], [22.0, 29.0, 37.0]])


@pytest.mark.parametrize(
    ("got", "wanted", "cause"),
    [
        ((3, 2), (2, 3), "transposed"),
        ((4, 2, 3), (2, 3, 4), "transposed"),
        ((2, 3), (2, 1, 3), "was dropped"),
        ((3,), (1, 3, 1), "was dropped"),
        ((2, 1), (2,), "too many"),
        ((2, 3, 4), (2, 4), "should have been reduced"),
        ((2,), (2, 3), "is missing"),
        ((6,), (2, 3), "grouped otherwise"),
        ((2, 6), (3, 4), "grouped otherwise"),
        ((2, 3), (2, 4), ""),
        ((5,), (), "should have been reduced"),
        ((7, 5), (), ""),
    ],
)
def test_shapes(got, wanted, cause):
    sentence = cause_of_shape(got, wanted)
    assert cause in sentence
    assert bool(sentence) == bool(cause)


def with_value(value, *index):
    changed = WANTED.clone()
    changed[index] = value
    return changed


@pytest.mark.parametrize(
    ("got", "cause"),
    [
        (-WANTED, "The sign is turned round everywhere."),
        (WANTED.T, "permuted as (1, 0)"),
        (WANTED * 0.125, "Every value is 0.125 times"),
        (WANTED * -3, "Every value is -3 times"),
        (WANTED + 2.5, "Every value is off by 2.5."),
        (WANTED - 1, "Every value is off by -1."),
        (torch.zeros(3, 3), "Every value is zero."),
        (WANTED.flip(0), "reversed along dimension 0"),
        (WANTED.flip(1), "reversed along dimension 1"),
        (WANTED.roll(1, 0), "shifted by one along dimension 0"),
        (WANTED.flatten()[[1, 0, 5, 3, 8, 4, 2, 7, 6]].view(3, 3), "in the wrong places"),
        (WANTED * 1.0005, "precision was lost"),
        (with_value(float("nan"), 1, 1), "NaN where a number belongs"),
        (with_value(float("inf"), 2, 0), "infinity where a number belongs"),
        (with_value(5.0, 0, 0), ""),
        (WANTED * torch.tensor([1.0, 2.0, 3.0]), ""),
    ],
)
def test_values(got, cause):
    sentence = cause_of_values(got, WANTED)
    assert cause in sentence
    assert bool(sentence) == bool(cause)


@pytest.mark.parametrize(
    ("got", "wanted", "cause"),
    [
        ([True, False], [False, True], "Every value is inverted."),
        ([True, True], [False, True], ""),
        ([2, 4, 6], [1, 2, 3], "Every value is 2 times"),
        ([2, 3, 4], [1, 2, 3], "Every value is off by 1."),
        ([0.0, 0.0], [3.0, 3.0], "Every value is zero."),
        ([4.0], [2.0], ""),
        ([0.0, 2.0, 4.0], [0.0, 1.0, 2.0], "Every value is 2 times"),
        ([1.0, 2.0, 4.0], [0.0, 1.0, 2.0], ""),
        ([0.0, 0.0], [1e-7, 2e-7], "Every value is zero."),
        ([2e-9, 6e-9], [1e-9, 3e-9], "Every value is 2 times"),
        ([1e-9, 1e-9], [3e-9, 1e-9], ""),
        ([1j, 2.0], [-1j, -2.0], "The sign is turned round everywhere."),
    ],
)
def test_small_and_unusual_values(got, wanted, cause):
    sentence = cause_of_values(torch.tensor(got), torch.tensor(wanted))
    assert cause in sentence
    assert bool(sentence) == bool(cause)


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 0, 1), (2, 1, 0)])
def test_permutations_of_cubes_are_named_as_permute_takes_them(order):
    wanted = torch.arange(27.0).view(3, 3, 3) ** 2
    assert f"permuted as {order}" in cause_of_values(wanted.permute(order), wanted)


def test_reduced_precision_is_compared_with_the_reference():
    wanted = torch.tensor([1.0, 2.0, 5.0])
    assert "2 times" in cause_of_values((wanted * 2).half(), wanted.double())
