"""The far end: finds out what its machine has, owns the zygote, and carries its runs' lines."""

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tensortutor.protocol.framing import HEADER, Decoder, encode
from tensortutor.protocol.setup import (
    Ended,
    Failed,
    PlaceInfo,
    Ready,
    Setup,
    SpareMade,
    message_from_json,
    message_to_json,
)
from tensortutor.runner.errors import NoSandbox, RunnerError
from tensortutor.runner.launch import Launch, plan, start_zygote
from tensortutor.runner.sandbox import library_packages
from tensortutor.transport.mux import MESSAGE, OPEN, Line, Mux
from tensortutor.transport.orphans import adopt_orphans, await_children
from tensortutor.transport.slurm import seconds_left

LONGEST_START_S = 600.0
"""Torch on a network file system that many nodes read at once."""
CLEAN_UP_S = 5.0
LAST_WORD = encode({"say": message_to_json(Ended(0))["say"]})[HEADER.size : -1]
"""How the frame of an Ended begins, after its length. No text in a frame looks like this: quotation
marks in it are escaped."""


class Far:
    """One zygote and the lines to its processes."""

    def __init__(self, source: int, sink: int, make_folder: Callable[[], str]) -> None:
        """make_folder: makes a temporary folder that is removed when this process has ended."""
        self._mux = Mux(source, sink, message=self._from_host, opened=lambda *_: None)
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._launch: Launch | None = None
        self._began = time.monotonic()
        self._ready = self._over = False
        self._decoder = Decoder()
        self._descriptors: deque[int] = deque()
        self._next = 1
        self._make_folder = make_folder

    def serve(self) -> None:
        """Until the stream or the zygote ends."""
        adopt_orphans()
        self._heed_signals()
        try:
            while not self._mux.lost and not self._over:
                self._mux.step(timeout_s=5.0)
                loaded_in_time = time.monotonic() - self._began < LONGEST_START_S
                if not self._ready and not loaded_in_time:
                    self._fail(f"PyTorch was not there after {LONGEST_START_S:g} s.")
        finally:
            self._end()

    def _heed_signals(self) -> None:
        """End in order when told to end: by `scancel`, or by the end of a terminal."""
        told, wakeup = os.pipe()
        for descriptor in (told, wakeup):
            os.set_blocking(descriptor, False)

        def end() -> None:
            self._mux.forget(told)
            self._over = True

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self._mux.watch(told, end)

    # --- from the host ---

    def _from_host(self, frame: bytes) -> None:
        if self._control is not None:
            try:
                self._control.sendall(frame)
            except OSError:
                return  # it has ended, which is heard where it is listened to
            return
        (message,) = Decoder().feed(frame)
        wanted = message_from_json(message)
        try:
            self._start(self._placed(wanted))
        except RunnerError as error:
            self._fail(str(error), needs_consent=isinstance(error, NoSandbox))

    def _placed(self, wanted: Setup) -> Setup:
        """The host's folders where they are here as well; others in their place.

        Raises RunnerError if one that the learner opens to programs is not here.
        """
        for folder in (*wanted.readable, *wanted.writable):
            if not os.path.isdir(folder):
                raise RunnerError(
                    f"The folder {folder} is not on {platform.node()}. A program of your own needs "
                    "its folder there, under the same path."
                )
        scratch = wanted.scratch
        if not os.access(scratch, os.W_OK | os.X_OK):
            scratch = os.path.expanduser("~/.local/share/tensortutor/scratch")
            try:
                os.makedirs(scratch, exist_ok=True)
            except OSError:
                scratch = self._make_folder()
        data = wanted.data if os.path.isdir(wanted.data) else ""
        return replace(wanted, scratch=scratch, data=data)

    def _start(self, wanted: Setup) -> None:
        launch = plan(sys.executable, wanted)
        self._launch, self._began = launch, time.monotonic()
        self._process, self._control = start_zygote(launch.command, launch.setup, subprocess.PIPE)
        self._mux.watch(self._control.fileno(), self._from_zygote)

    # --- from the zygote ---

    def _from_zygote(self) -> None:
        assert self._control is not None
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 16)
        except OSError:
            data, descriptors = b"", []
        self._descriptors += descriptors
        if not data:
            self._fail(self._last_words())
            return
        for message in self._decoder.feed(data):
            self._pass_on(message_from_json(message))

    def _pass_on(self, message: Any) -> None:
        if isinstance(message, SpareMade):
            self._mux.say(OPEN, self._next, encode(message_to_json(message)))
            self._serve_lines([self._descriptors.popleft() for _ in range(4)])
            return
        if isinstance(message, Ready):
            self._ready = True
            message = replace(message, place=self._place())
        self._mux.say(MESSAGE, 0, encode(message_to_json(message)))

    def _serve_lines(self, descriptors: Sequence[int]) -> None:
        channel, status, out, err = (self._next + i for i in range(4))
        self._next += 4
        # What is in the channel was written before what waits in a pipe, and the status is last
        # (see runner/watch.py): so they are read here, and written there.
        order = {status: (channel, out, err), out: (channel,), err: (channel,)}
        for number, descriptor in zip((channel, status, out, err), descriptors, strict=True):
            line = Line(descriptor, writes=number < out, read_after=order.get(number, ()))
            if number == channel:
                line.last_word, line.yields_to = LAST_WORD, (out, err)
            self._mux.add(number, line)

    def _place(self) -> PlaceInfo:
        assert self._launch is not None
        job = os.environ.get("SLURM_JOB_ID", "")
        return PlaceInfo(
            platform.node(), sys.executable, self._launch.layer.name, self._launch.layer.why,
            library_packages(), time.monotonic() - self._began, job, seconds_left(job),
            os.environ.get("SLURM_JOB_PARTITION", ""),
        )  # fmt: skip

    # --- the end ---

    def _fail(self, sentence: str, *, needs_consent: bool = False) -> None:
        self._mux.say(MESSAGE, 0, encode(message_to_json(Failed(sentence, needs_consent))))
        self._over = True

    def _last_words(self) -> str:
        """Why the zygote ended, from what it wrote to stderr."""
        assert self._process is not None
        try:
            _, said = self._process.communicate(timeout=CLEAN_UP_S)
        except subprocess.TimeoutExpired:
            return "PyTorch's process does not answer any more."
        lines = said.decode(errors="replace").strip().splitlines()
        detail = f": {lines[-1]}" if lines else ""
        return f"PyTorch's process ended with status {self._process.returncode}{detail}"

    def _end(self) -> None:
        """End what was started, and wait until it has cleaned up.

        A keeper ends when nobody holds the other end of its socket: that of a line, or one whose
        SpareMade has not been read. What Slurm finds when this process has ended, it kills.
        """
        until = time.monotonic() + CLEAN_UP_S
        while not self._mux.lost and self._mux.has_unsent and time.monotonic() < until:
            self._mux.step(timeout_s=0.1)
        self._mux.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._process.kill()
            await_children(until)


def main(source: int, sink: int, make_folder: Callable[[], str]) -> None:
    """Serve the host that is at the other end of this stream."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Far(source, sink, make_folder).serve()
