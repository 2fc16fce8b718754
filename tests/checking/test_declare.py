"""What a check file declares, in the order in which it stands there."""

import pytest
import torch

from tensortutor.checking import accepted, check, declare, equivalent, mutant
from tensortutor.checking.declare import Declarations, base_name, names_of


@pytest.fixture
def declared(monkeypatch):
    fresh = Declarations()
    monkeypatch.setattr(declare, "declared", fresh)
    return fresh


def test_checks_are_declared_in_order_and_stay_functions(declared):
    @check("doubles", forbid=("torch.Tensor.mul_", "torch.add"))
    def doubles(answer, rng, device):
        return answer

    @check("counts", counts_calls=True, hint="Call it once.")
    def counts(answer, rng, device):
        return None

    assert [c.name for c in declared.checks] == ["doubles", "counts"]
    assert declared.checks[0].run is doubles
    assert declared.checks[0].forbid == {"mul", "add"}
    assert [c.hint for c in declared.checks] == ["", "Call it once."]
    assert [c.watched for c in declared.checks] == [True, True]
    assert doubles("same", None, None) == "same"


def test_functions_of_torchs_modules_go_by_two_names(declared):
    check("inverts", forbid=("torch.linalg.inv",))(lambda answer, rng, device: None)
    assert declared.checks[0].forbid == {"inv", "linalg_inv"}
    assert torch.linalg.inv.__name__ == "linalg_inv"


def test_a_check_that_forbids_and_counts_nothing_is_not_watched(declared):
    @check("plain")
    def plain(answer, rng, device):
        return None

    assert not declared.checks[0].watched


def test_mutants_and_accepted_answers_keep_their_functions(declared):
    @check("adds")
    def adds(answer, rng, device):
        return None

    @mutant("subtracts", caught_by=adds)
    def add(a, b):
        return a - b

    wrong = add

    @accepted("the other way round")
    def add(a, b):
        return b + a

    assert [(s.name, s.value) for s in declared.substitutes] == [
        ("subtracts", wrong),
        ("the other way round", add),
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("torch.softmax", "softmax"),
        ("torch.nn.functional.softmax", "softmax"),
        ("torch.Tensor.add_", "add"),
        ("torch.Tensor.__matmul__", "matmul"),
        ("softmax", "softmax"),
    ],
)
def test_a_shortcut_is_forbidden_by_the_last_part_of_its_name(path, name):
    assert base_name(path) == name


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("torch.linalg.inv", {"inv", "linalg_inv"}),
        ("torch.Tensor.matmul", {"matmul"}),
        ("torch.cumsum", {"cumsum"}),
    ],
)
def test_a_shortcut_is_forbidden_under_torchs_inner_name_too(path, names):
    assert names_of(path) == names


def test_an_equivalent_edit_declares_nothing_that_runs(declared):
    equivalent("x > 0", "x >= 0", because="x is never 0")
    assert declared == Declarations()
