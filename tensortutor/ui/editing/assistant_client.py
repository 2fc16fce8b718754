"""Questions to the runner's assistant, asked beside the event loop: typing never waits for one."""

import threading
from collections.abc import Callable

from tensortutor.protocol.assist import Answer, Question
from tensortutor.ui.protocols import Runner


class Assistance:
    """One question at a time. Of those that wait, a newer one of the same kind replaces an older.

    reply: called in a thread with a question and its answer.
    """

    def __init__(self, runner: Runner, reply: Callable[[Question, Answer | None], object]) -> None:
        self._runner = runner
        self._reply = reply
        self._lock = threading.Lock()
        self._waiting: dict[str, Question] = {}
        self._is_busy = False

    def ask(self, question: Question) -> None:
        """Ask as soon as the question before is answered."""
        with self._lock:
            self._waiting.pop(question.kind, None)
            self._waiting[question.kind] = question
            if self._is_busy:
                return
            self._is_busy = True
        threading.Thread(target=self._work, name="questions", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_busy = False
                    return
                question = self._waiting.pop(next(iter(self._waiting)))
            try:
                answer = self._runner.ask(question)
            except Exception:
                answer = None  # an editor goes on without help
            self._reply(question, answer)
