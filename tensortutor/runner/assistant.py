"""The host's end of the assistant: asks one question at a time, and replaces a silent process."""

import os
import select
import socket
import threading
import time
from collections.abc import Callable

from tensortutor.protocol.assist import LONGEST_SOURCE, Answer, Completions, Documentation, Question
from tensortutor.protocol.framing import Decoder, ProtocolError, encode
from tensortutor.protocol.setup import Allow, Assist, Kill, message_from_json, message_to_json
from tensortutor.runner.errors import RunnerError
from tensortutor.runner.run import send
from tensortutor.runner.zygote import Spare

PATIENCE_S = 10.0
"""It gives a question up by itself after less; a process that is silent for so long is ended."""
MEMORY_BYTES = 4 << 30
PROCESSES = 4
FILE_BYTES = 1 << 30


class Assistant:
    """One assistant process, made when it is first wanted. Methods may be called by any thread."""

    def __init__(self, take: Callable[[], Spare], libraries: tuple[str, ...]) -> None:
        """take: gives a waiting process. May raise RunnerError. libraries: as in `Assist`."""
        self._take = take
        self._libraries = libraries
        self._lock = threading.Lock()
        self._spare: Spare | None = None
        self._decoder = Decoder()
        self._closed = False

    def attend(self) -> None:
        """Have the process ready. What fails here fails again, and is told, with a question."""
        with self._lock:
            try:
                self._serving()
            except (RunnerError, OSError):
                return

    def ask(self, question: Question) -> Answer | None:
        """The answer; None if there is none to be had. Blocks, no longer than PATIENCE_S."""
        if len(question.source) > LONGEST_SOURCE:
            return None
        with self._lock:
            try:
                spare = self._serving()
                spare.channel.sendall(encode(message_to_json(question)))
                return self._receive(spare, question.number)
            except (RunnerError, OSError, ProtocolError):
                self._drop()
                return None

    def close(self) -> None:
        """End the process; a question under way gets no answer."""
        self._closed = True
        spare = self._spare
        if spare is not None:
            send(spare.status, Kill())
        with self._lock:
            self._drop()

    def _serving(self) -> Spare:
        if self._closed:
            raise RunnerError("The runner is closed.")
        if self._spare is None:
            spare = self._take()
            os.set_blocking(spare.channel.fileno(), True)
            self._spare, self._decoder = spare, Decoder()
            send(spare.status, Allow(PROCESSES, FILE_BYTES, MEMORY_BYTES))
            spare.channel.sendall(encode(message_to_json(Assist(self._libraries))))
        return self._spare

    def _receive(self, spare: Spare, number: int) -> Answer | None:
        end = time.monotonic() + PATIENCE_S
        pipes = [spare.out, spare.err]
        while True:
            lines: list[socket.socket | int] = [spare.channel, *pipes]
            ready, _, _ = select.select(lines, [], [], max(0.0, end - time.monotonic()))
            # What a library prints is read as well: an answer may have to wait for that.
            pipes = [pipe for pipe in pipes if pipe not in ready or os.read(pipe, 1 << 16)]
            if ready and spare.channel not in ready and time.monotonic() < end:
                continue
            data = spare.channel.recv(1 << 16) if spare.channel in ready else b""
            if not data:
                raise RunnerError("The assistant does not answer.")
            for message in self._decoder.feed(data):
                answer = message_from_json(message)
                if isinstance(answer, (Completions, Documentation)) and answer.number == number:
                    return answer

    def _drop(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            send(spare.status, Kill())
            spare.close()
