"""Where a lesson's headings and fences are: Markdown by its lines, with their numbers.

Fences follow CommonMark: backticks or tildes, closed by at least as many of the same, so that a
longer fence can hold shorter ones. Fences without a meaning for tensortutor stay in the prose.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tensortutor.course.problems import Report, listed, nearest

PYTHON = ("run", "predict", "derive", "fix", "exercise", "solution", "error")
PLAIN = ("output", "hint", "quiz", "message", "look", "try")
CUDA = "cuda"
MAY_NEED = ("run", "predict", "derive", "error", "output")
"""What may carry `needs=cuda` behind its kind."""
TABLES = ("quiz", "look", "try")
"""Fences of TOML: they have a key `needs` instead."""

MARK = re.compile(
    r"^(?P<indent> {0,3})(?:"
    r"##(?!#)(?:[ \t]+(?P<title>[^\n]*?))?(?:[ \t]+#+)?"
    r"|(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[ \t]*(?P<info>[^\n]*?)"
    r")[ \t]*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Heading:
    """A line `## title`."""

    title: str
    line: int


@dataclass(frozen=True)
class Text:
    """Prose without the blank lines around it. line: that of its first line."""

    markdown: str
    line: int


@dataclass(frozen=True)
class Fence:
    """A fence that means something. kind: one of PYTHON or PLAIN. line: that of its opening.

    needs: "cuda" if its claim can be proved on a CUDA device alone, else "".
    """

    kind: str
    body: str
    line: int
    needs: str = ""


Piece = Heading | Text | Fence


@dataclass(frozen=True)
class Mark:
    """A line that is a heading or may open or close a fence. line: index from 0."""

    line: int
    indent: int
    fence: str
    info: str
    title: str

    @property
    def kind(self) -> str:
        """The fence's meaning, or "" if it has none."""
        words = self.info.split()
        if len(words) > 1 and words[-1] == f"needs={CUDA}":
            words.pop()
        if len(words) == 2 and words[0] == "python" and words[1] in PYTHON:
            return words[1]
        return words[0] if len(words) == 1 and words[0] in PLAIN else ""

    @property
    def needs(self) -> str:
        """ "cuda" where the info says so behind a fence's kind."""
        return CUDA if self.kind and self.info.endswith(f" needs={CUDA}") else ""

    def closes(self, opening: "Mark") -> bool:
        """This line may end the fence that `opening` began."""
        return not self.info and self.as_long_as(opening)

    def as_long_as(self, opening: "Mark") -> bool:
        """A fence of the same character and at least the same length."""
        return self.fence[:1] == opening.fence[:1] and len(self.fence) >= len(opening.fence)


def scan(text: str, start: int, report: Report) -> list[Piece]:
    """The pieces of `text` from the line with index `start` on, in order."""
    lines = text.split("\n")
    marks = [mark for mark in _marks(text) if mark.line >= start]
    pieces: list[Piece] = []
    at, current = start, 0
    while current < len(marks):
        mark = marks[current]
        if not mark.fence:
            _prose(lines, at, mark.line, pieces)
            pieces.append(Heading(mark.title, mark.line + 1))
            at, current = mark.line + 1, current + 1
            continue
        end, after, current = _extent(marks, current, len(lines), report)
        if mark.kind:
            _prose(lines, at, mark.line, pieces)
            body = _body(lines[mark.line + 1 : end], mark.indent)
            pieces.append(Fence(mark.kind, body, mark.line + 1, mark.needs))
            if mark.needs and mark.kind not in MAY_NEED:
                report.add(
                    mark.line + 1,
                    f"a {mark.kind} fence cannot carry needs={CUDA}: {listed(MAY_NEED)} fences can"
                    + (f'; write the key needs = "{CUDA}"' if mark.kind in TABLES else ""),
                )
            at = after
        else:
            _doubt(mark, report)
    _prose(lines, at, len(lines), pieces)
    return pieces


def _marks(text: str) -> list[Mark]:
    marks = []
    line, counted = 0, 0
    for found in MARK.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        marks.append(
            Mark(
                line,
                len(found["indent"]),
                found["fence"] or "",
                found["info"] or "",
                found["title"] or "",
            )
        )
    return marks


def _extent(
    marks: Sequence[Mark], opening: int, line_count: int, report: Report
) -> tuple[int, int, int]:
    """Where a fence's body ends, where the text goes on, and the next mark to look at.

    A fence that is never closed ends where the next one with a meaning opens, else at the next
    heading, so that the rest of the file can still be judged.
    """
    mark = marks[opening]
    for index in range(opening + 1, len(marks)):
        other = marks[index]
        if other.closes(mark):
            return other.line, other.line + 1, index + 1
        if other.kind and other.as_long_as(mark):
            _unclosed(mark, f"before line {other.line + 1} opens another", report)
            return other.line, other.line, index
    _unclosed(mark, "until the end of the file", report)
    for index in range(opening + 1, len(marks)):
        if not marks[index].fence:
            return marks[index].line, marks[index].line, index
    return line_count, line_count, len(marks)


def _unclosed(mark: Mark, until: str, report: Report) -> None:
    report.add(mark.line + 1, f"this fence is not closed {until}: add a line {mark.fence}")


def _body(lines: Sequence[str], indent: int) -> str:
    """The lines inside a fence, without its own indentation."""
    taken = [line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines]
    return "".join(f"{line}\n" for line in taken)


def _prose(lines: Sequence[str], start: int, end: int, pieces: list[Piece]) -> None:
    """Add the prose in lines[start:end], if there is any."""
    while start < end and not lines[start].strip():
        start += 1
    while start < end and not lines[end - 1].strip():
        end -= 1
    if start < end:
        pieces.append(Text("\n".join(lines[start:end]), start + 1))


def _doubt(mark: Mark, report: Report) -> None:
    """Report a fence without a meaning that was probably to have one."""
    words = mark.info.split()
    if not words:
        return
    line, word = mark.line + 1, words[0].lower()
    if "=" in words[-1]:
        report.add(
            line,
            f"a fence has no option `{words[-1]}`: "
            f"`needs={CUDA}` is the only one, behind the fence's kind",
        )
        return
    if len(words) > 1 and (word.startswith("py") or words[1] in PYTHON):
        meant = nearest(words[1], PYTHON)[0]
        report.add(
            line,
            f"there is no fence `{mark.info}`; the nearest is `python {meant}` "
            f"(known after python: {listed(PYTHON)})",
        )
    elif word in PLAIN:
        report.add(line, f"there is no fence `{mark.info}`: write `{word}` alone")
    elif word.rstrip("s") in PLAIN:
        report.add(line, f"there is no fence `{word}`; the nearest is `{word.rstrip('s')}`")
    elif word in PYTHON:
        report.add(line, f"there is no fence `{word}`; the nearest is `python {word}`")
