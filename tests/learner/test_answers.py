from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.material import QUIZZES, Quiz
from tensortutor.learner.answers import (
    NotAnAnswer,
    explanation,
    how,
    is_right,
    read,
    shown,
    written,
)

LINES = ("forward", "backward", "step")
SHOWN = ("step", "forward", "backward")


def quiz(kind: str, answer: Any, **fields: Any) -> Quiz:
    return Quiz(kind, "Ask?", answer, "proof", "Because.", 1, **fields)


CHOICE = quiz("choice", "a copy", choices=("a view", "a copy", "an error"))
ORDER = quiz("order", list(LINES), choices=SHOWN)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (quiz("number", 7.0), "7"),
        (quiz("number", 7.0), " 7.00005 "),
        (quiz("number", 1e-3), "1e-3"),
        (quiz("number", 1e6), "1_000_000"),
        (quiz("number", -0.5), "\u22121/2"),
        (quiz("number", float("nan")), "nan"),
        (quiz("number", float("-inf")), "-inf"),
        (quiz("number", 3.14159, tolerance=0.01), "3.14"),
        (quiz("truth", False), "false"),
        (quiz("truth", True), "Yes"),
        (CHOICE, "2"),
        (CHOICE, "A copy"),
        (quiz("choice", "2", choices=("1", "2", "0")), "2"),
        (ORDER, "2, 3, 1"),
        (ORDER, "2 3 1"),
        (ORDER, "forward\nbackward\nstep"),
        (ORDER, '["forward", "backward", "step"]'),
        (quiz("text", "in place"), "'in  place'"),
        (quiz("shape", [2, 3]), "2,3"),
        (quiz("shape", [2, 3]), "[2, 3]"),
        (quiz("shape", [2, 3]), "(2, 3)"),
        (quiz("shape", [2, 3]), "2x3"),
        (quiz("shape", [2, 3]), "torch.Size([2, 3])"),
        (quiz("shape", [4]), "4"),
        (quiz("shape", []), "()"),
        (quiz("shape", []), "scalar"),
        (quiz("shape", []), "torch.Size([])"),
    ],
)
def test_right_answers_as_people_write_them(question: Quiz, text: str) -> None:
    value = read(question, text)
    assert is_right(question, value)
    assert explanation(question, value) == "Because."


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (quiz("number", 7.0), "7.1"),
        (quiz("number", 7.0), "nan"),
        (quiz("number", float("inf")), "1e300"),
        (quiz("truth", False), "true"),
        (CHOICE, "1"),
        (ORDER, "1,2,3"),
        (quiz("text", "float32"), "float64"),
        (quiz("shape", [2, 3]), "3,2"),
        (quiz("shape", [2, 3]), "23"),
        (quiz("shape", []), "1"),
    ],
)
def test_wrong_answers_are_wrong(question: Quiz, text: str) -> None:
    assert not is_right(question, read(question, text))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (quiz("number", 7.0), "seven"),
        (quiz("number", 7.0), ""),
        (quiz("number", 7.0), "1/0"),
        (quiz("truth", True), "maybe"),
        (CHOICE, "4"),
        (CHOICE, "0"),
        (ORDER, "1,2"),
        (ORDER, "1,1,2"),
        (ORDER, '["forward"]'),
        (ORDER, "[" * 100_000),
        (quiz("text", "x"), "  "),
        (quiz("shape", [2]), ""),
        (quiz("shape", [2]), "two"),
        (quiz("shape", [2]), "2.0"),
        (quiz("shape", [2]), "-1"),
    ],
)
def test_what_is_no_answer_is_met_with_how_to_write_one(question: Quiz, text: str) -> None:
    with pytest.raises(NotAnAnswer) as caught:
        read(question, text)
    assert str(caught.value) == how(question)


def test_a_known_mistake_gets_its_own_word() -> None:
    question = quiz("shape", [2, 3], wrong=(("[3, 2]", "That is the transpose."), ("x", "?")))
    assert explanation(question, [3, 2]) == "That is the transpose.\n\nBecause."
    assert explanation(question, [6]) == "Because."


@given(st.data())
def test_what_is_kept_is_read_again(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(QUIZZES))
    values: dict[str, st.SearchStrategy[Any]] = {
        "number": st.integers(-(10**9), 10**9).map(lambda n: n / 8),
        "truth": st.booleans(),
        "choice": st.sampled_from(CHOICE.choices),
        "order": st.permutations(LINES),
        "text": st.text(min_size=1).filter(lambda t: t == t.strip()),
        "shape": st.lists(st.integers(0, 10**6), max_size=5),
    }
    value = data.draw(values[kind])
    choices = {"choice": CHOICE.choices, "order": SHOWN}.get(kind, ())
    question = quiz(kind, value, choices=choices)
    again = read(question, written(question, value))
    assert is_right(question, again)
    assert shown(question, again) == shown(question, value)


@pytest.mark.parametrize(
    ("wanted", "typed", "right"),
    [
        ("[[3], [4]]", "[[3],[4]]", True),
        ("[2.0, 40.0]", "[2,40]", True),
        ("(1, 12)", "(1,12)", True),
        ("nan", "tensor(nan)", True),
        ("nan", "NaN", True),
        ("None", "none", True),
        ("[4, 1]", "tensor([4., 1.])", True),
        ("[1, 2]", "(1, 2)", False),
        ("[1, 2]", "[2, 1]", False),
        ("float32", "Float32", False),
        ("nan", "inf", False),
    ],
)
def test_a_value_may_be_spelt_as_python_would_read_it(wanted, typed, right):
    question = Quiz("text", "?", wanted, f"str({wanted!r})", "", 1)
    assert is_right(question, read(question, typed)) is right
