"""One program as N cooperating processes, started as torchrun starts them.

Each rank is a fork that runs the whole program. This process reads what they say, labels their
output, lets a check pass when it passes on every rank, and ends all when one of them dies.
"""

import os
import selectors
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import torch

from tensortutor.protocol.drawings import DRAWINGS, LONGEST_WORDS
from tensortutor.protocol.events import (
    CheckStarted,
    Event,
    Output,
    Probed,
    Raised,
    Started,
    Verdict,
    Warned,
    event_from_json,
)
from tensortutor.protocol.framing import Decoder, ProtocolError
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.layers import LANDLOCK
from tensortutor.protocol.lens import LENS
from tensortutor.protocol.setup import Ended, Setup, message_from_json
from tensortutor.worker.capture import Channel
from tensortutor.worker.integrity import Snapshot
from tensortutor.worker.judge import Signer
from tensortutor.worker.message_socket import MessageSocket
from tensortutor.worker.program import Program

CHUNK = 1 << 16


@dataclass
class Rank:
    """One process, and what it has said so far."""

    number: int
    pid: int
    channel: socket.socket
    pipes: dict[int, str]
    decoder: Decoder = field(default_factory=Decoder)
    partial: dict[str, str] = field(default_factory=lambda: {"stdout": "", "stderr": ""})
    code: int | None = None
    error: Raised | None = None


def run_ranks(
    job: Job, setup: Setup, channel: Channel, folder: str, signer: Signer | None
) -> Ended:
    """Run the job's program on `job.ranks` ranks; the status, and a sentence if one died."""
    port = free_port()
    ranks = [start(number, job, setup, folder, port) for number in range(job.ranks)]

    def pass_on(number: int, _frame: Any) -> None:
        for rank in ranks:
            end(rank, number)

    signal.signal(signal.SIGINT, pass_on)
    # Landlock cannot tell loopback from the rest of the network; the face shows what is open.
    open_tcp = "+tcp" if setup.layer == LANDLOCK else ""
    channel.send(Started(setup.device, setup.layer + open_tcp))
    gathering = Gathering(ranks, channel, signer)
    return gathering.until_the_end()


def start(number: int, job: Job, setup: Setup, folder: str, port: int) -> Rank:
    """Fork one rank."""
    ours, theirs = socket.socketpair()
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        for source, target in ((out_end, 1), (err_end, 2)):
            os.dup2(source, target)
        for descriptor in (out, out_end, err, err_end):
            os.close(descriptor)
        become_rank(number, job, setup, folder, port, theirs)
    theirs.close()
    os.close(out_end)
    os.close(err_end)
    return Rank(number, pid, ours, {out: "stdout", err: "stderr"})


def become_rank(
    number: int, job: Job, setup: Setup, folder: str, port: int, sock: socket.socket
) -> NoReturn:
    """What a rank's process does."""
    try:
        # As torchrun does: the ranks share the processors, and OpenMP's threads do not survive
        # the fork that this process is.
        torch.set_num_threads(1)
        count = str(job.ranks)
        os.environ.update(
            RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=count, LOCAL_WORLD_SIZE=count,
            GROUP_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
            TORCHELASTIC_RUN_ID="none",
        )  # fmt: skip
        program = Program(
            job, setup, Channel(MessageSocket(sock)), os.path.join(folder, f"rank{number}")
        )
        if job.judge is not None:
            program.expect_judging(job.judge, Signer("00"), Snapshot())
        program.leave(program.run())
    finally:
        os._exit(70)


def free_port() -> int:
    """A port on loopback that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end(rank: Rank, number: int) -> None:
    """Send a signal to a rank that is still there."""
    if rank.code is None:
        os.kill(rank.pid, number)


class Gathering:
    """Reads all ranks until they are gone."""

    def __init__(self, ranks: list[Rank], channel: Channel, signer: Signer | None) -> None:
        self._ranks = ranks
        self._channel = channel
        self._signer = signer
        self._verdicts: dict[str, list[tuple[int, Verdict]]] = {}
        self._first_dead: Rank | None = None
        self._sentence = ""
        self._modules: tuple[str, ...] = ()
        self._selector = selectors.DefaultSelector()
        for rank in ranks:
            for source in (rank.channel.fileno(), *rank.pipes):
                self._selector.register(source, selectors.EVENT_READ, rank)

    def until_the_end(self) -> Ended:
        """Forward everything; returns when the last rank is gone."""
        while self._selector.get_map():
            for key, _ in self._selector.select():
                self._read(key.fd, key.data)
        if self._first_dead is None:
            return Ended(0, modules=self._modules)
        if self._first_dead.error is not None:
            self._channel.send(self._first_dead.error)
        return Ended(self._first_dead.code or 1, self._sentence, self._modules)

    def _read(self, source: int, rank: Rank) -> None:
        try:
            data = os.read(source, CHUNK)
        except ConnectionError:
            data = b""
        if not data:
            self._selector.unregister(source)
            if source == rank.channel.fileno():
                self._gone(rank)
        elif source in rank.pipes:
            self._output(rank, Output(rank.pipes[source], data.decode("utf-8", "surrogateescape")))
        else:
            try:
                for message in rank.decoder.feed(data):
                    self._handle(rank, message)
            except ProtocolError:
                os.kill(rank.pid, signal.SIGKILL)  # it wrote into its own channel

    def _handle(self, rank: Rank, message: dict[str, Any]) -> None:
        message.pop("mac", None)
        if "say" in message:  # what else it has to say, its exit status says as well
            ended = message_from_json(message)
            if isinstance(ended, Ended) and rank.number == 0:
                self._modules = ended.modules
            return
        event = event_from_json(message)
        if isinstance(event, Output):
            self._output(rank, event)
        elif isinstance(event, Raised):
            rank.error = event
        elif isinstance(event, DRAWINGS):
            title = f"[rank {rank.number}] {event.title}".rstrip()
            self._channel.send(replace(event, title=title[:LONGEST_WORDS]))
        elif isinstance(event, Verdict):
            self._verdict(rank, event)
        elif rank.number == 0 and isinstance(event, (CheckStarted, Probed, Warned, *LENS)):
            self._channel.send(event)

    def _output(self, rank: Rank, output: Output) -> None:
        """Whole lines, so that those of different ranks do not run into each other."""
        *lines, rest = (rank.partial[output.stream] + output.text).split("\n")
        rank.partial[output.stream] = rest
        for event in labelled(rank.number, output.stream, lines):
            self._channel.send(event)

    def _verdict(self, rank: Rank, verdict: Verdict) -> None:
        """A check passes when it has passed on every rank; a failure names the first rank."""
        found = self._verdicts.setdefault(verdict.check, [])
        found.append((rank.number, verdict))
        if len(found) < len(self._ranks) or self._signer is None:
            return
        number, worst = next((f for f in sorted(found, key=first) if not f[1].passed), found[0])
        if not worst.passed:
            worst = replace(worst, message=f"rank {number}: {worst.message}")
        slowest = max(v.ms for _, v in found)
        self._channel.send_json(self._signer.signed(replace(worst, ms=slowest)))

    def _gone(self, rank: Rank) -> None:
        for stream, rest in rank.partial.items():
            for event in labelled(rank.number, stream, [rest] if rest else []):
                self._channel.send(event)
        _, status = os.waitpid(rank.pid, 0)
        rank.code = os.waitstatus_to_exitcode(status)
        if rank.code == 0 or self._first_dead is not None:
            return
        self._first_dead = rank
        self._sentence = sentence(rank)
        if rank.code < 0:
            rank.code = 128 - rank.code
        for other in self._ranks:
            end(other, signal.SIGKILL)


def first(found: tuple[int, Verdict]) -> int:
    """The rank's number."""
    return found[0]


def labelled(number: int, stream: str, lines: list[str]) -> Iterator[Event]:
    """Lines with their rank in front."""
    if lines:
        yield Output(stream, "".join(f"[rank {number}] {line}\n" for line in lines))


def sentence(rank: Rank) -> str:
    """Why everything was stopped."""
    code = rank.code or 0
    if code < 0:
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
    elif rank.error is not None:
        line = f" in line {rank.error.frames[-1].line}" if rank.error.frames else ""
        how = f"raised {rank.error.type}{line}"
    else:
        how = f"ended with status {code}"
    return f"Rank {rank.number} {how}; the other ranks were stopped."
