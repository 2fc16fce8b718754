"""PNG, as much of it as pictures need: 8 bits a channel, not interlaced, rows unfiltered.

Any viewer reads what is written here; what is read here comes from a learner's program, so nothing
in it is believed before it is checked.
"""

import struct
import zlib
from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Channels (grey, grey and opacity, colours, colours and opacity) as the format numbers them."""
CHANNELS = {number: channels for channels, number in COLOUR_TYPES.items()}
LARGEST_SIDE = 1024
HEAD = struct.Struct(">IIBBBBB")


@dataclass(frozen=True)
class Pixels:
    """width * height * channels bytes, row by row from the top left."""

    width: int
    height: int
    channels: int
    data: bytes


def encode(pixels: Pixels) -> bytes:
    """The pixels as a PNG file."""
    stride = pixels.width * pixels.channels
    rows = (pixels.data[start : start + stride] for start in range(0, len(pixels.data), stride))
    packed = zlib.compress(b"".join(b"\0" + row for row in rows), level=3)
    kind = COLOUR_TYPES[pixels.channels]
    head = HEAD.pack(pixels.width, pixels.height, 8, kind, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def chunk(name: bytes, data: bytes) -> bytes:
    """One part of a file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def decode(data: bytes) -> Pixels:
    """The pixels of a file that `encode` has written. Raises ValueError for any other."""
    if data[:8] != SIGNATURE or data[12:16] != b"IHDR" or len(data) < 33:
        raise ValueError("this is no PNG file")
    width, height, bits, kind, *rest = HEAD.unpack(data[16:29])
    if bits != 8 or kind not in CHANNELS or any(rest):
        raise ValueError("this kind of PNG is not read here")
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
        raise ValueError("the picture is too large")
    stride = 1 + width * CHANNELS[kind]
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed(data), stride * height + 1)
    except zlib.error as error:
        raise ValueError(f"the picture is damaged: {error}") from None
    if len(raw) != stride * height or any(raw[::stride]):
        raise ValueError("the picture is damaged")
    rows = (raw[start + 1 : start + stride] for start in range(0, len(raw), stride))
    return Pixels(width, height, CHANNELS[kind], b"".join(rows))


def packed(data: bytes) -> bytes:
    """What the IDAT parts hold."""
    found, start = b"", 8
    while start + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, start)
        if data[start + 4 : start + 8] == b"IDAT":
            found += data[start + 8 : start + 8 + length]
        start += 12 + length
    return found
