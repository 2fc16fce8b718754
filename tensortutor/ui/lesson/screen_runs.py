"""Starts and stops programs on a screen, and takes from their events what the screen must know."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tensortutor.course.model import Lesson
from tensortutor.protocol.events import Event, Explained, Raised
from tensortutor.protocol.jobs import Job
from tensortutor.ui import describe
from tensortutor.ui.running.explained_runs import ExplainedRuns
from tensortutor.ui.tutor import Tutor
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.panes import Occasion
from tensortutor.ui.widgets.results import Results

GAUGE_EVERY_S = 0.25


class ScreenRuns:
    """The runs of one screen, at most one at a time.

    lesson: the one whose code is run, if it is a lesson's. shown: whether the program that runs is
    the one that the editor shows. save: called before a run. started: called when it has begun.
    """

    def __init__(
        self,
        editor: Editor,
        results: Results,
        keybar: KeyBar,
        tutor: Tutor,
        save: Callable[[], object],
        started: Callable[[], None],
        lesson: Lesson | None = None,
        shown: Callable[[], bool] = lambda: True,
    ) -> None:
        self._editor = editor
        self._results = results
        self._keybar = keybar
        self._tutor = tutor
        self._save = save
        self._started = started
        self._lesson = lesson
        self._shown = shown
        self._about_error = ""

    def start(self, job: Job, *, checking: bool = False) -> None:
        """Run a job, unless one runs already."""
        if self._results.is_running:
            stop = self._tutor.key_name("lesson.stop")
            self._tutor.tell(f"Your program still runs. {stop} stops it.")
            return
        self._save()
        self._editor.mark({})
        self._about_error = ""
        runs = ExplainedRuns(self._tutor.runner, self._tutor.explainer)
        occasion = Occasion(self._lesson if checking else None, self._about)
        self._results.start(runs, replace(job, types=True), occasion)
        self._show_gpu_use()
        self._results.show(ChecksPane if checking else OutputPane)
        self._started()

    def stop(self) -> None:
        """Stop the program."""
        self._results.stop()

    def _show_gpu_use(self) -> None:
        """Show the GPU's use in the footer until the run ends."""
        status = self._tutor.runner.status
        device = status.device
        if status.place is not None or device is None or not device.name.startswith("cuda"):
            return
        from tensortutor.ui.running.gpu_usage import Gauge

        gauge = Gauge(device.name)
        gauge.start()

        def show() -> None:
            if self._results.is_running:
                self._keybar.word = gauge.word
            else:
                timer.stop()
                gauge.stop()
                self._keybar.word = ""

        timer = self._results.set_interval(GAUGE_EVERY_S, show)

    def take(self, events: Iterable[Event]) -> None:
        """Mark where the program failed, keep what its error is about."""
        for event in events:
            if isinstance(event, Raised) and self._shown():
                lines = {frame.line: "called" for frame in event.frames if frame.line}
                if event.frames and event.frames[-1].line:
                    lines[event.frames[-1].line] = "failed"
                self._editor.mark(lines)
            elif isinstance(event, Explained):
                self._about_error = event.lesson or self._about_error

    # The lesson about an error

    def _about(self, id: str) -> str:
        """What to say of a lesson that explains an error."""
        lesson = describe.lesson_by_id(self._tutor.course, id)
        if lesson is None or (self._lesson is not None and lesson.id == self._lesson.id):
            return "This lesson is about it."
        name = describe.short_name(self._tutor.course, lesson)
        now = "now opens" if self._about_error not in ("", id) else "opens"  # the key has changed
        return f"Lesson {name} is about it: {self._tutor.key_name('lesson.explain')} {now} it."

    def explain(self) -> None:
        """Open the lesson about the last error."""
        lesson = describe.lesson_by_id(self._tutor.course, self._about_error)
        if lesson is None:
            self._tutor.tell("No error of the last run has a lesson of its own here.")
        elif self._lesson is not None and lesson.id == self._lesson.id:
            self._tutor.tell("This lesson is about it.")
        else:
            self._tutor.open_lesson(lesson)
