"""Lessons in the command palette."""

from typing import TYPE_CHECKING, cast

from textual.command import Hit, Hits, Provider

from tensortutor.ui import describe

if TYPE_CHECKING:
    from tensortutor.ui.app import TutorApp


class LessonCommands(Provider):
    """Opens any lesson by a few letters of its name."""

    async def search(self, query: str) -> Hits:
        """Lessons whose name or id matches, the best first."""
        matcher = self.matcher(query)
        app = cast("TutorApp", self.app)
        for lesson in app.course.lessons:
            name = f"{describe.short_name(app.course, lesson)}  {lesson.id}"
            score = matcher.match(name)
            if score > 0:
                yield Hit(
                    score,
                    matcher.highlight(name),
                    lambda lesson=lesson: app.open_lesson(lesson),
                    text=name,
                    help=lesson.goal,
                )
