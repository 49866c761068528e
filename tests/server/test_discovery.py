"""Discovery in the formats there are, and a 406 for every other."""

import json

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ONLY = "only the following media types are accepted: application/json, application/yaml"
AVAILABLE = "406: Not Acceptable\n\nAvailable representations: application/json"


def ask(path, accept):
    headers = {"user-agent": "t", **({"accept": accept} if accept else {})}
    answer = Server().respond(Request("GET", path, {}, headers, b""))
    return answer.status, answer.headers["Content-Type"], answer.body


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/apis/apps/v1", "/version"])
@pytest.mark.parametrize("accept", ["", "application/json", "*/*", "text/html, application/json;q=0.5"])
def test_json_is_for_everyone(path, accept):
    status, media, body = ask(path, accept)
    assert (status, media) == (200, "application/json")
    json.loads(body)


def test_yaml_is_there_too():
    status, media, body = ask("/apis/apps", "application/yaml")
    assert (status, media) == (200, "application/yaml")
    assert b"kind: APIGroup\n" in body


@pytest.mark.parametrize(
    ("path", "accept", "told"),
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
def test_what_there_is_not_is_refused(path, accept, told):
    status, _, body = ask(path, accept)
    assert status == 406
    assert json.loads(body)["message"].startswith(told)


def test_all_of_it_comes_at_once_where_that_is_asked_for():
    for path in ("/api", "/apis"):
        status, _, body = ask(path, f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json")
        found = json.loads(body)
        assert (status, found["kind"]) == (200, "APIGroupDiscoveryList")
        assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
