"""Whether a lesson prints the key line of its own exercise."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensortutor.course.material import Failure, Pane
from tensortutor.course.model import JUDGED, Lesson
from tensortutor.course.read_file import NOT_PYTHON

EVERYDAY = frozenset((
    "print", "len", "range", "zip", "enumerate", "sorted", "reversed", "list", "tuple", "dict",
    "set", "int", "float", "str", "bool", "abs", "isinstance", "getattr", "setattr", "hasattr",
    "super", "__init__", "append", "extend", "items", "keys", "values", "join", "format", "item",
    "tolist", "size", "dim", "numel", "to", "cpu", "cuda", "double", "long", "clone", "detach",
    "tensor", "zeros", "ones", "empty", "zeros_like", "ones_like",
    "arange", "manual_seed", "randn", "rand", "no_grad", "backward", "step", "zero_grad",
    "parameters",
))  # fmt: skip
"""Calls that decide nothing: they stand in any program."""
EVERYDAY_BARE = frozenset(("sum", "mean", "min", "max"))
"""The same, as long as they have no arguments."""
MESSAGE = (
    "this line shows what decides the exercise: {} in {}. Give the exercise a turn of its own, or "
    'write in the check file key_line_shown("{}", because="...")'
)
COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With,
    ast.Try,
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Call:
    """A call as a line shows it. name: the last part of the function's.

    form: its arguments with every variable as `_`, so that `grad(loss, w, retain_graph=True)` and
    `grad(y, x, retain_graph=True)` are the same.
    """

    name: str
    form: str

    def __str__(self) -> str:
        return f"{self.name}({self.form})"


def key_lines(lesson: Lesson, shown: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(line, message) for each line of the lesson that holds all decisive calls of a definition.

    shown: names of calls that the lesson may show, as "torch.where". Each function and class of
    the solution is looked at on its own, and so are the statements outside of them.
    """
    task = lesson.task
    starter = lesson.program(task.pane.source) if task.pane is not None else ""
    given = {call for _, calls in statements(starter) for call in calls}
    allowed = {name.rpartition(".")[2] for name in shown}
    for name, calls in definitions(task.solution or ""):
        everyday = EVERYDAY | allowed
        decisive = {c for c in calls - given if c.name not in everyday and not _is_bare(c)}
        if not decisive:
            continue
        for first, source in programs(lesson):
            for line, there in statements(source):
                if decisive <= there:
                    called = " and ".join(f"`{call}`" for call in sorted(decisive))
                    yield first + line, MESSAGE.format(called, name, min(decisive).name)


def programs(lesson: Lesson) -> Iterator[tuple[int, str]]:
    """(line of the fence, source) of each program that a lesson shows, its task left out."""
    for step in lesson.steps:
        for block in step.blocks:
            if isinstance(block, Failure) or (isinstance(block, Pane) and block.kind not in JUDGED):
                yield block.line, block.source


def definitions(source: str) -> Iterator[tuple[str, set[Call]]]:
    """(name, calls) of each definition of a program, and of what stands outside of them."""
    rest: set[Call] = set()
    for node in _body(source):
        calls = set(_calls(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, calls
        else:
            rest |= calls
    yield "the program", rest


def statements(source: str) -> Iterator[tuple[int, set[Call]]]:
    """(line, calls) of each statement of a program; of a compound one, its head."""
    for module in _body(source):
        for node in ast.walk(module):
            if isinstance(node, ast.stmt):
                parts = _head(node) if isinstance(node, COMPOUND) else [node]
                yield node.lineno, {call for part in parts for call in _calls(part)}


def _is_bare(call: Call) -> bool:
    return call.name in EVERYDAY_BARE and not call.form


def _body(source: str) -> list[ast.stmt]:
    """The statements of a program; none if it is not Python, as an error program may be."""
    try:
        return ast.parse(source).body
    except NOT_PYTHON:
        return []


def _head(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a compound statement that are no statements themselves."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield child


def _calls(node: ast.AST) -> Iterator[Call]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            function = call.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = name or getattr(function, "id", "")
            if name:
                yield Call(name, _form(call))


def _form(call: ast.Call) -> str:
    """The arguments, keywords in alphabetical order, without the names of variables."""
    bare = [ast.unparse(_Anonymous().visit(ast.parse(ast.unparse(a), mode="eval")))
            if not isinstance(a, ast.Starred) else "*_" for a in call.args]  # fmt: skip
    named = sorted(
        f"{k.arg}={ast.unparse(_Anonymous().visit(ast.parse(ast.unparse(k.value), mode='eval')))}"
        for k in call.keywords
    )
    return ", ".join((*bare, *named))


class _Anonymous(ast.NodeTransformer):
    """Every name, attribute of a name, and call's result becomes `_`."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("_", node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.Name:
        return ast.Name("_", node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.Name:  # noqa: ARG002
        return ast.Name("_", ast.Load())
