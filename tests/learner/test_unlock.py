from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.model import Course
from tensortutor.learner.unlock import continue_at, missing, next_lesson, opened_by, state
from tests.learner.courses import course


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """A random acyclic course: each lesson may need any that come before it."""
    size = draw(st.integers(1, 8))
    names = [f"l{i}" for i in range(size)]
    return course(
        {
            name: sorted(draw(st.sets(st.sampled_from(names[:i])))) if i else []
            for i, name in enumerate(names)
        }
    )


def subsets(course: Course) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from([lesson.id for lesson in course.lessons]))


@given(st.data())
def test_a_lesson_opens_exactly_when_its_needs_are_passed(data: st.DataObject) -> None:
    tree = data.draw(courses())
    passed = data.draw(subsets(tree))
    for lesson in tree.lessons:
        found = state(lesson, passed)
        assert (found == "done") == (lesson.id in passed)
        if found != "done":
            assert (found == "open") == (set(lesson.requires) <= passed)
            assert (found == "open") == (missing(lesson, passed) == ())


@given(st.data())
def test_opened_by_is_the_difference_that_passing_makes(data: st.DataObject) -> None:
    tree = data.draw(courses())
    passed = data.draw(subsets(tree))
    lesson = data.draw(st.sampled_from(tree.lessons))
    before = {one.id for one in tree.lessons if state(one, passed - {lesson.id}) == "open"}
    after = {one.id for one in tree.lessons if state(one, passed | {lesson.id}) == "open"}
    expected = after - before
    assert {one.id for one in opened_by(tree, lesson.id, passed)} == expected
    assert {one.id for one in opened_by(tree, lesson.id, passed | {lesson.id})} == expected


@given(courses())
def test_following_the_next_lesson_passes_everything(tree: Course) -> None:
    passed: frozenset[str] = frozenset()
    place = None
    for _ in tree.lessons:
        found = continue_at(tree, passed, place)
        assert found is not None
        lesson, step = found
        assert step == 0
        assert state(lesson, passed) == "open"
        passed |= {lesson.id}
        following = next_lesson(tree, lesson.id, passed)
        place = None if following is None else (following.id, 0)
    assert passed == {lesson.id for lesson in tree.lessons}
    assert next_lesson(tree, tree.lessons[0].id, passed) is None


def test_passing_everything_opens_everything() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["a", "b"]})
    everything = frozenset(lesson.id for lesson in tree.lessons)
    assert {state(lesson, everything) for lesson in tree.lessons} == {"done"}


def test_what_was_passed_stays_done_when_its_needs_are_gone() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert state(tree.lessons[1], frozenset({"c/b"})) == "done"


def test_next_lesson_looks_behind_when_nothing_ahead_is_open() -> None:
    tree = course({"a": [], "b": [], "c": ["a"]})
    following = next_lesson(tree, "c/b", frozenset({"c/b"}))
    assert following is not None
    assert following.id == "c/a"


def test_continue_where_the_learner_was() -> None:
    tree = course({"a": [], "b": []})
    assert continue_at(tree, frozenset(), ("c/b", 2)) == (tree.lessons[1], 2)


def test_a_step_that_is_gone_becomes_the_last() -> None:
    tree = course({"a": []})
    assert continue_at(tree, frozenset(), ("c/a", 99)) == (tree.lessons[0], 2)


def test_a_lesson_that_is_gone_or_locked_gives_the_first_open_one() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert continue_at(tree, frozenset(), ("c/gone", 1)) == (tree.lessons[0], 0)
    assert continue_at(tree, frozenset(), ("c/b", 1)) == (tree.lessons[0], 0)


def test_a_course_without_lessons_has_no_place() -> None:
    assert continue_at(course({}), frozenset(), None) is None
