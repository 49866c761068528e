"""Tests that OpenAPI documents equal a real server's for built-in kinds, and follow the CRD of custom kinds."""

import json
import re

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server


async def get(api, path, accept="application/json"):
    response = await api.transport().request(HttpRequest("GET", path, headers={"Accept": accept}))
    assert response.status == 200, response.body
    return json.loads(response.body)


def strip(schema):
    """Return a schema without descriptions, enumerations and markers that change nothing."""
    dropped = ("description", "enum", "x-kubernetes-unions", "x-kubernetes-group-version-kind", "format", "default")
    if isinstance(schema, list):
        return [strip(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if len(schema.get("allOf") or ()) == 1:
        schema = {**{k: v for k, v in schema.items() if k != "allOf"}, **schema["allOf"][0]}
    stripped = {k: strip(v) for k, v in schema.items() if k not in dropped}
    return {
        k: v for k, v in stripped.items() if not (k.endswith(("list-type", "map-type")) and v in ("atomic", "granular"))
    }


@pytest.mark.only("real", reason="it compares the real server's documents with the embedded server's")
@pytest.mark.parametrize("group", ["api/v1", "apis/apps/v1", "apis/rbac.authorization.k8s.io/v1", "apis/batch/v1"])
async def test_schemas_of_built_in_types_equal_the_real_servers(api, group):
    server = Server(World())
    embedded_schemas = json.loads((await server.transport().request(HttpRequest("GET", f"/openapi/v3/{group}"))).body)[
        "components"
    ]["schemas"]
    real_schemas = (await get(api, f"/openapi/v3/{group}"))["components"]["schemas"]
    raw = "io.k8s.apimachinery.pkg.runtime.RawExtension"
    differing = []
    for name, schema in embedded_schemas.items():
        expected = json.loads(
            json.dumps(strip(real_schemas[name])).replace(f'"$ref": "#/components/schemas/{raw}"', '"type": "object"')
        )
        if strip(schema) != expected:
            differing.append(name)
    assert not differing


async def test_every_reference_in_every_document_resolves():
    server = Server(World())
    index = json.loads((await server.transport().request(HttpRequest("GET", "/openapi/v3"))).body)
    for document in index["paths"].values():
        path = document["serverRelativeURL"].partition("?")[0]
        text = (await server.transport().request(HttpRequest("GET", path))).body.decode()
        schemas = json.loads(text)["components"]["schemas"]
        assert not set(re.findall(r'"#/components/schemas/([^"]+)"', text)) - set(schemas)
    text = (await server.transport().request(HttpRequest("GET", "/openapi/v2"))).body.decode()
    assert not set(re.findall(r'"#/definitions/([^"]+)"', text)) - set(json.loads(text)["definitions"])


async def test_hash_of_a_group_changes_with_its_definition():
    server = Server(World())
    transport = server.transport()

    async def hashed():
        paths = json.loads((await transport.request(HttpRequest("GET", "/openapi/v3"))).body)["paths"]
        return paths.get("apis/example.com/v1")

    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert await hashed() is None
    assert (await transport.request(HttpRequest("POST", path, body=json.dumps(definition).encode()))).status == 201
    before = await hashed()
    patch = [{"op": "add", "path": "/spec/names/shortNames", "value": ["wd"]}]
    headers = {"Content-Type": "application/json-patch+json"}
    body = json.dumps(patch).encode()
    response = await transport.request(HttpRequest("PATCH", f"{path}/widgets.example.com", headers=headers, body=body))
    assert response.status == 200
    assert before is not None
    assert await hashed() != before
