"""How a training step's time divides: data, forward, backward, optimizer.

Measured at the borders between them: a DataLoader's `next`, autograd's engine, `Optimizer.step` and
`zero_grad`. Forward is what lies between the data (or the step before) and backward, the loss
included. On CUDA the device is waited for at each border, or the times would be those of launching.
"""

import functools
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tensortutor.protocol.lens import Share
from tensortutor.worker.lens.backward import AUTOGRAD, ENGINE

cuda: Any = torch.cuda
PARTS = ("data", "forward", "backward", "optimizer", "other")


class StepTiming:
    """Adds up the parts. steps: how often an optimizer stepped. on_step: called after each."""

    def __init__(self, on_step: Callable[[int], None]) -> None:
        self.steps = 0
        self._on_step = on_step
        self._sums = dict.fromkeys(PARTS, 0.0)
        self._depth = 0
        self._last = 0.0
        self._begun = 0.0
        self._forward_open = True

    def begin(self, stack: ExitStack) -> None:
        """Stand at the borders until the stack is closed."""
        self._begun = self._last = time.perf_counter()
        engine = AUTOGRAD.get(ENGINE)
        if engine is not None:
            AUTOGRAD[ENGINE] = self._timed("backward", engine)
            stack.callback(AUTOGRAD.__setitem__, ENGINE, engine)
        for kind, name, part in (
            (_BaseDataLoaderIter, "__next__", "data"),
            (Optimizer, "zero_grad", "optimizer"),
        ):
            before = vars(kind)[name]
            setattr(kind, name, self._timed(part, before))
            stack.callback(setattr, kind, name, before)
        pre = register_optimizer_step_pre_hook(self._before_step)
        post = register_optimizer_step_post_hook(self._after_step)
        stack.callback(pre.remove)
        stack.callback(post.remove)

    def shares(self) -> tuple[Share, ...]:
        """The parts and their share of the time until now; () if nothing was trained."""
        whole = time.perf_counter() - self._begun
        if not self.steps:
            return ()
        self._sums["other"] = max(0.0, whole - sum(self._sums[p] for p in PARTS[:-1]))
        return tuple(Share(p, self._sums[p] * 1000, self._sums[p] / whole) for p in PARTS)

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **more: Any) -> Any:
            self._enter(part)
            try:
                return function(*arguments, **more)
            finally:
                self._leave(part)

        return timed

    def _enter(self, part: str) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        now = border()
        if part == "backward" and self._forward_open:
            self._sums["forward"] += now - self._last
        self._last = now

    def _leave(self, part: str) -> None:
        self._depth -= 1
        if self._depth:
            return
        now = border()
        self._sums[part] += now - self._last
        self._last = now
        # Between backward and the step nothing is forward; after the step a new one begins.
        self._forward_open = part != "backward"

    def _before_step(self, *_: Any) -> None:
        self._enter("optimizer")

    def _after_step(self, *_: Any) -> None:
        self._leave("optimizer")
        self.steps += 1
        self._on_step(self.steps)


def border() -> float:
    """Now, with the device's work done."""
    if cuda.is_initialized() and not cuda.is_current_stream_capturing():
        cuda.synchronize()
    return time.perf_counter()
