"""A lesson as a Jupyter notebook, with the learner's own code in it.

The notebook needs torch alone, and matplotlib for what is drawn: it carries the text of the
functions that draw. Each pane is a program of its own in the app; in a notebook they share their
names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortutor.course.material import OTHER_PYTORCH, Failure, Look, Pane, Prose, Quiz, Step, Try
from tensortutor.course.model import JUDGED, Lesson

if TYPE_CHECKING:
    from nbformat import NotebookNode

DEVICE = """\
import torch

device = torch.device("{name}")"""
ANY_DEVICE = """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")"""
DRAWING = """\
# What draws in the tutor draws with matplotlib here, also where tensortutor is not installed.
import importlib.util
import sys
import types

try:
    from tensortutor.lab import data, matplotlib_figures as lab

    lab.data = data
except ImportError:
    sources = {sources}
    for name in ("tensortutor", "tensortutor.lab", *sources):
        sys.modules[name] = types.ModuleType(name)
    for name, text in sources.items():
        setattr(sys.modules["tensortutor.lab"], name.rpartition(".")[2], sys.modules[name])
        exec(compile(text, name, "exec"), vars(sys.modules[name]))
    lab = sys.modules["tensortutor.lab.matplotlib_figures"]
    sys.modules["tensortutor"].lab = lab
    sys.modules["tensortutor.lab"] = lab
else:
    # Without matplotlib the tutor's own functions print.
    if importlib.util.find_spec("matplotlib") is not None:
        sys.modules["tensortutor.lab"] = lab"""
CARRIED = ("inputs", "matplotlib_figures")
"""The modules of `tensortutor.lab` whose text a notebook carries, each built on those before it."""
HIDDEN = {"jupyter": {"source_hidden": True}, "cellView": "form"}
"""What folds a cell's source away, in JupyterLab and in Colab."""
MAY_FAIL = "raises-exception"
"""The tag with which "Run all" goes on after a cell that raises."""
RANKS = (
    "This lesson starts several cooperating processes, which a notebook cannot do. Its code is "
    "here to be read; `tensortutor run --lesson {id}` runs it."
)


def notebook(lesson: Lesson, code: Callable[[int], str], passed: bool) -> NotebookNode:
    """The lesson as a notebook of version 4.5.

    code: the text of a step's pane, as the learner has it. passed: the exercise is solved, so its
    cell is not expected to raise.
    """
    from nbformat import v4

    cells = [v4.new_markdown_cell(f"# {lesson.title}\n\n{lesson.goal}")]
    if lesson.device.startswith("ranks:"):
        cells.append(v4.new_markdown_cell(RANKS.format(id=lesson.id)))
    cells.append(v4.new_code_cell(_preamble(lesson)))
    own = {index: code(index) for index, step in enumerate(lesson.steps) if step.pane is not None}
    if any("tensortutor.lab" in source for source in (*_sources(lesson), *own.values())):
        cells.append(v4.new_code_cell(_drawing(), metadata=HIDDEN))
    for index, step in enumerate(lesson.steps):
        cells.append(v4.new_markdown_cell(f"## {step.title}"))
        cells += _cells(lesson, step, own.get(index, ""), passed)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same each time: the file can be compared
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})  # type: ignore[no-any-return, unused-ignore]


def _preamble(lesson: Lesson) -> str:
    """What every pane of the app finds ready: the device."""
    name = lesson.device if lesson.device in ("cpu", "cuda") else ""
    if lesson.device.startswith("ranks:"):
        name = "cpu"
    return DEVICE.format(name=name) if name else ANY_DEVICE


def _sources(lesson: Lesson) -> Iterator[str]:
    """The programs of a lesson as it has them."""
    for step in lesson.steps:
        for block in step.blocks:
            if isinstance(block, (Pane, Failure)):
                yield block.source


def _drawing() -> str:
    """The cell that defines `tensortutor.lab` with matplotlib, readable: no bytes are packed."""
    folder = Path(__file__).resolve().parents[1] / "lab"
    texts = {name: (folder / f"{name}.py").read_text("utf-8") for name in CARRIED}
    rows = [f"        \"tensortutor.lab.{name}\": r'''{text}'''," for name, text in texts.items()]
    return DRAWING.replace("{sources}", "\n".join(["{", *rows, "    }"]))


def _cells(lesson: Lesson, step: Step, own: str, passed: bool) -> Iterator[NotebookNode]:
    from nbformat import v4

    ranks = lesson.device.startswith("ranks:")
    for block in step.blocks:
        if isinstance(block, Prose):
            yield v4.new_markdown_cell(_links_as_names(block.markdown.strip()))
        elif isinstance(block, Pane):
            unsolved = block.kind in JUDGED and not passed
            may_fail = unsolved or ranks or bool(block.needs) or _starts_processes(block.source)
            yield _code_cell(own, may_fail=may_fail)
            if block.on_cuda:
                yield v4.new_markdown_cell(block.on_cuda)
        elif isinstance(block, Failure):
            yield _code_cell(block.source, may_fail=True)
            said = (f"```text\n{message.strip()}\n```" for message in block.messages)
            yield v4.new_markdown_cell("This ends in\n\n" + f"\n\n{OTHER_PYTORCH}\n\n".join(said))
        elif isinstance(block, Look):
            yield v4.new_markdown_cell(_look(block))
        elif isinstance(block, Try):
            yield v4.new_markdown_cell(_experiment(block))
        else:
            yield v4.new_markdown_cell(_question(block))


def _code_cell(source: str, *, may_fail: bool) -> NotebookNode:
    from nbformat import v4

    cell = v4.new_code_cell(source.strip("\n"))
    if may_fail:
        cell["metadata"]["tags"] = [MAY_FAIL]
    return cell  # type: ignore[no-any-return, unused-ignore]


def _starts_processes(source: str) -> bool:
    """Processes that are spawned import the program's file, and a notebook has none."""
    return "spawn" in source or "multiprocessing" in source


def _links_as_names(markdown: str) -> str:
    """Links to other lesson files lead nowhere from a notebook: keep their words."""
    return re.sub(r"\[([^\]]+)\]\([^)]*\.md[^)]*\)", r"\1", markdown)


def _look(look: Look) -> str:
    """What the app would show: a notebook has no such instrument."""
    return f"{look.say} (In tensortutor: {look.place} shows `{look.expect}`.)"


def _experiment(experiment: Try) -> str:
    """An edit to make, with what comes of it folded away."""
    if experiment.error is not None:
        result = f"It fails: `{experiment.error}`"
    elif experiment.shows is not None:
        result = f"It prints `{experiment.shows}`."
    else:
        result = f"```text\n{(experiment.output or '').rstrip()}\n```"
    return (
        f"{experiment.markdown}\n\n<details><summary>What comes of it</summary>\n\n"
        f"{result}\n\n</details>"
    )


def _question(quiz: Quiz) -> str:
    """A question with its answer folded away."""
    lines = [f"**{quiz.ask}**"]
    if quiz.choices:
        lines.append("\n".join(f"- {choice}" for choice in quiz.choices))
    answer = f"Answer: {_answer(quiz.answer)}"
    explain = f"\n\n{quiz.explain}" if quiz.explain else ""
    lines.append(f"<details><summary>Answer</summary>\n\n{answer}{explain}\n\n</details>")
    return "\n\n".join(lines)


def _answer(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return "\n\n" + "\n".join(f"1. `{item}`" for item in value)
    return f"`{value}`"
