import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.catalog import find_course, open_course
from tensortutor.course.material import QUIZZES, Quiz
from tensortutor.learner.answers import (
    Nearly,
    NotAnAnswer,
    explanation,
    how,
    is_right,
    read,
    shown,
    written,
)
from tensortutor.learner.guesses import guesses, remarks

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
        (quiz("text", "torch.float32"), "float32"),
        (quiz("text", "bfloat16"), "torch.bfloat16"),
        (quiz("text", "torch.bool"), "'bool'"),
        (quiz("text", "f(a, b)[0]"), '"f( a,b ) [0]"'),
        (quiz("text", "{'a': 1, 'b'}"), "{ 'a': 1,'b' }"),
        (quiz("number", math.log(10)), "2.30"),
        (quiz("number", math.log(10)), "2.303"),
        (quiz("number", -1234.56), "-1.23e3"),
        (quiz("number", 0.0123456), "0.0123"),
        (quiz("number", 0.125), "1/8"),
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
        (quiz("text", "torch.float32"), "torch.Float32"),
        (quiz("text", "torch.cat"), "cat"),
        (quiz("text", "torch.float64", wrong=(("float64", "A tensor's."),)), "float64"),
        (quiz("number", math.log(10)), "2.31"),
        (quiz("number", math.log(10)), "2"),
        (quiz("number", math.log(10), tolerance=1e-6), "2.30"),
        (quiz("number", math.log(10), wrong=(("2.30", "Rounded."),)), "2.30"),
        (quiz("number", math.log(10), wrong=(("2.3", "Rounded."),)), "2.3"),
        (quiz("number", 1024.0), "1020"),
        (quiz("number", 1024.0), "1.02e3"),
        (quiz("number", 12345.6), "12300"),
        (quiz("number", math.log(10)), "23/10"),
        (quiz("number", 0.5), "1e-999"),
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


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (quiz("number", math.log(10)), "2.3"),
        (quiz("number", 0.0123456), " 0.012 "),
        (quiz("number", -4 / 3, tolerance=0.0005), "-1.3"),
    ],
)
def test_a_number_that_lacks_a_digit_is_no_answer_yet(question: Quiz, text: str) -> None:
    with pytest.raises(Nearly, match="one more digit"):
        read(question, text)


def test_an_answer_keeps_the_digits_that_make_it_right() -> None:
    question = quiz("number", math.log(10))
    value = read(question, "2.30")
    assert (value, shown(question, value)) == (2.3, "2.30")
    assert is_right(question, read(question, written(question, value)))


def test_no_wrong_answer_of_the_course_is_right() -> None:
    count = 0
    for lesson in open_course(find_course()).lessons:
        for question in (quiz for step in lesson.steps for quiz in step.quizzes):
            kept = written(question, question.answer)
            assert is_right(question, read(question, kept)), (lesson.id, question.ask)
            for text, why in question.wrong:
                value = read(question, text)
                assert not is_right(question, value), (lesson.id, question.ask, text)
                assert explanation(question, value).startswith(why), (lesson.id, text)
                count += 1
    assert count > 200


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


ODD = [
    10**400, -(10**4000), math.nan, math.inf, True, None, {}, "\udc80", "x" * 300_000, [],
    [None], [{}], [[1]], [10**400], [1.5], [True], ["forward", None], ["forward", ["step"]],
]  # fmt: skip


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(
    ("question", "typed"),
    [
        (quiz("number", 7.0), "7"), (quiz("truth", True), "true"), (CHOICE, "a view"),
        (ORDER, "1,2,3"), (quiz("text", "a"), "b"), (quiz("shape", [2, 3]), "2, 3"),
    ],
)  # fmt: skip
def test_a_run_may_give_anything_as_its_answer(question, typed, value):
    (guess,) = guesses([question], [(typed, True)], {0: value})
    assert list(remarks([guess], several=False, is_own=True))
    assert explanation(guess.quiz, guess.value) is not None
    read(guess.quiz, typed)
