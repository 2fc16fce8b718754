"""A good lesson, read whole."""

import pytest

from tensortutor.course.catalog import load_course
from tensortutor.course.material import Failure, Pane, Prose, Quiz
from tests.course.tiny import LESSON, TINY, copy_of_tiny


@pytest.fixture(scope="module")
def means():
    return load_course(TINY, thorough=True).lessons[0]


def test_front_matter(means):
    assert (means.id, means.chapter, means.slug) == ("basics/means", "basics", "means")
    assert means.title == "Means of rows"
    assert (means.minutes, means.device, means.requires) == (5, "any", ())
    assert means.limits == (("wall_s", 30.0),)


def test_steps_keep_their_order_and_lines(means):
    assert [step.title for step in means.steps] == [
        "Insight",
        "See it run",
        "Predict",
        "Practice",
        "Debugging",
        "In the wild",
    ]
    text = means.path.read_text("utf-8").split("\n")
    assert all(text[step.line - 1] == f"## {step.title}" for step in means.steps)


def test_a_longer_fence_holds_shorter_ones(means):
    (prose,) = means.steps[0].blocks
    assert isinstance(prose, Prose)
    assert prose.markdown.endswith("```python run\na fence inside a longer one is text\n```\n````")


def test_a_pane_has_its_source_and_output(means):
    step = means.steps[1]
    assert isinstance(step.blocks[0], Pane)
    assert step.pane.kind == "run"
    assert step.pane.source.startswith("import torch\n\nx = ")
    assert step.pane.source.endswith("keepdim=True).shape)\n")
    assert step.pane.output == "tensor([1., 4.])\ntorch.Size([2, 1])\n"
    text = means.path.read_text("utf-8").split("\n")
    assert text[step.pane.line - 1] == "```python run"
    assert text[step.pane.output_line] == "tensor([1., 4.])"


def test_each_kind_of_quiz_has_an_answer_of_its_type(means):
    quizzes = means.steps[2].quizzes
    assert [(quiz.kind, quiz.answer) for quiz in quizzes] == [
        ("number", 3.5),
        ("truth", False),
        ("shape", [3]),
        ("text", "torch.float32"),
        ("choice", "the rows"),
        ("order", ["x.mean()", "x.mean(dim=1)", "x.mean(dim=0)"]),
    ]
    assert quizzes[0].tolerance == 0.01
    assert quizzes[1].tolerance == Quiz.tolerance
    assert quizzes[4].choices == ("the rows", "the columns")
    assert quizzes[4].wrong == (("the columns", "Dimension 1 counts the columns."),)


def test_an_order_quiz_is_shown_in_another_order(means):
    quiz = means.steps[2].quizzes[5]
    assert sorted(quiz.choices) == sorted(quiz.answer)
    assert list(quiz.choices) != quiz.answer


def test_the_task_carries_hints_and_solution(means):
    task = means.task
    assert task.title == "Practice"
    assert task.hints == (
        "Which dimension runs along a row?",
        "`keepdim=True` makes the means line up with the rows.",
    )
    assert task.solution == "def centre(x):\n    return x - x.mean(dim=1, keepdim=True)\n"


def test_failures_pair_a_program_with_its_message(means):
    first, second = means.steps[4].failures
    assert isinstance(first, Failure)
    assert first.source == "import torch\n\ntorch.arange(3).mean()\n"
    assert first.message == "RuntimeError: mean(): could not infer output dtype"
    assert second.message.startswith("UserWarning")


def test_a_second_message_is_what_another_version_of_torch_says(tmp_path):
    root = copy_of_tiny(tmp_path)
    path = root / LESSON
    shown = "```message\nRuntimeError: mean(): could not infer output dtype\n```\n"
    text = path.read_text()
    assert shown in text
    path.write_text(text.replace(shown, shown + "```message\nRuntimeError: older\n```\n"))
    failure = load_course(root).lessons[0].steps[4].failures[0]
    assert failure.messages == (
        "RuntimeError: mean(): could not infer output dtype",
        "RuntimeError: older",
    )


def test_windows_line_ends_change_nothing(tmp_path, means):
    root = copy_of_tiny(tmp_path)
    path = root / LESSON
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_course(root).lessons[0].steps == means.steps
