"""What real objects say of themselves: their attributes, how they are called, their own words."""

import ast
import importlib
import inspect
import re
import sys
from types import ModuleType
from typing import Any

from tensortutor.protocol.assist import (
    LONGEST_TEXT,
    MOST_NAMES,
    Completions,
    Documentation,
    Question,
)
from tensortutor.worker.common_names import by_use

CHAIN = re.compile(r"(?<![\w.)\]}'\"])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.(\w*)\Z")
"""Names with dots between them, up to the cursor."""
IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t].*(?:\([^)]*\))?", re.MULTILINE)
CALL = re.compile(r"[\w.]+\(.*\)(?: *-> *.+)?")
"""How a docstring of PyTorch's C++ functions says in its first lines how they are called."""
PLACES = ("typing", "typing_extensions", "collections", "functools", "contextlib", "enum", "abc")
"""Where names come from that a module happens to use, and that nobody looks for in it."""
ALIASES = (
    ("torch._C.TensorBase.", "torch.Tensor."),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch._C._VariableFunctions.", "torch."),
    ("builtins.", ""),
)
"""Where things are, and where everybody knows them."""
LONGEST_CALL = 2_000
MISSING = object()


def complete(question: Question) -> Completions | None:
    """The attributes of what a chain of names from an import leads to; None if it is no such."""
    line = line_of(question)
    match = CHAIN.search(line)
    if match is None or is_quoted(line):
        return None
    chain, begun = match.groups()
    value = lookup(question.source, chain)
    if value is MISSING:
        return None
    return Completions(question.number, match.start(2), names_of(value, begun))


def explain(question: Question) -> Documentation | None:
    """What the chain of names at the place leads to; None if it does not lead anywhere."""
    lines = question.source.split("\n")
    line = lines[question.line - 1] if question.line <= len(lines) else ""
    end = question.column + len(re.match(r"\w*", line[question.column :]).group())  # type: ignore[union-attr]
    match = re.search(r"(?<![\w.)\]}'\"])[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z", line[:end])
    if match is None or is_quoted(line[:end]):
        return None
    value = lookup(question.source, match.group())
    return None if value is MISSING else describe(question.number, match.group(), value)


def line_of(question: Question) -> str:
    """The line of the place, up to it."""
    lines = question.source.split("\n")
    return lines[question.line - 1][: question.column] if question.line <= len(lines) else ""


def is_quoted(line: str) -> bool:
    """Whether what follows is in a string or a comment, as far as the line alone tells."""
    rest = re.sub(r"\\.|'[^']*'|\"[^\"]*\"", "", line)
    return any(sign in rest for sign in "#'\"")


# From names to objects


def lookup(source: str, chain: str) -> Any:
    """The object that names with dots lead to from an import of the program's, else MISSING."""
    root, *rest = chain.split(".")
    path = imports(source).get(root)
    if path is None or is_rebound(source, root):
        return MISSING
    value = resolve(path)
    for name in rest:
        value = attribute(value, name)
    return value


def imports(source: str) -> dict[str, str]:
    """What the program's import statements bind, and the full name behind each.

    The rest of the program need not be correct.
    """
    found: dict[str, str] = {}
    for match in IMPORT.finditer(source):
        try:
            (statement,) = ast.parse(match.group().strip()).body
        except (SyntaxError, ValueError):
            continue
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                root = alias.name.partition(".")[0]
                found[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                found[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
    return found


def is_rebound(source: str, name: str) -> bool:
    """Whether the program also gives this name to something else."""
    again = rf"(?<![\w.]){name}\s*(?:=[^=]|,[^()\n]*=[^=])|def\s+\w+\([^)]*(?<![\w.=]){name}\b"
    return re.search(again, source) is not None


def resolve(path: str) -> Any:
    """The object of a full name. Only what belongs to a package that is loaded is imported."""
    if not path or path.partition(".")[0] not in sys.modules:
        return MISSING
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        try:
            value: Any = sys.modules.get(name) or importlib.import_module(name)
        except ImportError:
            continue
        for part in parts[count:]:
            value = attribute(value, part)
        return value
    return MISSING


def attribute(value: Any, name: str) -> Any:
    """An attribute, or MISSING; a module of a package is imported if need be."""
    if value is MISSING:
        return MISSING
    found = getattr(value, name, MISSING)
    if found is MISSING and isinstance(value, ModuleType):
        found = sys.modules.get(f"{value.__name__}.{name}", MISSING)
    return found


def names_of(value: Any, begun: str) -> tuple[str, ...]:
    """The names in a value for somebody who has typed the beginning of one."""
    return tuple(dir(value) if begun.startswith("_") else public_names(value))[:MOST_NAMES]


def public_names(value: Any) -> list[str]:
    """The names that somebody may look for in a value, those that programs use most first."""
    names = [name for name in dir(value) if not name.startswith("_")]
    if isinstance(value, ModuleType):
        root = value.__name__.partition(".")[0]
        names = [name for name in names if _belongs(getattr(value, name, None), root)]
    return sorted(names, key=by_use)


def _belongs(value: Any, root: str) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(home, str):
        return True
    first = home.partition(".")[0]
    return first == root or (not isinstance(value, ModuleType) and first not in PLACES)


# What objects say


def describe(number: int, name: str, value: Any) -> Documentation:
    """An object in its own words."""
    name = public_name(value, name)
    signatures, text = calls(name, value, inspect.getdoc(value) or "")
    return Documentation(number, name, kind_of(value), signatures, text[:LONGEST_TEXT])


def kind_of(value: Any) -> str:
    """A word for what it is."""
    if isinstance(value, ModuleType):
        return "module"
    if inspect.isclass(value):
        return "class"
    if inspect.isroutine(value):
        return "function"
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return "property"
    return type(value).__name__


def calls(name: str, value: Any, text: str) -> tuple[tuple[str, ...], str]:
    """How something is called, and its words without that."""
    lines = text.split("\n")
    said = []
    while lines and (not lines[0].strip() or CALL.fullmatch(lines[0].strip())):
        if first := lines.pop(0).strip():
            said.append(first[:LONGEST_CALL])
    if said or not callable(value):
        return tuple(said), "\n".join(lines)
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return (), "\n".join(lines)
    short = re.sub(r"\btorch\.(?=Tensor\b)|\btyping\.|\bcollections\.abc\.", "", signature)
    if inspect.isclass(value):
        short = short.removesuffix(" -> None")
    return (f"{name.rpartition('.')[2]}{short}"[:LONGEST_CALL],), "\n".join(lines)


def public_name(value: Any, path: str) -> str:
    """The shortest way to an object that starts and ends like `path`: no inner modules."""
    for inner, outer in ALIASES:
        path = outer + path.removeprefix(inner) if path.startswith(inner) else path
    parts = path.split(".")
    for count in range(1, len(parts) - 1):
        shorter = ".".join([*parts[:count], parts[-1]])
        if resolve(shorter) is value:
            return shorter
    return path
