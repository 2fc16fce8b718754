"""The sentences of a task, and the checks that hold an answer to them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensortutor.course.check_file import CheckFile, Quote
from tensortutor.course.material import Prose, Step
from tensortutor.course.read_file import NOT_PYTHON

TWO_SIDED = (
    "or", "either", "both", "each", "every time", "whether", "any order", "at most", "at least",
    "no more than", "no fewer than", "always", "never", "unless", "with and without",
)  # fmt: skip
"""Words that give a sentence two sides: an answer can hold to one of them and break the other.

Only the clearly two-sided words stand here; a word inside a piece of code does not count.
"""
SIDES = re.compile(rf"\b(?:{'|'.join(TWO_SIDED)})\b", re.IGNORECASE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
SHORT = re.compile(r"\b(?:e\.g|i\.e|vs|cf|approx|resp|incl|ca)\.", re.IGNORECASE)
END = re.compile(r"(?<=[.?!])[\"\')*\]]*\s+")


@dataclass(frozen=True)
class Sentence:
    """A sentence of the task's prose. line: where its paragraph begins."""

    text: str
    line: int

    @property
    def two_sided(self) -> str:
        """The word that gives it two sides, or ""."""
        return two_sided(self.text)


def two_sided(text: str) -> str:
    """The first word outside of code that gives a text two sides, or ""."""
    found = SIDES.search(CODE.sub("", text))
    return found[0].lower() if found else ""


class Task:
    """The text of an exercise: the prose of its step and the docstrings of its starter."""

    def __init__(self, step: Step) -> None:
        """step: the one with the exercise or the program to fix."""
        self.sentences = [
            Sentence(sentence, line)
            for line, text in _paragraphs(step)
            for sentence in _sentences(text)
        ]
        self._prose = _bare(" ".join(sentence.text for sentence in self.sentences))
        self._places = _places([sentence.text for sentence in self.sentences])
        source = step.pane.source if step.pane is not None else ""
        self._docstrings = [_bare(" ".join(text.split())) for text in _docstrings(source)]

    def holds(self, words: str) -> bool:
        """The task says these words, white space, backticks and asterisks apart."""
        bare = _bare(" ".join(words.split()))
        return bare in self._prose or any(bare in text for text in self._docstrings)

    def quoted(self, words: str) -> list[Sentence]:
        """The sentences of the prose that these words are a part of."""
        bare = _bare(" ".join(words.split()))
        found = self._prose.find(bare)
        if found < 0 or not bare:
            return []
        end = found + len(bare)
        return [
            sentence
            for sentence, (first, last) in zip(self.sentences, self._places, strict=True)
            if first < end and found < last
        ]

    def background(self, beginning: str) -> Sentence | None:
        """The sentence that begins with these words."""
        bare = _bare(" ".join(beginning.split()))
        return next((s for s in self.sentences if _bare(s.text).startswith(bare)), None)


def uncovered(task: Task, judge: CheckFile) -> Iterator[tuple[bool, int, str]]:
    """(in the check file, line, message) for each sentence or quote that does not hold together."""
    quotes: dict[Sentence, list[Quote]] = {sentence: [] for sentence in task.sentences}
    for quote in judge.quotes:
        if not task.holds(quote.words):
            yield True, quote.line, f"the task does not say {quote.words!r}: quote it word for word"
        sentences = task.quoted(quote.words)
        for sentence in sentences:
            quotes[sentence].append(quote)
        if not sentences and task.holds(quote.words):
            same = [other for other in judge.quotes if other.words == quote.words]
            word = two_sided(quote.words)
            if word and not _both(same) and quote is same[0]:
                yield True, quote.line, _one_side(quote.words, word, same)
    silent = set()
    for known in judge.background:
        told = task.background(known.text)
        if told is None:
            yield True, known.line, f"no sentence of the task begins with {known.text!r}"
        else:
            silent.add(told)
    for sentence, of_it in quotes.items():
        if sentence in silent:
            continue
        if not of_it:
            yield (
                False,
                sentence.line,
                (
                    f"no check holds an answer to this sentence: {sentence.text!r}. Quote it with "
                    "holds= in a check, or list it in background(...) if it states no rule"
                ),
            )
        elif sentence.two_sided and not _both(of_it):
            yield True, of_it[0].line, _one_side(sentence.text, sentence.two_sided, of_it)


def _one_side(text: str, word: str, quotes: list[Quote]) -> str:
    sides = sorted({quote.side for quote in quotes if quote.side})
    known = f"the side {sides[0]!r} alone is tried" if sides else "no side is named"
    return (
        f"the sentence {text!r} has two sides ({word!r}), and {known}: name another check's "
        'side="...", or say both_sides=True where a check tries both'
    )


def _both(quotes: list[Quote]) -> bool:
    """The checks try both sides of a sentence."""
    return any(q.both_sides for q in quotes) or len({q.side for q in quotes if q.side}) > 1


def _paragraphs(step: Step) -> Iterator[tuple[int, str]]:
    """(line, text) of each paragraph, list item and table cell, white space folded."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    for block in step.blocks:
        if isinstance(block, Prose):
            for token in parser.parse(block.markdown):
                if token.type == "inline" and token.map is not None:
                    yield block.line + token.map[0], " ".join(token.content.split())


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a paragraph; a stop inside of code or an abbreviation ends none."""
    masked = CODE.sub(lambda code: "x" * len(code[0]), text)
    masked = SHORT.sub(lambda short: "x" * len(short[0]), masked)
    start = 0
    for end in [*(found.end() for found in END.finditer(masked)), len(text)]:
        if sentence := text[start:end].strip():
            yield sentence
        start = end


def _docstrings(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except NOT_PYTHON:
        return
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text


def _bare(text: str) -> str:
    """Without the signs that mark code and emphasis."""
    return text.replace("`", "").replace("*", "")


def _places(texts: list[str]) -> list[tuple[int, int]]:
    """Where each of these sentences begins and ends in all of them, bare, joined by spaces."""
    places, start = [], 0
    for text in texts:
        length = len(_bare(text))
        places.append((start, start + length))
        start += length + 1
    return places
