"""Pictures as text and as PNG."""

import base64
import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.drawing import text
from tensortutor.drawing.colours import NOT_FINITE, brightness, palette
from tensortutor.drawing.picture import picture_rows
from tensortutor.drawing.png import Pixels, chunk, decode, encode
from tensortutor.drawing.spans import Look, Span, text_of
from tensortutor.protocol.drawings import Picture, Plot, Series

COLOUR, ASCII = Look(True, True), Look(False, False)
SOME = st.integers(1, 9)


def picture(pixels, kind="image", **more):
    return Picture("", kind, base64.b64encode(encode(pixels)).decode(), **more)


@given(SOME, SOME, st.integers(1, 4), st.randoms())
def test_pixels_come_back_from_png(width, height, channels, random):
    pixels = Pixels(width, height, channels, random.randbytes(width * height * channels))
    assert decode(encode(pixels)) == pixels


def test_other_programs_read_our_png():
    image = pytest.importorskip("PIL.Image")
    pixels = Pixels(2, 1, 3, bytes([255, 0, 0, 0, 0, 255]))
    read = image.open(io.BytesIO(encode(pixels)))
    assert (read.getpixel((0, 0)), read.getpixel((1, 0))) == (RED, BLUE)


RED, BLUE = (255, 0, 0), (0, 0, 255)
GOOD = encode(Pixels(4, 4, 1, bytes(16)))


@given(st.binary() | st.integers(0, len(GOOD)).map(lambda n: GOOD[:n]))
def test_no_bytes_do_harm(data):
    try:
        pixels = decode(data)
    except ValueError:
        return
    assert pixels.data == bytes(16)  # only what comes after the pixels may be missing


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_no_changed_byte_does_harm(place, byte):
    try:
        pixels = decode(GOOD[:place] + bytes([byte]) + GOOD[place + 1 :])
    except ValueError:
        return
    assert len(pixels.data) == pixels.width * pixels.height * pixels.channels


def test_a_file_that_unfolds_without_end_is_refused():
    bomb = zlib.compress(bytes(50_000_000))
    head = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    data = GOOD[:8] + chunk(b"IHDR", head) + chunk(b"IDAT", bomb)
    with pytest.raises(ValueError, match="damaged"):
        decode(data)
    wide = struct.pack(">IIBBBBB", 1 << 30, 4, 8, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="too large"):
        decode(GOOD[:8] + chunk(b"IHDR", wide) + chunk(b"IDAT", bomb))


def test_two_pixels_share_a_cell():
    rows = picture_rows(picture(Pixels(1, 2, 3, bytes([*RED, *BLUE]))), 1, 1, COLOUR)
    assert rows == [[Span("▀", fore=RED, back=BLUE)]]


def test_small_pictures_grow_in_whole_steps():
    rows = picture_rows(picture(Pixels(2, 2, 1, bytes([0, 255, 255, 0]))), 9, 9, ASCII)
    assert [text_of(row) for row in rows] == ["    @@@@", "    @@@@", "@@@@    ", "@@@@    "]


def test_large_pictures_shrink_to_means():
    checks = bytes([0, 255] * 50 + [255, 0] * 50) * 50
    rows = picture_rows(picture(Pixels(100, 100, 1, checks)), 10, 5, COLOUR)
    assert {(span.fore, span.back) for row in rows for span in row} == {((127,) * 3,) * 2}


def test_without_colours_values_grow_from_low_to_high():
    heat = picture(Pixels(3, 1, 1, bytes([0, 128, 255])), "heat", low=-1.0, high=1.0)
    *map_rows, scale = (text_of(row) for row in picture_rows(heat, 12, 3, ASCII))
    assert map_rows == [" " * 4 + "+" * 4 + "@" * 4] * 2
    assert (scale[:3], scale[-2:]) == ("-1 ", " 1")
    assert list(scale[3:-2]) == sorted(scale[3:-2], key=" .:-=+*#%@".index)


def test_what_is_not_finite_is_never_averaged_away():
    data = bytes([9, 255] * 50 + [0, 0] + [9, 255] * 49)
    heat = picture(Pixels(100, 1, 2, data), "heat", low=0.0, high=1.0)
    (strip, _) = picture_rows(heat, 20, 2, COLOUR)
    assert [span.fore for span in strip].count(NOT_FINITE) == 1
    assert "?" in text_of(picture_rows(heat, 20, 2, ASCII)[0])


def test_colours_of_values_meet_at_zero():
    about_zero = palette(-2.0, 1.0)
    assert brightness(about_zero[170]) < 0.15
    assert about_zero[0][2] > about_zero[0][0]
    assert about_zero[255][0] > about_zero[255][2]
    positive = [brightness(colour) for colour in palette(0.0, 5.0)]
    assert positive == sorted(positive)


@pytest.mark.parametrize("png", ["????", "AAAA", base64.b64encode(GOOD[:40]).decode()])
def test_a_broken_picture_says_so(png):
    rows = picture_rows(Picture("t", "image", png, "a caption"), 60, 10, COLOUR)
    words = [text_of(row) for row in rows]
    assert words[0] == "t"
    assert words[1].startswith("This picture cannot be shown: ")
    assert words[2] == "a caption"


@given(SOME, SOME, st.integers(1, 30), st.integers(1, 12), st.sampled_from([COLOUR, ASCII]))
def test_any_picture_fits_any_size(width, height, columns, lines, look):
    pixels = Pixels(width, height, 2, bytes(width * height * 2))
    shown = picture(pixels, "heat", caption="some words about it", low=-3.0, high=1e30)
    rows = picture_rows(shown, columns, lines, look)
    assert 1 <= len(rows) <= lines
    assert all(len(text_of(row)) <= columns for row in rows)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("colorterm", "wanted"), [("truecolor", "38;2;255;0;0;48;2;0;0;255"), ("", "38;5;196;48;5;21")]
)
def test_a_terminal_gets_the_colours_that_it_has(monkeypatch, colorterm, wanted):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", colorterm)
    monkeypatch.delenv("NO_COLOR", raising=False)
    two = picture(Pixels(80, 2, 3, bytes([*RED] * 80 + [*BLUE] * 80)))
    assert f"\x1b[{wanted}m{'▀' * 80}\x1b[0m" in "".join(text.for_stream(two, Terminal()))
    assert "\x1b" not in "".join(text.for_stream(two, io.StringIO()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(text.for_stream(two, Terminal()))


def test_ascii_can_be_asked_for(monkeypatch):
    plot = Plot("", (Series("a", (0.0, 1.0), (0.0, 1.0)),))
    assert not "".join(text.for_stream(plot, io.StringIO())).isascii()
    monkeypatch.setenv("TENSORTUTOR_ASCII", "1")
    assert "".join(text.for_stream(plot, io.StringIO())).isascii()
