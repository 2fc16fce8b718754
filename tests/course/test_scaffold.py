"""A lesson that has just been begun: where it lies, and what the gate says about it."""

import pytest

from tensortutor.course.catalog import load_course, read_course
from tensortutor.course.scaffold import CannotBegin, begin_lesson, unfinished
from tests.course.tiny import copy_of_tiny, line_of


def test_a_new_lesson_is_the_last_of_its_chapter_and_builds_on_the_one_before(tmp_path):
    root = copy_of_tiny(tmp_path)
    lesson, checks = begin_lesson(root, "basics/sums_of_rows")
    assert lesson == root / "lessons/01_basics/02_sums_of_rows.md"
    assert checks == root / "checks/01_basics/02_sums_of_rows.py"
    begin_lesson(root, "2/third")
    course = load_course(root, thorough=True)
    assert [one.id for one in course.lessons] == [
        "basics/means", "basics/sums_of_rows", "repairs/lost_dim", "repairs/third",
    ]  # fmt: skip
    assert [one.requires for one in course.lessons][1::2] == [
        ("basics/means",),
        ("repairs/lost_dim",),
    ]
    assert course.lessons[1].title == "Sums of rows"


def test_the_first_lesson_of_a_planned_chapter_makes_its_folder(tmp_path):
    root = copy_of_tiny(tmp_path)
    assert not list(root.glob("lessons/*_later"))
    begin_lesson(root, "later/first")
    course, problems = read_course(root)
    assert problems == ()
    assert course.lessons[-1].requires == ("repairs/lost_dim",)


def test_what_is_left_to_do_is_named_by_file_and_line(tmp_path):
    root = copy_of_tiny(tmp_path)
    lesson, checks = begin_lesson(root, "basics/sums")
    left = list(unfinished(load_course(root).lessons[1]))
    where = line_of(root, "lessons/01_basics/02_sums.md", "goal")
    assert left[0] == (lesson, where, "what the reader can do afterwards, in one sentence.")
    assert checks in [path for path, _, _ in left]
    for path in (lesson, checks):
        path.write_text(path.read_text().replace("TODO", "DONE"))
    assert list(unfinished(load_course(root).lessons[1])) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("basics/means", "There is a lesson basics/means already."),
        ("basic/x", "lists no chapter 'basic'. The nearest is 'basics'."),
        ("7/x", "lists no chapter '7'"),
        ("basics", "is called chapter/slug"),
        ("basics/Sums", "lower-case letters"),
        ("basics/../x", "lower-case letters"),
    ],
)
def test_what_cannot_be_begun_is_a_sentence_and_writes_nothing(tmp_path, name, words):
    root = copy_of_tiny(tmp_path)
    before = sorted(root.rglob("*"))
    with pytest.raises(CannotBegin) as caught:
        begin_lesson(root, name)
    assert words in str(caught.value)
    assert sorted(root.rglob("*")) == before
