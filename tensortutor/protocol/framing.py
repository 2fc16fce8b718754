"""Length-prefixed JSON: how messages cross a byte stream.

A frame is a 4-byte big-endian length followed by that many bytes of UTF-8
JSON, always one object. Nothing is pickled or evaluated.
"""

import json
import struct
from typing import Any

HEADER = struct.Struct(">I")
LARGEST = 1 << 20
"""A frame may hold this many bytes; longer text is sent in several frames."""

_to_json = json.JSONEncoder(separators=(",", ":")).encode  # made once: it costs as much as its work


class ProtocolError(Exception):
    """The bytes are not frames of this protocol, or a frame is not a message."""


def encode(message: dict[str, Any]) -> bytes:
    """One frame. Raises ProtocolError if the message is larger than LARGEST."""
    # ASCII only: lone surrogates (undecodable output bytes) survive the trip.
    payload = _to_json(message).encode("ascii")
    if len(payload) > LARGEST:
        raise ProtocolError(f"a message of {len(payload)} bytes is larger than {LARGEST}")
    return HEADER.pack(len(payload)) + payload


class Decoder:
    """Turns a stream of bytes, cut anywhere, into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that `data` completes. Raises ProtocolError, and only that.

        After an error the stream cannot be trusted and must be closed.
        """
        self._buffer += data
        messages = []
        start = 0
        while len(self._buffer) - start >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer, start)
            if length > LARGEST:
                raise ProtocolError(f"a frame claims {length} bytes, at most {LARGEST} are allowed")
            end = start + HEADER.size + length
            if len(self._buffer) < end:
                break
            messages.append(_message(bytes(self._buffer[start + HEADER.size : end])))
            start = end
        del self._buffer[:start]
        return messages


def _message(payload: bytes) -> dict[str, Any]:
    try:
        message = json.loads(payload.decode())  # bytes would be searched for their encoding first
    # Deep nesting exhausts the parser's recursion; huge integers raise ValueError.
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError("a frame is not a JSON object")
    return message
