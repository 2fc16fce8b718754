"""What was at hand where a program failed: the operands of its line, and what torch calls them.

The learner's innermost frame gives names and values; torch's frames below it give the values that
have no name, and their parts in torch's own functions. Nothing of the program is run for it.
"""

import ast
import contextlib
import gc
import itertools
import linecache
import time
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any

import torch

from tensortutor.protocol.scene import UNKNOWN, Operand, Scene
from tensortutor.worker.access import is_module, is_tensor
from tensortutor.worker.operands import (
    MISSING,
    TABLES,
    describe,
    resolve,
    tables_of,
)
from tensortutor.worker.syntax import (
    Mention,
    Span,
    arguments,
    failing_node,
    mentions,
    text_of_node,
)

MOST_OPERANDS = 12
MOST_ITEMS = 4
MOST_INSIDE = 12
MOST_FRAMES = 2_000
MOST_VISITS = 20_000
DEEPEST, NEAR = 12, 2
"""Levels of modules that are searched for a module, and for a tensor."""
LONGEST_NAME = 120
LONGEST_LINE = 200
PATIENCE_S = 0.05
"""No name is looked for longer than this."""
PASSING = ("_wrapped_call_impl", "_call_impl", "wrapper", "decorate_context", "_fn")
"""Functions of torch that only pass a call on."""


@dataclass(frozen=True)
class Place:
    """A frame and the instruction that was under way in it."""

    frame: FrameType
    instruction: int
    line: int

    @property
    def code(self) -> CodeType:
        """What the frame runs."""
        return self.frame.f_code


def scene_of_error(error: BaseException, path: str) -> Scene:
    """The scene of an exception that came out of the program in `path`."""
    if not isinstance(error, Exception):
        return UNKNOWN
    places: deque[Place] = deque(maxlen=MOST_FRAMES)
    trace = error.__traceback__
    while trace is not None:
        places.append(Place(trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    return _scene(list(places), path)


def scene_of_warning(path: str) -> tuple[Scene, int]:
    """The scene of the warning that is being given now, and the program's line, or 0."""
    places = [Place(f, f.f_lasti, n) for f, n in traceback.walk_stack(None)][:MOST_FRAMES]
    # Ours and those of `warnings` are the innermost.
    places = [p for p in reversed(places) if _module(p) not in (__name__, "warnings", CALLER)]
    own = [place for place in places if place.code.co_filename == path]
    return _scene(places, path), own[-1].line if own else 0


CALLER = "tensortutor.worker.warning_reports"


def _scene(places: list[Place], path: str) -> Scene:
    own = [number for number, place in enumerate(places) if place.code.co_filename == path]
    if not own:
        return UNKNOWN
    ours, below = [places[number] for number in own], places[own[-1] + 1 :]
    # What is to help with an error must not raise one: a program may have broken anything.
    with contextlib.suppress(Exception), _no_collection(), torch._C.DisableTorchFunction():
        operands = _Gathering(ours, below).operands()
        line = linecache.getline(path, ours[-1].line).strip()
        return Scene(operands, tuple(_inside(below)), line[:LONGEST_LINE])
    return UNKNOWN


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage waits: collecting it takes long in a large program, and runs its `__del__`."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _inside(below: list[Place]) -> list[str]:
    names = [f"{PurePath(p.code.co_filename).stem}.{p.code.co_name}" for p in below]
    return [name[:LONGEST_NAME] for name in names if _last(name) not in PASSING][-MOST_INSIDE:]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _module(place: Place) -> str:
    return str(place.frame.f_globals.get("__name__", ""))


def span_of(place: Place) -> Span | None:
    """The columns of the instruction under way, which Python 3.11 and later keep."""
    positions = getattr(place.code, "co_positions", None)
    if positions is None or place.instruction < 0:
        return None
    line, end_line, column, end_column = next(
        itertools.islice(positions(), place.instruction // 2, None), (None,) * 4
    )
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return Span(line, end_line, column, end_column)


class _Gathering:
    """Collects operands, each value once, with all the parts that it plays.

    ours: the program's frames, outermost first. below: those of libraries, called by the last.
    """

    def __init__(self, ours: list[Place], below: list[Place]) -> None:
        self._ours = ours
        self._below = below
        self._frame = ours[-1].frame
        self._found: dict[object, Operand] = {}
        self._texts: dict[int, str] = {}

    def operands(self) -> tuple[Operand, ...]:
        """Those of the failing operation first, then torch's, then what else the line names."""
        source = "".join(linecache.getlines(self._ours[-1].code.co_filename))
        node = failing_node(source, self._ours[-1].line, span_of(self._ours[-1]))
        named = mentions(node) if node is not None else []
        self._mentioned([mention for mention in named if mention.roles])
        self._of_torch(node)
        self._mentioned([mention for mention in named if not mention.roles])
        return tuple(self._found.values())[:MOST_OPERANDS]

    # --- what the line names ---

    def _mentioned(self, named: list[Mention]) -> None:
        called = False
        for mention in named:
            if called and mention.roles == ("owner",):
                continue  # `self.fc(x)` calls `self.fc`; `self` has no part in it
            value = resolve(mention.node, self._frame)
            if value is MISSING:
                self._parts(mention.node)
                continue
            called = called or (mention.roles == ("callee",) and is_module(value))
            self._add(value, mention.text, mention.roles)
            if mention.roles[:1] == ("arg0",):
                self._items(value, mention.text)

    def _parts(self, node: ast.expr) -> None:
        """Of a chain that leads nowhere, as `x[i]` of a tensor: what it begins with."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
                self._add(resolve(node.slice, self._frame), node.slice.id, ())
            node = node.value
            value = resolve(node, self._frame)
            if value is not MISSING:
                self._add(value, text_of_node(node), ())
                return

    def _items(self, value: Any, name: str) -> None:
        """The tensors of a list that was given as a whole."""
        if type(value) in (list, tuple):
            for number, entry in enumerate(value[:MOST_ITEMS]):
                if is_tensor(entry):
                    self._add(entry, f"{name}[{number}]", (f"item{number}",))

    def _add(self, value: Any, name: str, roles: tuple[str, ...]) -> None:
        # Small numbers are one object wherever they stand: these are told apart by their names.
        key: object = id(value) if is_tensor(value) or is_module(value) else name
        known = self._found.get(key)
        if known is not None:
            more = tuple(role for role in roles if role not in known.roles)
            self._found[key] = replace(known, roles=(*known.roles, *more))
        elif value is not MISSING:
            operand = describe(value, name[:LONGEST_NAME], roles)
            if operand is not None:
                self._found[key] = operand

    # --- what torch's functions were given ---

    def _of_torch(self, node: ast.AST | None) -> None:
        found: dict[str, Any] = {}
        for place in reversed(self._below):
            if not _module(place).startswith("torch"):
                continue
            for role, value in _parameters(place):
                found.setdefault(role, value)
        self._read_arguments(node)
        frames = [place.frame for place in reversed(self._ours)]
        unnamed = {id(value): value for value in found.values() if id(value) not in self._found}
        names = names_of(unnamed, frames)
        for role, value in found.items():
            name = names.get(id(value)) or self._texts.get(id(value), "")
            self._add(value, name, (role,))
        if "module" in found:
            self._parameters_of(found["module"])

    def _parameters_of(self, module: Any) -> None:
        """A module's own parameters and buffers, named after it, by their names in it."""
        name = self._found[id(module)].name
        for table in tables_of(module)[:2]:
            for key, value in table.items():
                if is_tensor(value):
                    self._add(value, f"{name}.{key}" if name else "", (str(key),))

    def _read_arguments(self, node: ast.AST | None) -> None:
        """What the values are written as that the program gave to the function it called."""
        by_position, by_keyword = arguments(node) if node is not None else ([], {})
        if not self._below:
            return
        frame, code = self._below[0].frame, self._below[0].code
        names = code.co_varnames[: code.co_argcount]
        if names[:1] == ("self",):
            names = names[1:]
        values = [frame.f_locals.get(name, MISSING) for name in names]
        if code.co_flags & 4 and not values:  # *args: the call is passed on
            rest = frame.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
            values = list(rest) if type(rest) is tuple else []
        pairs = list(zip(values, by_position, strict=False))
        pairs += [(frame.f_locals.get(name, MISSING), part) for name, part in by_keyword.items()]
        for value, part in pairs:
            if is_tensor(value):
                self._texts.setdefault(id(value), text_of_node(part))


def _parameters(place: Place) -> Iterator[tuple[str, Any]]:
    """The tensors that a function was given, by its names for them; its module as "module"."""
    code, values = place.code, place.frame.f_locals
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        value = values.get(name, MISSING)
        if name == "self" and is_module(value):
            yield "module", value
        elif is_tensor(value):
            yield ("owner" if name == "self" else name), value


def names_of(wanted: dict[int, Any], frames: list[FrameType]) -> dict[int, str]:
    """How the program reaches some values, by id: the shortest way from its names, or none.

    wanted: values by their ids. frames: the program's, innermost first. Modules are looked for in
    all modules, tensors only near the surface: most have no name, and none is found for long.
    """
    found: dict[int, str] = {}
    modules = {key for key, value in wanted.items() if is_module(value)}
    until = time.monotonic() + PATIENCE_S
    seen: set[int] = set()
    for names in [f.f_locals for f in frames] + [f.f_globals for f in frames[:1]]:
        level = [(name, value) for name, value in names.items() if not name.startswith("__")]
        for depth in range(DEEPEST):
            if depth == NEAR and modules <= found.keys():
                break
            deeper: list[tuple[str, Any]] = []
            for name, value in level:
                if id(value) in seen:
                    continue
                seen.add(id(value))
                if len(seen) > MOST_VISITS or time.monotonic() > until:
                    return found
                if id(value) in wanted:
                    found[id(value)] = name[:LONGEST_NAME]
                deeper.extend(_within(name, value, tensors=depth < NEAR))
            level = deeper
    return found


def _within(name: str, value: Any, *, tensors: bool) -> Iterator[tuple[str, Any]]:
    """What a value holds, and how it is written. tensors: those of modules and lists too."""
    kind = type(value)
    if is_module(value):
        parameters, buffers, children, _ = tables_of(value)
        for key, child in children.items():
            indexed = str(key).isdigit()
            yield (f"{name}[{key}]" if indexed else f"{name}.{key}"), child
        for key, tensor in (*parameters.items(), *buffers.items()) if tensors else ():
            yield f"{name}.{key}", tensor
    elif not tensors:
        return
    elif kind in (list, tuple):
        for number, entry in enumerate(value[:100]):
            yield f"{name}[{number}]", entry
    elif kind in TABLES:
        for key, entry in itertools.islice(dict.items(value), 100):
            if type(key) in (str, int):
                yield f"{name}[{key!r}]", entry
