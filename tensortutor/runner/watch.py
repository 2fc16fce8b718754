"""The lines between the host and a run's processes, read without blocking."""

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any

from tensortutor.protocol.events import Output
from tensortutor.protocol.framing import Decoder
from tensortutor.runner.zygote import Spare

CHUNK = 1 << 16
MOST_CHUNKS = 64


class Watch:
    """The four lines to a run's processes, and the line by which `stop` wakes the reader."""

    def __init__(self, spare: Spare, wake: int) -> None:
        self.patience = float("inf")
        self._wake = wake
        self._selector = selectors.DefaultSelector()
        self._lines: dict[str, int] = {
            # In this order, and each to its end: what is in the channel was written before what
            # waits in a pipe (see worker/capture.py).
            "channel": spare.channel.fileno(),
            "stdout": spare.out,
            "stderr": spare.err,
            "status": spare.status.fileno(),
        }
        self._decoders = {"channel": Decoder(), "status": Decoder()}
        self._texts = {
            name: getincrementaldecoder("utf-8")("surrogateescape") for name in ("stdout", "stderr")
        }
        for name, descriptor in self._lines.items():
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        self._selector.register(wake, selectors.EVENT_READ, "wake")

    def read(self, timeout: float) -> Iterator[tuple[str, bytes]]:
        """What is there now, or after waiting at most so many seconds."""
        ready = {key.data for key, _ in self._selector.select(timeout)}
        if "wake" in ready:
            os.read(self._wake, 64)
        if ready & {"stdout", "stderr"}:
            ready.add("channel")
        for name in tuple(self._lines):
            if name in ready:
                yield from self._receive_all(name)

    def drain(self) -> Iterator[tuple[str, bytes]]:
        """What is still in the channel and in the pipes, without waiting."""
        for name in ("channel", "stdout", "stderr"):
            yield from self._receive_all(name)

    def _receive_all(self, name: str) -> Iterator[tuple[str, bytes]]:
        """To the end of what is there; bounded, for a program may write faster than we read."""
        for _ in range(MOST_CHUNKS):
            data = self._receive(name) if name in self._lines else b""
            if not data:
                break
            yield name, data

    def _receive(self, name: str) -> bytes:
        """Some bytes; b"" when there are none or the line has ended (it is then forgotten)."""
        try:
            data = os.read(self._lines[name], CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.forget(name)
        return data

    def listens_to(self, name: str) -> bool:
        """The line has not ended."""
        return name in self._lines

    def forget(self, name: str) -> None:
        """Do not listen to a line any more."""
        descriptor = self._lines.pop(name, None)
        if descriptor is not None:
            self._selector.unregister(descriptor)

    def messages(self, source: str, data: bytes) -> list[dict[str, Any]]:
        """The messages that these bytes complete. Raises ProtocolError."""
        return self._decoders[source].feed(data)

    def decode(self, source: str, data: bytes) -> str:
        """Text of a pipe, cut anywhere."""
        return self._texts[source].decode(data)

    def rest(self) -> Iterator[Output]:
        """What is left of characters that were cut short at the very end."""
        for name, decoder in self._texts.items():
            text = decoder.decode(b"", final=True)
            if text:
                yield Output(name, text)

    def close(self) -> None:
        """Let go of the selector; the descriptors are the spare's."""
        self._selector.close()
