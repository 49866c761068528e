"""Tests of discovery: the client caches plural and scope from the server, and looks up unknown kinds again."""

import asyncio

import pytest

from fairlead.api.errors import NotFound, ServiceUnavailable
from fairlead.api.kinds import kind
from fairlead.client.discovery import NotServed
from fairlead.testing import virtual

Octopus = kind("sea.example/v1", "Octopus")
OCTOPUS = {
    "resource": "octopodes",
    "responseKind": {"group": "sea.example", "version": "v1", "kind": "Octopus"},
    "scope": "Cluster",
    "verbs": ["get", "list"],
    "subresources": [{"subresource": "status"}],
}
RESOURCE_LIST = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "octopodes", "kind": "Octopus", "namespaced": False, "verbs": ["get", "list"]},
        {"name": "octopodes/status", "kind": "Octopus", "namespaced": False, "verbs": ["get"]},
    ],
}
EMPTY_GROUP_LIST = {"kind": "APIGroupList", "groups": []}


def aggregated_discovery(*resources):
    version = {"version": "v1", "resources": list(resources)}
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "sea.example"}, "versions": [version]}]}


def requested_paths(transport):
    return [path for _, path, *_ in transport.requests]


@pytest.mark.parametrize("without_aggregation", [False, True], ids=["aggregated", "old server"])
def test_discovery_returns_plural_scope_and_subresources(without_aggregation, scripted_client, response):
    responses = (
        [response(json=EMPTY_GROUP_LIST), response(json=RESOURCE_LIST)]
        if without_aggregation
        else [response(json=aggregated_discovery(OCTOPUS))]
    )
    client, transport = scripted_client(*responses, answers_discovery=False)

    async def main():
        served_kind = await client.served(Octopus)
        assert served_kind.kind.path() == "/apis/sea.example/v1/octopodes"
        assert not served_kind.kind.namespaced
        assert served_kind.verbs == {"get", "list"}
        assert served_kind.subresources == {"status"}
        assert await client.resolve(Octopus) == served_kind.kind

    virtual.run(main())
    assert requested_paths(transport) == (["/apis", "/apis/sea.example/v1"] if without_aggregation else ["/apis"])


def test_concurrent_lookups_send_one_discovery_request(scripted_client, response):
    client, transport = scripted_client(1, response(json=aggregated_discovery(OCTOPUS)), answers_discovery=False)

    async def main():
        await asyncio.gather(*[client.resolve(Octopus) for _ in range(20)])

    virtual.run(main())
    assert requested_paths(transport) == ["/apis"]


def test_a_kind_that_is_installed_later_is_found(scripted_client, response):
    client, _ = scripted_client(
        response(json=aggregated_discovery()),
        response(404, body=b"404 page not found"),
        response(json=aggregated_discovery(OCTOPUS)),
        answers_discovery=False,
    )

    async def main():
        with pytest.raises(NotServed, match="CustomResourceDefinition"):
            await client.resolve(Octopus)
        assert (await client.resolve(Octopus)).plural == "octopodes"

    virtual.run(main())


def test_a_kind_missing_in_aggregated_discovery_is_found_in_its_resource_list(scripted_client, response):
    client, _ = scripted_client(
        response(json=aggregated_discovery()), response(json=RESOURCE_LIST), answers_discovery=False
    )

    async def main():
        assert (await client.resolve(Octopus)).plural == "octopodes"

    virtual.run(main())


def test_a_deleted_kind_raises_not_served_instead_of_not_found(scripted_client, response, error_response):
    client, transport = scripted_client(
        response(json=aggregated_discovery(OCTOPUS)),
        error_response(404, "NotFound", "octopodes 'a' not found", name="a"),
        response(404, body=b"404 page not found\n"),
        response(json=aggregated_discovery()),
        error_response(404, "NotFound"),
        answers_discovery=False,
    )

    async def main():
        with pytest.raises(NotFound):
            await client.get(Octopus, "a")
        with pytest.raises(NotServed):
            await client.get(Octopus, "a")
        with pytest.raises(NotServed):  # it asked the server again
            await client.resolve(Octopus)

    virtual.run(main())
    assert not transport.responses


def test_a_failing_discovery_does_not_raise_not_served(scripted_client, response, error_response):
    client, _ = scripted_client(
        error_response(503, "ServiceUnavailable"), response(json=aggregated_discovery(OCTOPUS)), answers_discovery=False
    )

    async def main():
        with pytest.raises(ServiceUnavailable):
            await client.resolve(Octopus)
        await client.resolve(Octopus)

    virtual.run(main())
