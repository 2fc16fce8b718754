"""Warnings of a program: printed as ever, and reported with their scene."""

import warnings
from typing import TextIO

from tensortutor.protocol.events import Warned
from tensortutor.worker.capture import Channel
from tensortutor.worker.scene import scene_of_warning
from tensortutor.worker.tracebacks import LONGEST_MESSAGE, LONGEST_NAME, plain_frames, text_of

MOST_WARNINGS = 20
"""Warnings of one run that are reported; all are printed."""


def show_plain_warnings(path: str, name: str) -> None:
    """Warnings name the file as the learner knows it."""
    original = warnings.formatwarning

    def formatwarning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int,
        line: str | None = None,
    ) -> str:  # fmt: skip
        text = plain_frames(original(message, category, filename, lineno, line), path, name)
        return text.replace(path, name, 1) if filename == path else text

    warnings.formatwarning = formatwarning


def report_warnings(path: str, channel: Channel) -> None:
    """Each warning that is shown is an event as well, right after its text."""
    original = warnings.showwarning
    left = MOST_WARNINGS

    def showwarning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: TextIO | None = None, line: str | None = None,
    ) -> None:  # fmt: skip
        nonlocal left
        original(message, category, filename, lineno, file, line)
        if file is None and left > 0:
            left -= 1
            scene, place = scene_of_warning(path)
            name, text = category.__qualname__[:LONGEST_NAME], text_of(message)
            channel.send(Warned(name, text[:LONGEST_MESSAGE], place, scene))

    warnings.showwarning = showwarning
