"""What a machine can judge of a lesson's texts: sentences, signs, names before their time."""

import ast
import re
from collections.abc import Iterator

import torch
from torch import nn

from tensortutor.course.material import Look, Prose, Quiz, Try
from tensortutor.course.model import Lesson

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SHAPE = re.compile(r"\((?:-?\w+, ?)+(?:-?\w+)?\)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
COMMENT = re.compile(r"<!--.*?(-->|$)", re.DOTALL)
SHORT = re.compile(r"\b(e\.g|i\.e|vs|cf|approx|resp|incl|ca|Fig)\.", re.I)
END = re.compile(r"(?<=[.?!])[\"')\]]*\s+|(?<=[.?!][\"')\]])\s+")
LOUD = re.compile(r"[^\W\d]{2}[\"')\]]*!(?!=)")  # n! and 9! are factorials
NAME = re.compile(r"[A-Za-z_]\w*")

TORCH = (
    torch, torch.Tensor, nn, nn.Module, nn.functional, nn.init, nn.utils, torch.linalg, torch.fft,
    torch.special, torch.autograd, torch.optim, torch.utils.data, torch.func, torch.amp,
)  # fmt: skip
TORCH_NAMES = {name for place in TORCH for name in dir(place) if not name.startswith("_")}
PYTHONS = (ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.JoinedStr)


def paragraphs(markdown: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """(line, text) of each paragraph and list item; fences, headings and tables left out."""
    fence, line, lines = "", first, list[str]()
    for number, text in enumerate([*markdown.split("\n"), ""], first):
        opened = FENCE.match(text)
        skipped = bool(fence or opened or text.lstrip().startswith(("|", "#")) or not text.strip())
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        if lines and (skipped or ITEM.match(text)):
            yield line, " ".join(lines)
            lines = []
        if not skipped:
            line = line if lines else number
            lines.append(ITEM.sub("", text).strip(" >"))


def plain(text: str) -> str:
    """A paragraph without comments and Markdown's signs; a piece of code is one word, as is a
    shape."""
    text = COMMENT.sub("", text)
    return SHAPE.sub("Code", LINK.sub(r"\1", SPAN.sub("Code", text))).replace("*", "")


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph."""
    return [part for part in END.split(SHORT.sub(r"\1", plain(text))) if part.strip()]


def words(sentence: str) -> int:
    """How many words a sentence has: what has a letter or a digit between two spaces."""
    return len(re.findall(r"\S*\w\S*", sentence))


def texts(lesson: Lesson) -> Iterator[tuple[int, str]]:
    """(line, Markdown) of everything in a lesson that is told rather than run."""
    for step in lesson.steps:
        for block in step.blocks:
            if isinstance(block, Prose):
                yield block.line, block.markdown
            elif isinstance(block, Quiz):
                told = (block.ask, block.explain, *(text for _, text in block.wrong))
                yield from ((block.line, text) for text in told)
            elif isinstance(block, (Look, Try)):
                yield block.line, block.say
        yield from ((step.line, hint) for hint in step.hints)
    yield 1, lesson.goal


def too_long(lesson: Lesson, most: int) -> Iterator[str]:
    """The sentences of more than `most` words."""
    for line, paragraph in told(lesson):
        for sentence in sentences(paragraph):
            if words(sentence) > most:
                yield f"{line}: {words(sentence)} words: {sentence[:60]}..."


def loud(lesson: Lesson) -> Iterator[str]:
    """The paragraphs with exclamation marks."""
    for line, paragraph in told(lesson):
        if LOUD.search(plain(paragraph)):
            yield f"{line}: an exclamation mark: {paragraph[:60]}..."


def told(lesson: Lesson) -> Iterator[tuple[int, str]]:
    """(line, text) of all paragraphs of a lesson."""
    for line, markdown in texts(lesson):
        yield from paragraphs(markdown, line)


def introduced(lesson: Lesson) -> set[str]:
    """The names in the code that a lesson shows before it asks for an answer."""
    shown = []
    for step in lesson.steps:
        for block in step.blocks:
            if isinstance(block, (Prose, Look, Try)):
                shown.append(code_in(block.markdown))
            elif isinstance(block, Quiz):
                told = (block.ask, block.explain, *(text for _, text in block.wrong))
                shown += [code_in(text) for text in told]
                shown += map(str, (*block.choices, block.answer))
            else:
                shown.append(block.source)
                shown.append(getattr(block, "message", "") or getattr(block, "output", "") or "")
    return names_in(shown)


def given_away(lesson: Lesson) -> set[str]:
    """The names that a lesson leaves behind when it is over: those of hints and solution too."""
    later = [code_in(hint) for step in lesson.steps for hint in step.hints]
    later.append(solution_of(lesson)[1])
    return introduced(lesson) | names_in(later)


def solution_of(lesson: Lesson) -> tuple[int, str]:
    """(line, text) of a lesson's solution, "" if it has none yet."""
    found = ((s.solution_line, s.solution) for s in lesson.steps if s.solution is not None)
    return next(found, (0, ""))


def asked_for(lesson: Lesson) -> set[str]:
    """The functions and classes of the starter that the checks put to the test."""
    pane = lesson.task.pane
    assert pane is not None
    body = ast.parse(pane.source).body
    own = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return own & set(re.findall(r"\banswer\.(\w+)", lesson.judge.source))


def names_in(parts: list[str]) -> set[str]:
    return {name for part in parts for name in NAME.findall(part)}


def code_in(markdown: str) -> str:
    """The code spans and plain fences of Markdown, without the words around them."""
    fence, kept, rest = "", list[str](), list[str]()
    for text in markdown.split("\n"):
        opened = FENCE.match(text)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        else:
            (kept if fence else rest).append(text)
    kept += [span[2] for span in SPAN.finditer("\n".join(rest))]
    return "\n".join(kept)


def used(solution: str) -> dict[str, int]:
    """torch's names in a solution, each with its first line."""
    tree = ast.parse(solution)
    strangers, found = {"self", "cls", "super", *containers(tree)}, dict[str, int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            others = (alias for alias in node.names if alias.name.split(".")[0] != "torch")
            strangers |= {alias.asname or alias.name for alias in others}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            found |= {alias.name: node.lineno for alias in node.names}
    own = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in TORCH_NAMES - own:
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            if of not in strangers:
                found.setdefault(node.attr, node.lineno)
    return found


def containers(tree: ast.Module) -> set[str]:
    """The names that are given a list, set, dict or string: their methods are Python's."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = [(target, node.value)]
                if several:
                    pairs = zip(target.elts, node.value.elts, strict=False)
                found |= {ast.unparse(t) for t, value in pairs if makes_container(value)}
    return found


def makes_container(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in ("set", "list", "dict", "str", "sorted", "tuple")
    return isinstance(value, PYTHONS) or isinstance(getattr(value, "value", None), str)
