"""Does once, unseen, what nearly every run does.

A forked process copies each page of memory when it first writes to it, and the counters of
Python's objects are on such pages. The pages that torch's printing code needs, say, are copied
while a spare waits and not while the learner does.
"""

import gc
import sys
from typing import Any

import torch

from tensortutor.protocol.jobs import Job, Judge
from tensortutor.protocol.wire import from_wire, to_wire
from tensortutor.worker.capture import Channel
from tensortutor.worker.integrity import Snapshot
from tensortutor.worker.judge import CHECKS, Judging, Signer

PROGRAM = """
import torch
def twice(x):
    return x * 2
x = torch.arange(9.0).reshape(3, 3) / 7
text = repr(x @ x), str(twice(x).sum()), f"{x.mean().item():.3f}", str(x.shape), str(x.dtype)
"""
CHECKS_TEXT = """
import torch
from tensortutor.checking import *
@check("rehearsed")
def rehearsed(answer, rng, device):
    x = torch.randn(rng.randint(1, 3), 3, device=device)
    got = answer.twice(x)
    expect_shape(got, x.shape)
    expect_close(got, x + x)
    expect_equal(got.dtype, x.dtype)
@check("fails", forbid=("torch.no_such_function",))
def fails(answer, rng, device):
    expect_close(answer.twice(torch.ones(2)), torch.ones(2), hint="What fails is done once too.")
"""


class Silence(Channel):
    """A channel that nobody listens to."""

    def __init__(self) -> None:
        pass

    def send_json(self, *data: dict[str, Any]) -> None:
        """Nothing happens."""


def warm_up() -> None:
    """Run a small program and put checks to it. Takes the random numbers further."""
    from_wire(Job, to_wire(Job("", judge=Judge("", ""))))
    namespace: dict[str, Any] = {}
    exec(compile(PROGRAM, "<rehearsal>", "exec"), namespace)
    judge = Judge(CHECKS_TEXT, "<rehearsal>", checks=("rehearsed", "fails"))
    judging = Judging(judge, Signer("00"), Silence(), torch.device("cpu"), Snapshot())
    judging.put_to(namespace, PROGRAM, "<rehearsal>", "")
    del sys.modules[CHECKS]
    gc.enable()  # judging leaves the collector off
    gc.collect()
