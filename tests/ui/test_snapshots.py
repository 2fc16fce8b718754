"""Pictures of the screens. `pytest tests/ui/test_snapshots.py --snapshot-update` takes them anew.

They are as good as the libraries that draw them: with another version of one of these a picture may
differ in what is not ours, so it is compared with the versions that took it.
"""

import json
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest
import textual.app
import textual.pilot
from textual._wait import wait_for_idle

from tensortutor.ui.terminal import symbols
from tests.ui.scenes import SCENES, Scene, Stage

DRAWN_BY = ("textual", "rich", "pygments", "markdown-it-py")
TAKEN_WITH = Path(__file__).parent / "__snapshots__" / "taken_with.json"
PICTURES = tuple(
    scene for scene in SCENES if scene.name not in ("modules", "profile", "locked", "text_narrow")
)


@pytest.fixture(autouse=True)
def waiting_in_full_steps(monkeypatch):
    """A picture is taken once: what is drawn late must be in it."""
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", wait_for_idle)


@pytest.fixture(autouse=True)
def same_libraries(request):
    """Says which picture cannot be compared here, and why."""
    here = {name: version(name) for name in DRAWN_BY}
    if request.config.getoption("--snapshot-update"):
        TAKEN_WITH.parent.mkdir(exist_ok=True)
        TAKEN_WITH.write_text(json.dumps(here, indent=1) + "\n", "utf-8")
        return
    then = json.loads(TAKEN_WITH.read_text("utf-8"))
    other = [
        f"{name} {then[name]} (here {here[name]})" for name in then if then[name] != here[name]
    ]
    if other:
        pytest.skip(
            f"the pictures were taken with {', '.join(other)}; --snapshot-update renews them"
        )


@pytest.mark.parametrize("scene", PICTURES, ids=[scene.name for scene in PICTURES])
def test_screen(scene: Scene, setting, until, tmp_path, monkeypatch, snap_compare):
    monkeypatch.setattr(symbols, "current", lambda: symbols.UNICODE)
    stage = Stage(setting, partial(until, tries=3000), tmp_path)

    async def play(pilot) -> None:
        await scene.play(stage, pilot)
        # Asked for now and then: a quick machine is done before the first time.
        await stage.until(pilot, lambda: pilot.app.device_word)
        await pilot.pause()

    assert snap_compare(scene.begin(stage), terminal_size=scene.size, run_before=play)
