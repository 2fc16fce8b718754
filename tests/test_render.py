"""Lessons as text: nothing is wider than it may be, and commands can be copied."""

import io
import shlex

import pytest

from tensortutor.commands.render import Page
from tensortutor.course.catalog import find_course, open_course
from tensortutor.course.material import OTHER_PYTORCH, Failure
from tensortutor.report import WIDEST, Printer, hanging, to_do


@pytest.fixture(scope="module")
def lessons():
    return open_course(find_course()).lessons


def printer():
    return Printer(io.StringIO(), io.StringIO())


def test_messages_are_wrapped_at_spaces_with_a_hanging_indent():
    text = "RuntimeError: it is\n\tMissing key(s): a.b, one/long/path/to/somewhere-else.pt\n\nend"
    assert list(hanging(text, 30, 4)) == [
        "    RuntimeError: it is",
        "        Missing key(s): a.b,",
        "          one/long/path/to/somewhere-else.pt",
        "",
        "    end",
    ]


def test_every_message_of_the_course_fits_and_keeps_its_words(lessons):
    failures = [
        (Page(printer(), lesson, {}), block)
        for lesson in lessons
        for step in lesson.steps
        for block in step.blocks
        if isinstance(block, Failure)
    ]
    assert len(failures) > 100
    for page, failure in failures:
        lines = list(page.failure(failure))
        assert max(map(len, lines)) <= WIDEST
        assert not any("\t" in line for line in lines)
        head = "This warns, and goes on:" if failure.warns else "This fails with:"
        told = lines[lines.index(head) + 1 :]
        assert " ".join(told).split() == f" {OTHER_PYTORCH} ".join(failure.messages).split()


def test_a_command_stays_whole(lessons):
    again = " --course /a/rather/long/path/to/a/course --anyway"
    for lesson in lessons[:10]:
        for options in ("", again):
            page = Page(printer(), lesson, {}, options)
            lines = [line for n in range(len(lesson.steps)) for line in page.step(n)]
            commands = [line.strip() for line in lines if "tensortutor" in line]
            assert len(commands) >= 3
            for line in commands:
                if line.startswith("tensortutor "):
                    end = shlex.split(options)
                    assert shlex.split(line)[len(shlex.split(line)) - len(end) :] == end
                elif "--lesson" in line:
                    assert len(line) <= WIDEST


def test_a_command_has_a_line_of_its_own_where_it_must():
    assert list(to_do("Run it:", "a b", 11)) == ["Run it: a b"]
    assert list(to_do("Run it:", "a b", 10)) == ["Run it:", "    a b"]
