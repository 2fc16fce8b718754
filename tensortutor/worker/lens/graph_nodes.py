"""The nodes of an autograd graph, walked from a grad_fn, with the learner's names on them."""

from dataclasses import dataclass, field, replace
from typing import Any

from tensortutor.protocol.lens import MOST_NODES, GraphEdge, GraphNode, Saved
from tensortutor.worker import access
from tensortutor.worker.lens import tensor_values
from tensortutor.worker.lens.graph_names import TensorNames

MOST_SAVED = 12


@dataclass
class Piece:
    """A graph, or several that share nodes. Nodes are numbered from `first`."""

    first: int
    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    functions: list[Any] = field(default_factory=list)
    left_out: int = 0


def plain_name(function: Any) -> str:
    """`AccumulateGrad` for `torch::autograd::AccumulateGrad`."""
    return access.cut(str(function.name()).rpartition("::")[2])


def walk(piece: Piece, function: Any, tensor_names: TensorNames) -> int | None:
    """Add what can be reached from a node. Its number; None where there is no room for it."""
    todo = [function]
    while todo:
        one = todo.pop()
        if id(one) in piece.numbers:
            continue
        number = piece.first + len(piece.nodes)
        if number >= MOST_NODES:
            piece.left_out += 1
            continue
        piece.numbers[id(one)] = number
        piece.functions.append(one)
        piece.nodes.append(describe(one, number, tensor_names))
        todo += [target for target, _ in reversed(one.next_functions) if target is not None]
    connect(piece, tensor_names)
    return piece.numbers.get(id(function))


def connect(piece: Piece, tensor_names: TensorNames) -> None:
    """The edges of all nodes that have none yet, and the detached tensors behind them."""
    done = {edge.source for edge in piece.edges}
    for function in list(piece.functions):
        number = piece.numbers[id(function)]
        if number in done:
            continue
        missing = []
        for index, (target, _) in enumerate(function.next_functions):
            if target is None:
                missing.append(index)
            elif id(target) in piece.numbers:
                piece.edges.append(GraphEdge(number, piece.numbers[id(target)], index))
        node = piece.nodes[number - piece.first]
        detached = (saved for saved in node.saved if tensor_names.detached(saved.variable))
        for index, saved in zip(missing, detached, strict=False):
            add_detached(piece, number, index, saved)


def add_detached(piece: Piece, source: int, index: int, saved: Saved) -> None:
    """A tensor at which the graph ends, although it has the values of one inside a graph."""
    number = piece.first + len(piece.nodes)
    if number < MOST_NODES:
        piece.nodes.append(
            GraphNode(
                number, "Tensor", "detached", saved.variable, saved.value, marks=("detached",)
            )
        )
        piece.edges.append(GraphEdge(source, number, index))


def describe(function: Any, number: int, tensor_names: TensorNames) -> GraphNode:
    """One node."""
    name = plain_name(function)
    variable = getattr(function, "variable", None)
    if name == "AccumulateGrad" and variable is not None and access.is_tensor(variable):
        grad = access.gradient(variable)
        return GraphNode(
            number, access.class_name(variable), "leaf", tensor_names.of_leaf(variable),
            access.words(variable), grad="" if grad is None else access.words(grad),
            grad_norm=None if grad is None else tensor_values.norm(grad),
        )  # fmt: skip
    saved, is_freed = saved_by(function, tensor_names)
    return GraphNode(
        number, name, "op", tensor_names.of_function(function), output_words(function), saved,
        marks=("freed",) if is_freed else (),
    )  # fmt: skip


def output_words(function: Any) -> str:
    """The words of what the operation made, from the metadata that autograd keeps of it."""
    try:
        one = function._input_metadata[0]
        return access.words_of_shape(one.dtype, tuple(map(int, one.shape)), str(one.device))
    except Exception:  # older torch, a nested tensor
        return ""


def saved_by(function: Any, tensor_names: TensorNames) -> tuple[tuple[Saved, ...], bool]:
    """What a node keeps for backward, and whether it has let go of it.

    No hook of the learner's is called: a tensor that one would bring back is not looked at.
    """
    found: list[Saved] = []
    is_freed = False
    outside = any(target is None for target, _ in function.next_functions)
    for attribute in sorted(a for a in dir(function) if a.startswith("_raw_saved_")):
        name = attribute.removeprefix("_raw_saved_")
        try:
            raw = getattr(function, attribute)
        except RuntimeError:
            is_freed = True
            continue
        for one in raw if isinstance(raw, (tuple, list)) else (raw,):
            if getattr(one, "unpack_hook", None) is not None:
                found.append(Saved(name, "kept by a hook"))
            elif getattr(one, "data", None) is not None:
                found.append(tensor_names.saved(name, one.data, outside=outside))
            else:
                is_freed = is_freed or is_gone(function, f"_saved_{name}", one)
    return tuple(found[:MOST_SAVED]), is_freed


def is_gone(function: Any, attribute: str, raw: Any) -> bool:
    """Nothing is there any more, rather than nothing ever was."""
    if not hasattr(raw, "unpack_hook") or not hasattr(type(function), attribute):
        return False  # asking could call a hook, which only newer versions let us see beforehand
    try:
        getattr(function, attribute)
    except RuntimeError:
        return True
    return False


def mark_accumulated(piece: Piece) -> None:
    """Nodes at which gradients from several places are added up."""
    counts: dict[int, int] = {}
    for edge in piece.edges:
        counts[edge.target] = counts.get(edge.target, 0) + 1
    for index, node in enumerate(piece.nodes):
        if counts.get(node.id, 0) > 1:
            piece.nodes[index] = replace(node, marks=(*node.marks, "accumulated"))


def backward_order(piece: Piece, root: int) -> tuple[int, ...]:
    """The order in which backward would pass the nodes: the last made first, leaves at once."""
    incoming: dict[int, int] = {}
    following: dict[int, list[int]] = {}
    reached, todo = {root}, [root]
    for edge in piece.edges:
        following.setdefault(edge.source, []).append(edge.target)
    while todo:
        for target in following.get(todo.pop(), []):
            incoming[target] = incoming.get(target, 0) + 1
            if target not in reached:
                reached.add(target)
                todo.append(target)
    made = {piece.numbers[id(f)]: f._sequence_nr() for f in piece.functions if has_number(f)}
    ready, order = [root], []
    while ready:
        number = max(ready, key=lambda node: made.get(node, 1 << 64))  # of equals the first
        ready.remove(number)
        order.append(number)
        for target in following.get(number, []):
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return tuple(n for n in order if piece.nodes[n - piece.first].kind != "detached")


def has_number(function: Any) -> bool:
    """Operations are numbered as they are made; leaves are not."""
    return hasattr(function, "_sequence_nr") and "AccumulateGrad" not in str(function.name())
