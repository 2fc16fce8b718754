"""What a command of the command line is, and how the words after it are read."""

import argparse
import re
from dataclasses import dataclass
from typing import Any

DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


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
