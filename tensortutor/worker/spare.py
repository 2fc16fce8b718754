"""A forked process that waits for a job and becomes the learner's program."""

import gc
import os
import random
import signal
import socket
import sys
import tempfile
from pathlib import Path

import torch

from tensortutor.lab.datasets import DATA_FOLDER
from tensortutor.protocol.events import Event, Raised, event_to_json
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.setup import (
    Assignment,
    Assist,
    Foresee,
    Setup,
    message_to_json,
)
from tensortutor.protocol.wire import from_wire
from tensortutor.worker.capture import Channel
from tensortutor.worker.confine import Confinement
from tensortutor.worker.devices import wake
from tensortutor.worker.integrity import Snapshot
from tensortutor.worker.judge import Compiled, Signer
from tensortutor.worker.message_socket import MessageSocket
from tensortutor.worker.program import Program
from tensortutor.worker.ranks import run_ranks
from tensortutor.worker.warm_up import warm_up


def serve(sock: socket.socket, setup: Setup, confinement: Confinement, folder: str) -> None:
    """Wait for one job and do it. Never returns."""
    link = MessageSocket(sock)
    confinement.prepare()
    wake(setup.device)
    prepare_environment(folder, folder)
    if setup.data:
        os.environ[DATA_FOLDER] = setup.data
    share_lab(folder)
    warm_up()
    snapshot = Snapshot()
    reseed()
    compiled = None
    while isinstance(assignment := link.receive(), Foresee):
        compiled = foresee(assignment)
    if isinstance(assignment, Assist):
        # Imported here: programs do without it.
        from tensortutor.worker import assistant

        cwd = confinement.shut(assistant.FOLDER, assistant.LIMITS)
        prepare_environment(folder, cwd)
        assistant.attend(link, assignment, cwd)
    if not isinstance(assignment, Assignment):
        os._exit(0)
    job = from_wire(Job, assignment.job)
    signer = Signer(assignment.key) if assignment.key else None
    del assignment  # the key stays inside the signer's hash, where Python cannot read it
    cwd = confinement.shut(job.scratch, job.limits, network=job.ranks > 0)
    prepare_environment(folder, cwd)
    if job.folder:
        os.chdir(job.folder)
        os.environ["PWD"] = job.folder
    channel = Channel(link)
    if job.ranks:
        channel.send_json(message_to_json(run_ranks(job, setup, channel, folder, signer)))
        os._exit(0)
    program = Program(job, setup, channel, folder)
    if job.judge is None:
        compiled = None  # what is not judged has no business with checks
    elif signer is not None:
        program.expect_judging(job.judge, signer, snapshot, compiled)
    del compiled
    program.leave(program.run())


def foresee(file: Foresee) -> Compiled | None:
    """The check file compiled, None if it cannot be: who runs it will be told."""
    try:
        return Compiled.of(file)
    except (SyntaxError, ValueError):
        return None


def reseed() -> None:
    """A fork repeats its parent's random numbers; a new process would not."""
    torch.seed()
    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def prepare_environment(folder: str, cwd: str) -> None:
    """Point programs that look for a home or a temporary folder at what they may write."""
    os.environ.update(
        HOME=folder, TMPDIR=folder, PWD=cwd, MPLBACKEND="module://tensortutor.lab.matplotlib_backend",
        MPLCONFIGDIR=os.path.join(cwd, ".matplotlib"),
        TORCHINDUCTOR_CACHE_DIR=os.path.join(cwd, ".inductor"),
        TRITON_HOME=cwd,  # where it was imported, in the process before this one, home was another
    )  # fmt: skip
    tempfile.tempdir = None


def share_lab(folder: str) -> None:
    """Let the processes that a program starts import `tensortutor.lab` as well.

    The package's own folder is not for programs to list, and beside it may lie another
    interpreter's packages: so they get a folder with what they need and nothing else.
    """
    package, library = Path(__file__).resolve().parents[1], os.path.join(folder, "library")
    os.makedirs(os.path.join(library, "tensortutor"))
    for part in ("__init__.py", "protocol", "drawing", "lab"):
        os.symlink(package / part, os.path.join(library, "tensortutor", part))
    sys.path.append(library)  # for those that are started with this process's path
    os.environ["PYTHONPATH"] = library


def become(sock: socket.socket, setup: Setup, confinement: Confinement, folder: str) -> None:
    """What a freshly forked process does. Never returns, never raises."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.enable()
        serve(sock, setup, confinement, folder)
    except BaseException as error:
        # Only our own machinery can fail here; the program's errors have been reported.
        text = f"{type(error).__name__}: {error}"
        failure: Event = Raised("tensortutor", text, (), f"The run could not begin: {text}\n")
        try:
            MessageSocket(sock).send_json(event_to_json(failure))
        finally:
            os._exit(70)
