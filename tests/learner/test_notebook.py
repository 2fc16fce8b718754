"""Lessons as notebooks: valid, the learner's own code in them, and they run."""

import nbformat
import pytest
from nbclient import NotebookClient

from tensortutor.course.catalog import find_course, find_lesson, load_course
from tensortutor.learner.notebook import MAY_FAIL, notebook


@pytest.fixture(scope="module")
def course():
    return load_course(find_course())


def of(lesson, passed=False, mine=None):
    def code(index):
        return mine or lesson.steps[index].pane.source

    made = notebook(lesson, code, passed)
    nbformat.validate(made)
    return made


def test_every_lesson_makes_a_valid_notebook(course):
    for lesson in course.lessons:
        made = of(lesson)
        assert made.cells[0].source.startswith(f"# {lesson.title}")
        panes = [step for step in lesson.steps if step.pane is not None]
        assert sum(cell.cell_type == "code" for cell in made.cells) >= len(panes) + 1


def test_the_learners_own_code_is_in_it(course):
    made = of(find_lesson(course, "tensors/reshape"), mine="mine = 1")
    assert any(cell.source == "mine = 1" for cell in made.cells)


def test_answers_are_folded_away(course):
    made = of(find_lesson(course, "autograd/accumulation"))
    assert any("<details><summary>Answer</summary>" in cell.source for cell in made.cells)


def test_only_what_is_unsolved_or_broken_on_purpose_may_fail(course):
    lesson = find_lesson(course, "tensors/reshape")

    def marked(made):
        return sum(MAY_FAIL in cell.metadata.get("tags", ()) for cell in made.cells)

    assert marked(of(lesson)) == marked(of(lesson, passed=True)) + 1


def test_a_notebook_with_the_solution_runs_through(course, tmp_path):
    lesson = find_lesson(course, "tensors/reshape")

    def code(index):
        return lesson.steps[index].solution or lesson.steps[index].pane.source

    made = notebook(lesson, code, True)
    NotebookClient(made, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    printed = [
        o for cell in made.cells for o in cell.get("outputs", ()) if o.output_type == "stream"
    ]
    assert printed
