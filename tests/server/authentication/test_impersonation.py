"""Tests of impersonation on both servers: the allowed users and requests, and the error messages."""

import asyncio
import json

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEGACY = {"apiGroups": [""], "resources": ["users", "serviceaccounts"], "verbs": ["impersonate"]}
FINER = {"apiGroups": ["authentication.k8s.io"], "resources": ["users"], "verbs": ["impersonate:user-info"]}
ON = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["impersonate-on:user-info:list"]}
GROUPS = {"apiGroups": ["*"], "resources": ["groups"], "verbs": ["*"]}
ACCOUNTS = {
    "apiGroups": ["authentication.k8s.io"],
    "resources": ["serviceaccounts"],
    "verbs": ["impersonate:serviceaccount"],
}
ON_ACCOUNT = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["impersonate-on:serviceaccount:list"]}
BOB = {"Impersonate-User": "bob"}
ACCOUNT = {"Impersonate-User": "system:serviceaccount:default:x"}
CASES = [
    # rights of the one who asks, headers, path
    ([], BOB, "/api/v1/NS/configmaps"),
    ([], BOB, "/version"),
    ([], ACCOUNT, "/api/v1/NS/configmaps"),
    ([], {**ACCOUNT, "Impersonate-Group": "g"}, "/api/v1/NS/configmaps"),
    ([], {"Impersonate-User": "system:node:n"}, "/api/v1/NS/configmaps"),
    ([], {"Impersonate-Group": "g"}, "/version"),
    ([LEGACY], BOB, "/version"),
    ([LEGACY], BOB, "/api/v1/NS/configmaps"),
    ([LEGACY], ACCOUNT, "/version"),
    ([LEGACY], {**BOB, "Impersonate-Group": "g"}, "/version"),
    ([LEGACY], {**BOB, "Impersonate-Uid": "u"}, "/version"),
    ([LEGACY, GROUPS], {**BOB, "Impersonate-Group": "g"}, "/version"),
    ([FINER], BOB, "/api/v1/NS/configmaps"),
    ([ON], BOB, "/api/v1/NS/configmaps"),
    ([FINER, ON], BOB, "/api/v1/NS/configmaps"),
    ([FINER, ON], BOB, "/api/v1/NS/secrets"),
    ([FINER, ON, GROUPS], {**BOB, "Impersonate-Group": "system:masters"}, "/api/v1/NS/configmaps"),
    ([ACCOUNTS, ON_ACCOUNT], ACCOUNT, "/api/v1/NS/configmaps"),
]  # fmt: skip
SEEN = {}  # answers of the embedded half, for the real half to be compared with
pytestmark = [pytest.mark.rbac, pytest.mark.xdist_group("impersonation")]


async def ask(transport, method, path, body=None, **headers):
    encoded_body = None if body is None else json.dumps(body).encode()
    response = await transport.request(
        HttpRequest(method, path, headers={"Content-Type": "application/json", **headers}, body=encoded_body)
    )
    return response.status, (json.loads(response.body) if response.body[:1] == b"{" else response.body.decode())


@pytest.fixture
async def service_account(api):
    """Yield a ServiceAccount's transport and a function that grants it access, on a server with RBAC."""
    admin, namespace_path = api.transport(), f"namespaces/{api.namespace}"
    await ask(admin, "POST", f"/api/v1/{namespace_path}/serviceaccounts", {"metadata": {"name": "asker"}})
    _, issued = await ask(admin, "POST", f"/api/v1/{namespace_path}/serviceaccounts/asker/token", {"spec": {}})
    token = issued["status"]["token"]
    if api.name == "embedded":
        transport = api.server.transport(token)
    else:
        transport = HttpTransport(Cluster(api.url, api.ca_data), StaticCredentials.token(token))

    async def allow(rules):
        name = f"asker-{api.namespace}"
        metadata_body = {"metadata": {"name": name}}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subjects = [{"kind": "ServiceAccount", "name": "asker", "namespace": api.namespace}]
        await ask(admin, "POST", f"{RBAC}/clusterroles", {**metadata_body, "rules": rules})
        bound = {**metadata_body, "roleRef": reference, "subjects": subjects}
        await ask(admin, "POST", f"{RBAC}/clusterrolebindings", bound)
        me = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        for _ in range(100):
            _, review = await ask(transport, "POST", me, {"spec": {"namespace": "default"}})
            if all(rule["verbs"] in [r["verbs"] for r in review["status"]["resourceRules"]] for rule in rules):
                return
            await asyncio.sleep(0.05)  # a real server's authorizer learns by watching

    yield transport, allow
    await transport.close()


@pytest.mark.parametrize("case", range(len(CASES)))
async def test_impersonation_gets_the_same_response_from_both_servers(api, service_account, case):
    transport, allow = service_account
    rules, headers, path = CASES[case]
    await allow(rules)
    status, body = await ask(transport, "GET", path.replace("NS", f"namespaces/{api.namespace}"), **headers)
    error = body.get("message"), body.get("details")
    actual = status, json.loads(json.dumps(error).replace(api.namespace, "NS"))
    assert SEEN.setdefault(case, actual) == actual
