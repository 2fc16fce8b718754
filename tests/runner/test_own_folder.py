"""A program in a folder that the learner opened: what it finds there, and what stays closed."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tensortutor.protocol.events import Finished, Output, Raised
from tensortutor.protocol.jobs import Job, Look
from tensortutor.protocol.layers import FULL
from tensortutor.runner import Runner, Settings, sandbox

MAIN = """\
import os, sys, helper
print(os.getcwd() == sys.argv[1], __file__ == os.path.join(sys.argv[1], "train.py"))
print(open("data.txt").read(), open(sys.argv[2] + "/more.txt").read())
for name in ("out.txt", sys.argv[2] + "/out.txt", sys.argv[3] + "/out.txt"):
    try:
        print(open(name, "w").write("x"))
    except OSError as error:
        print("refused")
try:
    print(open(sys.argv[4]).read())
except OSError as error:
    print("closed")
helper.fail()
"""
HELPER = "def fail():\n    raise ValueError('from the helper')\n"


PROJECTS = ("my project", "nested", "checked out")
"""Folders that programs lie in, one for each test."""


@dataclass(frozen=True)
class Opened:
    """A runner, and what is open to its programs."""

    runner: Runner
    own: dict[str, Path]
    read: Path
    write: Path
    file: Path
    secret: Path
    checkout: Path


@pytest.fixture(scope="session")
def opened_in(tmp_path_factory) -> Iterator[Callable[[str], Opened]]:
    """A runner of each layer that has all of this open: PyTorch is loaded once for each."""
    opened: dict[str, Opened] = {}

    def opened_in(layer: str) -> Opened:
        if layer not in opened:
            opened[layer] = open_folders(tmp_path_factory.mktemp(f"own_{layer}"), layer)
        return opened[layer]

    yield opened_in
    for one in opened.values():
        one.runner.close()


def open_folders(top: Path, layer: str) -> Opened:
    own = {name: top / name for name in PROJECTS}
    read, write, secret, file = (top / n for n in ("data", "results", "secret", "data.txt"))
    checkout = own["checked out"] / "checkout"
    for folder in (*own.values(), read, write, secret, checkout):
        folder.mkdir()
    file.write_text("old")
    nested = own["nested"] / "data.txt"
    nested.write_text("own data")
    readable = (*own.values(), nested, file, read)
    settings = Settings(
        top / "scratch", "cpu", layer, spares=1, read=readable, write=(write, own["checked out"])
    )
    runner = Runner(settings)
    real = sandbox.hidden_folders()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "hidden_folders", lambda: (*real, str(checkout)))
        runner.prepare()
    return Opened(runner, own, read, write, file, secret, checkout)


@pytest.fixture
def opened(layer: str, opened_in: Callable[[str], Opened]) -> Opened:
    return opened_in(layer)


def test_it_reads_and_imports_what_was_opened_and_writes_where_it_may(opened):
    own, read, write, secret = opened.own["my project"], opened.read, opened.write, opened.secret
    (own / "helper.py").write_text(HELPER)
    (own / "data.txt").write_text("own data")
    (read / "more.txt").write_text("more data")
    (secret / "key").write_text("")
    arguments = (str(own), str(read), str(write), str(secret / "key"))
    job = Job(MAIN, "train.py", arguments, "own", folder=str(own), look=Look(True, True))
    events = list(opened.runner.start(job))
    said = "".join(e.text for e in events if isinstance(e, Output) and e.stream == "stdout")
    assert said.splitlines() == [
        "True True", "own data more data", "refused", "refused", "1", "closed",
    ]  # fmt: skip
    assert (write / "out.txt").read_text() == "x"
    assert sorted(path.name for path in own.iterdir() if path.suffix) == ["data.txt", "helper.py"]
    (error,) = (e for e in events if isinstance(e, Raised))
    assert 'File "train.py", line 13' in error.text
    assert 'File "helper.py", line 2, in fail' in error.text
    assert [frame.line for frame in error.frames] == [13]
    assert isinstance(events[-1], Finished)


def test_what_may_be_read_may_lie_in_a_folder_that_may_be_read(opened):
    """As the files of a virtual environment that lies in the project, both below /tmp."""
    job = Job('print(open("data.txt").read())', folder=str(opened.own["nested"]))
    events = list(opened.runner.start(job))
    assert "own data\n" in [event.text for event in events if isinstance(event, Output)]


def test_a_file_that_is_saved_anew_after_the_start_stops_no_run(opened, tmp_path):
    """An editor replaces it: what was bound when the sandbox was made has no name any more."""
    runner, file = opened.runner, opened.file
    (tmp_path / "new.txt").write_text("new")
    os.replace(tmp_path / "new.txt", file)
    for _ in range(2):
        events = list(runner.start(Job("print('ran')")))
        assert [event.text for event in events if isinstance(event, Output)] == ["ran\n"]
    events = list(runner.start(Job(f"print(open({str(file)!r}).read())")))
    said = [event.text for event in events if isinstance(event, Output)]
    # What it holds now, or an error: it is not shown as empty.
    assert "new\n" in said or any(isinstance(event, Raised) for event in events)


@pytest.mark.parametrize("layer", [FULL], indirect=True)
def test_a_module_beside_a_hidden_checkout_is_seen_as_it_was_saved_last(opened, tmp_path):
    """An editor replaces files: the folder is bound whole, and what is hidden in it covered."""
    runner, own, checkout = opened.runner, opened.own["checked out"], opened.checkout
    (checkout / "solution.py").write_text("secret")
    (own / "helper.py").write_text("x = 'first'")
    program = "import helper, os\nprint(helper.x, os.listdir('checkout'))"
    writes = "open('new.txt', 'w').write('1')\nopen('checkout/new.txt', 'w')"
    for x in ("first", "second"):
        events = list(runner.start(Job(program, folder=str(own))))
        said = "".join(event.text for event in events if isinstance(event, Output))
        assert said == f"{x} []\n"
        (tmp_path / "saved.py").write_text("x = 'second'")
        os.replace(tmp_path / "saved.py", own / "helper.py")
    (error,) = (e for e in runner.start(Job(writes, folder=str(own))) if isinstance(e, Raised))
    assert "Read-only" in error.message
    assert (own / "new.txt").read_text() == "1"
    assert os.listdir(checkout) == ["solution.py"]
