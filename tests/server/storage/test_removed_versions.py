"""Objects stored at a version that their definition has no more: nobody reads them until it is back.

What a real server answers to each request is in the history `stored-at-a-version-that-went`; that lists and watches of
the whole kind are refused with 429, as there, is held here, where no client has to wait for it.
"""

import json

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = f"{DEFINITION}/widgets.example.com"
NEW = "/apis/example.com/v2/namespaces/default/widgets"
MERGE = {"content-type": "application/merge-patch+json"}


def version(name, *, storage=False, served=True):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"name": name, "served": served, "storage": storage, "schema": schema}


def send(server, method, path, body=None, headers=None, **query):
    data = json.dumps(body).encode() if body is not None else b""
    answer = server.respond(Request(method, path, {k: [v] for k, v in query.items()}, headers or {}, data))
    return answer.status, json.loads(answer.body)


def define(server, *versions):
    assert send(server, "PATCH", NAME, {"spec": {"versions": versions}}, MERGE)[0] == 200


def forget_v1(server):
    """A Widget of v1, whose version goes before anyone has written it anew."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    versions = [version("v1", storage=True), version("v2")]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    named = {"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}}
    assert send(server, "POST", DEFINITION, {"apiVersion": "apiextensions.k8s.io/v1", **named, "spec": spec})[0] == 201
    old = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "old"}}
    assert send(server, "POST", NEW.replace("v2", "v1"), old)[0] == 201
    define(server, version("v1", served=False), version("v2", storage=True))
    assert send(server, "PATCH", f"{NAME}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)[0] == 200
    define(server, version("v2", storage=True))


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}, {"watch": "true"}])
def test_the_kind_cannot_be_listed_or_watched(namespace, query):
    server = Server()
    forget_v1(server)
    code, answer = send(server, "GET", NEW.replace("default", namespace), **query)
    assert (code, answer["reason"], answer["details"]) == (429, "TooManyRequests", {"retryAfterSeconds": 1})
    assert answer["message"] == (
        "storage is (re)initializing: failed to list example.com/v2, Kind=Widget: "
        "request to convert CR from an invalid group/version: example.com/v1"
    )


def test_a_restart_does_not_forget_it(tmp_path):
    server = Server(data=tmp_path)
    forget_v1(server)
    server.close()
    again = Server(data=tmp_path)
    assert [send(again, "GET", path)[0] for path in (NEW, f"{NEW}/old")] == [429, 500]
    again.close()


def test_all_is_well_when_the_version_is_back():
    server = Server()
    forget_v1(server)
    define(server, version("v1"), version("v2", storage=True))
    assert send(server, "GET", f"{NEW}/old")[1]["apiVersion"] == "example.com/v2"
    assert [item["metadata"]["name"] for item in send(server, "GET", NEW)[1]["items"]] == ["old"]


def test_a_definition_whose_instances_cannot_be_read_does_not_go_until_they_can():
    server = Server()
    forget_v1(server)
    assert send(server, "DELETE", NAME)[0] == 200
    assert send(server, "GET", NAME)[0] == 200
    define(server, version("v1"), version("v2", storage=True))
    assert send(server, "GET", NAME)[0] == 404
