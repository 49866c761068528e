"""Tests that both servers send the same response to unusual paths and credentials."""

import asyncio
import http.client
import json
import ssl
from urllib.parse import urlsplit

import pytest

from fairlead.api.requests import HttpRequest

PAGE = "404 page not found\n"
PATH = "the server could not find the requested resource"
METHOD = "the server does not allow this method on the requested resource"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANSWERS = [
    ("GET /apis//v1/secrets", 404, PAGE),
    ("GET /apis//", 404, PAGE),
    ("GET //api/v1/namespaces", 404, PAGE),
    ("GET /apis/nope/v1/foos", 404, PAGE),
    ("GET /api/v1//secrets", 404, PATH),
    ("GET /api/v1/nopes", 404, PATH),
    ("GET /apis/apps/v2/deployments", 404, PATH),
    ("GET /apis/apps//deployments", 404, PATH),
    ("GET /version/x", 404, PATH),
    ("GET /version/", 200, ""),
    ("GET /readyz/", 404, PAGE),
    ("GET /metrics/", 404, PAGE),
    ("GET /openapi/v2/", 404, PAGE),
    ("GET /", 200, ""),
    ("HEAD /version", 405, ""),
    ("HEAD /api/v1/namespaces", 405, ""),
    ("HEAD /api/v1/namespaces/NS", 405, ""),
    ("POST /apis/apps", 200, ""),
    ("POST /apis/apps/v1", 405, METHOD),
    ("GET /api/v1/namespaces/NS/pods//status", 400, "name must be provided"),
    ("GET /apis/apps/v1/namespaces//deployments/x", 400, "Namespace parameter required."),
    ("GET /api/v1/namespaces/NS/configmaps/", 200, ""),
    ("GET /api/v1/namespaces/NS/configmaps/x/y/z", 404, PATH),
    ("GET /api/v1/namespaces/NS/configmaps/x/status", 404, PATH),
    ("GET /apis/authentication.k8s.io/v1/tokenreviews", 405, METHOD),
    ("GET /apis/authentication.k8s.io/v1/tokenreviews/x", 404, PATH),
    ("GET /api/v1/namespaces/NS/configmaps/..", 400, "Name parameter invalid: \"..\": may not be '..'"),
    ("DELETE /api/v1/namespaces/NS/configmaps/%2e", 400, "Name parameter invalid: \".\": may not be '.'"),
    ("GET /api/v1/namespaces/NS/configmaps/a%25b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
    ("GET /api/v1/namespaces/../configmaps", 500, 'invalid key: "/configmaps/.."'),
    ("GET /api/v1/namespaces/%2e/configmaps/x", 500, 'invalid key: "/configmaps/./x"'),
    ("GET /api/v1/namespaces/NS/configmaps/a%2Fb", 404, PATH),
    ("GET /api/v1/namespaces%2FNS%2Fconfigmaps", 200, ""),
    ("GET /api/v1/namespaces/NS/configmaps/a%0Ab", 404, 'configmaps "a\\nb" not found'),
    ("GET /api/v1/namespaces/NS/configmaps/a%22b", 404, 'configmaps "a\\"b" not found'),
    ("GET /api/v1/namespaces/NS/configmaps/%zz", 400, "400 Bad Request"),
    ("POST /api/v1/namespaces/NS/pods/x/eviction", 400, "name in URL does not match name in Eviction object"),
    ("GET /apis/paths.example.com/v1/namespaces/NS/knobs/..", 400, "Name parameter invalid: \"..\": may not be '..'"),
    ("GET /apis/paths.example.com/v1/namespaces/../knobs", 500, 'invalid key: "/paths.example.com/knobs/.."'),
    ("GET /apis/paths.example.com/v1/namespaces/NS/knobs/x/status/y", 404, 'knobs.paths.example.com "x" not found'),
    ("GET /apis/paths.example.com/v1/namespaces/NS/knobs/a%2Fb", 404, 'knobs.paths.example.com "a" not found'),
    (
        "GET /apis/paths.example.com/v1/namespaces/NS/knobs//status",
        405,
        'list is not supported on resources of kind "knobs.paths.example.com"',
    ),
    (
        "POST /apis/paths.example.com/v1/namespaces/NS/knobs/x/status",
        405,
        'create is not supported on resources of kind "knobs.paths.example.com"',
    ),
    ("PUT /apis/paths.example.com/v1/namespaces/NS/knobs/", 400, "name must be provided"),
    ("PUT /apis/paths.example.com/v1/knobs", 404, PAGE),
    ("POST /apis/paths.example.com/v1", 200, ""),
    ("GET /apis/paths.example.com/v2", 404, PAGE),
]
ANONYMOUS = (
    'secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" in the namespace'
)
CREDENTIALS = {
    "Basic YTpi": 403,
    "Token x": 403,
    "Bearer": 403,
    "Bearer ": 403,
    "Bearer  TOKEN": 403,
    "TOKEN": 403,
    "bearer TOKEN": 200,
    "  Bearer TOKEN": 200,
    "Bearer TOKEN and more": 200,
    "Bearer wrong": 401,
}


def ask(api, method, path, credential=None):
    """Send a request over a plain connection, because a client would normalize the path."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(urlsplit(api.url).netloc, context=context, timeout=20)
    credential = f"Bearer {api.token}" if credential is None else credential.replace("TOKEN", api.token)
    body = None if method in ("GET", "HEAD", "DELETE") else b"{}"
    headers = {"Authorization": credential, "Content-Type": "application/json"}
    connection.request(method, path.replace("NS", api.namespace), body, headers)
    answer = connection.getresponse()
    body_text = answer.read().decode()
    connection.close()
    if body_text.startswith("{"):
        body_text = json.loads(body_text).get("message", "")
    return answer.status, body_text if answer.status != 200 else ""


async def kind(api):
    """Create a custom kind and wait until discovery lists it."""
    names = {"plural": "knobs", "kind": "Knob"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    spec = {"group": "paths.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    body = json.dumps({"metadata": {"name": "knobs.paths.example.com"}, "spec": spec}).encode()
    headers = {"Content-Type": "application/json"}
    transport = api.transport()
    assert (await transport.request(HttpRequest("POST", DEFINITION, headers=headers, body=body))).status in (201, 409)
    while (await transport.request(HttpRequest("GET", "/apis/paths.example.com/v1/knobs"))).status != 200:
        pass  # a real server serves it when its informers have seen it, which takes many requests' time


@pytest.mark.timeout(60)
async def test_unusual_paths_get_the_same_response_from_both_servers(api):
    await kind(api)
    differences = []
    for request_line, status, message in ANSWERS:
        response = await asyncio.to_thread(ask, api, *request_line.split())
        if response != (status, message):
            differences.append((request_line, response, (status, message)))
    assert not differences


@pytest.mark.rbac
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_only_a_bearer_token_counts_as_a_credential(api, credential):
    status, message = await asyncio.to_thread(ask, api, "GET", "/api/v1/namespaces/NS/secrets", credential)
    assert status == CREDENTIALS[credential]
    if status == 403:
        assert message == f'{ANONYMOUS} "{api.namespace}"'
        assert (await asyncio.to_thread(ask, api, "GET", "/version", credential))[0] == 200
