"""`Answer`: the learner's program as a check sees it."""

import functools
from collections import Counter
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from tensortutor.checking.call_arguments import Given, noted
from tensortutor.checking.describe import describe_call, describe_kind
from tensortutor.checking.plain_values import plain_values

FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)
"""What is wrapped. A module or another callable object keeps its attributes instead."""


class Answer:
    """The names of the learner's program.

    Functions are wrapped so that a failing check can say what was called with which shapes, and
    what kind of thing came back. A tensor of a subclass that they return comes as a plain one,
    unless the check's file defines that subclass or the check is declared with `subclasses=True`.

    `source` is the program's text, `output` what it printed when it ran, `calls` how often it has
    called each torch function during this check, by base name (`calls["softmax"]`), for a check
    that is declared with `counts_calls=True`.
    """

    FILE = __file__
    """Where calls of the learner's functions come from: they fail there if the arguments do."""

    def __init__(self, namespace: dict[str, Any], source: str, output: str) -> None:
        self._namespace = namespace
        self.source = source
        self.output = output
        self.calls: Counter[str] = Counter()
        self.last_call = ""
        self.last_inputs: tuple[Given, ...] = ()
        self.last_result = ""
        self.keeps_subclasses = False
        self.own_kinds: tuple[type, ...] = ()
        self.guard: Callable[[], Callable[[], object]] = lambda: lambda: None
        self.witness: Callable[..., None] = lambda *_: None
        self._calls: dict[str, tuple[Any, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            value = self._namespace[name]
        except KeyError:
            raise MissingName(name) from None
        if not isinstance(value, FUNCTIONS):
            return value
        function, call = self._calls.get(name, (None, value))
        if function is not value:
            call = self._recorded(name, value)
            self._calls[name] = value, call
        return call

    def _recorded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            self.last_call = describe_call(name, args, kwargs)
            self.last_inputs = noted(function, args, kwargs)
            self.witness(name, function, args, kwargs)
            self.last_result = ""
            after = self.guard()
            try:
                result = function(*args, **kwargs)
            finally:
                after()
            if not self.keeps_subclasses:
                result = plain_values(result, self.own_kinds)
            self.last_result = describe_kind(result)
            return result

        return call


def recorded(answer: Answer, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Something callable that belongs to the program, with its calls shown as those of `name`.

    The functions of an answer are recorded as they are; methods and modules are not.
    """
    return answer._recorded(name, function)


class MissingName(Exception):
    """The program has no such name. `str` is the sentence for the learner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The program defines no `{name}`. Keep the name that the task gives.")
