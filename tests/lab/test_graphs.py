"""What stands in the boxes of `graph`, and what it refuses."""

import warnings

import pytest
import torch

from tensortutor.lab import graph
from tensortutor.protocol.drawings import Box


class Value:
    data, grad = 2.0, 0.333333


def test_tensors_have_data_and_grad_and_asking_warns_of_nothing(sent):
    a = torch.tensor(2.0, requires_grad=True)
    b = a * torch.ones(3)
    c = b.sum()
    c.retain_grad()
    c.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph({"a": a, "b": b, "c": c, "k": torch.ones(1)}, [("a", "b"), ("b", "c")])
    assert sent[0].boxes == (
        Box("a", ("data 2", "grad 3")), Box("k", ("data 1", "grad None")),
        Box("b", ("data [3]", "grad None"), (0,)), Box("c", ("data 6", "grad 1"), (2,)),
    )  # fmt: skip


def test_dicts_and_objects(sent):
    graph({"v": Value(), 1: {"op": "+", "value": 1e-9}, "none": {}}, [("v", 1), ("v", 1)], "words")
    assert sent[0].boxes == (
        Box("v", ("data 2", "grad 0.3333")), Box("none", ()),
        Box("1", ("op    +", "value 1e-09"), (0,)),
    )  # fmt: skip
    assert sent[0].caption == "words"


def test_values_are_those_of_the_call(sent, clock):
    grad = torch.ones(1)
    for _ in range(3):
        graph({"w": {"grad": grad}}, [], title="loop")
        grad += 1
        clock.now += 1
    assert [event.boxes[0].lines for event in sent] == [("grad 1",), ("grad 2",), ("grad 3",)]


@pytest.mark.parametrize(
    ("nodes", "edges", "error", "words"),
    [
        ([1], [], TypeError, "needs a dict"),
        ({"a": 1.0}, [], TypeError, "data and grad"),
        ({"a": {}}, ["ab"], TypeError, "pairs"),
        ({"a": {}}, [("a", "b")], ValueError, "'b'"),
        ({"a": {}, "b": {}}, [("a", "b"), ("b", "a")], ValueError, "circle"),
        ({n: {} for n in range(25)}, [], ValueError, "at most 24"),
    ],
)
def test_what_is_no_graph_is_refused_in_a_sentence(sent, nodes, edges, error, words):
    with pytest.raises(error, match=words):
        graph(nodes, edges)
    assert not sent
