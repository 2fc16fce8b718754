"""Starts and stops the runs of a lesson, and takes from their events what the screen must know."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from tensortutor.course.jobs import check_job, program_job
from tensortutor.course.model import Lesson
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.protocol.events import Event, Explained, Finished, Judged, Raised
from tensortutor.protocol.jobs import Job
from tensortutor.ui import describe
from tensortutor.ui.lesson.guess_gate import GuessGate
from tensortutor.ui.lesson.limits_gate import LimitsGate
from tensortutor.ui.lesson.line_notes import LineNotes
from tensortutor.ui.running.explained_runs import ExplainedRuns
from tensortutor.ui.tutor import Tutor
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.panes import Occasion
from tensortutor.ui.widgets.results import Results

GAUGE_EVERY_S = 0.25


class RunController:
    """The runs of one lesson, at most one at a time.

    may_run: whether there is code to run; says why if not. started: called when a run has begun.
    """

    def __init__(
        self,
        session: LessonSession,
        editor: Editor,
        results: Results,
        keybar: KeyBar,
        gate: GuessGate,
        notes: LineNotes,
        tutor: Tutor,
        may_run: Callable[[], bool],
        started: Callable[[], None],
    ) -> None:
        self._session = session
        self._editor = editor
        self._results = results
        self._keybar = keybar
        self._gate = gate
        self._notes = notes
        self._tutor = tutor
        self._may_run = may_run
        self._started = started
        self._once_more = False
        self._about_error = ""
        self._limits_gate = LimitsGate(tutor)

    @property
    def _lesson(self) -> Lesson:
        return self._session.lesson

    @property
    def _checks(self) -> ChecksPane:
        return self._results.query_one(ChecksPane)

    def run(self, *, profile: bool = False) -> None:
        """Run the code; a guess comes first. profile: under the profiler."""
        if self._session.step.pane is None:
            self._tutor.tell("This step has no code to run.")
        elif self._may_run() and not self._gate.ask_first():
            again = partial(self.run, profile=profile)
            if self._limits_gate.ask_first(self._lesson, again):
                return
            name, limits = self._editor.file_name, self._tutor.limits
            raised = not self._limits_gate.asked(self._lesson)
            job = program_job(self._lesson, self._editor.text, name, limits, raised=raised)
            job = self._gate.with_proofs(self._notes.looked_into(job, profile=profile))
            self._start(job, checking=False)

    def check(self, again: bool = False) -> None:
        """Put the checks to the code. again: with the inputs that the last check has failed on."""
        if not self._session.judged:
            number, title = self._session.task_number, self._lesson.task.title
            self._tutor.tell(f"The checks judge step {number}, {title}.")
            return
        seed = self._checks.failed_seed if again else None
        if again and seed is None:
            self._tutor.tell("No check has failed: there are no inputs to try again.")
            return
        if self._limits_gate.ask_first(self._lesson, partial(self.check, again)):
            return
        name, limits = self._editor.file_name, self._tutor.limits
        raised = not self._limits_gate.asked(self._lesson)
        job = check_job(self._lesson, self._editor.text, name, seed, limits, raised=raised)
        self._start(job, checking=True)

    def stop(self) -> None:
        """Stop the program."""
        self._results.stop()

    def rerun(self) -> None:
        """Check the code, or run what is not judged; a program under way is stopped first."""
        if self._results.is_running:
            self._once_more = True
            self._results.stop()
        elif self._session.judged:
            self.check()
        elif self._session.step.pane is not None and not self._session.must_answer_first:
            self.run()

    def _start(self, job: Job, checking: bool) -> None:
        if self._results.is_running:
            stop = self._tutor.key_name("lesson.stop")
            self._tutor.tell(f"Your program still runs. {stop} stops it.")
            return
        self._session.flush()
        self._session.tick()
        self._editor.mark({})
        self._about_error = ""
        runs = ExplainedRuns(self._tutor.runner, self._tutor.explainer)
        occasion = Occasion(self._lesson, checking, self._about)
        self._results.start(runs, replace(job, types=True), occasion)
        self._show_gpu_use()
        self._results.show(ChecksPane if checking else OutputPane)
        self._started()

    def _show_gpu_use(self) -> None:
        """Show the GPU's use in the footer until the run ends."""
        device = self._tutor.runner.status.device
        if device is None or not device.name.startswith("cuda"):
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

    # What a run says

    def take(self, events: Iterable[Event]) -> None:
        """Mark where it failed, keep what an error is about, record what the checks said."""
        for event in events:
            if isinstance(event, Raised):
                lines = {frame.line: "called" for frame in event.frames if frame.line}
                if event.frames and event.frames[-1].line:
                    lines[event.frames[-1].line] = "failed"
                self._editor.mark(lines)
            elif isinstance(event, Explained):
                self._about_error = event.lesson or self._about_error
            elif isinstance(event, Judged):
                self._judged(event)

    def _judged(self, event: Judged) -> None:
        opened = self._session.judge(event)
        if not event.ok:
            return
        course = self._session.course
        go_on = self._tutor.key_name("lesson.next")
        solution = self._tutor.key_name("lesson.solution")
        self._checks.celebrate(
            [describe.short_name(course, lesson) for lesson in opened],
            [describe.short_name(course, lesson) for lesson in self._session.shown],
            f"{go_on} goes on; outside the editor, {solution} shows a solution beside your "
            "code, and what others get wrong.",
        )

    def rerun_if_asked(self, events: Iterable[Event]) -> None:
        """A program that was stopped to be run again has ended: run it again."""
        if self._once_more and any(isinstance(event, Finished) for event in events):
            self._once_more = False
            self.rerun()

    # The lesson about an error

    def _about(self, id: str) -> str:
        """What to say of a lesson that explains an error."""
        lesson = describe.lesson_by_id(self._tutor.course, id)
        if lesson is None or lesson.id == self._lesson.id:
            return "This lesson is about it."
        name = describe.short_name(self._tutor.course, lesson)
        now = "now opens" if self._about_error not in ("", id) else "opens"  # the key has changed
        return f"Lesson {name} is about it: {self._tutor.key_name('lesson.explain')} {now} it."

    def explain(self) -> None:
        """Open the lesson about the last error."""
        lesson = describe.lesson_by_id(self._tutor.course, self._about_error)
        if lesson is None:
            self._tutor.tell("No error of the last run has a lesson of its own here.")
        elif lesson.id == self._lesson.id:
            self._tutor.tell("This lesson is about it.")
        else:
            self._tutor.open_lesson(lesson)
