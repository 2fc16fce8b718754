"""Programs read the data of the lessons and of the learner, in every layer, and change neither."""

import pytest

from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
from tensortutor.runner.sandbox import why_no_full, why_no_landlock

PROGRAM = """
import numpy, subprocess, sys
from tensortutor.lab import data
print(numpy.load(data("digits.npz"))["images"].shape, data("own.csv").read_text())
try:
    data("own.csv").write_text("changed")
except OSError:
    print("kept")
source = "from tensortutor.lab import data; print(data('own.csv').read_text())"
print(subprocess.run([sys.executable, "-c", source], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("layer", ["full", "landlock"])
def test_a_program_reads_what_was_put_there_later(tmp_path, layer):
    why = why_no_full() if layer == "full" else why_no_landlock()
    if why:
        pytest.skip(why)
    folder = tmp_path / "home" / "data"
    with Runner(Settings(tmp_path / "scratch", "cpu", layer, data=folder)) as runner:
        runner.prepare()
        (folder / "own.csv").write_text("mine")
        events = list(runner.start(Job(PROGRAM)))
    said = "".join(event.text for event in events if isinstance(event, Output))
    assert said.split("\n") == ["(1797, 8, 8) mine", "kept", "mine", "", ""]
    assert isinstance(events[-1], Finished)
