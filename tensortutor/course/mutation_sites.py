"""Finds the places of a program where a single edit fits, and makes it there.

Whoever imports this needs libcst, which only authors of lessons install.
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from tensortutor.course.mutation_operators import KINDS, Kind, number_of
from tensortutor.course.mutation_tables import EVEN

TALKS = (cst.Annotation, cst.Import, cst.ImportFrom, cst.FormattedString, cst.Global, cst.Nonlocal)
"""What no check can be expected to judge: annotations and messages."""
SPACE_INSIDE = re.compile(r"(?<=[(\[{]) | (?=[)\]}])")


@dataclass(frozen=True)
class Edit:
    """One edit, made. kind, line, before, after: as in `mutate.Mutant`. source: the program."""

    kind: str
    source: str
    line: int
    before: str
    after: str


def edits_of(source: str, lines: Container[int], *, prints: bool) -> Iterator[Edit]:
    """The edits of the statements that begin in `lines`, in the order of the text.

    prints: edit what is printed, too.
    """
    wrapper = MetadataWrapper(cst.parse_module(source))
    finder = Finder(lines, prints)
    wrapper.visit(finder)
    module = wrapper.module
    for place in finder.places:
        edited, statement = (
            around.deep_replace(place.old, place.new) for around in (module, place.statement)
        )
        assert isinstance(edited, cst.Module)
        assert isinstance(statement, cst.CSTNode)
        before, after = header(module, place.statement), header(module, statement)
        yield Edit(place.kind.name, edited.code, place.line, before, after)


@dataclass(frozen=True)
class Place:
    """A node, what may take its place, and the innermost statement around it."""

    kind: Kind
    old: cst.CSTNode
    new: cst.CSTNode
    statement: cst.CSTNode
    line: int


class Finder(cst.CSTVisitor):
    """Collects the places of a module where an edit fits."""

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self, lines: Container[int], prints: bool) -> None:
        super().__init__()
        self.places: list[Place] = []
        self._lines = lines
        self._prints = prints
        self._statements: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note what may take this node's place. Returns whether to look inside it."""
        if isinstance(node, TALKS) or self._is_idle(node):
            return False
        if isinstance(node, cst.BaseStatement):
            if not self._statements and self._line(node) not in self._lines:
                return False
            self._statements.append(node)
        if self._statements:
            self._note(node)
        inner_sign = isinstance(node, cst.UnaryOperation) and isinstance(
            node.expression, (cst.Integer, cst.Float)
        )
        return not (inner_sign or isinstance(node, cst.Raise))

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Forget a statement that is over."""
        if self._statements and self._statements[-1] is original_node:
            self._statements.pop()

    def _note(self, node: cst.CSTNode) -> None:
        for kind in KINDS:
            if isinstance(node, kind.type) and not self._is_barred(kind, node):
                statement = self._statements[-1]
                line = self._line(statement)
                for new in kind.make(node):
                    self.places.append(Place(kind, node, new, statement, line))

    def _line(self, node: cst.CSTNode) -> int:
        line: int = self.get_metadata(PositionProvider, node).start.line
        return line

    def _is_idle(self, node: cst.CSTNode) -> bool:
        """A statement that does nothing: a docstring, `...`, or a print that nobody reads."""
        if not isinstance(node, cst.Expr):
            return False
        value = node.value
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
            return value.func.value == "print" and not self._prints
        return isinstance(value, (cst.BaseString, cst.Ellipsis))

    def _is_barred(self, kind: Kind, node: cst.CSTNode) -> bool:
        """The edit would repeat another one, or break the syntax around it."""
        parent = self.get_metadata(ParentNodeProvider, node, None)
        if kind.name == "removed call":
            return isinstance(parent, (cst.Expr, cst.Decorator, cst.WithItem))
        if kind.name == "index":
            stored = isinstance(parent, (cst.AugAssign, cst.For)) and parent.target is node
            return stored or isinstance(parent, (cst.AssignTarget, cst.Del))
        return kind.name == "operands" and isinstance(parent, cst.CSTNode) and is_even(parent, node)


def is_even(around: cst.CSTNode, node: cst.CSTNode) -> bool:
    """A difference of which only the size counts: `a - b` and `b - a` mean the same there."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
        return False
    if isinstance(around, cst.BinaryOperation) and isinstance(around.operator, cst.Power):
        power = number_of(around.right)
        return around.left is node and power is not None and power % 2 == 0
    return isinstance(around, cst.Attribute) and around.attr.value in EVEN


class Flat(cst.CSTTransformer):
    """Puts a statement on one line, without comments."""

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:
        """Line breaks in brackets become spaces; what stands behind a statement goes."""
        if isinstance(original_node, cst.ParenthesizedWhitespace):
            return cst.SimpleWhitespace(" ")
        if isinstance(original_node, cst.TrailingWhitespace):
            return cst.TrailingWhitespace()
        return updated_node


def header(module: cst.Module, statement: cst.CSTNode) -> str:
    """A statement on one line; of a compound one, its header with its decorators."""
    bare: dict[str, Any] = {"leading_lines": (), "lines_after_decorators": (), "orelse": None}
    if isinstance(getattr(statement, "body", None), cst.IndentedBlock):
        bare["body"] = cst.SimpleStatementSuite([cst.Pass()])
    known = {name: value for name, value in bare.items() if hasattr(statement, name)}
    flat = statement.with_changes(**known).visit(Flat())
    assert isinstance(flat, cst.CSTNode)
    text = SPACE_INSIDE.sub("", " ".join(module.code_for_node(flat).split()))
    return text.removesuffix(" pass") if "body" in bare else text
