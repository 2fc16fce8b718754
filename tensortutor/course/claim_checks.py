"""What must hold of a run for a claim to be true: each gives None, or the fault in a sentence."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensortutor.course.material import Failure, Look, Pane, Quiz, Try
from tensortutor.course.problems import listed
from tensortutor.course.run_record import Record
from tensortutor.lens.rows import find_row, folded, rows_of
from tensortutor.protocol.events import Raised, Verdict

ROWS_NAMED = 12
"""How many rows of an instrument a message names."""
BROKEN_OFF = ("time", "memory", "processes", "killed", "lost", "stopped")
"""Outcomes of a run that never came to its end."""


@dataclass(frozen=True)
class Fault:
    """What is wrong. line: where in the claim's file, 0 for the claim's own line."""

    message: str
    line: int = 0


Holds = Callable[[Record], Fault | None]


def ended(record: Record, first: int = 0) -> Fault | None:
    """The program ran to its end, without an error.

    first: the line of the fence that holds the program, 0 if it is in no fence.
    """
    error = record.raised
    if error is not None:
        line = first + error.frames[-1].line if first and error.frames else 0
        return Fault(f"it raises {error.type}: {_first(error.message)}", line)
    return None if record.finished.outcome == "done" else Fault(record.finished.sentence)


def broken_off(record: Record) -> Fault | None:
    """The run came to an end of its own, be it an error."""
    off = record.finished.outcome in BROKEN_OFF
    return Fault(record.finished.sentence) if off else None


def completes(pane: Pane) -> Holds:
    """The pane's program ends without an error."""
    return lambda record: ended(record, pane.line)


def reveals(pane: Pane) -> Holds:
    """The pane's program ends without an error, and prints something to hold a guess against."""

    def holds(record: Record) -> Fault | None:
        fault = ended(record, pane.line)
        if fault is not None or record.stdout.strip():
            return fault
        return Fault("it prints nothing: the run must reveal the answer")

    return holds


def fails(record: Record) -> Fault | None:
    """The program ends with an error."""
    if record.finished.outcome == "done":
        return Fault("it runs without an error, so there is nothing to fix")
    return broken_off(record)


def prints(pane: Pane) -> Holds:
    """The pane's program prints its output, trailing spaces and empty last lines apart."""

    def holds(record: Record) -> Fault | None:
        fault = ended(record, pane.line)
        if fault is not None:
            return fault
        wanted, got = lines_of(pane.output or ""), lines_of(record.stdout)
        for number in range(max(len(wanted), len(got))):
            line = pane.output_line + 1 + number
            if number >= len(got):
                return Fault(f"it prints no {wanted[number]!r}", line)
            if number >= len(wanted):
                return Fault(f"it also prints {got[number]!r}", line)
            if wanted[number] != got[number]:
                return Fault(f"it prints {got[number]!r}, not {wanted[number]!r}", line)
        return None

    return holds


def lines_of(text: str) -> list[str]:
    """The lines of printed text, without what nobody sees."""
    return [line.rstrip() for line in text.rstrip().split("\n")] if text.strip() else []


def answers(quiz: Quiz, index: int) -> Holds:
    """The quiz's proof gives its answer."""

    def holds(record: Record) -> Fault | None:
        probed = record.probe(index)
        if probed is None:
            return ended(record) or Fault("the proof gave nothing")
        if probed.error:
            return Fault(f"the proof raises {_first(probed.error)}")
        if not same(quiz, probed.value):
            return Fault(f"the proof gives {probed.value!r}, the answer is {quiz.answer!r}")
        return None

    return holds


def same(quiz: Quiz, value: Any) -> bool:
    """A proof's value is the quiz's answer."""
    if quiz.kind == "number":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if math.isnan(quiz.answer):
            return math.isnan(value)
        return math.isclose(value, quiz.answer, rel_tol=quiz.tolerance, abs_tol=quiz.tolerance)
    return type(value) is type(quiz.answer) and bool(value == quiz.answer)


def raises(failure: Failure) -> Holds:
    """The program's report ends in one of its messages, or, for a warning, stderr holds one."""

    def holds(record: Record) -> Fault | None:
        message, error = failure.message, record.raised
        if error is None:
            if any(said in record.stderr for said in failure.messages):
                return None
            instead = f"stderr says {_first(record.stderr)!r}" if record.stderr else "nor warns"
            return broken_off(record) or Fault(
                f"it raises nothing, {instead}; shown is {message!r}", failure.message_line + 1
            )
        report = report_of(error)
        if report.startswith(failure.messages):
            return None
        return Fault(
            f"it raises {_first(report)!r}, shown is {message!r}",
            failure.message_line + 1,
        )

    return holds


def report_of(error: Raised) -> str:
    """The part of a traceback below its frames: `type: message`, on as many lines as it has.

    A program with an excepthook of its own, as torch.distributed sets one, prints its report
    itself, and `text` is empty.
    """
    if not error.text:
        return f"{error.type}: {error.message}"
    lines = error.text.rpartition("Traceback (most recent call last):")[2].split("\n")
    begins = (n for n, line in enumerate(lines) if line and not line.startswith(" "))
    return "\n".join(lines[next(begins, 0) :])


def comes_of(experiment: Try) -> Holds:
    """The edited program does what the experiment says."""
    line = experiment.result_line
    if experiment.error is not None:
        return raises(Failure("", experiment.error, experiment.line, line - 1))
    if experiment.output is not None:
        return prints(Pane("run", "", 0, experiment.output, line - 1))
    wanted = experiment.shows or ""

    def holds(record: Record) -> Fault | None:
        fault = ended(record)
        if fault is not None or folded(wanted) in folded(record.stdout):
            return fault
        return Fault(f"it prints {_first(record.stdout)!r}, without {wanted!r}", line)

    return holds


def seen(look: Look, pane: Pane) -> Holds:
    """The instrument has the row, and the row shows what the look expects."""

    def holds(record: Record) -> Fault | None:
        fault = ended(record, pane.line)
        if fault is not None:
            return fault
        rows = rows_of(look.tab, record.events, pane.source)
        if find_row(rows, look.tab, look.row, look.expect) is not None:
            return None
        row = find_row(rows, look.tab, look.row)
        if row is not None:
            return Fault(f"the row {look.row!r} shows {folded(row.text)!r}, not {look.expect!r}")
        names = list(dict.fromkeys(name.strip() for row in rows for name in row.names[:1]))
        known = f"its rows: {listed(names[:ROWS_NAMED])}" if names else "it has no rows"
        return Fault(f"the {look.tab} tab has no row {look.row!r}; {known}")

    return holds


def reaches(check: str, checks: tuple[str, ...]) -> Holds:
    """The check of this name passes, and every one of `checks` before it."""
    wanted = checks[: checks.index(check) + 1]

    def holds(record: Record) -> Fault | None:
        for name in wanted:
            verdict = record.verdict(name)
            if verdict is None:
                return ended(record) or Fault(f"the check {name!r} did not report")
            if not verdict.passed:
                return Fault(said(verdict))
        return None

    return holds


def passes(first: int) -> Holds:
    """Every check passes. first: the line of the fence that holds the program, or 0."""

    def holds(record: Record) -> Fault | None:
        for verdict in record.verdicts:
            if not verdict.passed:
                return Fault(said(verdict))
        fault = ended(record, first)
        if fault is not None:
            return fault
        if record.judged is None or not record.judged.ok:
            missing = record.judged.missing if record.judged else ()
            return Fault(f"checks did not report: {', '.join(missing) or 'all of them'}")
        return None

    return holds


def rejected(record: Record) -> Fault | None:
    """At least one check fails, or the program does."""
    if record.judged is not None and record.judged.ok:
        return Fault(f"it passes every check with seed {_seed(record)}")
    return broken_off(record)


def caught(check: str) -> Holds:
    """The check of this name fails."""

    def holds(record: Record) -> Fault | None:
        verdict = record.verdict(check)
        if verdict is None:
            return ended(record) or Fault(f"the check {check!r} did not report")
        if verdict.passed:
            others = [v.check for v in record.verdicts if not v.passed]
            instead = f"only {others[0]!r} fails" if others else "no check fails"
            return Fault(f"it passes {check!r} with seed {verdict.seed}: {instead}")
        return None

    return holds


def refused(check: str, path: str) -> Holds:
    """The check of this name fails because torch's function `path` is called."""
    *_, folder, name = ("", *path.split("."))
    # torch's own name for it may carry the module's: torch.linalg.inv is `linalg_inv`.
    names = (f"`{name.strip('_')}`", f"`{folder}_{name.strip('_')}`")

    def holds(record: Record) -> Fault | None:
        verdict = record.verdict(check)
        if verdict is None:
            return ended(record) or Fault(f"the check {check!r} did not report")
        if verdict.passed:
            return Fault(f"{check!r} passes a program whose functions call it")
        if not any(called in verdict.message for called in names):
            return Fault(f"{check!r} fails for another reason: {said(verdict)}")
        return None

    return holds


def said(verdict: Verdict) -> str:
    """A failed verdict in a sentence."""
    parts = [f"{verdict.check!r} fails with seed {verdict.seed}: {_first(verdict.message)}"]
    if verdict.got or verdict.expected:
        parts.append(f"got {verdict.got}, expected {verdict.expected}")
    parts += [part for part in (verdict.where, verdict.called and f"in {verdict.called}") if part]
    return ", ".join(parts)


def _seed(record: Record) -> int:
    return record.verdicts[0].seed if record.verdicts else 0


def _first(text: str) -> str:
    """The first line of a text."""
    return (text.strip().split("\n") or [""])[0]
