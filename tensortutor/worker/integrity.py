"""Puts back what a learner's program has replaced in torch, Python and the expectations.

A check that calls `torch.allclose` must not call the learner's version of it. The parts that
checks rely on are remembered before the program runs, and put back after the program has run and
after each call into it. Names that were added to modules are left alone: torch adds some lazily.
"""

import builtins
import math
import random
import sys
import threading
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional

from tensortutor import checking
from tensortutor.checking import answer, causes, declare, describe, expect

MODULES: tuple[ModuleType, ...] = (
    builtins, torch, torch.nn, torch.nn.functional, torch.linalg, torch.testing, torch.autograd,
    math, random, checking, answer, causes, declare, describe, expect,
)  # fmt: skip
CLASSES: tuple[type, ...] = (
    torch.Tensor, torch.nn.Module, torch.nn.Parameter, random.Random, answer.Answer, expect.Unmet,
)  # fmt: skip


class Snapshot:
    """What the checks rely on, as it was when this was made."""

    def __init__(self) -> None:
        self._modules = [(vars(module), dict(vars(module))) for module in MODULES]
        self._classes = [(kind, dict(vars(kind))) for kind in CLASSES]
        self._imported = {module.__name__: module for module in MODULES}

    def restore(self) -> None:
        """Undo replacements and deletions since then; stop any tracing."""
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(None)
        for now, before in self._modules:
            if now != before:
                now.update(before)
        for kind, before in self._classes:
            _restore_class(kind, before)
        for name, module in self._imported.items():
            sys.modules[name] = module


def _restore_class(kind: type, before: dict[str, Any]) -> None:
    now = vars(kind)
    if dict(now) == before:
        return
    for name, value in before.items():
        if now.get(name) is not value and name not in ("__dict__", "__weakref__"):
            setattr(kind, name, value)
    for name in set(now) - set(before):
        delattr(kind, name)  # it would shadow what the class inherits, as Tensor.all does
