"""A command that carries another command's stdin and stdout as a bad line would.

    python bad_line.py [--most BYTES] [--delay S] [--rate BYTES_PER_S] [--pause EVERY_BYTES,S]
                       COMMAND...

Each holds in both directions. --most: no more bytes at once. --delay: every byte comes so much
later. --rate: so many bytes a second. --pause: nothing passes for S seconds after so many bytes.
"""

import argparse
import os
import subprocess
import threading
import time
from collections import deque

CHUNK = 1 << 16


class Direction:
    """Bytes from one descriptor to another, by a thread that reads and one that writes."""

    def __init__(self, source: int, target: int, line: argparse.Namespace) -> None:
        self._source, self._target, self._line = source, target, line
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._changed = threading.Condition()
        self._passed = 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.writer = threading.Thread(target=self._write, daemon=True)
        self.reader.start()
        self.writer.start()

    def _read(self) -> None:
        data = b"-"
        while data:
            try:
                data = os.read(self._source, CHUNK)
            except OSError:
                data = b""
            with self._changed:
                self._waiting.append((time.monotonic() + self._line.delay, data))
                self._changed.notify()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                due, data = self._waiting.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data or not self._pass_on(data):
                os.close(self._target)
                return

    def _pass_on(self, data: bytes) -> bool:
        """Whether there is still somebody to take it."""
        try:
            while data:
                written = os.write(self._target, data[: self._line.most])
                data = data[written:]
                self._wait_after(written)
        except OSError:
            return False
        return True

    def _wait_after(self, written: int) -> None:
        every, pause_s = self._line.pause
        pauses = (self._passed + written) // every - self._passed // every
        self._passed += written
        wait_s = pauses * pause_s + (written / self._line.rate if self._line.rate else 0.0)
        if wait_s:
            time.sleep(wait_s)


def pair(text: str) -> tuple[int, float]:
    """Bytes and seconds."""
    every, _, seconds = text.partition(",")
    return int(every), float(seconds)


def main() -> None:
    """Carry until COMMAND has closed its stdout."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=CHUNK)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--pause", type=pair, default=(1, 0.0))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    line = parser.parse_args()
    process = subprocess.Popen(line.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    Direction(0, os.dup(process.stdin.fileno()), line)
    process.stdin.close()
    Direction(process.stdout.fileno(), 1, line).writer.join()
    process.wait()


if __name__ == "__main__":
    main()
