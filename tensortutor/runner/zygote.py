"""The host's end of a zygote: starts it, asks it for waiting processes, notices its death."""

import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensortutor.protocol.framing import Decoder, ProtocolError, encode
from tensortutor.protocol.setup import (
    SLOW_MODULES,
    Failed,
    Foresee,
    Load,
    MakeSpare,
    NotAnswering,
    Ready,
    Setup,
    SpareMade,
    Waiting,
    message_from_json,
    message_to_json,
)
from tensortutor.runner.errors import NoSandbox, RunnerError

LONGEST_START_S = 180.0
"""Importing torch from a cold network file system can take minutes."""
LONGEST_FORK_S = 30.0
LONGEST_FORESEEN = 1 << 16
"""Characters that go into a socket at once, whether or not somebody reads there now."""


@dataclass
class Spare:
    """A process that waits for a job: its sockets and the pipes behind its stdout and stderr.

    modules: those of SLOW_MODULES that had been loaded when it was forked. silence: says that the
    place where it is does not answer, or "".
    """

    device: str
    channel: socket.socket
    status: socket.socket
    out: int
    err: int
    modules: frozenset[str] = frozenset()
    silence: Callable[[], str] = str

    def is_alive(self) -> bool:
        """Nothing has ended: a waiting process says nothing, and so does its keeper."""
        return not select.select([self.channel, self.status], [], [], 0)[0]

    def close(self) -> None:
        """Let it go: it ends when it finds its sockets closed."""
        self.channel.close()
        self.status.close()
        os.close(self.out)
        os.close(self.err)


class Zygote:
    """One zygote process. All methods may be called from any thread."""

    def __init__(
        self,
        command: Sequence[str],
        setup: Setup,
        environment: Mapping[str, str],
        longest_start_s: float | None = LONGEST_START_S,
    ) -> None:
        """command: what starts it, without the number of its control socket, which comes last.

        longest_start_s: None where the command itself gives up in time, and ends in time.
        """
        self._control, theirs = socket.socketpair()
        self._changed = threading.Condition()
        self._spares: list[Spare] = []
        self._asked: deque[tuple[str, frozenset[str]]] = deque()
        self._modules = frozenset(SLOW_MODULES if setup.preload else ())
        self._ready: Ready | None = None
        self._ready_at = 0.0
        self._foreseen: Foresee | None = None
        self._failure = ""
        self._needs_consent = False
        self._waiting_for = self._silence = ""
        self._longest_start_s = longest_start_s
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        words = [*command, str(theirs.fileno())]
        started = threading.Event()
        # Started by the thread that listens to it and lives as long: bubblewrap's
        # --die-with-parent means the thread that started it, not the process.
        threading.Thread(
            target=self._serve, args=(words, theirs, setup, started), name="zygote", daemon=True
        ).start()
        started.wait()

    @property
    def ready(self) -> Ready | None:
        """What it said when torch was there; None before."""
        return self._ready

    @property
    def ends_in_s(self) -> float | None:
        """Seconds until the job that it runs in ends, None if no end is known."""
        place = self._ready.place if self._ready is not None else None
        if place is None or not place.left_s:
            return None
        return max(0.0, place.left_s - (time.monotonic() - self._ready_at))

    @property
    def waiting_for(self) -> str:
        """What has to happen before it can be started, or ""."""
        return self._waiting_for

    @property
    def silence(self) -> str:
        """That the place where it is does not answer at the moment, or ""."""
        return self._silence if self._ready else ""

    @property
    def failure(self) -> str:
        """Why it cannot serve, or ""."""
        return self._failure

    def wait_ready(self) -> Ready:
        """Block until torch is imported. Raises RunnerError."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._failure, self._longest_start_s)
            if self._failure:
                raise (NoSandbox if self._needs_consent else RunnerError)(self._failure)
            if self._ready is None:
                raise RunnerError(f"PyTorch was not there after {self._longest_start_s:g} s.")
            return self._ready

    def ask(self, wanted: int, device: str) -> None:
        """Have it fork until so many processes wait with this device awake, or are on their way."""
        with self._changed:
            kind = (device, self._modules)
            there = sum((spare.device, spare.modules) == kind for spare in self._spares)
            missing = wanted - there - self._asked.count(kind)
            if missing <= 0 or self._failure:
                return
            self._asked.extend([kind] * missing)
        try:
            self._control.sendall(encode(message_to_json(MakeSpare(device))) * missing)
        except OSError:
            self._fail("PyTorch's process went away.")

    def take(self, device: str, *, fork_new: bool = False) -> Spare:
        """A waiting process, forked now if there is none. Raises RunnerError.

        fork_new: let go of those that wait: where one has died, the others may be dying too.
        """
        if fork_new:
            with self._changed:
                waiting, self._spares = self._spares, []
            for one in waiting:
                one.close()
        self.ask(1, device)
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting(device) or self._failure or self.silence, LONGEST_FORK_S
            )
            spare = self._waiting(device)
            if spare is None:
                why = self._failure or self.silence
                raise RunnerError(why or "No process could be made to run this in.")
            self._spares.remove(spare)
        if spare.is_alive():
            return spare
        spare.close()
        return self.take(device)

    def load(self, modules: Iterable[str]) -> None:
        """Import those of SLOW_MODULES that are missing, for processes asked for from now on.

        One that waits without them waits on until one that has them can take its place.
        """
        with self._changed:
            missing = [name for name in modules if name not in self._modules]
            if not missing or self._failure:
                return
            self._modules = self._modules.union(missing)
        try:
            for name in missing:
                self._control.sendall(encode(message_to_json(Load(name))))
        except OSError:
            self._fail("PyTorch's process went away.")

    def foresee(self, file: Foresee) -> None:
        """Let the processes that wait, now and later, prepare for this check file."""
        with self._changed:
            if file != self._foreseen:
                self._foreseen = file
                for spare in self._spares:
                    tell(spare, file)

    def _waiting(self, device: str) -> Spare | None:
        found = [spare for spare in self._spares if spare.device == device]
        return max(found, key=lambda spare: len(spare.modules), default=None)

    def close(self) -> None:
        """End it and the processes that wait. Runs under way are left to their owners."""
        with self._changed:
            self._failure = self._failure or "closed"
            spares = list(self._spares)
            self._spares.clear()
            self._changed.notify_all()
        for spare in spares:
            spare.close()
        # Shut down first: it wakes the listening thread, which closes the socket.
        try:
            self._control.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it was gone already
        if self._process is not None:
            end(self._process, by_force=self._longest_start_s is not None)

    def _serve(
        self, command: list[str], theirs: socket.socket, setup: Setup, started: threading.Event
    ) -> None:
        try:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=self._environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            with contextlib.suppress(BrokenPipeError):  # it has ended: its last words say why
                self._control.sendall(encode(message_to_json(setup)))
        except OSError as error:
            self._fail(f"{command[0]} cannot be started: {error}")
        finally:
            theirs.close()
            started.set()
        if self._process is not None:
            self._listen()
            self._fail(self._last_words(self._process))

    def _listen(self) -> None:
        decoder = Decoder()
        descriptors: deque[int] = deque()
        try:
            while True:
                data, received, _, _ = socket.recv_fds(self._control, 1 << 16, 16)
                descriptors += received
                if not data:
                    break
                for message in decoder.feed(data):
                    self._handle(message_from_json(message), descriptors)
        except ConnectionResetError:
            pass  # it ended before it had read everything: its last words say why
        except (OSError, ProtocolError) as error:
            self._fail(f"PyTorch's process cannot be understood: {error}")
        self._control.close()

    def _handle(self, message: Any, descriptors: "deque[int]") -> None:
        with self._changed:
            if isinstance(message, Ready):
                self._ready_at = time.monotonic()
                self._ready = message
            elif isinstance(message, Waiting):
                self._waiting_for = message.reason
            elif isinstance(message, NotAnswering):
                self._silence = message.sentence
            elif isinstance(message, Failed):
                self._failure = self._failure or message.sentence
                self._needs_consent = message.needs_consent
            elif isinstance(message, SpareMade):
                channel, status, out, err = (descriptors.popleft() for _ in range(4))
                sockets = (socket.socket(fileno=channel), socket.socket(fileno=status))
                device, modules = self._asked.popleft()
                spare = Spare(device, *sockets, out, err, modules, lambda: self.silence)
                if self._failure:
                    spare.close()
                else:
                    self._replace_outdated(spare)
                    if self._foreseen is not None:
                        tell(spare, self._foreseen)
            self._changed.notify_all()

    def _replace_outdated(self, newer: Spare) -> None:
        """Let it wait, in the place of one that was forked before something was loaded."""
        for spare in self._spares:
            if spare.device == newer.device and spare.modules < newer.modules:
                self._spares.remove(spare)
                spare.close()
                break
        self._spares.append(newer)

    def _last_words(self, process: "subprocess.Popen[bytes]") -> str:
        """Why it ended, from what it wrote to stderr."""
        assert process.stderr is not None
        lines = process.stderr.read().decode(errors="replace").strip().splitlines()
        process.stderr.close()
        detail = f": {lines[-1]}" if lines else ""
        return f"PyTorch's process ended with status {process.wait()}{detail}"

    def _fail(self, sentence: str) -> None:
        with self._changed:
            self._failure = self._failure or sentence
            self._changed.notify_all()


def tell(spare: Spare, file: Foresee) -> None:
    """Send it to a waiting process. One that has died is noticed when it is to be used."""
    if len(file.source) < LONGEST_FORESEEN:
        with contextlib.suppress(OSError):
            spare.channel.sendall(encode(message_to_json(file)))


def end(process: "subprocess.Popen[bytes]", *, by_force: bool) -> None:
    """Give it a moment to end by itself, then kill it, or let it go on ending alone."""
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        if by_force:
            process.kill()
            process.wait()
