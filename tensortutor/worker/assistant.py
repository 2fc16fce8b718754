"""The process that answers the editor's questions about names.

A spare like those that run programs, shut in like them, but no program of the learner's ever runs
in it: what it knows comes from the text, from PyTorch, and from the types that the last run has
told.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from tensortutor.protocol.assist import Answer, Completions, Documentation, Question
from tensortutor.protocol.jobs import Limits
from tensortutor.protocol.setup import Assist
from tensortutor.worker import objects
from tensortutor.worker.message_socket import MessageSocket

if TYPE_CHECKING:
    from tensortutor.worker.inference import Reader

FOLDER = ".assistant"
"""Its scratch folder: what has been read of PyTorch's text once is kept there."""
LIMITS = Limits(wall_s=7 * 24 * 3600.0, memory_bytes=4 << 30, processes=4)
PATIENCE_S = 4.0
"""After so long a question is given up: nobody waits for its answer any more."""
POLITE = 5
"""Programs come first."""


class TooLong(BaseException):
    """The time for a question is over. No Exception: libraries catch those."""


def attend(link: MessageSocket, orders: Assist, cwd: str) -> NoReturn:
    """Answer questions until the host goes away. The process is shut in already."""
    with contextlib.suppress(OSError):
        os.nice(POLITE)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # nobody reads what a library might print
        os.dup2(nowhere, descriptor)
    mind = Mind(orders.libraries, cwd)
    with contextlib.suppress(OSError):
        while isinstance(question := link.receive(), Question):
            link.send(mind.answer(question))
    os._exit(0)


class Mind:
    """Answers from real objects at once; from the text once it has learnt to read it."""

    def __init__(self, libraries: tuple[str, ...], cache: str) -> None:
        self._reader: Reader | None = None
        self._libraries = libraries
        self._cache = cache
        self._learning = threading.Thread(target=self._learn, daemon=True)
        self._learning.start()

    def _learn(self) -> None:
        """Import the reader and have it read PyTorch: seconds, and so beside the questions."""
        from tensortutor.worker import inference

        # Not there for another interpreter's Python: real objects still answer.
        with contextlib.suppress(Exception):
            reader = inference.Reader(self._libraries, self._cache)
            reader.warm_up()
            self._reader = reader

    def answer(self, question: Question) -> Answer:
        """What there is to say, nothing after PATIENCE_S."""
        learning = self._learning.is_alive()
        try:
            with within(PATIENCE_S):
                found = self._find(question)
        except (Exception, TooLong):
            # A name that cannot be looked up is no name; the next question is another one.
            found = None
        if found is not None:
            return found
        if question.kind == "explain":
            return Documentation(question.number, learning=learning)
        return Completions(question.number, question.column, (), learning)

    def _find(self, question: Question) -> Answer | None:
        reader = self._reader
        if question.kind == "explain":
            read = None if reader is None else reader.explain(question)
            return read or objects.explain(question)
        found = objects.complete(question)
        return reader.complete(question) if found is None and reader is not None else found


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooLong in this thread, the main one, when the time is over."""

    def over(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
