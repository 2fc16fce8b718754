"""A frame brought down to what is new leaves the same cells on the terminal as the whole one."""

import re
from statistics import median

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tensortutor.ui.terminal.cell_diff import CellDiff, blank, change, parts
from tests.bench.terminal import FRAME_END, Terminal

SIZE = COLUMNS, ROWS = 12, 3
RED, BOLD, LINE = "38;2;200;0;0;48;2;0;0;0", "1;38;2;200;0;0;48;2;0;0;9", "4;97;48;5;17"
SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([HmC])|(.[\u0300-\u036f\u200d]*)", re.DOTALL)
HALF = "half of a sign"


class Cells:
    """A terminal that knows what Textual and the diff send: places, colours, text."""

    def __init__(self):
        self.cells = {}
        self.at, self.style = (0, 0), ""

    def feed(self, data):
        for numbers, kind, text in SEQUENCE.findall(data):
            row, column = self.at
            if kind == "H":
                row, column = (int(number) - 1 for number in numbers.split(";"))
            elif kind == "C":
                column += int(numbers or 1)
            elif kind == "m":
                known = "" if numbers in ("", "0") or numbers.startswith("0;") else self.style
                self.style = f"{known};{numbers}"
            elif text == "\n":
                row, column = row + 1, 0
            else:
                self._put(row, column, text)
                column += cell_len(text)
            self.at = (row, column)
        return self.shown()

    def _put(self, row, column, text):
        width = cell_len(text)
        for edge, step in ((column, -1), (column + width, 1)):
            at = edge
            if self.cells.get((row, at), ("x", ""))[0] != "":
                continue
            while self.cells.get((row, at), ("x", ""))[0] == "":
                self.cells[row, at] = (HALF, "")
                at += step
            if step < 0:
                self.cells[row, at] = (HALF, "")
        for index in range(width):
            self.cells[row, column + index] = ("" if index else text, self.style)

    def shown(self):
        return {
            at: (sign, parts(blank(style) if sign == " " else style))
            for at, (sign, style) in self.cells.items()
        }


def spans():
    piece = st.tuples(
        st.sampled_from(["", RED, BOLD, LINE]), st.text(st.sampled_from("ab  █日"), max_size=4)
    )
    return st.tuples(st.integers(0, ROWS - 1), st.integers(0, 4), st.lists(piece, max_size=1))


def frame(drawn):
    data = ""
    for row, column, pieces in drawn:
        data += f"\x1b[{row + 1};{column + 1}H"
        data += "".join(f"\x1b[{style}m{text}\x1b[0m" if text else "" for style, text in pieces)
        data += "\n"
    return f"{data}\x1b[1;1H"


@given(st.lists(st.lists(spans(), max_size=6), max_size=5))
def test_any_frames_end_in_the_same_cells(frames):
    whole, less, diff = Cells(), Cells(), CellDiff()
    for drawn in frames:
        data = frame(drawn)
        assert less.feed(diff.reduce(data, SIZE)) == whole.feed(data)
        assert less.at == (0, 0)


def test_what_is_shown_already_is_not_sent_again():
    diff = CellDiff()
    data = frame([(0, 0, [(RED, "ab  ab")]), (1, 2, [(BOLD, "日本")])])
    assert diff.reduce(data, SIZE)
    assert diff.reduce(data, SIZE) == ""
    changed = frame([(0, 0, [(RED, "ax  ab")])])
    assert diff.reduce(changed, SIZE) == f"\x1b[C{change(BOLD, RED)}x\x1b[1;1H"


def test_modes_and_names_change_no_cell_and_anything_unknown_all_of_them():
    diff = CellDiff()
    data = frame([(0, 0, [(RED, "ab")])])
    diff.reduce(data, SIZE)
    for setting in ("\x1b[?2026h", "\x1b[?1006h\x1b[?25l", "\x1b]0;title\x07", "\x1b[?2026$p"):
        assert diff.reduce(setting, SIZE) == setting
        assert diff.reduce(data, SIZE) == ""
    for other in ("\x1b[?1049h", "\x1b[2J", "\x1bPq#0\x1b\\", "\x1b]8;;x\x1b\\y\x1b]8;;\x1b\\"):
        assert diff.reduce(other, SIZE) == other
        assert "ab" in diff.reduce(data, SIZE)
    assert "ab" in diff.reduce(data, (COLUMNS + 1, ROWS))


def test_a_text_beyond_the_edge_is_sent_whole_every_time():
    diff = CellDiff()
    data = frame([(0, 8, [(RED, "abcdefgh")]), (ROWS + 2, 0, [("", "below")])])
    for _ in range(2):
        sent = diff.reduce(data, SIZE)
        assert "abcdefgh" in sent
        assert "below" in sent


def test_a_row_down_at_home_is_two_thousand_bytes_at_most(tmp_path):
    arguments, written = ("-m", "tensortutor"), []
    with Terminal(arguments, {"TENSORTUTOR_HOME": str(tmp_path)}, (36, 120)) as terminal:
        terminal.read_until(b"values, types, shapes", plain=True)
        for _ in range(15):
            terminal.write("\x1b[B")
            drawn = b""
            while FRAME_END not in drawn:
                drawn += terminal.read(10)
            written.append(len(drawn))
    # Some frames of the start may still come meanwhile.
    assert 0 < median(written) <= 2_000
