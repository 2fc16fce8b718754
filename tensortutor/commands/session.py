"""What the commands share: the course, the learner's things, the runner."""

import _thread
import contextlib
import io
import queue
import shlex
import signal
import threading
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from tensortutor.commands.errors import Refused
from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.course.read_file import LARGEST, open_named
from tensortutor.learner.class_sharing import ClassSharing, sharing_for
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.file_watch import POLL_S
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.learner.limits_consent import LimitsConsent, sentence
from tensortutor.learner.paths import Paths
from tensortutor.learner.places import UnknownPlace, find_place
from tensortutor.learner.progress import Progress
from tensortutor.learner.settings import LearnerSettings, read_settings
from tensortutor.learner.unlock import Credit, credit, missing, state
from tensortutor.learner.workspace import Workspace
from tensortutor.options import AppOptions
from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.report import Printer

if TYPE_CHECKING:
    from tensortutor.course.explain import Explainer
    from tensortutor.runner import Runner


CLASS_S = 2.0
"""How long a command waits at its end for the folder of a class."""


class Session:
    """Everything is opened when it is first asked for, so that a command pays for what it uses."""

    def __init__(self, options: AppOptions, printer: Printer, json: bool) -> None:
        self.options = options
        self.printer = printer
        self.json = json
        self.allow_limits = False
        self._told_limits: set[str] = set()
        self._runner: Runner | None = None

    @cached_property
    def paths(self) -> Paths:
        """The learner's folders."""
        paths = Paths.find()
        for notice in paths.notices:
            self.printer.note(notice)
        return paths

    @cached_property
    def progress(self) -> Progress:
        """The learner's record. Raises StorageError."""
        progress = Progress.open(self.paths)
        for notice in progress.notices:
            self.printer.note(notice)
        return progress

    @cached_property
    def settings(self) -> LearnerSettings:
        """The learner's settings."""
        settings = read_settings(self.paths.settings)
        for notice in settings.notices:
            self.printer.note(notice)
        return settings

    @property
    def limits(self) -> Limits:
        """What a run may use, as the learner has set it."""
        return self.settings.limits

    @cached_property
    def sharing(self) -> ClassSharing | None:
        """What shares with the learner's class; None if they have none."""
        return sharing_for(self.settings, self.paths)

    def end_sharing(self) -> bool:
        """Wait a moment for what is written for the class, and tell what came of it.

        Returns whether all of it was written.
        """
        sharing = vars(self).pop("sharing", None)
        if sharing is None:
            return True
        ended = sharing.close(CLASS_S)
        if not self._tell(sharing) and sharing.written:
            stop = "tensortutor share off stops it."
            self.printer.note(f"Shared with the class in {sharing.folder}; {stop}")
        return ended and not sharing.failed

    def tell_sharing(self) -> None:
        """Tell what came of sharing so far."""
        if self.sharing is not None:
            self._tell(self.sharing)

    def _tell(self, sharing: ClassSharing) -> bool:
        notices = list(iter(sharing.take_notice, ""))
        for notice in notices:
            self.printer.note(notice)
        return bool(notices)

    @cached_property
    def _limits_consent(self) -> LimitsConsent:
        return LimitsConsent(self.paths.allowed_limits)

    def may_raise(self, lesson: Lesson) -> bool:
        """Whether a lesson's own limits hold: somebody else's course needs the learner's leave.

        Says what it asks for, once for a lesson.
        """
        asked = self._limits_consent.asked(self.course, lesson, self.limits)
        if asked and self.allow_limits:
            self._limits_consent.allow(self.course, lesson)
            return True
        if asked and lesson.id not in self._told_limits:
            self._told_limits.add(lesson.id)
            self.printer.note(
                f"{sentence(lesson, asked, self.limits)} It gets the usual limits. If you trust "
                "its author, add --allow-limits to the command; that is remembered."
            )
        return not asked

    @cached_property
    def workspace(self) -> Workspace:
        """The learner's code."""
        return Workspace(self.paths)

    @cached_property
    def course(self) -> Course:
        """The course. Raises Refused if there is none, or if it is not sound."""
        from tensortutor.course.catalog import find_course, open_course
        from tensortutor.course.problems import CourseError

        try:
            return open_course(find_course(self.options.course))
        except CourseError as error:
            first = "This course cannot be used until it is mended:\n"
            raise Refused(f"{first if len(error.problems) > 1 else ''}{error}") from None

    @cached_property
    def explainer(self) -> "Explainer":
        """What knows errors. Without a sound course, by the built-in atlas alone."""
        from tensortutor.course.explain import Explainer

        try:
            return Explainer(self.course)
        except Refused:
            return Explainer(None)

    def explained(self, events: Iterable[Event]) -> Iterator[Event]:
        """Events of a run, each error that is known followed by its explanation."""
        from tensortutor.course.explain import explained

        return explained(events, lambda event: self.explainer.event(event))

    def lesson(self, name: str) -> Lesson:
        """The lesson of this name. Raises Refused."""
        from tensortutor.course.catalog import UnknownLesson, find_lesson

        try:
            return find_lesson(self.course, name)
        except UnknownLesson as error:
            raise Refused(str(error)) from None

    def lessons(self, name: str | None) -> tuple[Lesson, ...]:
        """The lessons of a chapter, or one lesson; all without a name. Raises Refused."""
        from tensortutor.course.catalog import UnknownLesson, find_lessons

        try:
            return self.course.lessons if name is None else find_lessons(self.course, name)
        except UnknownLesson as error:
            raise Refused(str(error)) from None

    def chapter(self, name: str) -> Chapter | None:
        """The chapter of this name, if it is one's."""
        from tensortutor.course.catalog import find_chapter

        return find_chapter(self.course, name)

    def credit(self) -> Credit:
        """What the learner has passed, and what that counts for."""
        return credit(self.course, self.progress.history())

    def open_lesson(self, name: str, anyway: bool) -> Lesson:
        """The lesson of this name. Raises Refused if it is locked, unless that does not matter."""
        lesson = self.lesson(name)
        earned = self.credit()
        if state(lesson, earned) == "locked" and not anyway:
            needs, more = ", ".join(missing(lesson, earned)), chosen(self.options)
            raise Refused(
                f"{lesson.id} is locked until you have passed: {needs}. It builds on them. You can "
                f"read it (tensortutor show {lesson.id}{more}), answer one question of each lesson "
                f"that you skip (tensortutor skip {lesson.id}{more}), or add --anyway to the "
                "command: passing it then counts for this lesson and not for those that it "
                "builds on."
            )
        return lesson

    def again(self, lesson: Lesson) -> str:
        """The options that a further command about a lesson needs, as typed, after a space."""
        locked = state(lesson, self.credit()) == "locked"
        return chosen(self.options) + (" --anyway" if locked else "")

    def lesson_session(
        self, lesson: Lesson, index: int, report: Callable[[str], None] | None = None
    ) -> LessonSession:
        """What the learner has done in a lesson, at the step of this index, and may do now.

        report: gets a sentence when something could not be kept. Without it StorageError is raised,
        here and by the session's methods.
        """

        def refuse(sentence: str) -> None:
            raise StorageError(sentence)

        return LessonSession(
            self.course, lesson, self.progress, self.workspace, report or refuse, at=index,
            holds_earlier=True, sharing=self.sharing,
        )  # fmt: skip

    def step(self, lesson: Lesson, number: int) -> int:
        """The index of a lesson's step, from its number. Raises Refused."""
        if not 1 <= number <= len(lesson.steps):
            raise Refused(f"{lesson.id} has the steps 1 to {len(lesson.steps)}, not {number}.")
        return number - 1

    def runner(self, *, preload: bool = False) -> "Runner":
        """The runner, ready.

        preload: for many runs (see `runner.Settings`). Raises Refused if PyTorch or the device is
        missing.
        """
        from tensortutor.runner import Runner, RunnerError, Settings

        if self._runner is not None:
            return self._runner
        places = self.settings.places if self.options.on else ()
        try:
            place = find_place(self.options.on, places, self.options.python)
        except UnknownPlace as error:
            raise Refused(str(error)) from None
        settings = Settings(
            device=self.options.device,
            sandbox=self.options.sandbox,
            python=self.options.python,
            scratch=self.paths.scratch,
            data=self.paths.data,
            preload=preload,
            place=place,
        )
        runner = Runner(settings)
        try:
            runner.prepare(self.printer.note)
        except RunnerError as error:
            runner.close()
            raise Refused(str(error)) from None
        if runner.status.caution:
            self.printer.note(runner.status.caution)
        self._runner = runner
        return runner

    def close(self) -> None:
        """End what was started."""
        self.end_sharing()
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def chosen(options: AppOptions) -> str:
    """The options that a command needs to be repeated, as typed."""
    course = f" --course {shlex.quote(str(options.course))}" if options.course else ""
    device = f" --device {options.device}" if options.device != "auto" else ""
    on = f" --on {shlex.quote(options.on)}" if options.on else ""
    return course + device + on


def follow(runner: "Runner", job: Job, enough: Callable[[], bool] | None = None) -> Iterator[Event]:
    """The events of a job. Ctrl+C stops the program, yields what it still says, and goes on up.

    enough: asked now and then; once it says so, the program is stopped.

    A thread reads the events, because an interrupt must not tear the reading itself.
    """
    run = runner.start(job)
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def read() -> None:
        try:
            for event in run:
                events.put(event)
        finally:
            events.put(None)

    reader = threading.Thread(target=read, name="events", daemon=True)
    reader.start()
    try:
        with interrupts(run.stop):
            while enough is not None:
                with contextlib.suppress(queue.Empty):
                    while (event := events.get(timeout=POLL_S)) is not None:
                        yield event
                    return
                if enough():
                    run.stop()
                    enough = None
            yield from _until_none(events)
    finally:
        run.stop()
        reader.join()


@contextlib.contextmanager
def interrupts(first: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl+C calls `first` and is raised at the end; another one is raised at once.

    Raised at once, the first could come while an event is being told, and the rest would be lost.
    """
    usual = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or usual is not signal.default_int_handler:
        yield
        return
    came: list[int] = []

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if came:
            signal.default_int_handler(number, frame)
        came.append(number)
        # In a thread: what has been interrupted here may hold the locks that `first` wants.
        _thread.start_new_thread(first, ())

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt


def _until_none(events: "queue.SimpleQueue[Event | None]") -> Iterator[Event]:
    while (event := events.get()) is not None:
        yield event


def read_source(path: Path) -> str:
    """A Python file's text, in the encoding that it declares. Raises Refused.

    It may be a pipe, as the shell's <(command) is.
    """
    try:
        file, begins = open_named(path)
        with file:
            data = begins + file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Refused(f"{path} cannot be read: it has more than {LARGEST >> 20} MiB.")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {reason(error)}.") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not Python text: {error}.") from None
