"""Every event and every job crosses the wire unchanged; anything else is refused by name."""

import dataclasses
import json
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortutor.protocol.events import (
    KINDS,
    Event,
    Finished,
    Frame,
    Judged,
    Raised,
    Verdict,
    event_from_json,
    event_to_json,
)
from tensortutor.protocol.framing import Decoder, ProtocolError, encode
from tensortutor.protocol.jobs import Job, Judge, Limits
from tensortutor.protocol.wire import from_wire, to_wire
from tests.protocol.strategies import JSON, messages

FINISHED = event_to_json(Finished("done", 0, "It ran to its end.", 12.5))


def test_every_event_has_a_name_on_the_wire():
    assert set(KINDS.values()) == set(typing.get_args(Event))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_event_crosses_the_wire_unchanged(kind):
    @settings(max_examples=30)  # of each of some forty kinds
    @given(messages(kind))
    def crosses(event):
        (message,) = Decoder().feed(encode(event_to_json(event)))
        assert event_from_json(message) == event

    crosses()


@given(messages(Job))
def test_a_job_crosses_the_wire_unchanged(job):
    (message,) = Decoder().feed(encode(to_wire(job)))
    assert from_wire(Job, message) == job


@given(JSON)
def test_any_json_is_an_event_or_a_protocol_error(data):
    if not isinstance(data, dict):
        data = {"event": data}
    with pytest.raises(ProtocolError, match="there is no event"):
        event_from_json(data)


@given(
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(
        st.sampled_from([f.name for kind in KINDS.values() for f in dataclasses.fields(kind)])
        | st.text(),
        JSON,
        max_size=5,
    ),
)
def test_an_event_with_any_fields_is_itself_or_a_protocol_error(name, fields):
    try:
        event = event_from_json({**fields, "event": name})
    except ProtocolError:
        return
    assert type(event) is KINDS[name]


@given(JSON)
def test_any_json_is_a_job_or_a_protocol_error(data):
    try:
        job = from_wire(Job, data)
    except ProtocolError:
        return
    assert isinstance(job, Job)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"event": "party"}, "there is no event 'party'"),
        ({"event": ["finished"]}, "there is no event"),
        ({"event": None}, "there is no event None"),
        ({"colour": 1}, "Finished has no field 'colour'"),
        ({"code": "0"}, "Finished.code is not of type int"),
        ({"code": True}, "Finished.code is not of type int"),
        ({"code": 0.0}, "Finished.code is not of type int"),
        ({"outcome": None}, "Finished.outcome is not of type str"),
        ({"ms": "12"}, "Finished.ms is not of type float"),
        ({"ms": False}, "Finished.ms is not of type float"),
        ({"ms": 10**400}, "Finished.ms is too large"),
        ({"code": -(10**400)}, "Finished.code is too large"),
    ],
)
def test_a_wrong_field_is_named(change, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        event_from_json({**FINISHED, **change})


def test_a_missing_field_is_named():
    for name in ("outcome", "code", "sentence", "ms"):
        rest = {key: value for key, value in FINISHED.items() if key != name}
        with pytest.raises(ProtocolError, match=name):
            event_from_json(rest)


def test_fields_with_a_default_may_be_left_out():
    assert event_from_json(
        {"event": "verdict", "check": "adds", "passed": True, "seed": 3, "ms": 1}
    ) == Verdict("adds", True, 3, 1.0)


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        (Job, [], "Job is not an object"),
        (Job, {}, "source"),
        (Job, {"source": "", "judge": {"source": ""}}, "filename"),
        (Job, {"source": "", "judge": []}, "Judge is not an object"),
        (Job, {"source": "", "limits": None}, "Limits is not an object"),
        (Job, {"source": "", "limits": {"wall": 1}}, "Limits has no field 'wall'"),
        (Job, {"source": "", "arguments": "abc"}, "Job.arguments is not a list"),
        (Job, {"source": "", "arguments": [1]}, "Job.arguments is not of type str"),
        (Judge, {"source": "", "filename": "", "seeds": [0, "1"]}, "Judge.seeds"),
    ],
)
def test_a_wrong_part_of_a_job_is_named(kind, data, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        from_wire(kind, data)


def test_nested_messages_keep_their_types():
    raised = Raised("ValueError", "no", (Frame("<module>", 3, "f()", 1, 4),), "ValueError: no")
    copy = event_from_json(json.loads(json.dumps(event_to_json(raised))))
    assert isinstance(copy, Raised)
    assert copy.frames == (Frame("<module>", 3, "f()", 1, 4),)
    job = from_wire(Job, to_wire(Job("x = 1", judge=Judge("", "j.py", seeds=(1, 2)))))
    assert job.judge == Judge("", "j.py", seeds=(1, 2))
    assert job.limits == Limits()


def test_a_whole_number_of_milliseconds_arrives_as_a_float():
    finished = event_from_json({**FINISHED, "ms": 12})
    assert isinstance(finished, Finished)
    assert type(finished.ms) is float


@pytest.mark.parametrize(
    ("judged", "ok"),
    [
        (Judged(("a",), ()), True),
        (Judged((), ()), False),
        (Judged(("a",), ("b",)), False),
        (Judged(("a",), (), ("b",)), False),
    ],
)
def test_a_judgement_is_good_when_all_checks_reported_and_passed(judged, ok):
    assert judged.ok is ok


def test_a_part_of_a_verdict_is_cut_where_nobody_reads_on():
    verdict = Verdict("adds", False, 3, 1.0, message="x" * 300_000, hint="short")
    assert verdict.message == "x" * 4000 + " (296,000 more characters)"
    assert verdict.hint == "short"
    assert event_from_json(event_to_json(verdict)) == verdict
