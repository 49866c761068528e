"""What a DELETE asks for besides the object: each holds on the embedded and on the real server."""

import json

import pytest

from fairlead.api.requests import HttpRequest

KEPT = ["example.com/kept"]
PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)


@pytest.fixture
async def send(api):
    transport = api.transport()

    async def send(method, path, body=None, **query):
        sent = json.dumps(body).encode() if body is not None else None
        group = "/apis/batch/v1" if path.startswith("jobs") else "/api/v1"
        where = f"{group}/namespaces/{api.namespace}/{path}"
        return await transport.request(
            HttpRequest(method, where, query=query, body=sent, headers={"Content-Type": "application/json"})
        )

    return send


@pytest.fixture
async def made(send):
    reply = await send("POST", "configmaps", {"metadata": {"name": "a", "finalizers": KEPT}})
    assert reply.status == 201
    return json.loads(reply.body)["metadata"]


async def metadata(send):
    return json.loads((await send("GET", "configmaps/a")).body)["metadata"]


@pytest.mark.parametrize("path", ["configmaps", "configmaps/a"])
@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
async def test_a_query_has_preconditions_as_a_body_has(send, made, path, key):
    newer = {"resourceVersionMatch": "NotOlderThan"} if key == "resourceVersion" else {}
    refused = await send("DELETE", path, **{key: "1"}, **newer)
    assert (refused.status, json.loads(refused.body)["reason"]) == (409, "Conflict")
    assert await metadata(send) == made
    assert (await send("DELETE", path, **{key: made[key]}, **newer)).status == 200
    assert "deletionTimestamp" in await metadata(send)


async def test_a_collection_is_deleted_as_it_was_at_the_version_asked_for(send, made):
    await send("DELETE", "configmaps", resourceVersion="1")
    assert await metadata(send) == made
    future = await send("DELETE", "configmaps", resourceVersion=str(int(made["resourceVersion"]) + 10**6))
    assert future.status == 504
    assert await metadata(send) == made


@pytest.mark.parametrize("path", ["configmaps", "configmaps/a"])
async def test_orphaning_adds_its_finalizer_to_those_of_the_object(send, made, path):
    assert (await send("DELETE", path, propagationPolicy="Orphan")).status == 200
    assert (await metadata(send))["finalizers"] == [*KEPT, "orphan"]


@pytest.mark.parametrize("path", ["jobs", "jobs/none"])
@pytest.mark.parametrize("said", [{}, {"propagationPolicy": "Orphan"}, {"orphanDependents": "false"}])
async def test_who_deletes_jobs_and_says_nothing_of_their_pods_hears_that_these_stay(send, path, said):
    reply = await send("DELETE", path, **said)
    assert reply.status == (404 if "/" in path else 200)
    assert list(reply.warnings) == ([] if said else [f'299 - "{PODS_STAY}"'])
