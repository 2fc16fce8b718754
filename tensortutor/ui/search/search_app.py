"""The app's part that looks things up: the search, the reference, the palette."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.command import Provider

from tensortutor.course.model import Course
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.terminal.terminal_app import TerminalApp

if TYPE_CHECKING:
    from tensortutor.course.search import CourseIndex


def _action_commands() -> type[Provider]:
    from tensortutor.ui.search.palette import ActionCommands

    return ActionCommands


def _lesson_commands() -> type[Provider]:
    from tensortutor.ui.search.palette import LessonCommands

    return LessonCommands


def _place_commands() -> type[Provider]:
    from tensortutor.ui.search.palette import PlaceCommands

    return PlaceCommands


class SearchApp(TerminalApp):
    """Finds places of the course and goes there. Nothing is read before it is asked for.

    sought: what was searched last.
    """

    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {
        _action_commands, _lesson_commands, _place_commands,
    }  # fmt: skip

    def __init__(self, course: Course) -> None:
        super().__init__()
        self.course = course
        self.sought = ""

    # The search

    @cached_property
    def course_index(self) -> "CourseIndex":
        """Everything that can be found; read, in a thread, when it is first searched."""
        from tensortutor.course.search import CourseIndex

        return CourseIndex(self.course)

    def action_search(self, query: str | None = None) -> None:
        """Search the course, for what was sought last if nothing else is given."""
        from tensortutor.ui.screens.search import SearchScreen

        self.sought = self.sought if query is None else query
        if isinstance(self.screen, SearchScreen):
            self.screen.field.value = self.sought
            self.screen.action_search()
        elif isinstance(self.screen, TutorScreen):
            self.push_screen(SearchScreen(self.sought))

    # The reference

    @cached_property
    def reference_index(self) -> "CourseIndex":
        """The reference and the atlas; read when they are first asked for."""
        from tensortutor.course.search import CourseIndex

        return CourseIndex(self.course, with_lessons=False)

    def action_reference(self) -> None:
        """Open the reference, at the name under the cursor of an editor."""
        from textual.widgets import TextArea

        from tensortutor.ui.editing.names_at_cursor import names_at
        from tensortutor.ui.screens.reference import ReferenceScreen

        if isinstance(self.screen, ReferenceScreen):
            self.screen.action_search()
        elif isinstance(self.screen, TutorScreen):
            names: tuple[str, ...] = ()
            if isinstance(self.focused, TextArea):
                row, column = self.focused.cursor_location
                names = names_at(self.focused.document[row], column)
            self.push_screen(ReferenceScreen(names))
