"""Blocks: statements that run equally often, and code that counts them.

A program's tree gets a counter at the head of every block inside a function or a loop, and each
loop tells when an iteration begins and when it has ended. So a program that is not followed for a
time is still counted exactly. The counters are constants of the code objects, so no name is added;
they stand at the places of the learner's statements, so tracebacks are the same.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, TypeGuard, TypeVar

from tensortutor.worker.lens.statements import FUNCTIONS, stores_in_head

READS_CODE = re.compile(
    r"\b(dis|bytecode|marshal|compile\w*|export|script|symbolic_trace|make_fx|_dynamo|__code__"
    r"|f_code|co_\w+|[Rr]ecursion\w*|setrecursionlimit)\b"
)
"""A program with one of these words looks at its own code, or has it translated: it stays as is."""
LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
BRANCHING = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.Match)
AST = TypeVar("AST", bound=ast.AST)
LOOPS = ("loop", "while")
MARK = "\0lens\0"
PLACE = sys.version_info >= (3, 13)
"""Whether an error about what a loop goes over is told at that expression, not at the `for`."""


@dataclass(eq=False)
class Block:
    """head: the first line of its first statement. lines: the first lines of all of them.

    parent: the block that it stands in, in the same function. loop: the innermost loop around it
    in the same function. kind: "function", "loop" (a `for`), "while", "branch" (may run or not) or
    "rest" (of a block whose statements may leave it).
    """

    number: int
    kind: str
    parent: "Block | None"
    loop: "Block | None"
    lines: list[int] = field(default_factory=list)
    simple: bool = False
    """Of a generator or coroutine: it is counted, and never a reason to follow."""


class Blocks:
    """The blocks of a file. innermost: by line, of each statement without those inside it.

    heads: the lines of functions and loops, with the blocks below them; of a `while` that stores
    something in its head, the block of the head. whiles: the lines of all `while` among them.
    uncounted: the lines of functions without counters.
    """

    def __init__(self, tree: ast.Module) -> None:
        """Changes the tree: puts the counters in."""
        self.all: list[Block] = []
        self.innermost: dict[int, Block] = {}
        self.heads: dict[int, Block] = {}
        self.whiles: set[int] = set()
        self.uncounted: list[range] = []
        self._simple = False
        self._outside(tree)
        ast.fix_missing_locations(tree)

    def _outside(self, node: ast.AST) -> None:
        """What stands in no function and no loop is never left unfollowed: it needs no counters."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                self._function(child)
            elif isinstance(child, ast.For):
                self._loop(child, None)
            elif not self._is_paced_while(child):
                self._outside(child)
        for _, part in ast.iter_fields(node):
            if isinstance(part, list):
                part[:] = [
                    self._while(one, None) if self._is_paced_while(one) else one for one in part
                ]

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if calls_itself(node) or node.body[0].lineno == node.lineno:
            self.uncounted.append(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            for child in node.body:
                self._inner_functions(child)
            return
        before, self._simple = self._simple, yields(node)
        block = self._block("function", None, None)
        doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        node.body = doc + self._body(node.body[len(doc) :], block)
        self.heads[min([node.lineno, *(d.lineno for d in node.decorator_list)])] = block
        self._simple = before

    def _inner_functions(self, node: ast.AST) -> None:
        if isinstance(node, FUNCTIONS):
            self._function(node)
            return
        for child in ast.iter_child_nodes(node):
            self._inner_functions(child)

    def _block(self, kind: str, parent: Block | None, loop: Block | None) -> Block:
        block = Block(len(self.all), kind, parent, loop, simple=self._simple)
        if kind in LOOPS:
            block.loop = block
        self.all.append(block)
        return block

    def _body(self, body: list[ast.stmt], block: Block, *, each: bool = False) -> list[ast.stmt]:
        """Statements with the counters between them. each: any of them may be the last."""
        found: list[ast.stmt] = []
        is_counted = block.kind in LOOPS and not block.simple  # by the loop itself
        for index, statement in enumerate(body):
            if not is_counted:
                found.append(counter(block, statement))
                is_counted = True
            block.lines.append(statement.lineno)
            for line in range(statement.lineno, head_end(statement) + 1):
                self.innermost.setdefault(line, block)
            found.append(self._inside(statement, block))
            if index + 1 < len(body) and (each or leaves(statement)):
                block, is_counted = self._block("rest", block, block.loop), False
        return found

    def _inside(self, statement: ast.stmt, block: Block) -> ast.stmt:
        """The statement as it is to be compiled."""
        if self._is_paced_while(statement):
            return self._while(statement, block)
        if isinstance(statement, FUNCTIONS):
            self._function(statement)
        elif isinstance(statement, ast.For):
            self._loop(statement, block)
        elif isinstance(statement, BRANCHING):
            each = isinstance(statement, ast.Try)
            for name in ("body", "orelse", "finalbody"):
                part = getattr(statement, name, [])
                if part:
                    inner = self._block("branch", block, block.loop)
                    setattr(statement, name, self._body(part, inner, each=each and name == "body"))
            for case in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                case.body = self._body(case.body, self._block("branch", block, block.loop))
            if isinstance(statement, ast.While) and stores_in_head(statement):
                self._count_head(statement, block)
        else:
            self._inner_functions(statement)
        return statement

    def _is_paced_while(self, node: object) -> TypeGuard[ast.While]:
        """One that stores something in its head is counted there, and not paced."""
        return isinstance(node, ast.While) and not self._simple and not stores_in_head(node)

    def _count_head(self, node: ast.While, parent: Block) -> None:
        """The condition `c` as `block.hit() or c`."""
        block = self.heads[node.lineno] = self._block("branch", parent, parent.loop)
        self.whiles.add(node.lineno)
        node.test = ast.copy_location(
            ast.BoolOp(ast.Or(), [called(block, "hit", node.test), node.test]), node.test
        )

    def _while(self, node: ast.While, parent: Block | None) -> ast.With:
        """A `with` around the loop, for that knows every way out of it; it adds no name."""
        block = self._block("while", parent, parent.loop if parent is not None else None)
        self.heads[node.lineno] = block
        self.whiles.add(node.lineno)
        place = node.body[0]
        node.body = self._body(node.body, block)
        node.body.insert(0, put(ast.Expr(called(block, "turn", place)), beginning(place)))
        self._otherwise(node, parent)
        around = put(ast.With([ast.withitem(placeholder(block))], []), node)
        around.body = [node]
        return around

    def _loop(self, node: ast.For, parent: Block | None) -> None:
        block = self._block("loop", parent, parent.loop if parent is not None else None)
        self.heads[node.lineno] = block
        if not block.simple:
            node.iter = turns(block, node)
        node.body = self._body(node.body, block)
        self._otherwise(node, parent)

    def _otherwise(self, node: ast.For | ast.While, parent: Block | None) -> None:
        if node.orelse:
            outer = parent.loop if parent is not None else None
            node.orelse = self._body(node.orelse, self._block("branch", parent, outer))


def head_end(node: ast.stmt) -> int:
    """The last line of a statement, or of the head of one that has statements inside."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not isinstance(body, list):
        return node.end_lineno or node.lineno
    first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
    return max(node.lineno, int(first.lineno) - 1)


def calls_itself(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A counter would change how deep it may go by one."""
    return any(
        isinstance(one, ast.Call)
        and node.name in (getattr(one.func, "id", ""), getattr(one.func, "attr", ""))
        for one in ast.walk(node)
    )


def yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A generator or a coroutine: its frame comes and goes."""
    return isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node)
    )


def leaves(statement: ast.stmt) -> bool:
    """What stands behind it may run less often: it has branches from which there is a way out."""
    if isinstance(statement, (ast.Try, ast.With, ast.AsyncWith)):
        return True
    return isinstance(statement, BRANCHING) and any(
        isinstance(one, LEAVING) for one in ast.walk(statement)
    )


def placeholder(block: Block) -> ast.expr:
    """A constant that `with_counters` replaces."""
    return ast.Constant(f"{MARK}{block.number}")


def counter(block: Block, at: ast.stmt) -> ast.stmt:
    """`block.hit()` in the place of a statement's beginning."""
    return put(ast.Expr(called(block, "hit", at)), beginning(at))


def called(block: Block, method: str, place: ast.stmt | ast.expr) -> ast.Call:
    """A call of the block's counter."""
    return put(ast.Call(ast.Attribute(placeholder(block), method, ast.Load()), [], []), place)


def beginning(statement: ast.stmt) -> ast.stmt | ast.expr:
    """Where it begins: one with decorators begins with them."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)) and statement.decorator_list:
        return statement.decorator_list[0]
    return statement


def turns(block: Block, node: ast.For) -> ast.expr:
    """`block.map(block.begin(), what the loop goes over)`."""
    way = ast.Attribute(placeholder(block), "map", ast.Load())
    place = node.iter if PLACE else node
    put(way, place)
    begin = called(block, "begin", place)
    return ast.copy_location(ast.Call(way, [begin, node.iter], []), place)


def put(node: AST, place: ast.stmt | ast.expr) -> AST:
    """A node with all in it to where a place begins. The compiler takes a method's last line."""
    for one in ast.walk(node):
        if isinstance(one, (ast.stmt, ast.expr)):
            one.lineno = one.end_lineno = place.lineno
            one.col_offset = one.end_col_offset = place.col_offset
    return node


def with_counters(code: CodeType, counters: dict[str, Any]) -> CodeType:
    """The code with the counters in the place of their marks. counters: by the mark."""
    constants = tuple(replaced(code.co_consts, counters))
    return code.replace(co_consts=constants)


def replaced(constants: tuple[Any, ...], counters: dict[str, Any]) -> Iterator[Any]:
    """Constants, those of inner code too."""
    for one in constants:
        if isinstance(one, CodeType):
            yield with_counters(one, counters)
        elif type(one) is str and one.startswith(MARK):
            yield counters.get(one, one)
        else:
            yield one
