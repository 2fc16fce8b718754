"""A question on the terminal: its answer is read until it is one, and then judged."""

import sys
from dataclasses import dataclass
from typing import Any

from tensortutor.commands.session import Session
from tensortutor.course.material import Quiz
from tensortutor.learner import answers


@dataclass(frozen=True)
class Given:
    """An answer, in a box: the answer may be anything."""

    value: Any


def ask(session: Session, quiz: Quiz) -> Given | None:
    """Ask until an answer can be read. None: enough, the line is empty or there are no more.

    Ctrl+C ends it, too.
    """
    prompt = "answer (empty: enough) > " if sys.stdin is not None and sys.stdin.isatty() else ""
    while True:
        try:
            text = input(prompt)
        except (EOFError, KeyboardInterrupt):
            session.printer.line()
            return None
        if not text.strip():
            return None
        try:
            return Given(answers.read(quiz, text))
        except answers.NotAnAnswer as error:
            session.printer.line(str(error))


def tell(session: Session, quiz: Quiz, value: Any) -> None:
    """What an answer is worth, and why."""
    paint = session.printer.paint
    right = answers.is_right(quiz, value)
    mark = paint("✓ right", "green") if right else paint("✗ wrong", "red")
    session.printer.line(f"{mark}. {answers.explanation(quiz, value)}")
