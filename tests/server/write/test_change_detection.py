"""Tests that a write without a change is not stored, unless a real server would store other bytes for it."""

import asyncio
import json

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.storage.stored import Stored
from fairlead.server.write.change_detection import ChangeDetection
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
DEFAULTED_STATUS = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "status": {"type": "object", "default": {"phase": "New"}, "properties": {"phase": {"type": "string"}}},
    },
}


async def apply_repeatedly(version, metadata, delays):
    """Send the same apply after each of these delays. Return the resourceVersions."""
    transport = Server(virtual.world(), tokens=["t"]).transport()

    async def send(method, path, content_type, body):
        headers = {"Content-Type": content_type, "Authorization": "Bearer t"}
        query = {"fieldManager": "m"}
        request = HttpRequest(method, path, query=query, body=json.dumps(body).encode(), headers=headers)
        response = await transport.request(request)
        assert response.status in (200, 201), response.body
        return json.loads(response.body)["metadata"]

    await send("POST", DEFINITIONS, "application/json", DEFINITION)
    path = f"/apis/example.com/{version}/namespaces/default/widgets/w"
    body = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "w", **metadata}}
    resource_versions = []
    for delay in delays:
        await asyncio.sleep(delay)
        applied = await send("PATCH", path, "application/apply-patch+yaml", body)
        resource_versions.append(applied["resourceVersion"])
    return resource_versions


@pytest.mark.parametrize("empty", [{"labels": {}}, {"annotations": {}}, {"finalizers": None}])
@pytest.mark.parametrize(
    ("version", "revisions"),
    [("v1", 3), ("v2", 2)],
    ids=["storage-version-stores-every-apply", "other-version-stores-when-the-time-changes"],
)
def test_repeated_apply_with_empty_metadata_is_stored(version, revisions, empty):
    assert len(set(virtual.run(apply_repeatedly(version, empty, (0, 0, 1))))) == revisions


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_repeated_apply_without_empty_metadata_is_not_stored(version):
    assert len(set(virtual.run(apply_repeatedly(version, {"labels": {"a": "b"}}, (0, 0, 1))))) == 1


@pytest.fixture
def send():
    server = Server()

    def send(method, path, body):
        headers = {"user-agent": "t", "content-type": "application/json"}
        answer = server.respond(Request(method, path, {}, headers, json.dumps(body).encode()))
        assert answer.status in (200, 201), answer.body
        return json.loads(answer.body)

    return send


def update_twice(send, collection, obj):
    """Create the object and replace it twice with the server's response. Return whether each replace was stored."""
    created = send("POST", collection, obj)
    path = f"{collection}/{created['metadata']['name']}"
    first = send("PUT", path, created)
    second = send("PUT", path, first)
    versions = [obj["metadata"]["resourceVersion"] for obj in (created, first, second)]
    return versions[0] != versions[1], versions[1] != versions[2]


def test_replace_by_the_same_object_is_not_stored(send):
    config_map = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    assert update_twice(send, "/api/v1/namespaces/default/configmaps", config_map) == (False, False)


def test_first_replace_of_a_secret_with_null_bytes_is_stored(send):
    secret = {"metadata": {"name": "a"}, "data": {"k": None}}
    assert update_twice(send, "/api/v1/namespaces/default/secrets", secret) == (True, False)


def test_secret_with_null_bytes_submitted_again_is_not_stored(send):
    path = "/api/v1/namespaces/default/secrets"
    created = send("POST", path, {"metadata": {"name": "a"}, "data": {"k": None}})
    response = send("PUT", f"{path}/a", {"metadata": {"name": "a"}, "data": {"k": None}})
    assert response["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_first_replace_of_a_job_without_labels_is_stored(send):
    container = {"name": "c", "image": "i"}
    job = {
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    assert update_twice(send, jobs, job) == (True, False)
    labelled = {**job, "metadata": {"name": "b", "labels": {"a": "b"}}}
    assert update_twice(send, jobs, labelled) == (False, False)


def test_first_replace_of_a_custom_resource_with_a_defaulted_status_is_stored(send):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": DEFAULTED_STATUS}}
    spec = {**DEFINITION["spec"], "versions": [{**version, "subresources": {"status": {}}}]}
    send("POST", DEFINITIONS, {**DEFINITION, "spec": spec})
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert update_twice(send, "/apis/example.com/v1/namespaces/default/widgets", widget) == (True, False)


@pytest.mark.parametrize(
    ("kind", "before", "after", "unchanged"),
    [
        ("ConfigMap", False, False, True),
        ("ConfigMap", True, False, False),
        ("ConfigMap", False, True, False),
        ("ConfigMap", True, True, True),  # a built-in object differs from its bytes in the same way every time
        ("Widget", False, False, True),
        ("Widget", True, True, False),  # nothing is known about how a custom resource differs from its bytes
    ],
)
def test_equal_objects_are_unchanged_only_if_their_bytes_are_known_to_be_equal(kind, before, after, unchanged):
    server = Server()
    body = json.dumps(DEFINITION).encode()
    server.respond(Request("POST", DEFINITIONS, {}, {"content-type": "application/json"}, body))
    key = ("", "v1", "configmaps") if kind == "ConfigMap" else ("example.com", "v1", "widgets")
    resource = server.registry.find(*key)
    obj = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": "a"}}
    stored = Stored(obj, 1, resource)
    stored.bytes_differ = before
    changes = ChangeDetection(bytes_differ=after)
    assert changes.is_unchanged(resource, dict(obj), stored, stored) is unchanged
    assert not changes.is_unchanged(resource, {**obj, "data": {"k": "v"}}, stored, stored)
