"""Starts the app, if the terminal can show it."""

import gc
import os
import shutil
import sys
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from tensortutor.commands.errors import Refused
from tensortutor.options import AppOptions
from tensortutor.ui.window_size import SMALLEST

if TYPE_CHECKING:
    from tensortutor.commands.session import Session

INSTEAD = (
    "Everything works from the command line too: tensortutor list, show, next, run, check, "
    "answer, hint (see tensortutor -h)."
)


def start(options: AppOptions) -> int:
    """Run the app until it is left. Returns its exit status.

    Raises Refused if this terminal cannot show it, or if the course or lesson is not there.
    """
    obstacle = why_not()
    if obstacle:
        raise Refused(f"{obstacle} {INSTEAD}")
    # Starting makes many objects and no garbage; the app looks for it again once it stands.
    gc.disable()
    from tensortutor.course.catalog import UnknownLesson
    from tensortutor.course.problems import CourseError
    from tensortutor.learner.places import UnknownPlace
    from tensortutor.ui.app import run_app

    try:
        return run_app(options)
    except (CourseError, UnknownLesson, UnknownPlace) as error:
        raise Refused(str(error)) from None


def teach(session: "Session", arguments: Namespace) -> int:
    """Run the app for a room: all lessons open, block by block, nothing kept. Raises Refused."""
    lesson = arguments.lesson_name or session.options.lesson
    return start(replace(session.options, lesson=lesson, teach=True))


def tour(session: "Session", arguments: Namespace) -> int:
    """Run the app for a first look: one short lesson, nothing kept. Raises Refused."""
    del arguments
    from tensortutor.course.catalog import find_tour

    return start(replace(session.options, course=find_tour(), lesson=None, tour=True))


def why_not() -> str:
    """What keeps the app from being shown here, as a sentence, or ""."""
    streams = (sys.stdin, sys.stdout, sys.stderr)  # the app draws on the last of them
    if not all(stream is not None and stream.isatty() for stream in streams):
        return "The app needs a terminal for its input, its output and its errors."
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return f"The app needs a terminal that can place text; TERM is {term!r}."
    columns, lines = shutil.get_terminal_size()
    if columns < SMALLEST[0] or lines < SMALLEST[1]:
        return (
            f"The app needs a window of {SMALLEST[0]} columns and {SMALLEST[1]} lines; "
            f"this one has {columns} and {lines}."
        )
    return ""
