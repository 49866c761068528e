"""Typed Go clients send built-in objects as protobuf."""

import json

import pytest

from fairlead.server import protobuf
from fairlead.server.app import Server
from fairlead.server.encoding import BadJSON


def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def envelope(api_version, kind, raw):
    return protobuf.MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_an_object_is_read_by_its_field_numbers():
    port = field(1, "http") + field(3, 80) + field(4, field(1, 1) + field(3, "web"))
    metadata = field(1, "s") + field(11, field(1, "app") + field(2, "x")) + field(8, b"")
    body = envelope("v1", "Service", field(1, metadata) + field(2, field(1, port)))
    assert protobuf.decode(body) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "labels": {"app": "x"}, "creationTimestamp": None},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
    }


def test_an_embedded_message_has_no_name_in_json():
    volume = field(1, "v") + field(2, field(2, b""))
    pod = field(1, field(1, "p")) + field(2, field(1, volume))
    assert protobuf.decode(envelope("v1", "Pod", pod))["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


@pytest.mark.parametrize(
    "body", [b"", b"{}", protobuf.MAGIC, protobuf.MAGIC + b"\xff" * 20, protobuf.MAGIC + b"\x12\x7f"]
)
def test_what_is_no_message_is_refused(body):
    with pytest.raises(BadJSON):
        protobuf.decode(body)


async def test_a_config_map_is_created_from_protobuf():
    raw = field(1, field(1, "a")) + field(2, field(1, "k") + field(2, "v"))
    headers = {"Content-Type": protobuf.MEDIA_TYPE}
    body = envelope("v1", "ConfigMap", raw)
    reply = (
        await Server().transport().request("POST", "/api/v1/namespaces/default/configmaps", headers=headers, body=body)
    )
    assert (reply.status, json.loads(reply.body)["data"]) == (201, {"k": "v"})
