"""Many lines over one stream that is slow, cut short or silent: nothing is lost untold."""

import contextlib
import os
import selectors
import socket
import threading

import pytest

from tensortutor.protocol.framing import Decoder, encode
from tensortutor.protocol.setup import (
    Ended,
    Exited,
    Failed,
    Interrupt,
    Ready,
    SpareMade,
    message_from_json,
    message_to_json,
)
from tensortutor.transport.far import LAST_WORD
from tensortutor.transport.mux import MESSAGE, OPEN, SILENCE_S, WINDOW, Line, Mux
from tensortutor.transport.near import Carrier

EVENTS, PRINTED = b"an event", b"printed past Python"
CHANNEL, STATUS, OUT, ERR = 1, 2, 3, 4
FIRST = {STATUS: (CHANNEL, OUT, ERR), OUT: (CHANNEL,), ERR: (CHANNEL,)}


def frame(message) -> bytes:
    return encode(message_to_json(message))


ENDED = frame(Ended(3))


def messages(data: bytes) -> list:
    return [message_from_json(message) for message in Decoder().feed(data)]


class Side:
    """A Mux with the four lines of one process; `ends` are what the lines lead to."""

    def __init__(self, stream: socket.socket, *, far: bool, clock=lambda: 0.0) -> None:
        self.stream = stream
        self.sink = os.dup(stream.fileno())
        self.said: list[bytes] = []
        self.mux = Mux(
            stream.fileno(), self.sink, clock=clock,
            message=self.said.append, opened=lambda *_: None,
        )  # fmt: skip
        self.ends: dict[int, int] = {}
        for number in (CHANNEL, STATUS, OUT, ERR):
            if number in (CHANNEL, STATUS):
                ours, theirs = (end.detach() for end in socket.socketpair())
            else:
                read, write = os.pipe()
                ours, theirs = (write, read) if far else (read, write)
            self.ends[number] = ours
            os.set_blocking(ours, False)
            one_way = number in (OUT, ERR)
            order = FIRST.get(number, ())
            line = Line(theirs, reads=far or not one_way, writes=not far or not one_way)
            line.read_after, line.write_after = (order, ()) if far else ((), order)
            if number == CHANNEL:
                line.yields_to = (OUT, ERR)
                line.last_word = LAST_WORD if far else b""
            self.mux.add(number, line)

    def read(self, number: int) -> bytes:
        """Everything that is there; the mux may have more."""
        found = b""
        try:
            while data := os.read(self.ends[number], 1 << 16):
                found += data
        except BlockingIOError:
            pass
        return found

    def close(self) -> None:
        self.mux.close()
        self.stream.close()
        for descriptor in (self.sink, *self.ends.values()):
            os.close(descriptor)


class Wire:
    """What carries bytes between the two sides, as many at a time as it is told."""

    def __init__(self, clock=lambda: 0.0) -> None:
        (a, self.a), (self.b, b) = socket.socketpair(), socket.socketpair()
        self.near, self.far = Side(a, far=False, clock=clock), Side(b, far=True, clock=clock)
        for end in (self.a, self.b):
            end.setblocking(False)

    def turn(self, most: int) -> None:
        self.near.mux.step(0)
        self.far.mux.step(0)
        for source, target in ((self.a, self.b), (self.b, self.a)):
            try:
                data = source.recv(most, socket.MSG_PEEK)
                source.recv(target.send(data))
            except BlockingIOError:
                continue

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        for side in (self.near, self.far):
            side.close()
        self.a.close()
        self.b.close()


def test_byte_by_byte_all_arrives_and_the_status_last():
    with Wire() as wire:
        exited = frame(Exited(3))
        os.write(wire.far.ends[CHANNEL], EVENTS)
        os.write(wire.far.ends[OUT], PRINTED)
        os.write(wire.far.ends[STATUS], exited)
        os.write(wire.near.ends[CHANNEL], b"a job")
        status = b""
        for _ in range(400):
            wire.turn(1)
            if not status and (status := wire.near.read(STATUS)):
                assert (wire.near.read(CHANNEL), wire.near.read(OUT)) == (EVENTS, PRINTED)
        assert status == exited
        assert wire.far.read(CHANNEL) == b"a job"


def test_a_flood_that_nobody_reads_holds_up_no_orders():
    with Wire() as wire:
        sent = 0
        for _ in range(300):
            with contextlib.suppress(BlockingIOError):
                sent += os.write(wire.far.ends[OUT], bytes(1 << 14))
            wire.turn(1 << 16)
        # The two pipes hold 64 KiB each; what is on the way is bounded by the line's credit.
        assert WINDOW <= sent <= WINDOW + (1 << 18)
        os.write(wire.near.ends[STATUS], frame(Interrupt()))
        os.write(wire.far.ends[CHANNEL], EVENTS)
        for _ in range(5):
            wire.turn(1 << 16)
        assert messages(wire.far.read(STATUS)) == [Interrupt()]
        os.write(wire.far.ends[STATUS], frame(Exited(0)))
        taken, events, status = 0, b"", b""
        for _ in range(100):
            assert not status or taken == sent, "the status came before the output"
            assert not status or events, "the status came before an event"
            taken += len(wire.near.read(OUT))
            events += wire.near.read(CHANNEL)
            status += wire.near.read(STATUS)
            wire.turn(1 << 16)
        assert (taken, events, messages(status)) == (sent, EVENTS, [Exited(0)])


@pytest.mark.parametrize("most", [1, 1 << 16])
def test_what_a_program_prints_stays_behind_what_it_had_written_past_python(most):
    """Nothing is read on this side until all has come: the host then reads the channel first."""
    with Wire() as wire:
        for number, data in ((OUT, PRINTED), (CHANNEL, EVENTS), (ERR, PRINTED), (CHANNEL, ENDED)):
            os.write(wire.far.ends[number], data)
            for _ in range(3):
                wire.far.mux.step(0)
        found = []
        for _ in range(400):
            wire.turn(most)
        for _ in range(20):
            for number in (CHANNEL, OUT, ERR):
                found += [(number, data)] if (data := wire.near.read(number)) else []
            wire.turn(most)
        assert found == [(OUT, PRINTED), (CHANNEL, EVENTS), (ERR, PRINTED), (CHANNEL, ENDED)]


def test_the_status_waits_for_output_that_is_still_to_be_read():
    with Wire() as wire:
        size = 3 << 15  # more than a pipe holds, and within the credit
        for _ in range(3):
            os.write(wire.far.ends[OUT], bytes(1 << 15))
            wire.turn(1 << 17)
        os.write(wire.far.ends[STATUS], frame(Exited(0)))
        for _ in range(20):
            wire.turn(1 << 17)
        assert wire.near.read(STATUS) == b""
        taken = len(wire.near.read(OUT))
        for _ in range(20):
            wire.turn(1 << 17)
        assert taken + len(wire.near.read(OUT)) == size
        assert messages(wire.near.read(STATUS)) == [Exited(0)]


@pytest.mark.parametrize("most", [1, 7, 1 << 16])
def test_the_word_that_a_program_has_ended_comes_after_what_lies_in_its_pipes(most):
    with Wire() as wire:
        os.write(wire.far.ends[OUT], PRINTED)
        os.write(wire.far.ends[ERR], PRINTED * 2)
        for piece in (EVENTS, ENDED[:9], ENDED[9:]):  # also where it comes in pieces
            os.write(wire.far.ends[CHANNEL], piece)
            wire.turn(most)
        os.write(wire.far.ends[STATUS], frame(Exited(3)))
        said = dict.fromkeys((STATUS, CHANNEL, OUT, ERR), b"")
        for _ in range(600):
            for number in said:
                said[number] += wire.near.read(number)
            if said[CHANNEL].endswith(ENDED):
                assert (said[OUT], said[ERR]) == (PRINTED, PRINTED * 2)
            assert not said[STATUS] or said[CHANNEL].endswith(ENDED)
            wire.turn(most)
        assert said[CHANNEL] == EVENTS + ENDED
        assert messages(said[STATUS]) == [Exited(3)]
        os.write(wire.far.ends[CHANNEL], EVENTS)  # a program that says so and goes on
        for _ in range(100):
            wire.turn(most)
        assert wire.near.read(CHANNEL) == EVENTS


def test_a_child_that_prints_without_end_does_not_hold_up_the_word_of_the_end():
    with Wire() as wire:
        said, taken, sent = b"", 0, 0
        for turn in range(300):
            with contextlib.suppress(BlockingIOError):
                sent += os.write(wire.far.ends[OUT], bytes(1 << 16))
            if turn == 50:
                before = sent
                os.write(wire.far.ends[CHANNEL], ENDED)
            if turn == 51:
                os.write(wire.far.ends[CHANNEL], EVENTS)  # and goes on: in order all the same
            wire.turn(1 << 16)
            said += wire.near.read(CHANNEL)
            if ENDED in said:
                assert taken + len(wire.near.read(OUT)) >= before
                break
            with contextlib.suppress(BlockingIOError):
                taken += len(os.read(wire.near.ends[OUT], 1 << 12))  # no faster than the child
        for _ in range(5):
            wire.turn(1 << 16)
            said += wire.near.read(CHANNEL)
        assert said == ENDED + EVENTS


def test_what_a_program_sends_is_not_taken_for_the_word_of_the_end():
    text = frame(Ended(0))[4:].decode()
    assert text.encode().startswith(LAST_WORD)
    assert LAST_WORD not in encode({"event": "output", "stream": "stdout", "text": text})


@pytest.mark.parametrize("gone", [CHANNEL, STATUS, OUT])
def test_an_end_that_closes_is_closed_on_the_other_side(gone):
    with Wire() as wire:
        os.close(wire.near.ends[gone])
        wire.near.ends[gone] = os.open(os.devnull, os.O_RDONLY)
        for _ in range(5):
            wire.turn(1 << 16)
        if gone == OUT:
            with pytest.raises(BrokenPipeError):
                os.write(wire.far.ends[OUT], b"x")
        else:
            assert os.read(wire.far.ends[gone], 1) == b""
        assert gone not in wire.near.mux.lines
        assert gone not in wire.far.mux.lines


def test_a_stream_that_says_nothing_is_taken_for_lost():
    now = [0.0]
    with Wire(clock=lambda: now[0]) as wire:
        for _ in range(20):  # an idle stream that lives
            now[0] += SILENCE_S / 3
            for _ in range(4):
                wire.turn(1 << 16)
        assert wire.near.mux.lost == wire.far.mux.lost == ""
        for _ in range(4):
            now[0] += SILENCE_S / 3
            wire.near.mux.step(0)
        assert wire.near.mux.lost == f"it does not answer, nothing has come for {SILENCE_S:g} s"


def test_bytes_that_are_none_of_ours_end_the_stream():
    with Wire() as wire:
        wire.a.send(b"motd: the cluster is down on Monday")
        wire.near.mux.step(0)
        assert "something else" in wire.near.mux.lost


def recorded() -> bytes:
    """All that a far end says in a short run."""
    ours, theirs = socket.socketpair()
    far = Side(theirs, far=True)
    far.mux.say(MESSAGE, 0, frame(Ready("2.13", "3.11", ())))
    far.mux.say(OPEN, CHANNEL, frame(SpareMade(1)))
    said = (CHANNEL, EVENTS + ENDED), (OUT, PRINTED), (STATUS, frame(Exited(3)))
    for number, data in said:
        os.write(far.ends[number], data)
    for number, end in far.ends.items():
        os.close(end)
        far.ends[number] = os.open(os.devnull, os.O_RDONLY)
    while far.mux.lines:
        far.mux.step(0)
    far.close()
    with ours:
        return ours.recv(1 << 16)


def host_sees(stream: bytes) -> tuple[list, bytes, bytes, list]:
    """What host code reads if no more than this comes: control, channel, stdout, status."""
    control, theirs = socket.socketpair()
    (source, feed), (unread, sink) = os.pipe(), os.pipe()
    os.write(feed, stream)
    os.close(feed)

    def carry() -> None:
        with theirs:
            carrier = Carrier(theirs, source, sink)
            assert carrier.carry(b"") != ""
            carrier.report_lost("cut")

    thread = threading.Thread(target=carry)
    thread.start()
    said, texts = b"", {}
    with control, selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if key.fileobj is control:
                    data, received, _, _ = socket.recv_fds(control, 1 << 16, 4)
                    said += data
                    for end in received:
                        texts[end] = b""
                        selector.register(end, selectors.EVENT_READ)
                else:
                    data = os.read(key.fd, 1 << 16)
                    texts[key.fd] += data
                if not data:  # to the end of each: none is left open
                    selector.unregister(key.fileobj)
    thread.join()
    for descriptor in (source, unread, sink, *texts):
        os.close(descriptor)
    channel, status, out, _ = texts.values() or (b"",) * 4
    return messages(said), channel, out, messages(status)


def test_a_session_cut_at_any_byte_is_whole_or_told_as_lost():
    stream = recorded()
    whole = host_sees(stream)
    expected = [Ready("2.13", "3.11", ()), SpareMade(1)]
    assert whole == ([*expected, Failed("cut")], EVENTS + ENDED, PRINTED, [Exited(3)])
    for offset in range(len(stream)):
        control, channel, out, status = host_sees(stream[:offset])
        assert control == [*expected[: len(control) - 1], Failed("cut")]
        assert (EVENTS + ENDED).startswith(channel)
        assert PRINTED.startswith(out)
        if channel.endswith(ENDED):
            assert out == PRINTED
        if len(control) == 3 and status[0] == Exited(3):
            assert (channel, out) == (EVENTS + ENDED, PRINTED)
        elif len(control) == 3:
            assert status == [Exited(70, sentence="cut")]
