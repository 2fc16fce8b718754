"""A program in a folder that the learner opened: what it finds there, and what stays closed."""

import os

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


@pytest.fixture
def place(layer, tmp_path):
    """A runner, and its folders: the program's own, one to read, one to write, one that is not."""
    folders = [tmp_path / name for name in ("my project", "data", "results", "secret")]
    for folder in folders:
        folder.mkdir()
    own, read, write, _ = folders
    (own / "helper.py").write_text(HELPER)
    (own / "data.txt").write_text("own data")
    (read / "more.txt").write_text("more data")
    settings = Settings(
        tmp_path / "scratch", "cpu", layer, spares=1, read=(own, read), write=(write,)
    )
    with Runner(settings) as runner:
        yield runner, folders


def test_it_reads_and_imports_what_was_opened_and_writes_where_it_may(place):
    runner, folders = place
    own, read, write, secret = folders
    (secret / "key").write_text("")
    arguments = (str(own), str(read), str(write), str(secret / "key"))
    job = Job(MAIN, "train.py", arguments, "own", folder=str(own), look=Look(True, True))
    events = list(runner.start(job))
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


def test_what_may_be_read_may_lie_in_a_folder_that_may_be_read(layer, tmp_path):
    """As the files of a virtual environment that lies in the project, both below /tmp."""
    own = tmp_path / "project"
    own.mkdir()
    (own / "data.txt").write_text("own data")
    read = (own, own / "data.txt")
    with Runner(Settings(tmp_path / "scratch", "cpu", layer, spares=1, read=read)) as runner:
        events = list(runner.start(Job('print(open("data.txt").read())', folder=str(own))))
    assert "own data\n" in [event.text for event in events if isinstance(event, Output)]


def test_a_file_that_is_saved_anew_after_the_start_stops_no_run(layer, tmp_path):
    """An editor replaces it: what was bound when the sandbox was made has no name any more."""
    own = tmp_path / "data.txt"
    own.write_text("old")
    read = (own,)
    with Runner(Settings(tmp_path / "scratch", "cpu", layer, spares=1, read=read)) as runner:
        runner.prepare()
        (tmp_path / "new.txt").write_text("new")
        os.replace(tmp_path / "new.txt", own)
        for _ in range(2):
            events = list(runner.start(Job("print('ran')")))
            assert [event.text for event in events if isinstance(event, Output)] == ["ran\n"]
        events = list(runner.start(Job(f"print(open({str(own)!r}).read())")))
        said = [event.text for event in events if isinstance(event, Output)]
        # What it holds now, or an error: it is not shown as empty.
        assert "new\n" in said or any(isinstance(event, Raised) for event in events)


@pytest.mark.parametrize("layer", [FULL], indirect=True)
def test_a_module_beside_a_hidden_checkout_is_seen_as_it_was_saved_last(
    layer, tmp_path, monkeypatch
):
    """An editor replaces files: the folder is bound whole, and what is hidden in it covered."""
    own = tmp_path / "project"
    checkout = own / "checkout"
    checkout.mkdir(parents=True)
    (checkout / "solution.py").write_text("secret")
    (own / "helper.py").write_text("x = 'first'")
    monkeypatch.setattr(sandbox, "hidden_folders", lambda: (str(checkout),))
    program = "import helper, os\nprint(helper.x, os.listdir('checkout'))"
    writes = "open('new.txt', 'w').write('1')\nopen('checkout/new.txt', 'w')"
    settings = Settings(tmp_path / "scratch", "cpu", layer, spares=1, read=(own,), write=(own,))
    with Runner(settings) as runner:
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
