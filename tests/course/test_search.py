"""Searching a course: what is found, in which order, and the words around it."""

import pytest

from tensortutor.course.catalog import find_course, open_course
from tensortutor.course.search import (
    ENTRY,
    ERROR,
    EXACT,
    LESSON,
    STEP,
    TERM,
    CourseIndex,
    Index,
    Place,
    folded,
    plain,
)
from tests.course.tiny import TINY, copy_of_tiny

VIEW = Place(ENTRY, "Tensor.view(*shape)", ("Tensor.view",), "Another shape of the same storage.")
VIEWED = Place(TERM, "View", ("View",), "A tensor on the storage of another one.")
AS_REAL = Place(ENTRY, "torch.view_as_real(x)", ("torch.view_as_real",), "Complex as real.")
PROSE = Place(STEP, "Insight", text="What a view shares, a copy does not.")
REVIEW = Place(STEP, "Before", text="A review, and previews.")
LOSS = Place(ENTRY, "F.cross_entropy(x, y)", ("F.cross_entropy", "nn.CrossEntropyLoss"), "Logits.")
INDEX = Index([PROSE, AS_REAL, VIEWED, REVIEW, LOSS, VIEW])


def places(query, index=INDEX):
    return [found.place for found in index.search(query)]


@pytest.mark.parametrize(
    "query", ["view", "View", ".view", "Tensor.view", "torch.Tensor.view", "view()", ".view(2, 3)"]
)
def test_a_call_is_found_under_each_of_its_names(query):
    assert places(query)[:2] == [VIEW, VIEWED]
    assert INDEX.search(query)[0].score >= EXACT


def test_exact_names_come_first_then_beginnings_then_words():
    assert places("view") == [VIEW, VIEWED, AS_REAL, PROSE]
    assert places("vie")[-1] == PROSE


def test_a_word_is_found_where_it_begins_not_within_another():
    assert REVIEW not in places("view")
    assert places("entropy") == [LOSS]
    assert places("cross-entropy") == [LOSS]
    assert places("crossentropyl") == [LOSS]


def test_of_several_words_every_one_must_occur():
    assert places("storage same") == [VIEW]
    assert places("storage nowhere") == []
    assert places("") == places("  ,") == []


@pytest.mark.parametrize("type", ["", "RuntimeError: "])
def test_a_message_as_it_is_printed_finds_its_error(type):
    course = CourseIndex(open_course(find_course(None)), with_lessons=False)
    course.wait()
    message = f"{type}mat1 and mat2 shapes cannot be multiplied (32x10 and 64x12)"
    (found, *_) = course.search(message)
    assert (found.place.kind, found.place.title) == (ERROR, "The inner dimensions differ")
    assert course.search(message, kinds=(ENTRY,)) == []


def test_kinds_and_limits():
    assert [found.place for found in INDEX.search("view", kinds=(STEP,))] == [PROSE]
    assert len(INDEX.search("view", limit=2)) == 2
    assert INDEX.places((TERM,)) == [VIEWED]
    assert INDEX.named("view") == [VIEW, VIEWED]


def test_signs_can_be_sought():
    index = Index([Place(ENTRY, "a @ b", ("a @ b", "torch.matmul"))])
    assert len(index.search("@")) == len(index.search("a @ b")) == 1


def test_the_snippet_shows_what_was_sought():
    text = "Nothing here. " * 12 + "Then the stride decides, and " + "more of it. " * 20
    (found,) = Index([Place(STEP, "Insight", text=text)]).search("STRIDE")
    assert found.snippet.startswith("... ")
    assert found.snippet.endswith(" ...")
    assert len(found.snippet) < 130
    assert [found.snippet[start:end] for start, end in found.marks] == ["stride"]


def test_what_is_not_found_has_a_nearest_name():
    assert INDEX.nearest("veiw") == ["View"]
    assert INDEX.nearest("crossentropy")[0] == "F.cross_entropy"
    assert len(INDEX.nearest("qqqq")) == 1


def test_names_are_folded():
    assert folded("torch.nn.functional.relu(x)") == "relu"
    assert folded("torch.linalg.solve") == "linalg.solve"
    assert folded(".") == "."


def test_markdown_becomes_prose():
    text = "## A\n`x` and **y**, [here](z.md).\n\n```python\ncode\n```\n| a | b |\n"
    assert plain(text) == "A x and y, here. code"


# --- a course ---


def test_a_course_is_read_in_a_thread():
    index = CourseIndex(open_course(TINY))
    assert not index.is_complete
    assert index.wait(60)
    kinds = {found.place.kind for found in index.search("mean")}
    assert kinds >= {ENTRY, TERM, LESSON, STEP}
    found = index.search("centred")[0].place
    assert (found.kind, found.lesson, found.page) == (TERM, "basics/means", "glossary")


def test_without_lessons_the_reference_alone():
    index = CourseIndex(open_course(TINY), with_lessons=False)
    assert index.wait(60)
    assert {place.kind for place in index.index.places()} == {ENTRY, TERM}


def test_a_lesson_that_is_not_sound_is_left_out(tmp_path):
    root = copy_of_tiny(tmp_path)
    lesson = root / "lessons" / "01_basics" / "01_means.md"
    lesson.write_text(lesson.read_text("utf-8") + "\n```quiz\n", "utf-8")
    index = CourseIndex(open_course(root))
    assert index.wait(60)
    assert {place.lesson for place in index.index.places((STEP,))} == {"repairs/lost_dim"}
    assert {place.lesson for place in index.index.places((LESSON,))} == {
        "basics/means",
        "repairs/lost_dim",
    }


@pytest.fixture(scope="module")
def built_in():
    index = CourseIndex(open_course(find_course()))
    assert index.wait(120)
    return index


@pytest.mark.parametrize(
    ("query", "kind", "title"),
    [
        ("torch.Tensor.view", ENTRY, "Tensor.view(*shape)"),
        ("nn.CrossEntropyLoss", ENTRY, "F.cross_entropy(logits, target)"),
        ("silent broadcast", TERM, "Silent broadcast"),
        ("vjp", ENTRY, "torch.func.grad(f), torch.func.vjp(f, *inputs)"),
        ("mat1 and mat2 shapes cannot be multiplied", ERROR, "The inner dimensions differ"),
    ],
)
def test_the_built_in_course_is_found(built_in, query, kind, title):
    found = built_in.search(query)
    assert (kind, title) in [(hit.place.kind, hit.place.title) for hit in found[:4]]
    if kind != ERROR:
        assert (found[0].place.kind, found[0].place.title) == (kind, title)
