"""The names of functions: looked at when a function returns, for afterwards they are gone.

The first sixteen calls of each, then the 32nd, the 64th and so on, as time allows; the last one
looked at stands in the tables.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType

from tensortutor.protocol.lens import (
    MOST_MODULES,
    MOST_TENSORS,
    Modules,
    OptimizerInfo,
    Optimizers,
    Scope,
    Storage,
    TensorInfo,
    Tensors,
)
from tensortutor.worker import access
from tensortutor.worker.lens import object_finder
from tensortutor.worker.lens.budget import Budget, TimeShare
from tensortutor.worker.lens.graph_names import TensorNames
from tensortutor.worker.lens.modules import modules_of
from tensortutor.worker.lens.optimizers import optimizers_of
from tensortutor.worker.lens.snapshots import may_compute
from tensortutor.worker.lens.tensor_table import tensors_of

ONE_LOOK_S = 0.01
FIRST_CALLS = 16
MOST_SCOPES = 30
MOST_NAMES = 60
"""Of a function, so that one does not fill the table."""


@dataclass
class Local:
    """What a function's names held at the end of one of its calls."""

    scope: Scope
    tensors: Tensors
    modules: Modules
    optimizers: Optimizers
    ids: dict[str, int]


class Scopes:
    """What the functions of the learner's file left behind, by their names."""

    def __init__(self) -> None:
        self.locals: dict[str, Local] = {}
        self._counts: dict[str, int] = {}
        self._time = TimeShare(time.thread_time)

    def leave(self, frame: FrameType) -> None:
        """A function is about to return or raise. Never raises itself."""
        name = object_finder.function_name(frame.f_code)
        count = self._counts[name] = self._counts.get(name, 0) + 1
        is_early = count <= FIRST_CALLS  # notes behind the lines are of the last call, too
        if not (is_early or count & (count - 1) == 0) or not self._may(name):
            return
        with access.quietly(), suppress(Exception), self._time.spending():
            self.locals[name] = look(name, frame, count)

    def _may(self, name: str) -> bool:
        """There is time, and the program does not notice."""
        if not may_compute():
            return False
        if name not in self.locals and len(self.locals) >= MOST_SCOPES:
            return False
        return self._time.left()

    def told(self, but: set[str]) -> list[Local]:
        """All of them but these, with the number of their calls."""
        return [
            replace(one, scope=replace(one.scope, calls=self._counts[name]))
            for name, one in self.locals.items()
            if name not in but
        ]


def look(name: str, frame: FrameType, count: int) -> Local:
    """The names of a frame."""
    finder = object_finder.Finder()
    inside = {
        key: value
        for key, value in object_finder.locals_of(frame).items()
        if key != "self" or not access.is_module(value)  # it has a name of its own outside
    }
    finder.search(name, inside)
    found = finder.found
    found.left_out += max(0, len(found.tensors) - MOST_NAMES)
    del found.tensors[MOST_NAMES:]
    budget = Budget(ONE_LOOK_S)
    scope = Scope(name, frame.f_code.co_firstlineno, count)
    return Local(
        scope,
        tensors_of(found, (scope,), budget, parameters=False),
        modules_of(found.modules, budget),
        optimizers_of(found.optimizers, TensorNames(found).names(), budget),
        {key: id(value) for key, value in (*found.modules, *found.optimizers)},
    )


def with_locals(tensors: Tensors, scopes: list[Local]) -> Tensors:
    """The table with the functions' names behind the program's own."""
    infos: list[TensorInfo] = list(tensors.tensors)
    storages: list[Storage] = list(tensors.storages)
    told, left_out = list(tensors.scopes), tensors.left_out
    for one in scopes:
        more = one.tensors
        if not more.tensors:
            continue
        left_out += more.left_out
        if len(infos) + len(more.tensors) > MOST_TENSORS:
            left_out += len(more.tensors)
            continue
        by = len(storages)
        infos += [replace(t, storage=t.storage + by if t.storage else 0) for t in more.tensors]
        storages += [replace(storage, id=storage.id + by) for storage in more.storages]
        told.append(one.scope)
    return Tensors(tuple(infos), tuple(storages), tuple(told), left_out, tensors.note)


def modules_with(modules: Modules, scopes: list[Local], known: set[int]) -> Modules:
    """The trees with those of the functions, whose paths begin with the function's name.

    known: the ids of what is in the trees already.
    """
    told = list(modules.modules)
    for one in scopes:
        prefix = one.scope.name
        told += [
            replace(m, path=f"{prefix}: {m.path}")
            for m in one.modules.modules
            if not any(is_below(m.path, key) and id_ in known for key, id_ in one.ids.items())
        ]
    left_out = modules.left_out + max(0, len(told) - MOST_MODULES)
    return Modules(tuple(told[:MOST_MODULES]), left_out, modules.note)


def is_below(path: str, root: str) -> bool:
    """`model.0.weight` is below `model`."""
    return path == root or path.startswith(f"{root}.")


def optimizers_with(optimizers: Optimizers, scopes: list[Local], known: set[int]) -> Optimizers:
    """The optimizers with those of the functions. known: the ids of those told already."""
    told: list[OptimizerInfo] = list(optimizers.optimizers)
    for one in scopes:
        prefix = one.scope.name
        told += [
            replace(o, name=f"{prefix}: {o.name}")
            for o in one.optimizers.optimizers
            if one.ids.get(o.name) not in known
        ]
    return Optimizers(tuple(told), optimizers.left_out, optimizers.note)
