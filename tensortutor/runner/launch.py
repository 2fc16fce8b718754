"""How a zygote is started on the machine that this runs on, and what its programs may read."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tensortutor.protocol.framing import encode
from tensortutor.protocol.layers import FULL
from tensortutor.protocol.setup import Setup, message_to_json
from tensortutor.runner.environment import environment
from tensortutor.runner.interpreter import inspect_interpreter
from tensortutor.runner.sandbox import (
    PACKAGE,
    Layer,
    bubblewrap,
    cgroup_command,
    choose_layer,
    data_folder,
    own_folders,
    readable_paths,
    scratch_folder,
    whole_folders,
)


@dataclass(frozen=True)
class Launch:
    """command: what starts the zygote, without the number of its control socket, which comes last.

    setup: its first message.
    """

    command: tuple[str, ...]
    setup: Setup
    layer: Layer


def plan(python: str, wanted: Setup) -> Launch:
    """Find out what this machine has to offer.

    wanted: its layer may be "auto", and its readable and writable folders are those that the
    learner opens. Raises RunnerError: no such interpreter, no torch, no place to write, no layer.
    """
    interpreter = inspect_interpreter(python)
    data = data_folder(Path(wanted.data) if wanted.data else None)
    always = readable_paths(interpreter) + data
    writable, covered = whole_folders(map(Path, wanted.writable))
    own, covered_too = whole_folders(map(Path, wanted.readable))
    readable = always + own + writable
    scratch = scratch_folder(Path(wanted.scratch))
    full = [*bubblewrap(readable, scratch, writable, covered + covered_too), interpreter.path]
    layer = choose_layer(wanted.layer, full)
    if layer.name != FULL:  # without mounts nothing can be covered
        writable = own_folders(map(Path, wanted.writable))
        readable = always + own_folders(map(Path, wanted.readable)) + writable
    start = cgroup_command(full if layer.name == FULL else [interpreter.path], layer.name)
    return Launch(
        (*start, os.path.join(PACKAGE, "worker", "__main__.py")),
        replace(
            wanted, layer=layer.name, scratch=str(scratch), readable=readable, writable=writable,
            data="".join(data),
        ),
        layer,
    )  # fmt: skip


def start_zygote(
    command: Sequence[str], setup: Setup, stderr: int | None = None
) -> "tuple[subprocess.Popen[bytes], socket.socket]":
    """Start it, and tell it its first message. Returns its process and its control socket.

    stderr: as in `subprocess.Popen`. Raises OSError if it cannot be started.
    """
    control, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()],
            env=environment(many_runs=setup.preload), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
        )  # fmt: skip
    with contextlib.suppress(OSError):  # that it has ended is heard where it is listened to
        control.sendall(encode(message_to_json(setup)))
    return process, control
