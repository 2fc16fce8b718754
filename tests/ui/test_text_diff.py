import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.ui.editing.text_diff import between, follow
from tensortutor.ui.widgets.code import CodeDocument

TEXTS = st.lists(st.sampled_from(["a", "b", "  c", "", "é\x0c", "x\u2028y"]), max_size=6).map(
    "\n".join
)


@given(TEXTS, TEXTS)
def test_the_change_makes_the_new_text_of_the_old(old, new):
    document = CodeDocument(old)
    change = between(old, new)
    document.replace_range(change.start, change.end, change.text)
    assert document.text == new


def test_lines_that_stay_are_not_touched():
    change = between("a\nb\nc\n", "a\nB\nB2\nc\n")
    assert (change.start, change.end, change.text) == ((1, 0), (2, 0), "B\nB2\n")


@given(st.text(alphabet="ab\n", max_size=9), st.text(alphabet="x\n", max_size=5), st.data())
def test_a_document_changes_as_a_text_does(text, new, data):
    document = CodeDocument(text)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    places = [(text[:at].count("\n"), at - (text[:at].rfind("\n") + 1)) for at in (first, last)]
    result = document.replace_range(*places, new)
    assert document.text == text[:first] + new + text[last:]
    assert result.replaced_text == text[first:last]
    end = first + len(new)
    row = document.text[:end].count("\n")
    assert result.end_location == (row, end - (document.text[:end].rfind("\n") + 1))


@given(TEXTS)
def test_lines_are_pythons_lines(text):
    assert CodeDocument(text).text == text


@pytest.mark.parametrize(
    ("old", "new", "at", "place"),
    [
        ("a\nb\nc", "x\na\nb\nc", (2, 1), (3, 1)),
        ("f(a,b)", "f(a, b)", (0, 4), (0, 4)),
        ("f(a,b)", "f(a, b)", (0, 5), (0, 6)),
        ("x=[1,\n2]", "x = [1, 2]", (1, 1), (0, 9)),
        ("a\nb", "a", (1, 1), (0, 1)),
        ("a\nb", "", (1, 1), (0, 0)),
    ],
)
def test_a_place_is_followed(old, new, at, place):
    assert follow(old, new, at) == place


@given(TEXTS, TEXTS, st.data())
def test_the_place_is_there(old, new, data):
    lines = old.split("\n")
    row = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(0, len(lines[row])))
    found, place = follow(old, new, (row, column))
    assert 0 <= place <= len(new.split("\n")[found])
