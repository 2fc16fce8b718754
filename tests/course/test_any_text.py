"""Whatever is in the files: a lesson and a list of problems, never an exception."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensortutor.course.catalog import load_course
from tensortutor.course.check_file_reader import read_check_file
from tensortutor.course.parse import parse_lesson
from tensortutor.course.problems import Report
from tests.course.tiny import CHECKS, LESSON, TINY

GOOD = (TINY / LESSON).read_bytes()
GOOD_LINES = GOOD.split(b"\n")
GOOD_CHECKS = (TINY / CHECKS).read_bytes()
JUDGE = load_course(TINY).lessons[0].judge

places = st.integers(0, len(GOOD_LINES) - 1)
pieces = st.sampled_from(
    [
        b"```",
        b"````",
        b"~~~",
        b"```python run",
        b"```python",
        b"```quiz",
        b"```output",
        b"```message",
        b"```python error",
        b"## ",
        b"##",
        b"## Insight",
        b"+++",
        b'answer = "',
        b"answer = [[[[",
        b"limits = 3",
        b"[wrong]",
        b"a = 1979-99-99",
        b"\xff\xfe",
        b"\x00",
        b"\xe2\x80\xa8",
        b"\r",
        b"kind = [1]",
        b"kind = nan",
        b"answer = nan",
    ]
)


@st.composite
def mutations(draw):
    """The good lesson with lines deleted, swapped, inserted and bytes overwritten."""
    lines = list(GOOD_LINES)
    for _ in range(draw(st.integers(1, 4))):
        place, other = draw(places) % len(lines), draw(places) % len(lines)
        change = draw(st.sampled_from(["delete", "swap", "insert", "cut", "bytes"]))
        if change == "delete" and len(lines) > 1:
            del lines[place]
        elif change == "swap":
            lines[place], lines[other] = lines[other], lines[place]
        elif change == "insert":
            lines.insert(place, draw(pieces))
        elif change == "cut":
            lines[place] = lines[place][: len(lines[place]) // 2]
        else:
            lines[place] = draw(st.binary(max_size=8))
    return b"\n".join(lines)


def parse(data):
    lesson, problems = parse_lesson(data, "basics/means", JUDGE, TINY / LESSON, TINY)
    count = (data if isinstance(data, str) else data.decode("utf-8", "replace")).count("\n") + 2
    for problem in problems:
        assert problem.message
        assert problem.path in (LESSON, CHECKS)
        assert problem.path == CHECKS or 0 < problem.line <= count
    return lesson, problems


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutations())
def test_a_mutated_lesson(data):
    lesson, problems = parse(data)
    if not problems:
        assert lesson.task.solution


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=20).map(b"\n".join)))
def test_any_bytes(data):
    assert parse(data)[1]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text):
    assert parse(text)[1]


@pytest.mark.parametrize("text", ["\ud800", "+++\nx = " + "[" * 5000 + "\n+++\n"])
def test_hard_texts(text):
    assert parse(text)[1]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_mutated_check_file(tmp_path_factory, data):
    start = data.draw(st.integers(0, len(GOOD_CHECKS)))
    end = data.draw(st.integers(start, min(len(GOOD_CHECKS), start + 40)))
    path = Path(tmp_path_factory.mktemp("checks")) / "any.py"
    path.write_bytes(GOOD_CHECKS[:start] + data.draw(st.binary(max_size=4)) + GOOD_CHECKS[end:])
    for thorough in (True, False):
        report = Report("any.py")
        judge = read_check_file(path, report, thorough=thorough)
        assert judge.checks or report.problems
