"""Tests that both servers return the same message for rejected patches of built-in kinds."""

import json

import pytest

from fairlead.api.requests import HttpRequest

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


def pod(**spec):
    return {"spec": {"template": {"spec": spec}}}


def invalid_patch(patch, message):
    return 422, f' "" is invalid: patch: Invalid value: "{patch}": {message}'


REJECTED = [
    (
        {"metadata": {"finalizers": "x"}},
        *invalid_patch("map[metadata:map[finalizers:x]]", "cannot restore slice from string"),
    ),
    (
        {"metadata": {"labels": {"a": 5}}},
        *invalid_patch("map[metadata:map[labels:map[a:5]]]", "cannot convert int64 to string"),
    ),
    ({"metadata": {"labels": ["x"]}}, *invalid_patch("map[metadata:map[labels:[x]]]", "cannot restore map from slice")),
    ({"spec": {"replicas": 1.5}}, *invalid_patch("map[spec:map[replicas:1.5]]", "cannot convert float64 to int32")),
    ({"spec": {"replicas": "3"}}, *invalid_patch("map[spec:map[replicas:3]]", "unrecognized type: int32")),
    ({"spec": "x"}, *invalid_patch("map[spec:x]", "cannot restore struct from: string")),
    ({"kind": 5}, *invalid_patch("map[kind:5]", "cannot convert int64 to string")),
    ({"spec": {"$patch": "nope"}}, 500, "unknown patch type: nope in map: map[$patch:nope]"),
    ({"spec": {"$patch": 5}}, 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
    ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
    ({"spec": {"$retainKeys": ["replicas"], "paused": True}}, 400, "invalid patch format of retainKeys"),
    ({"metadata": {"$deleteFromPrimitiveList": ["x"]}}, 400, "invalid patch format of primitive list"),
    ({"metadata": {"$setElementOrder": ["x"]}}, 400, "invalid patch format of setElementOrder list"),
    (pod(**{"$setElementOrder/containers": [1]}), 500, "value for key 0 is not a map"),
    (
        pod(**{"$setElementOrder/containers": [{"image": "i"}]}),
        500,
        "map: map[image:i] does not contain declared merge key: name",
    ),
    (
        pod(containers={"name": "c"}),
        *invalid_patch(
            "map[spec:map[template:map[spec:map[containers:map[name:c]]]]]", "cannot restore slice from map"
        ),
    ),
    (
        pod(containers=["x"]),
        500,
        (
            "list element types are not identical: [[map[image:i imagePullPolicy:Always name:c resources:map[] "
            "terminationMessagePath:/dev/termination-log terminationMessagePolicy:File]] [x]]"
        ),
    ),
]


@pytest.fixture
async def deployments(api):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    path = f"/apis/apps/v1/namespaces/{api.namespace}/deployments"
    transport = api.transport()

    async def send(method, name, content_type, body, **query):
        headers = {"Content-Type": content_type}
        response = await transport.request(
            HttpRequest(method, path + name, query=query, headers=headers, body=json.dumps(body).encode())
        )
        return response.status, json.loads(response.body)

    assert (await send("POST", "", "application/json", body))[0] == 201
    return send


async def test_invalid_strategic_patch_returns_the_real_servers_message(deployments):
    differences = []
    for patch, status, message in REJECTED:
        actual_status, answer = await deployments("PATCH", "/a", STRATEGIC, patch, dryRun="All")
        if (actual_status, answer.get("message")) != (status, message):
            differences.append((patch, actual_status, answer.get("message"), status, message))
    assert not differences


async def test_strategic_patch_may_name_any_kind_and_version(deployments):
    for patch in ({"kind": "Other"}, {"apiVersion": "v9"}, {"apiVersion": None}):
        status, answer = await deployments("PATCH", "/a", STRATEGIC, patch, dryRun="All")
        assert (status, answer["kind"], answer["apiVersion"]) == (200, "Deployment", "apps/v1")


async def test_error_shows_unchanged_fields_in_the_order_of_the_go_type(deployments):
    """Tests the order of fields in an error: changed fields are sorted by name."""
    status, answer = await deployments("PATCH", "/a", MERGE, {"metadata": {"labels": {"x": 5}}}, dryRun="All")
    assert status == 422
    message = answer["message"]
    assert message.endswith(
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
    )
    document = json.loads(message[message.index('"{') : message.index('}": json') + 2])
    parts = [
        '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"creationTimestamp":',
        '"managedFields":[{"manager":',
    ]
    positions = [
        document.index(part) for part in (*parts, '"spec":{"replicas":', '"selector":', '"template":', '"strategy":')
    ]
    assert positions == sorted(positions)


@pytest.mark.parametrize("missing_field", ["", None])
async def test_body_without_version_and_kind_uses_those_of_the_path(deployments, missing_field):
    status, live = await deployments("GET", "/a", "application/json", None)
    assert status == 200
    for _ in range(2):  # An object stored without a version used to break the next write.
        status, answer = await deployments(
            "PUT", "/a", "application/json", {**live, "apiVersion": missing_field, "kind": missing_field}
        )
        assert (status, answer["apiVersion"], answer["kind"]) == (200, "apps/v1", "Deployment")


@pytest.mark.only("embedded", reason="a real server panics there and drops the connection")
async def test_merge_key_that_is_a_list_returns_422(deployments):
    patch = pod(containers=[{"name": ["x"], "image": "i"}])
    assert (await deployments("PATCH", "/a", STRATEGIC, patch, dryRun="All"))[0] == 422
