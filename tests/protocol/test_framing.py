"""Frames survive any cut of the stream; bytes that are no frames raise ProtocolError alone."""

import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensortutor.protocol.framing import HEADER, LARGEST, Decoder, ProtocolError, encode
from tests.protocol.strategies import JSON

OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


def frame(payload: bytes) -> bytes:
    return HEADER.pack(len(payload)) + payload


def decode_in_pieces(stream: bytes, cuts: list[int]) -> list[dict]:
    decoder = Decoder()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    return [message for piece in pieces for message in decoder.feed(piece)]


@given(st.lists(OBJECTS, max_size=5), st.lists(st.integers(0, 400), max_size=8))
def test_messages_arrive_whole_and_in_order_however_the_stream_is_cut(messages, cuts):
    stream = b"".join(map(encode, messages))
    assert decode_in_pieces(stream, cuts) == messages


@given(st.binary(max_size=64))
def test_undecodable_output_crosses_unchanged(data):
    text = data.decode("utf-8", "surrogateescape")
    (message,) = Decoder().feed(encode({"text": text}))
    assert message["text"].encode("utf-8", "surrogateescape") == data


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_arbitrary_bytes_raise_nothing_but_protocol_errors(chunks):
    decoder = Decoder()
    for chunk in chunks:
        try:
            messages = decoder.feed(chunk)
        except ProtocolError:
            return
        assert all(isinstance(message, dict) for message in messages)


@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"9" * 10_000)
@example(b'{"a": "\\ud800"}')
@example(b"\xff\xfe{\x00}\x00")
@example(b"\x00\x00\xfe\xff")
@example(b"")
def test_arbitrary_payloads_raise_nothing_but_protocol_errors(payload):
    try:
        (message,) = Decoder().feed(frame(payload))
    except ProtocolError:
        return
    assert isinstance(message, dict)


@pytest.mark.parametrize("payload", [b"[]", b"1", b'"text"', b"null", b"NaN", b"true"])
def test_json_that_is_no_object_is_refused(payload):
    with pytest.raises(ProtocolError, match="not a JSON object"):
        Decoder().feed(frame(payload))


@pytest.mark.parametrize("payload", [b"", b"{", b"{'a': 1}", b"\x80", b"{} {}"])
def test_a_payload_that_is_not_json_is_refused(payload):
    with pytest.raises(ProtocolError, match="not JSON"):
        Decoder().feed(frame(payload))


def test_a_frame_of_the_largest_size_passes_and_one_byte_more_does_not():
    room = LARGEST - len(json.dumps({"t": ""}, separators=(",", ":")))
    (message,) = Decoder().feed(encode({"t": "x" * room}))
    assert len(message["t"]) == room
    with pytest.raises(ProtocolError, match="larger than"):
        encode({"t": "x" * (room + 1)})


def test_a_frame_that_claims_too_much_is_refused_before_its_payload_arrives():
    with pytest.raises(ProtocolError, match=f"claims {LARGEST + 1} bytes"):
        Decoder().feed(HEADER.pack(LARGEST + 1))


def test_an_unfinished_frame_gives_nothing_until_its_last_byte():
    decoder = Decoder()
    stream = encode({"event": "notice"})
    for position in range(len(stream) - 1):
        assert decoder.feed(stream[position : position + 1]) == []
    assert decoder.feed(stream[-1:]) == [{"event": "notice"}]
