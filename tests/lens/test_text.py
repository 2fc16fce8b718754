"""The lens as text: lines, tables, trees, strides."""

from tensortutor.lens import lines, strides, tables, trees
from tensortutor.protocol.lens import (
    Graph,
    GraphEdge,
    GraphNode,
    GraphRoot,
    Line,
    Made,
    Mark,
    ModuleInfo,
    Modules,
    ParameterInfo,
    Saved,
    Stats,
    Storage,
    TensorInfo,
    Tensors,
    Trace,
)


def tensor(name, shape, stride, offset=0, **more):
    return TensorInfo(name, "", "Tensor", "float32", shape, "cpu", stride=stride, offset=offset,
                      itemsize=4, storage=1, **more)  # fmt: skip


def test_a_line_tells_what_it_made_how_often_and_its_marks():
    marks = (Mark("broadcast", "y stretched from [4] to [4, 4]"), Mark("nan", "NaN first here"))
    line = Line(
        3, 4, 1200, (Made("e", "f32[4, 4]", marks=marks), Made("return", "f32[]", "returned"))
    )
    assert lines.note(line) == "e: f32[4, 4] ⇔ NaN  → f32[]  ×1,200"
    assert lines.notes(Trace((line,))) == {4: lines.note(line)}
    assert list(lines.remarks(line)) == [
        "y stretched from [4] to [4, 4]", "e: NaN first here",
    ]  # fmt: skip


def test_strides_walk_through_the_storage():
    assert list(strides.cells_of(tensor("x", (2, 3), (3, 1)), 99)) == [0, 1, 2, 3, 4, 5]
    assert list(strides.cells_of(tensor("t", (3, 2), (1, 3)), 99)) == [0, 3, 1, 4, 2, 5]
    assert list(strides.cells_of(tensor("e", (2, 2), (0, 2), 1), 99)) == [1, 3, 1, 3]
    assert list(strides.cells_of(tensor("s", (), (), 5), 99)) == [5]
    assert list(strides.cells_of(tensor("n", (0, 2), (2, 1)), 99)) == []


def test_cells_that_two_tensors_share():
    x, row, column = (tensor("x", (2, 3), (3, 1)), tensor("r", (3,), (1,), 3),
                      tensor("c", (2,), (3,), 1))  # fmt: skip
    assert len(strides.shared(x, row)) == 12
    assert strides.shared(row, column) == set(range(16, 20))


def test_the_table_of_tensors_marks_who_shares():
    a = tensor("a", (2,), (1,), bytes=8, stats=Stats(2, 1, 0, 3.0, 3.0, 3.0), scope="train")
    b = tensor("b", (1,), (1,), 1, bytes=4, word="on meta: a shape without values")
    told = tables.tensor_table(Tensors((a, b), (Storage(1, "cpu", 8, ("train: a", "b")),), (), 7))
    assert [row[0] for row in told.rows] == ["train: a", "b"]
    assert [row[10] for row in told.rows] == ["A", "A"]
    assert told.rows[0][9] == "1 NaN"
    assert told.rows[1][11] == "on meta: a shape without values"
    assert told.below == ("A: train: a, b share 8 B.", "7 more tensors were left out.")


def test_numbers_are_short():
    assert [tables.size(n) for n in (0, 1023, 1536, -3 << 20, 5 << 40)] == [
        "0 B", "1023 B", "1.5 KiB", "-3 MiB", "5 TiB",
    ]  # fmt: skip
    assert [tables.time(ms) for ms in (0.0123, 1.5, 2500)] == ["12.3 µs", "1.5 ms", "2.5 s"]


def test_modules_and_graphs_are_trees():
    weight = ParameterInfo("weight", "f32[1, 3]", 3, False, 0.5, None, "model.0.weight")
    modules = Modules((
        ModuleInfo("model", 0, "Net", count=3, trainable=0, training=False),
        ModuleInfo("model.fc", 1, "Linear", "in_features=3", count=3, parameters=(weight,)),
    ))  # fmt: skip
    assert [(b.depth, b.text) for b in trees.module_tree(modules)] == [
        (0, "model: Net  3 parameters frozen eval"),
        (1, "fc: Linear(in_features=3)  3 parameters frozen"),
        (2, "weight: f32[1, 3]  norm 0.5  frozen  the same as model.0.weight"),
    ]
    graph = Graph(
        (GraphRoot("z", 0),),
        (
            GraphNode(0, "AddBackward0", "op", "z", "f32[]"),
            GraphNode(
                1, "MulBackward0", "op", "y", "f32[]", (Saved("self", "f32[]", "w"),), "f32[]", 2.0
            ),
            GraphNode(2, "Tensor", "leaf", "w", "f32[]", marks=("accumulated",)),
        ),
        (GraphEdge(0, 1, 0), GraphEdge(0, 1, 1), GraphEdge(1, 2, 0)),
    )  # fmt: skip
    assert [(b.depth, b.text) for b in trees.graph_tree(graph, 0)] == [
        (0, "AddBackward0  z: f32[]"),
        (1, "MulBackward0  y: f32[]  saved self=w  grad 2"),
        (2, "leaf  w: f32[]  accumulated"),
        (1, "MulBackward0  y: f32[]  saved self=w  grad 2  (the same node as above)"),
    ]


def test_a_leaf_that_is_reached_twice_is_said_to_be_the_same_node():
    nodes = (
        GraphNode(0, "AddBackward0", "op", "y", "f32[]"),
        GraphNode(1, "Tensor", "leaf", "w", "f32[]"),
    )
    edges = (GraphEdge(0, 1, 0), GraphEdge(0, 1, 1))
    graph = Graph((GraphRoot("y", 0),), nodes, edges)
    assert [branch.text for branch in trees.graph_tree(graph, 0)] == [
        "AddBackward0  y: f32[]", "leaf  w: f32[]", "leaf  w: f32[]  (the same node as above)",
    ]  # fmt: skip


def test_the_title_of_a_graph_says_which_backward_pass_its_gradients_are_of():
    root = GraphRoot("loss", 0, 9, 256, 448)
    assert trees.root_title(root) == (
        "loss, line 9, gradients of backward pass 256 (the last one looked at; there were 448)"
    )
    assert trees.root_title(GraphRoot("loss", 0, 9, 2, 2)) == (
        "loss, line 9, gradients of backward pass 2 of 2"
    )
    assert trees.root_title(GraphRoot("loss", 0, 9, 1, 1)) == "loss, line 9"
