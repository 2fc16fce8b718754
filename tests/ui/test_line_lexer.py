import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.ui.editing import bracket_matching
from tensortutor.ui.editing.line_lexer import is_code, read
from tensortutor.ui.widgets.code import CodeDocument


def parts(text: str, state: str = "") -> list[tuple[str, str]]:
    return [(text[start:end], name) for start, end, name in read(text, state).tokens]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(x): pass", [("def", "keyword"), ("f", "definition"), ("pass", "keyword")]),
        ("@torch.no_grad()", [("@torch.no_grad", "decorator")]),
        ("None if 0x1F", [("None", "number"), ("if", "keyword"), ("0x1F", "number")]),
        ("nn.Linear(2, 1e-3)", [("Linear", "call"), ("2", "number"), ("1e-3", "number")]),
        ("x.match(1)", [("match", "call"), ("1", "number")]),
        ("match x:", [("match", "keyword")]),
        ("match = 3", [("3", "number")]),
        ("case [1, *_]:", [("case", "keyword"), ("1", "number")]),
        ("'#' # '", [("'#'", "string"), ("# '", "comment")]),
        ("rb'\\'' + Ru", [("rb'\\''", "string")]),
        ("f'{x.sum()}'", [("f'{x.sum()}'", "string"), ("{x.sum()}", "plain"), ("sum", "call")]),
        ("f'{{x}}'", [("f'{{x}}'", "string")]),
        ("a.if + b_def", []),
    ],
)  # fmt: skip
def test_a_line_is_read(text, found):
    assert parts(text) == found


@pytest.mark.parametrize(
    ("lines", "states"),
    [
        (['x = """a', "b", 'c""" + 1'], ['"""', '"""', ""]),
        (["f'''{a}", "'''"], ["f'''", ""]),
        (["'a\\", "b'"], ["'", ""]),
        (["'never closed", "x"], ["", ""]),
        (['# """', "x"], ["", ""]),
        (['"""a\\"""', 'b"""'], ['"""', ""]),
    ],
)
def test_strings_go_on_over_lines(lines, states):
    state = ""
    for line, after in zip(lines, states, strict=True):
        state = read(line, state).state
        assert state == after


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("x|", True), ("'a'|", True), ("'a|", False), ("'a' |", True), ("# a|", False),
        ('"""a|', False), ('""|', True), ("f'{x|", True), ("f'{x} a|", False), ("'a'|'b'", True),
    ],
)  # fmt: skip
def test_where_code_is(text, is_there):
    assert is_code(text.replace("|", ""), "", text.index("|")) is is_there


@given(st.text(max_size=80), st.sampled_from(["", "'''", 'f"""', "'"]))
def test_any_text_is_read_and_parts_lie_within_it(text, state):
    line = read(text, state)
    assert all(0 <= start <= end <= len(text) for start, end, _ in line.tokens)
    assert all(text[column] == bracket for column, bracket in line.brackets)


def test_all_keywords_are_known():
    for word in keyword.kwlist:
        assert parts(f"{word} ")[0][0] == word


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        ("f(a[1])", (0, 1), ((0, 1), (0, 6))),
        ("f(a[1])", (0, 7), ((0, 6), (0, 1))),
        ("f(\n  ')', # )\n)", (0, 1), ((0, 1), (2, 0))),
        ("f(]", (0, 1), ()),
        ("f(", (0, 1), ()),
        ("')'", (0, 1), ()),
    ],
)
def test_brackets_that_belong_together(text, at, found):
    assert bracket_matching.pair(CodeDocument(text), at) == found
