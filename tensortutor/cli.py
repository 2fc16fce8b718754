"""The command line: reads arguments and calls one function for each command.

Commands are imported when they are called, so that `tensortutor -h` and `import tensortutor.cli`
cost next to nothing.
"""

import argparse
import importlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortutor import __version__
from tensortutor.options import AppOptions

INTERRUPTED, BROKEN_PIPE, MISUSE = 130, 141, 2
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
SANDBOXES = ("auto", "full", "landlock", "limits")


@dataclass(frozen=True)
class Argument:
    """What `add_argument` is given."""

    names: tuple[str, ...]
    settings: dict[str, Any]


def arg(*names: str, **settings: Any) -> Argument:
    """An argument of a command."""
    return Argument(names, settings)


@dataclass(frozen=True)
class Command:
    """A command. function: "module.function" below `tensortutor.commands`. json: knows --json."""

    name: str
    function: str
    help: str
    arguments: tuple[Argument, ...] = ()
    json: bool = False


def positive(text: str) -> int:
    """A whole number from 1. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def seed(text: str) -> int:
    """A whole number from 0 that fits 63 bits. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def device(text: str) -> str:
    """A device's name. Raises ArgumentTypeError."""
    if not DEVICE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no device: say auto, cpu, cuda, cuda:N or mps"
        )
    return text


LESSON = arg("lesson_name", metavar="LESSON", help="its id, its slug, or its number as 1.2")
CHAPTER = arg("name", metavar="CHAPTER", nargs="?", help="its id or its number; default: all")
ANYWAY = arg("--anyway", action="store_true", help="even if the lesson is locked")
OWN_FILE = arg("file", metavar="FILE", nargs="?", help="default: your file of the lesson")
ALL = arg("--all", action="store_true", help="tell every failure in full, not the first alone")
STEP = arg("--step", type=positive, metavar="N", help="one step, from 1")

COMMANDS = (
    Command(
        "list", "reading.list_lessons", "show all lessons and which are open", (CHAPTER,), json=True
    ),
    Command(
        "show",
        "reading.show",
        "print a lesson, or what a chapter holds",
        (
            arg("lesson_name", metavar="LESSON", help="or a chapter; an id, a slug or a number"),
            STEP,
            arg("--solution", action="store_true", help="print the solution alone"),
            arg("--spoil", action="store_true", help="print it before you have passed"),
            ANYWAY,
        ),
    ),
    Command("next", "reading.next_step", "print the step to go on with"),
    Command(
        "run",
        "programs.run",
        "run a Python file, or the code of a step",
        (
            arg(
                "file",
                metavar="FILE",
                nargs="?",
                help="a Python file; it runs apart from its folder",
            ),
            arg("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="for the program"),
            arg("--lesson", metavar="LESSON", help="run the code of this lesson instead"),
            STEP,
            arg("--lens", action="store_true", help="show what its lines, tensors and graph did"),
            arg("--profile", action="store_true", help="show where its time and memory went"),
            ANYWAY,
        ),
        json=True,
    ),
    Command(
        "check",
        "programs.check",
        "put the checks of a lesson to your code",
        (
            LESSON,
            OWN_FILE,
            arg("--seed", type=seed, metavar="N", help="repeat the inputs of an earlier check"),
            ALL,
            ANYWAY,
        ),
        json=True,
    ),
    Command(
        "watch",
        "saves.watch",
        "put the checks of a lesson to your code at each save, until Ctrl+C",
        (LESSON, OWN_FILE, ALL, ANYWAY),
        json=True,
    ),
    Command(
        "answer",
        "questions.answer",
        "answer a question of a lesson",
        (
            LESSON,
            arg("step", type=positive, metavar="STEP", help="the step that asks, from 1"),
            arg("value", metavar="VALUE", nargs="+", help="your answer"),
            arg("--question", type=positive, metavar="N", help="which, if the step asks several"),
            ANYWAY,
        ),
    ),
    Command(
        "explain",
        "explain.explain",
        "say what an error means, from a traceback or a log",
        (
            arg("file", metavar="FILE", nargs="?", help="default: standard input"),
            arg("--list", action="store_true", dest="all", help="show all errors that are known"),
        ),
        json=True,
    ),
    Command(
        "reference",
        "reference.reference",
        "look a call or a term up",
        (
            arg("term", metavar="TERM", nargs="*", help="as view or Tensor.view; default: pages"),
            arg("--page", metavar="PAGE", help="print a whole page"),
        ),
        json=True,
    ),
    Command("hint", "reading.hint", "show the next hint of a lesson", (LESSON, ANYWAY)),
    Command(
        "compare",
        "compare.compare",
        "print a solution beside your code, and what others get wrong",
        (
            LESSON,
            OWN_FILE,
            arg("--spoil", action="store_true", help="print it before you have passed"),
            ANYWAY,
        ),
    ),
    Command(
        "reset",
        "upkeep.reset",
        "begin a lesson again; your code is kept as a backup",
        (LESSON, arg("--yes", action="store_true", help="do not ask")),
    ),
    Command(
        "where",
        "upkeep.where",
        "print where your things are, or the file of a lesson",
        (
            arg("lesson_name", metavar="LESSON", nargs="?", help="print its file's path"),
            STEP,
            ANYWAY,
        ),
    ),
    Command(
        "progress",
        "standing.progress",
        "tell what you know well and what not",
        (CHAPTER,),
        json=True,
    ),
    Command(
        "review",
        "review.review",
        "tell what is due for another look, and ask it",
        (
            arg("--ask", action="store_true", help="ask the questions that are due, one by one"),
            arg("--fresh", metavar="LESSON", help="write a fresh start of a lesson's exercise"),
        ),
        json=True,
    ),
    Command(
        "export",
        "export.export",
        "write lessons as Jupyter notebooks, with your code in them",
        (
            arg("name", metavar="LESSON", nargs="?", help="or a chapter"),
            arg("--all", action="store_true", help="the whole course"),
            arg("--to", metavar="FOLDER", help="where to; default: this folder"),
        ),
    ),
    Command(
        "teach",
        "app.teach",
        "open the app to show lessons to a room; nothing is kept",
        (arg("lesson_name", metavar="LESSON", nargs="?", help="begin with this lesson"),),
    ),
    Command("doctor", "doctor.doctor", "tell what works on this machine", json=True),
    Command(
        "new",
        "author.new_lesson",
        "begin a lesson: for those who write them",
        (arg("name", metavar="CHAPTER/LESSON", help="the chapter by id or number, and a slug"),),
    ),
    Command(
        "verify",
        "author.verify_lessons",
        "prove lessons: for those who write them",
        (
            arg("lessons", metavar="LESSON", nargs="*", help="or a chapter; default: all"),
            arg("--seeds", type=positive, metavar="N", default=20, help="inputs per solution: 20"),
            arg("--jobs", type=positive, metavar="N", default=2, help="runs at once: 2"),
            arg(
                "--mutate",
                action="store_true",
                help="also edit the solutions: do the checks notice? (needs libcst)",
            ),
            arg(
                "--watch",
                action="store_true",
                help="prove a lesson again whenever its files are saved, until Ctrl+C",
            ),
            arg(
                "--changed",
                metavar="REV",
                help="only lessons that differ from this git revision",
            ),
        ),
        json=True,
    ),
)


def parser(known: Sequence[Command] = COMMANDS) -> argparse.ArgumentParser:
    """The whole command line, or that with some commands only."""
    whole = argparse.ArgumentParser(
        prog="tensortutor",
        description="Learn PyTorch in the terminal. Without a command, the app starts.",
        epilog="Exit status: 0 passed, 1 failed, 2 misuse; run gives the program's own.",
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"tensortutor {__version__}")
    whole.add_argument("--ascii", action="store_true", help="draw with ASCII signs alone")
    whole.add_argument("--lesson", metavar="LESSON", help="begin the app with this lesson")
    add_options(whole, AppOptions())
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in known:
        one = commands.add_parser(
            command.name, help=command.help, description=sentence(command.help), allow_abbrev=False
        )
        for argument in command.arguments:
            one.add_argument(*argument.names, **argument.settings)
        add_options(one, None)
        one.set_defaults(called=command)
    return whole


def sentence(text: str) -> str:
    """A help text as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def add_options(to: argparse.ArgumentParser, defaults: AppOptions | None) -> None:
    """The options that may stand before or after a command.

    Without defaults, what was said before the command stays.
    """

    def add(name: str, **settings: Any) -> None:
        attribute = name.lstrip("-")
        given = getattr(defaults, attribute, False) if defaults else argparse.SUPPRESS
        group.add_argument(name, default=given, **settings)

    group = to.add_argument_group("everywhere")
    add("--json", action="store_true", help="one JSON object a line (run, check, list, ...)")
    add("--course", type=Path, metavar="PATH", help="a course other than the built-in one")
    add("--device", type=device, metavar="NAME", help="auto, cpu, cuda, cuda:N or mps")
    add("--sandbox", choices=SANDBOXES, metavar="LAYER", help="auto, full, landlock or limits")
    add("--python", metavar="PATH", help="the interpreter that runs your code")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns the exit status."""
    try:
        words = sys.argv[1:] if argv is None else argv
        # Without a word the app starts, and nobody waits for two dozen commands.
        arguments = parser(COMMANDS if words else ()).parse_args(words)
        if arguments.ascii:
            os.environ["TENSORTUTOR_ASCII"] = "1"
        status = perform(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        silence()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        # What the system refuses (a full disk under a redirected output) is no bug to trace.
        silence()
        print(f"tensortutor: {error.strerror or error}", file=sys.stderr)
        return MISUSE
    return status


def perform(arguments: argparse.Namespace) -> int:
    """Call the app or the command. Returns its exit status; what it refuses is told on stderr."""
    from tensortutor.commands.errors import Refused
    from tensortutor.course.problems import CourseError
    from tensortutor.learner.errors import StorageError

    options = AppOptions(
        arguments.course, arguments.device, arguments.sandbox, arguments.python, arguments.lesson
    )
    command: Command | None = getattr(arguments, "called", None)
    try:
        if arguments.json and (command is None or not command.json):
            able = ", ".join(command.name for command in COMMANDS if command.json)
            raise Refused(f"--json is for these commands: {able}.")
        if command is None:
            # Nothing of the command line's own is loaded before the first screen stands.
            from tensortutor.commands.app import start

            return start(options)
        return call(command, options, arguments)
    except Refused as error:
        tell(str(error))
        return error.status
    except (StorageError, CourseError) as error:
        tell(str(error))
        return MISUSE


def call(command: Command, options: AppOptions, arguments: argparse.Namespace) -> int:
    """Do what the command does."""
    from tensortutor.commands.session import Session
    from tensortutor.report import Printer

    module, _, function = command.function.partition(".")
    do = getattr(importlib.import_module(f"tensortutor.commands.{module}"), function)
    session = Session(options, Printer(), arguments.json)
    try:
        status: int = do(session, arguments)
        return status
    finally:
        session.close()


def tell(sentence: str) -> None:
    """Say on stderr why nothing was done."""
    from tensortutor.report import Printer

    Printer().note(sentence)


def silence() -> None:
    """Nobody reads our output any more: let the interpreter's last flush go nowhere."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
