"""Imports torch once and forks waiting processes from then on.

It never initialises CUDA and never runs a parallel torch operation: neither survives a fork.
"""

import contextlib
import dataclasses
import gc
import importlib
import os
import platform
import select
import signal
import socket
import sys
import weakref
from collections.abc import Callable
from functools import partial

from tensortutor.protocol.framing import encode
from tensortutor.protocol.setup import (
    SLOW_MODULES,
    Failed,
    Load,
    MakeSpare,
    Ready,
    Setup,
    SpareMade,
    message_to_json,
)
from tensortutor.worker import kernel
from tensortutor.worker.cgroups import find_parent
from tensortutor.worker.confine import remove_stale_folders
from tensortutor.worker.message_socket import MessageSocket


def main(control_descriptor: int) -> None:
    """Serve until the host goes away. In a forked process: become the keeper of a spare."""
    newborn = serve(control_descriptor)
    if newborn is not None:
        try:
            newborn()
        finally:
            os._exit(70)


def serve(control_descriptor: int) -> Callable[[], None] | None:
    """Import torch and fork for the host until it goes away.

    Returns None then, and in each forked process what that one is to do: nothing of the zygote's
    is on its stack any more, where a program could find it.
    """
    control = socket.socket(fileno=control_descriptor)
    control.set_inheritable(False)
    if kernel.LINUX:
        # While torch is being imported nobody listens to the host's going away.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if is_deserted(control):
        return None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = MessageSocket(control)
    setup = link.receive()
    if not isinstance(setup, Setup):
        return None
    cgroups, why_no_cgroup = find_parent()
    try:
        ready = dataclasses.replace(warm_up(setup), why_no_cgroup=why_no_cgroup)
    except Exception as error:
        link.send(Failed(f"PyTorch could not be imported: {type(error).__name__}: {error}"))
        return None
    link.send(ready)
    with contextlib.suppress(OSError):
        remove_stale_folders()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers report to the host, not to us
    while isinstance(order := link.receive(), (MakeSpare, Load)):
        if isinstance(order, Load):
            with contextlib.suppress(Exception):  # a program that needs it is told why
                load(order.module)
            make_cheap_to_fork()
            continue
        newborn = make_spare(control, dataclasses.replace(setup, device=order.device), cgroups)
        if newborn is not None:
            return newborn
    return None


def warm_up(setup: Setup) -> Ready:
    """Import what programs need, and make it cheap to fork."""
    import torch

    from tensortutor.worker import devices, keeper, ranks  # noqa: F401  (imported once, for all forks)

    with contextlib.suppress(ImportError):
        import numpy.random  # noqa: F401  (loaded lazily by numpy, needed by every fork)
    repr(torch.ones(2, 2))  # the printing code is loaded lazily
    if setup.preload:
        for module in SLOW_MODULES:
            load(module)
    found, why_no_card = devices.find_devices(setup.layer)
    make_cheap_to_fork()
    return Ready(torch.__version__, platform.python_version(), found, why_no_card)


def load(module: str) -> None:
    """Import one of SLOW_MODULES."""
    importlib.import_module(module)
    lens = sys.modules.get("tensortutor.worker.lens.compile_skip")
    if lens is not None:
        lens.skip_lens_functions()  # once here, and not in each program's process


def is_deserted(control: socket.socket) -> bool:
    """The host has gone already: before we had asked to go with it."""
    poll = select.poll()
    poll.register(control, 0)  # hanging up is always told
    return bool(poll.poll(0))


def make_cheap_to_fork() -> None:
    """What has been imported so far shall not cost the processes that are forked from here on."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        # torch takes its operator registry apart at exit: 20 ms that every run would pay.
        finalizer.atexit = False
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that holds an object


def make_spare(control: socket.socket, setup: Setup, cgroups: str) -> Callable[[], None] | None:
    """Fork one waiting process and send the host its descriptors.

    cgroups: as `keep` takes it. Returns None, and in the forked process what it is to do.
    """
    from tensortutor.worker.keeper import keep

    channel, channel_end = socket.socketpair()
    status, status_end = socket.socketpair()
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for mine in (control, channel, status):
                mine.close()
            os.close(out)
            os.close(err)
        except BaseException:
            os._exit(70)  # a child must never come back into the zygote's loop
        return partial(keep, setup, cgroups, channel_end, status_end, out_end, err_end)
    message = encode(message_to_json(SpareMade(pid)))
    with contextlib.suppress(BrokenPipeError):  # the host is gone; the spare finds that out too
        socket.send_fds(control, [message], [channel.fileno(), status.fileno(), out, err])
    for socket_ in (channel, channel_end, status, status_end):
        socket_.close()
    for descriptor in (out, out_end, err, err_end):
        os.close(descriptor)
    return None
