from hypothesis import given
from hypothesis import strategies as st

from tensortutor.learner.solution_diff import MINE, SAME, THEIRS, beside, differs, unified

OWN = '''\
import torch


def mean(x, keep):
    """What the task says.

    x: (B, T)
    """

    count = keep.sum(1)
    return x.sum(1) / count


print(mean(1, 2))
'''
SOLUTION = """\
import torch


def mean(x, keep):
    return (x * keep).sum(1) / keep.sum(1)


print(mean(1, 2))
"""


def test_what_corresponds_stands_on_one_row_and_docstrings_nowhere() -> None:
    pairs = beside(OWN, SOLUTION)
    changed = [(pair.mine, pair.theirs) for pair in pairs if not pair.same]
    assert changed == [
        ("    count = keep.sum(1)", "    return (x * keep).sum(1) / keep.sum(1)"),
        ("    return x.sum(1) / count", None),
    ]
    assert [pair.mine for pair in pairs if pair.same] == [
        "import torch", "", "", "def mean(x, keep):", "", "", "print(mean(1, 2))",
    ]  # fmt: skip


def test_one_below_the_other_what_goes_comes_first() -> None:
    lines = list(unified(beside(OWN, SOLUTION)))
    assert [(mark, line.strip()) for mark, line in lines if mark != SAME] == [
        (MINE, "count = keep.sum(1)"),
        (MINE, "return x.sum(1) / count"),
        (THEIRS, "return (x * keep).sum(1) / keep.sum(1)"),
    ]


def test_equal_programs_do_not_differ() -> None:
    assert not differs(beside(SOLUTION, SOLUTION + "\n\n"))
    assert differs(beside(OWN, SOLUTION))


def test_a_docstring_that_shares_its_line_or_is_all_there_is_stays() -> None:
    for text in (
        'def f(): "one"; return 1\n',
        'def f():\n    "one"\n',
        'def f():\n    "a"; x = 1\n',
    ):
        assert [pair.mine for pair in beside(text, text)] == text.splitlines()


def test_what_is_no_python_is_compared_as_it_is() -> None:
    assert [pair.mine for pair in beside('def f(:\n    """x"""\n', "")] == [
        "def f(:", '    """x"""',
    ]  # fmt: skip


@given(st.lists(st.sampled_from(["a", "b", "c", ""])), st.lists(st.sampled_from(["a", "b", "d"])))
def test_each_program_can_be_read_out_of_the_rows(left: list[str], right: list[str]) -> None:
    mine, theirs = "\n".join(left).rstrip("\n"), "\n".join(right)
    pairs = beside(mine, theirs)
    assert [pair.mine for pair in pairs if pair.mine is not None] == mine.splitlines()
    below = list(unified(pairs))
    assert [line for mark, line in below if mark != THEIRS] == mine.splitlines()
    assert [line for mark, line in below if mark != MINE] == theirs.splitlines()
