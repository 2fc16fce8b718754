"""Numbers that no one would expect: of enormous tensors, and of programs that claim anything."""

import math

import pytest

from tensortutor.lens import strides, tables, tensor_details, trees
from tensortutor.protocol.lens import (
    Graph,
    GraphEdge,
    GraphNode,
    GraphRoot,
    ModuleInfo,
    Modules,
    Profile,
    ProfileRow,
    Sample,
    Share,
    Storage,
    TensorInfo,
)

HUGE = 1 << 62


def expanded(*shape, itemsize=4):
    """A tensor that looks at one cell again and again."""
    return TensorInfo("x", "", "Tensor", "float32", shape, "cpu", stride=(0,) * len(shape),
                      itemsize=itemsize, storage=1)  # fmt: skip


def test_only_the_first_elements_of_an_expanded_tensor_are_walked():
    assert list(strides.cells_of(expanded(HUGE, 2), 3)) == [0, 0, 0]
    assert strides.shared(expanded(HUGE), expanded(2, HUGE)) == {0, 1, 2, 3}
    rows = list(
        tensor_details.strip(expanded(HUGE), Storage(1, "cpu", 4, ("x",), "f", ("7",)), (5,), 0, 40)
    )
    assert rows == ["    0  [7]"]


def test_an_element_has_no_more_bytes_than_any_dtype():
    assert len(strides.bytes_of(expanded(1, itemsize=HUGE))) == strides.LARGEST_ELEMENT


def test_shades_reach_from_one_end_of_float64_to_the_other():
    sample = Sample((0,), (0, 1, 2), ("-1.7e308", "0.0", "1.7e308"))
    assert next(tensor_details.heat_map(sample, ascii=True)) == "  ::##"


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e300, -1.0])
def test_a_bar_is_never_longer_than_its_room(odd):
    profile = Profile(odd, (ProfileRow("mm", 1, odd, odd), ProfileRow("add", 1, 1.0, 1.0)),
                      (Share("data", odd, odd),))  # fmt: skip
    for table in (tables.profile_table(profile), tables.share_table(profile)):
        assert all(len(row[-1]) <= 30 for row in table.rows)


@pytest.mark.parametrize("odd", [-5, HUGE])
def test_a_module_lies_at_most_one_below_the_one_before(odd):
    modules = Modules((ModuleInfo("m", odd, "Net"), ModuleInfo("m.a", odd, "Linear")))
    assert [branch.depth for branch in trees.module_tree(modules)] == [0, 0 if odd < 0 else 1]


def test_an_edge_that_leads_nowhere_is_left_out():
    graph = Graph(
        (GraphRoot("y", 0),), (GraphNode(0, "AddBackward0", "op"),), (GraphEdge(0, 7, 0),)
    )
    assert [branch.id for branch in trees.graph_tree(graph, 0)] == ["0"]
    assert list(trees.graph_tree(graph, 7)) == []
    assert trees.backward_sentence(graph, 7) == ""
    assert trees.backward_sentence(graph, 0).endswith("it goes no further.")
