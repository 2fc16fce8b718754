"""Puts the lens to a program: before it runs, and when it has ended."""

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Modules, Scope, Tensors
from tensortutor.worker.lens import names, peek
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.modules import modules_of
from tensortutor.worker.lens.tensors import tensors_of


class Lens:
    """One program under the lens. path: its file, as Python knows it."""

    def __init__(self, look: Look, source: str, path: str) -> None:
        self._look = look
        self._source = source
        self._path = path

    def run(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Run the program. Raises what it raises."""
        exec(code, namespace)

    def report(self, namespace: dict[str, Any], error: BaseException | None) -> Iterator[Event]:
        """What there is to say of a program that has ended, with `error` if it raised."""
        budget = Budget()
        with peek.quietly():
            if self._look.names:
                yield from self._names(namespace, error, budget)

    def _names(
        self, namespace: dict[str, Any], error: BaseException | None, budget: Budget
    ) -> Iterator[Event]:
        finder = names.Finder()
        finder.search(names.Namespace("", namespace))
        scopes = []
        for frame in names.failing_frames(error, self._path):
            inner = names.locals_of(frame)
            if inner:
                scope = names.function_name(frame.f_code)
                finder.search(names.Namespace(scope, inner))
                scopes.append(Scope(scope, frame.f_code.co_firstlineno, raised=True))
        found = finder.found
        told = tuple(scopes)
        yield attempt(lambda: tensors_of(found, told, budget), lambda why: Tensors((), note=why))
        yield attempt(lambda: modules_of(found.modules, budget), lambda why: Modules((), note=why))


def attempt(make: Callable[[], Event], otherwise: Callable[[str], Event]) -> Event:
    """The event; a defect of the lens is told in its place and never reaches the program."""
    try:
        return make()
    except (Exception, SystemExit) as error:
        return otherwise(peek.cut(f"The lens failed here: {type(error).__name__}: {error}"))
