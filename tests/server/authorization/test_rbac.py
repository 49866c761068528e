"""Tests that both servers give the same response to the same request under RBAC.

The administrator impersonates the users. Each case creates the bindings of its users.
"""

import asyncio
import json

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.server.authentication.users import User

pytestmark = [pytest.mark.rbac, pytest.mark.xdist_group("rbac")]  # the two halves of a case are compared
RBAC = "/apis/rbac.authorization.k8s.io/v1"
READER = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
BINDER = [
    {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles", "rolebindings"],
        "verbs": ["create", "patch", "update"],  # and neither bind nor escalate
    }
]
WATCHER = [{"apiGroups": [""], "resources": ["configmaps", "serviceaccounts"], "verbs": ["watch"]}]
SCALER = [{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["*"]}]
UPDATER = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["update"]}]
ONE_NAME = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get", "list", "watch"]}]


class Actor:
    """A user with its own access rights in the namespace of the test."""

    def __init__(self, api, name, groups=()):
        self.api, self.name, self.groups = api, f"{name}-{api.namespace}", groups

    async def ask(self, method, path, body=None, content_type="application/json", *, is_admin=False, **query):
        headers = {"Content-Type": content_type}
        if not is_admin:
            headers["Impersonate-User"] = self.name
        full_path = path.replace("NS", f"namespaces/{self.api.namespace}")
        encoded_body = None if body is None else json.dumps(body).encode()
        response = await self.api.transport().request(
            HttpRequest(method, full_path, query=query, headers=headers, body=encoded_body)
        )
        return response.status, (json.loads(response.body) if response.body[:1] == b"{" else response.body)

    async def grant(self, *rules, role="r", is_cluster_wide=False):
        """Create a role and a binding for the user, and wait until the authorizer uses them."""
        metadata = {"name": f"{role}-{self.name}"}
        namespace_path = "" if is_cluster_wide else "/NS"
        kind = "ClusterRole" if is_cluster_wide else "Role"
        subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": self.name}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]}
        role = {"metadata": metadata, "rules": list(rules)}
        bound = {"metadata": metadata, "roleRef": reference, "subjects": subjects}
        assert (await self.ask("POST", f"{RBAC}{namespace_path}/{kind.lower()}s", role, is_admin=True))[0] == 201
        assert (await self.ask("POST", f"{RBAC}{namespace_path}/{kind.lower()}bindings", bound, is_admin=True))[
            0
        ] == 201
        if rules:
            await self._known(rules[0], is_cluster_wide)

    async def _known(self, rule, cluster):
        attributes = {"verb": rule["verbs"][0], "group": (rule.get("apiGroups") or [""])[0]}
        resource, _, subresource = (rule.get("resources") or [""])[0].partition("/")
        attributes |= {"resource": resource, "subresource": subresource, "name": (rule.get("resourceNames") or [""])[0]}
        if not cluster:
            attributes["namespace"] = self.api.namespace
        spec = {"user": self.name, "resourceAttributes": attributes}
        for _ in range(100):
            _, review = await self.ask(
                "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec}, is_admin=True
            )
            if review["status"]["allowed"]:
                return
            await asyncio.sleep(0.05)  # a real server's authorizer learns by watching
        raise AssertionError(f"{self.name} was never allowed {attributes}")


MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
REQUESTS = [
    # rights, request, allowed
    ((), ("GET", "/api/v1/NS/configmaps"), 403),
    ((), ("GET", "/api/v1/configmaps"), 403),
    ((), ("GET", "/api/v1/nodes/n"), 403),
    ((), ("GET", "/apis/apps/v1/NS/deployments/d/scale"), 403),
    ((), ("GET", "/apis/nope.example.com/v1/NS/things/a"), 403),
    ((), ("DELETE", "/api/v1/NS/configmaps"), 403),
    ((), ("PUT", "/api/v1/NS/configmaps/a", MAP), 403),
    ((), ("GET", "/version"), 200),
    ((), ("GET", "/healthz"), 200),
    ((), ("GET", "/api"), 200),
    ((), ("GET", "/apis/apps/v1"), 200),
    ((), ("GET", "/metrics"), 403),
    ((), ("GET", "/nope"), 403),
    (WATCHER, ("POST", "/api/v1/watch/NS/configmaps", MAP), 405),
    (WATCHER, ("PUT", "/api/v1/watch/NS/configmaps/a", MAP), 405),
    (WATCHER, ("DELETE", "/api/v1/watch/NS/configmaps/a"), 405),
    (WATCHER, ("DELETE", "/api/v1/watch/NS/configmaps"), 405),
    (WATCHER, ("POST", "/api/v1/watch/NS/serviceaccounts/default/token", {"spec": {}}), 403),
    (READER, ("GET", "/api/v1/NS/configmaps"), 200),
    (READER, ("GET", "/api/v1/NS/configmaps/missing"), 404),
    (READER, ("GET", "/api/v1/configmaps"), 403),
    (READER, ("POST", "/api/v1/NS/configmaps", MAP), 403),
    (READER, ("GET", "/api/v1/NS/secrets"), 403),
    (ONE_NAME, ("GET", "/api/v1/NS/configmaps/a"), 404),
    (ONE_NAME, ("GET", "/api/v1/NS/configmaps/b"), 403),
    (ONE_NAME, ("GET", "/api/v1/NS/configmaps?fieldSelector=metadata.name=a"), 200),
    (ONE_NAME, ("GET", "/api/v1/NS/configmaps?fieldSelector=metadata.name=b"), 403),
    (SCALER, ("GET", "/apis/apps/v1/NS/deployments/d/scale"), 404),
    (SCALER, ("GET", "/apis/apps/v1/NS/deployments/d"), 403),
    (UPDATER, ("PUT", "/api/v1/NS/configmaps/a", MAP), 404),
    (
        [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}],
        ("PUT", "/apis/coordination.k8s.io/v1/NS/leases/a", {"metadata": {"name": "a"}}),
        403,
    ),
    (
        [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}],
        ("PATCH", "/api/v1/NS/configmaps/a?fieldManager=m", MAP, "application/apply-patch+yaml"),
        403,
    ),
    (
        [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "create"]}],
        ("PATCH", "/api/v1/NS/configmaps/a?fieldManager=m", MAP, "application/apply-patch+yaml"),
        201,
    ),
]  # fmt: skip

ROLE = {"metadata": {"name": "more"}, "rules": [*READER, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]}

APPLIED = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", **ROLE}


def binding(role, kind="Role", name="b"):
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [{"kind": "User", "name": "x"}]}


ESCALATE = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "escalate"]}]
BIND = [
    {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["rolebindings", "clusterroles"],
        "verbs": ["create", "bind"],
    }
]
BIND_ONE = [
    {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"], "verbs": ["create"]},
    {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"],
        "resourceNames": ["system:basic-user"],
        "verbs": ["bind"],
    },
]
ESCALATIONS = [
    (BINDER, ("POST", f"{RBAC}/NS/roles", ROLE), 403),
    ([*BINDER, *READER], ("POST", f"{RBAC}/NS/roles", ROLE), 403),
    ([*BINDER, *READER], ("POST", f"{RBAC}/NS/roles", {"metadata": {"name": "same"}, "rules": READER}), 201),
    (BINDER, ("PATCH", f"{RBAC}/NS/roles/more?fieldManager=m", APPLIED, "application/apply-patch+yaml"), 403),
    (ESCALATE, ("POST", f"{RBAC}/NS/roles", ROLE), 201),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("system:discovery", "ClusterRole")), 201),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("system:monitoring", "ClusterRole")), 403),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("system:aggregate-to-admin", "ClusterRole")), 403),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("cluster-admin", "ClusterRole")), 403),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("nowhere")), 404),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("nowhere", "ClusterRole")), 404),
    (BINDER, ("POST", f"{RBAC}/NS/rolebindings", binding("system:basic-user", "ClusterRole")), 201),
    (BIND, ("POST", f"{RBAC}/NS/rolebindings", binding("cluster-admin", "ClusterRole")), 201),
    (BIND_ONE, ("POST", f"{RBAC}/NS/rolebindings", binding("cluster-admin", "ClusterRole")), 403),
    (BIND_ONE, ("POST", f"{RBAC}/clusterrolebindings", binding("system:basic-user", "ClusterRole")), 403),
]  # fmt: skip


def comparable_response(status, body, actor):
    """Return the status code and, for an error, its reason, details and message."""
    if isinstance(body, bytes):
        return status, body.decode()
    compared = (
        body.get("reason"),
        body.get("message"),
        body.get("details"),
        body.get("kind") if status < 300 else None,
    )
    return status, json.loads(json.dumps(compared).replace(actor.api.namespace, "NS"))


RECORDED = {}  # answers of the embedded half, for the real half to be compared with


@pytest.mark.parametrize("case", range(len(REQUESTS) + len(ESCALATIONS)))
async def test_a_request_gets_the_same_response_from_both_servers(api, case):
    rights, (method, path, *remainder), expected = (REQUESTS + ESCALATIONS)[case]
    actor = Actor(api, "u")
    await actor.grant(*rights)
    full_path, _, query = path.partition("?")
    parameters = dict(pair.split("=", 1) for pair in query.split("&")) if query else {}
    status, body = await actor.ask(method, full_path, *remainder, **parameters)
    assert status == expected, body
    actual = comparable_response(status, body, actor)
    assert RECORDED.setdefault(case, actual) == actual


async def test_a_role_can_be_relabelled_but_not_extended_beyond_ones_access(api):
    actor = Actor(api, "u")
    await actor.grant(*BINDER, *READER)
    role = {"metadata": {"name": "w"}, "rules": READER}
    assert (await actor.ask("POST", f"{RBAC}/NS/roles", role))[0] == 201
    wider = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    merge = "application/merge-patch+json"
    status, rejection = await actor.ask("PATCH", f"{RBAC}/NS/roles/w", wider, merge)
    assert status == 403
    assert "attempting to grant RBAC permissions not currently held:\n" in rejection["message"]
    assert '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in rejection["message"]
    status, relabelled = await actor.ask("PATCH", f"{RBAC}/NS/roles/w", {"metadata": {"labels": {"a": "b"}}}, merge)
    assert (status, relabelled["rules"]) == (200, READER)


async def test_finalizers_of_a_role_can_be_removed_without_its_access(api):
    actor = Actor(api, "u")
    await actor.grant(*BINDER)
    wide = {"metadata": {"name": "w", "finalizers": ["example.com/x"]}, "rules": [*READER]}
    assert (await actor.ask("POST", f"{RBAC}/NS/roles", wide, is_admin=True))[0] == 201
    remove = {"metadata": {"finalizers": None}}
    status, body = await actor.ask("PATCH", f"{RBAC}/NS/roles/w", remove, "application/merge-patch+json")
    assert status == 200, body


async def test_a_service_account_token_has_the_access_of_its_account(api):
    admin = Actor(api, "a")
    assert (await admin.ask("POST", "/api/v1/NS/serviceaccounts", {"metadata": {"name": "bot"}}, is_admin=True))[
        0
    ] == 201
    name = f"system:serviceaccount:{api.namespace}:bot"
    bot = Actor(api, "bot")
    bot.name = name
    role = {"metadata": {"name": "bot"}, "rules": READER}
    subjects = [{"kind": "ServiceAccount", "name": "bot", "namespace": api.namespace}]
    await admin.ask("POST", f"{RBAC}/NS/roles", role, is_admin=True)
    await admin.ask("POST", f"{RBAC}/NS/rolebindings", binding("bot") | {"subjects": subjects}, is_admin=True)
    await bot._known(READER[0], False)
    status, issued = await admin.ask("POST", "/api/v1/NS/serviceaccounts/bot/token", {"spec": {}}, is_admin=True)
    assert status == 201
    headers = {"Authorization": f"Bearer {issued['status']['token']}", "Content-Type": "application/json"}
    transport = api.transport()
    maps = f"/api/v1/namespaces/{api.namespace}/configmaps"
    codes = []
    for method, path, body in (("GET", maps, None), ("POST", maps, MAP), ("GET", "/api/v1/secrets", None)):
        encoded_body = json.dumps(body).encode() if body else None
        codes.append((await _as(api, transport, method, path, headers, encoded_body)).status)
    assert codes == [200, 403, 403]
    me = await _as(api, transport, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", headers, b"{}")
    user_info = json.loads(me.body)["status"]["userInfo"]
    assert user_info["username"] == name
    assert user_info["groups"] == [
        "system:serviceaccounts", f"system:serviceaccounts:{api.namespace}", "system:authenticated",
    ]  # fmt: skip


async def _as(api, transport, method, path, headers, body):
    """Send a request with other credentials than those of the transport."""
    if api.name == "embedded":
        return await transport.request(HttpRequest(method, path, headers=headers, body=body))
    from fairlead.client.access import Cluster
    from fairlead.client.credentials import StaticCredentials
    from fairlead.client.http import HttpTransport

    other_transport = HttpTransport(
        Cluster(api.url, api.ca_data), StaticCredentials.token(headers["Authorization"].split()[1])
    )
    try:
        remainder = {key: value for key, value in headers.items() if key != "Authorization"}
        return await other_transport.request(HttpRequest(method, path, headers=remainder, body=body))
    finally:
        await other_transport.close()


async def test_impersonation_needs_the_impersonate_verb(api):
    """Tests that only an administrator may impersonate, and then has only the rights of the other user."""
    actor = Actor(api, "u")
    status, rejection = await actor.ask("GET", "/api/v1/NS/configmaps")
    assert (status, rejection["reason"]) == (403, "Forbidden")
    review = {"spec": {"resourceAttributes": {"verb": "impersonate", "resource": "users", "name": "x"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert not (await actor.ask("POST", path, review))[1]["status"]["allowed"]
    assert (await actor.ask("POST", path, review, is_admin=True))[1]["status"]["allowed"]


async def test_a_rules_review_lists_the_rules_of_the_user(api):
    actor = Actor(api, "u")
    await actor.grant(*READER)
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    _, review = await actor.ask("POST", path, {"spec": {"namespace": api.namespace}})
    assert READER[0] in review["status"]["resourceRules"]
    assert any("/healthz" in rule["nonResourceURLs"] for rule in review["status"]["nonResourceRules"])
    assert review["status"]["incomplete"] is False


async def test_always_allow_allows_everything():
    server = Server(World(), tokens={"t": User("jane")})
    response = await server.transport("t").request(HttpRequest("GET", "/api/v1/secrets"))
    assert response.status == 200


async def test_the_error_for_an_unknown_authorization_mode_names_the_valid_ones():
    with pytest.raises(ValueError, match="AlwaysAllow, RBAC"):
        Server(World(), authorization="ABAC")


@pytest.mark.parametrize(
    ("kind", "group", "only"),
    [
        ("User", "example.com", "rbac.authorization.k8s.io"),
        ("Group", "example.com", "rbac.authorization.k8s.io"),
        ("ServiceAccount", "rbac.authorization.k8s.io", ""),
    ],
)
@pytest.mark.parametrize("role_scope", ["clusterrolebindings", "NS/rolebindings"])
async def test_a_subject_with_a_wrong_api_group_is_rejected(api, role_scope, kind, group, only):
    subject = {"kind": kind, "name": "a", "apiGroup": group}
    if kind == "ServiceAccount":
        subject["namespace"] = "default"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    bound = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
    code, rejection = await Actor(api, "a").ask("POST", f"{RBAC}/{role_scope}", bound, is_admin=True, dryRun="All")
    assert code == 422, rejection
    message = f'Unsupported value: "{group}": supported values: "{only}"'
    assert rejection["details"]["causes"] == [
        {"reason": "FieldValueNotSupported", "message": message, "field": "subjects[0].apiGroup"}
    ]
    subject["apiGroup"] = only
    assert (await Actor(api, "a").ask("POST", f"{RBAC}/{role_scope}", bound, is_admin=True, dryRun="All"))[0] == 201
