"""Patterns of a course's atlas: matched where they can be stopped, and refused where they cost."""

import os
import re
import signal

import pytest

from tensortutor.course.atlas import read_atlas
from tensortutor.course.catalog import open_course
from tensortutor.course.explain import Explainer, explained
from tensortutor.course.pattern_cost import costly_repeat
from tensortutor.course.pattern_matcher import PatternMatcher, Search
from tensortutor.course.search import raising
from tensortutor.protocol.events import Explained, Notice, Raised
from tests.course.test_atlas import ENTRY, course_with

ENDLESS = "(a+)+$"
ROW = "a" * 200 + "b"
"""Takes `re` longer than the universe has existed."""


@pytest.fixture
def matcher():
    return PatternMatcher()


def found(outcomes):
    return [outcome.found for outcome in outcomes]


# --- matching in a process ---


def test_groups_come_back_and_the_first_text_that_fits_counts(matcher):
    outcomes = matcher.search(
        [
            Search(r"E: (?P<a>\d+)(?P<b>x)?", ("E: 12\nmore",)),
            Search("c", ("abc",)),
            Search("b.c", ("a", "ab\nc\udc80"), anywhere=True),
        ]
    )
    assert found(outcomes) == [{"a": "12", "b": None}, None, {}]


def test_a_pattern_without_end_is_stopped_and_the_others_are_matched(matcher):
    searches = [Search("a", (ROW,)), Search(ENDLESS, (ROW,)), Search("aa", (ROW,))]
    outcomes = matcher.search(searches, 0.05)
    assert [outcome.slow for outcome in outcomes] == [False, True, False]
    assert found(outcomes) == [{}, None, {}]
    assert matcher.slow == {ENDLESS}
    assert matcher.search([Search(ENDLESS, ("x",))])[0].slow, "it was tried again"


def test_many_patterns_without_end_cost_no_more_than_a_few(matcher):
    outcomes = matcher.search([Search(f"(a+)+{end}", (ROW,)) for end in "cdefghij"], 0.01)
    assert [outcome.slow for outcome in outcomes] == [True] * 3 + [False] * 5


def test_a_process_that_was_killed_is_replaced_and_no_pattern_is_blamed(matcher):
    assert found(matcher.search([Search("a", ("a",))])) == [{}]
    os.kill(matcher._process.pid, signal.SIGKILL)
    matcher._process.wait()
    assert found(matcher.search([Search("a", ("a",))])) == [{}]
    assert matcher.slow == frozenset()


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?P<1>a)", "(" * 1500 + ")" * 1500])
def test_what_is_no_pattern_fits_nothing_and_is_told(matcher, pattern):
    (outcome,) = matcher.search([Search(pattern, ("a",))])
    assert (outcome.found, outcome.slow) == (None, False)
    assert outcome.error.startswith("this is no regular expression: ")


def test_the_process_ends_with_its_matcher(matcher):
    matcher.search([Search("a", ("a",))])
    process, end = matcher._process, matcher._end
    end()
    assert process.poll() is not None


# --- at the learner's ---


def test_an_error_is_explained_beside_a_pattern_without_end(tmp_path):
    endless = (
        ENTRY.replace('id = "sizes"', 'id = "endless"')
        .replace("3 and 4", "5")
        .replace("sizes (?P<a>\\d+) and (?P<b>\\d+)", "sizes 3 and 4 (?P<a>a|(?P<b>a))+$")
    )
    root = course_with(tmp_path, endless + ENTRY)
    explainer = Explainer(open_course(root))
    error = Raised("RuntimeError", f"sizes 3 and 4 {ROW}", (), "")
    events = list(explained([error, error], explainer.about))
    assert [type(event) for event in events] == [Raised, Explained, Notice, Raised]
    assert events[1].entry == "sizes"
    assert "'endless' took too long" in events[2].text


def test_a_pattern_without_end_does_not_stop_who_searches(tmp_path):
    root = course_with(tmp_path, ENTRY.replace("RuntimeError: sizes", "(c+)+!|RuntimeError: sizes"))
    entries, _ = read_atlas(root, thorough=False)
    assert raising(entries, "c" * 200) == []
    sound, _ = read_atlas(course_with(tmp_path / "sound", ENTRY), thorough=False)
    assert [entry.id for entry in raising(sound, " sizes 3 and 4")] == ["sizes"]


# --- at the author's ---

COSTLY = [
    "(a+)+$", "(a|a)*b", "(x+x+)+y", "E: .*a.*b", "E: (?:\\w+\\s?)*:", "(?:a?){30}b",
    "E: (?P<a>\\w+)(?P<b>\\w*)!", "(?i)(AA|aa)+!", "E: [^,]*, .*, .*!", "E: \\s*(?:x|\\s)*!",
    "E: (?:a{0,100}){0,100}x", "((((){1000}){1000}){1000}){1000}x",
]  # fmt: skip
LINEAR = [
    "E: a", "E: .*x", "E: (?P<a>\\d+) and (?P<b>\\d+)", "E: \\[[^\\]]*\\] at \\[[^\\]]*\\]",
    "E: (?:\\d+, )*\\]", "\\w+: .*?(?:one|other)", "E: (?:(?!End).)*End", "(?i:e): a{3}b?",
    "E: (?P<q>['\"])[^'\"]*(?P=q)", "E: (?<=E: )\\S+ x",
]  # fmt: skip


@pytest.mark.parametrize("pattern", COSTLY)
def test_what_takes_more_than_linear_time_is_found(pattern):
    assert costly_repeat(pattern, re.DOTALL, anywhere=False)


@pytest.mark.parametrize("pattern", LINEAR)
def test_what_is_linear_is_not(pattern):
    assert costly_repeat(pattern, re.DOTALL, anywhere=False) is None


def test_what_is_searched_for_everywhere_has_less_room():
    assert costly_repeat("a*b", re.DOTALL, anywhere=True)
    assert costly_repeat(r"loss\.__init__", re.DOTALL, anywhere=True) is None


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "'pattern' must be a regular expression"),
        ("R: (a+)+$", "the pattern 'R: (a+)+$': it takes more than linear time"),
        ("((((){1000}){1000}){1000}){1000}(?!)", "takes too long even on an empty text"),
        ("R: (", "the pattern 'R: (': this is no regular expression: "),
        (f"R: {'a' * 100_000}", "of at most 2,000 characters"),
    ],
)
def test_the_author_is_told_the_line_and_the_way_out(tmp_path, pattern, words):
    text = ENTRY.replace("RuntimeError: sizes (?P<a>\\d+) and (?P<b>\\d+)", pattern)
    _, problems = read_atlas(course_with(tmp_path, text))
    told = [problem for problem in problems if words in problem.message]
    assert [(one.path, one.line) for one in told] == [("lessons/atlas.toml", 4)], problems


def test_a_condition_is_measured_as_well(tmp_path):
    condition = "where = { line = '(b+)+$' }\n[[errors.programs]]"
    text = ENTRY.replace("[[errors.programs]]", condition)
    (problem,) = read_atlas(course_with(tmp_path, text))[1]
    assert (problem.line, "'(b+)+$'" in problem.message) == (10, True)
