"""The app: opens screens, and holds what they share."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.events import Event, Key, MouseDown, MouseScrollDown
from textual.reactive import reactive
from textual.screen import Screen

from tensortutor.course.model import Course, Lesson
from tensortutor.learner.class_sharing import EACH_S, ClassSharing, sharing_for
from tensortutor.learner.errors import StorageError
from tensortutor.learner.limits_consent import LimitsConsent
from tensortutor.learner.progress import Progress
from tensortutor.learner.settings import LearnerSettings, read_settings
from tensortutor.learner.ui_state import UiState
from tensortutor.learner.unlock import Credit, credit, missing, state
from tensortutor.learner.workspace import Workspace
from tensortutor.options import AppOptions, OwnOptions
from tensortutor.plaintext import visible
from tensortutor.ui import describe, garbage_collection, key_bindings, theme
from tensortutor.ui.protocols import Runner
from tensortutor.ui.running.lazy_runner import LazyRunner
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.search.search_app import SearchApp
from tensortutor.ui.terminal import symbols
from tensortutor.ui.theme_choice import ThemeChoice

if TYPE_CHECKING:
    from tensortutor.course.explain import Explainer
    from tensortutor.course.search import Place
    from tensortutor.learner.own_files import OwnProgram
    from tensortutor.ui.tutor import LearnerState

POLL_S = 0.5
"""How often the runner is asked how it is."""
NOTICE_S = 30.0
"""How long that is shown what was found wrong at the start: nobody looks there yet."""
LAST_REPORT_S = 1.0
"""How long leaving waits for what is still to be written for a class."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
LESSON_SCREEN = "tensortutor.ui.screens.lesson"


class TutorApp(SearchApp):
    """The tutor. What it works with is given to it, so that tests can give something else."""

    TITLE = "tensortutor"
    CSS_PATH = "styles/app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.APP]
    NOTIFICATION_TIMEOUT = 8
    device_word = reactive("")

    def __init__(
        self,
        course: Course,
        progress: Progress,
        workspace: Workspace,
        runner: Runner,
        *,
        lesson: Lesson | None = None,
        notices: Iterable[str] = (),
        settings: LearnerSettings | None = None,
        ui_state: UiState | None = None,
        consent: Path | None = None,
        limits_consent: LimitsConsent | None = None,
        teaching: bool = False,
        own: "OwnProgram | None" = None,
        sharing: ClassSharing | None = None,
    ) -> None:
        super().__init__(course)
        self.progress = progress
        self.workspace = workspace
        self.runner = runner
        self._first = lesson
        self._own = own
        self.settings = settings or LearnerSettings()
        self.limits = self.settings.limits
        self.limits_consent = limits_consent or LimitsConsent(None)
        self.ui_state = ui_state or UiState(None)
        self._consent = consent
        self.teaching = teaching
        self.sharing = sharing
        self._has_acted = False
        self.put_aside: LearnerState | None = None
        self._is_let_go = False
        self._is_at_work = False
        self._notices = (*notices, *self.settings.notices)
        self._said_failure = False
        self._said_caution = False
        self._said_end = False
        self.animation_level = "full" if self.settings.motion else "none"
        for own_theme in theme.THEMES:
            self.register_theme(own_theme)
        self._theme_choice = ThemeChoice(self.settings.theme, lambda: self.ui_state, os.environ)
        self._take_theme()
        self._take_keys()
        self.set_class(symbols.current().ascii, "-ascii")

    def _take_theme(self) -> None:
        """The theme of the settings file, else the one chosen last, else by the background."""
        choice = self._theme_choice
        name = choice.name
        if name not in self.available_themes:
            self._notices += (f"There is no theme {name!r}; Palette, Theme lists them.",)
            name = choice.fallback()
        self.theme = name

    def _follow_background(self) -> None:
        """Ask the terminal for its background if that decides; remember what is chosen."""
        choice = self._theme_choice
        self.theme_changed_signal.subscribe(self, lambda theme: choice.changed(theme.name))

        def answered(replies: Sequence[str]) -> None:
            if choice.is_automatic:
                self.theme = choice.answered(replies)

        if choice.is_automatic:
            self.ask_terminal(theme.QUERY, answered)

    def _take_keys(self) -> None:
        if self.settings.keys:
            from tensortutor.ui.keymap import keymap

            chosen, notices = keymap(self.settings.keys)
            self._notices += notices
            self.set_keymap(chosen)

    @cached_property
    def explainer(self) -> "Explainer":
        """What knows errors. Its atlas is read when the first error comes."""
        from tensortutor.course.explain import Explainer

        return Explainer(self.course)

    def get_default_screen(self) -> Screen[None]:
        """The list of lessons."""
        return HomeScreen()

    def on_mount(self) -> None:
        """Show what is to be said at the start; load PyTorch once there is something to see."""
        for notice in (*self._notices, *self.progress.notices):
            self.notify(visible(notice), markup=False, timeout=NOTICE_S)
        if self.teaching:
            from tensortutor.ui.teach_mode import begun

            self.tell(begun(self))
        self._catch_signals()
        self._follow_background()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        garbage_collection.from_now_on()
        self.runner.warm()
        self.set_interval(POLL_S, self._poll)
        if self.sharing is not None:
            self.set_interval(EACH_S, self.share)
        if self._own is not None:
            self.open_program(self._own)
        elif self._first is not None:
            self.open_lesson(self._first)
        else:
            # What a lesson's screen is made of comes while the list is being read.
            Thread(target=import_module, args=(LESSON_SCREEN,), daemon=True).start()

    def _poll(self) -> None:
        status = self.runner.status
        self.device_word = describe.status(status)
        if status.state == "failed" and not self._said_failure:
            if status.needs_consent:
                self._ask_consent(status.why)
            else:
                self.tell(status.why)
        self._said_failure = status.state == "failed"
        ends_soon = bool(describe.ends_soon(status))
        if ends_soon and not self._said_end and status.place is not None:
            self.tell(
                f"The {describe.ends_soon(status)}, on {status.place.host}. What you write stays; "
                "the next run after that asks for a new place."
            )
        self._said_end = ends_soon
        if status.caution and not self._said_caution:
            self._said_caution = True
            self.tell(status.caution)
        if self.sharing is not None and (notice := self.sharing.take_notice()):
            self.tell(notice)
        self._is_let_go = status.state == "cold"
        if self._is_at_work and status.state == "ready":
            self.runner.warm()  # it stays
        self._is_at_work = False

    def share(self) -> None:
        """Tell the learner's class where they are, if they have done something in this minute."""
        if self._has_acted and not self.teaching:
            for screen in self.screen_stack:
                if isinstance(screen, TutorScreen):
                    screen.share()
        self._has_acted = False

    def action_turn_sharing(self) -> None:
        """Stop sharing with the class, or begin again."""
        from tensortutor.ui import class_sharing

        class_sharing.turn(self)

    async def on_event(self, event: Event) -> None:
        """A key at a step with code keeps PyTorch, or brings it back when it has been let go."""
        self._has_acted = self._has_acted or isinstance(event, (Key, MouseDown, MouseScrollDown))
        if isinstance(event, Key):
            self._keep_runner()
            self.notice_was_read()
        if isinstance(event, Key) and event.is_forwarded and self.screen_stack:
            screen = self.screen
            if isinstance(screen, TutorScreen) and screen.take_stray(event):
                return
        await super().on_event(event)

    def _keep_runner(self) -> None:
        screen = self.screen if self.screen_stack else None
        if not isinstance(screen, TutorScreen) or not screen.is_for_programs:
            return
        self._is_at_work = True
        if self._is_let_go:
            self._is_let_go = False
            self.runner.warm()

    def confirm(
        self, title: str, text: str, yes: str, no: str, answered: Callable[[bool | None], None]
    ) -> None:
        """Ask one question."""
        from tensortutor.ui.screens.dialogs import Confirm

        self.push_screen(Confirm(title, text, yes, no), answered)

    def _ask_consent(self, why: str) -> None:
        """Ask once whether programs may run with nothing around them."""
        if self._consent is not None and self._consent.exists():
            self._run_unconfined(True)
            return
        from tensortutor.ui.screens.dialogs import Confirm

        self.push_screen(Confirm("No sandbox", why, "Run without"), self._run_unconfined)

    def _run_unconfined(self, yes: bool | None) -> None:
        if not yes:
            return
        self.runner.allow_limits()
        self.runner.warm()
        if self._consent is not None:
            # If it cannot be written, the question comes again next time.
            with contextlib.suppress(OSError):
                self._consent.touch()

    # Screens

    def open_lesson(self, lesson: Lesson, step: int | None = None) -> None:
        """Show a lesson, at a step or where the learner was.

        A locked one that was not begun is read, or a question is asked of each that it builds on.
        """
        # In teach mode, its twin without a lock.
        lesson = describe.lesson_by_id(self.course, lesson.id) or lesson
        opens = self.opens(lesson)
        if not opens or self._is_begun(lesson) or self._is_read(lesson):
            self._show_lesson(lesson, step)
            return
        from tensortutor.course.problems import CourseError
        from tensortutor.learner.skipping import skipped, without_questions_left
        from tensortutor.ui.screens.dialogs import Locked
        from tensortutor.ui.screens.skip import SkipScreen, lesson_names

        try:
            below = skipped(self.course, lesson, self.progress)
            to_be_passed = without_questions_left(below, self.progress)
        except (CourseError, StorageError) as error:
            self.tell(str(error))
            return
        count, questions = len(below), len(below) - len(to_be_passed)
        only = ""
        if to_be_passed:
            one = len(to_be_passed) == 1
            only = f" Every question of {lesson_names(self.course, to_be_passed)} has been asked: "
            only += f"{'it counts' if one else 'they count'} once passed."
        question = Locked(
            describe.short_name(self.course, lesson),
            f"This lesson is locked: {opens}. You can read it, and nothing is recorded. Or skip "
            f"ahead: {describe.count(count, 'lesson')} that it builds on "
            f"{'does' if count == 1 else 'do'} not count yet, and a right answer to one question "
            f"makes a lesson count.{only}",
            f"Answer {describe.count(questions, 'question')}" if questions else "",
        )

        def chosen(choice: str | None) -> None:
            if choice == "read":
                self._show_lesson(lesson, step, reading=True)
            elif choice == "skip":
                self.push_screen(SkipScreen(lesson, step))

        self.push_screen(question, chosen)

    def open_program(self, program: "OwnProgram") -> None:
        """Show a program of the learner's own."""
        from tensortutor.ui.screens.own_program import OwnProgramScreen

        self.push_screen(OwnProgramScreen(program))

    def action_scratch_pad(self) -> None:
        """Show the file to try things in."""
        from tensortutor.learner.own_files import scratch_pad
        from tensortutor.ui.screens.own_program import OwnProgramScreen

        if isinstance(self.screen, OwnProgramScreen):
            self.tell("This is a program of your own already.")
            return
        try:
            self.open_program(scratch_pad(self.workspace))
        except StorageError as error:
            self.tell(str(error))

    def go(self, place: "Place") -> None:
        """Go to what was found: a lesson, a step of one, an entry of the reference, an error."""
        from tensortutor.course.search import LESSON, STEP
        from tensortutor.ui.screens.reference import ReferenceScreen

        lesson = describe.lesson_by_id(self.course, place.lesson)
        if place.kind not in (LESSON, STEP):
            self.push_screen(ReferenceScreen(place=place))
        elif lesson is not None:
            self.open_lesson(lesson, place.step if place.kind == STEP else None)

    def leave_reference(self, lesson: Lesson | None = None) -> None:
        """Back to where one was; if a lesson was chosen there, to that one."""
        self.pop_screen()
        if lesson is not None:
            self.open_lesson(lesson)

    def _is_begun(self, lesson: Lesson) -> bool:
        try:
            return self.progress.is_begun(lesson.id)
        except StorageError:
            return False  # told by whoever asks for more

    def _is_read(self, lesson: Lesson) -> bool:
        """Whether this lesson is on the screen already, to be read."""
        return any(getattr(screen, "lesson", None) is lesson for screen in self.screen_stack)

    def _show_lesson(self, lesson: Lesson, step: int | None, reading: bool = False) -> None:
        from tensortutor.course.problems import CourseError
        from tensortutor.ui.screens.lesson import LessonScreen

        def made() -> LessonScreen:
            if not self.teaching:
                return LessonScreen(lesson, step, reading)
            from tensortutor.ui.screens.teach import TeachScreen

            return TeachScreen(lesson, step)

        try:
            _ = lesson.steps  # read now: a lesson that is not sound cannot be shown
        except CourseError as error:
            self.tell(f"This lesson cannot be opened until it is mended: {error}")
            return
        while isinstance(self.screen, TutorScreen) and self.screen.is_passing:
            self.pop_screen()
        if not isinstance(self.screen, LessonScreen):
            self.push_screen(made())
        elif lesson is self.screen.lesson:
            self.screen.go(step)
        else:
            self.switch_screen(made())
            garbage_collection.collect_soon(self)

    def go_home(self) -> None:
        """Back to the list of lessons."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
            garbage_collection.collect_soon(self)

    def action_drills(self) -> None:
        """All drills of the lessons that were passed, those first that are due first."""
        from tensortutor.learner.review import Due, drill_cards
        from tensortutor.ui.screens.review import ReviewScreen

        try:
            found = sorted(drill_cards(self.course, self.progress), key=lambda card: card.due)
        except StorageError as error:
            self.tell(str(error))
            return
        if found:
            self.push_screen(ReviewScreen(Due(tuple(found)), "Drills"))
        else:
            self.tell("Drills come with the lessons that you have passed: none yet.")

    def action_progress(self) -> None:
        """Show what is known well and what is not."""
        from tensortutor.ui.screens.progress import ProgressScreen

        if isinstance(self.screen, TutorScreen) and not isinstance(self.screen, ProgressScreen):
            self.keep()  # the time that was spent counts up to now
            self.push_screen(ProgressScreen())

    def opens(self, lesson: Lesson) -> str:
        """What opens a locked lesson, as a sentence without its full stop; "" if it is not."""
        try:
            earned = credit(self.course, self.progress.history())
        except StorageError as error:
            self.tell(str(error))
            earned = Credit(frozenset(), {})
        if state(lesson, earned) != "locked":
            return ""
        return f"it opens after {describe.names(self.course, missing(lesson, earned))}"

    def follow_link(self, lesson: Lesson, target: str) -> None:
        """Open the lesson that a link names; copy any other address."""
        name = PurePosixPath(target.partition("#")[0])
        folder = lesson.path.parent
        for other in self.course.lessons:
            if name.suffix == ".md" and other.path.resolve() == (folder / name).resolve():
                self.open_lesson(other)
                return
        self.copy_to_clipboard(target)

    # Words

    def action_help(self) -> None:
        """Say what this screen is for, and its keys."""
        if getattr(self.screen, "ABOUT", ""):
            from tensortutor.ui.screens.help import help_page

            self.push_screen(help_page(self.screen, self._keymap))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the palette offers: this screen's actions, then the app's."""
        for binding in getattr(screen, "BINDINGS", []) if isinstance(screen, TutorScreen) else []:
            action = binding.action
            if not action.startswith(("app.", "tab_at")):
                yield SystemCommand(
                    binding.description,
                    self.get_key_display(binding.with_key(binding.key.split(",")[0])),
                    lambda action=action: self.run_action(action, screen),
                )
        yield SystemCommand("Search the course", "Text, reference, errors", self.action_search)
        yield SystemCommand("Reference", "Calls, terms and errors", self.action_reference)
        yield SystemCommand(
            "Scratch pad", "A file to try things in, run as lessons are", self.action_scratch_pad
        )
        yield SystemCommand(
            "Drills", "Make a drawn tensor in one line of PyTorch", self.action_drills
        )
        yield SystemCommand("Progress", "What you know well, what not", self.action_progress)
        from tensortutor.ui import class_sharing, teach_mode

        yield from class_sharing.commands(self, screen)
        yield from teach_mode.commands(self)
        yield SystemCommand("Help", "All keys of this screen", self.action_help)
        yield SystemCommand("Theme", "Other colours", self.action_change_theme)
        yield SystemCommand("Back to the shell", "fg leads here again", self.action_step_aside)
        yield SystemCommand("Quit", "Everything is kept", self.action_quit)

    # The end

    async def action_quit(self) -> None:
        """Keep everything and end; ask if something runs, or cannot be kept."""
        from tensortutor.ui.screens.dialogs import Confirm

        screens = [screen for screen in self.screen_stack if isinstance(screen, TutorScreen)]
        stake = next((screen.at_stake for screen in screens if screen.at_stake), "")
        if not self.keep():
            question = Confirm(
                "Not saved",
                "Your code could not be saved. If you quit now, the last changes are lost.",
                "Quit and lose them",
                "Stay",
            )
        elif stake and not isinstance(self.screen, Confirm):
            question = Confirm("Quit", stake, "Quit", "Stay")
        else:
            self.exit(0)
            return
        self.push_screen(question, lambda yes: self.exit(0) if yes else None)

    def action_help_quit(self) -> None:
        """Ctrl+C that has nothing to copy: offer to stop the program, else say how to quit."""
        screen = self.screen
        if not (isinstance(screen, TutorScreen) and screen.offer_stop()):
            self.tell(f"{self.key_name('app.quit')} quits.")

    def keep(self) -> bool:
        """Save what the open lesson holds. Returns whether that worked."""
        screens = [screen for screen in self.screen_stack if isinstance(screen, TutorScreen)]
        return all(screen.leave() for screen in screens)

    def _catch_signals(self) -> None:
        """A closed connection or a polite kill loses nothing."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.end_by, number)


def run_app(options: AppOptions) -> int:
    """Open the app and return its exit status.

    Raises CourseError, UnknownLesson, UnknownPlace or StorageError, whose texts are sentences for
    the learner.
    """
    from tensortutor.course.catalog import find_course, find_lesson, open_course
    from tensortutor.learner.paths import Paths
    from tensortutor.learner.places import find_place

    course = open_course(find_course(options.course))
    if options.teach or options.tour:
        from tensortutor.learner.classroom import classroom, unlocked

        paths = classroom()
        course = unlocked(course)
    else:
        paths = Paths.find()
    lesson = find_lesson(course, options.lesson) if options.lesson else None
    if options.tour:
        lesson = course.chapters[0].lessons[0]
    workspace = Workspace(paths)
    own = _own_program(options.own, workspace) if options.own else None

    def make_runner() -> Runner:
        from tensortutor.runner import Runner as RealRunner
        from tensortutor.runner import Settings

        own_settings = Settings(
            paths.scratch, options.device, options.sandbox, options.python, data=paths.data,
            read=(*own.read, *([own.folder] if own.folder else [])) if own else (),
            write=own.write if own else (), place=place,
        )  # fmt: skip
        return RealRunner(own_settings)

    settings = read_settings(paths.settings)
    place = find_place(options.on, settings.places, options.python)
    runner = LazyRunner(make_runner)
    progress = Progress.open(paths)
    if settings.ascii:
        symbols.use_ascii()
    sharing = None if options.teach or options.tour else sharing_for(settings, paths)
    app = TutorApp(
        course, progress, workspace, runner, lesson=lesson, notices=paths.notices,
        settings=settings, ui_state=UiState(paths.ui_state), consent=paths.consent,
        limits_consent=LimitsConsent(paths.allowed_limits), teaching=options.teach,
        own=own, sharing=sharing,
    )  # fmt: skip
    garbage_collection.only_when_told()
    try:
        result = app.run()
    finally:
        runner.close()
        if sharing is not None:
            sharing.close(LAST_REPORT_S)
    return app.return_code or result or 0


def _own_program(options: OwnOptions, workspace: Workspace) -> "OwnProgram":
    """The program that was asked for. Raises StorageError if there is none to edit."""
    from tensortutor.learner.own_files import own_program, scratch_pad

    if options.file is None:
        return scratch_pad(workspace)
    return own_program(options.file, options.arguments, options.read, options.write)
