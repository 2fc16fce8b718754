"""The statements of the learner's file: what each one stores, and what it computes from.

Worked out once, before the program runs, so that little is left to do at every line.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

Path = tuple[str, ...]
"""A way to a value, as the learner writes it: `("self", ".w")`, `("batch", '["x"]')`."""

LONGEST_WAY = 4
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)
"""Their heads store something only when the body begins."""
OWN_SCOPE = (
    *FUNCTIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.ClassDef,
)  # fmt: skip
INNER_FRAMES = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True)
class Target:
    """What a statement stores. how: "made", "changed" in place, or "argument" of a function."""

    path: Path
    how: str

    @property
    def name(self) -> str:
        """As the learner writes it."""
        return "".join(self.path)


@dataclass(eq=False)
class Statement:
    """A simple statement, or the head of a block.

    body: the lines of a block, whose head counts as executed when the body begins. expressions:
    what is computed. operands: the ways to the values that it is computed from. waits: the
    frame may come and go while it is under way: it has an `await` or a `yield`.
    """

    line: int
    end_line: int
    targets: tuple[Target, ...]
    expressions: tuple[ast.expr, ...]
    operands: tuple[Path, ...]
    body: range = range(0)
    waits: bool = False


WAITING = (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)


def way(node: ast.AST) -> Path | None:
    """The path of `a`, `a.b`, `a["k"]`, `a[0]` and their like; None for anything else."""
    parts: list[str] = []
    while len(parts) < LONGEST_WAY:
        if isinstance(node, ast.Name):
            return (node.id, *reversed(parts))
        if isinstance(node, ast.Attribute):
            parts.append(f".{node.attr}")
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            if type(node.slice.value) not in (int, str):
                return None
            shown = repr(node.slice.value).replace("'", '"')
            parts.append(f"[{shown}]")
        else:
            return None
        node = node.value
    return None


def within(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it that run in the same frame."""
    yield node
    if isinstance(node, OWN_SCOPE):
        return
    for child in ast.iter_child_nodes(node):
        yield from within(child)


def plan(tree: ast.Module) -> tuple[list[Statement], dict[int, Statement]]:
    """All statements of a file; and the heads of its functions, by the line of their code.

    Statements that share a line count as one.
    """
    found: list[Statement] = []
    functions: dict[int, Statement] = {}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            functions[min([node.lineno, *(d.lineno for d in node.decorator_list)])] = _head(node)
        elif isinstance(node, ast.stmt):
            statement = _statement(node)
            if statement is not None:
                found.append(statement)
    statements: list[Statement] = []
    for statement in sorted(found, key=lambda one: one.line):
        if statements and statement.line <= statements[-1].end_line:
            statement = merged(statements.pop(), statement)
        statements.append(statement)
    return statements, functions


def merged(first: Statement, second: Statement) -> Statement:
    """Two that share a line."""
    return Statement(
        first.line,
        max(first.end_line, second.end_line),
        tuple(dict.fromkeys((*first.targets, *second.targets))),
        (*first.expressions, *second.expressions),
        tuple(dict.fromkeys((*first.operands, *second.operands))),
        first.body,
        waits=first.waits or second.waits,
    )


def _statement(node: ast.stmt) -> Statement | None:
    if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Try)):
        return None
    parts: list[ast.AST] = [
        child
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
    ]
    inner = [one for part in parts for one in within(part)]
    expressions = tuple(part for part in parts if isinstance(part, ast.expr) and not stores(part))
    if isinstance(node, ast.AugAssign):
        expressions = (as_operation(node),)
    targets = tuple(dict.fromkeys(_targets(node, inner)))
    body = range(0)
    end = node.end_lineno or node.lineno
    if isinstance(node, BLOCKS):
        body = range(node.body[0].lineno, end + 1)
    if hasattr(node, "body") or hasattr(node, "cases"):
        end = max([node.lineno, *(getattr(p, "end_lineno", 0) or 0 for p in inner)])
    if isinstance(node, (ast.With, ast.AsyncWith)):
        expressions = tuple(item.context_expr for item in node.items)
    waits = any(isinstance(one, WAITING) for one in (node, *inner))
    return Statement(
        node.lineno, end, targets, expressions, operands(expressions), body, waits=waits
    )


def stores(node: ast.expr) -> bool:
    """It stands on the left of an assignment."""
    return isinstance(getattr(node, "ctx", None), ast.Store)


def as_operation(node: ast.AugAssign) -> ast.BinOp:
    """`x += y` as `x + y` whose result must fit into x."""
    operation = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
    operation.in_place = True  # type: ignore[attr-defined]
    return operation


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Statement:
    """The head of a function: each call gives it its arguments."""
    arguments = node.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    targets = tuple(Target((one.arg,), "argument") for one in names)
    end = max([node.lineno, *(one.end_lineno or 0 for one in names)])
    body = range(node.body[0].lineno, (node.end_lineno or end) + 1)
    return Statement(node.lineno, end, targets, (), (), body)


def _targets(node: ast.stmt, inner: list[ast.AST]) -> Iterator[Target]:
    if isinstance(node, ast.AugAssign):
        yield from _stored(node.target, "changed")
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _stored(target, "made")
    elif isinstance(node, (ast.AnnAssign, ast.For, ast.AsyncFor)):
        yield from _stored(node.target, "made")
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _stored(item.optional_vars, "made")
    for one in inner:
        if isinstance(one, ast.NamedExpr):
            yield from _stored(one.target, "made")
        elif isinstance(one, ast.Call):
            yield from _changed(one)


def _stored(target: ast.expr, how: str) -> Iterator[Target]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _stored(element, how)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value, how)
    else:
        path = way(target)
        if path is not None:
            yield Target(path, how)
        if isinstance(target, ast.Subscript):
            base = way(target.value)
            if base is not None:
                yield Target(base, "changed")


def _changed(call: ast.Call) -> Iterator[Target]:
    """What a call changes by the customs of torch: `x.add_(y)`, `init.zeros_(w)`, `out=y`."""
    for keyword in call.keywords:
        path = way(keyword.value) if keyword.arg == "out" else None
        if path is not None:
            yield Target(path, "changed")
    function = call.func
    if not isinstance(function, ast.Attribute):
        return
    name = function.attr
    if not name.endswith("_") or name.endswith("__") or name == "requires_grad_":
        return
    for place in (function.value, *call.args[:1]):
        path = way(place)
        if path is not None:
            yield Target(path, "changed")


def operands(expressions: tuple[ast.expr, ...]) -> tuple[Path, ...]:
    """The longest ways to values in these expressions, and the ways to what they begin with."""
    found: dict[Path, None] = {}
    for expression in expressions:
        for node in within(expression):
            path = way(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None
            if path is not None:
                found[path] = None
    return tuple(found)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)
