"""What can be told of a program's names from its text, by jedi.

The only place that imports jedi. It is pure Python and comes with tensortutor, so it is taken from
where tensortutor has it: another interpreter need not have it.
"""

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from typing import Any

import torch

from tensortutor.protocol.assist import (
    LONGEST_TEXT,
    MOST_NAMES,
    Completions,
    Documentation,
    Question,
    Typed,
)
from tensortutor.worker import objects
from tensortutor.worker.common_names import by_use
from tensortutor.worker.objects import MISSING

TYPICAL = """import torch
import torch.nn.functional as F
x = torch.zeros(3)
layer = torch.nn.Linear(3, 3)
loss = F.mse_loss(x, x)
optimizer = torch.optim.SGD(layer.parameters())
"""
PLACES = ("x.", "loss.", "layer.", "optimizer.", "torch.nn.", "x.sum().", "pri")
TENSOR = (torch.Tensor, "Tensor", "torch.Tensor")
"""How a class says of an attribute that it is a tensor."""


class Shipped:
    """Finds packages in the folders that it is given, and nothing else."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = {os.path.basename(folder): folder for folder in folders}

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """As the import system asks."""
        folder = self._folders.get(name)
        if folder is None:
            return None
        return importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


class Reader:
    """Reads programs. Raises whatever jedi raises: not every text can be understood."""

    def __init__(self, libraries: tuple[str, ...], cache: str) -> None:
        """libraries: the folders of jedi and parso. cache: where to keep what was read."""
        sys.meta_path.insert(0, Shipped(libraries))
        import jedi
        import parso
        from jedi.api.environment import InterpreterEnvironment

        jedi.settings.cache_directory = os.path.join(cache, "jedi")
        self._jedi: Any = jedi
        self._parso: Any = parso
        self._project = jedi.Project(cache, sys_path=list(sys.path), smart_sys_path=False)
        # This very process: jedi would look for other interpreters and ask them.
        self._environment = InterpreterEnvironment()

    def warm_up(self) -> None:
        """Read what every program uses: seconds at the very first time, one later."""
        for place in PLACES:
            self._interpreter(TYPICAL + place, {"torch": torch}).complete()

    def complete(self, question: Question) -> Completions:
        """The names that may stand at the place."""
        text, column, function = self._annotated(question)
        known = names_known(question.known, function)
        reader = self._interpreter(text, known)
        line = objects.line_of(question)
        chain = objects.CHAIN.search(line)
        if chain is not None:
            behind = len(line) - chain.start(2)
            if is_tensor(reader.infer(question.line, column - behind - 1)):
                # By far the most wanted, and faster from the class than from its long text.
                names = objects.names_of(torch.Tensor, chain.group(2))
                return Completions(question.number, chain.start(2), names)
        found = reader.complete(question.line, column)
        if not found and chain is not None and chain.group(1).partition(".")[0] in known:
            # The text says something else of the name, but nothing of what it holds.
            found = self._interpreter(chain.group(), known).complete()
        if not found:
            # It also sees how the program's functions are called, but not what a run has told.
            found = self._jedi.Script(
                text, project=self._project, environment=self._environment
            ).complete(question.line, column)
        start = len(line) - (len(found[0].name) - len(found[0].complete or "")) if found else 0
        hidden = () if line[start:].startswith("_") else ("_",)
        offered = [n.name_with_symbols for n in found if not n.name.startswith(hidden)]
        if chain is not None:
            offered.sort(key=by_use)
        return Completions(question.number, start, tuple(offered[:MOST_NAMES]))

    def explain(self, question: Question) -> Documentation | None:
        """What is known of the name at the place."""
        text, column, function = self._annotated(question)
        known = names_known(question.known, function)
        reader = self._interpreter(text, known)
        names = reader.help(question.line, column)
        if not names:
            return None
        name = names[0]
        value = objects.resolve(name.full_name) if name.full_name else MISSING
        if value is not MISSING and name.type not in ("statement", "instance", "param"):
            return objects.describe(question.number, name.full_name, value)
        if name.type in ("statement", "instance", "param"):
            return self._variable(question, name, reader.infer(question.line, column))
        words = name.docstring(raw=True)[:LONGEST_TEXT]
        ways = tuple(way.to_string() for way in name.get_signatures())
        return Documentation(question.number, name.name, name.type, ways, words)

    def _variable(self, question: Question, name: Any, kinds: list[Any]) -> Documentation | None:
        """A name that holds something: what kind of thing it is, in that kind's words."""
        if not kinds:
            return None
        kind = kinds[0]
        value = objects.resolve(kind.full_name) if kind.full_name else MISSING
        if value is MISSING:
            words = kind.docstring(raw=True)[:LONGEST_TEXT]
            return Documentation(question.number, name.name, kind.name, (), words)
        said = objects.describe(question.number, kind.full_name, value)
        return Documentation(question.number, name.name, said.name, (), said.text)

    def _interpreter(self, text: str, known: dict[str, Any]) -> Any:
        """Reads the text, and knows some names that it does not tell."""
        return self._jedi.Interpreter(text, [known], project=self._project)

    def _annotated(self, question: Question) -> tuple[str, int, str]:
        """The program with types for the parameters around the place, where the run has told some.

        Also the column of the place, and the function that it is in or "". Lines stay lines.
        """
        source, column = question.source, question.column
        lines = source.split("\n")
        types = {typed.name: typed.type for typed in question.known if "." in typed.name}
        node = self._parso.parse(source).get_leaf_for_position(
            (question.line, column), include_prefixes=True
        )
        function = ""
        while node is not None:
            if node.type == "funcdef":
                function = function or node.name.value
                for parameter in reversed(node.get_params()):
                    path = f"{node.name.value}.{parameter.name.value}"
                    if path in types and not parameter.annotation and not parameter.star_count:
                        line, end = parameter.name.end_pos
                        added = f": {types[path]!r}"
                        text = lines[line - 1]
                        lines[line - 1] = text[:end] + added + text[end:]
                        if line == question.line and end < column:
                            column += len(added)
            node = node.parent
        return "\n".join(lines), column, function


def is_tensor(kinds: list[Any]) -> bool:
    """Whether what jedi has found are tensors, all of them."""
    found = [objects.resolve(kind.full_name or "") for kind in kinds if kind.type == "instance"]
    return (
        bool(found)
        and len(found) == len(kinds)
        and all(isinstance(one, type) and issubclass(one, torch.Tensor) for one in found)
    )


# Objects of known types


def names_known(known: tuple[Typed, ...], function: str) -> dict[str, Any]:
    """What names hold, as far as the last run has told, seen from within a function."""
    return {"torch": torch, **specimens(known), **specimens(known, function)}


def specimens(known: tuple[Typed, ...], function: str = "") -> dict[str, Any]:
    """An object of its type for each name of a function, or the global ones, that is known."""
    found = {}
    for typed in known:
        where, _, name = typed.name.rpartition(".")
        if where != function:
            continue
        try:
            found[name] = specimen(ast.parse(typed.type, mode="eval").body)
        except Exception:
            continue  # a class of the program's own, which the text tells, or one that resists
    return found


def specimen(written: ast.expr) -> Any:
    """An object of the type that an annotation names. Raises TypeError if there can be none."""
    if isinstance(written, ast.Constant) and written.value is None:
        return None
    if isinstance(written, ast.Subscript):
        inner = written.slice
        parts = [specimen(p) for p in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]
        kind = class_of(written.value)
        return {parts[0]: parts[1]} if kind is dict else kind(parts)
    kind = class_of(written)
    if issubclass(kind, torch.nn.Parameter):
        return torch.nn.Parameter(torch.empty(0))
    if issubclass(kind, torch.nn.Module):
        module = kind.__new__(kind)
        torch.nn.Module.__init__(module)
        for base in reversed(kind.__mro__):
            for name, said in vars(base).get("__annotations__", {}).items():
                if said in TENSOR and not name.startswith("_"):  # all of this kind have it
                    module.register_parameter(name, torch.nn.Parameter(torch.empty(0)))
        return module
    try:
        return kind()
    except Exception:
        return kind.__new__(kind)


def class_of(written: ast.expr) -> Any:
    """The class of a full name. Raises TypeError."""
    path = ast.unparse(written)
    value = objects.resolve(path if "." in path else f"builtins.{path}")
    if not isinstance(value, type):
        raise TypeError(f"{path} is no class that can be found")
    return value
