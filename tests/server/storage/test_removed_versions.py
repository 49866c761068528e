"""Tests of objects stored at a version that their CRD no longer has: they cannot be read until the version is back.

The recorded case `crd-removed-storage-version` shows a real server's responses. This file also tests that lists and
watches of the whole kind get a 429. On a real server that takes too long for a recorded case.
"""

import json

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = f"{DEFINITION}/widgets.example.com"
NEW = "/apis/example.com/v2/namespaces/default/widgets"
MERGE = {"content-type": "application/merge-patch+json"}


def version(name, *, is_storage=False, is_served=True):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"name": name, "served": is_served, "storage": is_storage, "schema": schema}


def send(server, method, path, body=None, headers=None, **query):
    encoded_body = json.dumps(body).encode() if body is not None else b""
    answer = server.respond(Request(method, path, {k: [v] for k, v in query.items()}, headers or {}, encoded_body))
    return answer.status, json.loads(answer.body)


def define(server, *versions):
    assert send(server, "PATCH", NAME, {"spec": {"versions": versions}}, MERGE)[0] == 200


def remove_v1(server):
    """Create a Widget that is stored at v1, then remove v1 from the CRD."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    versions = [version("v1", is_storage=True), version("v2")]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}}
    assert (
        send(server, "POST", DEFINITION, {"apiVersion": "apiextensions.k8s.io/v1", **definition, "spec": spec})[0]
        == 201
    )
    old = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "old"}}
    assert send(server, "POST", NEW.replace("v2", "v1"), old)[0] == 201
    define(server, version("v1", is_served=False), version("v2", is_storage=True))
    assert send(server, "PATCH", f"{NAME}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)[0] == 200
    define(server, version("v2", is_storage=True))


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}, {"watch": "true"}])
def test_list_and_watch_of_the_kind_get_429(namespace, query):
    server = Server()
    remove_v1(server)
    code, answer = send(server, "GET", NEW.replace("default", namespace), **query)
    assert (code, answer["reason"], answer["details"]) == (429, "TooManyRequests", {"retryAfterSeconds": 1})
    assert answer["message"] == (
        "storage is (re)initializing: failed to list example.com/v2, Kind=Widget: "
        "request to convert CR from an invalid group/version: example.com/v1"
    )


def test_objects_stay_unreadable_after_a_restart(tmp_path):
    server = Server(data=tmp_path)
    remove_v1(server)
    server.close()
    restarted = Server(data=tmp_path)
    assert [send(restarted, "GET", path)[0] for path in (NEW, f"{NEW}/old")] == [429, 500]
    restarted.close()


def test_objects_are_readable_when_the_version_is_back():
    server = Server()
    remove_v1(server)
    define(server, version("v1"), version("v2", is_storage=True))
    assert send(server, "GET", f"{NEW}/old")[1]["apiVersion"] == "example.com/v2"
    assert [item["metadata"]["name"] for item in send(server, "GET", NEW)[1]["items"]] == ["old"]


def test_deleted_crd_stays_until_its_instances_are_readable():
    server = Server()
    remove_v1(server)
    assert send(server, "DELETE", NAME)[0] == 200
    assert send(server, "GET", NAME)[0] == 200
    define(server, version("v1"), version("v2", is_storage=True))
    assert send(server, "GET", NAME)[0] == 404
