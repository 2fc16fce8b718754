"""What a failing line mentions, with and without the columns that Python 3.11 brought."""

import textwrap

import pytest

from tensortutor.worker.syntax import LARGEST_SOURCE, Span, failing_node, mentions, text_of_node


def spoken_of(source: str, piece: str | None, line: int = 0) -> list[tuple[str, tuple[str, ...]]]:
    """The mentions when `piece` of the source has failed; None: only the line is known."""
    span = None
    if piece is not None:
        assert source.count(piece) == 1
        start = source.index(piece)
        end = start + len(piece)
        before = source[:start].rpartition("\n")[2]
        last = source[:end].rpartition("\n")[2]
        first_line = source.count("\n", 0, start) + 1
        last_line = source.count("\n", 0, end) + 1
        span = Span(first_line, last_line, len(before.encode()), len(last.encode()))
        line = first_line
    node = failing_node(source, line, span)
    return [(m.text, m.roles) for m in mentions(node)] if node is not None else []


@pytest.mark.parametrize(
    ("source", "piece", "found"),
    [
        ("y = a @ b.T", "a @ b.T", [("a", ("left",)), ("b.T", ("right",))]),
        ("y = a + f(b)", "a + f(b)", [("a", ("left",)), ("f", ()), ("b", ())]),
        ("é = a; a += b", "a += b", [("a", ("left",)), ("b", ("right",))]),
        ("a < b < c", "a < b < c", [("a", ("left",)), ("b", ("right",)), ("c", ())]),
        (
            "y = self.fc(x, scale=s)",
            "self.fc(x, scale=s)",
            [("self.fc", ("callee",)), ("self", ("owner",)), ("x", ("arg0",)), ("s", ("scale",))],
        ),
        (
            "torch.cat([a, b['k']], 1)",
            "torch.cat([a, b['k']], 1)",
            [
                ("torch.cat", ("callee",)), ("torch", ("owner",)), ("a", ("item0",)),
                ("b['k']", ("item1",)),
            ],
        ),
        ("x[m]", "x[m]", [("x", ("owner",)), ("m", ("index",))]),
        ("x[i, j]", "x[i, j]", [("x", ("owner",)), ("i", ("index0",)), ("j", ("index1",))]),
        ("x[m] = v", "x[m]", [("x", ("owner",)), ("m", ("index",)), ("v", ("value",))]),
        ("fc.w = v", "fc.w", [("fc", ("owner",)), ("v", ("value",))]),
        ("f(*xs)", "f(*xs)", [("f", ("callee",)), ("xs", ())]),
        ("f(lambda q: q + r, x[0][-1])", "f(lambda q: q + r, x[0][-1])",
         [("f", ("callee",)), ("x[0][-1]", ("arg1",))]),
    ],
)  # fmt: skip
def test_the_operands_of_the_expression_that_failed(source, piece, found):
    assert spoken_of(source, piece) == found


def test_a_method_on_a_line_of_its_own_is_found():
    source = "y = (x\n  .view(2, n))\n"
    node = failing_node(source, 2, Span(2, 2, 3, 13))
    assert node is not None
    assert [(m.text, m.roles) for m in mentions(node)] == [
        ("x.view", ("callee",)), ("x", ("owner",)), ("n", ("arg1",)),
    ]  # fmt: skip


def test_of_a_compound_statement_only_the_header_counts():
    source = "if (a\n    and b):\n    c + d\n"
    whole = Span(1, 3, 0, 9)
    node = failing_node(source, 1, whole)
    assert node is not None
    assert [m.text for m in mentions(node)] == ["a", "b"]


@pytest.mark.parametrize(
    ("source", "line", "found"),
    [
        ("y = a @ b", 1, [("a", ("left",)), ("b", ("right",))]),
        ("total += x", 1, [("total", ("left",)), ("x", ("right",))]),
        # Two operations: which one failed is not known, so nobody is given a part in it.
        ("y = f(a) @ b", 1, [("f", ()), ("a", ()), ("b", ())]),
        ("for q in r:\n    a + b\n", 2, [("a", ("left",)), ("b", ("right",))]),
        ("for q in r.rows:\n    a + b\n", 1, [("r.rows", ())]),
        ("if a:\n    b + c\nelse:\n    d + e\n", 4, [("d", ("left",)), ("e", ("right",))]),
        ("z = f(\n    a,\n    b,\n)\n", 3,
         [("f", ("callee",)), ("a", ("arg0",)), ("b", ("arg1",))]),
        ("return_ = 1\n", 9, []),
    ],
)  # fmt: skip
def test_before_python_3_11_the_line_is_all_there_is(source, line, found):
    assert spoken_of(source, None, line) == found


@pytest.mark.parametrize("source", ["x = (", "x = 1\0", "a + b #" + "-" * LARGEST_SOURCE])
def test_a_source_that_cannot_be_read_mentions_nothing(source):
    assert failing_node(source, 1, None) is None


def test_a_long_expression_is_shortened_in_the_middle():
    node = failing_node(textwrap.dedent("f(" + "x_" * 100 + "y)"), 1, None)
    assert node is not None
    text = text_of_node(node)  # type: ignore[arg-type]
    assert len(text) <= 61
    assert text.startswith("f(x_")
    assert text.endswith("_y)")
