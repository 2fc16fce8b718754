"""`drill`: make a tensor that is drawn, in one line of PyTorch."""

import shlex
from argparse import Namespace

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session, follow
from tensortutor.course.drills import Drill, answer_job, not_a_line, picture_job, read_drills
from tensortutor.course.problems import listed, nearest
from tensortutor.learner.review import record_drill
from tensortutor.protocol.drawings import CellGrid
from tensortutor.protocol.events import Event, Finished, Judged, Output, Verdict, event_to_json
from tensortutor.report import failure_lines, to_do

FAILED = 1
SEED = 0


def drill(session: Session, arguments: Namespace) -> int:
    """List drills, draw one, or check a line for it. Returns 1 if the line is not right."""
    drills, _ = read_drills(session.course)
    if arguments.name is None:
        return _list(session, drills)
    chosen = _find(drills, arguments.name)
    if arguments.line is None:
        return _show(session, chosen)
    if problem := not_a_line(arguments.line):
        raise Refused(problem)
    return _check(session, chosen, arguments.line.strip(), arguments.seed)


def _find(drills: tuple[Drill, ...], name: str) -> Drill:
    found = [drill for drill in drills if name in (drill.id, drill.id.partition("/")[2])]
    if len(found) == 1:
        return found[0]
    if found:
        ids = listed([drill.id for drill in found])
        raise Refused(f"{len(found)} drills are called {name!r}: {ids}. Say which.")
    near = listed(nearest(name, [drill.id for drill in drills], 3))
    raise Refused(f"There is no drill {name!r}." + (f" The nearest: {near}." if near else ""))


def _list(session: Session, drills: tuple[Drill, ...]) -> int:
    if session.json:
        for one in drills:
            row = {"event": "drill", "drill": one.id, "lesson": one.lesson, "ask": one.ask}
            session.printer.json(row)
        return 0
    if not drills:
        session.printer.line("This course has no drills.")
    for one in drills:
        session.printer.line(f"  {one.id:<36}{' '.join(one.ask.split())}")
    return 0


def _show(session: Session, drill: Drill) -> int:
    from tensortutor.commands.render import Writer
    from tensortutor.course.material import Prose

    printer = session.printer
    for line in Writer(printer).prose(Prose(drill.ask, 0)):
        printer.line(line)
    for event in follow(session.runner(), picture_job(drill, SEED)):
        if session.json:
            printer.json(event_to_json(event))
        elif isinstance(event, CellGrid):
            printer.line()
            printer.drawing(event, beside_program=False)
        elif isinstance(event, Output):
            printer.line(event.text.rstrip())
        elif isinstance(event, Finished) and event.code:
            printer.line(event.sentence)
            return FAILED
    printer.line()
    command = f"tensortutor drill {drill.id} 'LINE'"
    for line in to_do("Answer:", command, printer.width):
        printer.line(line)
    return 0


def _check(session: Session, drill: Drill, line: str, seed: int | None) -> int:
    events: list[Event] = []
    job = answer_job(drill, line, () if seed is None else (seed,))
    for event in follow(session.runner(), job):
        events.append(event)
        if session.json:
            session.printer.json(event_to_json(event))
    judged = next((event for event in events if isinstance(event, Judged)), None)
    printer = session.printer
    if judged is None:
        raise Refused(next(event.sentence for event in events if isinstance(event, Finished)))
    record_drill(session.progress, drill, line, judged.ok)
    if session.json:
        return 0 if judged.ok else FAILED
    if judged.ok:
        others = "; ".join(drill.others(line))
        also = f" Also right: {others}" if others else ""
        printer.line(f"{printer.paint('✓ right', 'green')}.{also}")
        return 0
    if because := drill.because(line):
        printer.line(f"{printer.paint('✗ wrong', 'red')}. {because}")
    failed = [event for event in events if isinstance(event, Verdict) and not event.passed]
    again = f"tensortutor drill {drill.id} {shlex.quote(line)}"
    for text in failure_lines(failed[:1], {}, again, printer, every=False):
        printer.line(text)
    return FAILED
