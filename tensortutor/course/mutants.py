"""Wrong programs made from a right one by single edits."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tensortutor.course.check_file_reader import DEFINITIONS

INSTALL = "Mutants are made with libcst, which is not installed: pip install 'tensortutor[author]'."
TEXTS = ("output", "source")
"""Attributes of an answer that show more than its names do."""


class LibraryMissing(Exception):
    """libcst is not installed. `str` is the sentence that says how to get it."""


@dataclass(frozen=True)
class Mutant:
    """A program that differs from the right one in one edit.

    kind: which edit. line: of the edited statement, from 1. before, after: that statement on one
    line; of a compound one, its header alone.
    """

    kind: str
    source: str
    line: int
    before: str
    after: str

    @property
    def edit(self) -> str:
        """The edit on one line."""
        return f"{self.before}  ->  {self.after}"


@lru_cache(maxsize=512)  # they are counted first, and then judged
def mutants_of(source: str, judge: str | None = None) -> tuple[Mutant, ...]:
    """Every program that one edit makes of `source`, in the order of its lines, each once.

    judge: the text of the check file; statements that it cannot see stay as they are (None: it
    sees all). Raises LibraryMissing, and SyntaxError if one of the two is not Python.
    """
    try:
        from tensortutor.course.mutation_sites import edits_of
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise LibraryMissing(INSTALL) from None
    tree = ast.parse(source)
    lines, prints = _all_lines(tree), True
    if judge is not None and any(isinstance(node, DEFINITIONS) for node in tree.body):
        asked = _asked(ast.parse(judge))
        prints = not asked.isdisjoint(TEXTS)
        lines = lines if prints else visible(tree, asked)
    made = {_dump(source)}
    found = []
    for edit in edits_of(source, lines, prints=prints):
        dump = _dump(edit.source)
        if dump and dump not in made:
            made.add(dump)
            found.append(Mutant(**vars(edit)))
    return tuple(found)


def visible(tree: ast.Module, asked: set[str]) -> set[int]:
    """The lines of the module's statements that `asked` names depend on.

    A statement that only evaluates something (a call, a print) binds no name and is left out.
    """
    known, lines = set(asked), set[int]()
    waiting = list(tree.body)
    while True:
        found = [node for node in waiting if not known.isdisjoint(_bound(node))]
        if not found:
            return lines
        for node in found:
            waiting.remove(node)
            lines |= _lines(node)
            known |= _read(node)


def _asked(judge: ast.Module) -> set[str]:
    """The names that a check file asks of an answer, as attributes or as strings beside it."""
    functions = [node for node in ast.walk(judge) if isinstance(node, ast.FunctionDef)]
    answers = {"answer"} | {f.args.args[0].arg for f in functions if _is_check(f) and f.args.args}
    asked = set()
    for node in ast.walk(judge):
        if isinstance(node, ast.Attribute) and _is_named(node.value, answers):
            asked.add(node.attr)
        elif isinstance(node, ast.Call) and any(_is_named(arg, answers) for arg in node.args):
            asked |= {str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)}
    return asked


def _is_named(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_check(function: ast.FunctionDef) -> bool:
    return any("check(" in ast.unparse(decorator) for decorator in function.decorator_list)


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement binds, or whose objects it changes by assignment."""
    if isinstance(node, DEFINITIONS):
        return {node.name}
    return set(_targets(node))


def _read(node: ast.stmt) -> set[str]:
    """The module's names that a statement reads, those of its own functions left out."""
    names = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
    read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    if not isinstance(node, DEFINITIONS):
        return read
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return read - own - {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)}


def _targets(node: ast.AST) -> Iterator[str]:
    for target in ast.walk(node):
        if isinstance(getattr(target, "ctx", None), (ast.Store, ast.Del)):
            root = target
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                yield root.id


def _lines(node: ast.stmt) -> set[int]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return set(range(first, (node.end_lineno or first) + 1))


def _all_lines(tree: ast.Module) -> set[int]:
    return {line for node in tree.body for line in _lines(node)}


def _dump(source: str) -> str:
    """What a program means to Python, or "" if it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `x is 1` is a mutant, too
            tree = ast.parse(source)
            compile(tree, "<mutant>", "exec")
    except SyntaxError:
        return ""
    return ast.dump(_Idle().visit(tree))


class _Idle(ast.NodeTransformer):
    """`x = x` does nothing."""

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        same = [isinstance(t, ast.Name) and _is_named(node.value, {t.id}) for t in node.targets]
        return ast.Pass() if all(same) else node
