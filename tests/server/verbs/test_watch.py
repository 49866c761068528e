"""Tests of watches: their events are ordered and encoded once, watches can resume, and their buffers are limited."""

import json

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.registry import strategies
from fairlead.server.tables.representation import TableRepresentation
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


async def put(transport, name, **data):
    body = json.dumps({"metadata": {"name": name}, "data": data}).encode()
    response = await transport.request(HttpRequest("POST", MAPS, body=body))
    if response.status == 409:
        response = await transport.request(HttpRequest("PUT", f"{MAPS}/{name}", body=body))
    return json.loads(response.body)


async def read_all(stream):
    raw = b""
    while chunk := await stream.read():
        raw += chunk
    return [json.loads(line) for line in raw.split(b"\n") if line]


def test_a_watch_resumes_from_any_version_in_history_without_gap_or_repeat():
    async def main():
        transport = Server(virtual.world()).transport()
        written_versions = [await put(transport, "a", v=str(i)) for i in range(20)]
        versions = [m["metadata"]["resourceVersion"] for m in written_versions]
        for at in range(20):
            query = {"watch": "1", "resourceVersion": versions[at], "timeoutSeconds": "1"}
            events = await read_all(await transport.stream(HttpRequest("GET", MAPS, query=query)))
            assert [e["object"]["metadata"]["resourceVersion"] for e in events] == versions[at + 1 :]

    virtual.run(main())


def test_a_version_older_than_the_history_is_an_error_event_with_410():
    async def main():
        server = Server(virtual.world())
        transport = server.transport()
        old = await put(transport, "a", v="1")
        await put(transport, "a", v="2")
        server.store.compact()
        query = {"watch": "1", "resourceVersion": old["metadata"]["resourceVersion"]}
        stream = await transport.stream(HttpRequest("GET", MAPS, query=query))
        assert stream.status == 200
        (event,) = await read_all(stream)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")

    virtual.run(main())


def test_a_watch_ends_with_410_when_its_reader_falls_behind_the_history():
    async def main():
        server = Server(virtual.world())
        transport = server.transport()
        stream = await transport.stream(
            HttpRequest("GET", MAPS, query={"watch": "1", "resourceVersion": str(server.store.version)})
        )
        await put(transport, "a", v="0")
        assert json.loads(await stream.read())["type"] == "ADDED"
        for i in range(25_000):
            server.store.put(
                server.store.table("", "configmaps"), {"metadata": {"name": "b", "namespace": "x"}, "i": i}
            )
        (event,) = await read_all(stream)
        assert event["object"]["code"] == 410

    virtual.run(main())


def test_bookmarks_are_sent_every_minute_and_before_the_end():
    async def main():
        server = Server(virtual.world())
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "150"}
        query["resourceVersion"] = str(server.store.version)
        events = await read_all(await server.transport().stream(HttpRequest("GET", MAPS, query=query)))
        assert [e["type"] for e in events] == ["BOOKMARK"] * 3

    virtual.run(main())


def test_an_event_is_encoded_once_for_all_watchers():
    async def main():
        server = Server(virtual.world())
        transport = server.transport()
        query = {"watch": "1", "resourceVersion": str(server.store.version)}
        streams = [await transport.stream(HttpRequest("GET", MAPS, query=query)) for _ in range(5)]
        await put(transport, "a", v="1")
        chunks = [await stream.read() for stream in streams]
        assert len(set(chunks)) == 1
        (event,) = server.store.table("", "configmaps").events[-1:]
        assert len(event.frames) == 1
        for stream in streams:
            await stream.close()

    virtual.run(main())


def test_a_table_carries_versions_and_the_initial_events_annotation():
    """Tests the fields of a Table that kubectl reads during a watch."""

    async def main():
        transport = Server(virtual.world()).transport()
        version = (await put(transport, "a"))["metadata"]["resourceVersion"]
        query = {"watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        query |= {"allowWatchBookmarks": "1", "timeoutSeconds": "1"}
        accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
        events = await read_all(await transport.stream(HttpRequest("GET", MAPS, query=query, headers=accept)))
        added, bookmark = (event["object"] for event in events[:2])
        assert added["metadata"] == bookmark["metadata"] == {"resourceVersion": version}
        (row,) = bookmark["rows"]
        assert row["cells"] == ["", 0, "<unknown>"]
        assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["columnDefinitions"] is None

    virtual.run(main())


def test_every_kind_can_represent_a_bookmark_as_a_row():
    for resource in strategies.resources():
        if "watch" in resource.verbs:
            table = TableRepresentation(resource, False, "v1", "", 0.0)
            assert table.bookmark(5, {})["rows"][0]["cells"], resource.plural


def test_a_watch_has_the_same_warnings_as_a_list():
    server = Server()
    path = "/api/v1/namespaces/default/endpoints"
    warnings = [server.respond(Request("GET", path, query, {})).warnings for query in ({}, {"watch": ["true"]})]
    assert warnings == [["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]] * 2
