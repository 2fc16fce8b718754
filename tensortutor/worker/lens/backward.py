"""Listens to backward passes: the gradient that arrives at each node, while it is there.

The graph that a training loop builds is gone when the program has ended. So a pass is listened to
when it comes: the first from a line, the second, the fourth, the eighth, and so on, as time allows;
what is kept of it is data alone. Nothing is listened to where the program would notice: under
its own modes, profilers and transforms.
"""

import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from tensortutor.protocol.lens import MOST_NODES, GraphEdge, GraphNode, GraphRoot
from tensortutor.worker import access
from tensortutor.worker.lens import object_finder, tensor_values
from tensortutor.worker.lens.budget import TimeShare
from tensortutor.worker.lens.graph_names import TensorNames
from tensortutor.worker.lens.graph_nodes import (
    Piece,
    backward_order,
    describe,
    mark_accumulated,
    saved_by,
    walk,
)
from tensortutor.worker.lens.snapshots import may_compute

ENGINE = "_engine_run_backward"
"""What `backward` and `grad` call; a function of torch's own that is not public."""
AUTOGRAD: dict[str, Any] = vars(torch.autograd)
ALWAYS = 2
"""So many passes are looked at whatever it costs: what adds up shows in the second."""
MOST_LINES = 10
DEEPEST = 8
"""Frames between the learner's line and the engine."""


@dataclass
class Capture:
    """One backward pass: the tensor that it began at, and the graph behind it."""

    root: GraphRoot
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class BackwardListener:
    """Stands between `backward` and autograd's engine. captures: the last one of each line."""

    def __init__(self, path: str, hidden: Collection[str] = ()) -> None:
        """hidden: global names that no tensor is called by."""
        self.captures: dict[int, Capture] = {}
        self._path = path
        self._hidden = hidden
        self._counts: dict[int, int] = {}
        self._time = TimeShare(time.process_time)
        self._engine: Any = None
        self._mine: Callable[..., Any] | None = None

    def begin(self) -> None:
        """Put it in its place, where this torch has one."""
        self._engine = AUTOGRAD.get(ENGINE)
        if self._engine is not None:
            AUTOGRAD[ENGINE] = self._mine = self._run

    def end(self) -> None:
        """Put the engine back; the captures learn how many passes there were."""
        if self._mine is not None and AUTOGRAD.get(ENGINE) == self._mine:
            AUTOGRAD[ENGINE] = self._engine
        for line, capture in self.captures.items():
            capture.root = replace(capture.root, backwards=self._counts[line])

    def _run(self, outputs: Any, *arguments: Any, **more: Any) -> Any:
        """What `torch.autograd.backward` and `grad` call: most passes go straight on."""
        frame = self._learners_frame()
        if frame is None:
            return self._engine(outputs, *arguments, **more)
        line = frame.f_lineno
        count = self._counts[line] = self._counts.get(line, 0) + 1
        if count & (count - 1) or not self._may(line, count):
            return self._engine(outputs, *arguments, **more)
        inputs = arguments[3] if len(arguments) > 3 else ()
        heard: Heard | None = None
        # Here and below: a defect of the lens is no reason for the program not to run.
        with access.quietly(), suppress(Exception), self._time.spending():
            accumulates = more.get("accumulate_grad")
            heard = Heard(frame, outputs, inputs if accumulates else None, self._hidden)
        try:
            result = self._engine(outputs, *arguments, **more)
        finally:
            for hook in heard.hooks if heard is not None else ():
                hook.remove()
        if heard is not None:
            with access.quietly(), suppress(Exception), self._time.spending():
                self.captures[line] = heard.capture(line, count)
        return result

    def _learners_frame(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(2)
        for _ in range(DEEPEST):
            if frame is None or frame.f_code.co_filename == self._path:
                return frame
            frame = frame.f_back
        return None

    def _may(self, line: int, count: int) -> bool:
        if not may_compute():
            return False
        if line not in self.captures and len(self.captures) >= MOST_LINES:
            return False
        return count <= ALWAYS or self._time.left()


class Heard:
    """One pass: the nodes before it, and what arrives at them.

    It listens at operations alone. A leaf's node may outlive the graph, and what is hung on it
    slows every later pass, even when it has been taken away; which leaves have their turn is known.
    """

    def __init__(
        self, frame: FrameType, outputs: Any, inputs: Any, hidden: Collection[str] = ()
    ) -> None:
        """inputs: the leaves that get a `.grad`, () for all, None if none does."""
        names = {n: v for n, v in frame.f_globals.items() if n not in hidden}
        if frame.f_locals is not frame.f_globals:
            names.update(frame.f_locals)
        finder = object_finder.Finder()
        finder.search("", names)
        self._labels = tensor_names = TensorNames(finder.found)
        self._piece = Piece(0)
        self._passed: set[int] = set()
        self._arrived: dict[int, tuple[str, Any]] = {}
        first = next(o for o in outputs if access.is_tensor(o))
        self._name = tensor_names.of_leaf(first)
        self._had_grad = set()
        root = access.get_grad_fn(first)
        number = None if root is None else walk(self._piece, root, tensor_names)
        if number is None:
            raise LookupError("there is no graph to listen to")
        self._root = number
        mark_accumulated(self._piece)
        self.hooks: list[Any] = []
        wanted = None if inputs is None else {id(one) for one in inputs}
        for function in self._piece.functions[:MOST_NODES]:
            node = self._piece.nodes[self._piece.numbers[id(function)]]
            if node.kind != "leaf":
                self.hooks.append(function.register_prehook(self._hook(node.id)))
                continue
            if node.grad:
                self._had_grad.add(node.id)
            if wanted is not None and (not wanted or id(function.variable) in wanted):
                self._passed.add(node.id)

    def _hook(self, number: int) -> Callable[[Any], None]:
        def arrive(gradients: Any) -> None:
            self._passed.add(number)
            for one in gradients:
                if one is not None:
                    self._arrived[number] = arrived(one)
                    return

        return arrive

    def capture(self, line: int, count: int) -> Capture:
        """What was heard, as data."""
        nodes = []
        functions = {self._piece.numbers[id(f)]: f for f in self._piece.functions}
        for node in self._piece.nodes:
            words, norm = self._arrived.get(node.id, ("", None))
            marks = node.marks
            if node.kind == "leaf":
                # Once more: now it has the `.grad` that the pass has left.
                node = describe(functions[node.id], node.id, self._labels)
                if node.id in self._had_grad:
                    marks = (*marks, *(() if "accumulated" in marks else ("accumulated",)))
                nodes.append(replace(node, marks=marks))
            else:
                if node.kind == "op" and saved_by(functions[node.id], self._labels)[1]:
                    marks = (*(mark for mark in marks if mark != "freed"), "freed")
                nodes.append(replace(node, grad=words, grad_norm=norm, marks=marks))
        order = tuple(n for n in backward_order(self._piece, self._root) if n in self._passed)
        root = GraphRoot(self._name, self._root, line, count, count, order)
        return Capture(root, nodes, self._piece.edges)


def arrived(gradient: Any) -> tuple[str, float | None]:
    """A gradient in words, and its norm. Nothing is computed on an accelerator."""
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            words = access.words(gradient)
            on_cpu = access.get_device(gradient).type == "cpu"
            return words, tensor_values.norm(gradient) if on_cpu else None
    except Exception:  # a class of its own, a layout without norms
        return "", None
