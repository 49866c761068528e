"""The text of responses: newline, ?pretty, user agents; ?timeout; and the health checks. The same on both servers."""

import json

import pytest

from fairlead.api.requests import HttpRequest

NAMESPACE = "/api/v1/namespaces/default"
MISSING = "/api/v1/namespaces/nope"
FORMS = [
    # path, query, user agent, whether the response is indented
    (NAMESPACE, {}, "kubectl/v1.36.4", False),
    (NAMESPACE, {}, "curl/8.5.0", True),
    (NAMESPACE, {}, "Wget/1.21", True),
    (NAMESPACE, {}, "Mozilla/5.0 (X11)", True),
    (NAMESPACE, {"pretty": "true"}, "kubectl/v1.36.4", True),
    (NAMESPACE, {"pretty": "1"}, "kubectl/v1.36.4", True),
    (NAMESPACE, {"pretty": ""}, "kubectl/v1.36.4", False),
    (NAMESPACE, {"pretty": "nope"}, "curl/8.5.0", False),
    (NAMESPACE, {"pretty": "false"}, "curl/8.5.0", False),
    ("/api/v1/namespaces", {}, "kubectl/v1.36.4", False),
    ("/api/v1/namespaces", {"pretty": "true"}, "kubectl/v1.36.4", True),
    (MISSING, {}, "kubectl/v1.36.4", False),
    (MISSING, {"pretty": "true"}, "kubectl/v1.36.4", True),
    (MISSING, {}, "curl/8.5.0", True),
    ("/api", {}, "kubectl/v1.36.4", False),
    ("/apis", {}, "curl/8.5.0", True),
    ("/version", {"pretty": "false"}, "kubectl/v1.36.4", True),
    ("/", {}, "kubectl/v1.36.4", True),
]


@pytest.mark.parametrize(("path", "query", "agent", "is_indented"), FORMS)
async def test_json_is_indented_or_ends_with_a_newline(api, path, query, agent, is_indented):
    request = HttpRequest("GET", path, query=query, headers={"User-Agent": agent})
    body = (await api.transport().request(request)).body
    document = json.loads(body)
    if is_indented:
        assert body.decode() == json.dumps(document, indent=2, ensure_ascii=False)
    else:
        assert body.count(b"\n") == 1
        assert body.endswith(b"}\n")


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/version", "/healthz", "/nope"])
@pytest.mark.parametrize(
    ("timeout", "problem"),
    [
        ("invalid", 'invalid duration "invalid"'),
        ("5", 'missing unit in duration "5"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
    ],
)
async def test_a_wrong_timeout_is_rejected(api, path, timeout, problem):
    response = await api.transport().request(HttpRequest("GET", path, query={"timeout": timeout}))
    message = f"invalid timeout specified in the request URL - time: {problem}"
    assert (response.status, json.loads(response.body)["message"]) == (400, message)


@pytest.mark.parametrize("timeout", ["0", "", "-1s", "34s", "100h"])
async def test_a_timeout_is_a_duration(api, timeout):
    response = await api.transport().request(HttpRequest("GET", NAMESPACE, query={"timeout": timeout}))
    assert response.status == 200
