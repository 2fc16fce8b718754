"""Every screen of the app in a state worth looking at, reached as a learner reaches it.

What runs is played by the fake runner, and nothing on a scene depends on the clock.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from textual.screen import Screen

from tensortutor.protocol.events import Output
from tensortutor.ui.app import TutorApp
from tensortutor.ui.screens.dialogs import Locked
from tensortutor.ui.screens.help import HelpPage
from tensortutor.ui.screens.progress import ProgressScreen
from tensortutor.ui.screens.reference import ReferenceScreen
from tensortutor.ui.screens.review import ReviewScreen
from tensortutor.ui.screens.tensor import TensorScreen
from tensortutor.ui.widgets.drawings import DrawingsPane
from tensortutor.ui.widgets.lens import GraphPane, ModulesPane, ProfilePane
from tensortutor.ui.widgets.tensors import TensorsPane
from tests.ui.courses import CHECKS, SOLUTION
from tests.ui.fakes import judges, plays, says
from tests.ui.test_drawings import drawn, plot
from tests.ui.test_lens import EVERYTHING, PROFILE
from tests.ui.test_lesson import INSIGHT, PRACTICE, RUN, arrive, ended, told
from tests.ui.test_progress import work_on
from tests.ui.test_reference import ATLAS, PAGE, WORDS
from tests.ui.test_review import asked, long_ago

NARROW, WIDE = (80, 24), (140, 40)
Until = Callable[..., Awaitable[None]]


@dataclass(frozen=True)
class Stage:
    """What a scene is played on. own: a folder for files of the test."""

    setting: Any
    until: Until
    own: Any


@dataclass(frozen=True)
class Scene:
    """size: columns and rows. says: words that mean something there, whatever the terminal.

    begin: makes the app. play: leads from its start to what is to be seen.
    """

    name: str
    size: tuple[int, int]
    begin: Callable[[Stage], TutorApp]
    play: Callable[[Stage, Any], Awaitable[None]]
    says: tuple[str, ...]


def at(step: int) -> Callable[[Stage], TutorApp]:
    """The lesson with all kinds of steps, at one of them."""
    return lambda stage: stage.setting.app(stage.setting.accumulation, step)


def at_home(stage: Stage) -> TutorApp:
    """The list of lessons, of somebody who has done a few."""
    work_on(stage.setting)
    return stage.setting.app()


def in_library(stage: Stage) -> TutorApp:
    """A course with a reference."""
    folder = stage.own / "course" / "lessons" / "reference"
    folder.mkdir(parents=True)
    (folder / "01_shape.md").write_text(PAGE, "utf-8")
    (folder / "02_glossary.md").write_text(WORDS, "utf-8")
    (folder.parent / "atlas.toml").write_text(ATLAS, "utf-8")
    setting = stage.setting
    setting.course = replace(setting.course, root=stage.own / "course")
    return setting.app()


def with_due(stage: Stage) -> TutorApp:
    """A question is due."""
    lesson = stage.setting.accumulation
    long_ago(
        stage.setting, "answer", lesson=lesson.id, step=asked(lesson), quiz=0, answer="x", correct=0
    )
    return stage.setting.app()


async def wait(stage: Stage, pilot: Any, *words: str) -> None:
    """Until all these words are drawn."""
    await stage.until(
        pilot, lambda: all(word in drawn(pilot.app.screen) for word in words), tries=3000
    )


async def home(stage: Stage, pilot: Any) -> None:
    await wait(stage, pilot, "A course", "full")


async def read(stage: Stage, pilot: Any) -> None:
    await arrive(pilot, stage.until)
    await wait(stage, pilot, "adds by nature", "full")


async def run(stage: Stage, pilot: Any) -> None:
    stage.setting.runner.script = plays(
        *EVERYTHING, Output("stdout", "0 tensor(2.)\n"), Output("stderr", "a warning\n")
    )
    screen = await arrive(pilot, stage.until)
    await pilot.press("f5")
    await stage.until(pilot, lambda: "The program is done." in ended(screen))


async def code(stage: Stage, pilot: Any) -> None:
    screen = await arrive(pilot, stage.until)
    await pilot.press("down", "end")
    await stage.until(pilot, lambda: screen.editor.has_focus)


async def failed(stage: Stage, pilot: Any) -> None:
    stage.setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    screen = await arrive(pilot, stage.until)
    await pilot.press("f9")
    await stage.until(pilot, lambda: "1 of 2 checks passed" in ended(screen))


async def passed(stage: Stage, pilot: Any) -> None:
    stage.setting.runner.script = judges(dict.fromkeys(CHECKS, True))
    stage.setting.workspace.save(stage.setting.accumulation, PRACTICE, SOLUTION)
    screen = await arrive(pilot, stage.until)
    screen.code.read_again()
    await pilot.press("f9")
    await stage.until(pilot, lambda: "2 of 2 checks passed" in ended(screen))
    await stage.until(pilot, lambda: screen.query_one("#checks-passed").region.area)


async def question(stage: Stage, pilot: Any) -> None:
    screen = await arrive(pilot, stage.until)
    screen.reader.questions[1].field.focus()
    await pilot.press(*"2,2", "enter")
    await stage.until(pilot, lambda: "Wrong" in screen.reader.questions[1].verdict)
    await wait(stage, pilot, "Reversed")


def pane(kind: type, *words: str) -> Callable[[Stage, Any], Awaitable[None]]:
    async def play(stage: Stage, pilot: Any) -> None:
        await run(stage, pilot)
        results = pilot.app.screen.results
        results.show(kind)
        await wait(stage, pilot, *words)
        pilot.app.screen.panes.turn_to("results")
        await stage.until(pilot, lambda: results.has_focus_within)

    return play


async def tensor(stage: Stage, pilot: Any) -> None:
    await pane(TensorsPane, "f32[2, 3]")(stage, pilot)
    table = pilot.app.screen.query_one("#tensors")
    table.focus()
    await stage.until(pilot, lambda: table.has_focus)
    await pilot.press("m")
    await stage.until(pilot, lambda: any("is marked" in word for word in told(pilot.app)))
    pilot.app.clear_notifications()
    await stage.until(pilot, lambda: "is marked" not in drawn(pilot.app.screen))
    await pilot.press("down", "enter")
    await stage.until(pilot, lambda: isinstance(pilot.app.screen, TensorScreen))
    await wait(stage, pilot, "cell 1", "both")


async def drawing(stage: Stage, pilot: Any) -> None:
    stage.setting.runner.script = plays(
        plot(4.0, 2.0, 1.0, 0.5, 0.4), plot(5.0, 3.0, 2.0, 2.5, 3.0, title="val")
    )
    screen = await arrive(pilot, stage.until)
    await pilot.press("f5")
    await stage.until(pilot, lambda: "The program is done." in ended(screen))
    screen.results.show(DrawingsPane)
    await wait(stage, pilot, "loss", "train")


async def profile(stage: Stage, pilot: Any) -> None:
    stage.setting.runner.script = plays(PROFILE)
    screen = await arrive(pilot, stage.until)
    await pilot.press("P")
    await stage.until(pilot, lambda: "The program is done." in ended(screen))
    screen.panes.turn_to("results")
    screen.results.show(ProfilePane)
    await wait(stage, pilot, "aten::mm")


def opened(kind: type[Screen], *keys: str, words: tuple[str, ...]) -> Any:
    async def play(stage: Stage, pilot: Any) -> None:
        await wait(stage, pilot, "full")
        if kind is ReviewScreen:
            await wait(stage, pilot, "1 question is due")
        await pilot.press(*keys)
        await stage.until(pilot, lambda: isinstance(pilot.app.screen, kind))
        await wait(stage, pilot, *words)

    return play


async def locked(stage: Stage, pilot: Any) -> None:
    await wait(stage, pilot, "full")
    stage.setting.runner.script = says("")
    pilot.app.open_lesson(stage.setting.course.lessons[2])
    await stage.until(pilot, lambda: isinstance(pilot.app.screen, Locked))
    await wait(stage, pilot, "locked")


SCENES = (
    Scene("home", WIDE, at_home, home, ("done", "open", "Continue", "1/1")),
    Scene("home_narrow", NARROW, at_home, home, ("done", "Continue")),
    Scene("lesson", WIDE, at(RUN), run, ("See it run", "done", "0 tensor(2.)")),
    Scene("text_narrow", NARROW, at(INSIGHT), read,
          ("Insight",)),
    Scene("code_narrow", NARROW, at(PRACTICE), code, ("accumulation.py", "def accumulate")),
    Scene("checks_failed", NARROW, at(PRACTICE), failed, ("failed", "expected", "got", "hint")),
    Scene("checks_passed", WIDE, at(PRACTICE), passed, ("2 of 2 checks passed",)),
    Scene("question", NARROW, lambda stage: stage.setting.app(stage.setting.shapes), question,
          ("Wrong", "Reversed")),
    Scene("tensors", NARROW, at(RUN), pane(TensorsPane, "f32[2, 3]"), ("row", "loss")),
    Scene("tensor", WIDE, at(RUN), tensor, ("[2]", "share 2 cells")),
    Scene("modules", NARROW, at(RUN), pane(ModulesPane, "net: Linear"), ("grad 0.5",)),
    Scene("graph", NARROW, at(RUN), pane(GraphPane, "MulBackward0"), ("accumulated",)),
    Scene("plot", WIDE, at(RUN), drawing, ("loss", "val")),
    Scene("profile", NARROW, at(RUN), profile, ("aten::add",)),
    Scene("reference", WIDE, in_library,
          opened(ReferenceScreen, "d", *"view", words=("Another shape", "1.1 Shapes")), ("view",)),
    Scene("review", NARROW, with_due, opened(ReviewScreen, "v", words=("first",)), ("Review",)),
    Scene("progress", WIDE, at_home,
          opened(ProgressScreen, "p", "end", "up", words=("passed with help: 1 hint",)),
          ("1 known well", "not begun", "begun")),
    Scene("help", NARROW, at_home, opened(HelpPage, "f1", words=("On this screen",)), ("F1",)),
    Scene("locked", NARROW, lambda stage: stage.setting.app(), locked, ("opens after",)),
)  # fmt: skip
