"""Many lines (sockets, pipes) over one byte stream, each with credit of its own.

A frame is a kind, a number and a length, then so many bytes. A side sends at most WINDOW bytes of a
line that the other side has not delivered yet: a line that nobody reads holds up no other.
"""

import contextlib
import fcntl
import os
import select
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

HEAD = struct.Struct(">BII")
MESSAGE, OPEN, DATA, CLOSE, CREDIT, PING, PONG = range(1, 8)
WINDOW = 1 << 18
CHUNK = 1 << 16
LARGEST = 1 << 22
"""More than any frame of ours holds: whoever claims more does not speak this protocol."""
MOST_WAITING = 1 << 20
"""With so many bytes waiting to be sent, no line is read any more."""
PING_S = 5.0
SILENCE_S = 60.0
"""A stream that says nothing for so long, though asked, is taken for lost."""
LOOK_S = 0.001
LONGEST_LOOK_S = 0.05
"""Whether a pipe has been read by now is to be asked: at first so often, at last so seldom."""


@dataclass
class Line:
    """One descriptor. credit: bytes that may still be sent of it. pending: bytes to be written.

    read_after, write_after: the lines whose bytes go before its own where both have some.
    yields_to: the lines of which what was there earlier is to be read first: what came from the
    other side before bytes that are to be written; and what lies there when a message is read that
    begins with last_word. held: bytes that wait for that, each time with what is to be read of the
    others by then. passed: bytes read or written so far.
    """

    fd: int
    reads: bool = True
    writes: bool = True
    read_after: tuple[int, ...] = ()
    write_after: tuple[int, ...] = ()
    credit: int = WINDOW
    pending: bytearray = field(default_factory=bytearray)
    closing: bool = False
    last_word: bytes = b""
    yields_to: tuple[int, ...] = ()
    held: deque[tuple[bytes, dict[int, int]]] = field(default_factory=deque)
    passed: int = 0
    _tail: bytes = b""

    @property
    def come(self) -> int:
        """How many bytes have come until now, read or not."""
        return self.passed + (bytes_in(self.fd) if self.reads else len(self.pending))

    @property
    def read(self) -> int:
        """How many of them have been read: here, or by who reads what is written here."""
        return self.passed - (0 if self.reads else bytes_in(self.fd))

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """What has been read, up to the last message and from there on; call it for all in turn.

        The first bytes of the message may have gone before: it is whole only with its end.
        """
        if not self.last_word:
            return data, b""
        before = len(self._tail)
        seen = self._tail + data
        self._tail = seen[1 - len(self.last_word) :]
        at = seen.find(self.last_word)
        if at < 0:
            return data, b""
        at = max(0, at - before)
        return data[:at], data[at:]


class Mux:
    """One side of a stream. `lost` says why it has ended, or is ""."""

    def __init__(
        self,
        source: int,
        sink: int,
        *,
        message: Callable[[bytes], None],
        opened: Callable[[int, bytes], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """source, sink: two descriptors of the stream, which stay the caller's.

        message, opened: called with what the other side says by `say(MESSAGE, ...)` and
        `say(OPEN, ...)`.
        """
        self.lines: dict[int, Line] = {}
        self.lost = ""
        self._source, self._sink = source, sink
        self._on_message, self._on_opened = message, opened
        self._clock = clock
        self._watched: dict[int, Callable[[], None]] = {}
        self._in, self._out = bytearray(), bytearray()
        self._look_s = LOOK_S
        self._heard = self._asked = clock()
        os.set_blocking(source, False)
        os.set_blocking(sink, False)

    @property
    def has_unsent(self) -> bool:
        """Something waits for the stream."""
        return bool(self._out)

    @property
    def silent_s(self) -> float:
        """How long nothing has come. The other side is asked after PING_S: then it should have."""
        return self._clock() - self._heard

    def say(self, kind: int, number: int = 0, payload: bytes = b"") -> None:
        """Send a frame, once the stream takes it."""
        self._out += HEAD.pack(kind, number, len(payload)) + payload

    def watch(self, fd: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever there is something to read."""
        self._watched[fd] = ready

    def forget(self, fd: int) -> None:
        """Watch it no more."""
        self._watched.pop(fd, None)

    def add(self, number: int, line: Line) -> None:
        """Serve a line; its descriptor is the mux's from here on."""
        os.set_blocking(line.fd, False)
        self.lines[number] = line

    def close(self) -> None:
        """Close all lines."""
        for line in self.lines.values():
            os.close(line.fd)
        self.lines.clear()

    def step(self, timeout_s: float = PING_S) -> None:
        """Carry what there is, or wait for something at most so long."""
        poll = select.poll()
        if not self.lost:
            self._ask_after_silence()
            poll.register(self._source, select.POLLIN)
            if self._out:
                poll.register(self._sink, select.POLLOUT)
        self._close_finished()
        numbers = {}
        for number, line in self.lines.items():
            events = self._wanted(number)
            # A pipe's writer hears of its reader's end without asking for anything.
            if events or not line.reads:
                poll.register(line.fd, events)
                numbers[line.fd] = number
        for fd in self._watched:
            poll.register(fd, select.POLLIN)
        if any(line.held for line in self.lines.values()):
            timeout_s = min(timeout_s, self._look_s)
            self._look_s = min(2 * self._look_s, LONGEST_LOOK_S)
        for fd, events in poll.poll(timeout_s * 1000):
            if fd in self._watched:
                self._watched[fd]()
            elif fd in numbers:
                self._serve(numbers[fd], events)
            elif fd == self._source:
                self._receive()
        for number, line in list(self.lines.items()):
            self._release(number, line)
            if line.pending and self._may_write(number):
                self._write(number, line)  # most often there is room: no need to ask for it first
        self._close_finished()
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the stream takes it now."""
        try:
            while self._out and not self.lost:
                del self._out[: os.write(self._sink, self._out[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            while not self.lost and self._receive():
                pass  # what the other side said last is worth more than that it is gone
            self.lost = self.lost or "it was closed"

    # --- the stream ---

    def _ask_after_silence(self) -> None:
        now = self._clock()
        if self.silent_s > SILENCE_S:
            self.lost = f"it does not answer, nothing has come for {SILENCE_S:g} s"
        elif now - max(self._heard, self._asked) >= PING_S:
            self._asked = now
            self.say(PING)

    def _receive(self) -> bool:
        """Take what has come. Whether something had."""
        try:
            data = os.read(self._source, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.lost = self.lost or "it was closed"
            return False
        self._heard = self._clock()
        self._in += data
        self._take_frames()
        return True

    def _take_frames(self) -> None:
        start = 0
        while len(self._in) - start >= HEAD.size:
            kind, number, length = HEAD.unpack_from(self._in, start)
            size = 0 if kind == CREDIT else length
            if not MESSAGE <= kind <= PONG or size > LARGEST:
                self.lost = "something else than tensortutor writes to it"
                return
            end = start + HEAD.size + size
            if len(self._in) < end:
                break
            self._take(kind, number, length, bytes(self._in[start + HEAD.size : end]))
            start = end
        del self._in[:start]

    def _take(self, kind: int, number: int, length: int, payload: bytes) -> None:
        line = self.lines.get(number)
        if kind == MESSAGE:
            self._on_message(payload)
        elif kind == OPEN:
            self._on_opened(number, payload)
        elif kind == PING:
            self.say(PONG)
        elif line is None:
            return  # closed here, and the other side does not know it yet
        elif kind == DATA and line.writes and line.last_word:
            line.pending += payload
        elif kind == DATA and line.writes:
            self._hold(number, line, payload)
        elif kind == CREDIT:
            line.credit += length
        elif kind == CLOSE:
            line.closing = True
            line.reads = False

    # --- the lines ---

    def _close_finished(self) -> None:
        """Close the lines that the other side has closed, once all is written."""
        for number, line in list(self.lines.items()):
            if line.closing and not (line.pending or line.held) and self._may_write(number):
                self._drop(number, tell=False)

    def _hold(self, number: int, line: Line, data: bytes) -> None:
        """Deliver it once what has come by now of the lines that it yields to has been read."""
        goals = {n: self.lines[n].come for n in line.yields_to if n in self.lines}
        line.held.append((data, goals))
        self._release(number, line)

    def _release(self, number: int, line: Line) -> None:
        """Deliver what is held and waits for nothing any more."""
        while line.held:
            data, goals = line.held[0]
            if any(n in self.lines and self.lines[n].read < goal for n, goal in goals.items()):
                return
            line.held.popleft()
            if line.last_word:
                self.say(DATA, number, data)
            else:
                line.pending += data
            self._look_s = LOOK_S

    def _most(self, number: int, after: tuple[int, ...]) -> int:
        """Bytes of a line that may pass now: no more than held bytes of others wait for."""
        earlier = [self.lines[n] for n in after if n in self.lines]
        awaited = [
            e.held[0][1].get(number, 0) - self.lines[number].passed for e in earlier if e.held
        ]
        return max(0, min([CHUNK, *awaited]))

    def _may_read(self, number: int) -> bool:
        line = self.lines[number]
        has_room = line.credit > 0 and len(self._out) < MOST_WAITING
        if not line.reads or line.held or not has_room:
            return False
        waits = any(n in self.lines and self.lines[n].credit <= 0 for n in line.read_after)
        return not waits and self._most(number, line.read_after) > 0

    def _may_write(self, number: int) -> bool:
        line = self.lines[number]
        waits = any(n in self.lines and self.lines[n].pending for n in line.write_after)
        return not waits and self._most(number, line.write_after) > 0

    def _wanted(self, number: int) -> int:
        events = select.POLLIN if self._may_read(number) else 0
        can_write = self.lines[number].pending and self._may_write(number)
        return events | (select.POLLOUT if can_write else 0)

    def _serve(self, number: int, events: int) -> None:
        line = self.lines.get(number)
        if line is not None and line.pending and events & (select.POLLOUT | select.POLLERR):
            self._write(number, line)
        if number in self.lines and events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            if line is not None and line.reads:
                self._read(number, line)
            else:
                self._drop(number)

    def _write(self, number: int, line: Line) -> None:
        try:
            written = os.write(line.fd, line.pending[: self._most(number, line.write_after)])
        except BlockingIOError:
            return
        except OSError:
            # Nobody listens there any more; what was said there before may still be to be read.
            line.pending.clear()
            line.writes = False
            if not line.reads:
                self._drop(number)
            return
        del line.pending[:written]
        line.passed += written
        self._out += HEAD.pack(CREDIT, number, written)

    def _read(self, number: int, line: Line) -> None:
        """One read, after all that was said before on the lines that go first.

        No more than was there before those were read: what was said on them meanwhile comes first.
        """
        most = bytes_in(line.fd) or CHUNK
        for earlier in line.read_after:
            while earlier in self.lines and self._read_once(earlier, self.lines[earlier]):
                pass
        self._read_once(number, line, most)

    def _read_once(self, number: int, line: Line, most: int = CHUNK) -> bool:
        """Whether something came."""
        if not self._may_read(number):
            return False
        try:
            data = os.read(line.fd, min(most, line.credit, self._most(number, line.read_after)))
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._drop(number)
            return False
        line.credit -= len(data)
        line.passed += len(data)
        data, last = line.split(data)
        if data:
            self.say(DATA, number, data)
        if last:
            self._hold(number, line, last)
        return True

    def _drop(self, number: int, *, tell: bool = True) -> None:
        with contextlib.suppress(KeyError):
            os.close(self.lines.pop(number).fd)
            if tell:
                self.say(CLOSE, number)


def bytes_in(pipe: int) -> int:
    """How many bytes lie in a pipe or socket, written and not yet read."""
    count = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)
