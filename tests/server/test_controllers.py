"""Tests of the garbage collector and the namespace controller."""

import json

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


async def make(transport, name, *owners, blocks_deletion=False, path=MAPS):
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"]}
        | ({"blockOwnerDeletion": True} if blocks_deletion else {})
        for o in owners
    ]
    body = {"metadata": {"name": name, **({"ownerReferences": references} if references else {})}}
    return json.loads((await transport.request(HttpRequest("POST", path, body=json.dumps(body).encode()))).body)


async def names(transport):
    decoded = json.loads((await transport.request(HttpRequest("GET", MAPS))).body)
    return [item["metadata"]["name"] for item in decoded["items"]]


def played(main, *controllers):
    async def run():
        await main(Server(virtual.world(), controllers=controllers).transport())

    virtual.run(run())


def test_dependents_are_deleted_with_their_last_owner():
    async def main(transport):
        a, b = await make(transport, "a"), await make(transport, "b")
        child = await make(transport, "child", a, b)
        await make(transport, "grandchild", child)
        await transport.request(HttpRequest("DELETE", f"{MAPS}/a"))
        assert await names(transport) == ["b", "child", "grandchild"]
        decoded = json.loads((await transport.request(HttpRequest("GET", f"{MAPS}/child"))).body)
        assert [r["name"] for r in decoded["metadata"]["ownerReferences"]] == ["b"]
        await transport.request(HttpRequest("DELETE", f"{MAPS}/b"))
        assert await names(transport) == []

    played(main, "gc")


def test_an_object_created_for_a_deleted_owner_is_deleted():
    async def main(transport):
        a = await make(transport, "a")
        await transport.request(HttpRequest("DELETE", f"{MAPS}/a"))
        await make(transport, "late", a)
        assert await names(transport) == []

    played(main, "gc")


def test_foreground_deletion_deletes_the_owner_last():
    async def main(transport):
        a = await make(transport, "a")
        await make(transport, "child", a, blocks_deletion=True)
        await transport.request(
            HttpRequest(
                "PATCH",
                f"{MAPS}/child",
                headers={"Content-Type": "application/merge-patch+json"},
                body=b'{"metadata":{"finalizers":["example.com/f"]}}',
            )
        )
        await transport.request(HttpRequest("DELETE", f"{MAPS}/a", query={"propagationPolicy": "Foreground"}))
        assert await names(transport) == ["a", "child"]
        await transport.request(
            HttpRequest(
                "PATCH",
                f"{MAPS}/child",
                headers={"Content-Type": "application/merge-patch+json"},
                body=b'{"metadata":{"finalizers":null}}',
            )
        )
        assert await names(transport) == []

    played(main, "gc")


def test_orphan_deletion_keeps_dependents_without_their_owner():
    async def main(transport):
        a = await make(transport, "a")
        await make(transport, "child", a)
        await transport.request(HttpRequest("DELETE", f"{MAPS}/a", query={"propagationPolicy": "Orphan"}))
        assert await names(transport) == ["child"]
        decoded = json.loads((await transport.request(HttpRequest("GET", f"{MAPS}/child"))).body)
        assert "ownerReferences" not in decoded["metadata"]

    played(main, "gc")


def test_without_gc_dependents_stay():
    async def main(transport):
        a = await make(transport, "a")
        await make(transport, "child", a)
        await transport.request(HttpRequest("DELETE", f"{MAPS}/a"))
        assert await names(transport) == ["child"]

    played(main)


def test_a_terminating_namespace_is_removed_when_it_is_empty():
    async def main(transport):
        await transport.request(HttpRequest("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"n"}}'))
        await make(transport, "a", path="/api/v1/namespaces/n/configmaps")
        await transport.request(HttpRequest("DELETE", "/api/v1/namespaces/n"))
        assert (await transport.request(HttpRequest("GET", "/api/v1/namespaces/n"))).status == 404
        assert (await transport.request(HttpRequest("GET", "/api/v1/namespaces/n/configmaps/a"))).status == 404

    played(main, "namespace")


def test_an_unknown_controller_is_rejected():
    with pytest.raises(ValueError, match="no such controller: nope"):
        Server(controllers=["nope"])
