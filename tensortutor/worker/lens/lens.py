"""Puts the lens to a program: before it runs, and when it has ended."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
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
from tensortutor.worker import access
from tensortutor.worker.lens import object_finder
from tensortutor.worker.lens.backward import BackwardListener
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.function_locals import (
    Scopes,
    modules_with,
    optimizers_with,
    with_locals,
)
from tensortutor.worker.lens.graph import graph_of
from tensortutor.worker.lens.graph_names import TensorNames
from tensortutor.worker.lens.line_events import trace_of
from tensortutor.worker.lens.line_tracing import LineTracing
from tensortutor.worker.lens.modules import modules_of
from tensortutor.worker.lens.optimizers import optimizers_of
from tensortutor.worker.lens.shape_events import SourceText, broadcasts_of
from tensortutor.worker.lens.tensor_table import tensors_of

T = TypeVar("T")
NOT_FOLLOWED = "The lens could not make out this file, so its lines were not followed."


class Lens:
    """One program under the lens.

    path: its file, as Python knows it. hidden: names that are not the learner's own.
    """

    def __init__(self, look: Look, source: str, path: str, hidden: Collection[str] = ()) -> None:
        self._look = look
        self._source = source
        self._path = path
        self._lines: LineTracing | None = None
        self._listener = BackwardListener(path, hidden) if look.names else None
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
                    self._lines = LineTracing(
                        self._source, code, leave, everything=self._look.everything
                    )
            if self._lines is not None:
                stack.enter_context(self._lines.following())
            if self._profiler is not None:
                stack.enter_context(self._profiler.profiling())
            exec(code, namespace)

    def report(
        self,
        namespace: dict[str, Any],
        error: BaseException | None,
        others: Mapping[str, Any] | None = None,
    ) -> Iterator[Event]:
        """What there is to say of a program that has ended, with `error` if it raised.

        others: further names, by which the tensors of a graph are called and no more.
        """
        with access.quietly():
            if self._lines is not None:
                self._lines.finish(namespace)
                yield from self._line_events(self._lines, error)
            elif self._look.trace and not isinstance(error, SyntaxError):
                yield Trace((), note=NOT_FOLLOWED)
            if self._look.names:
                yield from self._names(namespace, error, Budget(), others or {})
            if self._profiler is not None:
                yield attempt(self._profiler.told, lambda why: Profile(0.0, (), note=why))

    def _line_events(self, lines: LineTracing, error: BaseException | None) -> Iterator[Event]:
        recorder = lines.recorder
        trace = object_finder.traceback_in(self._path, error)
        expressions = attempt(
            lambda: broadcasts_of(recorder, SourceText(self._source, lines.tree), trace),
            lambda why: Broadcasts((), note=why),
        )
        yield attempt(
            lambda: trace_of(recorder, expressions.expressions, lines.note),
            lambda why: Trace((), note=why),
        )
        yield expressions

    def _names(
        self,
        namespace: dict[str, Any],
        error: BaseException | None,
        budget: Budget,
        others: Mapping[str, Any],
    ) -> Iterator[Event]:
        finder = object_finder.Finder()
        finder.search("", namespace)
        scopes = []
        for place in object_finder.traceback_in(self._path, error):
            frame = place.tb_frame
            inner = object_finder.locals_of(frame)
            if inner:
                scope = object_finder.function_name(frame.f_code)
                finder.search(scope, inner)
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
                optimizers_of(found.optimizers, TensorNames(found).names(), budget), gone, known
            ),
            lambda why: Optimizers((), note=why),
        )
        captures = self._listener.captures.values() if self._listener is not None else ()
        rest = object_finder.Finder()
        rest.search("", others)
        yield attempt(
            lambda: graph_of(found, captures, budget, rest.found),
            lambda why: Graph((), (), (), note=why),
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
        return otherwise(access.cut(f"The lens failed here: {type(error).__name__}: {error}"))
