"""Tests of built-in objects sent as protobuf, as typed Go clients send them, with a real server's error messages."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.server import protobuf
from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.protobuf import messages

MAPS = "/api/v1/namespaces/default/configmaps"
SERVER = Server()


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    encoded_value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(encoded_value)) + encoded_value


def varint(value):
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def envelope(api_version, kind, raw):
    return protobuf.MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def send(method, path, body, **query):
    parameters = {key: [value] for key, value in query.items()}
    return SERVER.respond(Request(method, path, parameters, {"content-type": protobuf.MEDIA_TYPE}, body))


def status_and_message(answer):
    return answer.status, json.loads(answer.body).get("message")


METADATA = field(1, field(1, "a"))
CONFIG_MAP = METADATA + field(2, field(1, "k") + field(2, "v"))


def test_object_is_decoded_by_field_numbers():
    port = field(1, "http") + field(3, 80) + field(4, field(1, 1) + field(3, "web"))
    metadata = field(1, "s") + field(11, field(1, "app") + field(2, "x")) + field(8, b"")
    body = envelope("v1", "Service", field(1, metadata) + field(2, field(1, port)))
    assert protobuf.unwrap(body, "", "").object() == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "labels": {"app": "x"}, "creationTimestamp": None},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
    }


def test_repeated_message_is_merged_and_numbers_may_be_packed():
    security = field(4, 7) + field(4, varint(8) + varint(2**64 - 1))
    pod = field(2, field(14, security)) + field(2, field(10, "node"))
    assert messages.decode("core.v1.Pod", pod) == {
        "spec": {"securityContext": {"supplementalGroups": [7, 8, -1]}, "nodeName": "node"}
    }


def test_config_map_is_created_updated_and_deleted():
    response = send("POST", MAPS, envelope("v1", "ConfigMap", CONFIG_MAP))
    assert (response.status, json.loads(response.body)["data"]) == (201, {"k": "v"})
    assert send("PUT", f"{MAPS}/a", envelope("v1", "ConfigMap", METADATA)).status == 200
    options = envelope("v1", "DeleteOptions", field(2, field(1, "another")))
    assert send("DELETE", f"{MAPS}/a", options).status == 409
    assert send("DELETE", f"{MAPS}/a", envelope("v1", "DeleteOptions", b"")).status == 200


@pytest.mark.parametrize(("api_version", "kind"), [("", ""), ("", "ConfigMap"), ("a/b/c", "ConfigMap"), ("v1", "")])
def test_envelope_without_version_or_kind_uses_those_of_the_path(api_version, kind):
    assert send("POST", MAPS, envelope(api_version, kind, METADATA), dryRun="All").status == 201


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): {}"
HANDLED = '{} in version "v1" cannot be handled as a ConfigMap: {}'
NO_PREFIX = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", UNRECOGNIZED.format("empty data (<empty>)")),
        (b'{"a":1}', UNRECOGNIZED.format(NO_PREFIX + ' ({"a":1})')),
        (b"k8s\0", UNRECOGNIZED.format("empty body (6b387300)")),
        (b"k8s\0\x0a\x50aa", UNRECOGNIZED.format("unexpected EOF (6b3873000a506161)")),
        (envelope("v1", "ConfigMap", METADATA[:-1]), HANDLED.format("ConfigMap", "unexpected EOF")),
        (
            envelope("v1", "ConfigMap", b"\x08\x01"),
            HANDLED.format("ConfigMap", "proto: wrong wireType = 0 for field ObjectMeta"),
        ),
        (
            envelope("v1", "ConfigMap", b"\x02\x01"),
            HANDLED.format("ConfigMap", "proto: ConfigMap: illegal tag 0 (wire type 2)"),
        ),
        (
            envelope("v1", "Secret", b"\x0c"),
            HANDLED.format("Secret", "proto: Secret: wiretype end group for non-group"),
        ),
        (
            envelope("v1", "Secret", METADATA),
            HANDLED.format("Secret", "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ),
        (
            envelope("v1", "Foo", METADATA),
            HANDLED.format("Foo", f'no kind "Foo" is registered for version "v1" {SCHEME}'),
        ),
        (
            envelope("apps/v1", "ConfigMap", METADATA),
            HANDLED.format("ConfigMap", f'no kind "ConfigMap" is registered for version "apps/v1" {SCHEME}'),
        ),
    ],
)
def test_invalid_object_returns_the_real_servers_message(body, message):
    assert status_and_message(send("POST", MAPS, body)) == (400, message)


def test_invalid_delete_options_return_the_real_servers_message():
    assert status_and_message(send("DELETE", f"{MAPS}/none", b"junk")) == (400, NO_PREFIX)
    invalid_options = envelope("v1", "DeleteOptions", b"\x0c")
    message = "proto: DeleteOptions: wiretype end group for non-group"
    assert status_and_message(send("DELETE", f"{MAPS}/none", invalid_options)) == (400, message)
    assert send("DELETE", f"{MAPS}/none", envelope("apps/v1", "DeleteOptions", b"")).status == 404


def test_nested_schemas_are_decoded_up_to_a_maximum_depth():
    def nested(depth):
        schema = b""
        for _ in range(depth):
            schema = field(29, field(1, "p") + field(2, schema))
        return messages.decode("apiextensions.v1.JSONSchemaProps", schema)

    assert "properties" in nested(90)
    with pytest.raises(protobuf.ProtoError, match="exceeded max depth"):
        nested(3000)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["v1/ConfigMap", "v1/Pod", "v1/DeleteOptions", ""]))
def test_random_bytes_never_return_500(random_bytes, type_name):
    api_version, _, kind = type_name.partition("/")
    body = envelope(api_version, kind, random_bytes) if type_name else protobuf.MAGIC + random_bytes
    for method, path in (("POST", MAPS), ("PUT", f"{MAPS}/x"), ("DELETE", f"{MAPS}/x")):
        assert send(method, path, body, dryRun="All").status < 500
