"""Runs one cell under the lens, in the names of the learner's own process."""

import ast
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Broadcasts, Graph, GraphRoot, Tensors, Trace
from tensortutor.worker.lens.lens import Lens
from tensortutor.worker.lens.statements import codes

VALUE = "_tensortutor_value"
LAST = "last value"
"""What the value of the expression is called that a cell ends in."""
SCALAR = re.compile(r"\w+\[\]")
MOST_FUNCTIONS = 1000
SHOWN = (Trace, Broadcasts, Tensors, Graph)


@dataclass(frozen=True)
class Seen:
    """A cell that has run. value: of the expression that it ends in, None if it ends otherwise."""

    events: tuple[Any, ...]
    value: Any
    error: BaseException | None


def with_value(tree: ast.Module) -> bool:
    """Keep the value of the expression that a cell ends in under VALUE; whether it ends in one."""
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return False
    last = tree.body[-1]
    kept = ast.Assign([ast.Name(VALUE, ast.Store())], last.value)
    tree.body[-1] = ast.fix_missing_locations(ast.copy_location(kept, last))
    return True


def run(
    source: str,
    code: CodeType,
    namespace: dict[str, Any],
    *,
    hidden: Collection[str] = (),
    everything: bool = False,
) -> Seen:
    """Run a cell in `namespace` and look at it. Raises SystemExit alone; other errors are kept.

    source: the text that the lines of `code` belong to. hidden: names that are the shell's own.
    everything: follow all passes of each line.
    """
    look = Look(trace=True, names=True, everything=everything)
    lens = Lens(look, source, code.co_filename, frozenset((*hidden, VALUE)))
    error: BaseException | None = None
    tracing = sys.gettrace()  # a debugger's, before Python 3.12
    try:
        lens.run(code, namespace)
    except SystemExit:
        raise
    except BaseException as raised:
        error = raised
    finally:
        sys.settrace(tracing)
        value = namespace.pop(VALUE, None)
    mine = names_in(code, namespace)
    told = {n: v for n, v in namespace.items() if n in mine and n not in hidden}
    others = {n: v for n, v in namespace.items() if n not in told and n not in hidden}
    if value is not None and all(value is not other for other in told.values()):
        told[LAST] = value
    events = (e for e in lens.report(told, error, others) if isinstance(e, SHOWN))
    seen = Seen(tuple(last_scalar(events)), value, error)
    # The frames of an error live on; they must not keep what the learner deletes.
    told.clear()
    others.clear()
    return seen


def names_in(code: CodeType, namespace: dict[str, Any]) -> set[str]:
    """The global names that code may use, and those that functions of the namespace use for it."""
    found: set[str] = set()
    todo = [code]
    done = 0
    while todo and done < MOST_FUNCTIONS:
        done += 1
        for one in codes(todo.pop()):
            for name in one.co_names:
                if name in found:
                    continue
                found.add(name)
                value = namespace.get(name)
                if type(value) is FunctionType and value.__globals__ is namespace:
                    todo.append(value.__code__)
    return found


def last_scalar(events: Iterator[Any]) -> Iterator[Any]:
    """The same events, the graph with one root alone: the scalar that the cell made last."""
    made: dict[str, int] = {}
    for event in events:
        if isinstance(event, Trace):
            made = {one.name: line.line for line in event.lines for one in line.made}
        if isinstance(event, Graph):
            roots = [root for root in event.roots if is_made_here(root, event, made)]
            last = max(roots, key=lambda root: place(root, made), default=None)
            event = replace(event, roots=() if last is None else (last,))
        yield event


def is_made_here(root: GraphRoot, graph: Graph, made: dict[str, int]) -> bool:
    """A scalar of the cell, or one whose backward it has called."""
    node = next(node for node in graph.nodes if node.id == root.node)
    here = root.name == LAST or root.name in made or root.line > 0
    return here and SCALAR.match(node.words) is not None


def place(root: GraphRoot, made: dict[str, int]) -> float:
    """The line that a scalar belongs to; the cell's own value stands behind all."""
    return float("inf") if root.name == LAST else max(root.line, made.get(root.name, 0))
