"""What a course may use beyond the usual limits, and who says so."""

from dataclasses import replace
from pathlib import Path

import pytest

from tensortutor.course.catalog import find_course
from tensortutor.course.jobs import limits_for
from tensortutor.course.model import Course
from tensortutor.learner.limits_consent import LimitsConsent, sentence
from tensortutor.protocol.jobs import Limits
from tests.learner.courses import lesson

GREEDY = replace(lesson("a/greedy"), limits=(("memory_gib", 64.0), ("wall_s", 30.0)))
THEIRS = Course("Theirs", (), Path("/courses/theirs"))
OTHER = Course("Other", (), Path("/courses/other"))


def test_consent_is_for_one_course_and_one_value_and_is_remembered(tmp_path):
    path = tmp_path / "allowed_limits.json"
    consent = LimitsConsent(path)
    assert consent.asked(THEIRS, GREEDY, Limits()) == {"memory_gib": 64.0}
    consent.allow(THEIRS, GREEDY)
    again = LimitsConsent(path)
    assert again.asked(THEIRS, GREEDY, Limits()) == {}
    assert again.asked(OTHER, GREEDY, Limits()) == {"memory_gib": 64.0}
    more = replace(GREEDY, limits=(("memory_gib", 65.0),))
    assert again.asked(THEIRS, more, Limits()) == {"memory_gib": 65.0}
    assert limits_for(GREEDY, Limits(), raised=False) == Limits()


def test_our_own_course_needs_none():
    own = Course("Ours", (), find_course())
    assert LimitsConsent(None).asked(own, GREEDY, Limits()) == {}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"/courses/theirs": {"memory_gib": 1e300}}', "3"])
def test_a_spoilt_file_allows_nothing(tmp_path, text):
    path = tmp_path / "allowed_limits.json"
    path.write_text(text)
    assert LimitsConsent(path).asked(THEIRS, GREEDY, Limits()) == {"memory_gib": 64.0}


def test_the_sentence_names_both_values():
    words = sentence(GREEDY, {"memory_gib": 64.0}, Limits())
    assert "a/greedy asks for more" in words
    assert "memory_gib = 64 (usual: 8)" in words
