"""Tests of discovery in every supported format, and of a 406 for every other format."""

import json

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http.messages import Request

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ONLY = "only the following media types are accepted: application/json, application/yaml"
AVAILABLE = "406: Not Acceptable\n\nAvailable representations: application/json"


def get(path, accept):
    headers = {"user-agent": "t", **({"accept": accept} if accept else {})}
    answer = Server().respond(Request("GET", path, {}, headers, b""))
    return answer.status, answer.headers["Content-Type"], answer.body


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/apis/apps/v1", "/version"])
@pytest.mark.parametrize("accept", ["", "application/json", "*/*", "text/html, application/json;q=0.5"])
def test_discovery_returns_json_by_default(path, accept):
    status, media, body = get(path, accept)
    assert (status, media) == (200, "application/json")
    json.loads(body)


def test_discovery_returns_yaml_on_request():
    status, media, body = get("/apis/apps", "application/yaml")
    assert (status, media) == (200, "application/yaml")
    assert b"kind: APIGroup\n" in body


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        ("/api", "text/html", AVAILABLE),
        ("/apis", "text/html", ONLY),
        ("/apis/apps", "text/html", ONLY),
        ("/apis/apps/v1", "text/html", AVAILABLE),
        ("/version", "text/html", AVAILABLE),
        ("/apis/apps/v1", AGGREGATED.format("v2"), ONLY),
        ("/api", AGGREGATED.format("v2beta1"), ONLY),
    ],
)
def test_unsupported_media_type_returns_406(path, accept, message):
    status, _, body = get(path, accept)
    assert status == 406
    assert json.loads(body)["message"].startswith(message)


def test_aggregated_discovery_is_served_at_api_and_apis():
    for path in ("/api", "/apis"):
        status, _, body = get(path, f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json")
        document = json.loads(body)
        assert (status, document["kind"]) == (200, "APIGroupDiscoveryList")
        assert document["apiVersion"] == "apidiscovery.k8s.io/v2"


@pytest.mark.parametrize(("path", "metadata"), [("/api", {}), ("/apis", {"name": "apps"})])
async def test_groups_of_aggregated_discovery_have_only_a_name(api, path, metadata):
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    response = await api.transport().request(HttpRequest("GET", path, headers={"Accept": accept}))
    assert metadata in [item["metadata"] for item in json.loads(response.body)["items"]]
