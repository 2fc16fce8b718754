"""The program that a lesson tells the reader to start with torchrun, started so."""

import os
import subprocess
import sys

from tensortutor.course.catalog import find_course, load_course
from tensortutor.course.material import Pane

LESSON = "distributed/ddp"
STEP = "torchrun"
MARK = "[rank 0] "  # the app puts it before a line that rank 0 prints


def test_the_lessons_program_does_the_same_under_torchrun(tmp_path):
    (lesson,) = (known for known in load_course(find_course()).lessons if known.id == LESSON)
    (step,) = (step for step in lesson.steps if step.title.startswith(STEP))
    (pane,) = (block for block in step.blocks if isinstance(block, Pane))
    (tmp_path / "train.py").write_text(pane.source, "utf-8")
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    shown = [line.removeprefix(MARK) for line in pane.output.splitlines()]
    assert done.stdout.splitlines() == shown
    assert [line[:20] for line in shown] == ["rank 0, local rank 0", "rank 1, local rank 1"]
    assert (tmp_path / "model.pt").is_file()
