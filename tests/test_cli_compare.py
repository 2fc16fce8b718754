"""`compare` and `teach` on the command line."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from pathlib import Path

from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tests.test_cli import (
    COMMAND,
    MEANS,
    NEVER_S,
    REPAIR,
    TINY,
    on_terminal,
    refused,
    tensortutor,
)

OWN = "def centre(x):\n    mean = x.mean(1)\n    return x - mean[:, None]\n"
DIFFERENCE = """\
< yours   > another way   (docstrings are left out)

  def centre(x):
<     mean = x.mean(1)
<     return x - mean[:, None]
>     return x - x.mean(dim=1, keepdim=True)

What others commonly get wrong
• averages the columns
    found by: every row is centred on its own mean
      def centre(x):
          return x - x.mean(dim=0, keepdim=True)
• subtracts in place
    found by: the input stays as it was
      def centre(x):
          return x.sub_(x.mean(dim=1, keepdim=True))
"""


def test_compare_waits_for_the_checks_or_spoils(own_home: Path) -> None:
    refused(tensortutor("compare", MEANS), "when you have passed it, or with --spoil")
    refused(tensortutor("compare", REPAIR, "--spoil"), "is locked")
    assert ">     return x - x.mean(dim=1" in tensortutor("compare", MEANS, "--spoil").stdout


def test_compare_tells_what_differs_by_signs_and_what_others_get_wrong(
    own_home: Path, tmp_path: Path
) -> None:
    Progress.open(Paths.find()).mark_passed(MEANS)
    path = Path(tensortutor("where", MEANS).stdout.strip())
    path.write_text(OWN)
    done = tensortutor("compare", MEANS)
    assert (done.returncode, done.stdout) == (0, DIFFERENCE)
    other = tmp_path / "other.py"
    other.write_text(OWN.replace("mean[:, None]", "mean.unsqueeze(1)"))
    assert "<     return x - mean.unsqueeze(1)" in tensortutor(
        "compare", MEANS, str(other)).stdout  # fmt: skip
    path.write_text("def centre(x):\n    return x - x.mean(dim=1, keepdim=True)\n")
    same = tensortutor("compare", MEANS).stdout
    assert same.startswith("Line by line, your code is the solution of the course.\n")
    assert "• subtracts in place" in same


def test_teach_is_the_app_and_leaves_the_home_alone(own_home: Path) -> None:
    refused(tensortutor("teach"), "needs a terminal")
    code, screen = on_terminal(["--course", str(TINY), "teach", "basics/meens"])
    assert (code, screen.partition(".")[0]) == (2, "tensortutor: There is no lesson 'basics/meens'")
    assert left_when_it_says(b"teach mode", ["--course", str(TINY), "teach", REPAIR]) == 0
    assert not own_home.exists()


def left_when_it_says(words: bytes, arguments: list[str]) -> int:
    """Start the app on a terminal, wait for words on the screen, quit. Returns its status."""
    host, guest = pty.openpty()
    fcntl.ioctl(guest, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    app = subprocess.Popen(
        [*COMMAND, *arguments], stdin=guest, stdout=guest, stderr=guest, start_new_session=True
    )
    os.close(guest)
    screen, asked = b"", False
    try:
        while chunk := read_soon(host):
            screen += chunk
            # Not before the app has the terminal: Ctrl+Q means something to terminals, too.
            if words in screen and not asked:
                asked = os.write(host, b"\x11") == 1
    except OSError:
        pass  # the other end is closed: how a terminal says that it is over
    finally:
        if not asked:
            app.kill()
        os.close(host)
    assert asked, screen.decode("utf-8", "replace")
    return app.wait(NEVER_S)


def read_soon(descriptor: int) -> bytes:
    """What can be read, or b"" if nothing comes for as long as no test may take."""
    ready, _, _ = select.select([descriptor], [], [], NEVER_S)
    return os.read(descriptor, 65536) if ready else b""
