"""Tests of lists: pages of one snapshot, options and tables."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

MAPS = "/api/v1/namespaces/default/configmaps"


def send(server, method, path, body=None, **query):
    encoded_body = json.dumps(body).encode() if body is not None else b""
    answer = server.respond(
        Request(method, path, {k: [v] for k, v in query.items()}, {"user-agent": "t"}, encoded_body)
    )
    return answer.status, json.loads(answer.body)


def create(server, name):
    assert send(server, "POST", MAPS, {"metadata": {"name": name}})[0] == 201


writes = st.lists(st.tuples(st.sampled_from(["create", "delete"]), st.sampled_from("abcdefgh")), max_size=6)


@settings(max_examples=40, deadline=None)
@given(first=st.sets(st.sampled_from("abcdefgh"), min_size=1), limit=st.integers(1, 4), between=writes)
def test_all_pages_of_a_list_show_one_snapshot(first, limit, between):
    server = Server()
    for name in first:
        create(server, name)
    listed_names, token, writing = [], "", iter(between)
    while True:
        _, page = send(server, "GET", MAPS, limit=str(limit), **({"continue": token} if token else {}))
        listed_names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        for verb, name in [next(writing, None) or ("none", "")]:
            if verb == "create":
                send(server, "POST", MAPS, {"metadata": {"name": name}})
            elif verb == "delete":
                send(server, "DELETE", f"{MAPS}/{name}")
    assert listed_names == sorted(first)


def test_deletecollection_rejects_an_expired_version():
    server = Server()
    create(server, "a")
    _, before = send(server, "GET", MAPS)
    create(server, "b")
    server.store.compact()
    code, rejection = send(server, "DELETE", MAPS, resourceVersion=before["metadata"]["resourceVersion"])
    assert (code, rejection["reason"]) == (410, "Expired")
    assert [item["metadata"]["name"] for item in send(server, "GET", MAPS)[1]["items"]] == ["a", "b"]


def test_an_expired_continue_token_gets_a_new_one():
    server = Server()
    for name in "abcd":
        create(server, name)
    _, page = send(server, "GET", MAPS, limit="2")
    send(server, "DELETE", f"{MAPS}/c")
    server.store.compact()
    code, rejection = send(server, "GET", MAPS, limit="2", **{"continue": page["metadata"]["continue"]})
    assert (code, rejection["reason"]) == (410, "Expired")
    code, remainder = send(server, "GET", MAPS, limit="2", **{"continue": rejection["metadata"]["continue"]})
    assert (code, [item["metadata"]["name"] for item in remainder["items"]]) == (200, ["d"])


def test_remaining_item_count_is_set_without_a_selector_only():
    server = Server()
    for name in "abcd":
        create(server, name)
    assert send(server, "GET", MAPS, limit="1")[1]["metadata"]["remainingItemCount"] == 3
    assert "remainingItemCount" not in send(server, "GET", MAPS, limit="1", labelSelector="!x")[1]["metadata"]


def token(**token_fields):
    return base64.urlsafe_b64encode(json.dumps(token_fields).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"timeoutSeconds": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        ({"continue": token(v="meta.k8s.io/v2", rv=1, start="a")}, 400, "encoded version meta.k8s.io/v2"),
        ({"continue": token(v="meta.k8s.io/v1", rv=1, start="../x")}, 400, "continue key is not valid: ../x"),
        ({"continue": token()}, 400, "server does not recognize this encoded version "),
        ({"continue": "x", "resourceVersion": "1"}, 400, "illegal base64 data at input byte 0"),
        ({"continue": token(v="meta.k8s.io/v1"), "resourceVersion": "1"}, 400, "(version meta.k8s.io/v1)"),
        ({"limit": str(2**63)}, 400, f'strconv.ParseInt: parsing "{2**63}": value out of range'),
        ({"resourceVersion": str(2**64)}, 400, f'strconv.ParseUint: parsing "{2**64}": value out of range'),
        ({"resourceVersion": "-1"}, 400, 'strconv.ParseUint: parsing "-1": invalid syntax'),
    ],
)
def test_a_list_with_invalid_options_is_rejected(query, code, message):
    status, answer = send(Server(), "GET", MAPS, **query)
    assert status == code
    assert answer["message"].endswith(message)


def test_another_page_follows_if_any_object_is_left():
    server = Server()
    for name in "abc":
        create(server, name)
    _, page = send(server, "GET", MAPS, limit="1", fieldSelector="metadata.name=a")
    assert [item["metadata"]["name"] for item in page["items"]] == ["a"]
    token = page["metadata"]["continue"]
    _, page = send(server, "GET", MAPS, limit="1", fieldSelector="metadata.name=a", **{"continue": token})
    assert (page["items"], "continue" in page["metadata"]) == ([], False)
    _, page = send(server, "GET", MAPS, limit="1", fieldSelector="metadata.name=c")
    assert "continue" not in page["metadata"]


def test_include_object_selects_what_a_row_carries():
    accept = {"user-agent": "t", "accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    answer = Server().respond(Request("GET", MAPS, {"includeObject": ["X"]}, accept, b""))
    assert answer.status == 400
    assert b"must be 'Metadata', 'Object', 'None', or empty" in answer.body


def test_a_list_at_version_0_ignores_the_limit():
    server = Server()
    for name in "abc":
        create(server, name)
    _, page = send(server, "GET", MAPS, limit="1", resourceVersion="0")
    assert [item["metadata"]["name"] for item in page["items"]] == ["a", "b", "c"]
    assert "continue" not in page["metadata"]


def test_tables_and_metadata_have_the_requested_api_version():
    server = Server()
    create(server, "a")
    for shape in ("Table", "PartialObjectMetadataList"):
        accept = {"user-agent": "t", "accept": f"application/json;as={shape};g=meta.k8s.io;v=v1beta1"}
        decoded = json.loads(server.respond(Request("GET", MAPS, {}, accept, b"")).body)
        assert (decoded["kind"], decoded["apiVersion"]) == (shape, "meta.k8s.io/v1beta1")


@pytest.mark.parametrize(
    ("path", "obj", "cells"),
    [
        (
            "/api/v1/namespaces/default/endpoints",
            {"subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}]}]},
            ["10.0.0.1:80,[fd00::1]:80"],
        ),
        ("/api/v1/namespaces/default/resourcequotas", {"spec": {"hard": {"pods": "3"}}}, ["", ""]),
        ("/apis/apps/v1/namespaces/default/controllerrevisions", {"revision": 3, "data": {"a": 1}}, ["<none>", 3]),
    ],
)
def test_a_table_has_the_columns_of_its_kind(path, obj, cells):
    server = Server()
    assert send(server, "POST", path, {"metadata": {"name": "a"}, **obj})[0] == 201
    accept = {"user-agent": "t", "accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    row = json.loads(server.respond(Request("GET", path, {}, accept, b"")).body)["rows"][0]
    assert row["cells"][1:-1] == cells


@pytest.mark.parametrize(
    "has_type_meta", [{}, {"kind": "ConfigMap", "apiVersion": "v1"}, {"kind": "ConfigMap"}], ids=str
)
def test_list_items_omit_api_version_and_kind(has_type_meta):
    server = Server()
    for obj in ({"metadata": {"name": "a"}, **has_type_meta}, {**has_type_meta, "metadata": {"name": "b"}}):
        assert send(server, "POST", MAPS, obj)[0] == 201
    items = send(server, "GET", MAPS)[1]["items"]
    assert [sorted(item) for item in items] == [["metadata"]] * 2


def test_finalizers_of_a_namespace_need_a_domain():
    status, answer = send(
        Server(), "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}, "spec": {"finalizers": ["bad"]}}
    )
    assert status == 422
    assert answer["details"]["causes"][0]["field"] == "spec.finalizers"
