"""Starts and stops the runs of a lesson, and takes from their events what the screen must know."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tensortutor.course.jobs import check_job, program_job
from tensortutor.course.model import Lesson
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.protocol.events import Event, Finished, Judged
from tensortutor.ui import describe
from tensortutor.ui.lesson.guess_gate import GuessGate
from tensortutor.ui.lesson.limits_gate import LimitsGate
from tensortutor.ui.lesson.line_notes import LineNotes
from tensortutor.ui.lesson.screen_runs import ScreenRuns
from tensortutor.ui.tutor import Tutor
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.results import Results


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
        self._gate = gate
        self._notes = notes
        self._tutor = tutor
        self._may_run = may_run
        self._once_more = False
        self._checked = ""
        self._runs = ScreenRuns(editor, results, keybar, tutor, self._save, started, session.lesson)
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
            self._runs.start(job, checking=False)

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
        self._checked = job.source
        self._runs.start(job, checking=True)

    def stop(self) -> None:
        """Stop the program."""
        self._runs.stop()

    def explain(self) -> None:
        """Open the lesson about the last error."""
        self._runs.explain()

    def _save(self) -> None:
        self._session.flush()
        self._session.tick()

    def rerun(self) -> None:
        """Check the code, or run what is not judged; a program under way is stopped first."""
        if self._results.is_running:
            self._once_more = True
            self._results.stop()
        elif self._session.judged:
            self.check()
        elif self._session.step.pane is not None and not self._session.must_answer_first:
            self.run()

    # What a run says

    def take(self, events: Sequence[Event]) -> None:
        """Mark where it failed, keep what an error is about, record what the checks said."""
        self._runs.take(events)
        for event in events:
            if isinstance(event, Judged):
                self._judged(event)

    def _judged(self, event: Judged) -> None:
        opened = self._session.judge(event, self._checked)
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
