"""`python -m tensortutor.explain script.py` does what `python script.py` does, and explains."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_cli import ROOT

EXPLAIN = ("-m", "tensortutor.explain")
IDENTITY = """\
import atexit, sys
import __main__, beside
print(sys.argv, sys.path[0], beside.WORD, __main__.me if "me" in globals() else "", input())
for name in ("__name__", "__file__", "__package__", "__spec__", "__cached__", "__builtins__"):
    print(name, globals()[name])
print(__loader__.get_filename(), sys.modules["__main__"].__dict__ is globals())
atexit.register(print, "at exit")
"""
SCRIPTS = {
    "identity": IDENTITY,
    "status": "import sys\nsys.exit(3)",
    "farewell": "import sys\nsys.exit('no data')",
    "interrupted": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass",
    "syntax": "x = 1\nx = = 2",
    "no text": "x = '\xe9'",
    "unknown error": "def f():\n    raise ValueError('mine')\n\n\nf()",
    "chain": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
    "own hook": "import sys\nsys.excepthook = lambda *a: print('mine', a[2].tb_lineno)\n1 / 0",
    "threads": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\n1 / 0",
    "mute": "class Mute(Exception):\n    def __str__(self):\n        raise OSError\nraise Mute",
}


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        input="typed\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_it_would_without(name: str, tmp_path: Path):
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "beside.py").write_text("WORD = 'found'", "utf-8")
    (folder / "train.py").write_bytes(SCRIPTS[name].encode("latin-1"))
    words = ("a project/train.py", "--epochs", "3", "-h")
    plain, explained = run(tmp_path, *words), run(tmp_path, *EXPLAIN, *words)
    assert explained.returncode == plain.returncode
    assert explained.stdout == plain.stdout
    if name == "no text":  # the compiler says it in other words when it is given the bytes
        assert "SyntaxError" in explained.stderr
    else:
        assert explained.stderr == plain.stderr


def test_what_it_dies_of_is_explained_below_the_traceback(tmp_path: Path):
    (tmp_path / "steps.py").write_text(
        "def step(net, batch):\n    return net(batch)  # here\n", "utf-8"
    )
    (tmp_path / "train.py").write_text(
        "import sys, torch\nfrom steps import step\n"
        "step(torch.nn.Linear(64, 12), torch.zeros(32, 10))\n",
        "utf-8",
    )
    done = run(tmp_path, *EXPLAIN, "train.py")
    assert (done.returncode, done.stdout) == (1, "")
    first, _, rest = done.stderr.partition("RuntimeError: mat1 and mat2")
    assert first.startswith(f'Traceback (most recent call last):\n  File "{tmp_path}/train.py"')
    assert "tensortutor" not in first
    told = " ".join(rest.split())
    assert "`batch` is f32[32, 10] and `net.weight` is f32[12, 64]" in told
    assert "tensors batch f32[32, 10], values 0 net.weight f32[12, 64], requires grad" in told


def test_nothing_is_loaded_for_a_script_that_runs_through(tmp_path: Path):
    (tmp_path / "train.py").write_text(
        "import sys\nprint([m for m in sys.modules if m.startswith(('tensortutor', 'torch'))])",
        "utf-8",
    )
    assert run(tmp_path, *EXPLAIN, "train.py").stdout == "['tensortutor']\n"
    (tmp_path / "train.py").write_text(
        "import atexit, sys\n"
        "unwanted = 'textual', 'tensortutor.ui', 'tensortutor.runner', 'torch'\n"
        "atexit.register(lambda: print([m for m in unwanted if m in sys.modules]))\n"
        "raise RuntimeError('The size of tensor a (3) must match the size of tensor b (4) at "
        "non-singleton dimension 1')",
        "utf-8",
    )
    done = run(tmp_path, *EXPLAIN, "train.py")
    assert done.stdout == "[]\n"
    assert "These shapes do not broadcast" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "usage: python -m tensortutor.explain script.py"),
        (("gone.py",), "cannot open 'gone.py': no such file or directory"),
        (("folder",), "cannot open 'folder': it is a folder"),
    ],
)
def test_what_is_no_script_is_told_in_a_sentence(words, says, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    done = run(tmp_path, *EXPLAIN, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
