"""Every screen in a terminal with ASCII alone and without colours: nothing is lost."""

from functools import partial

import pytest
from rich.console import Console

from tensortutor.ui.terminal import color_depth, symbols
from tests.ui.scenes import SCENES, Scene, Stage
from tests.ui.test_drawings import drawn

PAIRS = (
    ("passed", "failed", "stopped", "running", "pending"),  # a check, a run
    ("done", "here", "ahead"),  # the rail
    ("passed", "ahead", "locked"),  # a lesson on the list
    ("opened", "closed"),
    ("full", "empty"),
)
"""States that stand beside each other."""


@pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])
async def test_every_screen_in_ascii_and_without_colour(
    scene: Scene, setting, until, tmp_path, monkeypatch
):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(symbols, "current", lambda: symbols.ASCII)
    stage = Stage(setting, partial(until, tries=3000), tmp_path)
    app = scene.begin(stage)
    async with app.run_test(size=scene.size) as pilot:
        await scene.play(stage, pilot)
        screen = app.screen
        text = drawn(screen)
        assert {sign for sign in text if not sign.isascii()} == set()
        for words in scene.says:
            assert words in text, words
        console = Console(force_terminal=True, color_system="truecolor", no_color=False)
        for strip in screen._compositor.render_strips():
            codes = "".join(strip.render(console).split("\x1b["))
            assert not ({"38;", "48;"} & {codes[i : i + 3] for i in range(len(codes))})
            for segment in strip:
                style = segment.style
                if style is not None:
                    assert style.color is None or style.color.is_default
                    assert style.bgcolor is None or style.bgcolor.is_default
        marked = [
            segment.text
            for strip in screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and (segment.style.reverse or segment.style.bold)
        ]
        assert "".join(marked).strip(), "something stands out"


@pytest.mark.parametrize("states", PAIRS, ids=["-".join(states) for states in PAIRS])
@pytest.mark.parametrize("signs", [symbols.ASCII, symbols.UNICODE], ids=["ascii", "unicode"])
def test_states_differ_by_their_signs_alone(signs, states):
    assert len({getattr(signs, state) for state in states}) == len(states)


@pytest.mark.parametrize("name", ["home_narrow", "lesson", "tensors"])
async def test_with_sixteen_colours_all_can_be_read(name, setting, until, tmp_path, monkeypatch):
    scene = next(scene for scene in SCENES if scene.name == name)
    monkeypatch.setenv("TERM", "linux")
    monkeypatch.delenv("COLORTERM")
    stage = Stage(setting, partial(until, tries=3000), tmp_path)
    app = scene.begin(stage)
    assert [one._change for one in app._adapting] == [color_depth.few]
    async with app.run_test(size=scene.size) as pilot:
        await scene.play(stage, pilot)
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                if segment.text.strip(" ▁▂▃▄▅▆▇█") and segment.style is not None:
                    fore, back = segment.style.color, segment.style.bgcolor
                    assert fore is not None
                    assert back is not None
                    assert fore.number != back.number, segment
