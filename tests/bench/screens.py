"""How long the screens take: a lesson, a program of one's own, a course of a thousand lessons.

    python -m tests.bench.screens [ROUNDS]

In pseudo-terminals, in turns. A lesson: from Enter on the first screen to the last thing drawn,
against a bare Textual app whose Enter shows the same text in a Markdown, the same code in a
TextArea and a log beside them. A program of one's own: from the start of the process to the last
thing drawn, against a lesson whose step has code. A long course: from the start of the process to
the first row, against our course.
"""

import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from tensortutor.course.catalog import find_lesson, load_course
from tensortutor.course.material import Prose
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tests.bench.first_paint import Subject, first_paint_s
from tests.bench.terminal import Terminal

ROUNDS = 9
ROOT = Path(__file__).parents[2]
LESSON = "tensors/tensor_birth"
WITH_CODE = 1
"""The number of the lesson's first step that has code."""
WANTED_SETTLED, WANTED_OWN, WANTED_LONG = 1.5, 1.2, 1.1
QUIET_S, START_S = 0.4, 1.5
"""Nothing more comes after so long: on a screen that was opened, and after PyTorch is loaded."""
THOUSAND, FIFTY, TITLE = 1_000, 50, "Tensors: values, types, shapes"

BARE = """
import sys
from pathlib import Path
from textual.app import App
from textual.containers import Horizontal, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Header, Markdown, OptionList, RichLog, TextArea

TEXT, CODE = (Path(name).read_text() for name in sys.argv[1:3])

class Lesson(Screen):
    def compose(self):
        yield Header()
        with Horizontal():
            with VerticalScroll():
                yield Markdown(TEXT)
            yield TextArea(CODE, show_line_numbers=True)
            yield RichLog()
        yield Footer()

class Bare(App):
    def compose(self):
        yield Header()
        yield OptionList("first screen", "another")
        yield Footer()

    def on_option_list_option_selected(self):
        self.push_screen(Lesson())

Bare().run()
"""


def settled_s(arguments: tuple[str, ...], home: str, first: bytes) -> float:
    """Seconds from Enter to the last thing drawn. first: what stands on the screen before."""
    with Terminal(arguments, {"TENSORTUTOR_HOME": home}) as terminal:
        terminal.read_until(first, plain=True)
        terminal.settle(START_S)
        begun = time.perf_counter()
        terminal.write("\r")
        return terminal.settle(QUIET_S) - begun


def lesson_screens(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds until the bare app and ours have settled."""
    step = find_lesson(load_course(ROOT), LESSON).steps[0]
    bare: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory(prefix="screens-") as folder:
        text, code = Path(folder, "text.md"), Path(folder, "code.py")
        prose = [block.markdown for block in step.blocks if isinstance(block, Prose)]
        text.write_text(f"## {step.title}\n\n" + "\n\n".join(prose))
        code.write_text(step.pane.source if step.pane else "")
        for number in range(rounds + 1):
            seconds = (
                settled_s(("-c", BARE, str(text), str(code)), folder, b"first screen"),
                settled_s(("-m", "tensortutor"), folder, TITLE.encode()),
            )
            if number:
                bare.append(seconds[0])
                ours.append(seconds[1])
    return bare, ours


def started_s(arguments: tuple[str, ...], home: str, shown: bytes) -> float:
    """Seconds from the start of the process to the last thing drawn. shown: part of that."""
    with Terminal(arguments, {"TENSORTUTOR_HOME": home}) as terminal:
        terminal.read_until(shown, plain=True)
        return terminal.settle(QUIET_S) - terminal.begun


def own_program_screens(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds until a step of a lesson and the same code as the learner's own file stand."""
    lesson = find_lesson(load_course(ROOT), LESSON)
    pane = lesson.steps[WITH_CODE].pane
    times: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="screens-") as folder:
        own = Path(folder, "project", "train.py")
        own.parent.mkdir()
        own.write_text(pane.source if pane else "")
        home = str(Path(folder, "home"))
        with mock.patch.dict(os.environ, {"TENSORTUTOR_HOME": home}):
            Progress.open(Paths.find()).set_place(lesson.id, WITH_CODE)
        subjects = (("-m", "tensortutor", LESSON), ("-m", "tensortutor", "open", str(own)))
        for number in range(rounds + 1):
            for arguments, seconds in zip(subjects, times, strict=True):
                taken = started_s(arguments, home, b"import torch")
                if number:
                    seconds.append(taken)
    return times


def long_course(folder: Path) -> Path:
    """A course of a thousand lessons in twenty chapters of fifty: ours, over and over."""
    files = sorted(ROOT.glob("lessons/[0-9]*/*.md"))
    chapters = []
    for chapter in range(THOUSAND // FIFTY):
        name = f"c{chapter + 1}"
        title = TITLE if chapter == 0 else f"Chapter {chapter + 1}"
        chapters.append(f'[[chapters]]\nid = "{name}"\ntitle = "{title}"\nblurb = "Many."\n')
        place = Path(f"{chapter + 1:02}_{name}")
        (folder / "lessons" / place).mkdir(parents=True)
        (folder / "checks" / place).mkdir(parents=True)
        for lesson in range(FIFTY):
            file = files[(FIFTY * chapter + lesson) % len(files)]
            stem = f"{lesson + 1:02}_l{lesson + 1}"
            judge = ROOT / "checks" / file.parent.name / f"{file.stem}.py"
            shutil.copy(judge, folder / "checks" / place / f"{stem}.py")
            # What a lesson of ours requires is not here by that name.
            text = re.sub(
                r"^requires = \[[^]]*\]", "requires = []", file.read_text(), count=1, flags=re.M
            )
            (folder / "lessons" / place / f"{stem}.md").write_text(text)
    (folder / "lessons" / "course.toml").write_text('title = "Long"\n' + "".join(chapters))
    return folder


def courses(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds until the first row of our course and of one of a thousand lessons."""
    times: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="screens-") as place:
        folder = long_course(Path(place, "course"))
        subjects = (
            Subject("our course", ("-m", "tensortutor"), TITLE.encode()),
            Subject("1,000", ("-m", "tensortutor", "--course", str(folder)), TITLE.encode()),
        )
        for number in range(rounds + 1):
            for subject, seconds in zip(subjects, times, strict=True):
                # A home each: it remembers what the lessons of one course say.
                taken = first_paint_s(subject, str(Path(place, subject.name)))
                if number:
                    seconds.append(taken)
    return times


def report(what: str, names: tuple[str, str], pair: tuple[list[float], ...], most: float) -> str:
    """The medians of both and their ratio."""
    base, ours = (statistics.median(seconds) for seconds in pair)
    ratio = ours / base
    return (
        f"{what:<16}{names[0]} {1000 * base:.0f} ms, {names[1]} {1000 * ours:.0f} ms: "
        f"ratio {ratio:.2f}, {'within' if ratio <= most else 'over'} the wanted {most}"
    )


def main(rounds: int) -> None:
    """Measure and print."""
    pair = lesson_screens(rounds)
    print(report("lesson settled", ("bare app", "ours"), pair, WANTED_SETTLED))
    pair = own_program_screens(rounds)
    print(report("own program", ("lesson", "train.py"), pair, WANTED_OWN))
    pair = courses(rounds)
    print(report("long course", ("our course", "1,000 lessons"), pair, WANTED_LONG))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
