"""The screen of one lesson: text, editor and results.

It lays out the widgets, names the key actions, and hands every event to the part that it concerns
(`tensortutor.ui.lesson`). `on_run_events` is the one place that hears what a run says.
"""

from collections.abc import Callable
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Markdown, TextArea

from tensortutor.course.model import Lesson
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.lesson.code_file import CodeFile
from tensortutor.ui.lesson.guess_gate import GuessGate
from tensortutor.ui.lesson.pane_layout import PaneLayout
from tensortutor.ui.lesson.pointing import Pointing
from tensortutor.ui.lesson.run_controller import RunController
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.workbench import Workbench
from tensortutor.ui.widgets import questions
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.pointers import Pointer
from tensortutor.ui.widgets.reader import Reader
from tensortutor.ui.widgets.results import Results

READING = "reading, nothing is recorded"
AHEAD = (
    "lesson.run", "lesson.check", "lesson.stop", "lesson.next", "lesson.hint", "lesson.turn",
    "lesson.leave", "editor.leave",
)  # fmt: skip
"""Keys that come before those of the part with the focus."""


class LessonScreen(TutorScreen):
    """Shows a lesson step by step, runs its code and puts the checks to it.

    session: the rules. panes, code, names, notes, guesses, runs: the parts that do the work.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.LESSON]
    CSS_PATH = "../styles/lesson.tcss"
    ABOUT = (
        "One lesson, step by step: text, your code, and what came of running or checking it. "
        "Everything is saved as you type."
    )
    READER: ClassVar[type[Reader]] = Reader
    SESSION: ClassVar[type[LessonSession]] = LessonSession

    def __init__(self, lesson: Lesson, step: int | None = None, reading: bool = False) -> None:
        # reading: the lesson is locked and only looked at; nothing is recorded.
        super().__init__()
        tutor = self.tutor
        self.lesson = lesson
        self.session = self.SESSION(
            tutor.course, lesson, tutor.progress, tutor.workspace, tutor.tell, at=step,
            reading=reading, sharing=None if tutor.teaching else tutor.sharing,
        )  # fmt: skip
        self.reader = self.READER(id="reader")
        self.bench = Workbench(tutor)
        self.editor, self.results = self.bench.editor, self.bench.results
        self.names, self.notes = self.bench.names, self.bench.notes
        self._keybar = KeyBar()
        self.panes = PaneLayout(
            self.reader, self.editor, self.results, tutor.ui_state, lambda: self.is_wide,
            lambda: self.app.size.height - 2, tutor.tell,
        )  # fmt: skip
        self.code = CodeFile(self.session, self.editor, tutor.tell, lambda: self.runs.rerun())
        self.guesses = GuessGate(
            self.session, self.reader, self._ask, self.reader.focus,
            lambda lines: self.results.query_one(OutputPane).remark(lines), self.key_for,
            tutor.tell,
        )  # fmt: skip
        self.pointing = Pointing(
            self.editor, self.results, self.panes.turn_to, tutor.tell, self.key_for
        )
        self.runs = RunController(
            self.session, self.editor, self.results, self._keybar, self.guesses, self.notes,
            tutor, self._may_run, self._run_started,
        )  # fmt: skip

    def compose(self) -> ComposeResult:
        """Text beside or above the editor over the results; `panes` says which and how large."""
        yield TopLine()
        with Horizontal(id="body"):
            yield self.reader
            yield self.bench
        yield self._keybar
        yield self.too_small()

    async def on_mount(self) -> None:
        """Go to the step where the learner was."""
        if not self.query(ChecksPane):
            return  # the app ends while this screen is being made
        self.watch(self.app, "device_word", self._show_device)
        self.results.query_one(ChecksPane).prepare(self.lesson)
        self.panes.apply_sizes()
        self.session.arrive()
        await self._show_step()
        self.code.follow()
        if problem := describe.mismatch(self.lesson, self.tutor.runner.status):
            self.tutor.tell(problem)

    def _show_device(self, word: str) -> None:
        self.top.word = word

    # Steps

    @property
    def is_for_programs(self) -> bool:
        """Whether the learner may be about to run what they see."""
        return self._has_code

    @property
    def _has_code(self) -> bool:
        """Whether the step shows code beside its text."""
        return self.session.step.pane is not None

    async def _show_step(self) -> None:
        session = self.session
        self.results.abandon(self._how_to_run())
        self.panes.begin_step(
            has_code=self._has_code,
            has_questions=bool(session.step.quizzes),
            count=f"{session.index + 1} of {len(self.lesson.steps)}",
        )
        await self.reader.show(session)
        self._show_code()
        self._focus_first()
        self._describe()

    def _focus_first(self) -> None:
        """On arrival at any step the keys are where the learner acts first: at the first question
        that is open, else in the code of an exercise, else in the text."""
        question = self.session.next_question()
        if question is not None:
            self._ask(self.reader.questions[question])
        else:
            self.panes.turn_to("editor" if self.session.judged else "reader")

    def _ask(self, question: questions.Question) -> None:
        self.panes.ask(question)
        if self.session.step.pane is not None and not self.is_wide:
            self.call_after_refresh(self.reader.scroll_to_widget, question, animate=False)

    def _show_code(self) -> None:
        self.code.show()
        self.notes.forget()
        if self.session.step.pane is not None:
            self.names.forget()

    def _how_to_run(self) -> str:
        run, check = self.key_for("lesson.run"), self.key_for("lesson.check")
        if self.session.must_answer_first:
            return f"Guess first, then {run} runs the code."
        if self.session.judged:
            return f"{run} runs the code, {check} checks it."
        return f"{run} runs the code."

    def _describe(self) -> None:
        """Bring the lines at the top and the bottom up to date."""
        session = self.session
        chapter, number = describe.number_of(session.course, self.lesson)
        self.top.place = (f"{chapter.number} {chapter.title}", f"{number} {self.lesson.title}")
        if session.reading:
            self.top.place += (READING,)
        self.top.rail = tuple(
            "here" if i == session.index else "done" if i in session.steps_done else "ahead"
            for i in range(len(self.lesson.steps))
        )
        hints = len(session.step.hints)
        pane, front = session.step.pane, self.panes.front
        text = "Text" if front != "reader" or self.panes.is_asking else ""
        self.keys.ahead = AHEAD
        self.keys.names = {
            "lesson.run": "Run" if pane else "",
            "lesson.check": "Check" if session.judged else "",
            "lesson.hint": f"Hint {session.hints_shown}/{hints}" if hints else "",
            "lesson.turn": ("Results" if front == "editor" else "Code") if self._has_code else "",
            "lesson.leave": text,
            "editor.complete": "Names",
            "editor.leave": text,
            "lesson.tab": "Tab" if front == "results" else "",
            "lesson.stop": "Stop" if self.results.is_running else "",
            "lesson.next": "Next" if session.index + 1 < len(self.lesson.steps) else "Go on",
        }

    @work
    async def go(self, index: int | None) -> None:
        """Turn to a step, from anywhere in the app."""
        if index is not None:
            await self._go(index)

    async def _go(self, index: int) -> None:
        if index != self.session.index:
            self.session.go(index)
            await self._show_step()

    async def action_next(self) -> None:
        """The next step; after the last one the next lesson."""
        session = self.session
        if self.guesses.held_back():
            return
        if session.index + 1 < len(self.lesson.steps):
            await self._go(session.index + 1)
            return
        session.finish()
        self._describe()
        following = session.following
        if session.reading:
            self.tutor.tell(
                f"You have read it, and nothing was recorded. {self.key_for('lesson.check')} "
                "begins to work on it."
            )
        elif not session.counts:
            self.tutor.tell(
                f"One thing is open: the checks of step {session.task_number}, "
                f"{self.lesson.task.title}. {self.key_for('lesson.previous')} goes back."
            )
        elif following is None:
            self.tutor.tell("That was the last open lesson of the course.")
        else:
            self.tutor.open_lesson(following)
            self._tell_what_is_left_out(following)

    def _tell_what_is_left_out(self, following: Lesson) -> None:
        """Name the locked lessons between this one and the next."""
        lessons = self.session.course.lessons
        between = lessons[lessons.index(self.lesson) + 1 : lessons.index(following)]
        locked = [lesson for lesson in between if self.tutor.opens(lesson)]
        if locked:
            first, rest = locked[0], len(locked) - 1
            more = f", and {describe.count(rest, 'other lesson')} with it" if rest else ""
            self.tutor.tell(
                f"{describe.short_name(self.session.course, first)} is left out{more}: "
                f"{self.tutor.opens(first)}."
            )

    async def action_previous(self) -> None:
        """The step before."""
        await self._go(max(self.session.index - 1, 0))

    @on(TopLine.Chosen)
    async def _rail_clicked(self, event: TopLine.Chosen) -> None:
        await self._go(event.index)

    # Running

    def _may_run(self) -> bool:
        """Whether this step's code can be run now; says why if not."""
        return True

    def _run_started(self) -> None:
        self.panes.show_results()
        self._describe()

    @on(Results.Heard)
    async def on_run_events(self, message: Results.Heard) -> None:
        """What a run says, part by part; `runs` before `guesses`: a check counts before a guess."""
        self.notes.take(message.events)
        self.runs.take(message.events)
        self._describe()
        await self.guesses.reveal(message.events)
        self.names.learn(message.events)
        self.runs.rerun_if_asked(message.events)

    def action_run(self) -> None:
        """Run the code; a guess comes first."""
        self.runs.run()

    def action_profile(self) -> None:
        """Run the code under the profiler."""
        self.runs.run(profile=True)

    def action_check(self, again: bool = False) -> None:
        """Put the checks to the code. again: with the inputs that the last check has failed on."""
        self._begin_then(lambda: self.runs.check(again))

    def _begin_then(self, act: Callable[[], object]) -> None:
        """Do what only somebody does who works on the lesson; ask first whoever is reading."""
        if not self.session.reading:
            act()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.session.begin()
                self._describe()
                act()

        self.tutor.confirm(
            "Work on this lesson",
            f"You are reading a locked lesson: {self.tutor.opens(self.lesson)}. If you work on it "
            "now, what you do is recorded, and passing it counts for this lesson alone, not for "
            "those that it builds on.",
            "Work on it",
            "Read on",
            answered,
        )

    def action_stop(self) -> None:
        """Stop the program."""
        self.runs.stop()

    def action_explain(self) -> None:
        """Open the lesson about the last error."""
        self.runs.explain()

    def action_tab(self, steps: int) -> None:
        """Another tab of the results."""
        self.panes.show_results()
        self.results.turn(steps)

    def action_tab_at(self, number: int) -> None:
        """A tab of the results by its number, from 1."""
        self.panes.show_results()
        self.results.turn_to(number)

    # Questions, hints, the solution

    @on(questions.Question.Answered)
    async def _question_answered(self, event: questions.Question.Answered) -> None:
        await self.guesses.answered(event.question, event.value)

    def action_skip(self) -> None:
        """Run the code without a guess."""
        if self.guesses.skip():
            self.action_run()

    async def action_hint(self) -> None:
        """Show the next hint."""
        if self.session.reading:
            self._begin_then(lambda: self.run_worker(self._hint()))
        else:
            await self._hint()

    async def _hint(self) -> None:
        session = self.session
        hints = session.step.hints
        if not hints:
            number = session.task_number
            self.tutor.tell(f"The hints belong to step {number}, {self.lesson.task.title}.")
            return
        before = session.hints_shown
        count = session.hint()
        if self.editor.has_focus:  # who writes goes on writing
            self.panes.show_text()
        else:
            self.panes.turn_to("reader")
        if count > before:
            await self.reader.add_hint(count, len(hints), hints[count - 1])
            self._describe()
        else:
            self.reader.scroll_end(animate=False)
            self.tutor.tell("That is all the hints there are.")

    def action_point(self) -> None:
        """Carry out the step's next look or try; take a try back that is made."""
        pointer = self.reader.next_pointer()
        if pointer is None:
            self.tutor.tell("Nothing in this step is to be looked at or tried.")
        elif not self.pointing.choose(pointer):
            self.reader.pointer_missed(pointer)

    @on(Pointer.Chosen)
    def _pointer_chosen(self, event: Pointer.Chosen) -> None:
        self.pointing.choose(event.pointer)

    def action_ask_for_help(self) -> None:
        """Send this step's code to whoever teaches the class."""
        self.session.send(help=True)

    def hand_in(self) -> None:
        """Send the code that the checks judge to whoever teaches the class."""
        self.session.send(help=False)

    def withdraw_help(self) -> None:
        """Take the call for help back."""
        self.session.withdraw_help()

    def action_solution(self) -> None:
        """Show the solution beside the learner's own, once the checks have passed."""
        from tensortutor.ui.screens.solution import SolutionPage

        if self.session.may_see_solution:
            self.app.push_screen(SolutionPage(self.lesson, self.session.task_source()))
        else:
            self.tutor.tell("The solution can be read once the checks have passed.")

    @on(Markdown.LinkClicked)
    def _link(self, event: Markdown.LinkClicked) -> None:
        """A lesson opens; an address is copied, for the browser is on another machine."""
        event.stop()
        self.tutor.follow_link(self.lesson, event.href)

    # The code

    @on(TextArea.Changed)
    def _edited(self) -> None:
        self.code.edited()

    @on(events.AppFocus)
    @on(events.ScreenResume)
    def _read_again(self) -> None:
        self.code.read_again()

    def action_save(self) -> None:
        """Save now, and say so."""
        self.code.save()

    @work
    async def action_reset(self) -> None:
        """Start the step's code afresh, after a question."""
        if self.session.step.pane is None:
            return
        question = Confirm(
            "Start afresh",
            "The code of this step goes back to what it began with. What is there now is kept "
            "in a backup folder.",
            "Start afresh",
        )
        if await self.app.push_screen_wait(question):
            self.code.reset()
            self.names.forget()

    @work(exclusive=True, group="format")
    async def action_format(self) -> None:
        """Lay the code out as ruff does, in one step that can be undone."""
        await self.code.format()

    def action_own_editor(self) -> None:
        """Open the file in the learner's own editor; the app waits meanwhile."""
        self.code.open_in_own_editor(self.app.suspend)
        self.refresh()

    def action_watch(self) -> None:
        """Run the checks whenever another program saves the file, or stop doing so."""
        self._begin_then(self.code.watch)

    def action_card(self) -> None:
        """Save code, plot and checks as one picture."""
        if not self._has_code:
            self.tutor.tell("This step has text alone.")
            return
        checks = self.results.query_one(ChecksPane).states if self.session.judged else []
        path = self.session.path.with_suffix(".svg")
        self.tutor.tell(self.bench.save_card(path, self.lesson.title, checks))

    # What the lens saw

    def action_notes(self) -> None:
        """Show the notes behind the lines, or hide them."""
        self.notes.toggle_notes()

    def action_lens(self) -> None:
        """Look into runs: at the first passes of loops, at all of them, or not at all."""
        self.notes.next_depth()

    def action_broadcast(self) -> None:
        """Say what is marked at the cursor's line: how shapes were broadcast, the first NaN."""
        self.bench.show_about_line()

    # The parts of the screen

    def action_turn(self) -> None:
        """From the code to the results, from anywhere else to the code."""
        self.panes.turn()

    def action_leave(self) -> None:
        """Out of code, results or a field, to the text."""
        self.panes.leave()

    @on(Editor.Left)
    def _editor_left(self) -> None:
        self.action_leave()

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        # The focus may have moved on since the event was sent.
        if self.focused is not None and self.results.is_mounted:
            self.panes.focus_moved(self.focused)
            self._describe()

    @on(events.Resize)
    def _resized(self) -> None:
        if self.results.is_mounted:
            self.panes.apply_sizes()

    def action_widen(self, steps: int) -> None:
        """More room for the text, or less."""
        self.panes.widen(steps)

    def action_heighten(self, steps: int) -> None:
        """More room for the results, or less."""
        self.panes.heighten(steps)

    def action_usual_sizes(self) -> None:
        """As at first."""
        self.panes.reset_sizes()

    @on(events.MouseDown)
    def _grab_edge(self, event: events.MouseDown) -> None:
        on_tab = "@click" in event.style.meta  # the tabs of the results stand in their frame
        if not on_tab and self.panes.grab(event.screen_x, event.screen_y):
            self.clear_selection()
            self.capture_mouse()

    @on(events.MouseMove)
    def _drag_edge(self, event: events.MouseMove) -> None:
        self.panes.drag(event.screen_x, event.screen_y)

    @on(events.MouseUp)
    def _let_edge_go(self) -> None:
        if self.panes.is_dragging:
            self.release_mouse()
            self.panes.let_go()

    # Leaving

    def action_home(self) -> None:
        """Back to the list of lessons."""
        self.tutor.go_home()

    @property
    def at_stake(self) -> str:
        """A program that runs, an answer that was typed and not given."""
        if self.results.is_running:
            return "Your program still runs: quitting stops it."
        if any(question.unsent for question in self.reader.questions):
            return "An answer is typed and not given: Enter gives it, quitting forgets it."
        return ""

    def offer_stop(self) -> bool:
        """Ask whether the program is to be stopped, if one runs."""
        if not self.results.is_running:
            return False
        question = Confirm(
            "Stop",
            f"Your program runs. {self.key_for('lesson.stop')} stops it without a question.",
            "Stop it",
            "Let it run",
        )
        self.app.push_screen(question, lambda yes: self.runs.stop() if yes else None)
        return True

    def share(self) -> None:
        """Tell the learner's class where they are."""
        self.session.share()

    def leave(self) -> bool:
        """Keep everything. Returns whether the code could be saved."""
        self.session.finish()
        return self.session.flush()

    def on_unmount(self) -> None:
        """Nothing may be unsaved without a screen."""
        self.leave()
