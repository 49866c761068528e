"""`labels: {}` of an apply: what no object keeps is still a change, so the entry's time moves."""

import asyncio
import json

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.testing import virtual

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VERSION = {
    "served": True,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [{**VERSION, "name": "v1", "storage": True}, {**VERSION, "name": "v2", "storage": False}],
    },
}


async def versions_of(version, metadata, waits):
    """The resourceVersions after one and the same apply, sent again after each of these waits."""
    transport = Server(virtual.world(), tokens=["t"]).transport()

    async def send(method, path, kind, body):
        headers = {"Content-Type": kind, "Authorization": "Bearer t"}
        query = {"fieldManager": "m"}
        answer = await transport.request(
            HttpRequest(method, path, query=query, body=json.dumps(body).encode(), headers=headers)
        )
        assert answer.status in (200, 201), answer.body
        return json.loads(answer.body)["metadata"]

    await send("POST", DEFINITIONS, "application/json", DEFINITION)
    path = f"/apis/example.com/{version}/namespaces/default/widgets/w"
    body = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "w", **metadata}}
    found = []
    for wait in waits:
        await asyncio.sleep(wait)
        found.append((await send("PATCH", path, "application/apply-patch+yaml", body))["resourceVersion"])
    return found


@pytest.mark.parametrize("empty", [{"labels": {}}, {"annotations": {}}, {"finalizers": None}])
@pytest.mark.parametrize(
    ("version", "stored"),
    [("v1", 3), ("v2", 2)],
    ids=["the storage version keeps it and reads it away", "another version moves the time, once a second"],
)
def test_an_empty_map_applied_again_is_stored_again(version, stored, empty):
    assert len(set(virtual.run(versions_of(version, empty, (0, 0, 1))))) == stored


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_is_kept_is_not_stored_again(version):
    assert len(set(virtual.run(versions_of(version, {"labels": {"a": "b"}}, (0, 0, 1))))) == 1
