"""The extension in a plain IPython shell, which shows text and has no kernel around it."""

import subprocess
import sys

import pytest

SESSION = """\
import sys
from IPython.core.interactiveshell import InteractiveShell
import tensortutor

assert "torch" not in sys.modules
shell = InteractiveShell.instance(colors="nocolor")

def run(source):
    print("In:", source.partition("\\n")[0])
    result = shell.run_cell(source, store_history=True)
    print("Passed." if result.success else "Failed.")

run("%load_ext tensortutor")
run("1 / 0")
print("torch" in sys.modules, "before torch was imported")
run("import torch; x = torch.ones(2, 3)")
run("x @ x")
run("%%lens\\ny = x.view(3, 2)\\ny.sum()")
run("%%lens\\nx @ y @ y")
run("_, y.shape")
app = ("textual", "tensortutor.ui", "tensortutor.runner", "tensortutor.learner")
print([name for name in app if name in sys.modules], "of the app")
run("%reload_ext tensortutor")
run("x @ x")
run("%unload_ext tensortutor")
run("x @ x")
"""


@pytest.fixture(scope="module")
def cells() -> list[str]:
    """What each cell of the session has printed, all of it in one process."""
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", SESSION],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("In: ")[1:]


def test_nothing_is_loaded_before_it_is_needed(cells: list[str]):
    assert cells[0] == "%load_ext tensortutor\nPassed.\n"
    assert "ZeroDivisionError" in cells[1]
    assert "False before torch was imported" in cells[1]
    assert "[] of the app" in cells[6]


def test_an_error_is_explained_once_below_its_traceback(cells: list[str]):
    for cell in (cells[3], cells[8]):
        assert cell.count("The inner dimensions differ") == 1
        assert cell.index("RuntimeError: mat1") < cell.index("The inner dimensions differ")
        assert cell.index("way out") < cell.index("tensors   x  f32[2, 3], values 1")
    assert "The inner dimensions differ" not in cells[10]


def test_the_lens_prints_what_it_saw(cells: list[str]):
    assert "y: f32[3, 2] view" in cells[4]
    assert "x, y share 24 B." in cells[4]
    assert cells[4].endswith("Passed.\n")
    assert "tensor(6.)" in cells[4]
    assert cells[5].endswith("Failed.\n")
    assert cells[6].startswith("_, y.shape")
    assert "torch.Size([3, 2])" in cells[6]
