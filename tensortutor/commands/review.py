"""`review`: what is due for another look, and the questions themselves."""

from argparse import Namespace
from datetime import datetime, timezone

from tensortutor.commands.asking import ask, tell
from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.learner import answers
from tensortutor.learner.review import Card, Due, cards, due
from tensortutor.learner.workspace import write_atomic

MOST_SHOWN = 20


def review(session: Session, arguments: Namespace) -> int:
    """List what is due, ask the questions, or lay out an exercise afresh."""
    if arguments.fresh is not None:
        return _fresh(session, arguments.fresh)
    found = due(session.course, session.progress, new_per_day=session.settings.new_per_day)
    if session.json:
        for card in found.cards:
            session.printer.json(as_json(card))
        return 0
    if arguments.ask:
        return _ask_all(session, [card for card in found.cards if card.is_question])
    _list(session, found)
    return 0


def as_json(card: Card) -> dict[str, object]:
    """A card for a program to read. step and question count from 1; question is null for code.

    drill: its id, null for what is none.
    """
    return {
        "event": "due",
        "lesson": card.lesson.id,
        "step": card.step + 1,
        "question": card.quiz + 1 if card.is_question else None,
        "drill": card.drill.id if card.drill is not None else None,
        "due": card.due.isoformat(timespec="seconds"),
        "reviews": card.reviews,
        "new": card.is_new,
    }


def _list(session: Session, found: Due) -> None:
    printer = session.printer
    if found.words:
        printer.line(f"{found.words}.")
    if not found.cards:
        later = cards(session.course, session.progress)
        when = "Questions come back once they were answered, exercises and drills once their "
        when += "lesson was passed."
        if found.waiting:
            when = "The others come on the days after."
        elif later:
            when = f"The next card is due on {later[0].due.astimezone():%Y-%m-%d}."
        printer.line(f"Nothing is due. {when}")
        return
    questions = [card for card in found.cards if card.is_question]
    if questions:
        printer.line(f"Due questions: {len(questions)}. tensortutor review --ask asks them.")
    for card in questions[:MOST_SHOWN]:
        title = card.lesson.steps[card.step].title
        printer.line(f"  {card.lesson.id:<36}{title}, question {card.quiz + 1}")
    drills = [card.drill for card in found.cards if card.drill is not None]
    if drills:
        printer.line("Due drills: tensortutor drill DRILL draws one, and checks your line.")
    for drill in drills[:MOST_SHOWN]:
        printer.line(f"  {drill.id:<36}{' '.join(drill.ask.split())}")
    exercises = [card for card in found.cards if card.is_exercise]
    if exercises:
        printer.line("Due exercises, to be written anew: tensortutor review --fresh LESSON")
    for card in exercises[:MOST_SHOWN]:
        printer.line(f"  {card.lesson.id:<36}{card.lesson.steps[card.step].title}")


def _ask_all(session: Session, found: list[Card]) -> int:
    """Ask until there are no more, or the input ends."""
    from tensortutor.commands.render import Page

    printer = session.printer
    if not found:
        printer.line("No question is due.")
    for number, card in enumerate(found, 1):
        page = Page(printer, card.lesson, {})
        printer.line(printer.paint(f"{number} of {len(found)}: {card.lesson.title}", "bold"))
        for line in page.step_until(card.step, card.quiz):
            printer.line(line)
        quiz = card.lesson.steps[card.step].quizzes[card.quiz]
        given = ask(session, quiz)
        if given is None:
            return 0
        session.progress.record_answer(
            card.lesson.id, card.step, card.quiz, answers.written(quiz, given.value),
            answers.is_right(quiz, given.value),
        )  # fmt: skip
        tell(session, quiz, given.value)
        printer.line()
    return 0


def _fresh(session: Session, name: str) -> int:
    """Write the exercise as it begins to a file of its own: the learner's stays as it is."""
    lesson = session.lesson(name)
    if lesson.id not in session.progress.passed():
        raise Refused(f"{lesson.id} has not been passed yet: there is nothing to repeat.")
    stamp = f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}"
    path = session.paths.home / "review" / f"{lesson.slug}-{stamp}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    begins_with = session.workspace.begins_with(lesson, lesson.steps.index(lesson.task))
    write_atomic(path, begins_with)
    session.printer.line(str(path))
    session.printer.note(f"Check it with: tensortutor check {lesson.id} {path}")
    return 0
