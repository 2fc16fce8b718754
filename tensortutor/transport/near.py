"""The near end: stands for a zygote, whose processes are in another place."""

import contextlib
import io
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from tensortutor.options import Place
from tensortutor.protocol.framing import encode
from tensortutor.protocol.setup import Exited, Failed, NotAnswering, Waiting, message_to_json
from tensortutor.transport.bootstrap import MAGIC, pack, script
from tensortutor.transport.dial_back import STDIO, Listener
from tensortutor.transport.mux import CHUNK, MESSAGE, PING_S, Line, Mux
from tensortutor.transport.slurm import (
    cancel_abandoned_jobs,
    cancel_jobs,
    job_name,
    why_ended,
    why_queued,
)

OLDEST_PYTHON = (3, 10)
START_S = 60.0
"""The longest silence before a place answers; waiting in Slurm's queue does not count."""
LOOK_S = 0.5
QUEUE_EVERY_S = 5.0
QUIET_S = 10.0
"""A place that has said nothing for so long, though asked after PING_S, does not answer."""
FLUSH_S = 2.0
CLEAN_UP_S = 6.0
"""Longer than a far end takes to end what it has started. The host does not wait for that."""
TERM_S = 10.0
"""For a launch command that was told to end: an srun that is killed does not give its job back."""
MOST_TAIL = 4096
QUEUED = re.compile(rb"job (\d+) queued and waiting for resources")
ALLOCATED = re.compile(rb"job \d+ has been allocated resources")


START_FILES = (
    "If a start file of the shell there (~/.bashrc, ~/.profile) or the setup line reads its input, "
    "let it do so only where somebody types: [ -t 0 ] && read answer."
)


class Gone(Exception):
    """The host has gone."""


class Lost(Exception):
    """The place cannot be used; `str` is a sentence for the learner."""


class Errors:
    """What the launch command writes to stderr: its end, and whether a job of Slurm's waits."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.job = ""
        self._tail = b""
        self._process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert isinstance(self._process.stderr, io.BufferedIOBase)
        with self._process.stderr as stream:
            rest = b""
            while data := stream.read1(MOST_TAIL):  # a question does not end its line
                self._tail = (self._tail + data)[-MOST_TAIL:]
                *lines, rest = (rest + data)[-2 * MOST_TAIL :].split(b"\n")
                self._look(lines)

    def _look(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            if found := QUEUED.search(line):
                self.job = found[1].decode()
            elif ALLOCATED.search(line):
                self.job = ""

    def forget(self) -> None:
        """What has been said so far is not why something ends later."""
        self._tail = b""

    def last(self) -> str:
        """The last line that says something, once all has come; "" if there is none.

        Of Slurm's, why a job was ended: other lines come after it.
        """
        self._reader.join(LOOK_S)
        lines = self._tail.decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        ended = [why for why in map(why_ended, said) if why]
        return (ended or said or [""])[-1][-300:]


class Near:
    """One place. control: the socket to the host; host code knows it as a zygote's."""

    def __init__(self, place: Place, control: socket.socket) -> None:
        self._place = place
        self._control = control
        self._before = b""
        self._connection: socket.socket | None = None

    def run(self) -> None:
        """Until the host or the place has gone. What goes wrong is told to the host."""
        try:
            setup = self._control.recv(1 << 16)
            try:
                process = subprocess.Popen(
                    launch_command(self._place.launch), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise Lost(
                    f"{self._place.launch[0]} cannot be started: {error.strerror or error}."
                ) from None
            errors = Errors(process)
            if has_job := requests_slurm_job(self._place.launch):
                threading.Thread(target=cancel_abandoned_jobs, daemon=True).start()
            patience_s = 0.0  # nothing of ours runs there yet that would have to clean up
            try:
                stream = self._shake_hands(process, errors)
                patience_s = CLEAN_UP_S
                carrier = Carrier(self._control, *stream, self._place.name)
                lost = carrier.carry(setup)
                if carrier.is_silent:
                    patience_s = 0.0  # no use to wait for who does not hear
                if lost:
                    why = (errors.last() or lost).rstrip(".")
                    carrier.report_lost(f"The connection to {self._place.name} ended: {why}.")
            finally:
                if self._connection is not None:
                    # The far end ends with its stream, and the launch command with the far end.
                    with contextlib.suppress(OSError):
                        self._connection.shutdown(socket.SHUT_RDWR)
                end(process, patience_s)
                if has_job and process.returncode != 0:
                    cancel_jobs(job_name())
        except Lost as error:
            tell(self._control, Failed(str(error)))
        except (Gone, BrokenPipeError):
            return

    # --- before the stream is ours ---

    def _shake_hands(self, process: "subprocess.Popen[bytes]", errors: Errors) -> tuple[int, int]:
        """Start the far end. Returns the stream to it: where to read and where to write.

        Raises Lost.
        """
        assert process.stdin is not None
        assert process.stdout is not None
        source, sink = process.stdout.fileno(), process.stdin.fileno()
        os.set_blocking(sink, False)
        try:
            self._write(sink, script(self._place.python, self._place.setup))
            archive = pack()
            word, major, minor, path = self._word(source, errors).split(" ", 3)
            version = (int(major), int(minor))
            if word != "python" or version < OLDEST_PYTHON:
                raise Lost(
                    f"{path} on {self._place.name} is Python {major}.{minor}; "
                    f"{OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer is needed. Name another "
                    "interpreter with --python."
                )
            self._write(sink, archive.header)
            answer = self._word(source, errors)
            if answer == "send":
                self._write(sink, archive.data)
                answer = self._word(source, errors)
        except BrokenPipeError:
            if select.select([source], [], [], LOOK_S)[0]:
                self._before = os.read(source, MOST_TAIL)
            raise Lost(self._why_no_answer(errors, "ended")) from None
        if answer != "start":
            raise Lost(f"{self._place.name} speaks another version of this protocol: {answer}.")
        errors.forget()
        return self._choose_stream(source, sink, errors)

    def _choose_stream(self, source: int, sink: int, errors: Errors) -> tuple[int, int]:
        """That of the launch command, or a connection back from there where it is slow (srun)."""
        listener = None
        if program_of(self._place.launch) == "srun":
            with contextlib.suppress(OSError):  # without sockets srun's stream has to do
                listener = Listener()
        try:
            self._write(sink, STDIO if listener is None else listener.offer)
            answer = self._word(source, errors)
            if answer == "stdio" or listener is None:
                return source, sink
            self._connection = listener.connection()
            return self._connection.fileno(), os.dup(self._connection.fileno())
        except BrokenPipeError:
            raise Lost(self._why_no_answer(errors, "ended")) from None
        except OSError as error:
            raise Lost(f"The connection to {self._place.name} broke: {error}.") from None
        finally:
            if listener is not None:
                listener.close()

    def _write(self, sink: int, data: bytes) -> None:
        """Raises Lost if nothing of it is taken for START_S, BrokenPipeError, Gone."""
        deadline = time.monotonic() + START_S
        while data:
            hung_up, ready, _ = select.select([self._control], [sink], [], LOOK_S)
            if hung_up:
                raise Gone
            if ready:
                data = data[os.write(sink, data[:CHUNK]) :]
                deadline = time.monotonic() + START_S
            elif time.monotonic() > deadline:
                raise Lost(f"{self._place.name} takes nothing of what is sent to it.")

    def _word(self, source: int, errors: Errors) -> str:
        """The next line of the far end's first stage, whatever else is said before it."""
        deadline = time.monotonic() + START_S
        began, asked = time.monotonic(), 0.0
        line = b""
        while not line.endswith(b"\n") or MAGIC not in line:
            if errors.job:
                deadline = time.monotonic() + START_S
                if time.monotonic() - asked > QUEUE_EVERY_S:
                    asked = time.monotonic()
                    tell(self._control, Waiting(why_queued(errors.job, asked - began)))
            ready, _, _ = select.select([source, self._control.fileno()], [], [], LOOK_S)
            if self._control.fileno() in ready:
                raise Gone
            if source in ready:
                # Byte by byte: what follows the line is not for this function.
                byte = os.read(source, 1)
                if not byte:
                    self._before = line or self._before
                    raise Lost(self._why_no_answer(errors, "ended"))
                if line.endswith(b"\n") and MAGIC not in line:
                    self._before, line = line, b""
                line = (line + byte)[-MOST_TAIL:]
            if time.monotonic() > deadline:
                self._before = line or self._before
                raise Lost(self._why_no_answer(errors, f"gave no answer for {START_S:g} s"))
        return line[line.index(MAGIC) + len(MAGIC) :].decode(errors="replace").rstrip("\r\n")

    def _why_no_answer(self, errors: Errors, what: str) -> str:
        said = errors.last() or self._before.decode(errors="replace").strip()
        detail = f" It said: {said.rstrip('.:')}." if said else ""
        hint = ""
        if "not found" in said and self._place.python in said:
            hint = " Name an interpreter that is there with --python."
        elif "denied" in said.lower() or "assword" in said or "assphrase" in said:
            hint = " A password cannot be asked for here: use a key, or open a connection first."
        elif "Host key verification failed" in said:
            hint = " Connect once by hand, and accept its key if it is the right one."
        elif "yntax error" in said:  # the shell has got a part of what was sent
            hint = f" {START_FILES}"
        else:
            hint = "" if said else ' It has to run a shell in that place, as "ssh HOST" does.'
            hint += "" if what == "ended" else f" {START_FILES}"
        return f"{self._place.name} {what} before Python was started there.{detail}{hint}"


class Carrier:
    """Carries the lines between a host that waits for a zygote's messages and a far end."""

    def __init__(
        self, control: socket.socket, source: int, sink: int, name: str = "the place"
    ) -> None:
        """control: the socket to the host. source, sink: the stream to the far end, in `name`."""
        self._control = control
        self._name = name
        self.is_silent = False
        self._host_gone = False
        self._statuses: list[int] = []
        self._mux = Mux(source, sink, message=control.sendall, opened=self._open)
        self._mux.watch(control.fileno(), self._from_host)

    def carry(self, setup: bytes) -> str:
        """Until one of the two has gone. setup: the host's first message.

        Returns why the stream was lost, or "" if the host has gone.
        """
        self._mux.say(MESSAGE, 0, setup)
        while not self._mux.lost and not self._host_gone:
            self._mux.step(PING_S / 2)
            self._tell_of_silence()
        return "" if self._host_gone else self._mux.lost

    def _tell_of_silence(self) -> None:
        if self.is_silent != (self._mux.silent_s > QUIET_S):
            self.is_silent = not self.is_silent
            said = f"{self._name} does not answer: nothing came from there for {QUIET_S:g} s."
            tell(self._control, NotAnswering(said if self.is_silent else ""))

    def report_lost(self, sentence: str) -> None:
        """Pass on what had come, and tell the host and each run that the rest is not known."""
        self._mux.forget(self._control.fileno())
        tell(self._control, Failed(sentence))
        exited = encode(message_to_json(Exited(70, sentence=sentence)))
        for number, line in self._mux.lines.items():
            if number in self._statuses and not line.closing:
                line.pending += exited
            line.closing, line.reads = True, False
        until = time.monotonic() + FLUSH_S
        while self._mux.lines and time.monotonic() < until:
            self._mux.step(timeout_s=0.1)
        self._mux.close()

    def _from_host(self) -> None:
        try:
            data = self._control.recv(1 << 16)
        except OSError:
            data = b""
        if data:
            self._mux.say(MESSAGE, 0, data)
        else:
            self._host_gone = True

    def _open(self, number: int, frame: bytes) -> None:
        """A process waits there: give the host descriptors as a zygote does."""
        channel, status, out, err = (number + i for i in range(4))
        (channel_end, channel_fd), (status_end, status_fd) = (
            [end.detach() for end in socket.socketpair()] for _ in range(2)
        )
        (out_end, out_fd), (err_end, err_fd) = os.pipe(), os.pipe()
        ends = [channel_end, status_end, out_end, err_end]
        socket.send_fds(self._control, [frame], ends)
        for descriptor in ends:
            os.close(descriptor)
        self._mux.add(channel, Line(channel_fd, yields_to=(out, err)))
        self._mux.add(status, Line(status_fd, write_after=(channel, out, err)))
        self._mux.add(out, Line(out_fd, reads=False, write_after=(channel,)))
        self._mux.add(err, Line(err_fd, reads=False, write_after=(channel,)))
        self._statuses.append(status)


def tell(control: socket.socket, message: object) -> None:
    """Send the host a message, if it is still there."""
    with contextlib.suppress(OSError):
        control.sendall(encode(message_to_json(message)))


def launch_command(words: Sequence[str]) -> list[str]:
    """The command to start: what is known to be needed for a stream of bytes, and a shell."""
    first, *rest = words
    name = program_of(words)
    extra: list[str] = []
    if name == "srun":
        extra = ["-u", "-n1"]  # without -u its output waits for a newline
        if requests_slurm_job(words):
            extra.append(f"--job-name={job_name()}")
        else:
            extra.append("--overlap")  # without it, it would wait for the end of other steps
    elif name == "ssh":
        extra = ["-o", "BatchMode=yes"]
    return [first, *extra, *rest, "sh"]


def requests_slurm_job(words: Sequence[str]) -> bool:
    """This command gets a job from Slurm; inside a job it is only a step of that one."""
    return program_of(words) == "srun" and "SLURM_JOB_ID" not in os.environ


def program_of(launch: Sequence[str]) -> str:
    """The name of the program that a launch command starts."""
    return os.path.basename(launch[0])


def end(process: "subprocess.Popen[bytes]", patience_s: float) -> None:
    """Close its stream, and end it if that does not."""
    for end in (process.stdin, process.stdout):
        assert end is not None
        with contextlib.suppress(OSError):
            end.close()
    for wait_s, how in ((patience_s, signal.SIGTERM), (TERM_S, signal.SIGKILL), (1.0, None)):
        try:
            process.wait(wait_s)
            return
        except subprocess.TimeoutExpired:
            if how is not None:
                os.killpg(process.pid, how)
                os.killpg(process.pid, signal.SIGCONT)  # one that is stopped ends only then


def main(place: str, control: int) -> None:
    """Serve the host that is at the other end of this socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    words = json.loads(place)
    words["launch"] = tuple(words["launch"])
    Near(Place(**words), socket.socket(fileno=control)).run()
    sys.exit(0)
