"""Courses are found, loaded whole or not at all, and their lessons found by name."""

import shutil
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tensortutor.course.catalog import (
    CourseError,
    UnknownLesson,
    find_course,
    find_lesson,
    load_course,
    open_course,
    read_course,
)
from tests.course.tiny import CHECKS, CONTENTS, FIX, LESSON, TINY, Edit, copy_of_tiny

REPOSITORY = Path(__file__).parents[2]


def said(root):
    return [str(problem) for problem in read_course(root)[1]]


def another_lesson(root, folder, stem, requires):
    """A second lesson like the first one, in any chapter's folder."""
    text = (TINY / LESSON).read_text("utf-8")
    text = text.replace("requires = []", f"requires = [{requires}]")
    for top, suffix, content in (
        ("lessons", ".md", text),
        ("checks", ".py", (TINY / CHECKS).read_text("utf-8")),
    ):
        path = root / top / folder / f"{stem}{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")


def test_a_course_has_its_chapters_in_order():
    course = load_course(TINY)
    assert course.title == "A tiny course"
    assert [(c.id, c.number, c.title) for c in course.chapters] == [
        ("basics", 1, "Basics"),
        ("repairs", 2, "Repairs"),
    ]
    assert [lesson.id for lesson in course.lessons] == ["basics/means", "repairs/lost_dim"]
    assert course.lessons[0].path == TINY / LESSON


def test_the_judge_is_read_without_running_it(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(CHECKS, "import torch\n", "import torch\n1 / 0\n"))
    judge = load_course(root, thorough=True).lessons[0].judge
    assert judge.checks == (
        "every row is centred on its own mean",
        "the mean is computed, not looked up",
        "the input stays as it was",
    )
    assert [(m.name, m.function, m.caught_by) for m in judge.mutants] == [
        ("averages the columns", "centre", "every row is centred on its own mean"),
        ("subtracts in place", "centre", "the input stays as it was"),
    ]
    assert [(a.name, a.function) for a in judge.accepted] == [
        ("adds a dimension by hand", "centre")
    ]
    (shortcut,) = judge.shortcuts
    assert shortcut.check == "the mean is computed, not looked up"
    assert shortcut.forbids == ("torch.nn.functional.layer_norm",)
    lines = judge.source.split("\n")
    assert lines[shortcut.line - 1].startswith('@check("the mean is computed')
    assert lines[judge.mutants[1].line - 1].startswith('@mutant("subtracts in place"')


def test_reading_quickly_and_thoroughly_agree():
    assert load_course(TINY, thorough=False) == load_course(TINY, thorough=True)


def test_an_opened_course_is_the_same_and_reads_its_lessons_later(tmp_path):
    root = shutil.copytree(TINY, tmp_path / "tiny")
    whole, opened = load_course(root), open_course(root)
    assert [lesson.title for lesson in opened.lessons] == [lesson.title for lesson in whole.lessons]
    assert opened.lessons[0].steps == whole.lessons[0].steps
    assert opened.lessons[0] == whole.lessons[0]
    opened.lessons[1].path.write_text("+++\n+++\n")
    with pytest.raises(CourseError, match="title"):
        _ = opened.lessons[1].steps


def test_an_opened_course_tells_what_is_wrong_with_its_list(tmp_path):
    root = shutil.copytree(TINY, tmp_path / "tiny")
    lesson = next(root.glob("lessons/*/*.md"))
    lesson.write_text(lesson.read_text().replace("title =", "titel =", 1))
    with pytest.raises(CourseError, match="titel"):
        open_course(root)


def test_the_built_in_course_is_found_and_whole():
    root = find_course()
    assert root == REPOSITORY
    course, problems = read_course(root)
    assert problems == ()
    assert course.chapters[0].id == "tensors"
    assert load_course(root, thorough=True) == course


def test_a_course_is_found_by_its_folder(tmp_path):
    assert find_course(TINY) == TINY
    with pytest.raises(CourseError, match=r"this is no course: there is no .*course\.toml"):
        find_course(tmp_path)


@pytest.mark.parametrize("kind", ["path", "package"])
def test_a_course_is_found_by_its_entry_point(tmp_path, monkeypatch, kind):
    package = tmp_path / f"tiny_by_{kind}"
    shutil.copytree(TINY, package)
    (package / "__init__.py").write_text("from pathlib import Path\nHERE = Path(__file__).parent\n")
    value = package.name + (":HERE" if kind == "path" else "")
    points = EntryPoints([EntryPoint("tiny", value, "tensortutor.courses")])
    monkeypatch.setattr("importlib.metadata.entry_points", points.select)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_course(Path("tiny")) == package


def test_a_course_that_is_nowhere():
    with pytest.raises(CourseError, match=r"^x+: this folder cannot be read: File name too long"):
        find_course(Path("x" * 300))
    with pytest.raises(CourseError, match=r"^no/such: there is no such folder, and no installed"):
        find_course(Path("no/such"))


def test_a_broken_course_is_not_loaded_and_says_everything(tmp_path):
    root = copy_of_tiny(
        tmp_path,
        Edit(LESSON, "minutes = 5", "minutes = 0"),
        Edit(FIX, "## Insight", "## Inside"),
    )
    with pytest.raises(CourseError) as caught:
        load_course(root)
    assert [problem.path for problem in caught.value.problems] == [LESSON, FIX]
    assert str(caught.value).count("\n") == 1
    assert str(caught.value).startswith(f"{LESSON}:5: 'minutes' must be")


def test_a_chapter_without_a_folder(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(CONTENTS, "planned = true\n", ""))
    assert said(root) == [
        f"{CONTENTS}:14: the chapter 'later' has no folder lessons/03_later: "
        "add it, or write planned = true"
    ]


def test_a_planned_chapter_with_a_folder_is_loaded(tmp_path):
    root = copy_of_tiny(tmp_path)
    another_lesson(root, "03_later", "01_more", '"basics/means"')
    assert [lesson.id for lesson in load_course(root).lessons][-1] == "later/more"


def test_a_folder_that_is_not_listed(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / "lessons" / "04_repair").mkdir()
    (root / "lessons" / "reference").mkdir(exist_ok=True)
    assert said(root) == [
        "lessons/04_repair: course.toml lists no chapter for this folder; "
        "the nearest chapter is 'repairs'"
    ]


def test_a_folder_with_the_wrong_number(tmp_path):
    root = copy_of_tiny(tmp_path)
    for top in ("lessons", "checks"):
        (root / top / "02_repairs").rename(root / top / "05_repairs")
    (problem, link) = said(root)
    assert problem.startswith(f"{CONTENTS}:9: the chapter 'repairs' is number 2")
    assert "rename it 02_repairs" in problem
    assert link.startswith(f"{LESSON}:147: this link leads to no file")


def test_course_toml_is_judged_too(tmp_path):
    root = copy_of_tiny(
        tmp_path,
        Edit(CONTENTS, 'title = "Repairs"', 'titel = "Repairs"'),
        Edit(CONTENTS, 'id = "later"', 'id = "basics"'),
    )
    assert said(root) == [
        f"{CONTENTS}:8: the chapter lacks 'title': a string that is not empty",
        f"{CONTENTS}:10: the chapter has no key 'titel'; the nearest is 'title'",
        f"{CONTENTS}:14: there are two chapters 'basics': remove one",
    ]


def test_course_toml_missing_or_not_toml(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / CONTENTS).write_text('title = "x"\nchapters = [\n')
    (problem,) = said(root)
    assert problem.startswith(f"{CONTENTS}:")
    assert "is not TOML" in problem
    (root / CONTENTS).unlink()
    assert said(root)[0].startswith(f"{CONTENTS}:1: it is missing")


def test_an_unknown_prerequisite_names_the_nearest(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(FIX, '"basics/means"', '"basics/mean"'))
    (problem,) = said(root)
    assert problem.startswith(f"{FIX}:4: there is no lesson 'basics/mean'; the nearest are basics/")


def test_a_prerequisite_that_comes_later(tmp_path):
    root = copy_of_tiny(
        tmp_path,
        Edit(LESSON, "requires = []", 'requires = [\n  "repairs/lost_dim",\n]'),
        Edit(FIX, '["basics/means"]', "[]"),
    )
    (problem,) = said(root)
    assert problem.startswith(f"{LESSON}:5: requires 'repairs/lost_dim', which comes later")


def test_a_circle_is_shown_once(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(LESSON, "requires = []", 'requires = ["later/more"]'))
    another_lesson(root, "03_later", "01_more", '"repairs/lost_dim"')
    assert said(root)[0] == (
        f"{LESSON}:4: requires itself in a circle: "
        "basics/means -> later/more -> repairs/lost_dim -> basics/means"
    )
    assert len([text for text in said(root) if "circle" in text]) == 1


def test_a_lesson_that_requires_itself(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(FIX, '"basics/means"', '"repairs/lost_dim"'))
    assert said(root) == [
        f"{FIX}:4: requires itself in a circle: repairs/lost_dim -> repairs/lost_dim"
    ]


def test_an_id_used_twice(tmp_path):
    root = copy_of_tiny(tmp_path)
    another_lesson(root, "01_basics", "02_means", "")
    assert said(root) == [
        "lessons/01_basics/02_means.md:1: the id 'basics/means' belongs to 01_means.md already: "
        "rename this file"
    ]


def test_a_number_used_twice(tmp_path):
    root = copy_of_tiny(tmp_path)
    another_lesson(root, "01_basics", "01_more", "")
    assert said(root) == [
        "lessons/01_basics/01_more.md:1: the number 01 belongs to 01_means.md already: "
        "rename this file"
    ]


@pytest.mark.parametrize(
    ("name", "better"),
    [("2-more-means.md", "02_more_means.md"), ("Means.md", "NN_means.md")],
)
def test_a_file_with_a_wrong_name(tmp_path, name, better):
    root = copy_of_tiny(tmp_path)
    (root / "lessons" / "01_basics" / name).write_text("")
    assert said(root) == [
        f"lessons/01_basics/{name}:1: a lesson's file is named NN_slug.md: rename it {better}"
    ]


def test_a_check_file_without_a_lesson(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / "checks" / "01_basics" / "02_more.py").write_text("")
    assert said(root) == [
        "checks/01_basics/02_more.py:1: there is no lessons/01_basics/02_more.md for it to judge"
    ]


def test_a_link_to_nowhere(tmp_path):
    root = copy_of_tiny(tmp_path, Edit(LESSON, "../02_repairs/01_lost_dim.md", "02_lost.md#top"))
    assert said(root) == [f"{LESSON}:147: this link leads to no file: 02_lost.md#top"]


def test_links_elsewhere_and_in_code_are_let_be(tmp_path):
    text = "See [x](https://x.org), [y](#y), `z[0](w)` and\n\n```text\na[0](b)\n```\n"
    root = copy_of_tiny(tmp_path, Edit(LESSON, "The rows were averaged,", text))
    assert said(root) == []


@pytest.mark.parametrize("name", ["repairs/lost_dim", "lost_dim", "2.1"])
def test_a_lesson_is_found_by_id_slug_and_number(name):
    assert find_lesson(load_course(TINY), name).id == "repairs/lost_dim"


def test_a_slug_that_two_lessons_have_is_not_enough(tmp_path):
    root = copy_of_tiny(tmp_path)
    another_lesson(root, "03_later", "01_means", "")
    with pytest.raises(UnknownLesson, match=r"2 lessons.*'means': basics/means and later/means"):
        find_lesson(load_course(root), "means")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("basics/maens", "The nearest: basics/means and repairs/lost_dim."),
        ("lostdim", "The nearest: repairs/lost_dim"),
        ("7.1", "There is no chapter 7. The course has chapters 1 and 2."),
        ("1.2", "There is no lesson 1.2. Chapter 1 has 1 lesson, from 1.1 to 1.1."),
    ],
)
def test_an_unknown_lesson_names_what_is_near(name, words):
    with pytest.raises(UnknownLesson) as caught:
        find_lesson(load_course(TINY), name)
    assert words in str(caught.value)
