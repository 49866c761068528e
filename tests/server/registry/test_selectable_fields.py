"""What a definition may select by, and where its rules may point."""

import json

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

STRING = {"type": "string"}


def refused(version, **properties):
    """The causes that a definition with such a version is refused with."""
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
    answer = json.loads(
        Server().respond(Request("POST", path, {}, {"user-agent": "t"}, json.dumps(body).encode())).body
    )
    return [f"{cause['field']}: {cause['message']}" for cause in answer.get("details", {}).get("causes", ())]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (".spec.o", "must point to a field of type string, boolean or integer."),
        (".spec.b", "is an invalid path: does not refer to a valid field"),
        (".metadata.name", "is an invalid path: does not refer to a valid field"),
        ("spec.a", "is an invalid path: expected [ or . but got: spec"),
        (".spec.a[0]", "is an invalid path: array notation is not allowed"),
    ],
)
def test_a_selectable_field_is_a_scalar_of_the_schema(path, told):
    (cause,) = refused({"selectableFields": [{"jsonPath": path}]}, a=STRING, o={"type": "object"})
    assert cause.startswith(f'spec.selectableFields[0].jsonPath: Invalid value: "{path}": {told}')


def test_selectable_fields_are_few_and_each_once():
    assert refused({"selectableFields": [{"jsonPath": ".spec.a"}]}, a=STRING) == []
    assert refused({"selectableFields": [{"jsonPath": ".spec.a"}] * 2}, a=STRING) == [
        'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"'
    ]
    many = {f"a{i}": STRING for i in range(9)}
    assert refused({"selectableFields": [{"jsonPath": f".spec.{name}"} for name in many]}, **many) == [
        "spec.selectableFields: Too many: 9: must have at most 8 items"
    ]


@pytest.mark.parametrize("path", [".zz", "b", ".b[0]"])
def test_a_rule_points_to_a_field_that_there_is(path):
    pytest.importorskip("cel_expr_python")
    inner = {"b": {"type": "array", "items": STRING}}
    (cause,) = refused(
        {}, a={"type": "object", "properties": inner, "x-kubernetes-validations": [{"rule": "true", "fieldPath": path}]}
    )
    assert cause.endswith(f'.x-kubernetes-validations[0].fieldPath: Invalid value: "{path}": must be a valid path')
