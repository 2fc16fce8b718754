"""Puts the lens to a program: before it runs, and when it has ended."""

import contextlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeVar

from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import (
    Broadcasts,
    Graph,
    Modules,
    Optimizers,
    Profile,
    Scope,
    Tensors,
    Trace,
)
from tensortutor.worker.lens import names, peek
from tensortutor.worker.lens.backward import Listener
from tensortutor.worker.lens.broadcasts import Reader, broadcasts_of
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.graph import graph_of
from tensortutor.worker.lens.labels import Labels
from tensortutor.worker.lens.modules import modules_of
from tensortutor.worker.lens.optimizers import optimizers_of
from tensortutor.worker.lens.scopes import Scopes, modules_with, optimizers_with, with_locals
from tensortutor.worker.lens.tensors import tensors_of
from tensortutor.worker.lens.trace import trace_of
from tensortutor.worker.lens.watch import Watch

T = TypeVar("T")
NOT_FOLLOWED = "The lens could not make out this file, so its lines were not followed."


class Lens:
    """One program under the lens. path: its file, as Python knows it."""

    def __init__(self, look: Look, source: str, path: str) -> None:
        self._look = look
        self._source = source
        self._path = path
        self._watch: Watch | None = None
        self._listener = Listener(path) if look.names else None
        self._scopes = Scopes() if look.names else None
        self._profiler = profiler(source) if look.profile else None

    def run(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Run the program. Raises what it raises."""
        with contextlib.ExitStack() as stack:
            if self._listener is not None:
                self._listener.begin()
                stack.callback(self._listener.end)
            if self._look.trace:
                leave = self._scopes.leave if self._scopes is not None else None
                # A defect of the lens is no reason for the program not to run.
                with contextlib.suppress(Exception):
                    self._watch = Watch(self._source, code, leave)
            if self._watch is not None:
                stack.enter_context(self._watch.watching())
            if self._profiler is not None:
                stack.enter_context(self._profiler.profiling())
            exec(code if self._watch is None else self._watch.code, namespace)

    def report(self, namespace: dict[str, Any], error: BaseException | None) -> Iterator[Event]:
        """What there is to say of a program that has ended, with `error` if it raised."""
        budget = Budget()
        with peek.quietly():
            if self._watch is not None:
                self._watch.settle(error)
                yield from self._lines(self._watch, error)
            elif self._look.trace and not isinstance(error, SyntaxError):
                yield Trace((), note=NOT_FOLLOWED)
            if self._look.names:
                yield from self._names(namespace, error, budget)
            if self._profiler is not None:
                yield attempt(self._profiler.told, lambda why: Profile(0.0, (), note=why))

    def _lines(self, watch: Watch, error: BaseException | None) -> Iterator[Event]:
        recorder = watch.recorder
        frames = names.failing_frames(error, self._path)
        expressions = attempt(
            lambda: broadcasts_of(recorder, Reader(self._source, watch.tree), error, frames),
            lambda why: Broadcasts((), note=why),
        )
        yield attempt(
            lambda: trace_of(recorder, expressions.expressions, watch.note),
            lambda why: Trace((), note=why),
        )
        yield expressions

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
        gone = self._scopes.told({one.name for one in scopes}) if self._scopes is not None else []
        known = {id(one) for _, one in (*found.modules, *found.optimizers)}
        yield attempt(
            lambda: with_locals(tensors_of(found, told, budget), gone),
            lambda why: Tensors((), note=why),
        )
        yield attempt(
            lambda: modules_with(modules_of(found.modules, budget), gone, known),
            lambda why: Modules((), note=why),
        )
        yield attempt(
            lambda: optimizers_with(
                optimizers_of(found.optimizers, Labels(found).names(), budget), gone, known
            ),
            lambda why: Optimizers((), note=why),
        )
        captures = self._listener.captures.values() if self._listener is not None else ()
        yield attempt(
            lambda: graph_of(found, captures, budget), lambda why: Graph((), (), (), note=why)
        )


def profiler(source: str) -> Any:
    """Imported when it is asked for: it brings parts of torch that most programs do without."""
    from tensortutor.worker.lens.profile import Profiler

    return Profiler(source)


def attempt(make: Callable[[], T], otherwise: Callable[[str], T]) -> T:
    """The event; a defect of the lens is told in its place and never reaches the program."""
    try:
        return make()
    except (Exception, SystemExit) as error:
        return otherwise(peek.cut(f"The lens failed here: {type(error).__name__}: {error}"))
