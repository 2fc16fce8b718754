"""What a reader without a CUDA GPU sees of programs that need one, from the kit to each face."""

import io
import json

import pytest

from tensortutor.commands.render import Page
from tensortutor.course.catalog import CourseError, find_lesson, open_course
from tensortutor.course.cuda_outputs import FILE, key_of, programs_for_cuda
from tensortutor.learner.notebook import MAY_FAIL, notebook
from tensortutor.report import Printer
from tests.course.test_second_edition import LESSON, copy_of_second
from tests.course.tiny import Edit
from tests.gpu import record
from tests.gpu.kit import Kit
from tests.gpu.report import Report
from tests.gpu.sections.claims import keep_outputs

PROGRAM = 'import torch\n\nprint(torch.ones(2, device="cuda").mean().item())\n'
ON_ANY_MACHINE = Edit(LESSON, 'torch.ones(2, device="cuda").mean().item()', '"1 " + "GB/s"')
"""Stands for what a card prints, and can run here."""
UNSAID = Edit(LESSON, "```output\n1.0\n```\n", "")
ABOUT = {"device": "cuda:0", "label": "A Card", "torch": "2.13.0+cu130", "date": "2026-11-24"}


def step_for_cuda(root):
    lesson = find_lesson(open_course(root), "basics/means")
    return lesson, next(step for step in lesson.steps if step.pane and step.pane.needs)


def as_text(lesson, step):
    page = Page(Printer(io.StringIO(), io.StringIO()), lesson, {})
    return "\n".join(page.step(lesson.steps.index(step)))


def kit_file(folder, *rows, **about):
    path = folder / "kit.json"
    path.write_text(json.dumps({**ABOUT, **about, "outputs": rows}))
    return path


def row(source=PROGRAM, printed="1.5 TB/s\n"):
    return {"lesson": "basics/means", "step": 4, "program": key_of(source), "printed": printed}


def test_without_a_record_the_reader_sees_what_the_lesson_says_that_it_prints(tmp_path):
    text = as_text(*step_for_cuda(copy_of_second(tmp_path)))
    assert "needs a CUDA GPU. On a CUDA GPU it prints:" in text
    assert "1.0" in text


def test_without_either_the_reader_is_told_that_nothing_is_recorded(tmp_path):
    text = as_text(*step_for_cuda(copy_of_second(tmp_path, UNSAID)))
    assert "What it prints there is not recorded yet." in text


def test_a_record_is_shown_with_its_card_version_and_date_in_text_and_notebook(tmp_path):
    root = copy_of_second(tmp_path)
    assert record.main([str(kit_file(tmp_path, row())), "--to", str(root / FILE)]) == 0
    lesson, step = step_for_cuda(root)
    text = " ".join(as_text(lesson, step).split())
    assert "(recorded on A Card, PyTorch 2.13.0+cu130, 2026-11-24): 1.5 TB/s" in text
    made = notebook(lesson, lambda index: lesson.steps[index].pane.source, passed=True)
    place = next(n for n, cell in enumerate(made.cells) if "A Card" in cell.source)
    assert 'device="cuda"' in made.cells[place - 1].source
    assert MAY_FAIL in made.cells[place - 1].metadata.tags


def test_the_record_of_another_program_is_not_shown(tmp_path):
    root = copy_of_second(tmp_path)
    record.main([str(kit_file(tmp_path, row("print(3)\n"))), "--to", str(root / FILE)])
    assert "A Card" not in as_text(*step_for_cuda(root))


@pytest.mark.parametrize("text", ["{", "[]", '{"card": 3}', "[" * 100_000])
def test_a_broken_record_is_named_when_such_a_lesson_is_opened(tmp_path, text):
    root = copy_of_second(tmp_path)
    (root / FILE).write_text(text)
    with pytest.raises(CourseError, match=r"cuda_outputs\.json is not as"):
        step_for_cuda(root)


def test_what_a_card_prints_goes_from_the_kit_into_the_lesson(tmp_path, monkeypatch):
    root = copy_of_second(tmp_path, ON_ANY_MACHINE)
    report = Report({**ABOUT, "driver": "580", "python": "3.12", "cores": 16}, io.StringIO())
    kit = Kit("cpu", report)
    course = open_course(root)
    monkeypatch.setattr(Kit, "on_cuda", property(lambda kit: True))
    with kit.runner() as runner:
        keep_outputs(kit, course, runner)
    report.write(tmp_path / "kit.json")
    assert not report.failed
    assert record.main([str(tmp_path / "kit.json"), "--to", str(root / FILE)]) == 0
    assert "1 GB/s" in as_text(*step_for_cuda(root))


@pytest.mark.parametrize(
    "about", [{"device": "cpu"}, {"outputs": []}, {"outputs": None}, {"label": None}]
)
def test_a_file_of_the_kit_without_outputs_of_a_card_writes_nothing(tmp_path, capsys, about):
    path = tmp_path / "kit.json"
    found = {**ABOUT, "outputs": [row()], **about}
    path.write_text(json.dumps({name: value for name, value in found.items() if value is not None}))
    assert record.main([str(path), "--to", str(tmp_path / "out.json")]) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_programs_that_run_anywhere_but_print_otherwise_on_a_card_are_among_them(tmp_path):
    root = copy_of_second(
        tmp_path, Edit(LESSON, "```output\n1.0\n```", "```output needs=cuda\n1.0\n```")
    )
    lesson, step = step_for_cuda(root)
    assert [p.step for p in programs_for_cuda(lesson.id, lesson.steps)] == [
        lesson.steps.index(step)
    ]
