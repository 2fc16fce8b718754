"""`explain`: what an error means, read from a traceback; for the learner's own project too."""

import os
import stat
import sys
from argparse import Namespace
from pathlib import Path
from typing import BinaryIO

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.course.error_logs import Complaint, read_complaint
from tensortutor.course.read_file import open_named
from tensortutor.learner.errors import reason
from tensortutor.protocol.events import event_to_json
from tensortutor.report import explained_lines, neutral

UNKNOWN = 1
STANDARD_INPUT = "-"
MOST_BYTES = 2 << 20
"""So much of the end of a log is read; its last traceback is the one that counts."""
CHUNK = 1 << 20
NO_TRACEBACK = (
    "There is no traceback in it, and no line like `RuntimeError: ...`. Paste the whole report, "
    "down to its last line."
)
TYPES = ("RuntimeError", "ValueError", "TypeError", "IndexError", "UserWarning", "AssertionError")
"""What a message without its type is tried as."""


def explain(session: Session, arguments: Namespace) -> int:
    """Explain the last error in a text. Returns 0 if it is known, 1 if not."""
    if arguments.all:
        if arguments.file is not None:
            raise Refused("Name a file, or say --list for all errors.")
        return _list(session)
    text = _read(arguments.file)
    complaint = read_complaint(text)
    if complaint is None:
        return _message_alone(session, text.strip())
    return _tell(session, complaint)


def _read(file: str | None) -> str:
    """The end of a file, or of standard input. Raises Refused."""
    if file is None or file == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise Refused("There is no standard input to read. Name a file: explain FILE.")
        if sys.stdin.isatty():
            print("Paste the traceback, then press Ctrl+D.", file=sys.stderr, flush=True)
        data = _end_of(sys.stdin.buffer)
    else:
        try:
            opened, begins = open_named(Path(file))
            with opened:
                about = os.fstat(opened.fileno())
                if stat.S_ISREG(about.st_mode) and about.st_size > MOST_BYTES:
                    opened.seek(about.st_size - MOST_BYTES)
                data = _end_of(opened, begins)
        except OSError as error:
            raise Refused(f"{file} cannot be read: {reason(error)}.") from None
    return data.decode("utf-8", "replace").replace("\0", "")


def _end_of(file: BinaryIO, begins: bytes = b"") -> bytes:
    """The last MOST_BYTES of a file or a pipe. begins: what has been read of it."""
    end = begins
    while True:
        piece = file.read(CHUNK)
        end = (end + piece)[-MOST_BYTES:]
        if len(piece) < CHUNK:  # a terminal would want to hear Ctrl+D once more
            return end


def _message_alone(session: Session, text: str) -> int:
    """A message that was copied without its type is no traceback, but it may be known."""
    for kind in TYPES if text else ():
        complaint = Complaint(kind, text)
        if session.explainer.complaint(complaint) is not None:
            return _tell(session, complaint)
    raise Refused(NO_TRACEBACK)


def _tell(session: Session, complaint: Complaint) -> int:
    """Print the original message, then what is known about it."""
    told = session.explainer.complaint(complaint)
    printer = session.printer
    first = f"{complaint.type}: {complaint.message}".strip().rstrip(":").split("\n")[0]
    if session.json:
        if told is not None:
            printer.json(event_to_json(told))
        else:
            printer.json({"event": "unknown", "error": first})
    else:
        printer.line(neutral(told.error if told is not None else first))
        if told is not None:
            for line in explained_lines(told, printer.width):
                printer.line(line)
    if told is None:
        printer.note("This error is not in the atlas. `tensortutor explain --list` shows what is.")
        return UNKNOWN
    return 0


def _list(session: Session) -> int:
    """All errors that are known, with the lessons about them."""
    lessons = {lesson.id for lesson in session.course.lessons}
    for entries in session.explainer.atlases:
        for entry in entries:
            lesson = entry.lesson if entry.lesson in lessons else ""
            if session.json:
                session.printer.json(
                    {"event": "entry", "id": entry.id, "title": entry.title, "lesson": lesson}
                )
            else:
                about = session.printer.paint(lesson, "dim")
                session.printer.line(f"{entry.id:<24} {entry.title:<54} {about}".rstrip())
    return 0
