"""The settings file: what it changes, and what is said about what it cannot mean."""

import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.limits import LIMITS
from tensortutor.learner.settings import read_settings
from tensortutor.protocol.jobs import Limits
from tests.course.odd_values import DEEP, ODD, values


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
        ("[limits]\nwall_s = -3\n", "limits.wall_s must be a number from 0.1 to 86400, not -3"),
        ("[limits]\nwall_s = true\n", "must be a number from 0.1 to 86400, not true"),
        ("[limits]\nwall_s = nan\n", "must be a number from 0.1 to 86400, not nan"),
        ("limits = 3\n", "limits is not a table"),
        ("[colour]\na = 1\n", "no setting 'colour'"),
        ("[look]\ntheme = 3\n", "look.theme is not a theme's name in quotes: 3"),
        ("[look]\ncolour = 'red'\n", "no look.colour; there are: theme, ascii"),
        ("[look]\nascii = 1\n", "look.ascii is neither true nor false: 1"),
        ("[keys]\n'lesson.run' = 5\n", "keys.lesson.run is not a key in quotes: 5"),
        ("[lens]\non = 'yes'\n", "lens.on is neither true nor false"),
        ("[class]\nfolder = 'torch24'\n", "class.folder is not a whole path in quotes: 'torch24'"),
        ("[review]\nnew_per_day = 2.5\n", "must be a whole number from 0 to 1000, not 2.5"),
        ("[review]\nnew_per_day = true\n", "must be a whole number from 0 to 1000, not true"),
        ("[review]\nnew = 3\n", "no review.new; there are: new_per_day"),
        ("[class]\nfolder = 24\n", "class.folder is not a whole path in quotes: 24"),
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


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_limit_is_one_sentence_with_its_key(tmp_path, name, odd):
    settings = read(tmp_path, f"[limits]\n{name} = {ODD[odd]}\n")
    assert settings.limits == Limits()
    (notice,) = settings.notices
    assert notice.startswith(str(tmp_path / "settings.toml"))
    assert len(notice) < len(str(tmp_path)) + 200
    assert odd in DEEP or name in notice


def test_the_largest_limits_can_be_set(tmp_path):
    text = "".join(f"{name} = {limit.largest}\n" for name, limit in LIMITS.items())
    settings = read(tmp_path, "[limits]\n" + text.replace("4096.0", "4096"))
    assert settings.notices == ()
    assert settings.limits.wall_s == 86_400


@hypothesis.settings(max_examples=60)
@given(
    st.sampled_from(["limits.wall_s", "look.theme", "look.ascii", "keys.a", "lens.on", "keys"]),
    values,
)
def test_whatever_the_file_says_there_are_settings(key, value):
    with tempfile.TemporaryDirectory() as folder:
        settings = read(Path(folder), f"{key} = {value}\n")
        assert all(len(notice) < len(folder) + 400 for notice in settings.notices)


def test_tables_in_tables_without_end_are_no_keys(tmp_path):
    (notice,) = read(tmp_path, "[keys]\n" + ".".join("a" * 100_000) + " = 'f5'\n").notices
    assert "too many parts" in notice


def test_a_fifo_in_the_files_place_is_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "settings.toml")
    (notice,) = read_settings(tmp_path / "settings.toml").notices
    assert notice == f"{tmp_path}/settings.toml is not used: it is a FIFO, not a file."
