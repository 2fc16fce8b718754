"""A program in a pseudo-terminal, for benches that measure what a learner sees."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

ROWS, COLUMNS = 50, 160
PATIENCE_S = 60.0
FRAME_END = b"\x1b[?2026l"
ASKS_FOR_FRAMES = b"\x1b[?2026$p"
HAS_FRAMES = b"\x1b[?2026;2$y"
ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[PX^_].*?\x1b\\|\].*?(\x07|\x1b\\)|[ -/]*[0-~])")


class Terminal:
    """Python with `arguments`, in a terminal that knows synchronized output: frames have an end."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        size: tuple[int, int] = (ROWS, COLUMNS),
    ) -> None:
        self.begun = time.perf_counter()
        self.pid, self._line = pty.fork()
        if self.pid == 0:
            whole = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            # Compiled once, as on any machine but a builder's: a first round leaves the bytecode.
            whole.pop("PYTHONDONTWRITEBYTECODE", None)
            whole.update(environment or {})
            os.execve(sys.executable, [sys.executable, *arguments], whole)
        fcntl.ioctl(self._line, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, keys: str) -> None:
        """Press keys."""
        os.write(self._line, keys.encode())

    def read(self, seconds: float) -> bytes:
        """What comes within so many seconds, as soon as something comes. Raises EOFError."""
        ready, _, _ = select.select([self._line], [], [], max(0.0, seconds))
        if not ready:
            return b""
        try:
            data = os.read(self._line, 1 << 16)
        except OSError:
            raise EOFError("the program has ended") from None
        if ASKS_FOR_FRAMES in data:
            os.write(self._line, HAS_FRAMES)
        return data

    def read_until(self, text: bytes, *, plain: bool = False) -> None:
        """Read until the program has drawn this. Raises EOFError, TimeoutError.

        plain: the text may have changes of colour in it.
        """
        drawn, end = b"", time.monotonic() + PATIENCE_S
        while text not in (ESCAPES.sub(b"", drawn) if plain else drawn):
            drawn += self.read(end - time.monotonic())
            if time.monotonic() > end:
                raise TimeoutError(f"{text!r} was not drawn: {drawn[-500:]!r}")

    def settle(self, seconds: float) -> float:
        """Read until nothing has come for so long. The time at which the last piece came."""
        last = time.perf_counter()
        while self.read(seconds):
            last = time.perf_counter()
        return last

    def key_to_frame(self, key: str) -> float:
        """Milliseconds from the key to the end of the frame that shows it."""
        while self.read(0):
            pass
        begun = time.perf_counter()
        self.write(key)
        drawn = b""
        while FRAME_END not in drawn:
            drawn += self.read(PATIENCE_S)
        return (time.perf_counter() - begun) * 1000

    def close(self) -> None:
        """End the program."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._line)
