"""The autograd graph: nodes, names, what is kept, gradients of a backward pass."""

import textwrap

import pytest
import torch

from tensortutor.lens.trees import graph_tree
from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Graph

NAMES = Look(names=True)


def graph_of(look, source, which=NAMES):
    graph = look(textwrap.dedent(source), which).one(Graph)
    assert graph.note == ""
    return graph


shows_what_is_kept = pytest.mark.skipif(
    not hasattr(torch._C._autograd.SavedTensor, "unpack_hook"),
    reason="PyTorch 2.6 and 2.9 do not show what a node keeps without calling hooks",
)


def node(graph, **wanted):
    (found,) = (n for n in graph.nodes if all(getattr(n, k) == v for k, v in wanted.items()))
    return found


def root(graph, name):
    return next(one for one in graph.roots if one.name == name)


@shows_what_is_kept
def test_nodes_have_names_words_and_what_they_keep(look):
    source = """
    import torch
    w = torch.ones(3, requires_grad=True)
    x = torch.arange(3.0)
    y = w * x
    z = y.sum()
    """
    graph = graph_of(look, source)
    times = node(graph, name="MulBackward0")
    assert (times.kind, times.variable, times.words) == ("op", "y", "f32[3]")
    assert [(s.name, s.value, s.variable) for s in times.saved] == [("other", "f32[3]", "x")]
    leaf = node(graph, kind="leaf")
    assert (leaf.name, leaf.variable, leaf.words, leaf.grad) == ("Tensor", "w", "f32[3]", "")
    total = root(graph, "z")
    assert total.node == node(graph, name="SumBackward0").id
    assert total.order == (total.node, times.id, leaf.id)
    assert {(e.source, e.target) for e in graph.edges} == {
        (total.node, times.id), (times.id, leaf.id),
    }  # fmt: skip


@shows_what_is_kept
def test_backward_leaves_the_gradient_at_every_node_and_frees_what_was_kept(look):
    source = """
    import torch
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * w
    z = y.sum()
    z.backward()
    """
    graph = graph_of(look, source)
    z = root(graph, "z")
    assert (z.line, z.backward, z.backwards) == (6, 1, 1)
    times = node(graph, variable="y")
    assert (times.grad, round(times.grad_norm, 4)) == ("f32[2]", 1.4142)
    assert times.marks == ("freed",)
    leaf = node(graph, kind="leaf")
    assert (round(leaf.grad_norm, 4), leaf.marks) == (4.4721, ("accumulated",))  # [2, 4]


def test_gradients_that_add_up_over_passes_are_marked(look):
    source = """
    import torch
    w = torch.ones(2, requires_grad=True)
    for _ in range(2):
        (w * 3).sum().backward()
    """
    graph = graph_of(look, source)
    leaf = node(graph, kind="leaf")
    assert "accumulated" in leaf.marks
    assert graph.roots[0].backwards == 2


@shows_what_is_kept
def test_a_detached_tensor_ends_the_graph(look):
    source = """
    import torch
    w = torch.ones(2, requires_grad=True)
    y = w * 3
    d = y.detach()
    z = y * d
    """
    graph = graph_of(look, source)
    end = node(graph, kind="detached")
    assert (end.variable, end.words, end.marks) == ("d", "f32[2]", ("detached",))
    assert any(edge.target == end.id for edge in graph.edges)


def test_a_training_loop_inside_a_function_shows_its_graph(look):
    source = """
    import torch
    from torch import nn
    def train():
        model = nn.Linear(2, 1)
        for step in range(20):
            loss = model(torch.ones(3, 2)).pow(2).mean()
            model.zero_grad()
            loss.backward()
    train()
    """
    graph = graph_of(look, source)
    loss = root(graph, "loss")
    # The passes are looked at in ever larger gaps, as far as there is time.
    assert (loss.line, loss.backwards) == (9, 20)
    assert loss.backward in (1, 2, 4, 8, 16)
    leaves = {n.variable for n in graph.nodes if n.kind == "leaf"}
    assert leaves == {"model.weight", "model.bias"}
    assert all(n.grad for n in graph.nodes if n.kind == "op")
    text = [branch.text for branch in graph_tree(graph, loss.node)]
    assert text[0].startswith("MeanBackward0  loss: f32[]  grad 1")
    assert any("leaf  model.bias: f32[1]" in line for line in text)


def test_custom_functions_hooks_and_freed_graphs_behave_as_ever(look):
    source = """
    import torch
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2
        @staticmethod
        def backward(ctx, g):
            print("backward", g.tolist())
            return g * 2
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda g: print("hook", g.tolist()))
    y = Twice.apply(w)
    y.sum().backward()
    try:
        y.sum().backward()
    except RuntimeError as error:
        print(str(error)[:36])
    a = torch.ones(1, requires_grad=True)
    (g,) = torch.autograd.grad((a ** 3).sum(), a, create_graph=True)
    print(g.item(), torch.autograd.grad(g.sum(), a)[0].item())
    """
    source = textwrap.dedent(source)
    plain = "".join(event.text for event in look(source, Look()) if isinstance(event, Output))
    assert plain.startswith("backward [1.0, 1.0]\nhook [2.0, 2.0]\n")
    seen = look(source)
    assert "".join(event.text for event in seen if isinstance(event, Output)) == plain
    # Which of the two backward passes is looked at depends on the time that there is for it.
    twice = [one for one in seen.one(Graph).nodes if one.name == "TwiceBackward"]
    assert ("y", "f32[2]") in [(one.variable, one.words) for one in twice]


def test_a_graph_without_end_is_bounded_and_kept_alive_by_nobody(look):
    source = """
    import torch, gc, weakref
    w = torch.ones(2, requires_grad=True)
    def chain():
        y = w
        for _ in range(2000):
            y = y + 1
        y.sum().backward()
        return weakref.ref(y)
    gone = chain()
    gc.collect()
    print(gone() is None)
    z = w
    for _ in range(2000):
        z = z * 1.0
    """
    seen = look(textwrap.dedent(source))
    assert "".join(e.text for e in seen if isinstance(e, Output)) == "True\n"
    graph = seen.one(Graph)
    assert len(graph.nodes) <= 400
    assert graph.left_out > 0 or "no time left" in graph.note


def test_leaves_stand_where_the_engine_passes_them_and_nothing_is_hung_on_them(look):
    source = """
    import torch
    from torch import nn
    from torch.utils.hooks import RemovableHandle
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.ReLU(), nn.Linear(3, 1))
    model[0].weight.requires_grad_(False)
    w = model[3].weight
    loss = (model(torch.ones(2, 4)) + w.sum()).mean()
    passed, todo, leaves = [], [loss.grad_fn], 0
    while todo:
        node = todo.pop()
        if node.name().endswith("AccumulateGrad"):
            name = next(n for n, p in model.named_parameters() if p is node.variable)
            node.register_prehook(lambda _, name=name: passed.append(f"model.{name}"))
        todo += [n for n, _ in node.next_functions if n is not None]
    before = RemovableHandle.next_id
    loss.backward()
    print(RemovableHandle.next_id - before)
    print(*dict.fromkeys(passed))
    """
    seen = look(textwrap.dedent(source))
    hung, passed = "".join(e.text for e in seen if isinstance(e, Output)).splitlines()
    graph = seen.one(Graph)
    nodes = {one.id: one for one in graph.nodes}
    order = [nodes[number] for number in root(graph, "loss").order]
    assert int(hung) == sum(one.kind == "op" for one in order)
    assert [one.variable for one in order if one.kind == "leaf"] == [
        "w" if name == "model.3.weight" else name for name in passed.split()
    ]
    assert len(order) == len(graph.nodes)


def test_a_leaf_that_gets_no_gradient_is_not_passed(look):
    source = """
    import torch
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    c = (a * b).sum()
    c.backward(inputs=[b])
    """
    graph = graph_of(look, source)
    passed = [node(graph, id=number).variable for number in root(graph, "c").order]
    assert passed[-1] == "b"
    assert "a" not in passed
