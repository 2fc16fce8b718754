"""Puts back what a learner's program has replaced in torch, Python and the machinery of checks.

A check that calls `torch.allclose` must not call the learner's version of it. What checks rely on
is remembered before the program runs, and put back after the program has run and after each call
into it. Names that were added to modules are left alone: torch adds some lazily. What changes the
judge's own modules between two calls, from a finalizer say, fails the check.

This holds against replacing things, not against a program that looks for the check on the stack
or in the garbage collector's lists: both run in one process.
"""

import builtins
import collections
import contextlib
import ctypes
import dataclasses
import functools
import gc
import hashlib
import json.encoder
import math
import operator
import platform
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter, is_not
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch
import torch.nn.functional

from tensortutor import checking
from tensortutor.checking import (
    advice,
    answer,
    call_arguments,
    causes,
    declare,
    describe,
    differences,
    expect,
    plain_values,
)
from tensortutor.protocol import events, framing, wire
from tensortutor.protocol import scene as words
from tensortutor.worker import (
    capture,
    check_errors,
    message_socket,
    operands,
    probe_values,
    scene,
    syntax,
    tracebacks,
)

OUTER: tuple[ModuleType, ...] = (
    builtins, math, random, json, hashlib, time, torch, torch.nn, torch.nn.functional,
    torch.linalg, torch.testing, torch.autograd,
)  # fmt: skip
CHECKING: tuple[ModuleType, ...] = (
    checking, advice, answer, call_arguments, causes, declare, describe, differences, expect,
    plain_values,
)  # fmt: skip
REPORTING: tuple[ModuleType, ...] = (
    events, framing, wire, capture, check_errors, message_socket, probe_values, tracebacks,
    scene, syntax, operands, words,
)  # fmt: skip
LIBRARY: tuple[ModuleType, ...] = (
    collections, dataclasses, functools, json.encoder, operator, re, socket, struct, types,
)  # fmt: skip
"""What writes verdicts down. Each would see one before it is signed."""
CLASSES: tuple[type, ...] = (
    torch.Tensor, torch.nn.Module, torch.nn.Parameter, random.Random,
    type(torch.Tensor), type(torch.nn.Parameter),  # which say what is an instance of them
)  # fmt: skip
STATIC: tuple[type, ...] = (torch._C.TensorBase, torch.Size, torch.dtype, torch.device)
"""Types of C. Their attributes cannot be set, but the dict behind them can be edited."""
BUILT_IN: tuple[type, ...] = (
    object, type, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset,
    FunctionType, ModuleType, collections.Counter,
)  # fmt: skip
"""The same, of Python's own."""
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
TOOLS = range(6)
"""The ids of sys.monitoring that tools may have (PEP 669)."""
INSIDES = ("__code__", "__defaults__", "__kwdefaults__")
CONTENTS = attrgetter("cell_contents")
# What is kept of a type's attributes, and of its subclasses', is looked up anew then.
_forget_lookups = ctypes.pythonapi["PyType_Modified"]
_forget_lookups.argtypes, _forget_lookups.restype = [ctypes.py_object], None
VERSION_AT = 24
"""Where a dict keeps its version (PEP 509): behind its type, counters and number of items."""


class SavedNames:
    """Names of modules and classes and the insides of functions, as they were."""

    def __init__(self) -> None:
        self.modules: list[tuple[dict[str, Any], dict[str, Any]]] = []
        """(the names now, the names as they were); and so on."""
        self.classes: list[tuple[type, dict[str, Any]]] = []
        self.keywords: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.functions: list[FunctionType] = []
        self.cells: list[CellType] = []
        self.contents: list[Any] = []
        """The function in each cell of a closure: a decorator keeps it there."""
        self.insides: list[tuple[Callable[[FunctionType], Any], list[Any]]] = [
            (attrgetter(name), []) for name in INSIDES
        ]
        self.versions: list[Callable[[], bytes]] = []
        self.seen: list[bytes] = []

    def add(self, module: ModuleType) -> None:
        """Remember a module of the machinery with its classes and functions."""
        self.add_names(module)
        for kind in own_classes(module):
            self.add_class(kind)
        self.add_functions(module)

    def add_names(self, module: ModuleType) -> None:
        """Remember what a module's names mean."""
        self.modules.append((vars(module), dict(vars(module))))
        self._watch(vars(module))

    def add_class(self, kind: type) -> None:
        """Remember a class's attributes."""
        self.classes.append((kind, dict(vars(kind))))
        (names,) = gc.get_referents(vars(kind))  # the dict behind the proxy
        self._watch(names)

    def add_functions(self, module: ModuleType) -> None:
        """Remember the insides of a module's functions and methods."""
        self.add_insides(functions_of(vars(module).values(), own_classes(module)))

    def add_methods(self, kind: type) -> None:
        """Remember the insides of a class's methods."""
        self.add_insides(functions_of((), (kind,)))

    def add_insides(self, functions: Iterable[FunctionType]) -> None:
        """Remember the insides of functions."""
        for function in functions:
            self.functions.append(function)
            for cell, content in functions_in_closure(function):
                self.cells.append(cell)
                self.contents.append(content)
            for inside, before in self.insides:
                before.append(inside(function))
            keywords = function.__kwdefaults__
            if keywords is not None:
                self.keywords.append((keywords, dict(keywords)))
                self._watch(keywords)

    def _watch(self, names: dict[str, Any]) -> None:
        if HAVE_VERSIONS:
            self.versions.append(version_of(names))


class Snapshot:
    """What the checks rely on, as it was when this was made."""

    def __init__(self) -> None:
        self.imported: dict[str, ModuleType] = {}
        self.within = SavedNames()
        """What a check works with between two calls of the program."""
        self.around = SavedNames()
        """What its verdict is made and sent with."""
        self.sealed = SavedNames()
        """The judge's own names and functions: what replaces them, between two calls of the program
        as well, is no part of an answer."""
        self.tampered = False
        for module in OUTER:
            self.within.add_names(module)
        for kind in (*CLASSES, *STATIC):
            self.within.add_class(kind)
        self.within.add_functions(torch.nn.functional)
        self.within.add(contextlib)
        for module in (*REPORTING, *LIBRARY):
            self.around.add(module)
        for kind in BUILT_IN:
            self.around.add_class(kind)
        self.around.add_insides(functions_of(vars(torch).values(), ()))
        for kind in CLASSES:
            self.around.add_methods(kind)
        known = (*OUTER, contextlib, *REPORTING, *LIBRARY)
        self.imported |= {module.__name__: module for module in known}
        # Taken now: when they are needed, their names may mean something else.
        self.clear = (sys.settrace, sys.setprofile, threading.settrace, threading.setprofile)
        self.monitoring = Monitoring.of_python()
        self.callbacks = list(gc.callbacks)
        self._collect, self._stop_collecting = gc.enable, gc.disable
        own = private_copies()
        self._accept, self._restore, self._leave, self._is_changed = (
            own[name] for name in ("accept", "restore", "leave_modes", "is_changed")
        )
        self.add(*CHECKING, sys.modules[__name__])

    def add(self, *machinery: ModuleType) -> None:
        """Remember more modules of the machinery, with their classes and functions."""
        for module in machinery:
            vars(module).setdefault("__warningregistry__", {})  # else the first warning adds it
            self.within.add(module)
            self.sealed.add_names(module)
            self.sealed.add_functions(module)
            self.imported[module.__name__] = module
        for part in (self.within, self.around, self.sealed):
            self._accept(part)

    def replace(self, module: ModuleType, name: str, value: Any) -> None:
        """From now on a module's name means this; the program cannot change it either."""
        if vars(module)[name] is value:
            return
        vars(module)[name] = value
        for names, before in self.within.modules:
            if names is vars(module):
                before[name] = value
        for part in (self.within, self.sealed):
            self._accept(part)

    def mark(self, *, whole: bool = False) -> Callable[[], bool]:
        """Call before the program gets control; call the result when it has given it back.

        whole: for a check from its beginning to its end. The machinery of verdicts is put back as
        well, and the result says whether the judge was changed while the program had no control.
        """
        if whole:
            self._collect()
        modes = mode_counts()
        parts = (self.within, self.around) if whole else (self.within,)
        put_back, leave, is_changed = self._restore, self._leave, self._is_changed
        stop_collecting = self._stop_collecting
        self.tampered = not whole and (self.tampered or is_changed(self.sealed))

        def after() -> bool:
            tampered = whole and (self.tampered or is_changed(self.sealed))
            if whole:
                # From here on to the next check the verdict is made: no finalizer runs meanwhile.
                stop_collecting()
            put_back(self, parts)
            leave(modes)
            return tampered

        return after


def restore(snapshot: Snapshot, parts: tuple[SavedNames, ...]) -> None:
    """Undo replacements and deletions since then; stop tracing, timers and callbacks."""
    if snapshot.monitoring is not None:
        # First: its callbacks run within every call from here on.
        stop_monitoring(snapshot.monitoring)
    for clear in snapshot.clear:
        clear(None)
    for part in parts:
        if is_changed(part):
            put_back(part)
            accept(part)
    accept(snapshot.sealed)
    sys.modules.update(snapshot.imported)
    gc.callbacks[:] = snapshot.callbacks
    for timer in TIMERS:
        signal.setitimer(timer, 0)


@dataclass(frozen=True)
class Monitoring:
    """The functions of sys.monitoring, taken while their names still mean them."""

    events: tuple[int, ...]
    register_callback: Callable[[int, int, None], object]
    get_tool: Callable[[int], str | None]
    set_events: Callable[[int, int], None]
    free_tool_id: Callable[[int], None]

    @classmethod
    def of_python(cls) -> "Monitoring | None":
        """This Python's; None before 3.12."""
        module: Any = getattr(sys, "monitoring", None)
        if module is None:
            return None
        events = tuple(number for number in vars(module.events).values() if number)
        return cls(
            events, module.register_callback, module.get_tool, module.set_events,
            module.free_tool_id,
        )  # fmt: skip


def stop_monitoring(monitoring: Monitoring) -> None:
    """End every tool of sys.monitoring: what it watches, and what it calls then."""
    for tool in TOOLS:
        for event in monitoring.events:  # they outlast a tool that has been let go
            monitoring.register_callback(tool, event, None)
        if monitoring.get_tool(tool) is not None:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)


def is_changed(part: SavedNames) -> bool:
    """Something has been replaced, deleted or added.

    No object is asked whether it is equal to another: one may say so of what it has replaced.
    A check may call the program a hundred times, hence the versions: to look at thousands of
    names each time would take longer than the check itself.
    """
    if [version() for version in part.versions] != part.seen:
        return True
    if not HAVE_VERSIONS and any(differ(now, before) for now, before in dicts_of(part)):
        return True
    if any(any(map(is_not, map(inside, part.functions), old)) for inside, old in part.insides):
        return True
    try:
        return any(map(is_not, map(CONTENTS, part.cells), part.contents))
    except ValueError:
        return True  # one has been emptied


def accept(part: SavedNames) -> None:
    """What is there now is as it should be. Names that were added have come to stay."""
    part.seen = [version() for version in part.versions]


def dicts_of(part: SavedNames) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Every dict or view of one, and what was in it."""
    yield from part.modules
    yield from part.keywords
    for kind, before in part.classes:
        yield vars(kind), before


def differ(now: Any, before: dict[str, Any]) -> bool:
    """Not the same objects under the same names in the same order."""
    return (
        len(now) != len(before)
        or any(map(is_not, now, before))
        or any(map(is_not, now.values(), before.values()))
    )


def put_back(part: SavedNames) -> None:
    """Every name, attribute and function as it was."""
    for now, before in part.modules:
        now.update(before)
    for kind, before in part.classes:
        restore_class(kind, before)
    for now, before in part.keywords:
        now.clear()
        now.update(before)
    for name, (_, insides) in zip(INSIDES, part.insides, strict=True):
        for function, inside in zip(part.functions, insides, strict=True):
            setattr(function, name, inside)
    for cell, content in zip(part.cells, part.contents, strict=True):
        cell.cell_contents = content


def version_of(names: dict[str, Any]) -> Callable[[], bytes]:
    """Tells a dict's version, which every change of the dict makes another (PEP 509).

    A view of memory, not a number of ctypes: Python code cannot change what it says. The dict must
    be kept alive.
    """
    return memoryview((ctypes.c_char * 8).from_address(id(names) + VERSION_AT)).tobytes


def have_versions() -> bool:
    """Whether this interpreter's dicts have versions where we look for them: until 3.13."""
    if platform.python_implementation() != "CPython" or sys.version_info >= (3, 14):
        return False
    names: dict[str, Any] = {"a": 1, "b": 2}
    version, seen = version_of(names), set()
    for change in (None, ("a", 3), ("c", 4), ("a", 1)):
        names.update([change] if change else [])
        seen.add(version())
    return len(seen) == 4


HAVE_VERSIONS = have_versions()


def private_copies() -> dict[str, Any]:
    """This module's names, its functions copied: changes to the originals do not reach them."""
    copied = {**globals(), "__builtins__": dict(vars(builtins))}
    for name, value in globals().items():
        if isinstance(value, FunctionType):
            copied[name] = FunctionType(value.__code__, copied, name, value.__defaults__)
    return copied


def own_classes(module: ModuleType) -> Iterator[type]:
    """The classes that a module defines itself."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield value


def functions_of(values: Iterable[Any], classes: Iterable[type]) -> Iterator[FunctionType]:
    """The Python functions among some values and in some classes, and those that they wrap."""
    waiting = [*values, *(value for kind in classes for value in vars(kind).values())]
    seen: set[int] = set()
    for value in waiting:  # grows while it is walked
        if isinstance(value, FunctionType) and id(value) not in seen:
            seen.add(id(value))
            yield value
            waiting += [content for _, content in functions_in_closure(value)]
        elif isinstance(value, property):
            waiting += [value.fget, value.fset, value.fdel]
        elif isinstance(value, (staticmethod, classmethod)):
            waiting.append(value.__func__)


def functions_in_closure(function: FunctionType) -> Iterator[tuple[CellType, Any]]:
    """The cells of a function's closure that hold a function, and that one."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty
            if isinstance(cell.cell_contents, FunctionType):
                yield cell, cell.cell_contents


def restore_class(kind: type, before: dict[str, Any]) -> None:
    """Take back what was set on a class, and what was added to it."""
    if kind in STATIC or kind in BUILT_IN:
        (names,) = gc.get_referents(vars(kind))
        if differ(names, before):
            names.update(before)
            for name in set(names) - set(before):
                del names[name]
            _forget_lookups(kind)
        return
    now = vars(kind)
    for name, value in before.items():
        if now.get(name) is not value and name not in ("__dict__", "__weakref__"):
            setattr(kind, name, value)
    for name in set(now) - set(before):
        delattr(kind, name)  # it would shadow what the class inherits, as Tensor.all does


def mode_counts() -> tuple[int, int]:
    """How many modes of torch stand over the calls now."""
    return (
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
    )


def leave_modes(counts: tuple[int, int]) -> None:
    """Take off the modes that were put on top of so many and left there."""
    while torch._C._len_torch_function_stack() > counts[0]:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > counts[1]:
        torch._C._pop_torch_dispatch_stack(None)  # type: ignore[call-arg, unused-ignore]


def threads_left() -> bool:
    """The program has left threads running that could act while the checks run."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(0.2)
    return len(sys._current_frames()) > 1
