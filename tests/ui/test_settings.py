"""Keys, theme and signs as the learner's settings file wants them."""

import pytest

from tensortutor.learner.settings import LearnerSettings
from tensortutor.learner.ui_state import UiState
from tensortutor.ui import key_bindings
from tensortutor.ui.app import TutorApp
from tensortutor.ui.keymap import SCOPES, clashes, is_key, keymap
from tensortutor.ui.widgets.keybar import KeyBar


def app_with(setting, lesson=None, ui_state=None, **settings):
    return TutorApp(
        setting.course, setting.progress, setting.workspace, setting.runner, lesson=lesson,
        settings=LearnerSettings(**settings), ui_state=ui_state,
    )  # fmt: skip


async def test_a_key_of_ones_own_runs_and_is_shown(setting, until):
    setting.progress.set_place(setting.shapes.id, 1)
    app = app_with(setting, setting.shapes, keys=(("lesson.run", "f20"),))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query("#editor"))
        await pilot.press("f5")
        await pilot.press("f20")
        await until(pilot, lambda: setting.runner.jobs)
        assert len(setting.runner.jobs) == 1, "F5 has been given away"
        assert "F20 Run" in str(app.screen.query_one(KeyBar).render())


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (("lesson.rnu", "f5"), "there is no 'lesson.rnu'; the nearest is 'lesson.run'"),
        (("lesson.run", "fx"), "'fx' for lesson.run is no key"),
        (("lesson.run", ""), "'' for lesson.run is no key"),
        (("editor.newline", "f5"), "editor.newline stays where it is"),
        (("lesson.run", "f9"), "f9 is for lesson.run and for lesson.check"),
        (("lesson.run", "f1"), "f1 is for lesson.run and for app.help"),
    ],
)
def test_what_cannot_be_is_said(wanted, sentence):
    _, notices = keymap([wanted])
    assert sentence in " ".join(notices)


def test_our_own_keys_do_not_clash():
    chosen = {binding.id: binding.key for scope in SCOPES.values() for binding in scope}
    assert clashes(chosen) == []


def test_every_key_of_ours_is_one_that_could_be_written():
    for scope in SCOPES.values():
        for binding in scope:
            for key in binding.key.split(","):
                assert is_key(key), key


def test_every_binding_has_a_name_of_its_own():
    names = [binding.id for scope in SCOPES.values() for binding in scope]
    assert len(names) == len(set(names))
    assert key_bindings.APP in SCOPES.values()


async def test_the_theme_that_was_chosen_lasts(setting, tmp_path):
    path = tmp_path / "remembered.json"
    app = app_with(setting, ui_state=UiState(path))
    async with app.run_test():
        app.theme = "nord"
    again = app_with(setting, ui_state=UiState(path))
    async with again.run_test():
        assert again.theme == "nord"


async def test_the_settings_file_has_the_last_word_on_the_theme(setting, tmp_path):
    ui_state = UiState(tmp_path / "remembered.json")
    ui_state.put("theme", "nord")
    app = app_with(setting, ui_state=ui_state, theme="dracula")
    async with app.run_test():
        assert app.theme == "dracula"
    assert ui_state.get("theme", "") == "nord"


async def test_an_unknown_theme_is_said_and_the_usual_one_taken(setting):
    app = app_with(setting, theme="mud")
    async with app.run_test():
        assert app.theme == "tensortutor"
        assert any("no theme 'mud'" in note.message for note in app._notifications)


def test_what_is_remembered_survives_a_broken_file(tmp_path):
    path = tmp_path / "remembered.json"
    path.write_text("{")
    ui_state = UiState(path)
    assert ui_state.get("theme", "usual") == "usual"
    ui_state.put("theme", "nord")
    assert UiState(path).get("theme", "usual") == "nord"
    assert UiState(path).get("theme", 3) == 3, "of another type"
