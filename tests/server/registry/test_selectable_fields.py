"""Tests of the selectable fields of a CRD, and of the field paths of its CEL rules."""

import json

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

STRING = {"type": "string"}


def errors(version, **properties):
    """Return the field errors of a definition with this version and these properties of its spec."""
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema, **version}]
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    response = json.loads(
        Server().respond(Request("POST", path, {}, {"user-agent": "t"}, json.dumps(body).encode())).body
    )
    return [f"{cause['field']}: {cause['message']}" for cause in response.get("details", {}).get("causes", ())]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".spec.o", "must point to a field of type string, boolean or integer."),
        (".spec.b", "is an invalid path: does not refer to a valid field"),
        (".metadata.name", "is an invalid path: does not refer to a valid field"),
        ("spec.a", "is an invalid path: expected [ or . but got: spec"),
        (".spec.a[0]", "is an invalid path: array notation is not allowed"),
    ],
)
def test_selectable_field_must_be_a_scalar_of_the_schema(path, message):
    (error,) = errors({"selectableFields": [{"jsonPath": path}]}, a=STRING, o={"type": "object"})
    assert error.startswith(f'spec.selectableFields[0].jsonPath: Invalid value: "{path}": {message}')


def test_selectable_fields_are_unique_and_at_most_eight():
    assert errors({"selectableFields": [{"jsonPath": ".spec.a"}]}, a=STRING) == []
    assert errors({"selectableFields": [{"jsonPath": ".spec.a"}] * 2}, a=STRING) == [
        'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"'
    ]
    nine_fields = {f"a{i}": STRING for i in range(9)}
    assert errors({"selectableFields": [{"jsonPath": f".spec.{name}"} for name in nine_fields]}, **nine_fields) == [
        "spec.selectableFields: Too many: 9: must have at most 8 items"
    ]


@pytest.mark.parametrize("path", [".zz", "b", ".b[0]"])
def test_field_path_of_a_rule_must_exist(path):
    pytest.importorskip("cel_expr_python")
    inner = {"b": {"type": "array", "items": STRING}}
    (error,) = errors(
        {}, a={"type": "object", "properties": inner, "x-kubernetes-validations": [{"rule": "true", "fieldPath": path}]}
    )
    assert error.endswith(f'.x-kubernetes-validations[0].fieldPath: Invalid value: "{path}": must be a valid path')
