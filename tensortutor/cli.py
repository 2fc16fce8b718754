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
from pathlib import Path
from typing import Any

from tensortutor import __version__
from tensortutor.arguments import Command, device
from tensortutor.options import AppOptions
from tensortutor.protocol.layers import LAYERS

INTERRUPTED, BROKEN_PIPE, MISUSE = 130, 141, 2
LESSON = re.compile(r"[a-z0-9_]+/[a-z0-9_]+|\d+\.\d+")
"""A lesson's id or number in the place of a command, which no command's name can be."""
VALUED = ("--course", "--device", "--sandbox", "--python", "--on", "--lesson")
"""The options with a value that may stand before it."""


def commands() -> Sequence[Command]:
    """All commands. Without a word the app starts, and nobody waits for two dozen of them."""
    from tensortutor.usage import COMMANDS

    return COMMANDS


def parser(known: Sequence[Command]) -> argparse.ArgumentParser:
    """The command line with these commands."""
    whole = argparse.ArgumentParser(
        prog="tensortutor",
        description="Learn PyTorch in the terminal. Without a command, the app starts; a lesson's "
        "id or number in its place begins there.",
        epilog="Exit status: 0 passed, 1 failed, 2 misuse; run gives the program's own.",
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"tensortutor {__version__}")
    whole.add_argument("--ascii", action="store_true", help="draw with ASCII signs alone")
    whole.add_argument("--lesson", metavar="LESSON", help="begin the app with this lesson")
    add_options(whole, AppOptions())
    choices = whole.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in known:
        one = choices.add_parser(
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
    add(
        "--sandbox",
        choices=("auto", *LAYERS),
        metavar="LAYER",
        help="auto, full, landlock or limits",
    )
    add("--python", metavar="PATH", help="the interpreter that runs your code")
    add("--on", metavar="PLACE", help="where it runs: a command as 'ssh HOST', or a place by name")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns the exit status."""
    try:
        words = sys.argv[1:] if argv is None else argv
        words = with_command(words)
        arguments = parser(commands_to_parse(words)).parse_args(words)
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


def command_place(words: Sequence[str]) -> int:
    """Where a command stands in what was typed, behind the options; past the end if nowhere."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in VALUED else 1
    return place


def commands_to_parse(words: Sequence[str]) -> Sequence[Command]:
    """The commands whose parsers are made: the one that is named; all for help or an unknown word.

    To make all of them takes longer than most commands take.
    """
    if not words:
        return ()
    place = command_place(words)
    known = commands()
    if place < len(words) and not {"-h", "--help"} & {*words[:place]}:
        return [one for one in known if one.name == words[place]] or known
    return known


def with_command(words: Sequence[str]) -> Sequence[str]:
    """What was typed, with --lesson put before a lesson, and the command open before a program."""
    place = command_place(words)
    if place < len(words) and LESSON.fullmatch(words[place]):
        return [*words[:place], "--lesson", *words[place:]]
    if place < len(words) and words[place].endswith(".py"):
        return [*words[:place], "open", *words[place:]]
    return words


def perform(arguments: argparse.Namespace) -> int:
    """Call the app or the command. Returns its exit status; what it refuses is told on stderr."""
    from tensortutor.commands.errors import Refused
    from tensortutor.course.problems import CourseError
    from tensortutor.learner.errors import StorageError

    options = AppOptions(
        arguments.course,
        arguments.device,
        arguments.sandbox,
        arguments.python,
        arguments.on,
        arguments.lesson,
    )
    command: Command | None = getattr(arguments, "called", None)
    try:
        if arguments.json and (command is None or not command.json):
            able = ", ".join(command.name for command in commands() if command.json)
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
    session.allow_limits = getattr(arguments, "allow_limits", False)
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
