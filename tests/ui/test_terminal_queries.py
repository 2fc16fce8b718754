"""A terminal's answers among what is typed."""

import os
import pty
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.ui.terminal import graphics
from tensortutor.ui.terminal.terminal_queries import (
    HELD_S,
    PATIENCE_S,
    LateReplies,
    Question,
)

KITTY, CELL, TMUX = "\x1b_Gi=7735;OK\x1b\\", "\x1b[6;20;9t", "\x1b[?1;2;4c"
GROUND = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
TYPED = st.text(st.sampled_from("ab[6?c;t_G"), max_size=6)


@given(st.lists(TYPED, min_size=5, max_size=5), st.sets(st.integers(0, 110)))
def test_no_key_is_eaten_wherever_the_replies_are_cut(typed, cuts):
    heard = []
    question = Question("", heard.extend, 0.0)
    one, two, three, four, five = typed
    data = f"{one}{KITTY}{two}{CELL}{three}{GROUND}{four}{TMUX}{five}"
    edges = sorted({0, len(data)} | {cut for cut in cuts if cut < len(data)})
    left = ""
    for start, end in pairwise(edges):
        left += question.take(data[start:end], 0.0)
    assert left == "".join(typed)
    assert heard == [KITTY, CELL, GROUND, TMUX]


def test_a_key_that_begins_like_a_reply_is_not_held_for_long():
    question = Question("", lambda replies: None, 0.0)
    assert question.take("a\x1b", 0.0) == "a"
    assert question.wait(HELD_S / 2) == ""
    assert question.wait(HELD_S) == "\x1b"
    assert question.take("\x1b[A", 0.2) == "\x1b[A"


def test_a_terminal_that_says_nothing_is_not_waited_for():
    heard = []
    question = Question("", lambda replies: heard.append(list(replies)), 0.0)
    question.take(CELL + "x\x1b[", PATIENCE_S - HELD_S)
    assert question.wait(PATIENCE_S) == "\x1b["
    assert (question.is_over, heard) == (True, [[CELL]])


@given(st.lists(TYPED, min_size=3, max_size=3), st.sets(st.integers(0, 60)))
def test_no_late_reply_is_taken_for_keys(typed, cuts):
    late = LateReplies()
    one, two, three = typed
    data = f"{one}{GROUND}{two}{TMUX}{three}"
    escapes = {at + 1 for at, char in enumerate(data) if char == "\x1b"}
    edges = sorted({0, len(data)} | {cut for cut in cuts if cut < len(data)} - escapes)
    assert "".join(late.take(data[a:b], 0.0) for a, b in pairwise(edges)) == one + two + three


def test_escape_is_a_key_at_once_while_nothing_is_asked():
    late = LateReplies()
    assert late.take("a\x1b", 0.0) == "a\x1b"
    assert (late.take("\x1b]1", 0.0), late.wait(HELD_S / 2)) == ("", "")
    assert late.wait(HELD_S) == "\x1b]1"


@pytest.mark.parametrize(
    ("replies", "name"),
    [
        ([TMUX], "SixelImage"),
        ([KITTY, CELL, TMUX], "SixelImage"),
        ([KITTY, CELL, "\x1b[?62c"], "TGPImage"),
        (["\x1b_Gi=7735;ENOTSUPPORTED\x1b\\", "\x1b[?62;22c"], ""),
        (["\x1b[?4c"], ""),  # a VT132, which is what the first number says
        ([], ""),
    ],
)
def test_what_the_terminal_has_is_taken_from_its_replies(replies, name):
    assert graphics.drawn_by(replies) == name


def test_the_size_of_a_cell_is_width_and_height():
    assert graphics.cell_in([KITTY, CELL]) == (9, 20)
    assert graphics.cell_in(["\x1b[6;0;0t"]) is None


def test_the_library_asks_nothing_when_it_is_loaded():
    pytest.importorskip("textual_image")
    script = (
        "from tensortutor.ui.terminal import graphics\n"
        "kind = graphics.load('SixelImage', (9, 20))\n"
        "from textual_image._terminal import get_cell_size\n"
        "import os\n"
        "print(kind.__module__, *get_cell_size(), *(name in os.environ for name in graphics.CELL))"
    )
    master, slave = pty.openpty()
    os.write(master, b"typed\n")
    done = subprocess.run(
        [sys.executable, "-c", script], stdin=slave, stdout=slave, stderr=slave, check=False
    )
    said = os.read(master, 4096).decode()
    os.close(slave)
    os.close(master)
    assert done.returncode == 0, said
    assert "\x1b" not in said
    assert said.splitlines()[-1] == "textual_image.widget.sixel 9 20 False False"
