"""What is no file in the place of one: a sentence with its path, and nobody waits."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tensortutor.course.atlas import read_atlas
from tensortutor.course.catalog import find_course, open_course, read_course
from tensortutor.course.problems import CourseError
from tensortutor.course.read_file import LARGEST, open_named, read_file
from tensortutor.course.reference import read_reference
from tests.course.tiny import CHECKS, CONTENTS, LESSON, copy_of_tiny


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to("Nowhere")


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # an address has 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, LARGEST + 1)


ODD: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": device,
    "a link to Nowhere": dangling,
    "more than 64 MiB": large,
}
if sys.platform == "linux":
    ODD["a socket"] = unix_socket


@pytest.mark.parametrize("words", ODD)
def test_what_is_no_file_is_said(tmp_path, words):
    ODD[words](tmp_path / "x")
    with pytest.raises(OSError, match=words):
        read_file(tmp_path / "x")


@pytest.mark.parametrize("words", ODD)
def test_in_the_place_of_a_new_lesson(tmp_path, words):
    """`list` opens the course, `verify` reads it whole."""
    root = copy_of_tiny(tmp_path)
    name = "lessons/01_basics/02_x.md"
    ODD[words](root / name)
    with pytest.raises(CourseError, match=f"{name}: this file cannot be read: .*{words}"):
        open_course(root)
    assert any(p.path == name and words in p.message for p in read_course(root)[1])


@pytest.mark.parametrize("words", ODD)
def test_in_the_place_of_a_check_file(tmp_path, words):
    root = copy_of_tiny(tmp_path)
    (root / CHECKS).unlink()
    ODD[words](root / CHECKS)
    with pytest.raises(CourseError, match=f"{CHECKS}: this file cannot be read: .*{words}"):
        _ = open_course(root).lessons[0].judge


def test_a_lesson_that_becomes_a_fifo_while_the_course_is_open(tmp_path):
    root = copy_of_tiny(tmp_path)
    course = open_course(root)
    (root / LESSON).unlink()
    os.mkfifo(root / LESSON)
    with pytest.raises(CourseError, match=f"{LESSON}: this file cannot be read: it is a FIFO"):
        _ = course.lessons[0].steps


@pytest.mark.parametrize("words", ODD)
def test_in_the_place_of_atlas_and_reference_page(tmp_path, words):
    root = copy_of_tiny(tmp_path)
    ODD[words](root / "lessons" / "atlas.toml")
    ODD[words](root / "lessons" / "reference" / "77_x.md")
    for problems in (read_atlas(root)[1], read_reference(root)[1]):
        assert [p.message for p in problems if words in p.message]


def test_a_fifo_in_the_place_of_the_list_of_chapters(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / CONTENTS).unlink()
    os.mkfifo(root / CONTENTS)
    with pytest.raises(CourseError, match=CONTENTS):
        open_course(find_course(root))


@pytest.mark.parametrize("words", [words for words in ODD if "MiB" not in words])
def test_a_file_that_the_learner_names(tmp_path, words):
    ODD[words](tmp_path / "x")
    with pytest.raises(OSError, match=words):
        open_named(tmp_path / "x")


def test_a_pipe_that_the_learner_names_is_waited_for_if_somebody_writes(tmp_path):
    """As the shell's <(command): its writer is there, before it writes or when it has written."""
    for early in (b"", b"print(1)"):
        reader, writer = os.pipe()
        os.write(writer, early)
        file, begins = open_named(Path(f"/proc/self/fd/{reader}"))
        os.write(writer, b"# end")
        os.close(writer)
        with file:
            assert begins + file.read() == early + b"# end"
        os.close(reader)


def test_a_pipe_whose_writer_has_gone_is_read_to_its_end(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"print(1)")
    os.close(writer)
    file, begins = open_named(Path(f"/proc/self/fd/{reader}"))
    with file:
        assert begins + file.read() == b"print(1)"
    os.close(reader)
