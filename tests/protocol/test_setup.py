"""What the host and a zygote say to each other crosses the wire unchanged."""

import pytest
from hypothesis import given

from tensortutor.protocol.framing import Decoder, ProtocolError, encode
from tensortutor.protocol.setup import KINDS, Ready, message_from_json, message_to_json
from tests.protocol.strategies import JSON, messages


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_message_crosses_the_wire_unchanged(kind):
    @given(messages(kind))
    def crosses(message):
        (data,) = Decoder().feed(encode(message_to_json(message)))
        assert message_from_json(data) == message

    crosses()


@given(JSON)
def test_any_other_name_is_refused(name):
    with pytest.raises(ProtocolError, match="there is no message"):
        message_from_json({"say": name})


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "there is no message None"),
        ({"say": "spawn"}, "there is no message 'spawn'"),
        ({"say": "kill", "pid": 1}, "Kill has no field 'pid'"),
        ({"say": "failed"}, "sentence"),
        ({"say": "ready", "torch": "", "python": "", "devices": [1]}, "DeviceInfo is not an obj"),
        ({"say": "exited", "code": "1"}, "Exited.code is not of type int"),
    ],
)
def test_a_wrong_message_is_refused_by_name(data, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        message_from_json(data)


def test_devices_arrive_as_devices():
    ready = Ready("2.13.0", "3.11.7", ())
    data = message_to_json(ready)
    data["devices"] = [{"name": "cuda:0", "label": "H200"}]
    (device,) = message_from_json(data).devices
    assert (device.name, device.label, device.total, device.free) == ("cuda:0", "H200", 0, 0)
