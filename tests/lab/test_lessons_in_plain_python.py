"""The chapter on projects without the tutor: its programs print the same with `python` alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensortutor.course.catalog import load_course

ROOT = Path(__file__).parents[2]
DRIVER = """\
import contextlib, io, json, os, sys
import torch  # once, for all of them

for source in json.load(sys.stdin):
    sys.stdout.flush()
    if os.fork():
        os.wait()
        continue
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(source, "lesson.py", "exec"), {"__name__": "__main__"})
    print(json.dumps(said.getvalue()))
    sys.stdout.flush()
    os._exit(0)
"""


def quick_programs():
    """(lesson, source, what it prints): of each, one that reads data if one does without training.

    Training programs would take a minute; they differ in nothing that has to do with the place.
    """
    lessons = [v for v in load_course(ROOT).lessons if v.id.startswith("projects/")]
    for lesson in lessons:
        panes = [b for step in lesson.steps for b in step.blocks if getattr(b, "output", None)]
        still = [pane for pane in panes if "backward()" not in pane.source]
        best = max(still, key=lambda pane: "data(" in pane.source)
        yield lesson.id, best.source, best.output


def test_lessons_print_the_same_without_the_tutor(tmp_path):
    programs = list(quick_programs())
    assert len(programs) >= 9
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps([p[1] for p in programs]), cwd=tmp_path,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines()]
    if len(said) != len(programs):
        pytest.fail(done.stderr)
    for (lesson, _, output), text in zip(programs, said, strict=True):
        lines = iter(text.splitlines())  # drawings stand between them
        missing = [line for line in str(output).strip().splitlines() if line not in lines]
        assert not missing, f"{lesson}: {missing}"
