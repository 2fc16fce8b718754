"""Code in a course that is too deep for Python to read: a mistake like any other."""

import pytest

from tensortutor.course import key_lines, task_sentences
from tensortutor.course.atlas import read_atlas
from tensortutor.course.check_file_reader import read_check_file, read_shows
from tensortutor.course.problems import Report
from tensortutor.course.reference_samples import read_sample

DEEP = ("x = " + "-" * 20_000 + "1\n", "x = 1" + "+1" * 20_000 + "\n", "x = y" + "()" * 20_000)
ATLAS = """
[[errors]]
id = "a"
title = "t"
pattern = "RuntimeError: a"
facts = []
means = "m"
way_out = "w"
lesson = ""

[[errors.programs]]
says = ""
source = '''
{}
'''
"""


@pytest.fixture(params=DEEP, ids=["signs", "sum", "calls"])
def deep(request):
    return request.param


def test_a_check_file_is_reported(deep, tmp_path):
    path = tmp_path / "checks.py"
    path.write_text(f"shows = [{deep[4:].strip()}]\n@check({deep[4:].strip()})\ndef a(): ...\n")
    for thorough in (True, False):
        report = Report("checks.py")
        read_check_file(path, report, thorough=thorough)
        assert "not Python" in report.problems[0].message
    assert read_shows(path) == ()


def test_an_atlas_and_a_sample_are_reported(deep, tmp_path):
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "atlas.toml").write_text(ATLAS.format(deep))
    _, problems = read_atlas(tmp_path)
    assert any("not Python" in problem.message for problem in problems)
    report = Report("reference.md")
    assert read_sample(deep, 1, report).source == deep
    assert "not Python" in report.problems[0].message


def test_what_looks_for_key_lines_and_docstrings_finds_none(deep):
    assert key_lines._body(deep) == []
    assert list(task_sentences._docstrings(deep)) == []
