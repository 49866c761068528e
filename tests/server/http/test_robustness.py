"""Tests that malformed input gets a 4xx with a reason, or a real server's plain 500, and the server keeps serving."""

import json
import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

MAPS = "/api/v1/namespaces/default/configmaps"
TYPES = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
]


def create_server():
    server = Server()
    body = json.dumps({"metadata": {"name": "a"}, "data": {"k": "v"}}).encode()
    assert send(server, "POST", MAPS, body).status == 201
    return server


def send(server, method, path, body=b"", kind="application/json", **query):
    headers = {"content-type": kind, "user-agent": "test"}
    return server.respond(Request(method, path, {k: [v] for k, v in query.items()}, headers, body))


def nested(depth):
    return b'{"metadata":{"name":"n"},"data":' + b'{"k":' * depth + b"1" + b"}" * depth + b"}"


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % (i + 1, i + 1, i, i, i, i, i, i, i, i, i)
    for i in range(ord("a"), ord("j"))
)


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"{", "application/json", 400),
        (b'{"metadata":{"name":"n\x00"}}', "application/json", 400),
        (nested(5_000), "application/json", 400),
        (nested(200_000), "application/json", 400),
        (nested(900), "application/json", 400),
        (b'{"metadata":{"name":"n","generation":' + b"9" * 5_000 + b"}}", "application/json", 400),
        (b'{"metadata":{"name":"n","generation":1e400}}', "application/json", 400),
        (b'{"metadata":{"name":"n","generation":NaN}}', "application/json", 400),
        (b"\xff\xfe\x00", "application/json", 400),
        (b"[" * 10_000, "application/yaml", 400),
        (BOMB, "application/yaml", 400),
        (b'{"metadata":{"name":"n"}}', "text/plain", 415),
        (b'{"metadata":{"name":"n"}}', "application/vnd.kubernetes.protobuf", 400),
        (b"x" * (3 * 1024 * 1024 + 1), "application/json", 413),
    ],
)
def test_a_malformed_body_is_rejected_with_a_status(body, kind, code):
    server = create_server()
    response = send(server, "POST", MAPS, body, kind)
    assert (response.status, json.loads(response.body)["code"]) == (code, code)
    assert send(server, "GET", f"{MAPS}/a").status == 200


@pytest.mark.parametrize("size", [10_001, 20_000])
def test_a_json_patch_with_too_many_operations_is_rejected(size):
    body = json.dumps([{"op": "test", "path": "/data/k", "value": "v"}] * size).encode()
    assert send(create_server(), "PATCH", f"{MAPS}/a", body, "application/json-patch+json").status == 413


FUZZED = create_server()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    kind=st.sampled_from(TYPES),
    body=st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=4),
                st.dictionaries(
                    st.sampled_from(
                        ["metadata", "data", "name", "op", "path", "value", "kind", "apiVersion", "labels"]
                    ),
                    inner,
                    max_size=5,
                ),
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_no_body_causes_an_internal_error(method, kind, body):
    logging.disable(logging.CRITICAL)
    try:
        send(FUZZED, "POST", MAPS, b'{"metadata":{"name":"a"}}')
        path = MAPS if method == "POST" else f"{MAPS}/a"
        response = send(FUZZED, method, path, body, kind, fieldManager="m")
    finally:
        logging.disable(logging.NOTSET)
    if response.status >= 500:  # only what a real server leaves unclassified too
        assert "reason" not in json.loads(response.body), response.body
    assert send(FUZZED, "GET", MAPS).status == 200


@settings(max_examples=200, deadline=None)
@given(path=st.text(alphabet="/apisv1namespaceconfigmaps.%2e:?", max_size=40))
def test_no_path_causes_an_internal_error(path):
    response = send(FUZZED, "GET", "/" + path)
    if response.status >= 500:  # a namespace '..' is, on a real server too
        assert "reason" not in json.loads(response.body), response.body
