"""Computes on the meta device without loading torch's compiler.

Some operators have Python code for that device, which torch keeps its compiler away from: it
imports `torch._dynamo`, a second and 70 MiB, to say `disable(function)`. Where nothing is compiled
the function alone does the same.
"""

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

NAME = "torch._dynamo"
MARK = "__dynamo_disable"
"""Where torch._compile keeps what `disable` gave it for a function."""


class Substitute(ModuleType):
    """Stands for torch._dynamo. Asked for anything but `disable`, it makes way for the real one."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self.functions: list[Callable[..., Any]] = []

    def disable(self, function: Callable[..., Any], *_: object, **__: object) -> Any:
        """The function itself: nothing compiles it."""
        self.functions.append(function)
        return function

    def __getattr__(self, name: str) -> Any:
        self.make_way()
        return getattr(importlib.import_module(NAME), name)

    def make_way(self) -> None:
        """Leave nothing behind."""
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
            delattr(torch, "_dynamo")
        for function in self.functions:
            vars(function).pop(MARK, None)
        self.functions.clear()


@contextmanager
def without_compiler() -> Iterator[None]:
    """Inside, torch's Python code for the meta device runs without its compiler.

    Where the compiler is there it stays. Beside a program's other threads, which may want it, it is
    loaded.
    """
    if NAME in sys.modules or threading.active_count() > 1:
        importlib.import_module(NAME)
        yield
        return
    substitute = Substitute()
    sys.modules[NAME] = substitute
    setattr(torch, "_dynamo", substitute)  # noqa: B010  (torch says that it is a module)
    try:
        yield
    finally:
        substitute.make_way()
