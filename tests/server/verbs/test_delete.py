"""Tests of the options of a DELETE, on both servers."""

import json

import pytest

from fairlead.api.requests import HttpRequest

FINALIZERS = ["example.com/kept"]
PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)


@pytest.fixture
async def send(api):
    transport = api.transport()

    async def send(method, path, body=None, **query):
        encoded_body = json.dumps(body).encode() if body is not None else None
        group = "/apis/batch/v1" if path.startswith("jobs") else "/api/v1"
        full_path = f"{group}/namespaces/{api.namespace}/{path}"
        return await transport.request(
            HttpRequest(method, full_path, query=query, body=encoded_body, headers={"Content-Type": "application/json"})
        )

    return send


@pytest.fixture
async def existing(send):
    response = await send("POST", "configmaps", {"metadata": {"name": "a", "finalizers": FINALIZERS}})
    assert response.status == 201
    return json.loads(response.body)["metadata"]


async def metadata(send):
    return json.loads((await send("GET", "configmaps/a")).body)["metadata"]


@pytest.mark.parametrize("path", ["configmaps", "configmaps/a"])
@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
async def test_a_delete_takes_preconditions_from_the_query(send, existing, path, key):
    newer = {"resourceVersionMatch": "NotOlderThan"} if key == "resourceVersion" else {}
    rejection = await send("DELETE", path, **{key: "1"}, **newer)
    assert (rejection.status, json.loads(rejection.body)["reason"]) == (409, "Conflict")
    assert await metadata(send) == existing
    assert (await send("DELETE", path, **{key: existing[key]}, **newer)).status == 200
    assert "deletionTimestamp" in await metadata(send)


async def test_deletecollection_deletes_the_objects_of_the_requested_version(send, existing):
    await send("DELETE", "configmaps", resourceVersion="1")
    assert await metadata(send) == existing
    future = await send("DELETE", "configmaps", resourceVersion=str(int(existing["resourceVersion"]) + 10**6))
    assert future.status == 504
    assert await metadata(send) == existing


@pytest.mark.parametrize("path", ["configmaps", "configmaps/a"])
async def test_orphan_deletion_adds_its_finalizer_to_existing_ones(send, existing, path):
    assert (await send("DELETE", path, propagationPolicy="Orphan")).status == 200
    assert (await metadata(send))["finalizers"] == [*FINALIZERS, "orphan"]


@pytest.mark.parametrize("path", ["jobs", "jobs/none"])
@pytest.mark.parametrize("options", [{}, {"propagationPolicy": "Orphan"}, {"orphanDependents": "false"}])
async def test_deleting_a_job_without_a_policy_warns_that_its_pods_stay(send, path, options):
    response = await send("DELETE", path, **options)
    assert response.status == (404 if "/" in path else 200)
    assert list(response.warnings) == ([] if options else [f'299 - "{PODS_STAY}"'])
