"""The built-in course reads as it should: what a machine can see of it.

The texts are the product, so this judges lessons/ itself; the rules are tried on samples first.
"""

import sys
from pathlib import Path

import pytest

from tensortutor.course.catalog import find_course, read_course
from tensortutor.learner.answers import is_right, read
from tests.course.reading import (
    LOUD,
    asked_for,
    code_in,
    given_away,
    introduced,
    loud,
    names_in,
    paragraphs,
    plain,
    sentences,
    solution_of,
    too_long,
    used,
    words,
)
from tests.course.tiny import TINY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_WORDS = 30
LEAST_MUTANTS, LEAST_ACCEPTED = 3, 2
GRAPH = Path(__file__).parent / "data" / "graph.toml"
COURSE, PROBLEMS = read_course(find_course())
EACH = pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.id)
BUILDS_ON = {
    f"{chapter}/{slug}": needs
    for chapter, lessons in tomllib.loads(GRAPH.read_text("utf-8")).items()
    for slug, needs in lessons.items()
}


# --- the rules ---


def test_sentences_end_where_a_reader_would_end_them():
    text = (
        "Some dtypes, e.g. `float16`, are small (2 bytes). `x.T` is a view, "
        "i.e. no copy. Is 2.5 even? *No.* torch rounds to 2."
    )
    assert sentences(text) == [
        "Some dtypes, e.g Code, are small (2 bytes).",
        "Code is a view, i.e no copy.",
        "Is 2.5 even?",
        "No.",
        "torch rounds to 2.",
    ]


def test_a_piece_of_code_is_one_word_and_so_is_a_shape():
    text = "Write `x[a:b, c:d] = f(y, z)` of shape (N, 2, -1), not [a link](u v)."
    assert [words(sentence) for sentence in sentences(text)] == [8]


def test_code_tables_and_headings_are_no_sentences():
    text = "One\ntwo.\n\n```text\nno. no\n```\n| a | b |\n### Title\n- first\n  item\n- second\n"
    assert list(paragraphs(text, 10)) == [
        (10, "One two."),
        (18, "first item"),
        (20, "second"),
    ]


def test_long_sentences_and_exclamations_are_found():
    course, _ = read_course(TINY)
    lesson = course.lessons[0]
    assert list(too_long(lesson, 30)) == list(loud(lesson)) == []
    assert [found.partition(":")[0] for found in too_long(lesson, 15)] == ["12"]


@pytest.mark.parametrize(
    ("text", "is_loud"),
    [
        ("Run it!", True),
        ("*Never!*", True),
        ("n! and 1000! grow", False),
        ("Not `x!`, a != b", False),
    ],
)
def test_an_exclamation_follows_a_word(text, is_loud):
    assert bool(LOUD.search(plain(text))) is is_loud


def test_names_are_those_of_torch_alone():
    solution = (
        "import math\nimport torch\nfrom torch.nn.functional import softmax\n"
        "def f(self, x):\n    kept, n = set(), 0\n    kept.add(math.sqrt(self.bias))\n"
        "    self.weight = x.sum(-1)\n    return torch.exp(x)\n"
    )
    assert used(solution) == {"softmax": 3, "sum": 7, "exp": 8}


def test_a_name_is_introduced_by_code_and_not_by_a_word():
    course, _ = read_course(TINY)
    lesson = course.lessons[0]
    assert {"arange", "keepdim", "mean"} <= introduced(lesson)
    assert "reduction" not in introduced(lesson)
    assert introduced(lesson) <= given_away(lesson)


# --- the course ---


@EACH
def test_a_lesson_is_sound_and_its_steps_are_short(lesson):
    files = {path.relative_to(COURSE.root).as_posix() for path in (lesson.path, lesson.judge.path)}
    assert [str(problem) for problem in PROBLEMS if problem.path in files] == []


@EACH
def test_sentences_are_short(lesson):
    assert list(too_long(lesson, MOST_WORDS)) == []


@EACH
def test_the_voice_is_calm(lesson):
    assert list(loud(lesson)) == []


@EACH
def test_a_solution_uses_no_name_that_nobody_introduced(lesson):
    earlier = COURSE.lessons[: COURSE.lessons.index(lesson)]
    known = introduced(lesson).union(*map(given_away, earlier))
    first, solution = solution_of(lesson)
    strangers = {name: line for name, line in used(solution).items() if name not in known}
    assert [f"{first + line}: {name}" for name, line in strangers.items()] == []


@EACH
def test_a_hint_names_the_function_that_it_is_about(lesson):
    functions = asked_for(lesson)
    if len(functions) > 1:
        spoken_of = [names_in([code_in(hint)]) & functions for hint in lesson.task.hints]
        silent = [lesson.task.hints[n] for n, names in enumerate(spoken_of) if not names]
        assert silent == []


@EACH
def test_an_exercise_is_guarded_against_wrong_and_open_to_other_right_answers(lesson):
    assert len(lesson.judge.mutants) >= LEAST_MUTANTS
    assert len(lesson.judge.accepted) >= LEAST_ACCEPTED


@EACH
def test_an_answer_that_the_lesson_calls_wrong_is_judged_wrong(lesson):
    for step in lesson.steps:
        for quiz in step.quizzes:
            keys = [key for key, _ in quiz.wrong if is_right(quiz, read(quiz, key))]
            assert keys == [], quiz.ask


@EACH
def test_a_lesson_builds_on_what_the_graph_says(lesson):
    assert sorted(lesson.requires) == sorted(BUILDS_ON[lesson.id])
