"""Sharing where a learner is with a class, if they have chosen to: what is written, when, and how.

A class is a folder in which each learner has one file, named by their user id. Learners choose it
in `settings.toml` (`[class] folder`) or by `TENSORTUTOR_CLASS`, and can stop at any time. The file
is written after each check and in each minute of work. Code is in it only if they send it.

Both faces call this. Nothing here waits for the folder, which may be on a server that is gone:
a thread writes, and what goes wrong becomes one sentence.
"""

import contextlib
import os
import queue
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

from tensortutor.course.read_file import read_file
from tensortutor.learner.class_report import (
    LARGEST,
    LONGEST_NAME,
    MOST,
    MOST_CHECKS,
    BadReport,
    Report,
    Sent,
    encode,
    read_report,
)
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.settings import LearnerSettings
from tensortutor.learner.workspace import write_atomic

MODE = 0o640
"""Of a file: its group, which a class's folder passes on, may read it."""
EACH_S = 60.0
"""How often a learner who works is reported."""
IDLE_S = 300.0
"""Time between two reports counts as work up to this."""
SLOW_S = 5.0
"""A folder that has not answered for so long is said to be gone."""
MOST_WAITING = 16
"""Reports that wait for a folder that does not answer; further ones are left out."""


def class_folder(settings: LearnerSettings) -> Path | None:
    """The folder of the learner's class: `TENSORTUTOR_CLASS`, else the settings', else None."""
    chosen = os.environ.get("TENSORTUTOR_CLASS") or settings.class_folder
    return Path(os.path.expanduser(chosen)).absolute() if chosen else None


def sharing_for(settings: LearnerSettings, paths: Paths) -> "ClassSharing | None":
    """What shares with the learner's class; None if they have none."""
    folder = class_folder(settings)
    return None if folder is None else ClassSharing(folder, paths.class_stopped)


class ClassSharing:
    """One learner's file in the folder of a class.

    No method raises or waits, but `close`. `take_notice` gives the sentences for the learner.
    written, failed: how often the file was written, or could not be.
    """

    def __init__(
        self, folder: Path, stopped: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """stopped: a file with the folders, one a line, that the learner has stopped sharing with.

        clock: seconds since 1970.
        """
        self.folder = folder
        self._stopped = stopped
        self._clock = clock
        self._uid = os.geteuid()
        self._is_on = not self._has_stopped()
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._notices: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._said: set[str] = set()
        self.written = 0
        self.failed = 0
        self._thread: Thread | None = None
        self._idle = Event()
        self._idle.set()
        self._busy_since = time.monotonic()

    @property
    def is_on(self) -> bool:
        """Whether the learner shares, as far as this process knows without looking again."""
        return self._is_on

    @property
    def path(self) -> Path:
        """The learner's file."""
        return self.folder / f"{self._uid}.json"

    def share(self, lesson: str, step: int, steps: int, progress: Progress) -> None:
        """Report where the learner is: a lesson's id, a step from 1, of so many."""
        if self._is_on and self._tasks.qsize() < MOST_WAITING:
            self._do(lambda: self._share(lesson, step, steps, progress))

    def send(
        self, lesson: str, step: int, steps: int, progress: Progress, code: str, *, help: bool
    ) -> None:
        """Send a step's code to whoever teaches. help: to ask for help; else it is handed in."""
        if not self._is_on:
            self.failed += 1
            self._notices.put(f"Nothing was sent: you do not share with the class in {self.folder}")
            return
        sent = Sent(lesson, step, self._clock(), help, code)
        self._do(lambda: self._share(lesson, step, steps, progress, sent))

    def withdraw(self, lesson: str) -> None:
        """The learner needs no help with a lesson any more: its code is taken out of their file."""
        self._do(lambda: self._withdraw(lesson))

    def stop(self) -> None:
        """Share nothing from now on, in other sessions too, and remove the learner's file."""
        self._is_on = False
        self._keep(stopped=True)
        self._notices.put(f"Nothing is shared any more with the class in {self.folder}")
        self._do(self._remove)

    def start(self) -> None:
        """Share again."""
        self._is_on = True
        self._keep(stopped=False)
        self._notices.put(f"From now on you share with the class in {self.folder}: {WHAT}")

    def take_notice(self) -> str:
        """A sentence for the learner that was not told yet, or ""."""
        if not self._idle.is_set() and time.monotonic() - self._busy_since > SLOW_S:
            self._say_once("it does not answer")
        try:
            return self._notices.get_nowait()
        except queue.Empty:
            return ""

    def close(self, wait_s: float) -> bool:
        """Write what is to be written still, for so long at most. Returns whether all is written.

        A thread that waits for a folder without an answer is left to end with the process.
        """
        if self._thread is None:
            return True
        self._tasks.put(None)
        self._thread.join(wait_s)
        if self._thread.is_alive():
            self._say_once("it does not answer")
        return not self._thread.is_alive()

    # In the thread

    def _do(self, task: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="class sharing", daemon=True)
            self._thread.start()
        self._tasks.put(task)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._busy_since = time.monotonic()
            self._idle.clear()
            try:
                task()
            except OSError as error:
                self.failed += 1
                self._say_once(reason(error))
            except StorageError:
                pass  # the learner's own record; told by whoever works with it
            finally:
                self._idle.set()

    def _say_once(self, why: str) -> None:
        """One sentence, then quiet, however often it happens again."""
        if why not in self._said:
            self._said.add(why)
            self._notices.put(
                f"The class does not see where you are: {self.folder}: {why}. Your own work goes "
                "on as ever."
            )

    def _share(
        self, lesson: str, step: int, steps: int, progress: Progress, sent: Sent | None = None
    ) -> None:
        """Write the report. sent: code to go with it; whether it went is told."""
        if not self._shares():
            return
        try:
            report = self._report(lesson, step, steps, progress, self._own())
            if sent is not None:
                others = [
                    one for one in report.sent if (one.lesson, one.help) != (lesson, sent.help)
                ]
                report = replace(report, sent=(*others, sent))
            fitting = _fitting(report)
            if sent is not None and sent not in fitting.sent:
                self.failed += 1
                most = f"{LARGEST >> 10} KiB"
                self._notices.put(f"Your code was not sent: a file there has {most} at most.")
            self._write(fitting)
        except (OSError, StorageError) as error:
            if sent is None:
                raise
            self.failed += 1
            why = reason(error) if isinstance(error, OSError) else str(error).rstrip(".")
            self._notices.put(f"Your code was not sent to {self.folder}: {why}.")
            return
        for one in report.sent:
            if one is not sent and one not in fitting.sent:
                self._notices.put(f"To make room, your code of {one.lesson} was taken out there.")
        if sent in fitting.sent and sent is not None:
            self._notices.put(
                f"Your code was {'sent, with a call for help' if sent.help else 'handed in'}: "
                f"whoever teaches the class in {self.folder} can read it."
            )

    def _report(
        self, lesson: str, step: int, steps: int, progress: Progress, before: Report | None
    ) -> Report:
        good, total, names = progress.last_attempt(lesson) or (0, 0, ())
        failing = tuple(name[:LONGEST_NAME] for name in names[:MOST_CHECKS])
        passed = lesson in progress.passed()
        report = Report(
            lesson, step, steps, len(progress.steps_done(lesson)), self._clock(), good, total,
            failing, progress.attempts(lesson), passed,
        )  # fmt: skip
        if before is None:
            return report
        sent = before.sent
        if passed and not (before.lesson == lesson and before.lesson_passed):
            sent = _without_call(sent, lesson)  # what was asked about has just been solved
        return replace(report, sent=sent, stuck_s=_stuck(report, before))

    def _withdraw(self, lesson: str) -> None:
        before = self._own() if self._shares() else None
        kept = _without_call(before.sent, lesson) if before is not None else ()
        if before is None or kept == before.sent:
            self._notices.put("You have not asked for help with this lesson.")
            return
        self._write(replace(before, sent=kept))
        self._notices.put("Your call for help is taken back, and your code with it.")

    def _own(self) -> Report | None:
        """What the learner's file says now; None if there is none that can be read.

        Raises PermissionError if somebody else has put a file there.
        """
        try:
            if os.lstat(self.path).st_uid != self._uid:
                raise PermissionError(1, f"somebody else's file has your name ({self.path.name})")
            return read_report(str(self.path))[1]
        except (FileNotFoundError, BadReport):
            return None

    def _write(self, report: Report) -> None:
        """Replace the file in one move: who reads it sees the old one or the new one, whole."""
        # No fsync: after a crash of the machine the next minute brings another one.
        temporary = self.folder / f".{self.path.name}.{os.urandom(4).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, MODE)
        try:
            with open(descriptor, "wb") as file:
                with contextlib.suppress(OSError):  # some network file systems have no modes
                    os.fchmod(descriptor, MODE)  # whatever the umask says
                file.write(encode(report))
            os.rename(temporary, self.path)
            self.written += 1
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _remove(self) -> None:
        """Remove the learner's own file, whatever it is now."""
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(self.path)
            if status.st_uid == self._uid and not stat.S_ISDIR(status.st_mode):
                os.unlink(self.path)

    def _shares(self) -> bool:
        """Whether the learner shares; another session may have stopped it."""
        self._is_on = self._is_on and not self._has_stopped()
        return self._is_on

    def _has_stopped(self) -> bool:
        """Whether it is kept that the learner has stopped. What cannot be read may say so."""
        try:
            return str(self.folder) in self._stopped_folders()
        except OSError:
            return True

    def _keep(self, *, stopped: bool) -> None:
        """Keep it for other sessions. If it cannot be kept, it holds for this one."""
        if self._stopped is None:
            return
        with contextlib.suppress(OSError, StorageError):
            others = [one for one in self._stopped_folders() if one != str(self.folder)]
            folders = [*others, str(self.folder)] if stopped else others
            write_atomic(self._stopped, "".join(f"{one}\n" for one in folders))

    def _stopped_folders(self) -> list[str]:
        """The folders that the learner has stopped sharing with. Raises OSError."""
        if self._stopped is None:
            return []
        try:
            return read_file(self._stopped).decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []


WHAT = (
    "the lesson and step where you are, the checks that fail, how often you have checked, and when "
    "you were last here. Your code only when you send it."
)
"""What is shared, for a sentence."""


def _without_call(sent: tuple[Sent, ...], lesson: str) -> tuple[Sent, ...]:
    """What was sent, without the call for help with a lesson."""
    return tuple(one for one in sent if not (one.help and one.lesson == lesson))


def _stuck(report: Report, before: Report) -> float:
    """Seconds of work since something got better."""
    better = (
        report.lesson_passed
        or report.lesson != before.lesson
        or report.steps_done > before.steps_done
        or report.checks_passed > before.checks_passed
    )
    worked = min(max(report.seen - before.seen, 0.0), IDLE_S)
    return 0.0 if better else min(before.stuck_s + worked, MOST)


def _fitting(report: Report) -> Report:
    """A report that is not too large: code that was sent long ago goes first."""
    sent = sorted(report.sent, key=lambda one: one.at)
    sent = [one for one in sent if len(encode(replace(report, sent=(one,)))) <= LARGEST]
    while sent and len(encode(replace(report, sent=tuple(sent)))) > LARGEST:
        del sent[0]
    return replace(report, sent=tuple(sent))
