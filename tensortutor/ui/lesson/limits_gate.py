"""Asks before a lesson of somebody else's course gets more than the usual limits."""

from collections.abc import Callable

from tensortutor.course.model import Lesson
from tensortutor.learner.limits_consent import sentence
from tensortutor.ui.tutor import Tutor


class LimitsGate:
    """One question per lesson and session. A yes is kept; after a no the usual limits hold."""

    def __init__(self, tutor: Tutor) -> None:
        self._tutor = tutor
        self._refused: set[str] = set()

    def asked(self, lesson: Lesson) -> dict[str, float]:
        """What the lesson asks for and may not have yet."""
        consent = self._tutor.limits_consent
        return consent.asked(self._tutor.course, lesson, self._tutor.limits)

    def ask_first(self, lesson: Lesson, then: Callable[[], None]) -> bool:
        """Ask if that is due, and call `then` with the answer known. Returns whether it asks."""
        asked = self.asked(lesson)
        if not asked or lesson.id in self._refused:
            return False

        def answered(yes: bool | None) -> None:
            if yes:
                self._tutor.limits_consent.allow(self._tutor.course, lesson)
            else:
                self._refused.add(lesson.id)
            then()

        text = f"{sentence(lesson, asked, self._tutor.limits)} Allow it if you trust its author."
        title = "More than the usual limits"
        self._tutor.confirm(title, text, "Allow", "Usual limits", answered)
        return True
