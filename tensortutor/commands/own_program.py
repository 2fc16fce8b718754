"""`open`: the app with a program of the learner's own."""

from argparse import Namespace
from dataclasses import replace

from tensortutor.commands.app import start
from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.options import OwnOptions


def open_program(session: Session, arguments: Namespace) -> int:
    """Edit and run a file. Raises Refused, and StorageError if there is no file to edit."""
    words = arguments.words
    if "--" in words[1:]:
        raise Refused(
            "What stands behind the file is for your program: say --read, --write and other "
            "options before it."
        )
    words = words[1:] if words[:1] == ["--"] else words
    own = OwnOptions(arguments.file, tuple(words), tuple(arguments.read), tuple(arguments.write))
    return start(replace(session.options, own=own))
