"""Odd values in a course's TOML: a sentence each, with the file and the key; never an exception."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortutor.course.atlas import read_atlas
from tensortutor.course.course_toml import read_contents
from tensortutor.course.frontmatter import read_front_matter
from tensortutor.course.limits import LIMITS
from tensortutor.course.problems import Report
from tests.course.odd_values import DEEP, NUMBERS, ODD, values

FRONT = {
    "title": '"Means"', "goal": '"Average."', "requires": "[]", "minutes": "5", "device": '"any"',
    "limits": "{ wall_s = 30 }", "edition": "1",
}  # fmt: skip
CHAPTER = {"id": '"basics"', "title": '"Basics"', "blurb": '"One."', "planned": "true"}
ERROR = {
    "id": '"sizes"', "title": '"Sizes"', "pattern": "'RuntimeError: a'", "means": '"m"',
    "way_out": '"w"', "lesson": '"basics/means"', "needs": '"cuda"', "facts": '["f"]',
}  # fmt: skip


def table(entries: dict[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in entries.items())


def front_problems(**changed: str) -> list[str]:
    report = Report("lessons/01_a/01_b.md")
    read_front_matter(f"+++\n{table({**FRONT, **changed})}+++\n", report)
    return [str(problem) for problem in report.problems]


def contents_problems(**changed: str) -> list[str]:
    text = f'title = "T"\n[[chapters]]\n{table({**CHAPTER, **changed})}'
    return problems_of("course.toml", text, lambda root: read_contents(root)[1])


def atlas_problems(**changed: str) -> list[str]:
    text = f"[[errors]]\n{table({**ERROR, **changed})}"
    return problems_of("atlas.toml", text, lambda root: read_atlas(root)[1])


def problems_of(name, text, read):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lessons").mkdir()
        (Path(folder) / "lessons" / name).write_text(text, "utf-8")
        return [str(problem) for problem in read(Path(folder))]


def test_these_texts_are_sound_before_they_are_changed():
    assert front_problems() == contents_problems() == atlas_problems() == []


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_number_of_minutes_is_one_sentence(odd):
    (problem,) = front_problems(minutes=ODD[odd])
    assert problem.startswith("lessons/01_a/01_b.md:5: ")
    assert len(problem) < 200
    if odd in NUMBERS:
        assert "minutes" in problem


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("odd", [*ODD, "beyond"])
def test_an_odd_limit_is_one_sentence(name, odd):
    value = {**ODD, "beyond": f"{LIMITS[name].largest * 1.01}"}[odd]
    (problem,) = front_problems(limits=f"{{ {name} = {value} }}")
    assert problem.startswith("lessons/01_a/01_b.md:7: ")
    assert len(problem) < 200
    if odd in NUMBERS:
        assert name in problem


def test_half_a_process_is_refused():
    (problem,) = front_problems(limits="{ processes = 0.5 }")
    assert "'processes' must be a whole number from 1 to 4096, not 0.5" in problem


@pytest.mark.parametrize("problems", [front_problems, contents_problems, atlas_problems])
@pytest.mark.parametrize("deep", DEEP)
def test_deep_nesting_is_one_sentence(problems, deep):
    assert len([text for text in problems(title=DEEP[deep]) if len(text) < 200]) == 1


def test_a_key_of_many_parts_costs_no_time():
    """tomllib would take minutes."""
    (problem,) = front_problems(**{".".join("a" * 100_000): "1"})
    assert "too many parts" in problem


@settings(max_examples=40)
@given(st.sampled_from(sorted(FRONT)), values)
def test_whatever_front_matter_says(key, value):
    assert all(len(text) < 400 for text in front_problems(**{key: value}))


@settings(max_examples=40)
@given(st.sampled_from(sorted(CHAPTER)), values)
def test_whatever_course_toml_says(key, value):
    assert all(len(text) < 400 for text in contents_problems(**{key: value}))


@settings(max_examples=40)
@given(st.sampled_from(sorted(ERROR)), values)
def test_whatever_the_atlas_says(key, value):
    assert all(len(text) < 400 for text in atlas_problems(**{key: value}))
