"""Tests that both servers give the same response to unusual reads."""

import base64
import json

import pytest

from fairlead.api.requests import HttpRequest

YAML = {"Accept": "application/yaml"}
MATCH = "resourceVersionMatch"
CONTINUED = (MATCH, "Forbidden: resourceVersionMatch is forbidden when continue is provided")
UNASKED = (MATCH, "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")


async def ask(api, query, headers=None):
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    return await api.transport().request(HttpRequest("GET", path, query=query, headers=headers, timeout=20))


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        ({"continue": "abc"}, [CONTINUED]),
        ({"continue": "abc", "sendInitialEvents": "true", MATCH: "NotOlderThan"}, [CONTINUED]),
        ({"continue": "abc", MATCH: "NotOlderThan", "resourceVersion": "1"}, [UNASKED, CONTINUED]),
    ],
)
async def test_a_watch_rejects_a_continue_token(api, query, causes):
    response = await ask(api, {"watch": "1", "timeoutSeconds": "1", **query})
    actual_causes = json.loads(response.body)["details"]["causes"]
    assert (response.status, [(cause["field"], cause["message"]) for cause in actual_causes]) == (422, causes)


async def test_a_watch_rejects_yaml(api):
    response = await ask(api, {"watch": "1", "timeoutSeconds": "1"}, YAML)
    assert response.status == 406
    assert b"only the following media types are accepted: application/json;stream=watch," in response.body


@pytest.mark.parametrize("selector", ["=", "==", "!=", "=,metadata.name=none"])
async def test_a_field_selector_with_an_empty_key_is_ignored(api, selector):
    assert (await ask(api, {"fieldSelector": selector})).status == 200


@pytest.mark.parametrize(("bound", "status"), [("9223372036854775807", 200), ("9223372036854775808", 400)])
async def test_label_bounds_are_compared_as_int64(api, bound, status):
    assert (await ask(api, {"labelSelector": f"i>{bound}"})).status == status


async def test_a_continue_token_of_a_future_version_is_rejected(api):
    token = {"v": "meta.k8s.io/v1", "rv": 99999999999, "start": "c1\0"}
    encoded_token = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    response = await ask(api, {"limit": "1", "continue": encoded_token})
    assert (response.status, json.loads(response.body)["details"]["causes"][0]["reason"]) == (
        504,
        "ResourceVersionTooLarge",
    )


async def test_aggregated_discovery_sets_response_groups_of_subresources_only(api):
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    response = await api.transport().request(HttpRequest("GET", "/apis", headers=accept, timeout=20))
    (apps,) = (group for group in json.loads(response.body)["items"] if group["metadata"]["name"] == "apps")
    (deployments,) = (
        resource for resource in apps["versions"][0]["resources"] if resource["resource"] == "deployments"
    )
    kind_by_subresource = {
        resource["subresource"]: resource["responseKind"] for resource in deployments["subresources"]
    }
    assert (
        deployments["responseKind"]
        == kind_by_subresource["status"]
        == {"group": "", "version": "", "kind": "Deployment"}
    )
    assert kind_by_subresource["scale"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
