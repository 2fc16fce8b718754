"""Imports torch once and forks waiting processes from then on.

It never initialises CUDA and never runs a parallel torch operation: neither survives a fork.
"""

import contextlib
import dataclasses
import gc
import os
import platform
import signal
import socket
import sys

from tensortutor.protocol.setup import (
    Failed,
    MakeSpare,
    Ready,
    Setup,
    SpareMade,
    message_to_json,
)
from tensortutor.protocol.framing import encode
from tensortutor.worker.link import Link


def main(control_descriptor: int) -> None:
    """Serve until the host goes away."""
    control = socket.socket(fileno=control_descriptor)
    control.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link(control)
    setup = link.receive()
    if not isinstance(setup, Setup):
        return
    try:
        ready = warm_up(setup)
    except Exception as error:
        link.send(Failed(f"PyTorch could not be imported: {type(error).__name__}: {error}"))
        return
    link.send(ready)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers report to the host, not to us
    while isinstance(order := link.receive(), MakeSpare):
        make_spare(control, dataclasses.replace(setup, device=order.device))


def warm_up(setup: Setup) -> Ready:
    """Import what programs need, and make it cheap to fork."""
    import torch

    from tensortutor.worker import devices, keeper  # noqa: F401  (imported once, for all forks)

    with contextlib.suppress(ImportError):
        import numpy.random  # noqa: F401  (loaded lazily by numpy, needed by every fork)
    repr(torch.ones(2, 2))  # the printing code is loaded lazily
    found = devices.survey()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that holds an object
    return Ready(torch.__version__, platform.python_version(), found)


def make_spare(control: socket.socket, setup: Setup) -> None:
    """Fork one waiting process and send the host its descriptors."""
    from tensortutor.worker.keeper import keep

    channel, channel_end = socket.socketpair()
    status, status_end = socket.socketpair()
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        control.close()
        for mine in (channel, status):
            mine.close()
        os.close(out)
        os.close(err)
        keep(setup, channel_end, status_end, out_end, err_end)
    message = encode(message_to_json(SpareMade(pid)))
    socket.send_fds(control, [message], [channel.fileno(), status.fileno(), out, err])
    for socket_ in (channel, channel_end, status, status_end):
        socket_.close()
    for descriptor in (out, out_end, err, err_end):
        os.close(descriptor)
