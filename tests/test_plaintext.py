"""What is shown of text that would act on a terminal, hide, or never end."""

import pytest

from tensortutor.plaintext import LONGEST, LONGEST_TEXT, LONGEST_TITLE, one_line, visible
from tensortutor.protocol.drawings import Plot
from tensortutor.protocol.framing import ProtocolError
from tensortutor.report import indented, neutral
from tensortutor.ui.outside import OutsideText
from tensortutor.ui.plain import UNFINISHED, Writer


@pytest.mark.parametrize(
    "code", [0x61C, 0x200B, 0x200E, 0x202E, 0x2066, 0xFEFF, 0xE0001, 0xE0067, 0x3164, 0xAD]
)
def test_what_hides_is_shown_by_its_number(code):
    for show in (visible, one_line, neutral, lambda text: OutsideText(text).title.plain):
        assert show(f"a{chr(code)}b") == f"a<U+{code:04X}>b"


SCRIPTS = ("שלום עולם", "e\u0301te\u0301", "می\u200cخواهم", "क्\u200dष", "👩\u200d💻")


@pytest.mark.parametrize("text", SCRIPTS)
def test_letters_of_any_script_stay(text):
    assert visible(text) == one_line(text) == neutral(text) == text


def test_a_joiner_between_ascii_letters_is_shown():
    assert visible("a\u200db\u200cc") == "a<U+200D>b<U+200C>c"


def test_long_texts_are_cut_and_say_so():
    assert visible("x" * 300_000) == f"{'x' * LONGEST}… {300_000 - LONGEST:,} more characters"
    assert len(visible("line\n" * 100_000)) < LONGEST_TEXT + 100
    assert len(one_line("[x]\n" * 100_000)) < LONGEST_TITLE + 40
    assert sum(map(len, indented("", "m" * 300_000))) < LONGEST + 100


def test_markup_is_text():
    assert OutsideText("a[/b] [@click=app.quit]c").title.plain == "a[/b] [@click=app.quit]c"
    assert OutsideText("a[/b]").rich().plain == "a[/b]"


def test_a_control_sequence_without_an_end_is_not_held_for_ever():
    writer = Writer()
    writer.feed("\x1b[")
    for _ in range(3):
        writer.feed("1;" * 200)
    assert writer.open.startswith("^[[1;1;")
    assert not UNFINISHED.search("\x1b[" + "1;" * 200)


def test_a_plot_cannot_leave_out_less_than_nothing():
    with pytest.raises(ProtocolError, match="left_out"):
        Plot("t", (), -5)
