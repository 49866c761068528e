"""Tests of the JSONPaths of printer columns. The expected values are those of a real server."""

import json

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.tables.columns import first_value

WIDGET = {"spec": {"m": {"a.b": "AB"}, "l": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (r".spec.m['a\.b']", "AB"),
        (r".spec.m.a\.b", "AB"),
        (".spec.m['a.b']", None),
        (".spec.m.*", "AB"),
        (".spec['m']", {"a.b": "AB"}),
        (".spec.l[0:1].k", "x"),
        (".spec.l[-1:].v", 2),
        (".spec.l[*].v", 1),
        (".spec.l[?(@.k=='y')].v", 2),
        (".spec.l[5].v", None),
        (".spec['m','l']", {"a.b": "AB"}),
        (".spec['none', 'l'][1].k", "y"),
        (".spec.l[1,0].k", "y"),
        ("..v", 1),
        (".spec..k", "x"),
        (".spec.l[0:9].k", None),  # beyond the end is nowhere
        (".spec.l[0:2:2].k", "x"),
        (".spec.m[0]", None),
        (".spec.l[?(@.v>1)].k", "y"),
        (".spec.l[?(@.v!=1)].k", "y"),
        ('.spec.l[?(@.k=="y")].v', 2),
        (".spec.l[?(@.none)].v", None),
        (".spec.l[?(@.v)].v", 1),
        (".spec.l[?(@.v=='1')].k", None),  # a number and a text are not compared
    ],
)
def test_a_column_shows_the_first_value_at_its_path(path, value):
    assert first_value(WIDGET, path) == value


def test_objects_without_a_namespace_are_not_selected_by_one():
    server, path = Server(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def ask(method, path, query=None, body=None):
        encoded = json.dumps(body).encode() if body else b""
        answer = server.respond(Request(method, path, query or {}, {"user-agent": "t"}, encoded))
        return answer.status, json.loads(answer.body)

    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "ws.example.com"}, "spec": spec}
    assert ask("POST", path, body={"apiVersion": "apiextensions.k8s.io/v1", **definition})[0] == 201
    status, body = ask("GET", "/apis/example.com/v1/ws", {"fieldSelector": ["metadata.namespace=a"]})
    assert (status, body["message"]) == (400, "field label not supported: metadata.namespace")
