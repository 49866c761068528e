"""Tests that the function calls and object reads of a write do not depend on the number of other objects."""

import asyncio
import gc
import json
import sys
import weakref

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = {"Content-Type": "application/apply-patch+yaml"}


class Bucket(dict):
    """The objects of a namespace. It counts how often they are scanned."""

    scans = 0

    def __iter__(self):
        Bucket.looks += len(self)
        return super().__iter__()

    def values(self):
        Bucket.looks += len(self)
        return super().values()

    def items(self):
        Bucket.looks += len(self)
        return super().items()


class Log(list):
    """The history of a kind. It counts how many events are copied or iterated."""

    def __getitem__(self, at):
        copied = super().__getitem__(at)
        Bucket.looks += len(copied) if isinstance(at, slice) else 1
        return copied

    def __iter__(self):
        Bucket.looks += len(self)
        return super().__iter__()


def counted(server):
    for _, table in server.store.tables():
        table.objects = Bucket({space: Bucket(bucket) for space, bucket in table.objects.items()})
        table.events, table._versions = Log(table.events), Log(table._versions)
    Bucket.looks = 0


async def cost(server, transport):
    """Return the calls and object reads of one round of writes to one ConfigMap."""
    bodies = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": v}} for v in "xxyz"]
    writes = [("POST", MAPS, bodies[0], {}), ("PUT", f"{MAPS}/a", bodies[2], {})]
    writes += [("PATCH", f"{MAPS}/a", body, APPLY) for body in bodies[1:]]
    writes += [("DELETE", f"{MAPS}/a", {}, {})]
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    codes = []
    counted(server)
    for method, path, body, headers in writes:
        query = {"fieldManager": "m", "force": "true"} if method == "PATCH" else {}
        sys.setprofile(count)
        response = await transport.request(
            HttpRequest(method, path, query=query, headers=headers, body=json.dumps(body).encode())
        )
        sys.setprofile(None)
        codes.append(response.status)
        await asyncio.sleep(0.1)  # the watches read their events meanwhile
    assert codes == [201, 200, 200, 200, 200, 200]
    return calls, Bucket.looks


async def fill(server, transport, objects):
    """Create ConfigMaps in two namespaces, and the same number of ServiceAccounts in default."""
    await transport.request(HttpRequest("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"other"}}'))
    for index in range(objects):
        body = json.dumps({"metadata": {"name": f"o{index}"}}).encode()
        for path in (MAPS, "/api/v1/namespaces/other/configmaps", "/api/v1/namespaces/default/serviceaccounts"):
            assert (await transport.request(HttpRequest("POST", path, body=body))).status == 201


async def watch(server, transport, watchers):
    """Start idle watchers of another kind."""
    path, query = "/api/v1/secrets", {"watch": "1", "resourceVersion": str(server.store.version)}
    streams = [await transport.stream(HttpRequest("GET", path, query=query)) for _ in range(watchers)]
    reads = [asyncio.create_task(stream.read()) for stream in streams]
    await asyncio.sleep(1)
    return streams, reads


def measured(objects=0, watchers=0):
    async def main():
        server = Server(virtual.world())
        transport = server.transport()
        await fill(server, transport, objects)
        streams, reads = await watch(server, transport, watchers)
        costs = await cost(server, transport)
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        for stream in streams:
            await stream.close()
        return costs

    return virtual.run(main())


@pytest.fixture(autouse=True)
def prepared():
    gc.disable()  # others listen to it, and would be counted
    measured()  # the first round compiles schemas and fills caches
    yield
    gc.enable()


def test_the_cost_of_a_write_does_not_depend_on_other_objects():
    assert measured(objects=300) == measured(objects=3)


def test_the_cost_of_a_write_does_not_depend_on_watchers_of_other_kinds():
    assert measured(watchers=300) == measured(watchers=0)


def test_a_write_that_scans_all_objects_is_detected(monkeypatch):
    from fairlead.server.storage.store import ObjectTable

    record = ObjectTable.record
    monkeypatch.setattr(ObjectTable, "record", lambda self, *args: (sorted(self.objects), record(self, *args)))
    assert measured(objects=30) == measured(objects=3), "namespaces alone do not grow"
    monkeypatch.setattr(
        ObjectTable,
        "record",
        lambda self, *args: ([sorted(bucket) for bucket in self.objects.values()], record(self, *args)),
    )
    with pytest.raises(AssertionError):
        assert measured(objects=30) == measured(objects=3)


def test_overwritten_objects_are_freed():
    server = Server()
    table = server.store.table("", "configmaps")
    server.respond(Request("POST", MAPS, {}, {}, b'{"metadata":{"name":"a"},"data":{"n":"1"}}'), is_trusted=True)
    first = weakref.ref(table.get("default", "a"))
    server.respond(Request("PUT", f"{MAPS}/a", {}, {}, b'{"metadata":{"name":"a"},"data":{"n":"2"}}'), is_trusted=True)
    assert table.get("default", "a").object["data"] == {"n": "2"}
    server.store.compact()
    gc.collect()
    assert first() is None
