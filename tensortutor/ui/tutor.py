"""What screens, commands and widgets may ask of the app. They import this, and never the app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from tensortutor.course.explain import Explainer
    from tensortutor.course.model import Course, Lesson
    from tensortutor.course.search import CourseIndex, Place
    from tensortutor.learner.class_sharing import ClassSharing
    from tensortutor.learner.limits_consent import LimitsConsent
    from tensortutor.learner.progress import Progress
    from tensortutor.learner.settings import LearnerSettings
    from tensortutor.learner.ui_state import UiState
    from tensortutor.learner.workspace import Workspace
    from tensortutor.protocol.jobs import Limits
    from tensortutor.ui.protocols import Runner


@dataclass(frozen=True)
class LearnerState:
    """What the app works with for one learner; put aside while they teach."""

    course: Course
    progress: Progress
    workspace: Workspace
    ui_state: UiState


class Tutor(Protocol):
    """The app, as its parts see it.

    teaching: nothing is kept, every lesson is open. put_aside: the learner's own things meanwhile.
    sought: what was searched for last. sharing: with the learner's class, None without one.
    """

    course: Course
    progress: Progress
    workspace: Workspace
    ui_state: UiState
    runner: Runner
    settings: LearnerSettings
    limits: Limits
    limits_consent: LimitsConsent
    teaching: bool
    put_aside: LearnerState | None
    sharing: ClassSharing | None
    sought: str

    @property
    def screen(self) -> Screen[Any]:
        """The screen in front."""

    @property
    def screen_stack(self) -> list[Screen[Any]]:
        """All open screens, the one in front last."""

    @property
    def explainer(self) -> Explainer:
        """What knows errors."""

    @property
    def course_index(self) -> CourseIndex:
        """Everything that can be found."""

    @property
    def reference_index(self) -> CourseIndex:
        """The reference and the atlas."""

    def tell(self, sentence: str) -> None:
        """Show a sentence for a while."""

    def confirm(
        self, title: str, text: str, yes: str, no: str, answered: Callable[[bool | None], None]
    ) -> None:
        """Ask one question."""

    def key_name(self, name: str) -> str:
        """How the key of a binding is written, as remapped."""

    def open_lesson(self, lesson: Lesson, step: int | None = None) -> None:
        """Show a lesson, at a step or where the learner was."""

    def opens(self, lesson: Lesson) -> str:
        """What opens a locked lesson, "" if it is open."""

    def go(self, place: Place) -> None:
        """Go to what a search has found."""

    def go_home(self) -> None:
        """Back to the list of lessons."""

    def follow_link(self, lesson: Lesson, target: str) -> None:
        """Open the lesson that a link names; copy any other address."""

    def leave_reference(self, lesson: Lesson | None = None) -> None:
        """Close the reference, and open a lesson if one was chosen there."""

    def action_search(self, query: str | None = None) -> None:
        """Search the course."""

    def keep(self) -> bool:
        """Save what is open. Returns whether that worked."""

    def pop_screen(self) -> Any:
        """Close the screen in front."""

    def copy_to_clipboard(self, text: str) -> None:
        """Put a text on the clipboard of the learner's terminal."""
