"""Texts as Markdown, and the short texts of the atlas: paragraphs, code indented by four."""

import textwrap
from collections.abc import Iterator
from itertools import groupby


def trimmed(text: str) -> str:
    """A text without empty lines around it. Its first line may be indented: that is code."""
    return text.strip("\n").rstrip()


def paragraphs(text: str) -> Iterator[tuple[bool, str]]:
    """The pieces of an explanation's text: (is it code, the text), prose on one line each."""
    for is_code, lines in groupby(text.split("\n"), lambda line: line.startswith("    ")):
        block = "\n".join(lines)
        if is_code:
            yield True, textwrap.dedent(block)
        else:
            for part in block.split("\n\n"):
                if part.strip():
                    yield False, " ".join(part.split())


def fenced(code: str, language: str) -> str:
    """Code as a Markdown fence that nothing in the code can end."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"
