"""What an exported notebook carries: the drawing functions, without the tutor's package."""

import os
import subprocess
import sys

import pytest

from tensortutor.learner.notebook import _drawing

HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "tensortutor":
            raise ImportError(name)

sys.meta_path.insert(0, Hide())
"""
CELL = """
import torch
from tensortutor.lab import contour, graph, grid, hist, image, plot, regions, show
for step in range(3):
    plot(1 / (step + 1), label="a", title="growing", low=0, high=1)
plot([1, 2], label="b", title="growing")
image(torch.rand(5, 3, 4, 4))
show(torch.randn(2, 3, 4))
hist({"a": torch.randn(9), "b": torch.tensor([torch.nan])})
contour(lambda x, y: x * y, torch.linspace(-1, 1, 9), torch.linspace(-1, 1, 9), path=[[0, 0]])
regions(lambda p: p[:, 0] > 0, torch.randn(9, 2), torch.arange(9) % 2)
grid(torch.tensor([[True, False]]), marks={"first": (0, 0)}, caption="bools")
graph({"a": torch.ones(2), "b": {"data": 1}, "c": {}}, [("a", "c"), ("b", "c")])
grid(torch.full((2, 3, 20, 30), torch.nan))
"""
WATCH = """
import IPython.display
shown = []
IPython.display.display = lambda picture: shown.append(picture.data[:4])
"""


@pytest.mark.parametrize("hide", [HIDE, ""], ids=["without the tutor", "with it"])
def test_a_notebook_draws_each_figure_once_when_its_cell_has_ended(tmp_path, hide):
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib")
    cells = [hide, WATCH, _drawing(), CELL, "from tensortutor.lab import data\nprint(data())"]
    source = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {cells!r}: shell.run_cell(cell).raise_error()\n"
        "print(shell.user_ns['shown'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, text=True, capture_output=True,
        env={**os.environ, "TENSORTUTOR_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    here, shown = done.stdout.splitlines()[-2:]
    assert eval(shown) == [b"\x89PNG"] * 9
    assert here == ("[]" if hide else "['digits.npz', 'digits_png', 'names.txt', 'penguins.csv']")
