"""A `quiz` fence: TOML to a Quiz."""

import zlib
from collections.abc import Callable
from typing import Any

from tensortutor.course.fences import Fence
from tensortutor.course.material import QUIZZES, Quiz
from tensortutor.course.problems import Report, listed, nearest
from tensortutor.course.toml_tables import (
    NEEDS,
    TEXT,
    Key,
    check_table,
    is_number,
    is_text,
    is_texts,
    is_truth,
    key_lines,
    load_toml,
    show,
)


def is_anything(_: Any) -> bool:
    """A value whose rule depends on the kind."""
    return True


def is_lines(value: Any) -> bool:
    """A list of at least two strings."""
    return is_texts(value) and len(value) > 1


def is_choices(value: Any) -> bool:
    """At least two strings, all different."""
    return is_lines(value) and len(set(value)) == len(value)


def is_shape(value: Any) -> bool:
    """A list of sizes."""
    return isinstance(value, list) and all(
        type(size) is int and 0 <= size < 1 << 63 for size in value
    )


def is_tolerance(value: Any) -> bool:
    """A finite number from zero."""
    return is_number(value) and 0 <= value < float("inf")


def is_wrong(value: Any) -> bool:
    """A table of strings."""
    return isinstance(value, dict) and all(map(is_text, value.values()))


KEYS = {
    "kind": Key(is_anything, listed(QUIZZES, "or")),
    "ask": TEXT,
    "answer": Key(is_anything, "a value of the kind's type"),
    "proof": Key(is_text, "Python whose last expression equals the answer"),
    "explain": TEXT,
    "choices": Key(is_choices, "a list of two or more different strings", required=False),
    "tolerance": Key(is_tolerance, "a number from 0", required=False),
    "wrong": Key(is_wrong, "a table from wrong answers to explanations", required=False),
    "needs": NEEDS,
}
ANSWERS = {
    "number": Key(is_number, "a number"),
    "truth": Key(is_truth, "true or false"),
    "choice": Key(is_text, "a string, one of the choices"),
    "order": Key(is_lines, "a list of two or more strings, in the right order"),
    "text": Key(is_text, "a string that is not empty"),
    "shape": Key(is_shape, "a list of whole numbers"),
}
ONLY_FOR = {"choices": "choice", "tolerance": "number"}


def read_quiz(fence: Fence, report: Report) -> Quiz | None:
    """The quiz in a fence, or None if it is not complete enough to be one."""
    first = fence.line + 1
    table = load_toml(fence.body, first, "the quiz", report)
    if table is None:
        return None
    line_of = key_lines(fence.body, first, otherwise=fence.line)
    before = len(report.problems)
    values = check_table(table, KEYS, "the quiz", line_of, report)
    if "kind" in values:
        _check_kind({**table, **values}, line_of, report)
    if len(report.problems) > before:
        return None
    return _quiz(values, fence.line)


def _check_kind(values: dict[str, Any], line_of: Callable[[str], int], report: Report) -> None:
    """The rules that depend on the quiz's kind."""
    kind = values["kind"]
    if kind not in QUIZZES:
        meant = nearest(show(kind), QUIZZES)[0]
        report.add(
            line_of("kind"),
            f"there is no kind {show(kind)}; the nearest is {meant!r} (known: {listed(QUIZZES)})",
        )
        return
    for name, only in ONLY_FOR.items():
        if name in values and kind != only:
            report.add(line_of(name), f"{name!r} belongs to the kind {only!r}, not {kind!r}")
    if "answer" not in values:
        return
    answer = values["answer"]
    if not ANSWERS[kind].fits(answer):
        words = ANSWERS[kind].words
        report.add(line_of("answer"), f"the answer to {kind!r} must be {words}, not {show(answer)}")
    elif kind == "choice":
        _check_choice(values, answer, line_of, report)


def _check_choice(
    values: dict[str, Any], answer: str, line_of: Callable[[str], int], report: Report
) -> None:
    choices = values.get("choices", [])
    if "choices" not in values:
        report.add(line_of("choices"), f"the quiz lacks 'choices': {KEYS['choices'].words}")
    if not is_choices(choices):
        return
    if answer not in choices:
        report.add(
            line_of("answer"), f"the answer {answer!r} is not among the choices: {listed(choices)}"
        )
    for given in values["wrong"] if is_wrong(values.get("wrong")) else ():
        if given not in choices or given == answer:
            report.add(
                line_of("wrong"), f"'wrong' explains {given!r}, which is none of the wrong choices"
            )


def _quiz(values: dict[str, Any], line: int) -> Quiz:
    kind, answer = values["kind"], values["answer"]
    return Quiz(
        kind=kind,
        ask=values["ask"].strip(),
        answer=float(answer) if kind == "number" else answer,
        proof=values["proof"].strip(),
        explain=values["explain"].strip(),
        line=line,
        choices=tuple(shuffled(answer) if kind == "order" else values.get("choices", ())),
        tolerance=float(values.get("tolerance", Quiz.tolerance)),
        wrong=tuple((given, why.strip()) for given, why in values.get("wrong", {}).items()),
        needs=values.get("needs", ""),
    )


def shuffled(lines: list[str]) -> list[str]:
    """The lines in another order, always the same one."""
    mixed = sorted(lines, key=lambda line: zlib.crc32(line.encode("utf-8", "replace")))
    return mixed if mixed != lines else mixed[1:] + mixed[:1]
