"""Patterns of a course's atlas: matched in linear time, and refused where RE2 has no such thing."""

import pytest

from tensortutor.course.atlas import read_atlas
from tensortutor.course.catalog import open_course
from tensortutor.course.explain import Explainer, explained
from tensortutor.course.patterns import Pattern, PatternError
from tensortutor.course.search import raises
from tensortutor.protocol.events import Explained, Raised
from tests.course.test_atlas import ENTRY, course_with

ENDLESS = "(a+)+$"
ROW = "a" * 10_000 + "b"
"""Python's `re` would take longer over it than the universe has existed."""


def test_groups_come_back_by_name():
    assert Pattern(r"E: (?P<a>\d+)(?P<b>x)?").match("E: 12\nmore") == {"a": "12", "b": None}
    assert Pattern("c").match("abc") is None
    assert Pattern("b.c").search("ab\nc\udc80") == {}


def test_a_pattern_that_re_would_never_finish_is_matched_at_once():
    assert Pattern(ENDLESS).match(ROW) is None
    assert Pattern(ENDLESS).match("aaa") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(", "missing )"),
        ("a{2,1}", "invalid repetition size"),
        ("((((a{1000}){1000}){1000}){1000}", "invalid repetition size"),
        ("x(?=y)", "without look-around"),
        ("(?P<q>.)(?P=q)", "back-references"),
        ("(a?", "this is no regular expression"),
        ("a?", "it fits every text"),
        ("a" * 100_000, "more than 2,000 characters"),
    ],
)
def test_what_is_no_pattern_is_told_and_fits_nothing(text, words):
    with pytest.raises(PatternError) as told:
        Pattern(text).check()
    assert words in str(told.value)


def test_an_unsound_pattern_that_nobody_checked_fits_nothing():
    assert Pattern("(").match("(") is None


def test_an_error_is_explained_beside_a_pattern_without_end(tmp_path):
    endless = ENTRY.replace('id = "sizes"', 'id = "endless"').replace(
        "sizes (?P<a>\\d+) and (?P<b>\\d+)", "sizes 3 and 4 (?P<a>a|(?P<b>a))+$"
    )
    explainer = Explainer(open_course(course_with(tmp_path, endless + ENTRY)))
    error = Raised("RuntimeError", f"sizes 3 and 4 {ROW}", (), "")
    events = list(explained([error], explainer.event))
    assert [type(event) for event in events] == [Raised, Explained]
    assert events[1].entry == "sizes"


def test_who_searches_finds_an_error_by_its_message(tmp_path):
    (entry,), _ = read_atlas(course_with(tmp_path, ENTRY))
    assert raises(entry, " sizes 3 and 4")
    assert not raises(entry, "c" * 200)


def test_the_author_is_told_the_line_and_the_way_out(tmp_path):
    text = ENTRY.replace("RuntimeError: sizes (?P<a>\\d+) and (?P<b>\\d+)", "R: (?!a)b")
    _, problems = read_atlas(course_with(tmp_path, text))
    told = [one for one in problems if "without look-around" in one.message]
    assert [(one.path, one.line) for one in told] == [("lessons/atlas.toml", 4)], problems
