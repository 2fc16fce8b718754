"""`python file.py`, without the tutor: drawings are text on standard output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import os
import torch
from tensortutor.lab import image, plot, show
losses = []
for step in range(50):
    losses.append(50.0 - step)
    plot(losses, label="falling", title="loss")
    show(torch.full((1, 2), float(step)), title="step")
print("said", flush=True)
if os.fork():
    os.wait()
    image(torch.eye(2))
    print("done", flush=True)
"""


def python(*arguments, **more):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, **more,
    )  # fmt: skip


def test_a_plain_program_prints_what_it_draws(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = python(str(file))
    assert (done.returncode, done.stderr) == (0, "")
    words = [line for line in done.stdout.splitlines() if line[:1].isalpha()]
    assert words == [
        "step",  # at once
        "float32 [1, 2] on cpu, min 0, mean 0, max 0",
        "said",
        "line 12: image(torch.eye(2))",
        "float32 [2, 2] on cpu",
        "done",
        "loss   ● falling 1",  # a plot at the end, a picture once more if it has changed
        "step",
        "float32 [1, 2] on cpu, min 49, mean 49, max 49",
    ]


def test_at_a_prompt_everything_is_printed_at_once():
    source = "from tensortutor.lab import plot\nplot([1, 2])\nprint('after')"
    done = python("-i", "-c", source, input="")
    assert done.stdout.index("┤") < done.stdout.index("after")


@pytest.mark.parametrize("end", ["sys.stdout = None", "sys.stdout.close()"])
def test_output_that_nobody_reads_is_no_error(end):
    source = "import sys\nfrom tensortutor.lab import plot\nplot([1, 2])\n"
    done = python("-c", source + end)
    assert (done.returncode, done.stderr) == (0, "")


def test_in_a_notebook_a_plot_is_printed_when_its_cell_has_ended():
    pytest.importorskip("IPython")
    cells = (
        "from tensortutor.lab import plot\nfor n in range(9): plot(n, label='a')\nprint('one')",
        "for n in range(3): plot(n, label='b')\nprint('two')",
    )
    source = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {cells!r}: shell.run_cell(cell)\n"
    )
    done = python("-c", source)
    found = re.findall("one|two|● a 8|○ b 2", done.stdout)
    assert found == ["one", "● a 8", "two", "● a 8", "○ b 2"], done.stdout + done.stderr
