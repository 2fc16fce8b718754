"""Which tensors, modules and optimizers a program's names hold, and what to call them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch

from tensortutor.worker import access
from tensortutor.worker.lens.modules import walk

MOST_VISITED = 20_000
"""Objects looked at, whatever they are."""
MOST_ITEMS = 8
"""Of a list, tuple or dict: the first ones, and of a list the last."""
DEEPEST = 3
LONGEST_KEY = 40
SEQUENCES = (list, tuple)


@dataclass
class Found:
    """What there is, in the order of its names. left_out: tensors not visited one by one."""

    tensors: list[tuple[str, str, Any]] = field(default_factory=list)  # (scope, name, tensor)
    modules: list[tuple[str, Any]] = field(default_factory=list)
    optimizers: list[tuple[str, Any]] = field(default_factory=list)
    left_out: int = 0


class Finder:
    """Walks through names, containers and plain objects, each object once."""

    def __init__(self) -> None:
        self.found = Found()
        self._seen: set[int] = set()
        self._modules: set[int] = set()
        self._visited = 0
        self._scope = ""

    def search(self, scope: str, names: Mapping[str, Any]) -> None:
        """Add what the names hold. Dunder names are Python's, not the learner's.

        scope: "" for the program's own names, else the function's.
        """
        self._scope = scope
        for name, value in list(names.items()):
            if type(name) is str and not (name.startswith("__") and name.endswith("__")):
                self._visit(name, value, 0)

    def _visit(self, name: str, value: Any, depth: int) -> None:
        self._visited += 1
        kind = type(value)
        if kind in PLAIN or issubclass_of_type(kind):
            return
        if access.is_tensor(value):
            if self._visited > MOST_VISITED:
                self.found.left_out += 1
            else:
                self.found.tensors.append((self._scope, name, value))
            return
        if id(value) in self._seen or depth >= DEEPEST or self._visited > MOST_VISITED:
            return
        self._seen.add(id(value))
        if access.is_module(value):
            self._module(name, value)
        elif torch.optim.Optimizer in kind.__mro__:
            self.found.optimizers.append((name, value))
        elif any(base in kind.__mro__ for base in SEQUENCES):
            self._sequence(name, value, depth)
        elif dict in kind.__mro__:
            self._dict(name, value, depth)
        elif kind.__module__ == "__main__":
            for key, item in list(access.attributes(value).items()):
                self._visit(f"{name}.{key}", item, depth + 1)

    def _sequence(self, name: str, value: Any, depth: int) -> None:
        base = list if list in type(value).__mro__ else tuple
        size = base.__len__(value)
        chosen = range(size) if size <= MOST_ITEMS else (*range(MOST_ITEMS - 1), size - 1)
        fields = getattr(type(value), "_fields", ()) if base is tuple else ()
        for index in chosen:
            item = base.__getitem__(value, index)
            named = f".{fields[index]}" if len(fields) == size else f"[{index}]"
            self._visit(f"{name}{named}", item, depth + 1)
        if size > MOST_ITEMS and access.is_tensor(base.__getitem__(value, size - 1)):
            self.found.left_out += size - MOST_ITEMS

    def _dict(self, name: str, value: Any, depth: int) -> None:
        keys = [key for key in dict.keys(value) if type(key) in (str, int)]
        for key in keys[:MOST_ITEMS]:
            shown = access.cut(repr(key), LONGEST_KEY).replace("'", '"')
            self._visit(f"{name}[{shown}]", dict.__getitem__(value, key), depth + 1)
        if len(keys) > MOST_ITEMS and access.is_tensor(dict.__getitem__(value, keys[-1])):
            self.found.left_out += len(keys) - MOST_ITEMS

    def _module(self, name: str, value: Any) -> None:
        """A module that is part of one found before is in that one's tree already."""
        if id(value) in self._modules:
            return
        self.found.modules.append((name, value))
        self._modules.update(id(inner) for _, _, inner in walk(name, value))


PLAIN = (int, float, bool, str, bytes, type(None), complex)


def issubclass_of_type(kind: type) -> bool:
    """The value is a class, a function, a module: nothing that holds tensors of the learner."""
    return type in kind.__mro__ or kind.__name__ in ("function", "module", "builtin_function")


def traceback_in(path: str, error: BaseException | None) -> list[TracebackType]:
    """The places in the learner's file that an exception went through, outermost first."""
    found = []
    trace: TracebackType | None = None if error is None else error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            found.append(trace)
        trace = trace.tb_next
    return found


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A function's variables; {} for the module, whose names are looked at anyway."""
    if frame.f_code.co_name == "<module>":
        return {}
    return dict(frame.f_locals)


def function_name(code: CodeType) -> str:
    """As the learner wrote it; methods with their class from Python 3.11 on."""
    return str(getattr(code, "co_qualname", code.co_name)).replace(".<locals>", "")
