from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.model import Course
from tensortutor.learner.unlock import (
    Credit,
    History,
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
    """A random acyclic course: each lesson may need any that come before it, and be evidence for
    any other."""
    names = [f"l{i}" for i in range(draw(st.integers(1, 8)))]
    requires = {
        name: sorted(draw(st.sets(st.sampled_from(names[:i])))) if i else []
        for i, name in enumerate(names)
    }
    shows = {name: sorted(draw(st.sets(st.sampled_from(names))) - {name}) for name in names}
    return course(requires, shows)


def needs(course: Course) -> dict[str, set[str]]:
    """What each lesson is built on, by id; in these courses what is needed comes before."""
    below: dict[str, set[str]] = {}
    for lesson in course.lessons:
        below[lesson.id] = set(lesson.requires).union(*(below[id] for id in lesson.requires))
    return below


def ids(course: Course) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from([lesson.id for lesson in course.lessons]))


def passed(*slugs: str) -> History:
    return History(frozenset(f"c/{slug}" for slug in slugs))


def states(course: Course, history: History) -> list[str]:
    return [state(lesson, credit(course, history)) for lesson in course.lessons]


@given(st.data())
def test_a_lesson_counts_by_passing_by_evidence_or_by_an_answer_alone(data: st.DataObject) -> None:
    tree = data.draw(courses())
    history = History(*(data.draw(ids(tree)) for _ in range(3)))
    earned = credit(tree, history)
    evident = {id for one in tree.lessons if one.id in history.passed for id in one.shows}
    known = (evident | history.answered) - history.passed - history.begun_again
    assert set(earned.known) == known
    for id, by in earned.known.items():
        if by:
            assert by in history.passed
            assert id in next(one.shows for one in tree.lessons if one.id == by)
        else:
            assert id in history.answered
    below = needs(tree)
    for lesson in tree.lessons:
        found = state(lesson, earned)
        assert (found == "done") == (lesson.id in history.passed)
        assert (found == "known") == (lesson.id in known)
        if found in ("open", "locked") and lesson.id not in history.begun_again:
            assert (found == "open") == (set(lesson.requires) <= history.passed | known)
            assert (found == "open") == (missing(lesson, earned) == ())
        assert {one.id for one in built_on(tree, lesson)} == below[lesson.id]


@given(st.data())
def test_opened_by_and_shown_by_are_the_difference_that_passing_makes(data: st.DataObject) -> None:
    tree = data.draw(courses())
    history = History(*(data.draw(ids(tree)) for _ in range(3)))
    lesson = data.draw(st.sampled_from(tree.lessons))
    before, after = credit(tree, history), credit(tree, history.after_passing(lesson))
    opened = {
        one.id for one in tree.lessons
        if state(one, before) == "locked" and state(one, after) == "open"
    }  # fmt: skip
    assert {one.id for one in opened_by(tree, lesson, history)} == opened
    known = {one.id for one in shown_by(tree, lesson, history)}
    assert known == {id for id in after.known if id not in before}
    assert known <= set(lesson.shows)


@given(courses())
def test_following_the_next_lesson_makes_everything_count(tree: Course) -> None:
    history, place = History(), None
    for _ in tree.lessons:
        if all(one.id in credit(tree, history) for one in tree.lessons):
            break
        found = continue_at(tree, credit(tree, history), place)
        assert found is not None
        lesson, step = found
        assert step == 0
        assert state(lesson, credit(tree, history)) == "open"
        history = history.after_passing(lesson)
        following = next_lesson(tree, lesson.id, history)
        place = None if following is None else (following.id, 0)
    assert {state(one, credit(tree, history)) for one in tree.lessons} <= {"done", "known"}
    assert next_lesson(tree, tree.lessons[0].id, history) is None


def test_passing_a_lesson_claims_nothing_of_those_that_it_builds_on() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
    assert states(tree, passed("c")) == ["open", "locked", "done", "open"]
    assert shown_by(tree, tree.lessons[2], History()) == ()


def test_evidence_counts_for_the_lesson_that_is_named_and_no_further() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["b"], "d": ["b"]}, shows={"c": ["b"], "b": ["a"]})
    earned = credit(tree, passed("c"))
    assert earned.known == {"c/b": "c/c"}
    assert states(tree, passed("c")) == ["open", "known", "done", "open"]
    assert [one.id for one in shown_by(tree, tree.lessons[2], History())] == ["c/b"]
    assert [one.id for one in opened_by(tree, tree.lessons[2], History())] == ["c/d"]


def test_an_answer_makes_one_skipped_lesson_count() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["b"]})
    history = History(answered=frozenset({"c/b"}))
    assert credit(tree, history).known == {"c/b": ""}
    assert states(tree, history) == ["open", "known", "open"]


def test_what_was_passed_stays_done_when_its_needs_are_gone() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert states(tree, passed("b")) == ["open", "done"]


def test_a_lesson_begun_again_is_open_until_there_is_new_evidence() -> None:
    tree = course({"a": [], "b": ["a"], "c": ["b"], "d": ["b"]}, shows={"c": ["b"], "d": ["b"]})
    history = History(frozenset({"c/c"}), begun_again=frozenset({"c/b"}))
    assert states(tree, history) == ["open", "open", "done", "locked"]
    assert [one.id for one in shown_by(tree, tree.lessons[3], history)] == ["c/b"]
    assert states(tree, history.after_passing(tree.lessons[3]))[1] == "known"


def test_what_is_not_in_the_course_is_nothing() -> None:
    tree = course({"a": [], "b": ["a"]}, shows={"b": ["gone"]})
    history = History(frozenset({"c/b"}), answered=frozenset({"c/other"}))
    assert credit(tree, history).known == {}


def test_next_lesson_looks_behind_when_nothing_ahead_is_open() -> None:
    tree = course({"a": [], "b": [], "c": ["a"]})
    following = next_lesson(tree, "c/b", passed("b"))
    assert following is not None
    assert following.id == "c/a"


NOTHING = Credit(frozenset(), {})


def test_continue_where_the_learner_was() -> None:
    tree = course({"a": [], "b": []})
    assert continue_at(tree, NOTHING, ("c/b", 2)) == (tree.lessons[1], 2)


def test_a_step_that_is_gone_becomes_the_last() -> None:
    tree = course({"a": []})
    assert continue_at(tree, NOTHING, ("c/a", 99)) == (tree.lessons[0], 2)


def test_a_lesson_that_is_gone_gives_the_first_open_one() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert continue_at(tree, NOTHING, ("c/gone", 1)) == (tree.lessons[0], 0)


def test_who_went_to_a_locked_lesson_goes_on_there() -> None:
    tree = course({"a": [], "b": ["a"]})
    assert continue_at(tree, NOTHING, ("c/b", 1)) == (tree.lessons[1], 1)


def test_a_course_without_lessons_has_no_place() -> None:
    assert continue_at(course({}), NOTHING, None) is None
