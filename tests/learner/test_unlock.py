from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.model import Course
from tensortutor.learner.unlock import (
    built_on,
    continue_at,
    credit,
    missing,
    next_lesson,
    opened_by,
    shown_by,
    state,
)
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


def needs(course: Course) -> dict[str, set[str]]:
    """What each lesson is built on, by id; in these courses what is needed comes before."""
    below: dict[str, set[str]] = {}
    for lesson in course.lessons:
        below[lesson.id] = set(lesson.requires).union(*(below[id] for id in lesson.requires))
    return below


def subsets(course: Course) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from([lesson.id for lesson in course.lessons]))


@given(st.data())
def test_a_lesson_opens_exactly_when_its_needs_count(data: st.DataObject) -> None:
    tree = data.draw(courses())
    passed = data.draw(subsets(tree))
    earned = credit(tree, passed)
    below = needs(tree)
    shown = {id for one in passed for id in below[one]} - passed
    assert set(earned.known) == shown
    for id, by in earned.known.items():
        assert by in passed
        assert id in below[by]
    for lesson in tree.lessons:
        found = state(lesson, earned)
        assert (found == "done") == (lesson.id in passed)
        assert (found == "known") == (lesson.id in shown)
        if found in ("open", "locked"):
            assert (found == "open") == (set(lesson.requires) <= passed | shown)
            assert (found == "open") == (missing(lesson, earned) == ())
        assert {one.id for one in built_on(tree, lesson)} == below[lesson.id]


@given(st.data())
def test_passing_in_order_shows_nothing_that_was_not_passed(data: st.DataObject) -> None:
    tree = data.draw(courses())
    passed: frozenset[str] = frozenset()
    for lesson in tree.lessons:
        if state(lesson, credit(tree, passed)) == "open" and data.draw(st.booleans()):
            assert shown_by(tree, lesson.id, passed) == ()
            passed |= {lesson.id}
    assert credit(tree, passed).known == {}


@given(st.data())
def test_opened_by_is_the_difference_that_passing_makes(data: st.DataObject) -> None:
    tree = data.draw(courses())
    passed = data.draw(subsets(tree))
    lesson = data.draw(st.sampled_from(tree.lessons))
    before, after = credit(tree, passed - {lesson.id}), credit(tree, passed | {lesson.id})
    expected = {
        one.id for one in tree.lessons
        if state(one, before) == "locked" and state(one, after) == "open"
    }  # fmt: skip
    known = {one.id for one in shown_by(tree, lesson.id, passed)}
    assert known == {id for id in after.known if id not in before}
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
        assert state(lesson, credit(tree, passed)) == "open"
        passed |= {lesson.id}
        following = next_lesson(tree, lesson.id, passed)
        place = None if following is None else (following.id, 0)
    assert passed == {lesson.id for lesson in tree.lessons}
    assert next_lesson(tree, tree.lessons[0].id, passed) is None


def test_passing_everything_opens_everything() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["a", "b"]})
    everything = frozenset(lesson.id for lesson in tree.lessons)
    assert {state(lesson, credit(tree, everything)) for lesson in tree.lessons} == {"done"}


def test_what_was_passed_stays_done_when_its_needs_are_gone() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert state(tree.lessons[1], credit(tree, frozenset({"c/b"}))) == "done"


def test_a_lesson_begun_again_is_open_and_nobody_elses_passing_makes_it_known() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["b"], "d": ["b"], "e": ["d"]})
    begun_again = frozenset({"c/b"})
    earned = credit(tree, frozenset({"c/c"}), begun_again)
    states = [state(lesson, earned) for lesson in tree.lessons]
    assert states == ["known", "open", "done", "locked", "locked"]
    # Open even if what it needs was known by itself alone.
    alone = credit(tree, frozenset(), begun_again)
    assert [state(lesson, alone) for lesson in tree.lessons][:3] == ["open", "open", "locked"]
    assert next_lesson(tree, "c/c", frozenset({"c/c"}), begun_again) is tree.lessons[1]
    found = continue_at(tree, frozenset({"c/c"}), None, begun_again)
    assert found == (tree.lessons[1], 0)
    # Passing what builds on it shows it once more.
    passed = frozenset({"c/c"})
    assert [one.id for one in shown_by(tree, "c/d", passed, begun_again)] == ["c/b"]
    assert [one.id for one in opened_by(tree, "c/d", passed, begun_again)] == ["c/e"]


def test_what_a_passed_lesson_is_built_on_counts_and_opens_what_needs_it() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["d"]})
    earned = credit(tree, frozenset({"c/c"}))
    assert earned.known == {"c/a": "c/c", "c/b": "c/c"}
    states = [state(lesson, earned) for lesson in tree.lessons]
    assert states == ["known", "known", "done", "open", "locked"]
    assert [one.id for one in shown_by(tree, "c/c", frozenset())] == ["c/a", "c/b"]
    assert [one.id for one in opened_by(tree, "c/c", frozenset())] == ["c/d"]
    following = next_lesson(tree, "c/c", frozenset({"c/c"}))
    assert following is not None
    assert following.id == "c/d"


def test_what_is_known_and_then_passed_is_done_and_what_is_not_in_the_course_is_nothing() -> None:
    tree = course({"a": ["gone"], "b": ["a"]})
    assert credit(tree, frozenset({"c/b"})).known == {"c/a": "c/b"}
    assert credit(tree, frozenset({"c/a", "c/b"})).known == {}


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


def test_a_lesson_that_is_gone_gives_the_first_open_one() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert continue_at(tree, frozenset(), ("c/gone", 1)) == (tree.lessons[0], 0)


def test_who_went_to_a_locked_lesson_goes_on_there() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert continue_at(tree, frozenset(), ("c/b", 1)) == (tree.lessons[1], 1)


def test_a_course_without_lessons_has_no_place() -> None:
    assert continue_at(course({}), frozenset(), None) is None
