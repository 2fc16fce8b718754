"""One lesson being worked on: where the learner is, what was written and answered, what counts.

The rules of both faces: the app holds a session for as long as a lesson is open, a command for as
long as it runs. What cannot be kept is reported as a sentence through `report`, and work goes on:
everything is also held in memory until the screen closes.
"""

import time
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

from tensortutor.course.material import Step
from tensortutor.course.model import JUDGED, Course, Lesson
from tensortutor.learner import answers
from tensortutor.learner.class_sharing import ClassSharing
from tensortutor.learner.edited_files import Code, EditedFiles
from tensortutor.learner.errors import StorageError
from tensortutor.learner.guesses import Guess, guesses
from tensortutor.learner.progress import Progress
from tensortutor.learner.unlock import History, credit, next_lesson, opened_by, shown_by
from tensortutor.learner.workspace import Workspace
from tensortutor.protocol.events import Judged

NO_CLASS = (
    "You share with no class. If you take part in one, write its folder into settings.toml: "
    '[class], then folder = "...".'
)
T = TypeVar("T")
ToDo = Literal["answer", "run", "check"]
"""What a step can ask for before it is done: an answer, the run that shows what the answer was
worth, checks that pass."""
IDLE_S = 300.0
"""Time between two actions counts as spent on the lesson up to this."""


class LessonStore:
    """The files of a lesson, by step."""

    def __init__(self, lesson: Lesson, workspace: Workspace) -> None:
        self._lesson = lesson
        self._workspace = workspace

    def path(self, key: int) -> Path:
        """Where a step's code lies."""
        return self._workspace.path(self._lesson, key)

    def load(self, key: int) -> str:
        """What the learner wrote, else what the step begins with. Raises StorageError."""
        return self._workspace.load(self._lesson, key)

    def save(self, key: int, text: str) -> None:
        """Keep what the learner wrote. Raises StorageError."""
        self._workspace.save(self._lesson, key, text)

    def start(self, key: int) -> Path:
        """The file, made if it is not there. Raises StorageError."""
        return self._workspace.start(self._lesson, key)

    def put_aside(self, key: int) -> Path | None:
        """Move the file to a backup. Raises StorageError."""
        return self._workspace.reset(self._lesson, key)

    def unread(self, key: int) -> str:
        """What the step begins with."""
        pane = self._lesson.steps[key].pane
        return "" if pane is None else pane.source

    def may_change(self, key: int) -> bool:
        """A lesson's files are there to be changed."""
        del key
        return True

    def gone(self, key: int) -> str:
        """It was taken away."""
        return (
            f"{self.path(key)} is gone: here is what the step begins with. Undo brings back what "
            "stood here."
        )


class LessonSession:
    """A lesson, the learner's place in it, and what they did."""

    STORE = LessonStore

    def __init__(
        self,
        course: Course,
        lesson: Lesson,
        progress: Progress,
        workspace: Workspace,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        at: int | None = None,
        *,
        holds_earlier: bool = False,
        reading: bool = False,
        sharing: ClassSharing | None = None,
    ) -> None:
        # sharing: with the learner's class, if they have one.
        # reading: the lesson is locked and looked at alone. Nothing is recorded until `begin`.
        # holds_earlier: guesses of earlier sessions wait for their run too. A command's session
        # ends before the run; the app's next visit shows what they were worth.
        self.course = course
        self.lesson = lesson
        self.reading = reading
        self._unrecorded: list[Callable[[], Any]] = []
        self._progress = progress
        self._workspace = workspace
        self._report = report
        self._sharing = sharing
        self._clock = clock
        self._since = clock()
        self._files = EditedFiles(self.STORE(lesson, workspace), report)
        self.shown: tuple[Lesson, ...] = ()
        id = lesson.id
        nothing: frozenset[Any] = frozenset()
        no_answers: dict[tuple[int, int], tuple[str, bool]] = {}
        self._history: History = self._tried(progress.history, History())
        self.hints_shown = self._tried(lambda: progress.hints_shown(id), 0)
        self.steps_done: set[int] = {*self._tried(lambda: progress.steps_done(id), nothing)}
        self.answered = self._tried(lambda: progress.answers(id), no_answers)
        self._revealed = {*self.steps_done}
        if not holds_earlier:
            self._revealed |= {n for n in range(len(lesson.steps)) if self._all_answered(n)}
        self._skipped: set[int] = set()
        place = self._tried(lambda: progress.step_of(id), 0) if at is None else at
        self.index: int = min(place, len(lesson.steps) - 1)

    # Where the learner is

    @property
    def step(self) -> Step:
        """The step that is shown."""
        return self.lesson.steps[self.index]

    @property
    def judged(self) -> bool:
        """Whether this step's code is what the checks judge."""
        return self.step.pane is not None and self.step.pane.kind in JUDGED

    @property
    def is_passed(self) -> bool:
        """Whether the lesson's checks have passed, today or before."""
        return self.lesson.id in self._history.passed

    @property
    def may_see_solution(self) -> bool:
        """Whether the solution may be read: once the checks have passed."""
        return self.is_passed

    @property
    def task_number(self) -> int:
        """The number, from 1, of the step that the checks judge."""
        return self.lesson.steps.index(self.lesson.task) + 1

    def go(self, index: int) -> None:
        """Show another step. The one that is left counts as done if nothing in it is open."""
        self.flush()
        if index > self.index and self.left_to_do is None:
            self._done(self.index)
        self.index = index
        self.arrive()

    def arrive(self) -> None:
        """Remember this lesson and step as the place to come back to."""
        self._keep(lambda: self._progress.set_place(self.lesson.id, self.index))

    def begin(self) -> None:
        """From now on the learner works on a lesson that they have only read. What they answered
        while they read is recorded now."""
        self.reading = False
        waiting, self._unrecorded = self._unrecorded, []
        for action in waiting:
            self._keep(action)
        self.arrive()

    def finish(self) -> None:
        """The lesson is left: keep everything."""
        self.flush()
        if self.index == len(self.lesson.steps) - 1 and self.left_to_do is None:
            self._done(self.index)
        now = self._clock()
        spent = min(now - self._since, IDLE_S)
        self._since = now
        self._keep(lambda: self._progress.add_time(self.lesson.id, spent))

    def tick(self) -> None:
        """The learner did something: the time since the last action was spent here."""
        if self._clock() - self._since > 30:
            spent = min(self._clock() - self._since, IDLE_S)
            self._since = self._clock()
            self._keep(lambda: self._progress.add_time(self.lesson.id, spent))

    @property
    def left_to_do(self) -> ToDo | None:
        """What this step still asks of the learner; None if nothing is left."""
        return self._left(self.index)

    def _left(self, index: int) -> ToDo | None:
        step = self.lesson.steps[index]
        if step.optional:
            return None
        if not self._all_answered(index):
            return "answer"
        if self._is_held(index):
            return "run"
        judged = step.pane is not None and step.pane.kind in JUDGED
        return "check" if judged and not self.is_passed else None

    def open_step(self) -> int | None:
        """The index of the first step from this one on that is not done, else of the first before
        it, else None. An optional step is open only to whoever has not come by it yet.
        """
        steps = self.lesson.steps
        before = (index for index in range(self.index) if not steps[index].optional)
        for index in chain(range(self.index, len(steps)), before):
            if index not in self.steps_done or self._left(index) is not None:
                return index
        return None

    def mark_done(self) -> None:
        """This step has been worked through."""
        self._done(self.index)

    def _done(self, index: int) -> None:
        if index not in self.steps_done:
            self.steps_done.add(index)
            self._keep(lambda: self._progress.mark_step(self.lesson.id, index))

    # What follows

    @property
    def following(self) -> Lesson | None:
        """The lesson to go on with."""
        return next_lesson(self.course, self.lesson.id, self._history)

    @property
    def counts(self) -> bool:
        """Whether the lesson is passed, or known without."""
        return self.is_passed or self.lesson.id in credit(self.course, self._history)

    def judge(self, event: Judged, source: str = "") -> tuple[Lesson, ...]:
        """The checks have spoken. Returns the lessons that this opens; `shown` has those known.

        source: the code that was checked. It is kept where it passed and another lesson goes on
        with it. Whoever only reads has nothing checked: `begin` comes first.
        """
        if self.reading:
            return ()
        continued = {one.continues for one in self.course.lessons}
        if event.ok and source and self.lesson.id in continued:
            self._keep(lambda: self._workspace.keep_passed(self.lesson, source))
        opened = self._judge(event)
        self.share()
        return opened

    def _judge(self, event: Judged) -> tuple[Lesson, ...]:
        total = len(event.passed) + len(event.failed) + len(event.missing)
        id = self.lesson.id
        failing = (*event.failed, *event.missing)
        self._keep(
            lambda: self._progress.record_attempt(id, event.ok, len(event.passed), total, failing),
        )
        if not event.ok:
            return ()
        self._done(self.task_number - 1)
        if id in self._history.passed:
            self.shown = ()
            return ()
        opened = opened_by(self.course, self.lesson, self._history)
        self.shown = shown_by(self.course, self.lesson, self._history)
        self._history = self._history.after_passing(self.lesson)
        self._keep(lambda: self._progress.mark_passed(id, self.lesson.shows))
        return opened

    # The class

    def share(self) -> None:
        """Tell the learner's class where they are, if they have one and share."""
        if self._sharing is not None and not self.reading:
            step, steps = self.index + 1, len(self.lesson.steps)
            self._sharing.share(self.lesson.id, step, steps, self._progress)

    def send(self, *, help: bool, code: str | None = None) -> None:
        """Send code to the class. help: this step's, or the task's if it has none, to ask for help;
        otherwise the task's is handed in. code: what to send instead of what is in the file. What
        came of it is told by the sharing."""
        if self._sharing is None:
            self._report(NO_CLASS)
            return
        here = help and self.has_code
        if code is None:
            self.flush()
            code = self.code().text if here else self.task_source()
        step = self.index + 1 if here else self.task_number
        steps = len(self.lesson.steps)
        self._sharing.send(self.lesson.id, step, steps, self._progress, code, help=help)

    def withdraw_help(self) -> None:
        """No help is needed any more."""
        if self._sharing is None:
            self._report(NO_CLASS)
        else:
            self._sharing.withdraw(self.lesson.id)

    # Hints and questions

    def hint(self) -> int:
        """Show one more hint, if there is one. Returns how many are shown."""
        if self.hints_shown < len(self.step.hints):
            self.hints_shown += 1
            self._keep(lambda: self._progress.show_hint(self.lesson.id))
        return self.hints_shown

    def answer(self, question: int, value: Any) -> bool:
        """Record an answer to one of this step's questions. Returns whether it is right."""
        quiz = self.step.quizzes[question]
        right = answers.is_right(quiz, value)
        text = answers.written(quiz, value)
        self.answered[self.index, question] = (text, right)
        id, step = self.lesson.id, self.index
        self._keep(lambda: self._progress.record_answer(id, step, question, text, right))
        return right

    def given(self, question: int) -> tuple[str, bool] | None:
        """The latest answer to one of this step's questions."""
        return self.answered.get((self.index, question))

    def next_question(self) -> int | None:
        """The first of this step's questions that has no answer."""
        return next((n for n in range(len(self.step.quizzes)) if self.given(n) is None), None)

    @property
    def questions_left(self) -> int:
        """How many of this step's questions have no answer."""
        return sum(self.given(number) is None for number in range(len(self.step.quizzes)))

    def _all_answered(self, index: int) -> bool:
        quizzes = self.lesson.steps[index].quizzes
        return all((index, n) in self.answered for n in range(len(quizzes)))

    @property
    def is_held(self) -> bool:
        """Whether the step's answers are guesses that its run has yet to reveal."""
        return self._is_held(self.index)

    def _is_held(self, index: int) -> bool:
        pane = self.lesson.steps[index].pane
        return pane is not None and pane.kind == "predict" and index not in self._revealed

    @property
    def must_answer_first(self) -> bool:
        """Whether the step's code waits for a guess."""
        waits = self.is_held and self.index not in self._skipped
        return waits and self.next_question() is not None

    def skip(self) -> None:
        """Let this step's code run without the guesses that are missing."""
        self._skipped.add(self.index)

    def leave_guess(self) -> bool:
        """Whether a guess waits for a run that never came; asked again, it may be left."""
        waits = self.is_held and self.index not in self._skipped
        self._skipped.add(self.index)
        return waits and self.next_question() is None

    def is_own(self, source: str) -> bool:
        """Whether this step's code has been changed by the learner."""
        return self.step.pane is not None and source != self.step.pane.source

    def proofs(self, source: str) -> tuple[str, ...]:
        """What is to be evaluated when this code has run, if it is the learner's own: by that the
        guesses are judged. The lesson's code has its answers."""
        if not self.is_held or not self.is_own(source):
            return ()
        return tuple(quiz.proof for quiz in self.step.quizzes)

    def reveal(self, probed: Mapping[int, Any]) -> list[Guess]:
        """The code has run: the guesses it is held against, once.

        probed: what the proofs gave in the learner's own code. What is kept of a guess stays as it
        was judged when it was given, by the lesson's code: the review asks about that.
        """
        if not self.is_held:
            return []
        self._revealed.add(self.index)
        if self.next_question() is None:
            self._done(self.index)  # remembered: the next session does not hold these answers
        given = [self.given(number) for number in range(len(self.step.quizzes))]
        return guesses(self.step.quizzes, given, probed)

    # Code

    def begins_with(self) -> str:
        """The code that this step begins with, "" if that cannot be told."""
        return self._tried(lambda: self._workspace.begins_with(self.lesson, self.index), "")

    @property
    def has_code(self) -> bool:
        """Whether this step shows code beside its text."""
        return self.step.pane is not None

    def code(self) -> Code:
        """The text of this step's pane, as the learner left it."""
        assert self.has_code, "only a step with a pane has code"
        return self._files.code(self.index)

    def task_source(self) -> str:
        """The learner's code of the step that is judged, with what is not saved yet."""
        index = self.task_number - 1
        unsaved = self._files.unsaved(index)
        if unsaved is not None:
            return unsaved
        return self._tried(lambda: self._workspace.load(self.lesson, index), "")

    @property
    def path(self) -> Path:
        """Where this step's code lies, or would lie."""
        return self._workspace.path(self.lesson, self.index)

    def make_file(self) -> Path | None:
        """This step's file, with all that was typed in it, for another program to edit.

        None if something could not be saved. Raises StorageError if there can be no file.
        """
        return self._files.make(self.index)

    def saved_elsewhere(self) -> bool:
        """Whether another program has saved this step's file since the last time it was so."""
        return self.has_code and self._files.saved_elsewhere(self.index)

    def edit(self, text: str) -> bool:
        """The learner changed this step's code. Returns whether it is to be saved."""
        return self._files.edit(self.index, text)

    @property
    def is_unsaved(self) -> bool:
        """Whether something of this step's code is typed and not saved yet."""
        return self._files.unsaved(self.index) is not None

    def flush(self) -> bool:
        """Save what is not saved yet. Returns whether everything is."""
        return self._files.flush()

    def changed_elsewhere(self) -> Code | None:
        """The code, if another program has changed the file and nothing typed here is at stake.

        If the file cannot be read now, the text as it was; it must not change until it can.
        """
        return self._files.changed_elsewhere(self.index) if self.has_code else None

    def reset(self) -> str | None:
        """Go back to the code that the step began with. Returns where the learner's is kept.

        None if there was nothing to keep, or if it could not be kept (then nothing changes).
        """
        if not self.flush():
            return None
        folder = self._tried(lambda: self._workspace.reset(self.lesson, self.index), None)
        if folder is not None:
            self._files.forget(self.index)
        return str(folder) if folder else None

    # Keeping

    def _keep(self, action: Callable[[], Any]) -> None:
        if self.reading:
            self._unrecorded.append(action)
        else:
            self._tried(action, None)

    def _tried(self, action: Callable[[], T], otherwise: T) -> T:
        try:
            return action()
        except StorageError as error:
            self._report(str(error))
            return otherwise
