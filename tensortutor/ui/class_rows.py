"""A class as rows of a list, and as words beside it. Pure. Every text of a learner is wrapped."""

from collections.abc import Iterable, Sequence

from textual.content import Content

from tensortutor.course.model import Course
from tensortutor.learner.class_board import ClassBoard, FailingCheck, Learner, span
from tensortutor.learner.class_report import Sent
from tensortutor.ui import describe
from tensortutor.ui.outside import OutsideText
from tensortutor.ui.terminal import symbols

NAME = 12
COLUMNS = (8, 7, 6, 6, 10)
"""Cells of the columns beside the lesson's name."""
LEAST = 16
"""Cells that the name of a lesson keeps; in less room columns go, the last first."""
LOOKS = {"help": "bold $text-warning", "stuck": "$text-error", "passed": "$text-success"}
DIM = "$foreground 66%"


def lesson_name(course: Course, id: str) -> OutsideText:
    """A lesson by its number and title; one that the course has not, as the file names it."""
    lesson = describe.lesson_by_id(course, id)
    return OutsideText(describe.short_name(course, lesson) if lesson is not None else id)


def state(learner: Learner) -> str:
    """What stands out about a learner: "help", "stuck", "passed", "away" or nothing."""
    if learner.report.asks_for_help:
        return "help"
    if learner.is_away:
        return "away"
    if learner.report.lesson_passed:
        return "passed"
    return "stuck" if learner.is_stuck else ""


def seen(learner: Learner) -> str:
    """When a learner was last seen."""
    return "now" if learner.ago_s < 60 else f"{span(learner.ago_s)} ago"


def heading(width: int) -> Content:
    """The names of the columns."""
    columns = ("stuck", "checks", "step", "tries", "seen")
    return _row("  ", Content("learner"), Content("lesson"), map(Content, columns), width).stylize(
        DIM
    )


def learner_row(course: Course, learner: Learner, width: int) -> Content:
    """A learner in one line; a sign before the name says what stands out."""
    signs, report, now = symbols.current(), learner.report, state(learner)
    mark = {"help": "?", "stuck": signs.failed, "passed": signs.passed}.get(now, " ")
    stuck = span(report.stuck_s) if report.stuck_s >= 60 else ""
    columns = (
        Content.styled(stuck, LOOKS.get(now, DIM)),
        Content(f"{report.checks_passed}/{report.checks_total}" if report.checks_total else ""),
        Content(f"{report.step}/{report.steps}"),
        Content(str(report.attempts or "")),
        Content.styled(seen(learner), DIM),
    )
    name = OutsideText(learner.name).styled("" if now == "away" else "bold")
    row = _row(
        f"{mark} ", name, lesson_name(course, report.lesson).title, columns, width,
        LOOKS.get(now, ""),
    )  # fmt: skip
    return row.stylize(DIM) if now == "away" else row


def check_row(course: Course, failing: FailingCheck, width: int) -> Content:
    """A check in one line, with how many fail it now."""
    count = Content.styled(f"{len(failing.learners):>4}  ", "bold $text-error")
    lesson = _fit(lesson_name(course, failing.lesson).styled(DIM), min(34, width // 3))
    rest = max(1, width - count.cell_length - lesson.cell_length - 2)
    return count + lesson + Content("  ") + _fit(OutsideText(failing.check).title, rest)


def title(learner: Learner) -> str:
    """A learner's name, and the number that stands behind it."""
    uid = str(learner.uid)
    return f"User {uid}" if learner.name == uid else f"{learner.name}, user {uid}"


def about_learner(course: Course, learner: Learner, key: str, gap: str) -> Content:
    """A learner in a few lines. key: what shows code. gap: between paragraphs."""
    report = learner.report
    now = [f"step {report.step} of {report.steps}, seen {seen(learner)}"]
    if report.checks_total:
        runs = describe.count(report.attempts, "check run")
        now.append(f"{report.checks_passed} of {report.checks_total} checks pass, after {runs}")
    if report.lesson_passed:
        now.append("this lesson is passed")
    elif report.stuck_s >= 60:
        now.append(f"nothing got better in {span(report.stuck_s)} of work")
    parts = [lesson_name(course, report.lesson).styled("bold"), Content("\n".join(now))]
    if report.asks_for_help:
        parts.insert(0, Content.styled(f"asks for help: {key} shows the code", LOOKS["help"]))
    elif report.sent:
        handed = describe.count(len(report.sent), "exercise")
        parts.append(Content(f"has handed in {handed}: {key} shows the code"))
    if report.failing and not report.lesson_passed:
        names = [OutsideText(f"{symbols.current().failed} {name}").title for name in report.failing]
        parts.append(Content("\n").join(names))
    return Content(gap).join(parts)


def about_check(course: Course, failing: FailingCheck, gap: str) -> Content:
    """A check, and who fails it, with the time that they have been stuck."""
    who = [
        OutsideText(learner.name).title + Content.styled(f"  {span(learner.report.stuck_s)}", DIM)
        for learner in failing.learners
    ]
    parts = [OutsideText(failing.check).styled("bold"), lesson_name(course, failing.lesson).title]
    return Content(gap).join([*parts, Content("\n").join(who)])


def sent_title(course: Course, sent: Sent) -> Content:
    """What stands over code that was sent."""
    kind = "asks for help with" if sent.help else "handed in:"
    words = f"{kind} {lesson_name(course, sent.lesson).line}, step {sent.step}"
    return OutsideText(words).styled("bold")


def overall(board: ClassBoard) -> str:
    """The whole class in a line."""
    here = board.present
    parts = [f"{len(here)} of {len(board.learners)} here"]
    parts.append(f"{sum(one.is_stuck for one in here)} stuck")
    asking = sum(one.report.asks_for_help for one in board.learners)
    parts.append(f"{asking} ask{'s' if asking == 1 else ''} for help")
    return "   ".join(parts)


def notices(sentences: Sequence[str]) -> Content:
    """What there is to say about the folder and its files."""
    return Content("\n").join(OutsideText(sentence).title for sentence in sentences)


def _row(
    mark: str, name: Content, lesson: Content, columns: Iterable[Content], width: int,
    look: str = "",
) -> Content:  # fmt: skip
    right = [
        _fit(column, cells - 1, right=True) + Content(" ")
        for column, cells in zip(columns, COLUMNS, strict=True)
    ]
    left = Content.styled(mark, look) + _fit(name, NAME) + Content(" ")
    while right and left.cell_length + LEAST + sum(one.cell_length for one in right) > width:
        right.pop()
    room = max(1, width - left.cell_length - sum(one.cell_length for one in right))
    return left + _fit(lesson, room - 1) + Content(" ") + Content("").join(right)


def _fit(text: Content, cells: int, *, right: bool = False) -> Content:
    """A text in exactly so many cells."""
    cells = max(1, cells)
    if text.cell_length > cells:
        text = text.truncate(cells - 1) + Content(symbols.current().cut)
    space = cells - text.cell_length
    return text.pad_left(space) if right else text.pad_right(space)
