"""What a program prints, as events in the order in which it was printed.

`sys.stdout` and `sys.stderr` write to the run's channel, tagged, so that the two keep their order.
What bypasses them (C code, `os.write`, child processes) goes to the pipes behind descriptors 1
and 2, which the host reads as well.
"""

import codecs
import fcntl
import io
import os
import signal
import sys
import termios
import threading
from types import FrameType
from typing import Any

from tensortutor.protocol.events import Event, Output, event_to_json
from tensortutor.worker.message_socket import MessageSocket

LARGEST_CHUNK = 1 << 16
"""Bytes of output in one event: JSON may make six of one, and a frame is bounded."""


class Channel:
    """Sends events. A frame, once begun, is sent whole: an interrupt waits for its end."""

    def __init__(self, link: MessageSocket) -> None:
        self._link = link
        self._owner = os.getpid()
        self._sending = False
        self._interrupted = False
        self._has_raised = False

    def send(self, event: Event) -> None:
        """Send one event."""
        self.send_json(event_to_json(event))

    def send_json(self, *data: dict[str, Any]) -> None:
        """Send JSON objects, at once."""
        if os.getpid() != self._owner:
            return  # a child of the program has no say here
        in_main = threading.current_thread() is threading.main_thread()
        if in_main:
            self._sending = True
        try:
            self._link.send_json(*data)
        finally:
            if in_main:
                self._sending = False
        if in_main and self._interrupted:
            self._interrupted = False
            self._raise()

    def on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of SIGINT, which is sent again and again: the first one counts."""
        if self._sending:
            self._interrupted = True
        else:
            self._raise()

    def _raise(self) -> None:
        if not self._has_raised:
            self._has_raised = True
            raise KeyboardInterrupt


class TaggedBytes(io.BufferedIOBase):
    """The bytes below sys.stdout or sys.stderr (`sys.stdout.buffer`).

    It keeps nothing back. A buffer of the standard library would send its content twice when an
    interrupt comes just after the first time.
    """

    def __init__(self, channel: Channel, stream: str, descriptor: int) -> None:
        super().__init__()
        self._channel = channel
        self._stream = stream
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text_log: list[str] | None = None

    @property
    def name(self) -> str:
        """As a terminal's: "<stdout>" or "<stderr>"."""
        return f"<{self._stream}>"

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The pipe's descriptor, for programs that hand it to others."""
        return self._descriptor

    def isatty(self) -> bool:
        """Never: there is no keyboard and no cursor."""
        return False

    def write(self, data: Any) -> int:
        """Send all the bytes; returns how many they were."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), LARGEST_CHUNK):
            self._send(bytes(view[start : start + LARGEST_CHUNK]))
        return len(view)

    def finish(self) -> None:
        """Send what is left of a character that was cut short."""
        self._say(self._decoder.decode(b"", final=True))

    def _send(self, piece: bytes) -> None:
        # What waits in the pipe was written earlier, and the host reads the channel first: with
        # something there, the pipe is the way that keeps the order. A child has no other.
        if os.getpid() != self._owner or bytes_waiting(self._descriptor):
            while piece:
                piece = piece[os.write(self._descriptor, piece) :]
            return
        self._say(self._decoder.decode(piece))

    def _say(self, text: str) -> None:
        if self.text_log is not None:
            self.text_log.append(text)
        if text:
            self._channel.send(Output(self._stream, text))


class Streams:
    """Puts tagged streams in the place of sys.stdout and sys.stderr."""

    def __init__(self, channel: Channel) -> None:
        self._out = TaggedBytes(channel, "stdout", 1)
        self._err = TaggedBytes(channel, "stderr", 2)
        sys.stdout = sys.__stdout__ = text_stream(self._out, "strict")  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = text_stream(self._err, "backslashreplace")  # type: ignore[misc]
        self._streams = (sys.stdout, sys.stderr)

    def record(self) -> list[str]:
        """Also keep what is printed to stdout from now on, in the list returned."""
        self._out.text_log = []
        return self._out.text_log

    def finish(self) -> None:
        """Push out everything, to the last byte."""
        self.flush()
        self._out.finish()
        self._err.finish()

    def flush(self) -> None:
        """Push out what is buffered. A program may have closed or replaced its streams."""
        current = (getattr(sys, name, None) for name in ("stdout", "stderr"))
        for stream in (*current, *self._streams):
            try:
                flush = getattr(stream, "flush", None)
                if flush is not None and not getattr(stream, "closed", False):
                    flush()
            except KeyboardInterrupt:
                raise
            except BaseException:
                continue  # its own stream, broken by itself: nothing left to push


def bytes_waiting(descriptor: int) -> bool:
    """Something has been written to this pipe and not been read yet."""
    count = bytearray(4)
    try:
        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    except OSError:
        return False  # the program has closed or replaced it
    return any(count)


def text_stream(below: TaggedBytes, errors: str) -> io.TextIOWrapper:
    """UTF-8 and line by line, as on a terminal."""
    return io.TextIOWrapper(below, encoding="utf-8", errors=errors, line_buffering=True)


def install_interrupt(channel: Channel) -> None:
    """Let SIGINT raise KeyboardInterrupt, but never in the middle of a frame."""
    signal.signal(signal.SIGINT, channel.on_interrupt)
