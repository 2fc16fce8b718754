"""`run` and `check`: the learner's code at work."""

import shlex
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session, follow, read_source
from tensortutor.course.material import Prose
from tensortutor.course.model import Lesson
from tensortutor.learner import answers
from tensortutor.learner.guesses import remarks
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.learner.workspace import file_name
from tensortutor.protocol.drawings import DRAWINGS, Drawing
from tensortutor.protocol.events import (
    CheckStarted,
    Event,
    Explained,
    Finished,
    Judged,
    Notice,
    Output,
    Probed,
    Raised,
    Verdict,
    event_to_json,
)
from tensortutor.protocol.jobs import Job, Look
from tensortutor.protocol.lens import LENS
from tensortutor.report import (
    ending,
    explained_lines,
    failed_lines,
    failure_lines,
    neutral,
    passed_line,
    to_do,
)

FAILED = 1


def run(session: Session, arguments: Namespace) -> int:
    """Run a file, or a step's code. Returns the program's own exit status."""
    lens = arguments.lens or arguments.lens_all
    look = Look(lens, lens, arguments.profile, arguments.lens_all)
    job, work = _program(session, arguments)
    job = replace(job, look=look)
    runner = session.runner()
    code = FAILED
    drawings: dict[str, Drawing] = {}
    probed: dict[int, Any] = {}
    for event in session.explained(follow(runner, job)):
        if session.json:
            session.printer.json(event_to_json(event))
        elif isinstance(event, DRAWINGS):
            drawings[event.title] = event
        elif isinstance(event, LENS):
            _show(session, event, job.source)
        else:
            if isinstance(event, Finished):
                _draw(session, drawings.values())
            _tell(session, event)
        if isinstance(event, Finished):
            code = event.code
        if isinstance(event, Probed) and not event.error:
            probed[event.index] = event.value
        elif isinstance(event, Finished) and event.outcome != "stopped" and work is not None:
            _reveal(session, work, job.source, probed)
    return code


def _reveal(session: Session, work: LessonSession, source: str, probed: Mapping[int, Any]) -> None:
    """Hold the guesses that were given before against what the run gave, and say why."""
    from tensortutor.commands.render import Page

    guesses = work.reveal(probed)
    if session.json or not guesses:
        return
    printer, page = session.printer, Page(session.printer, work.lesson, {})
    styles = {"right": ("✓ ", "green"), "wrong": ("✗ ", "red"), "note": ("", "dim")}
    several = len(work.step.quizzes) > 1
    printer.line()
    for kind, sentence in remarks(guesses, several=several, is_own=work.is_own(source)):
        sign, style = styles[kind]
        printer.line(printer.paint(sign + neutral(sentence), style))
    for guess in guesses:
        printer.line()
        for line in page.prose(Prose(answers.explanation(guess.quiz, guess.value), 0)):
            printer.line(line)


def _draw(session: Session, drawings: Iterable[Drawing]) -> None:
    """Print what a program has drawn, each drawing in its last state."""
    for drawing in drawings:
        session.printer.drawing(drawing)


def _show(session: Session, event: Event, source: str) -> None:
    """Print what the lens saw."""
    # Imported here: most runs do without it.
    from tensortutor.commands.lens import View

    for line in View(session.printer, source).event(event):
        session.printer.line(line)


def _program(session: Session, arguments: Namespace) -> tuple[Job, LessonSession | None]:
    from tensortutor.course.jobs import program_job

    if (arguments.file is None) == (arguments.lesson is None):
        raise Refused("Name either a file or a lesson: run FILE, or run --lesson LESSON.")
    if arguments.lesson is None:
        if arguments.step is not None:
            raise Refused("--step goes with --lesson.")
        path = Path(arguments.file)
        source = read_source(path)
        words = tuple(arguments.arguments)
        return program_job(None, source, path.name, session.limits, arguments=words), None
    lesson = session.open_lesson(arguments.lesson, arguments.anyway)
    index = lesson.steps.index(lesson.task)
    if arguments.step is not None:
        index = session.step(lesson, arguments.step)
    if lesson.steps[index].pane is None:
        raise Refused(f"Step {index + 1} of {lesson.id} has no code. {_steps_with_code(lesson)}")
    work = session.lesson_session(lesson, index)
    question = work.next_question()
    if work.must_answer_first and question is not None:
        raise Refused(
            f"Predict before you run it: tensortutor answer {lesson.id} {index + 1} VALUE "
            f"--question {question + 1}{session.again(lesson)}"
        )
    source = session.workspace.load(lesson, index)
    job = program_job(
        lesson, source, file_name(lesson, index), session.limits, raised=session.may_raise(lesson)
    )
    return replace(job, probes=work.proofs(source)), work


def _steps_with_code(lesson: Lesson) -> str:
    numbers = [str(n) for n, step in enumerate(lesson.steps, 1) if step.pane is not None]
    return f"These have: {', '.join(numbers)}."


def _tell(session: Session, event: Event, *, aside: bool = False) -> None:
    """Print an event of a program. aside: keep stdout for something else."""
    printer = session.printer
    if isinstance(event, Output):
        printer.output(event, aside=aside)
    elif isinstance(event, Raised) and event.type != "KeyboardInterrupt":
        printer.output(Output("stderr", event.text))
    elif isinstance(event, Explained):
        for line in explained_lines(event, printer.width):
            printer.error_line(line)
    elif isinstance(event, Notice):
        printer.note(event.text)
    elif isinstance(event, Finished):
        for sentence in ending(event):
            printer.note(sentence)


def check(session: Session, arguments: Namespace) -> int:
    """Put the lesson's checks to the learner's code, and keep what comes of it."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    status = check_once(session, lesson, arguments.file, seed=arguments.seed, every=arguments.all)
    return FAILED if status is None else status


def check_once(
    session: Session, lesson: Lesson, file: str | None, *, seed: int | None = None,
    every: bool = False, enough: Callable[[], bool] | None = None,
) -> int | None:  # fmt: skip
    """Check a lesson's code, and keep what comes of it. Returns the status.

    every: tell all failures whole, not the first alone. enough: asked now and then; when it says so
    the check is given up, and None returned.
    Raises Refused or StorageError if there is no code that can be read.
    """
    from tensortutor.course.jobs import check_job

    given_up: list[bool] = []

    def is_enough() -> bool:
        given_up.extend([True] if enough is not None and enough() else [])
        return bool(given_up)

    source, name, again = _answer(session, lesson, file)
    job = check_job(lesson, source, name, seed, session.limits, raised=session.may_raise(lesson))
    heard = follow(session.runner(), job, None if enough is None else is_enough)
    # Of a check that is given up nothing is summed up.
    events = (e for e in heard if not (given_up and isinstance(e, (Judged, Finished))))
    judged = _judge(session, session.explained(events), again, every)
    return None if given_up else _keep(session, lesson, judged, file, source)


def _answer(session: Session, lesson: Lesson, file: str | None) -> tuple[str, str, str]:
    """The code to check, its name, and the command that checks it again."""
    options = session.again(lesson)
    if file is not None:
        path = Path(file)
        again = f"tensortutor check {lesson.id} {shlex.quote(file)}{options}"
        return read_source(path), path.name, again
    index = lesson.steps.index(lesson.task)
    if not session.workspace.edited(lesson, index):
        path = session.workspace.start(lesson, index)
        session.printer.note(f"You have not changed the code yet. It is in {path}")
    source = session.workspace.load(lesson, index)
    return source, file_name(lesson, index), f"tensortutor check {lesson.id}{options}"


def _judge(session: Session, events: Iterable[Event], again: str, every: bool) -> Judged:
    """Report a check run as it happens. Returns its sum; empty if it never came so far.

    Failures wait for the sum: only then is it known which of them are equal. What the program
    writes while it is checked waits for the end of the list that it would tear apart.
    """
    judged, failures, printer = Judged((), ()), list[Verdict](), session.printer
    explanations: dict[str, Explained] = {}
    aside = _Aside(session)
    for event in aside.passing(events):
        if isinstance(event, Judged):
            judged = event
        if session.json:
            printer.json(event_to_json(event))
        elif isinstance(event, Verdict) and not event.passed:
            failures.append(event)
        elif isinstance(event, Verdict):
            printer.line(passed_line(event, printer))
        elif isinstance(event, Explained) and event.check:
            explanations[event.check] = event
        elif isinstance(event, Judged):
            aside.tell()
            failed = failure_lines(failures, explanations, again, printer, every=every)
            for line in (*failed, *_missing(session, event)):
                printer.line(line)
        else:
            aside.take(event)
    return judged


class _Aside:
    """What is said beside the checks: at once before they begin, then together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: list[Event] | None = None

    def passing(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events; what waits when they break off is told."""
        try:
            for event in events:
                if isinstance(event, CheckStarted) and self._waiting is None:
                    self._waiting = []
                yield event
        finally:
            self.tell()

    def take(self, event: Event) -> None:
        """Tell an event now, or later."""
        if self._waiting is None:
            _tell(self._session, event, aside=True)
        else:
            self._waiting.append(event)

    def tell(self) -> None:
        """Tell what waits, and from now on everything at once."""
        waiting, self._waiting = self._waiting or [], None
        if any(isinstance(event, (Output, Raised)) for event in waiting):
            self._session.printer.note("While it was checked, the program wrote:")
        for event in waiting:
            _tell(self._session, event, aside=True)
        if waiting and isinstance(waiting[-1], Output) and not waiting[-1].text.endswith("\n"):
            self._session.printer.error_line("")


def _missing(session: Session, judged: Judged) -> Iterator[str]:
    if judged.missing:
        who = "this check" if len(judged.missing) == 1 else "these checks"
        why = f"The program ended before {who} could report."
        yield from failed_lines(judged.missing, why, session.printer)


def _keep(session: Session, lesson: Lesson, judged: Judged, file: str | None, source: str) -> int:
    """Record the attempt. What the checks said counts even if it cannot be kept."""
    said: dict[str, None] = {}  # each sentence once: what one write could not keep, none can
    work = session.lesson_session(lesson, lesson.steps.index(lesson.task), said.setdefault)
    opened = work.judge(judged, source)
    for sentence in said:
        session.printer.note(sentence)
    if session.json:
        session.printer.json(
            {
                "event": "attempt",
                "lesson": lesson.id,
                "passed": judged.ok,
                "opened": [one.id for one in opened],
                "known": [one.id for one in work.shown],
            }
        )
    elif judged.ok:
        _tell_passed(session, lesson, opened, work.shown)
        compare = f"tensortutor compare {lesson.id}{f' {shlex.quote(file)}' if file else ''}"
        command = f"{compare}{session.again(lesson)}"
        for line in to_do("A solution beside your code:", command, session.printer.width):
            session.printer.line(line)
    return 0 if judged.ok else FAILED


def _tell_passed(
    session: Session, lesson: Lesson, opened: tuple[Lesson, ...], shown: tuple[Lesson, ...]
) -> None:
    printer = session.printer
    printer.line()
    printer.line(f"{printer.paint('Passed', 'green')}: {lesson.title}")
    for one in shown:
        printer.line(f"Known by it: {one.id}, {one.title}")
    for one in opened:
        printer.line(f"Opened: {one.id}, {one.title}")
