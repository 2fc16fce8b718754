"""Autograd graphs, as nodes and edges."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Saved:
    """What a node keeps for backward. name: as autograd calls it, `self`, `mat2`. value: words.

    variable: the learner's name for that tensor, or "".
    """

    name: str
    value: str
    variable: str = ""


@dataclass(frozen=True)
class GraphNode:
    """A node of the graph. kind: "op", "leaf" (a tensor whose `.grad` is filled) or "detached".

    name: `MulBackward0`; of a leaf or a detached tensor, its class. variable: the learner's name of
    the leaf, or of the tensor that the op made. words: of that tensor. grad, grad_norm: the
    gradient that arrived here in the backward that `GraphRoot.backward` tells of; of a leaf, its
    `.grad`. marks: "accumulated" (gradients from several places, or several backward passes, are
    added up here), "detached" (the graph ends here though the tensor comes from another one),
    "freed" (what it had saved is gone).
    """

    id: int
    name: str
    kind: str
    variable: str = ""
    words: str = ""
    saved: tuple[Saved, ...] = ()
    grad: str = ""
    grad_norm: float | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphEdge:
    """Backward passes a gradient from `source` to `target`, the source's input number `input`."""

    source: int
    target: int
    input: int


@dataclass(frozen=True)
class GraphRoot:
    """A tensor whose graph this is. node: its grad_fn.

    line: where `backward` was called on it, 0 if it was not. backward, backwards: the gradients are
    those of the Nth call there, of so many; 0: no gradients of inner nodes are known. order: the
    ids of the nodes in the order in which backward passed them.
    """

    name: str
    node: int
    line: int = 0
    backward: int = 0
    backwards: int = 0
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Autograd graphs, which may share nodes. left_out: nodes beyond the limit."""

    roots: tuple[GraphRoot, ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    left_out: int = 0
    note: str = ""
