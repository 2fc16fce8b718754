"""What a failing line mentions: names, attribute chains and constant subscripts, with their roles.

Nothing is evaluated here. From Python 3.11 on the interpreter says which expression of the line
failed; before, or when that does not fit the source, the whole statement counts.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST_SOURCE = 200_000
"""Characters of a program that is still parsed to explain its error."""
LONGEST_TEXT = 60


@dataclass(frozen=True)
class Span:
    """Where the failing expression stands: lines from 1, columns in UTF-8 bytes from 0."""

    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(frozen=True)
class Mention:
    """A part of the failing expression that names a value. roles: as in `Operand`."""

    node: ast.expr
    roles: tuple[str, ...]

    @property
    def text(self) -> str:
        """As the program writes it."""
        return text_of_node(self.node)


OPERATIONS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.AugAssign)


def failing_node(source: str, line: int, span: Span | None) -> ast.AST | None:
    """The expression or statement that failed, or None if the source does not tell.

    line: the one that was under way. span: None where the interpreter keeps no columns.
    """
    if len(source) > LARGEST_SOURCE:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if span is not None:
        exact = [node for node in ast.walk(tree) if _fits(node, span)]
        if exact:
            # `x` as a statement has the place of `x` as an expression: the inner one is later.
            node = _with_value(tree, exact[-1])
            return _header(node) if isinstance(node, ast.stmt) else node
    return _only_operation(tree, line)


def _fits(node: ast.AST, span: Span) -> bool:
    if not isinstance(node, (ast.expr, ast.stmt)):
        return False
    wanted = (span.line, span.end_line, span.column, span.end_column)
    if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == wanted:
        return True
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    # A method that stands on another line than its object: the call begins at the method's name.
    column = (node.func.end_col_offset or 0) - len(node.func.attr.encode())
    return (node.func.end_lineno, node.end_lineno, column, node.end_col_offset) == wanted


def _with_value(tree: ast.AST, node: ast.AST) -> ast.AST:
    """The whole assignment, when it is its target that failed."""
    if isinstance(getattr(node, "ctx", None), ast.Store):
        for statement in ast.walk(tree):
            if isinstance(statement, ast.Assign) and node in statement.targets:
                return ast.Assign([node], statement.value)
    return node


def _only_operation(tree: ast.AST, line: int) -> ast.AST | None:
    """The operation of the statement at this line if there is one alone, else the statement."""
    statement = _statement(tree, line)
    if statement is None:
        return None
    found = [node for node in ast.walk(_header(statement)) if isinstance(node, OPERATIONS)]
    return found[0] if len(found) == 1 else _header(statement)


def _statement(tree: ast.AST, line: int) -> ast.stmt | None:
    """The innermost statement that covers a line."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node  # outer ones come first
    return found


def _header(statement: ast.stmt) -> ast.AST:
    """What a statement evaluates itself: of a compound one what stands before its colon."""
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        return statement
    parts = [
        child.context_expr if isinstance(child, ast.withitem) else child
        for child in ast.iter_child_nodes(statement)
        if isinstance(child, (ast.withitem, ast.expr))
    ]
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())


def mentions(node: ast.AST) -> list[Mention]:
    """What a failing expression names: the operands of its operation first, then the rest."""
    direct = dict(_direct(node))
    found = [Mention(part, (role,)) for part, role in direct.items() if is_chain(part)]
    seen = {id(mention.node) for mention in found}
    for part in _chains(node):
        if id(part) not in seen and (part is not node or not direct):
            found.append(Mention(part, ()))
    return found


def arguments(node: ast.AST) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    """The arguments of a call by position and by keyword; nothing after a starred one."""
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return [], {}
    return node.args, {k.arg: k.value for k in node.keywords if k.arg is not None}


def _direct(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The operands of an operation, and what they are to it."""
    if isinstance(node, ast.BinOp):
        yield node.left, "left"
        yield node.right, "right"
    elif isinstance(node, ast.AugAssign):
        yield node.target, "left"
        yield node.value, "right"
    elif isinstance(node, ast.Compare):
        yield node.left, "left"
        yield node.comparators[0], "right"
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, "owner"
    elif isinstance(node, ast.Subscript):
        yield node.value, "owner"
        yield from _indices(node.slice)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Assign):
        yield from _of_assignment(node)
    elif isinstance(node, ast.Attribute):
        yield node, "value"
        yield node.value, "owner"
    elif isinstance(node, ast.expr) and is_chain(node):
        yield node, "value"


def _indices(index: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(index, ast.Tuple):
        for number, part in enumerate(index.elts):
            yield part, f"index{number}"
    else:
        yield index, "index"


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    yield node.func, "callee"
    if isinstance(node.func, ast.Attribute):
        yield node.func.value, "owner"
    by_position, by_keyword = arguments(node)
    for number, argument in enumerate(by_position):
        yield argument, f"arg{number}"
        if isinstance(argument, (ast.List, ast.Tuple)):
            for item, part in enumerate(argument.elts):
                yield part, f"item{item}"
    for name, argument in by_keyword.items():
        yield argument, name


def _of_assignment(node: ast.Assign) -> Iterator[tuple[ast.expr, str]]:
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        yield from _direct(target)
    elif isinstance(target, ast.Attribute):
        yield target.value, "owner"
    yield node.value, "value"


def is_chain(node: ast.expr) -> bool:
    """A name, or attributes and subscripts of one that can be looked up without running code."""
    while True:
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.Attribute) or (
            isinstance(node, ast.Subscript) and key_of(node.slice) is not None
        ):
            node = node.value
        else:
            return False


def key_of(index: ast.expr) -> ast.expr | None:
    """A subscript that is a constant, a negative number or a name."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        return index if isinstance(index.operand, ast.Constant) else None
    return index if isinstance(index, (ast.Constant, ast.Name)) else None


def _chains(node: ast.AST) -> Iterator[ast.expr]:
    """The longest chains within, in the order of the source; lambdas and the like left out."""
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return  # what is assigned to has no value yet
    if isinstance(node, ast.expr) and is_chain(node):
        yield node
        return
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and child is node.func and isinstance(child, ast.Attribute):
            yield from _chains(child.value)  # the method is no value, its owner is
        else:
            yield from _chains(child)


def text_of_node(node: ast.expr) -> str:
    """An expression as Python writes it, shortened in the middle if it is long."""
    text = ast.unparse(node)
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2 - 1
    return f"{text[:half]} … {text[-half:]}"
