"""The screen of one lesson: text, editor and results."""

from dataclasses import replace
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Markdown

from tensortutor.course.jobs import check_job, program_job
from tensortutor.course.model import Lesson
from tensortutor.protocol.events import Event, Explained, Judged, Raised
from tensortutor.protocol.jobs import Job
from tensortutor.ui import describe, keys
from tensortutor.ui.explained import ExplainedRuns
from tensortutor.ui.pointing import Pointing
from tensortutor.ui.screens.guessing import GuessingScreen
from tensortutor.ui.session import LessonSession
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.panes import Occasion
from tensortutor.ui.widgets.pointers import Pointer
from tensortutor.ui.widgets.reader import Reader
from tensortutor.ui.widgets.results import Results


class LessonScreen(GuessingScreen):
    """Shows a lesson step by step, runs its code and puts the checks to it."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LESSON]
    CSS_PATH = "../styles/lesson.tcss"
    ABOUT = (
        "One lesson, step by step: text, your code, and what came of running or checking it. "
        "Everything is saved as you type."
    )
    READER: ClassVar[type[Reader]] = Reader
    SESSION: ClassVar[type[LessonSession]] = LessonSession

    def __init__(self, lesson: Lesson, step: int | None = None) -> None:
        super().__init__()
        self.lesson = lesson
        self._first = step
        self._session: LessonSession | None = None
        self._about_error = ""

    @property
    def session(self) -> LessonSession:
        """What the learner does in this lesson."""
        if self._session is None:
            tutor = self.tutor
            self._session = self.SESSION(
                tutor.course, self.lesson, tutor.progress, tutor.workspace, tutor.tell,
                at=self._first,
            )  # fmt: skip
        return self._session

    def compose(self) -> ComposeResult:
        """Text on the left, the editor over the results on the right."""
        # Here these cost nothing: later, every widget of the screen is styled again.
        self.add_class("-reader")
        self.set_class(self.session.step.pane is None, "-no-code")
        yield TopLine()
        with Horizontal(id="body"):
            yield self.READER(id="reader")
            with Vertical(id="work"):
                yield Editor(id="editor")
                yield Results(id="results")
        yield KeyBar()
        yield self.too_small()

    async def on_mount(self) -> None:
        """Go to the step where the learner was."""
        if not self.query(ChecksPane):
            return  # the app ends while this screen is being made
        self.watch(self.app, "device_word", self._show_device)
        self._checks().prepare(self.lesson)
        self.apply_sizes()
        self.editor.closes_brackets = self.tutor.settings.close_brackets
        self.editor.completer.is_eager = self.tutor.settings.complete
        self.session.arrive()
        await self._show_step()
        self.follow_file()
        if problem := describe.mismatch(self.lesson, self.tutor.runner.status):
            self.tutor.tell(problem)

    def _show_device(self, word: str) -> None:
        self.top.word = word

    def _checks(self) -> ChecksPane:
        return self.query_one(ChecksPane)

    # Steps

    async def _show_step(self) -> None:
        session = self.session
        self.results.abandon(self._how_to_run())
        self.has_code = session.step.pane is not None
        self.count = f"{session.index + 1} of {len(self.lesson.steps)}"
        self.set_class(not self.has_code, "-no-code")
        await self.reader.show(session)
        self.load_code()
        self._describe()
        self.turn_to("reader")

    def _how_to_run(self) -> str:
        run, check = self.key_for("lesson.run"), self.key_for("lesson.check")
        if self.session.must_answer_first:
            return f"Guess first, then {run} runs the code."
        return (
            f"{run} runs the code, {check} checks it."
            if self.session.judged
            else (f"{run} runs the code.")
        )

    def _describe(self) -> None:
        """Bring the lines at the top and the bottom up to date."""
        session = self.session
        chapter, number = describe.number_of(session.course, self.lesson)
        self.top.place = (f"{chapter.number} {chapter.title}", f"{number} {self.lesson.title}")
        self.top.rail = tuple(
            "here" if i == session.index else "done" if i in session.steps_done else "ahead"
            for i in range(len(self.lesson.steps))
        )
        hints = len(session.step.hints)
        pane = session.step.pane
        self.keys.names = {
            "lesson.run": "Run" if pane else "",
            "lesson.check": "Check" if session.judged else "",
            "lesson.hint": f"Hint {session.hints_shown}/{hints}" if hints else "",
            "lesson.turn": "Turn" if pane else "",
            "lesson.stop": "Stop" if self.results.is_running else "",
            "lesson.next": "Next" if session.index + 1 < len(self.lesson.steps) else "Go on",
        }

    @work
    async def go(self, index: int | None) -> None:
        """Turn to a step, from anywhere in the app."""
        if index is not None and index != self.session.index:
            self.session.go(index)
            await self._show_step()

    async def action_next(self) -> None:
        """The next step; after the last one the next lesson."""
        session = self.session
        if self.held_back():
            return
        if session.index + 1 < len(self.lesson.steps):
            session.go(session.index + 1)
            await self._show_step()
            return
        session.finish()
        self._describe()
        following = session.following
        if not session.counts:
            self.tutor.tell(
                f"One thing is open: the checks of step {session.task_number}, "
                f"{self.lesson.task.title}. {self.key_for('lesson.previous')} goes back."
            )
        elif following is None:
            self.tutor.tell("That was the last open lesson of the course.")
        else:
            self.tutor.open_lesson(following)

    async def action_previous(self) -> None:
        """The step before."""
        await self._go(max(self.session.index - 1, 0))

    @on(TopLine.Chosen)
    async def _rail_clicked(self, event: TopLine.Chosen) -> None:
        await self._go(event.index)

    async def _go(self, index: int) -> None:
        if index != self.session.index:
            self.session.go(index)
            await self._show_step()

    def action_tab(self, steps: int) -> None:
        """Another tab of the results."""
        self.results.turn(steps)

    # Running

    def action_run(self) -> None:
        """Run the code; a guess comes first."""
        self._run(profile=False)

    def run_now(self) -> None:
        """Run the code."""
        self.action_run()

    def action_profile(self) -> None:
        """Run the code under the profiler."""
        self._run(profile=True)

    def _run(self, profile: bool) -> None:
        if self.session.step.pane is None:
            self.tutor.tell("This step has no code to run.")
        elif not self.ask_first():
            name = self.editor.file_name
            job = program_job(self.lesson, self.editor.text, name, self.tutor.limits)
            self._start(self.with_proofs(self.looked_into(job, profile=profile)), checking=False)

    def action_check(self, again: bool = False) -> None:
        """Put the checks to the code. again: with the inputs that the last check has failed on."""
        if not self.session.judged:
            number, title = self.session.task_number, self.lesson.task.title
            self.tutor.tell(f"The checks judge step {number}, {title}.")
            return
        seed = self._checks().failed_seed if again else None
        if again and seed is None:
            self.tutor.tell("No check has failed: there are no inputs to try again.")
            return
        name, limits = self.editor.file_name, self.tutor.limits
        self._start(check_job(self.lesson, self.editor.text, name, seed, limits), checking=True)

    def _start(self, job: Job, checking: bool) -> None:
        if self.results.is_running:
            self.tutor.tell(f"Your program still runs. {self.key_for('lesson.stop')} stops it.")
            return
        self.session.flush()
        self.session.tick()
        self.editor.mark({})
        self._about_error = ""
        runs = ExplainedRuns(self.tutor.runner, self.tutor.explainer)
        self.results.start(
            runs, replace(job, types=True), Occasion(self.lesson, checking, self._about)
        )
        self.gauge()
        self.results.show(ChecksPane if checking else OutputPane)
        if not self.is_wide:
            self.turn_to("results")
        self._describe()

    def action_stop(self) -> None:
        """Stop the program."""
        self.results.stop()

    def _about(self, id: str) -> str:
        """What to say of a lesson that explains an error."""
        lesson = describe.lesson_by_id(self.tutor.course, id)
        if lesson is None or lesson.id == self.lesson.id:
            return "This lesson is about it."
        name = describe.short_name(self.tutor.course, lesson)
        now = "now opens" if self._about_error not in ("", id) else "opens"  # the key has changed
        return f"Lesson {name} is about it: {self.key_for('lesson.explain')} {now} it."

    def action_explain(self) -> None:
        """Open the lesson about the last error."""
        lesson = describe.lesson_by_id(self.tutor.course, self._about_error)
        if lesson is None:
            self.tutor.tell("No error of the last run has a lesson of its own here.")
        elif lesson.id == self.lesson.id:
            self.tutor.tell("This lesson is about it.")
        else:
            self.tutor.open_lesson(lesson)

    @on(Results.Heard)
    def _heard(self, message: Results.Heard) -> None:
        self.take_lens(message.events)
        for event in message.events:
            self._take(event)
        self._describe()

    def _take(self, event: Event) -> None:
        if isinstance(event, Raised):
            lines = {frame.line: "called" for frame in event.frames if frame.line}
            if event.frames and event.frames[-1].line:
                lines[event.frames[-1].line] = "failed"
            self.editor.mark(lines)
        elif isinstance(event, Explained):
            self._about_error = event.lesson or self._about_error
        elif isinstance(event, Judged):
            opened = self.session.judge(event)
            if event.ok:
                names = [describe.short_name(self.session.course, lesson) for lesson in opened]
                go_on, solution = self.key_for("lesson.next"), self.key_for("lesson.solution")
                shown = [
                    describe.short_name(self.session.course, one) for one in self.session.shown
                ]
                self._checks().celebrate(
                    names,
                    shown,
                    f"{go_on} goes on; outside the editor, {solution} shows a solution beside your "
                    "code, and what others get wrong.",
                )

    # What the text points at

    def action_point(self) -> None:
        """Carry out the step's next look or try; take a try back that is made."""
        pointer = self.reader.next_pointer()
        if pointer is None:
            self.tutor.tell("Nothing in this step is to be looked at or tried.")
        else:
            self._pointing().choose(pointer)

    @on(Pointer.Chosen)
    def _pointer_chosen(self, event: Pointer.Chosen) -> None:
        self._pointing().choose(event.pointer)

    def _pointing(self) -> Pointing:
        return Pointing(self.editor, self.results, self.turn_to, self.tutor.tell, self.key_for)

    # Hints, the solution

    async def action_hint(self) -> None:
        """Show the next hint."""
        session = self.session
        hints = session.step.hints
        if not hints:
            number = session.task_number
            self.tutor.tell(f"The hints belong to step {number}, {self.lesson.task.title}.")
            return
        before = session.hints_shown
        count = session.hint()
        self.turn_to("reader")
        if count > before:
            await self.reader.add_hint(count, len(hints), hints[count - 1])
            self._describe()
        else:
            self.reader.scroll_end(animate=False)
            self.tutor.tell("That is all the hints there are.")

    def action_solution(self) -> None:
        """Show the solution beside the learner's own, once the checks have passed."""
        from tensortutor.ui.screens.solution import SolutionPage

        if self.session.is_passed:
            self.app.push_screen(SolutionPage(self.lesson, self.session.task_source()))
        else:
            self.tutor.tell("The solution can be read once the checks have passed.")

    @on(Markdown.LinkClicked)
    def _link(self, event: Markdown.LinkClicked) -> None:
        """A lesson opens; an address is copied, for the browser is on another machine."""
        event.stop()
        self.tutor.follow_link(self.lesson, event.href)

    # Leaving

    def action_home(self) -> None:
        """Back to the list of lessons."""
        self.tutor.go_home()

    def leave(self) -> bool:
        """Keep everything. Returns whether the code could be saved."""
        if self._session is None:
            return True
        self._session.finish()
        return self._session.flush()

    def on_unmount(self) -> None:
        """Nothing may be unsaved without a screen."""
        self.leave()
