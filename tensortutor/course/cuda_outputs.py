"""What programs that need a CUDA GPU printed on one, for readers who have none.

The GPU kit (`python -m tests.gpu`) takes the outputs, `python -m tests.gpu.record` writes the file.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensortutor.course.fences import CUDA
from tensortutor.course.material import CudaOutput, Pane, Step
from tensortutor.course.problems import Report
from tensortutor.course.read_file import read_course_file

FILE = "lessons/cuda_outputs.json"


@dataclass(frozen=True)
class CudaProgram:
    """A program of a lesson whose output only a CUDA GPU can give. step: counted from 0."""

    lesson: str
    step: int
    source: str


def programs_for_cuda(lesson: str, steps: Iterable[Step]) -> list[CudaProgram]:
    """The programs of a lesson's steps that need a CUDA GPU to run, or to print what is shown."""
    return [
        CudaProgram(lesson, number, step.pane.source)
        for number, step in enumerate(steps)
        if step.pane is not None and CUDA in (step.pane.needs, step.pane.output_needs)
    ]


def with_cuda_outputs(
    steps: tuple[Step, ...], lesson: str, root: Path, report: Report
) -> tuple[Step, ...]:
    """The steps, with what was recorded of their programs. Reports a file that cannot be read.

    The file is read for lessons with such programs alone, and may be missing.
    """
    if not programs_for_cuda(lesson, steps) or not (root / FILE).exists():
        return steps
    known = _read(root, report)
    return tuple(_with_output(step, known) for step in steps)


def _with_output(step: Step, known: Mapping[str, CudaOutput]) -> Step:
    def recorded(pane: Pane) -> Pane:
        return replace(pane, recorded=known.get(key_of(pane.source)))

    blocks = (recorded(block) if isinstance(block, Pane) else block for block in step.blocks)
    return replace(step, blocks=tuple(blocks))


def key_of(source: str) -> str:
    """What a program is found by: an edited program has no recorded output any more."""
    return hashlib.sha256(source.strip().encode("utf-8", "replace")).hexdigest()[:16]


def _read(root: Path, report: Report) -> dict[str, CudaOutput]:
    """The recorded outputs by their programs' keys."""
    mine = Report(FILE)
    data = read_course_file(root / FILE, mine)
    try:
        found = json.loads(data or b"{}")
        about = {name: _text(found, name) for name in ("card", "torch", "date")}
        rows = found["outputs"]
        return {_text(row, "program"): CudaOutput(_text(row, "printed"), **about) for row in rows}
    except (KeyError, TypeError, ValueError, RecursionError):
        advice = f"{FILE} is not as `python -m tests.gpu.record` writes it: write it again"
        report.add(1, mine.problems[0].message if mine.problems else advice)
        return {}


def _text(table: Any, name: str) -> str:
    value = table[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def write_cuda_outputs(path: Path, about: Mapping[str, Any], rows: Iterable[Any]) -> None:
    """Write the file. about: `label`, `torch` and `date` of the kit's JSON, rows: its `outputs`.

    Raises KeyError where one is missing, OSError.
    """
    outputs = [
        {
            "lesson": row["lesson"],
            "step": row["step"] + 1,
            "program": row["program"],
            "printed": row["printed"],
        }
        for row in rows
    ]
    data = {"card": about["label"], "torch": about["torch"], "date": about["date"]}
    path.write_text(json.dumps({**data, "outputs": outputs}, indent=1) + "\n", encoding="utf-8")
