"""`class`, `share`, `ask-for-help` and `hand-in`: a class that shares a folder.

Everything that comes from a class's files is text of others: each cell is made one harmless line.
"""

import csv
import io
import random
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from tensortutor.commands.app import why_not
from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session, follow, read_source
from tensortutor.course.model import Course, Lesson
from tensortutor.learner.class_board import ClassBoard, Learner, read_class, span
from tensortutor.learner.class_report import Sent
from tensortutor.learner.class_sharing import WHAT, ClassSharing, class_folder
from tensortutor.learner.lesson_session import NO_CLASS
from tensortutor.learner.workspace import file_name
from tensortutor.plaintext import one_line
from tensortutor.protocol.events import Finished, Judged
from tensortutor.protocol.layers import LIMITS

FAILED = 1
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How cells begin that a spreadsheet would calculate."""
LEARNERS = (
    "uid", "name", "lesson", "step", "steps", "checks_passed", "checks_total", "failing",
    "attempts", "lesson_passed", "stuck_s", "seen", "asks_for_help",
)  # fmt: skip
MOST_SEEDS = 1_000
CELL = 48
"""Characters of a cell in a table for people."""
RECHECKED = (
    "uid", "name", "lesson", "sent_as", "sent_at", "result", "checks_passed", "checks_total",
    "failing", "why", "seed",
)  # fmt: skip


# Whoever takes part


def share(session: Session, arguments: Namespace) -> int:
    """Say with which class the learner shares; begin or stop."""
    sharing = session.sharing
    if sharing is None:
        if arguments.turn is not None:
            raise Refused(NO_CLASS)
        session.printer.line(NO_CLASS)
    elif arguments.turn == "on":
        sharing.start()
    elif arguments.turn == "off":
        sharing.stop()
    elif sharing.is_on:
        session.printer.line(f"You share with the class in {sharing.folder}: {WHAT}")
        session.printer.line("tensortutor share off stops it, and removes your file there.")
    else:
        session.printer.line(f"You do not share with the class in {sharing.folder}: you stopped.")
        session.printer.line("tensortutor share on begins again.")
    return 0 if session.end_sharing() else FAILED


def ask_for_help(session: Session, arguments: Namespace) -> int:
    """Send a step's code with a call for help, or take the call back. Returns 1 if it failed."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    index = lesson.steps.index(lesson.task)
    if arguments.step is not None:
        index = session.step(lesson, arguments.step)
    _sharing(session)
    work = session.lesson_session(lesson, index)
    if arguments.withdraw:
        work.withdraw_help()
    else:
        work.send(help=True, code=_code(arguments.file))
    return 0 if session.end_sharing() else FAILED


def hand_in(session: Session, arguments: Namespace) -> int:
    """Send the code that the checks judge. Returns 1 if it failed."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    _sharing(session)
    work = session.lesson_session(lesson, lesson.steps.index(lesson.task))
    work.send(help=False, code=_code(arguments.file))
    return 0 if session.end_sharing() else FAILED


def _code(file: str | None) -> str | None:
    return None if file is None else read_source(Path(file))


def _sharing(session: Session) -> ClassSharing:
    """What shares with the learner's class. Raises Refused if they have none."""
    if session.sharing is None:
        raise Refused(NO_CLASS)
    return session.sharing


# Whoever teaches


def show_class(session: Session, arguments: Namespace) -> int:
    """Show the class: a live board on a terminal, else a table; or check again what was sent."""
    folder = Path(arguments.folder) if arguments.folder else class_folder(session.settings)
    if folder is None:
        raise Refused("Name the folder of the class: tensortutor class FOLDER.")
    if arguments.csv and session.json:
        raise Refused("--csv and --json are two forms of the same: say one of them.")
    if arguments.seeds > MOST_SEEDS:
        raise Refused(f"--seeds is {MOST_SEEDS} at most.")
    if arguments.recheck:
        return _recheck(session, read_class(folder), arguments)
    if not session.json and not arguments.csv and not why_not():
        from tensortutor.ui.class_app import run_class_app

        return run_class_app(folder.absolute(), session.course, session.settings)
    board = read_class(folder)
    if session.json:
        for row in _as_json(board):
            session.printer.json(row)
    elif arguments.csv:
        _print_csv(session, LEARNERS, map(learner_json, board.learners))
    else:
        _print_board(session, board)
    for sentence in board.sentences:
        session.printer.note(one_line(sentence, 1000))
    return 0


def learner_json(learner: Learner) -> dict[str, object]:
    """A learner for a program to read. Times are UTC."""
    report = learner.report
    return {
        "event": "learner", "uid": learner.uid, "name": learner.name, "lesson": report.lesson,
        "step": report.step, "steps": report.steps, "checks_passed": report.checks_passed,
        "checks_total": report.checks_total, "failing": list(report.failing),
        "attempts": report.attempts, "lesson_passed": report.lesson_passed,
        "stuck_s": round(report.stuck_s), "seen": _time(report.seen),
        "asks_for_help": report.asks_for_help,
    }  # fmt: skip


def _as_json(board: ClassBoard) -> Iterator[dict[str, object]]:
    """Learners with the code that they sent, failing checks, files that were not read."""
    for learner in board.learners:
        sent = [
            {"lesson": one.lesson, "step": one.step, "at": _time(one.at),
             "sent_as": _sent_as(one), "code": one.code}
            for one in learner.sent()
        ]  # fmt: skip
        yield {**learner_json(learner), "sent": sent}
    for failing in board.failing():
        yield {
            "event": "failing", "lesson": failing.lesson, "check": failing.check,
            "count": len(failing.learners), "learners": [one.name for one in failing.learners],
        }  # fmt: skip
    for refusal in board.refusals:
        yield {
            "event": "refused", "why": refusal.why, "count": refusal.count,
            "owners": list(refusal.owners),
        }  # fmt: skip


def _print_board(session: Session, board: ClassBoard) -> None:
    printer = session.printer
    if not board.learners:
        printer.line("Nobody shares with this class yet.")
        return
    rows = [("learner", "lesson", "stuck", "checks", "step", "tries", "seen", "")]
    for learner in board.learners:
        report = learner.report
        checks = f"{report.checks_passed}/{report.checks_total}" if report.checks_total else ""
        stuck = span(report.stuck_s) if report.stuck_s >= 60 else ""
        seen = "now" if learner.ago_s < 60 else f"{span(learner.ago_s)} ago"
        rows.append((
            learner.name, report.lesson, stuck, checks, f"{report.step}/{report.steps}",
            str(report.attempts or ""), seen, _state(learner),
        ))  # fmt: skip
    for line in _table(rows):
        printer.line(line)
    failing = board.failing()
    if failing:
        printer.line()
        printer.line("Checks that fail now:")
        for line in _table([
            (str(len(one.learners)), one.lesson, one.check,
             ", ".join(learner.name for learner in one.learners))
            for one in failing
        ]):  # fmt: skip
            printer.line(line)


def _state(learner: Learner) -> str:
    if learner.report.asks_for_help:
        return "asks for help"
    if learner.is_away:
        return "away"
    return "passed" if learner.report.lesson_passed else "stuck" if learner.is_stuck else ""


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows with columns of one width each."""
    cells = [tuple(one_line(cell, CELL) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def _print_csv(session: Session, columns: Sequence[str], rows: Iterable[dict[str, object]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
    for line in out.getvalue().rstrip("\n").split("\n"):
        session.printer.line(line)


def _cell(value: object) -> str:
    """One line that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = one_line("; ".join(map(str, value)) if isinstance(value, list) else str(value), 1000)
    return f"'{text}" if text.startswith(FORMULA) else text


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _sent_as(sent: Sent) -> str:
    return "call for help" if sent.help else "handed in"


# Checking again what was sent


@dataclass(frozen=True)
class Recheck:
    """What the checks say of code that was sent.

    why: of code that not all checks have judged. seed: repeats the inputs; None if it was not run.
    """

    learner: Learner
    sent: Sent
    judged: Judged | None = None
    why: str = ""
    seed: int | None = None

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return self.judged is not None and self.judged.ok

    @property
    def as_json(self) -> dict[str, object]:
        """For a program to read."""
        judged = self.judged or Judged((), ())
        failing = [*judged.failed, *judged.missing]
        return {
            "event": "rechecked", "uid": self.learner.uid, "name": self.learner.name,
            "lesson": self.sent.lesson, "sent_as": _sent_as(self.sent),
            "sent_at": _time(self.sent.at),
            "result": "passed" if self.ok else "failed" if self.judged else "not judged",
            "checks_passed": len(judged.passed), "checks_total": len(judged.passed) + len(failing),
            "failing": failing, "why": self.why, "seed": self.seed,
        }  # fmt: skip


def _recheck(session: Session, board: ClassBoard, arguments: Namespace) -> int:
    """Put the checks, with new inputs, to all code that was sent. Returns 0 if all of it passes."""
    sent = [(learner, one) for learner in board.learners for one in learner.sent()]
    sent.sort(key=lambda pair: (pair[0].name, pair[0].uid, pair[1].lesson))
    results: list[Recheck] = []
    for number, (learner, one) in enumerate(sent):
        session.printer.progress(number, len(sent), one_line(f"{learner.name} {one.lesson}", 60))
        result = _checked_again(session, learner, one, arguments.seeds)
        results.append(result)
        if session.json:
            session.printer.json(result.as_json)
    if arguments.csv:
        _print_csv(session, RECHECKED, [one.as_json for one in results])
    elif not session.json:
        _print_rechecked(session, results)
    for sentence in board.sentences:
        session.printer.note(one_line(sentence, 1000))
    return 0 if all(one.ok for one in results) else FAILED


def _checked_again(session: Session, learner: Learner, sent: Sent, seeds: int) -> Recheck:
    lesson = _lesson(session.course, sent.lesson)
    if lesson is None:
        return Recheck(learner, sent, why="the course has no such lesson")
    index = lesson.steps.index(lesson.task)
    if sent.step != index + 1:
        return Recheck(learner, sent, why=f"it is of step {sent.step}, which is not judged")
    runner = session.runner()
    if runner.status.layer == LIMITS:
        raise Refused(
            "Code of others is not run without a sandbox, and this machine has none: "
            f"{runner.status.why} tensortutor doctor says what would help."
        )
    results = (
        _checked_once(session, learner, sent, lesson, seed)
        for seed in random.SystemRandom().sample(range(100_000), seeds)
    )
    # What fails once has failed; else the last is as good as any.
    for result in results:
        if not result.ok:
            break
    return result


def _checked_once(
    session: Session, learner: Learner, sent: Sent, lesson: Lesson, seed: int
) -> Recheck:
    """One run, as the learner's own checks are: each has the whole time limit for itself."""
    from tensortutor.course.jobs import check_job

    name = file_name(lesson, sent.step - 1)
    raised = session.may_raise(lesson)
    job = check_job(lesson, sent.code, name, seed, session.limits, raised=raised)
    judged, why = None, ""
    # No scratch folder: that would be shared with the next learner's code, and one's own.
    for event in follow(session.runner(), replace(job, scratch="")):
        if isinstance(event, Judged):
            judged = event
        elif isinstance(event, Finished):
            why = event.sentence
    is_whole = judged is not None and not judged.missing
    return Recheck(learner, sent, judged, "" if is_whole else why, seed)


def _lesson(course: Course, id: str) -> Lesson | None:
    return next((lesson for lesson in course.lessons if lesson.id == id), None)


def _print_rechecked(session: Session, results: Sequence[Recheck]) -> None:
    if not results:
        session.printer.line("Nobody has sent code.")
        return
    rows = [("learner", "lesson", "sent as", "result", "checks", "fails")]
    for one in results:
        row = one.as_json
        failing = one.why or "; ".join(one.judged.failed if one.judged else ())
        rows.append((
            one.learner.name, one.sent.lesson, _sent_as(one.sent), str(row["result"]),
            f"{row['checks_passed']}/{row['checks_total']}", failing,
        ))  # fmt: skip
    for line in _table(rows):
        session.printer.line(line)
