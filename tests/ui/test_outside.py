"""A course and a program that mean harm: every screen and pane shows them, none obeys them."""

import ast
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from tensortutor.learner.own_files import own_program
from tensortutor.learner.review import due
from tensortutor.plaintext import ACTIVE
from tensortutor.protocol.drawings import LONGEST_WORDS, Plot, Series
from tensortutor.protocol.events import CheckStarted, Notice, Output
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.own_program import OwnProgramScreen
from tensortutor.ui.screens.review import ReviewScreen
from tensortutor.ui.screens.solution import SolutionPage
from tensortutor.ui.screens.tensor import TensorScreen
from tensortutor.ui.widgets.tensors import TensorsPane
from tests.course.tiny import TINY
from tests.ui.fakes import FAILURE, plays
from tests.ui.test_drawings import drawn
from tests.ui.test_lens import EVERYTHING, PROFILE
from tests.ui.test_lesson import PRACTICE, PREDICTION, RUN, arrive, ended
from tests.ui.test_own_program import app_of
from tests.ui.test_review import long_ago
from tests.ui.test_teach import classroom_app

ROOT = Path(__file__).parents[2]
EVIL = (
    "[/] a[/b] [@click=app.quit]c[/] [link='x']\x1b]0;owned\x07\x1b]52;c;aGk=\x1b\\\x1b[2J\x9b2J"
    "\u202ed\u200b\u061c\ufeff\U000e0067\udc80 \u05d0\u05d1 e\u0301 "
)
LONG = EVIL + "y" * 300_000
SHORT = EVIL[:LONGEST_WORDS]
KEPT = {
    "id", "kind", "check", "device", "requires", "scope", "engine", "stream", "outcome", "style",
    "path", "answer", "dtype", "type", "family", "state", "role", "code", "op", "judge",
}  # fmt: skip
"""Fields whose words mean something to the program itself."""


def evil(value, name=""):
    """The same data with harm in all its words."""
    if isinstance(value, str):
        return value if name in KEPT or not value else f"{value} {EVIL}"
    if isinstance(value, (tuple, list)):
        return type(value)(evil(item, name) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        new = {
            field.name: evil(getattr(value, field.name), field.name)
            for field in fields(value)
            if field.init and field.name not in KEPT
        }
        return replace(value, **new)
    return value


def clean(screen) -> str:
    """What a screen draws, in which nothing acts on a terminal."""
    for strip in screen._compositor.render_strips():
        for segment in strip:
            assert segment.control or not ACTIVE.search(segment.text), segment
            action = (segment.style.meta if segment.style else {}).get("@click", "")
            assert "quit" not in str(action)
            segment.text.encode("utf-8")
    return drawn(screen)


@pytest.fixture
def hostile(setting, tmp_path):
    """A course whose every text means harm."""
    folder = tmp_path / "course" / "lessons"
    folder.mkdir(parents=True)
    course = setting.course
    chapters = tuple(
        replace(
            chapter,
            title=f"{chapter.title} {LONG}",
            blurb=LONG,
            lessons=tuple(
                replace(
                    lesson,
                    title=f"{lesson.title} {EVIL}",
                    goal=LONG,
                    steps=evil(lesson.steps),
                )
                for lesson in chapter.lessons
            ),
        )
        for chapter in course.chapters
    )
    setting.course = replace(
        course, title=f"Course {LONG}", chapters=chapters, root=tmp_path / "course"
    )
    return setting


async def test_every_screen_shows_a_hostile_course_and_program(hostile, until):
    verdict = evil(replace(FAILURE, check="name"))
    hostile.runner.script = plays(
        *(evil(event) for event in EVERYTHING), evil(PROFILE),
        Output("stdout", LONG + "\n"), Output("stderr", "\x1b[" + "1;" * 100_000 + "\n"),
        Notice(LONG), CheckStarted("name"), replace(verdict, message=LONG),
        Plot(SHORT, (Series(SHORT, (0.0, 1.0), (0.0, 1.0)),)),
    )  # fmt: skip
    app = hostile.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await until(pilot, lambda: "Course [/] a[/b] [@click=app.quit]c" in clean(app.screen))
        for _ in range(5):
            await pilot.press("down")
            clean(app.screen)
        for open_screen, close in (
            (app.action_progress, "escape"), (app.action_reference, "escape"),
            (app.action_search, "escape"), (app.action_help, "escape"),
            (app.action_command_palette, "escape"),
        ):  # fmt: skip
            before = app.screen
            open_screen()
            await until(pilot, lambda before=before: app.screen is not before)
            await pilot.pause()
            for key in ("s", "h", "a", "down", "down"):
                await pilot.press(key)
            clean(app.screen)
            while app.screen is not before:
                await pilot.press(close)
                await pilot.pause()
        for id in hostile.accumulation.requires:
            hostile.progress.mark_passed(id)
        hostile.progress.set_place(hostile.accumulation.id, RUN)
        app.open_lesson(hostile.accumulation)
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "done" in ended(screen), tries=2000)
        for pane in screen.results.panes:
            screen.results.action_show(pane.id)
            await pilot.pause()
            assert "[@click" in clean(screen), pane.id
        for place in range(len(screen.lesson.steps)):
            await screen.go(place).wait()
            await pilot.pause()
            clean(screen)
        app.tell(LONG)
        await pilot.pause()
        assert "[/] a[/b] [@click=app.quit]c" in clean(screen)
    assert not app.return_code


def test_no_byte_of_a_hostile_course_reaches_the_terminal_raw(own_home, tmp_path):
    course = tmp_path / "course"
    shutil.copytree(TINY, course)
    hard = r"[/] [@click=app.quit] \u001b]0;owned\u0007\u001b]52;c;aGk=\u0007\u202e\u200b"
    raw = "\x1b]0;owned\x07\x1b]52;c;aGk=\x07\u202e\u200b[@click=app.quit]prose"
    for path in (course / "lessons").rglob("*.md"):
        text = path.read_text("utf-8").replace('\ntitle = "', f'\ntitle = "{hard}')
        heads = re.compile("^(## .*)$", re.MULTILINE)
        path.write_text(heads.sub(lambda head: f"{head[0]}\n\n{raw}", text), "utf-8")
    host, guest = pty.openpty()
    fcntl.ioctl(guest, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "tensortutor", "--course", str(course)],
        cwd=ROOT, stdin=guest, stdout=guest, stderr=guest, start_new_session=True,
        env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(guest)
    seen = b""

    def read_until(*words: bytes) -> None:
        nonlocal seen
        begin = len(seen)
        try:
            while not all(word in seen[begin:] for word in words):
                assert select.select([host], [], [], 120)[0], seen[-2000:]
                seen += os.read(host, 65536)
        except OSError:
            assert not words or process.wait(60) == 0, seen[-2000:]

    try:
        read_until(b"[@click=app.quit]")
        os.write(host, b"\r")
        read_until(b"prose")
        os.write(host, b"\x11")
        read_until(b"\x1b[?1049l")
        read_until(b"nothing more comes")
    finally:
        process.kill()
        process.wait(60)
        os.close(host)
    for sign in (b"\x1b]0;", b"\x1b]52;", "\u202e".encode(), "\u200b".encode()):
        assert sign not in seen
    assert b"owned" not in seen or b"^[]0;owned" in seen


def test_widgets_are_given_no_string_that_they_would_read_as_markup():
    wrong = []
    for path in (ROOT / "tensortutor" / "ui").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assign) and path.name != "outside.py":
                wrong += [
                    f"{path.name}:{node.lineno} {target.attr}"
                    for target in node.targets
                    if isinstance(target, ast.Attribute)
                    and target.attr in ("border_title", "border_subtitle", "tooltip")
                ]
            if isinstance(node, ast.Call) and path.name != "outside.py":
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                plain = any(
                    word.arg == "markup" and ast.literal_eval(word.value) is False
                    for word in node.keywords
                )
                if name == "notify" and not plain and not isinstance(node.args[0], ast.Constant):
                    wrong.append(f"{path.name}:{node.lineno} notify")
                built = bool(node.args) and isinstance(node.args[0], ast.JoinedStr)
                if name in ("Static", "Label", "Option", "Button") and built and not plain:
                    wrong.append(f"{path.name}:{node.lineno} {name}")
                if name in ("add_columns",) and isinstance(node.func, ast.Attribute):
                    wrong.append(f"{path.name}:{node.lineno} {name}")
    assert wrong == []


async def test_smaller_screens_show_a_hostile_course_and_program(hostile, until):
    lesson = hostile.accumulation
    long_ago(hostile, "answer", lesson=lesson.id, step=PREDICTION, quiz=0, answer="x", correct=0)
    hostile.progress.mark_passed(lesson.id)
    hostile.runner.script = plays(*(evil(event) for event in EVERYTHING))
    app = hostile.app(lesson, RUN)
    async with app.run_test(size=(120, 40)) as pilot:

        async def shown(kind) -> None:
            await until(pilot, lambda: isinstance(app.screen, kind))
            await pilot.pause()
            assert "[/] a[/b] [@click=app.quit]c" in clean(app.screen), kind

        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "done" in ended(screen), tries=2000)
        screen.results.show(TensorsPane)
        screen.query_one("#tensors").focus()
        await pilot.press("enter")
        await shown(TensorScreen)
        await pilot.press("escape")
        await screen.go(PRACTICE).wait()
        await pilot.press("escape", "s")
        await shown(SolutionPage)
        await pilot.press("escape")
        app.push_screen(Confirm(LONG, LONG, EVIL))
        await shown(Confirm)
        await pilot.press("escape")
        app.push_screen(ReviewScreen(due(app.course, app.progress)))
        await shown(ReviewScreen)
        await pilot.press("escape")
    assert not app.return_code


async def test_teaching_shows_a_hostile_course(hostile, until):
    app = classroom_app(hostile, hostile.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        for _ in range(6):
            await pilot.press("space")
            clean(screen)
        assert "[/] a[/b] [@click=app.quit]c" in clean(screen)


async def test_a_folder_with_hostile_names_can_be_opened(hostile, until, tmp_path):
    name = "[b]a\x1b]52;c;aGk=\x07\u202e[@click=app.quit]"
    folder = tmp_path / f"{name}x"
    folder.mkdir()
    for file in (f"{name}.py", "[a.py", "b\x1b[2J.py"):
        (folder / file).write_text("print(1)\n")
    app = app_of(hostile, own_program(folder / f"{name}.py", (EVIL,), (), ()))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, OwnProgramScreen))
        await until(pilot, lambda: "[@click=app.quit]" in clean(app.screen))
    assert not app.return_code
