"""Which Pythons and which PyTorch the course is proved with."""

import re

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH, NEWEST_TORCH = (2, 6), (2, 13)
"""The first and the last; `pyproject.toml` says the same of the torch that is installed with us."""


def is_old(torch: str) -> bool:
    """Whether a version of torch is older than the course. One that cannot be read is not."""
    return (number := _number(torch)) is not None and number < OLDEST_TORCH


def caution(torch: str) -> str:
    """What to know of a version that is newer than the course, as a sentence, or ""."""
    number = _number(torch)
    if number is None or number <= NEWEST_TORCH:
        return ""
    return (
        f"PyTorch {torch} is newer than this course, which is proved with {supported()}. Programs "
        "run; what they print can differ from what the lessons show."
    )


def supported() -> str:
    """The versions of torch that the course is proved with, as words."""
    return f"{OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} to {NEWEST_TORCH[0]}.{NEWEST_TORCH[1]}"


def requirement() -> str:
    """The same as pip takes it."""
    (first, since), (last, until) = OLDEST_TORCH, NEWEST_TORCH
    return f"torch>={first}.{since},<{last}.{until + 1}"


def _number(version: str) -> tuple[int, int] | None:
    """Major and minor: 2.6.0+cu124, 2.6.0a0+git1 and 2.6 are all (2, 6)."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None
