"""Actions, lessons, and everything else of the course, in the command palette."""

import asyncio
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape
from textual.system_commands import SystemCommandsProvider

from tensortutor.plaintext import one_line, visible
from tensortutor.ui import describe

if TYPE_CHECKING:
    from tensortutor.course.search import Found
    from tensortutor.ui.tutor import Tutor

SHORTEST = 2
"""Letters before the course is searched."""
MOST = 4
"""Places of each kind."""
BELOW, ABOVE = 0.9, 2.05
"""Scores. BELOW puts a place under every command that has the letters somewhere. ABOVE, for each
letter, puts it over these, but under commands that have the letters in a row."""
IN_NAME = 40
"""What a place scores in the index whose title or names have the words."""


USES = "palette."
"""Before the name of an action, in what is remembered: how often it was chosen."""
FIRST = 1000.0
"""What is added for an action with a word that begins so: that is over all lessons and places."""


class ActionCommands(SystemCommandsProvider):
    """What can be done here, one row each: those that were chosen most often come first."""

    async def discover(self) -> Hits:
        """All actions, by use, then in the order of the keys."""
        actions = [command for command in self._actions() if command.discover]
        for name, help, callback, _ in sorted(actions, key=lambda command: -self._uses(command)):
            yield DiscoveryHit(_row(Content(name), help), callback, text=name)

    async def search(self, query: str) -> Hits:
        """The actions whose name has the words; those with a word that begins so first."""
        begins = re.compile(rf"\b{re.escape(query)}", re.IGNORECASE)
        matcher = self.matcher(query)
        for name, help, callback, _ in self._actions():
            score = matcher.match(name)
            if score > 0 and _has_words(name, query):
                score += FIRST * bool(begins.search(name))
                yield Hit(score, _row(matcher.highlight(name), help), callback, text=name)

    def _actions(self) -> Iterator[SystemCommand]:
        """The app's actions, each of which counts how often it was chosen."""
        memory = cast("Tutor", self.app).ui_state
        for command in self.app.get_system_commands(self.screen):

            def choose(command: SystemCommand = command) -> object:
                memory.put(f"{USES}{command.title}", self._uses(command) + 1)
                return command.callback()

            yield command._replace(callback=choose)

    def _uses(self, command: SystemCommand) -> int:
        return cast("Tutor", self.app).ui_state.get(f"{USES}{command.title}", 0)


def _has_words(text: str, query: str) -> bool:
    """Whether a text has each word of the query, whole or as a part of a word."""
    text = text.lower()
    return all(word in text for word in query.lower().split())


def _row(name: Content, help: str) -> Content:
    """A name, and its key or a few words behind it."""
    return name + Content.styled(f"  {help}", "$foreground 66%")


class LessonCommands(Provider):
    """Opens any lesson by a few letters of its name."""

    async def search(self, query: str) -> Hits:
        """Lessons whose name or id matches, the best first."""
        matcher = self.matcher(query)
        app = cast("Tutor", self.app)
        for lesson in app.course.lessons:
            name = one_line(describe.short_name(app.course, lesson))
            score = max(
                (matcher.match(text) for text in (name, lesson.id) if _has_words(text, query)),
                default=0,
            )
            if score > 0:
                yield Hit(
                    score,
                    matcher.highlight(name),
                    lambda lesson=lesson: app.open_lesson(lesson),
                    text=name,
                    help=escape(visible(lesson.goal)),
                )


class PlaceCommands(Provider):
    """Finds text, entries of the reference and errors; lessons are found by their names."""

    async def search(self, query: str) -> Hits:
        """The search itself at once, then the best places of each kind."""
        if len(query) < SHORTEST:
            return
        app = cast("Tutor", self.app)
        line = f'Search the course for "{query}"'
        yield Hit(
            ABOVE * len(query) + 1,
            Content(line),
            lambda: app.action_search(query),
            text=line,
            help="In titles, text, reference and errors",
        )
        if not app.course_index.is_complete:
            await asyncio.to_thread(app.course_index.wait)
        for hit in self._places(app, query):
            yield hit

    def _places(self, app: "Tutor", query: str) -> Iterator[Hit]:
        from tensortutor.ui import search_rows

        found = app.course_index.search(query, search_rows.EVERYTHING)
        grouped = [
            group for group in search_rows.groups(found) if group.title != search_rows.LESSONS
        ]
        for rank, group in enumerate(grouped):
            for place, one in enumerate(group.found[:MOST]):
                is_named = one.score >= IN_NAME
                score = ABOVE * len(query) if is_named else BELOW
                yield self._hit(app, one, score - 0.1 * rank - 0.01 * place)

    def _hit(self, app: "Tutor", found: "Found", score: float) -> Hit:
        from tensortutor.ui import search_rows

        title = one_line(search_rows.title(app.course, found.place))
        line = f"{search_rows.kind(found.place).capitalize()}: {title}"
        return Hit(
            score,
            Content(line),
            lambda: app.go(found.place),
            text=line,
            help=escape(visible(found.snippet)),
        )
