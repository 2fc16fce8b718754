"""Reads Python line by line: what to colour, and which brackets are code.

A line is read with nothing but itself and the string that it may begin within. So an editor reads
again what has changed and no more, half-finished code is read as well as any, and no line costs
more than its own length.
"""

import keyword
import re
from functools import lru_cache
from typing import NamedTuple

OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = {closer: opener for opener, closer in OPEN.items()}
PREFIXES = "rRbBfFtTuU"
CONSTANTS = frozenset({"None", "True", "False"})
KEYWORDS = frozenset(keyword.kwlist) - CONSTANTS
SOFT = re.compile(
    r"\s*(match|case)(?=\s+[^=\s].*:\s*(?:#.*)?$)|\s*(type)(?=\s+\w+\s*(?:\[.*\]\s*)?=)"
)
PARTS = re.compile(
    r"""
    (?P<comment>\#.*)
    | (?P<string>(?:[rR][bBfFtT]?|[bBfFtT][rR]?|[uU])?(?:'''|\"\"\"|'|"))
    | (?P<number>0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?[jJ]?)
    | (?P<name>[^\W\d]\w*)
    | (?P<bracket>[()\[\]{}])
    """,
    re.VERBOSE,
)
DECORATOR = re.compile(r"\s*(@\s*[\w.]+)")
BODIES = {
    quote: re.compile(rf"(?:\\.|(?!{quote})[^\\])*") for quote in ("'", '"', "'''", '"""')
}  # fmt: skip
FIELD = re.compile(r"\{\{|\}\}|\{((?:[^{}]|\{[^{}]*\})*)\}?")
LONGEST = 2_000
"""Characters of a line that are read; what comes behind them stays plain."""


class Token(NamedTuple):
    """A part of a line: columns in characters, and one of the names that styles are given for."""

    start: int
    end: int
    name: str


class Line(NamedTuple):
    """What a line holds. state: the string that the next line begins within, or "".

    brackets: (column, character) of those that are neither in a string nor in a comment.
    """

    tokens: tuple[Token, ...]
    brackets: tuple[tuple[int, str], ...]
    state: str


@lru_cache(maxsize=1 << 14)
def read(text: str, state: str = "") -> Line:
    """Read a line that begins within the string `state` (its quote, with "f" before it or not)."""
    tokens: list[Token] = []
    brackets: list[tuple[int, str]] = []
    column = 0
    if state:
        column, state = _string(text, 0, 0, state, tokens)
    if not state:
        state = _code(text[:LONGEST], column, tokens, brackets)
    return Line(tuple(tokens), tuple(brackets), state)


def is_code(text: str, state: str, column: int) -> bool:
    """Whether a character typed at this column would be code, not string or comment."""
    tokens, _, state = read(text[:column], state)
    here = [token for token in tokens if token.end == column]
    for token in here:
        if token.name == "comment" or (token.name == "string" and not _is_closed(text, token)):
            # Within an open formatted string the fields are code.
            return any(t.name == "plain" and text[column - 1] != "}" for t in here)
    return not state


def _is_closed(text: str, token: Token) -> bool:
    string = text[token.start : token.end]
    match = PARTS.match(string)
    if match is None or match.lastgroup != "string":
        return True  # the end of a string that began on an earlier line
    quote = match.group().lstrip(PREFIXES)
    body = BODIES[quote].match(string, match.end())
    return body is not None and string.startswith(quote, body.end())


def _code(text: str, column: int, tokens: list[Token], brackets: list[tuple[int, str]]) -> str:
    """Read code from a column on. Returns the string that it ends within."""
    before = ""
    if not column:
        column, before = _beginning(text, tokens)
    while match := PARTS.search(text, column):
        kind, start, column = match.lastgroup, match.start(), match.end()
        word = match.group()
        if kind == "string":
            quote = word.lstrip(PREFIXES)
            formatted = "f" if set(word.lower()) & {"f", "t"} else ""
            column, state = _string(text, start, column, formatted + quote, tokens)
            if state:
                return state
        elif kind == "bracket":
            brackets.append((start, word))
        elif kind == "name":
            before = "." if text[:start].endswith(".") else before
            if name := _name(word, before, text[column : column + 1]):
                tokens.append(Token(start, column, name))
        elif kind is not None:
            tokens.append(Token(start, column, kind))
        before = word
    return ""


def _beginning(text: str, tokens: list[Token]) -> tuple[int, str]:
    """What has a meaning at the beginning of a line alone: where to go on, and the word before."""
    if match := DECORATOR.match(text):
        tokens.append(Token(match.start(1), match.end(1), "decorator"))
        return match.end(1), ""
    if match := SOFT.match(text):
        group = match.lastindex or 1
        tokens.append(Token(match.start(group), match.end(group), "keyword"))
        return match.end(group), match.group(group)
    return 0, ""


def _name(word: str, before: str, after: str) -> str:
    if before != "." and word in KEYWORDS:
        return "keyword"
    if before != "." and word in CONSTANTS:
        return "number"
    if before in ("def", "class"):
        return "definition"
    return "call" if after == "(" else ""


def _string(text: str, start: int, column: int, state: str, tokens: list[Token]) -> tuple[int, str]:
    """Read a string whose body begins at `column`. Returns its end, and `state` if it goes on."""
    quote = state.lstrip("f")
    body = BODIES[quote].match(text, column)
    end = body.end() if body is not None else column
    closed = text.startswith(quote, end)
    rest = text[end:]
    end = end + len(quote) if closed else len(text)
    tokens.append(Token(start, end, "string"))
    if state.startswith("f"):
        _fields(text, column, end - len(quote) if closed else end, tokens)
    goes_on = not closed and (len(quote) == 3 or rest == "\\")
    return end, state if goes_on else ""


def _fields(text: str, start: int, end: int, tokens: list[Token]) -> None:
    """The expressions within a formatted string are code."""
    for match in FIELD.finditer(text, start, end):
        if match.group(1) is None:
            continue
        tokens.append(Token(match.start(), match.end(), "plain"))
        inner: list[Token] = []
        _code(text[: match.end(1)], match.start(1), inner, [])
        tokens.extend(inner)
