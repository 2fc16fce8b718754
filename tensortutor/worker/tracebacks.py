"""A learner's traceback: their own frames, their own file name, nothing of the machinery."""

import contextlib
import io
import os
import re
import sys
import threading
import traceback
from types import TracebackType

from tensortutor.protocol.events import Frame, Raised
from tensortutor.worker.scene import scene_of_error

NO_KEYBOARD = (
    "A run has no keyboard, so input() finds the end of the file at once. "
    "Put the value into the code."
)
LONGEST_MESSAGE = 20_000
LONGEST_NAME = 200
MOST_FRAMES = 50
SUGGESTION = re.compile(r"\. Did you (?:mean|forget)[^\n]*\?\Z")
MACHINERY = os.path.dirname(os.path.dirname(__file__)) + os.sep
WRITE_REPORT = sys.__excepthook__
FRAME = re.compile(r'^  File "([^"\n]*)", line \d+, in .*\n(?:    .*\n)*', re.MULTILINE)


def raised(error: BaseException, path: str, name: str, folder: str = "") -> Raised:
    """The report of an exception that a program did not catch.

    path: the program's file as Python knows it. name: as the learner knows it. folder: where the
    learner's own modules lie, or "".
    """
    suggested = suggestion(error)
    message = text_of(error) + suggested
    text = written(error, path, name, folder)
    if suggested and not text.rstrip("\n").endswith(suggested):
        text = text.rstrip("\n") + suggested + "\n"
    if isinstance(error, EOFError) and "reading a line" in message:
        text += NO_KEYBOARD + "\n"
    return Raised(
        type=name_of_type(error)[:LONGEST_NAME],
        message=message[:LONGEST_MESSAGE],
        frames=own_frames(error, error.__traceback__, path)[-MOST_FRAMES:],
        text=shorten(text),
        scene=scene_of_error(error, path),
    )


def written(error: BaseException, path: str, name: str, folder: str) -> str:
    """The report as Python writes it, or in short where the program has broken what Python needs.

    That may be the lines of its file (from 3.13 on Python reads them with `ast`), a class that
    raises when it is asked for its notes, or a chain of causes too long for the stack.
    """
    try:
        report = traceback.TracebackException(type(error), error, error.__traceback__)
        clean(report, path, name, folder, set())
        return "".join(report.format())
    except KeyboardInterrupt:
        raise
    except BaseException:
        places = (
            f'  File "{name_of(frame.f_code.co_filename, path, name, folder)}", line {line}, '
            f"in {frame.f_code.co_name}\n"
            for frame, line in traceback.walk_tb(error.__traceback__)
            if is_own(frame.f_code.co_filename, path, folder)
        )
        head = "Traceback (most recent call last):\n"
        return f"{head}{''.join(places)}{name_of_type(error)}: {text_of(error)}\n"


def suggestion(error: BaseException) -> str:
    """What Python adds to the message of a misspelt name: `. Did you mean: 'dtype'?`, or "".

    It is no part of the exception: the interpreter looks for it when it writes the report. Before
    3.12 `traceback` leaves it out, so Python itself is asked to write a report of the last frame.
    """
    if not isinstance(error, (NameError, AttributeError, ImportError)):
        return ""
    try:
        if sys.version_info >= (3, 12):
            report = traceback.TracebackException(type(error), error, error.__traceback__)
            said = "".join(report.format_exception_only())
        else:
            said = _written_by_python(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a class of the learner's is broken: `written` says what can be said
        return ""
    found = SUGGESTION.search(said.rstrip("\n"))
    return found[0] if found and not text_of(error).endswith(found[0]) else ""


def _written_by_python(error: NameError | AttributeError | ImportError) -> str:
    if threading.active_count() > 1:
        return ""  # what another thread writes to stderr meanwhile would be lost
    alone: BaseException
    if isinstance(error, AttributeError):
        alone = AttributeError(text_of(error), name=error.name, obj=error.obj)
    elif isinstance(error, NameError):
        alone = NameError(text_of(error), name=error.name)
    else:
        return ""  # this Python suggests nothing about imports
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    alone.__traceback__ = last
    with contextlib.redirect_stderr(io.StringIO()) as said:
        WRITE_REPORT(type(alone), alone, last)
    return said.getvalue()


def clean(
    report: traceback.TracebackException, path: str, name: str, folder: str, seen: set[int]
) -> None:
    """Keep the frames of `path` and call it `name`, in the causes and the groups too.

    folder: the frames of files in it are kept as well, but for an environment's packages.
    """
    if id(report) in seen:
        return
    seen.add(id(report))
    kept = [frame for frame in report.stack if is_own(frame.filename, path, folder)]
    for frame in kept:
        frame.filename = name_of(frame.filename, path, name, folder)
    report.stack[:] = kept
    if getattr(report, "filename", None) == path:  # a SyntaxError carries its own place
        report.filename = name
    for other in (
        report.__cause__,
        report.__context__,
        *(getattr(report, "exceptions", None) or ()),
    ):
        if other is not None:
            clean(other, path, name, folder, seen)


def is_own(filename: str, path: str, folder: str) -> bool:
    """Whether a file is the program in `path`, or a module of the learner's own in `folder`."""
    if filename == path:
        return True
    inside = bool(folder) and filename.startswith(folder + os.sep)
    return inside and "site-packages" not in filename and not filename.startswith(MACHINERY)


def name_of(filename: str, path: str, name: str, folder: str) -> str:
    """What the learner calls a file of theirs."""
    return name if filename == path else os.path.relpath(filename, folder)


def own_frames(error: BaseException, trace: TracebackType | None, path: str) -> tuple[Frame, ...]:
    """The lines of the program that were under way, outermost first."""
    if isinstance(error, SyntaxError) and error.filename == path:
        # A program that makes one itself may write anything into it.
        line = error.text if type(error.text) is str else ""
        places = (error.lineno, error.offset, error.end_offset)
        first, start, stop = (place if type(place) is int else 0 for place in places)
        return (Frame("<module>", first, line.rstrip("\n")[:LONGEST_NAME], start, stop),)
    frames = []
    for entry in traceback.extract_tb(trace):
        if entry.filename != path:
            continue
        # Columns exist from Python 3.11 on.
        column, end = getattr(entry, "colno", None), getattr(entry, "end_colno", None)
        frames.append(
            Frame(
                entry.name[:LONGEST_NAME],
                entry.lineno or 0,
                (entry.line or "")[:LONGEST_NAME],
                0 if column is None else column + 1,
                0 if end is None else end + 1,
            )
        )
    return tuple(frames)


def text_of(error: BaseException | str) -> str:
    """str(error), which a learner's class may have broken: a plain str in every case."""
    try:
        return str.__str__(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as other:
        return f"<str() of it raised {name_of_type(other)}>"


def name_of_type(error: BaseException) -> str:
    """The name of its class, whatever the class's own class says."""
    return str(type.__dict__["__qualname__"].__get__(type(error)))


def plain_frames(text: str, path: str, name: str) -> str:
    """A text with a stack in it, as anomaly mode warns: the machinery's frames left out.

    path: the program's file as Python knows it. name: as the learner knows it.
    """
    kept = FRAME.sub(lambda frame: "" if frame[1].startswith(MACHINERY) else frame[0], text)
    return kept.replace(f'File "{path}"', f'File "{name}"')


def shorten(text: str) -> str:
    """At most LONGEST_MESSAGE characters, the middle left out."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
