"""The autograd graphs of a program: those behind its names, and those backward has gone through."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tensortutor.protocol.lens import MOST_NODES, Graph, GraphEdge, GraphNode, GraphRoot
from tensortutor.worker import access
from tensortutor.worker.lens.backward import Capture
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.graph_names import TensorNames
from tensortutor.worker.lens.graph_nodes import (
    Piece,
    backward_order,
    mark_accumulated,
    plain_name,
    walk,
)
from tensortutor.worker.lens.object_finder import Found

MOST_ROOTS = 30


def graph_of(
    found: Found, captures: Iterable[Capture], budget: Budget, others: Found | None = None
) -> Graph:
    """The graphs of the program's names, and those that backward has gone through.

    others: what else may be called by its name in them.
    """
    tensor_names = TensorNames(found, *(() if others is None else (others,)))
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    roots: list[GraphRoot] = []
    for capture in captures:
        by, root = len(nodes), capture.root
        if by + len(capture.nodes) <= MOST_NODES:
            order = tuple(number + by for number in root.order)
            roots.append(replace(root, node=root.node + by, order=order))
            edges += [GraphEdge(e.source + by, e.target + by, e.input) for e in capture.edges]
            nodes += [replace(node, id=node.id + by) for node in capture.nodes]
    piece = Piece(len(nodes))
    passed = {number for root in roots for number in root.order}
    late = 0
    for name, tensor in alive(found):
        known = next((n for n in nodes if n.variable == name and n.kind == "op"), None)
        function = access.get_grad_fn(tensor)
        if known is not None and known.id in passed and known.name == plain_name(function):
            of = next(root for root in reversed(roots) if known.id in root.order)
            if all(root.name != name for root in roots):
                behind = reachable(known.id, edges)
                order = tuple(number for number in of.order if number in behind)
                roots.append(replace(of, name=name, node=known.id, order=order))
        elif not budget.left(0.1):
            late += 1
        elif len(roots) < MOST_ROOTS:
            number = walk(piece, function, tensor_names)
            if number is not None:
                roots.append(GraphRoot(name, number, order=backward_order(piece, number)))
    mark_accumulated(piece)
    note = f"There was no time left for the graphs of {late} more names." if late else ""
    return Graph(
        tuple(roots), (*nodes, *piece.nodes), (*edges, *piece.edges), piece.left_out, note=note
    )


def reachable(node: int, edges: list[GraphEdge]) -> set[int]:
    """A node and all behind it."""
    found, todo = {node}, [node]
    while todo:
        here = todo.pop()
        new = {edge.target for edge in edges if edge.source == here} - found
        found |= new
        todo += new
    return found


def alive(found: Found) -> list[tuple[str, Any]]:
    """The names whose tensors have a graph behind them; the last made first."""
    chosen = []
    for _scope, name, tensor in reversed(found.tensors):
        try:
            if access.get_grad_fn(tensor) is not None:
                chosen.append((name, tensor))
        except Exception:  # a wrapper that does not tell
            continue
    return chosen
