"""`tensortutor watch` as people use it: beside an editor, until Ctrl+C."""

import signal
import subprocess
from pathlib import Path
from threading import Timer

from tests.test_cli import COMMAND, MEANS, REPAIR, RIGHT, ROOT, TINY, refused, tensortutor

WRONG = "def centre(x):\n    return x\n"
ENDLESS = "while True:\n    pass\n"


def lines_until(process: "subprocess.Popen[str]", wanted: str) -> list[str]:
    """What is printed up to a line that holds this; all that is left if none does."""
    found = []
    for line in process.stdout:
        found.append(line.rstrip("\n"))
        if wanted in line:
            break
    return found


def watching(*arguments: str) -> "subprocess.Popen[str]":
    """The command at work, both its streams in one. It is ended if a test waits too long for it."""
    process = subprocess.Popen(
        [*COMMAND, "--course", str(TINY), "watch", *arguments],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8",
    )  # fmt: skip
    late = Timer(300, process.kill)
    late.daemon = True
    late.start()
    return process


def save(path: Path, data: bytes) -> None:
    """At once, as a careful editor does: no look finds half of it, however busy the machine is."""
    beside = path.with_suffix(".new")
    beside.write_bytes(data)
    beside.replace(path)


def test_each_save_is_checked_until_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(WRONG)
    with watching(MEANS, str(path)) as process:
        first = lines_until(process, "Waiting")
        assert any("Ctrl+C ends" in line and str(path) in line for line in first)
        assert any("✗" in line for line in first)
        save(path, b"# -*- coding: nothing -*-\n")
        assert any("is not Python text" in line for line in lines_until(process, "Waiting"))
        save(path, ENDLESS.encode())
        assert any("saved" in line for line in lines_until(process, "saved"))
        # A save while a program runs without end: it is given up for the new one.
        save(path, RIGHT.encode())
        second = lines_until(process, "Waiting")
        assert any(line.startswith("Passed") for line in second)
        assert not any("✗" in line for line in second)
        assert "\x1b" not in "".join(first + second)
        save(path, WRONG.encode())
        assert any("✗" in line for line in lines_until(process, "Waiting"))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 1  # as the last check


def test_a_locked_lesson_is_not_watched() -> None:
    refused(tensortutor("watch", REPAIR), "locked")
