"""Puts back what a learner's program has replaced in torch, Python and the machinery of checks.

A check that calls `torch.allclose` must not call the learner's version of it. What checks rely on
is remembered before the program runs, and put back after the program has run and after each call
into it. Names that were added to modules are left alone: torch adds some lazily.

This holds against replacing things, not against a program that looks for the check on the stack
or in the garbage collector's lists: both run in one process.
"""

import builtins
import gc
import hashlib
import json
import math
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch
import torch.nn.functional

from tensortutor import checking
from tensortutor.checking import advice, answer, causes, declare, describe, differences, expect
from tensortutor.protocol import events, framing, wire
from tensortutor.protocol import scene as words
from tensortutor.worker import blame, capture, link, operands, plain, scene, syntax, tracebacks

OUTER: tuple[ModuleType, ...] = (
    builtins, math, random, json, hashlib, time, torch, torch.nn, torch.nn.functional,
    torch.linalg, torch.testing, torch.autograd,
)  # fmt: skip
OURS: tuple[ModuleType, ...] = (
    checking, advice, answer, causes, declare, describe, differences, expect, events, framing, wire,
    capture, blame, link, plain, tracebacks, scene, syntax, operands, words,
)  # fmt: skip
CLASSES: tuple[type, ...] = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, random.Random)
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Snapshot:
    """What the checks rely on, as it was when this was made."""

    def __init__(self) -> None:
        self.modules: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.imported: dict[str, ModuleType] = {}
        self.classes: list[tuple[type, dict[str, Any]]] = []
        self.functions: list[tuple[FunctionType, Any, Any, Any, dict[str, Any]]] = []
        self._add_modules(OUTER)
        self._add_classes(CLASSES)
        self._add_functions(functions_of(torch.nn.functional))
        self.add(*OURS, sys.modules[__name__])
        self.callbacks = list(gc.callbacks)
        # Taken now: when they are needed, their names may mean something else.
        self.clear = (sys.settrace, sys.setprofile, threading.settrace)
        own = private_copies()
        self._restore, self._leave_modes = own["restore"], own["leave_modes"]

    def add(self, *machinery: ModuleType) -> None:
        """Remember more modules of the machinery, with their classes and functions."""
        self._add_modules(machinery)
        for module in machinery:
            self._add_classes(own_classes(module))
            self._add_functions(functions_of(module))

    def _add_modules(self, modules: Iterable[ModuleType]) -> None:
        for module in modules:
            self.modules.append((vars(module), dict(vars(module))))
            self.imported[module.__name__] = module

    def _add_classes(self, classes: Iterable[type]) -> None:
        self.classes += [(kind, dict(vars(kind))) for kind in classes]

    def _add_functions(self, functions: Iterable[FunctionType]) -> None:
        self.functions += [
            (function, function.__code__, function.__defaults__, function.__kwdefaults__,
             dict(function.__kwdefaults__ or {}))
            for function in functions
        ]  # fmt: skip

    def mark(self) -> Callable[[], None]:
        """Call before the program gets control; call the result when it has given it back."""
        modes = mode_counts()
        put_back, leave = self._restore, self._leave_modes

        def after() -> None:
            put_back(self)
            leave(modes)

        return after


def restore(snapshot: Snapshot) -> None:
    """Undo replacements and deletions since then; stop tracing, timers and callbacks."""
    for clear in snapshot.clear:
        clear(None)
    for now, before in snapshot.modules:
        if now != before:
            now.update(before)
    for kind, before in snapshot.classes:
        restore_class(kind, before)
    for function, code, defaults, keywords, values in snapshot.functions:
        restore_function(function, code, defaults, keywords, values)
    sys.modules.update(snapshot.imported)
    gc.callbacks[:] = snapshot.callbacks
    for timer in TIMERS:
        signal.setitimer(timer, 0)


def private_copies() -> dict[str, Any]:
    """This module's names, its functions copied: changes to the originals do not reach them."""
    copied = dict(globals())
    for name, value in globals().items():
        if isinstance(value, FunctionType):
            copied[name] = FunctionType(value.__code__, copied, name, value.__defaults__)
    return copied


def own_classes(module: ModuleType) -> Iterator[type]:
    """The classes that a module defines itself."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield value


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The Python functions of a module, and the methods of its classes."""
    for value in vars(module).values():
        if isinstance(value, FunctionType):
            yield value
    for kind in own_classes(module):
        for value in vars(kind).values():
            if isinstance(value, FunctionType):
                yield value


def restore_class(kind: type, before: dict[str, Any]) -> None:
    """Take back what was set on a class, and what was added to it."""
    now = vars(kind)
    if now == before:  # the proxy compares without a copy: every call of an answer comes by here
        return
    for name, value in before.items():
        if now.get(name) is not value and name not in ("__dict__", "__weakref__"):
            setattr(kind, name, value)
    for name in set(now) - set(before):
        delattr(kind, name)  # it would shadow what the class inherits, as Tensor.all does


def restore_function(
    function: FunctionType, code: Any, defaults: Any, keywords: Any, values: dict[str, Any]
) -> None:
    """Take back what was changed inside a function."""
    if function.__code__ is not code:
        function.__code__ = code
    if function.__defaults__ is not defaults:
        function.__defaults__ = defaults
    if function.__kwdefaults__ is not keywords:
        function.__kwdefaults__ = keywords
    if keywords is not None and keywords != values:
        keywords.clear()
        keywords.update(values)


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
