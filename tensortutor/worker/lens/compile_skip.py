"""Keeps torch.compile away from the lens's own functions.

The compiler takes every Python function that is called inside a compiled region, and a trace
function is: it would be counted among the program's frames.
"""

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from tensortutor.worker.lens.statements import codes

MODULES = ("tensortutor.worker.lens.", "tensortutor.worker.access")
done: list[bool] = []
"""Not empty when it has been done."""


def skip_lens_functions() -> None:
    """Mark all functions of the lens as not to be compiled, where this torch has such marks.

    The marks are on code objects, so that processes forked from this one have them too.
    """
    skip = marker()
    if skip is None or done:
        return
    done.append(True)
    for name, module in list(sys.modules.items()):
        if name.startswith(MODULES):
            for code in codes_of(module):
                skip(code)


def marker() -> Callable[[CodeType], None] | None:
    """What marks a code object; its name changed with torch 2.7."""
    api: Any = torch._C._dynamo.eval_frame
    if hasattr(api, "skip_code"):
        found: Callable[[CodeType], None] = api.skip_code
        return found
    try:
        strategy = api._FrameExecStrategy(api._FrameAction.SKIP, api._FrameAction.DEFAULT)
    except AttributeError:
        return None
    return lambda code: api.set_code_exec_strategy(code, strategy)


def codes_of(module: ModuleType) -> Iterator[CodeType]:
    """The code of a module's functions and methods, with what is defined inside."""
    for value in list(vars(module).values()):
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            function = getattr(member, "fget", None) or getattr(member, "__wrapped__", member)
            if isinstance(function, FunctionType):
                yield from codes(function.__code__)
