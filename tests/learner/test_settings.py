"""The settings file: what it changes, and what is said about what it cannot mean."""

import pytest

from tensortutor.learner.settings import read_settings
from tensortutor.protocol.jobs import Limits


def read(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(path)


def test_no_file_means_the_defaults(tmp_path):
    settings = read_settings(tmp_path / "none.toml")
    assert settings.limits == Limits()
    assert settings.notices == ()


def test_limits_in_the_units_of_the_file(tmp_path):
    settings = read(tmp_path, "[limits]\nwall_s = 120\nmemory_gib = 1.5\nprocesses = 8\n")
    assert settings.limits.wall_s == 120.0
    assert settings.limits.memory_bytes == 3 << 29
    assert settings.limits.processes == 8
    assert settings.limits.output_bytes == Limits().output_bytes
    assert settings.notices == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\nwalls = 3\n", "no limit 'walls'; there are: wall_s"),
        ("[limits]\nwall_s = -3\n", "limits.wall_s is not a number above 0: -3"),
        ("[limits]\nwall_s = true\n", "not a number above 0: True"),
        ("[limits]\nwall_s = nan\n", "not a number above 0: nan"),
        ("limits = 3\n", "limits is not a table"),
        ("[colour]\na = 1\n", "no setting 'colour'"),
        ("[look]\ntheme = 3\n", "look.theme is not a theme's name in quotes: 3"),
        ("[look]\ncolour = 'red'\n", "no look.colour; there are: theme, ascii"),
        ("[look]\nascii = 1\n", "look.ascii is neither true nor false: 1"),
        ("[keys]\n'lesson.run' = 5\n", "keys.lesson.run is not a key in quotes: 5"),
        ("[lens]\non = 'yes'\n", "lens.on is neither true nor false"),
        ("[limits\n", "is not used"),
        (b"\xff", "is not used"),
    ],
)
def test_what_makes_no_sense_is_said_and_changes_nothing(tmp_path, text, words):
    settings = read(tmp_path, text)
    assert settings.limits == Limits()
    (notice,) = settings.notices
    assert words in notice
    assert "settings.toml" in notice


def test_look_keys_and_switches(tmp_path):
    settings = read(
        tmp_path,
        '[look]\ntheme = "nord"\nascii = true\n'
        '[keys]\n"lesson.run" = "f5"\nlesson.check = "c"\n'
        "[lens]\non = false\n[editor]\nclose_brackets = false\ncomplete = false\n",
    )
    assert settings.notices == ()
    assert (settings.theme, settings.ascii) == ("nord", True)
    assert settings.keys == (("lesson.run", "f5"), ("lesson.check", "c"))
    assert not any((settings.lens, settings.close_brackets, settings.complete))
