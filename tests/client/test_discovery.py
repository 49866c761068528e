"""Tests of discovery: plural and scope come from the server, are cached, and unknown kinds are asked for again."""

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
LISTED = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "octopodes", "kind": "Octopus", "namespaced": False, "verbs": ["get", "list"]},
        {"name": "octopodes/status", "kind": "Octopus", "namespaced": False, "verbs": ["get"]},
    ],
}
OLD = {"kind": "APIGroupList", "groups": []}


def aggregate(*resources):
    version = {"version": "v1", "resources": list(resources)}
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "sea.example"}, "versions": [version]}]}


def paths(transport):
    return [path for _, path, *_ in transport.asked]


@pytest.mark.parametrize("old", [False, True], ids=["aggregated", "old server"])
def test_discovery_returns_plural_scope_and_subresources(old, scripted, answer):
    answers = [answer(json=OLD), answer(json=LISTED)] if old else [answer(json=aggregate(OCTOPUS))]
    client, transport = scripted(*answers, discovery=False)

    async def main():
        served = await client.served(Octopus)
        assert served.kind.path() == "/apis/sea.example/v1/octopodes"
        assert not served.kind.namespaced
        assert served.verbs == {"get", "list"}
        assert served.subresources == {"status"}
        assert await client.resolve(Octopus) == served.kind

    virtual.run(main())
    assert paths(transport) == (["/apis", "/apis/sea.example/v1"] if old else ["/apis"])


def test_concurrent_lookups_send_one_discovery_request(scripted, answer):
    client, transport = scripted(1, answer(json=aggregate(OCTOPUS)), discovery=False)

    async def main():
        await asyncio.gather(*[client.resolve(Octopus) for _ in range(20)])

    virtual.run(main())
    assert paths(transport) == ["/apis"]


def test_a_kind_that_is_installed_later_is_found(scripted, answer):
    client, _ = scripted(
        answer(json=aggregate()),
        answer(404, body=b"404 page not found"),
        answer(json=aggregate(OCTOPUS)),
        discovery=False,
    )

    async def main():
        with pytest.raises(NotServed, match="CustomResourceDefinition"):
            await client.resolve(Octopus)
        assert (await client.resolve(Octopus)).plural == "octopodes"

    virtual.run(main())


def test_a_kind_missing_in_aggregated_discovery_is_found_in_its_resource_list(scripted, answer):
    client, _ = scripted(answer(json=aggregate()), answer(json=LISTED), discovery=False)

    async def main():
        assert (await client.resolve(Octopus)).plural == "octopodes"

    virtual.run(main())


def test_a_deleted_kind_raises_not_served_instead_of_not_found(scripted, answer, refusal):
    client, transport = scripted(
        answer(json=aggregate(OCTOPUS)),
        refusal(404, "NotFound", "octopodes 'a' not found", name="a"),
        answer(404, body=b"404 page not found\n"),
        answer(json=aggregate()),
        refusal(404, "NotFound"),
        discovery=False,
    )

    async def main():
        with pytest.raises(NotFound):
            await client.get(Octopus, "a")
        with pytest.raises(NotServed):
            await client.get(Octopus, "a")
        with pytest.raises(NotServed):  # it asked the server again
            await client.resolve(Octopus)

    virtual.run(main())
    assert not transport.answers


def test_a_failing_discovery_does_not_raise_not_served(scripted, answer, refusal):
    client, _ = scripted(refusal(503, "ServiceUnavailable"), answer(json=aggregate(OCTOPUS)), discovery=False)

    async def main():
        with pytest.raises(ServiceUnavailable):
            await client.resolve(Octopus)
        await client.resolve(Octopus)

    virtual.run(main())
