"""What kinds of things a program's names hold, written as annotations: for the editor's completion.

No code of the learner's runs here, neither a class's nor a metaclass's: a value is asked for its
type, a type through `type`'s own descriptors, and containers of Python's own for their first item.
"""

import inspect
import re
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from tensortutor.protocol.assist import MOST_TYPES, Typed

DEEPEST = 3
MOST_FIELDS = 6
LONGEST = 300
PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
KNOWN_FROM_SOURCE = (ModuleType, FunctionType, type)
"""What a reader of the program's text sees as well."""
SEQUENCES = (list, set, frozenset, deque)
get_mro, get_module, get_name = (
    type.__dict__[name].__get__ for name in ("__mro__", "__module__", "__qualname__")
)


class TypeNames:
    """Collects the types of a program's names, at most MOST_TYPES of them."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._called: set[str] = set()

    def take(self, names: dict[str, Any], function: str = "") -> None:
        """Add what names hold; those of a function as `function.name`. The first word counts."""
        for name, value in list(names.items()):
            if type(name) is not str or name.startswith("__") or len(self._found) >= MOST_TYPES:
                continue
            path = f"{function}.{name}" if function else name
            if path not in self._found and not isinstance_of(value, KNOWN_FROM_SOURCE):
                written = annotation(value)
                if written and len(path) <= LONGEST:
                    self._found[path] = written

    def take_call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Add what a function of the program's is called with, the first time."""
        if name in self._called:
            return
        self._called.add(name)
        try:
            bound = inspect.signature(function).bind(*args, **kwargs).arguments
        except Exception:
            return  # the call itself will say what is wrong; the function may be of any kind
        self.take(dict(bound), name)

    def take_frames(self, error: BaseException, path: str) -> None:
        """Add what the functions under way held when an exception went through them."""
        for frame in frames_of(error.__traceback__, path):
            if frame.f_code.co_name != "<module>":
                self.take(dict(frame.f_locals), frame.f_code.co_name)

    def all(self) -> tuple[Typed, ...]:
        """What was found."""
        return tuple(Typed(name, written) for name, written in self._found.items())


def frames_of(trace: TracebackType | None, path: str) -> Iterator[FrameType]:
    """The frames of a file, the innermost last."""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            yield trace.tb_frame
        trace = trace.tb_next


def isinstance_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """`isinstance` would ask `value.__class__`, which a class may define."""
    return any(is_one(base, kinds) for base in get_mro(type(value)))


def is_one(kind: type, kinds: tuple[type, ...]) -> bool:
    """`in` would ask the classes whether they are equal."""
    return any(kind is known for known in kinds)


def annotation(value: Any, depth: int = DEEPEST) -> str:
    """The type of a value as an annotation, "" if it has no name that can be written."""
    kind = type(value)
    if value is None:
        return "None"
    if depth and is_one(kind, SEQUENCES) and value:
        return _generic(kind, [next(iter(value))], depth)
    if depth and kind is tuple and 0 < len(value) <= MOST_FIELDS:
        return _generic(kind, list(value), depth)
    if depth and kind is dict and value:
        return _generic(kind, list(next(iter(value.items()))), depth)
    return _path(kind)


def _generic(kind: type, items: list[Any], depth: int) -> str:
    inner = [annotation(item, depth - 1) for item in items]
    path = _path(kind)
    written = f"{path}[{', '.join(inner)}]"
    return written if all(inner) and len(written) <= LONGEST else path


def _path(kind: type) -> str:
    """Where a class can be imported from; for one of the program's own its name alone."""
    module, name = get_module(kind), get_name(kind)
    if type(module) is not str or type(name) is not str:
        return ""
    path = name if module in ("builtins", "__main__") else f"{module}.{name}"
    return path if len(path) <= LONGEST and PATH.fullmatch(path) else ""
