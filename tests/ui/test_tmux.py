"""One real session in a real terminal: type, run, check, go on, quit, and come back the next day.

tmux is the terminal; the course is a tiny one, the sandbox and PyTorch are the real ones.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.course.tiny import TINY

TMUX = shutil.which("tmux")
PATIENCE_S = 120
"""A busy machine may load PyTorch for a minute."""
ENDED = "it ended with "
SIZE = ("COLUMNS", "LINES")
"""What would tell a program another size than the window has."""
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed here")


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._socket = folder / "tmux"
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in SIZE},
            "TENSORTUTOR_HOME": str(home), "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8", "TERM": "xterm-256color",
        }  # fmt: skip

    def tmux(self, *words: str) -> str:
        """Give tmux a command; returns what it prints."""
        done = subprocess.run(
            [TMUX or "tmux", "-S", str(self._socket), "-f", os.devnull, "-u", *words],
            env=self._environment, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        return done.stdout

    def start(self, *words: str) -> None:
        """Run a program in a window of 80 by 24: the first one, or in place of the one before."""
        # tmux may know that a program has ended and not how, so a shell tells it on the screen.
        told = f"{shlex.join(words)}; echo {ENDED}$?; exec cat"
        if self.tmux("list-sessions"):
            self.tmux(
                "respawn-pane", "-k", "-t", "tutor", told, ";", "clear-history", "-t", "tutor"
            )
        else:
            self.tmux("new-session", "-d", "-x", "80", "-y", "24", "-s", "tutor", told)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self.tmux("send-keys", "-t", "tutor", *keys)

    def write(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-l", "-t", "tutor", text)

    @property
    def screen(self) -> str:
        """What the window shows, and what has left it at the top."""
        return self.tmux("capture-pane", "-p", "-S", "-", "-t", "tutor")

    @property
    def status(self) -> str:
        """The exit status of the program, or "" while it runs."""
        return self.screen.partition(ENDED)[2].partition("\n")[0].strip()

    def until(self, *words: str) -> str:
        """Wait until the window shows all of these. Returns what it shows then."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            shown = self.screen
            if all(word in shown for word in words):
                return shown
            assert ENDED not in shown, f"it ended:\n{shown}"
            time.sleep(0.05)
        raise AssertionError(f"never seen: {words}\n{self.screen}")

    def until_over(self) -> None:
        """Wait until the program has ended."""
        end = time.monotonic() + PATIENCE_S
        while not self.status:
            assert time.monotonic() < end, f"it never ended:\n{self.screen}"
            time.sleep(0.05)

    def close(self) -> None:
        """End the server and all that runs in it."""
        self.tmux("kill-server")


@pytest.fixture
def terminal(own_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    # The path of a socket is short, or it is none.
    folder = Path(tmp_path_factory.mktemp("t"))
    one = Terminal(folder, own_home)
    yield one
    one.close()


def tutor() -> tuple[str, ...]:
    return (sys.executable, "-m", "tensortutor", "--course", str(TINY))


def test_a_session_and_the_next_one(terminal: Terminal, own_home: Path) -> None:
    terminal.start(*tutor())
    terminal.until("Begin", "Means of rows")
    terminal.press("Enter")
    terminal.until("Insight", "A reduction takes a dimension away")

    terminal.press("F8")
    terminal.until("See it run", "The rows were averaged")
    terminal.press("F3")
    terminal.until("import torch")
    terminal.write("print(6 * 7)")
    terminal.press("Enter")
    terminal.until("print(6 * 7)")
    terminal.press("F5")
    terminal.until("42", "tensor([1., 4.])", "Done in")

    terminal.press("F8")
    terminal.until("Predict", "What is the last element")
    terminal.press("F8")
    terminal.until("Practice", "every row minus its own mean")
    terminal.until("return x - x.mean()")
    terminal.press("Down", "Down", "End", "Left")
    terminal.write("dim=1, keepdim=True")
    terminal.until("return x - x.mean(dim=1, keepdim=True)")
    terminal.press("F9")
    terminal.until("Passed", "this lesson is done")

    terminal.press("F8")
    terminal.until("Debugging", "A mean of integers")
    terminal.press("q")
    terminal.until_over()
    assert terminal.status == "0"

    terminal.start(*tutor())
    terminal.until("Continue", "Means of rows", "1 of 2 lessons done")
    terminal.press("Enter")
    terminal.until("Debugging", "A mean of integers")
    terminal.press("F7")
    terminal.until("Practice", "every row minus its own mean")
    terminal.until("return x - x.mean(dim=1, keepdim=True)")
    files = {path.read_text("utf-8") for path in own_home.rglob("*.py")}
    assert any(text.startswith("print(6 * 7)\nimport torch") for text in files)


def test_the_tour_mends_an_error_and_leaves_nothing_behind(
    terminal: Terminal, own_home: Path, tmp_path: Path
) -> None:
    terminal.start("env", f"TMPDIR={tmp_path}", sys.executable, "-m", "tensortutor", "tour")
    terminal.until("Press F5.")
    terminal.press("F5")
    terminal.until("Done in")
    for heading in ("answer before you run", "Watch a loss", "mend an error"):
        terminal.press("F8")
        terminal.until(heading)
    terminal.press("F5")
    terminal.until("3 columns meet 4 rows", "✗ RuntimeError in line 5.")
    terminal.press("Down", "Down", "Down", "Down", "End", "BSpace", "BSpace", "BSpace", "BSpace")
    terminal.press("BSpace")
    terminal.write("x @ w")
    terminal.until("return x @ w")
    terminal.press("F9")
    terminal.until("2 of 2 checks passed")
    terminal.press("C-q")
    terminal.until_over()
    assert terminal.status == "0"
    assert not own_home.exists() or not any(own_home.iterdir())
    assert not any(tmp_path.iterdir())


def test_what_was_typed_outlives_the_terminal(terminal: Terminal, own_home: Path) -> None:
    terminal.start(*tutor(), "--lesson", "means")
    terminal.until("Insight", "A reduction takes a dimension away")
    terminal.press("F8")
    terminal.until("See it run")
    terminal.press("F3")
    terminal.until("import torch")
    terminal.write("lost = False")
    terminal.until("lost = False")
    shell = terminal.tmux("display-message", "-p", "-t", "tutor", "#{pane_pid}").strip()
    (pid,) = map(int, Path(f"/proc/{shell}/task/{shell}/children").read_text().split())
    terminal.tmux("kill-window", "-t", "tutor")
    end = time.monotonic() + PATIENCE_S
    while _is_alive(pid):
        assert time.monotonic() < end, "the app outlived its terminal"
        time.sleep(0.05)
    files = [path.read_text("utf-8") for path in own_home.rglob("*.py")]
    assert any(text.startswith("lost = False") for text in files)


def test_ctrl_z_leads_to_the_shell_and_fg_back(terminal: Terminal) -> None:
    terminal.start("env", "PS1=ready> ", "bash", "--norc", "-i")
    terminal.write(f"{shlex.join(tutor())} --lesson means")
    terminal.press("Enter")
    terminal.until("Insight", "A reduction takes a dimension away")
    terminal.press("C-z")
    terminal.until("Stopped")
    terminal.write("clear; fg")
    terminal.press("Enter")
    terminal.until("Insight", "A reduction takes a dimension away", "Help")
    terminal.press("q")
    terminal.until("ready>")
    terminal.write("clear; echo it said $?.")
    terminal.press("Enter")
    terminal.until("it said 0.")


def test_a_dumb_terminal_is_refused_with_a_sentence(terminal: Terminal) -> None:
    terminal.start("env", "TERM=dumb", *tutor())
    terminal.until_over()
    assert terminal.status == "2"
    assert "TERM is 'dumb'" in terminal.screen


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that has ended and that nobody has asked about is over, too.
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return stat.parent.parent.exists() is False
