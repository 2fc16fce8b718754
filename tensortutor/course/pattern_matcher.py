"""Matches a course's regular expressions where they can be stopped: in a process of their own.

`re` holds the interpreter until it is done, and `(a+)+$` may take years. So no pattern of a course
is compiled or matched in this process: a small one, without torch, does it, and is replaced when a
pattern takes longer than it may.
"""

import contextlib
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROCESS = Path(__file__).with_name("pattern_process.py")
CPU_S = 0.5
"""Processor time that one pattern may take. Linear ones take microseconds."""
WALL_S = 20.0
"""A process that has not answered by then is replaced, whatever it does."""
MOST_SLOW = 3
"""After so many patterns that take too long, the others of a question are not tried."""


@dataclass(frozen=True)
class Search:
    """A pattern and the texts in which it is looked for, with `.` for every character.

    anywhere: at every position of a text, not at its beginning alone.
    """

    pattern: str
    texts: tuple[str, ...]
    anywhere: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a search.

    found: the named groups of the first text that fits, or None. names: of its groups. error: what
    is wrong with the pattern, or "". slow: it took too long, now or before.
    """

    found: dict[str, str | None] | None = None
    names: tuple[str, ...] = ()
    error: str = ""
    slow: bool = False


class PatternMatcher:
    """One such process, started when it is first wanted. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self._slow: set[str] = set()

    @property
    def slow(self) -> frozenset[str]:
        """The patterns that have taken too long so far."""
        return frozenset(self._slow)

    def search(self, searches: Sequence[Search], cpu_s: float = CPU_S) -> list[Outcome]:
        """What comes of each search, in order. A pattern that was slow once is not tried again.

        cpu_s: processor time for each pattern. Blocks, without holding the interpreter.
        """
        outcomes: list[Outcome] = []
        slow = 0
        with self._lock:
            while len(outcomes) < len(searches) and slow < MOST_SLOW:
                rest = list(searches[len(outcomes) :])
                if rest[0].pattern in self._slow:
                    outcomes.append(Outcome(slow=True))
                    continue
                known = (at for at, search in enumerate(rest) if search.pattern in self._slow)
                rest = rest[: next(known, None)]
                try:
                    answers = self._ask(rest, cpu_s)
                except OSError:
                    break  # it cannot be used: nothing is known
                outcomes += answers
                if len(answers) < len(rest):
                    slow += 1
                    self._slow.add(rest[len(answers)].pattern)
                    outcomes.append(Outcome(slow=True))
        return outcomes + [Outcome()] * (len(searches) - len(outcomes))

    def _ask(self, searches: Sequence[Search], cpu_s: float) -> list[Outcome]:
        """The outcomes up to the first pattern that takes too long. Raises OSError."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        texts = list(dict.fromkeys(text for search in searches for text in search.texts))
        number = {text: index for index, text in enumerate(texts)}
        rows = [(s.pattern, s.anywhere, [number[text] for text in s.texts]) for s in searches]
        question = json.dumps({"texts": texts, "searches": rows, "cpu_s": cpu_s})
        guard = threading.Timer(WALL_S, process.kill)
        guard.daemon = True
        guard.start()
        outcomes: list[Outcome] = []
        try:
            process.stdin.write(question.encode() + b"\n")
            process.stdin.flush()
            for _ in searches:
                line = process.stdout.readline()
                if not line.endswith(b"\n"):
                    break
                outcomes.append(_outcome(json.loads(line)))
        except BrokenPipeError:
            pass  # it has ended, as below
        finally:
            guard.cancel()
        if len(outcomes) < len(searches):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(WALL_S)
            self._drop()
            if process.returncode >= 0:
                raise OSError("it has not been ended by a signal, so by no pattern")
        return outcomes

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._process.poll() is not None:
            self._drop()  # something else has ended it: that is no pattern's fault
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(PROCESS)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl+C in the terminal is not meant for it
            )  # fmt: skip
            self._end = weakref.finalize(self, _end, self._process)
        return self._process

    def _drop(self) -> None:
        if self._end is not None:
            self._end()
        self._process = self._end = None


def _outcome(answer: dict[str, Any]) -> Outcome:
    return Outcome(answer.get("found"), tuple(answer.get("names", ())), answer.get("error", ""))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and let go of its pipes."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what it did not read is lost
                pipe.close()
    process.wait()


PATTERNS = PatternMatcher()
"""The one of this program: all atlases share its process."""
