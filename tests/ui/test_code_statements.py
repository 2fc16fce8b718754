"""A program in the pieces that a room is shown one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.ui.lesson.code_statements import statements

LOOP = "for i in x:\n    pass\n    # of the loop\n"
FUNCTION = "\n# next\n@dec\ndef f():\n    return 1\n# the end\n"


@pytest.mark.parametrize(
    "pieces",
    [
        ("import a\nfrom b import c\n", "\n# what follows\nx = 1; y = 2\n", LOOP, FUNCTION),
        ("x = 1; y = 2\n", "z = 3"),
        ("x = '''\n\nno = end\n'''\n", "y = 2\x0c\n", "z = 2\n"),
        ("import a\n", "x = 1\n", "import b\n"),
        ("# only a comment\n",),
        ("def f(:\n    no = python\n",),
        ("",),
    ],
)
def test_pieces_are_whole_statements_with_what_stands_before_them(pieces):
    assert statements("".join(pieces)) == pieces


DEEP = ("x = " + "-" * 20_000 + "1", "x = 1" + "+1" * 20_000, "x = y" + ".z" * 20_000)


@pytest.mark.parametrize("deep", DEEP, ids=["signs", "sum", "attributes"])
def test_a_program_too_deep_to_be_read_is_one_piece(deep):
    assert statements(deep) == (deep,)


LINES = st.sampled_from(
    ["x = 1\n", "if x:\n    y = 2\n", "import a\n", "# words\n", "\n", "    # in\n",
     "@f\ndef g(): 1\n", "y = (1,\n  2)\n", "a = 1; b = 2\n", "else:\n", "'''\n"]
)  # fmt: skip


@given(st.lists(LINES, max_size=8).map("".join))
def test_nothing_is_lost(source):
    assert "".join(statements(source)) == source
