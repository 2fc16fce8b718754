"""Trees of modules and of the autograd graph, as lines."""

from collections.abc import Iterator
from dataclasses import dataclass

from tensortutor.lens.tables import number
from tensortutor.protocol.lens import (
    Graph,
    GraphNode,
    GraphRoot,
    ModuleInfo,
    Modules,
    ParameterInfo,
)

MOST_LINES = 200


@dataclass(frozen=True)
class Branch:
    """A line of a tree. depth: 0 at the root. id: of the node or the module's path."""

    depth: int
    id: str
    text: str


def module_tree(modules: Modules) -> Iterator[Branch]:
    """Each module, its parameters and buffers, its children."""
    depth = -1
    for module in modules.modules:
        # A program can claim any depth; a child lies one below its parent.
        depth = min(max(module.depth, 0), depth + 1)
        yield Branch(depth, module.path, module_text(module))
        for kind, tensors in (("", module.parameters), (" buffer", module.buffers)):
            for one in tensors:
                text = f"{one.name}: {tensor_text(one, kind)}"
                yield Branch(depth + 1, f"{module.path}.{one.name}", text)


def module_text(module: ModuleInfo) -> str:
    """`model.0: Linear(in_features=3, out_features=1)  4 parameters, frozen`."""
    name = module.path if not module.depth else module.path.rpartition(".")[2]
    detail = f"({module.detail})" if module.detail else ""
    words = [f"{name}: {module.type}{detail}"]
    if module.count:
        words.append(f" {module.count:,} parameters")
        if not module.trainable:
            words.append("frozen")
        elif module.trainable < module.count:
            words.append(f"{module.trainable:,} of them train")
    if not module.training:
        words.append("eval")
    return " ".join(words)


def tensor_text(one: ParameterInfo, kind: str) -> str:
    """`f32[1, 3] norm 0.9 grad 0.1`."""
    parts = [f"{one.words}{kind}"]
    if one.norm is not None:
        parts.append(f"norm {number(one.norm)}")
    if one.grad_norm is not None:
        parts.append(f"grad {number(one.grad_norm)}")
    if not kind and not one.trainable:
        parts.append("frozen")
    if one.tied:
        parts.append(f"the same as {one.tied}")
    return "  ".join(parts)


def root_title(root: GraphRoot) -> str:
    """`loss, line 9, gradients of backward pass 256 (the last one looked at; there were 448)`."""
    title = root.name or "a tensor"
    if root.line:
        title += f", line {root.line}"
    if root.backwards > 1:
        title += f", gradients of backward pass {root.backward:,}"
        if root.backward < root.backwards:
            title += f" (the last one looked at; there were {root.backwards:,})"
        else:
            title += f" of {root.backwards:,}"
    return title


def graph_tree(graph: Graph, root: int) -> Iterator[Branch]:
    """The nodes behind one; a node that was there before is named and not opened again."""
    nodes = {node.id: node for node in graph.nodes}
    inputs: dict[int, list[int]] = {}
    for edge in sorted(graph.edges, key=lambda edge: edge.input):
        inputs.setdefault(edge.source, []).append(edge.target)
    seen: set[int] = set()
    todo = [(root, 0)]
    for _ in range(MOST_LINES):
        if not todo:
            return
        id, depth = todo.pop()
        again = id in seen
        seen.add(id)
        if id not in nodes:
            continue  # a program can claim an edge that leads nowhere
        mark = "  (the same node as above)" if again else ""
        yield Branch(depth, str(id), node_text(nodes[id]) + mark)
        if not again:
            todo += [(target, depth + 1) for target in reversed(inputs.get(id, []))]
    yield Branch(0, "", "…")


def node_text(node: GraphNode) -> str:
    """`MulBackward0  y: f32[2]  saved other=x  grad 1.4  freed`."""
    variable = f"{node.variable}: " if node.variable else ""
    parts = [node.name if node.kind == "op" else node.kind, f"{variable}{node.words}"]
    if node.saved:
        kept = (f"{saved.name}={saved.variable or saved.value}" for saved in node.saved)
        parts.append(f"saved {', '.join(kept)}")
    if node.grad:
        norm = "" if node.grad_norm is None else f" {number(node.grad_norm)}"
        parts.append(f"grad{norm}")
    parts += [mark for mark in node.marks if mark != node.kind]
    return "  ".join(part for part in parts if part)


def backward_sentence(graph: Graph, id: int) -> str:
    """What backward does at a node, with shapes: what comes in, what goes where.

    "" if there is no such node.
    """
    nodes = {node.id: node for node in graph.nodes}
    node = nodes.get(id)
    if node is None:
        return ""
    came = f"a gradient {node.grad}" if node.grad else "a gradient"
    norm = "" if node.grad_norm is None else f" of norm {number(node.grad_norm)}"
    if node.kind == "leaf":
        added = "is added to" if "accumulated" in node.marks else "arrives in"
        return f"{came}{norm} {added} {node.variable or 'a leaf'}.grad."
    targets = [
        nodes[edge.target] for edge in graph.edges if edge.source == id and edge.target in nodes
    ]
    out = [
        f"{target.grad or target.words} to {target.variable or target.name}"
        for target in targets if target.kind != "detached"
    ]  # fmt: skip
    used = [f"{saved.name} {saved.variable or saved.value}" for saved in node.saved]
    with_ = f", with the saved {' and '.join(used)}," if used else ""
    if not out:
        return f"{node.name} takes {came}{norm}; it goes no further."
    return f"{node.name} takes {came}{norm}{with_} and passes {', '.join(out)}."
