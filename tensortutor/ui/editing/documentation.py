"""What PyTorch says of a name, made ready to be read: calls, a summary, examples, the rest.

Docstrings are reStructuredText of many hands. Their marks are taken off; what is no mark stays.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from textual.content import Content

from tensortutor.plaintext import visible
from tensortutor.protocol.assist import Documentation
from tensortutor.ui.editing import line_lexer

ROLE = re.compile(r":(?:[a-z]+:)?([a-z]+):`~?([^`<]*?)(?:\s*<[^`>]*>)?`")
LITERAL = re.compile(r"``([^`]+)``|`([^`<]+?)(?:\s*<[^`>]*>)?`__?|\*\*([^*]+)\*\*")
DIRECTIVE = re.compile(r"\s*\.\. (?:([\w-]+)::\s*(.*)|.*)")
SPOKEN = {
    "note": "Note:", "warning": "Warning:", "seealso": "See also:", "deprecated": "Deprecated:",
    "admonition": "", "tip": "Tip:",
}  # fmt: skip
SECTION = re.compile(r"\s*([A-Z][\w ]{1,24}):{1,2}\s*$")
EXAMPLE = re.compile(r"\s*(?:Examples?|Usage)\b.*:\s*$", re.IGNORECASE)
LATEX = (
    (re.compile(r"\\(?:text|mathrm|mathbf|operatorname|mathcal|texttt|bf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"(\1) / (\2)"),
    (re.compile(r"\\sqrt\s*\{([^{}]*)\}"), r"sqrt(\1)"),
    (re.compile(r"\\(?:left|right|displaystyle|quad|,|;|!|:)"), ""),
    (re.compile(r"\\times\b"), "x"), (re.compile(r"\\cdot\b"), "*"),
    (re.compile(r"\\leq?\b"), "<="),
    (re.compile(r"\\geq?\b"), ">="), (re.compile(r"\\in\b"), "in"), (re.compile(r"\\sum\b"), "sum"),
    (re.compile(r"\\(?:ldots|dots|cdots)\b"), "..."), (re.compile(r"\\infty\b"), "inf"),
    (re.compile(r"\\([a-zA-Z]+)"), r"\1"), (re.compile(r"\\([_{}#%&])"), r"\1"),
)  # fmt: skip
"""Formulas in a terminal: the commonest commands, and no backslashes."""
CODE, HEAD, DIM = "$text-primary", "bold $accent", "$foreground 66%"


@dataclass
class Parts:
    """A docstring taken apart."""

    summary: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def first_words(doc: Documentation) -> tuple[str, str]:
    """How a name is called, or what it is; and the first sentence about it."""
    call = doc.signatures[0] if doc.signatures else doc.kind
    words = " ".join(line.strip() for line in apart(doc.text).summary)
    words = plain(words)
    sentence = re.match(r".*?[.!?](?=\s|$)", words)
    return visible(call), visible(sentence.group() if sentence else words)


def page(doc: Documentation) -> Content:
    """All of it, the calls first."""
    parts = apart(doc.text)
    lines = [code(visible(call)) for call in doc.signatures]
    if not doc.signatures:
        lines.append(Content.styled(visible(f"{doc.name}: {doc.kind}"), CODE))
    for title, text in (("", parts.summary), ("Examples", parts.examples), ("", parts.rest)):
        if not text:
            continue
        lines.append(Content(""))
        if title:
            lines.append(Content.styled(title, HEAD))
        lines += formatted(text)
    return Content("\n").join(lines)


def apart(text: str) -> Parts:
    """The first paragraph, the examples, and what is left in its order."""
    lines = text.replace("\t", "    ").split("\n")
    parts = Parts()
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and lines[0].strip() and not DIRECTIVE.match(lines[0]):
        parts.summary.append(lines.pop(0))
    in_examples, margin = False, 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if EXAMPLE.match(line):
            in_examples, margin = True, indent
            continue
        if (
            in_examples
            and line.strip()
            and indent <= margin
            and not line.lstrip().startswith(">>>")
        ):
            in_examples = False
        (parts.examples if in_examples else parts.rest).append(line)
    return Parts(trimmed(parts.summary), trimmed(parts.examples), trimmed(parts.rest))


def trimmed(lines: list[str]) -> list[str]:
    """Without empty lines at the ends and more than one between, moved to the left."""
    found: list[str] = []
    for line in lines:
        if line.strip() or (found and found[-1].strip()):
            found.append(line.rstrip())
    while found and not found[-1]:
        found.pop()
    margin = min((len(line) - len(line.lstrip()) for line in found if line), default=0)
    return [line[margin:] for line in found]


def plain(text: str) -> str:
    """Text without the marks within its lines."""
    text = ROLE.sub(lambda m: formula(m.group(2)) if m.group(1) == "math" else m.group(2), text)
    return LITERAL.sub(lambda m: m.group(1) or m.group(2) or m.group(3), text)


def formula(text: str) -> str:
    """A formula without its commands."""
    for pattern, instead in LATEX:
        text = pattern.sub(instead, text)
    return re.sub(r"[{}]", "", text).strip()


def formatted(lines: list[str]) -> Iterator[Content]:
    """Lines of a docstring as they are shown."""
    in_math = -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= in_math:
            in_math = -1
        if directive := DIRECTIVE.match(line):
            name, words = directive.group(1) or "", directive.group(2) or ""
            if name == "math":
                in_math = indent
            spoken = f"{SPOKEN.get(name, '')} {plain(words)}".strip()
            if spoken:
                yield Content(" " * indent) + Content.styled(visible(spoken), HEAD)
        elif in_math >= 0:
            yield Content.styled(visible(" " * indent + formula(line)), DIM)
        elif line.lstrip().startswith((">>>", "...")):
            yield code(visible(line))
        elif SECTION.match(line):
            yield Content.styled(visible(line.rstrip(": ")), HEAD)
        else:
            yield Content(visible(plain(line)))


def code(line: str) -> Content:
    """A line of Python, coloured."""
    content = Content(line)
    for start, end, name in line_lexer.read(line).tokens:
        content = content.stylize(COLOURS.get(name, ""), start, end)
    return content


COLOURS = {
    "keyword": "$text-secondary", "string": "$text-success", "number": "$text-warning",
    "call": "$text-primary", "definition": "bold $text-primary",
    "comment": "italic $foreground 66%",
}  # fmt: skip
"""As the editor's, in lesson.tcss."""
