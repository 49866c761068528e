"""Tests that the audit log has the same lines as that of a real server."""

import asyncio
import json
import os
import re
import stat
import urllib.error
import urllib.request
from ssl import create_default_context

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.server.audit_policy import STAGES, parse_policy
from fairlead.server.authentication.users import User
from fairlead.server.authorization.attributes import request_attributes
from fairlead.server.http.messages import Request
from fairlead.testing.real import RealServer

MAPS = "/api/v1/namespaces/default/configmaps"
ADMIN = User("admin", ("system:masters",), "admin")
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
REQUESTS = [
    ("POST", MAPS, {"metadata": {"name": "a"}}, {}),
    ("POST", MAPS, {"metadata": {"generateName": "g-"}}, {}),
    ("POST", MAPS, {"metadata": {"name": "A"}}, {}),
    ("GET", f"{MAPS}/a", None, {}),
    ("GET", f"{MAPS}/missing?x=1", None, {}),
    ("GET", f"{MAPS}?labelSelector=a%3Db", None, {}),
    ("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, {"Content-Type": MERGE}),
    ("GET", MAPS, None, {"Impersonate-User": "jane"}),
    ("GET", MAPS, None, {"Authorization": "Bearer wrong"}),
    ("GET", MAPS, None, {"Authorization": None}),
    ("GET", f"{MAPS}?watch=1&timeoutSeconds=1", None, {}),
    ("GET", "/api/v1/namespaces/default", None, {}),
    ("DELETE", f"{MAPS}/a", None, {}),
    ("GET", "/version", None, {}),
    ("GET", "/nope", None, {}),
    ("GET", "/apis/x.example.com/v1/foos", None, {}),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}, {}),
]
SECRETS = "/api/v1/namespaces/default/secrets"
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"z": "1"}}
BODIES = [
    ("POST", MAPS, {"metadata": {"name": "b"}, "data": {"k": "<v>"}}, {}),
    ("PUT", f"{MAPS}/b", {"metadata": {"name": "b"}, "data": {"k": "w"}}, {}),
    ("PATCH", f"{MAPS}/b?fieldManager=x&force=true", APPLIED, {"Content-Type": "application/apply-patch+yaml"}),
    ("PATCH", f"{MAPS}/b", [{"op": "test", "path": "/data/k", "value": "w"}], {"Content-Type": JSON_PATCH}),
    ("PATCH", f"{MAPS}/b", {"data": {"k": None}}, {"Content-Type": "application/strategic-merge-patch+json"}),
    ("GET", f"{MAPS}/b", None, {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}),
    ("GET", f"{MAPS}/b", None, {"Accept": "application/yaml"}),
    ("GET", f"{MAPS}?fieldSelector=metadata.name%3Db", None, {}),
    ("POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "w"}}, {}),
    ("DELETE", f"{SECRETS}/s", {"propagationPolicy": "Background"}, {}),
    ("POST", MAPS, {"metadata": {"name": "c"}, "unknown": 1}, {}),
    ("POST", MAPS, "junk", {}),
    ("GET", "/apis", None, {}),
]
POLICIES = {
    "Metadata": {"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]},
    "RequestResponse": {
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "None", "nonResourceURLs": ["/apis"]}, {"level": "RequestResponse"}],
    },
    "Request in all stages": {"rules": [{"level": "Request"}]},
    "without managed fields": {"omitManagedFields": True, "rules": [{"level": "RequestResponse"}]},
    "rules": {
        "rules": [
            {"level": "None", "users": ["system:anonymous"]},
            {"level": "None", "verbs": ["watch"]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}], "omitStages": STAGES[:1]},
            {
                "level": "RequestResponse",
                "resources": [{"group": "", "resources": ["configmaps"], "resourceNames": ["b"]}],
            },
            {"level": "Metadata", "nonResourceURLs": ["/ver*"]},
            {"level": "Request", "namespaces": ["default"], "userGroups": ["system:masters"]},
        ]
    },
}


def send(url, ca, token):
    """Send all requests of this file one after another, over TLS."""
    context = create_default_context(cadata=ca.decode())
    for method, path, body, headers in REQUESTS + BODIES:
        request_headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": "audit/1",
            "Content-Type": "application/json",
        }
        request_headers = {key: value for key, value in {**request_headers, **headers}.items() if value is not None}
        encoded_body = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url + path, method=method, data=encoded_body, headers=request_headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                answer.read()
        except urllib.error.HTTPError as rejection:
            rejection.close()


def lines(path):
    """Return the audit events of the requests of this file, without the fields that differ between runs."""
    events = []
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event.get("userAgent") != "audit/1":
            continue
        for key in ("auditID", "requestReceivedTimestamp", "stageTimestamp"):
            assert event.pop(key)
        events.append(without_generated_values(event))
    return events


GENERATED = {"uid", "resourceVersion", "creationTimestamp", "time"}


def without_generated_values(value):
    if isinstance(value, list):
        return [without_generated_values(item) for item in value]
    if value == "fairlead":
        return "kube-apiserver"  # the manager of the namespaces that exist from the start
    if not isinstance(value, dict):
        return re.sub(r"^g-\w{5}$", "g-", value) if isinstance(value, str) else value
    return {key: without_generated_values(item) for key, item in value.items() if key not in GENERATED}


async def embedded(path, policy=None):
    parsed = parse_policy(json.dumps(policy)) if policy else None
    server = Server(World(), tokens={"t": ADMIN}, authorization="RBAC", audit=path, audit_policy=parsed)
    listening = await server.listen()
    await asyncio.to_thread(send, listening.url, listening.ca, "t")
    await listening.close()
    return lines(path)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
async def test_requests_are_logged_like_on_a_real_server(name, tmp_path):
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **POLICIES[name]}
    embedded_lines = await embedded(tmp_path / "audit.log", policy)
    file, log = tmp_path / "policy.json", tmp_path / "real.log"
    file.write_text(json.dumps(policy))
    with RealServer(audit=log, audit_policy=file) as server:
        await asyncio.to_thread(send, server.url, server.ca_data, server.token)
        for _ in range(100):
            real_lines = lines(log)
            if len(real_lines) >= len(embedded_lines):
                break
            await asyncio.sleep(0.05)  # its log is written behind
    assert real_lines == embedded_lines


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("[]", "an audit policy is an object with apiVersion"),
        ("kind: Policy\napiVersion: v1", "'v1' is not audit.k8s.io/v1"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1", "needs rules"),
        ("rules: [{level: All}]", "rules[0].level: 'All' is not one of None, Metadata, Request, RequestResponse"),
        ("rules: [{level: None, user: x}]", "not user"),
        ("omitStages: [Done]\nrules: [{level: None}]", "omitStages: 'Done' is not one of RequestReceived"),
        ("rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]", "resources or to nonResourceURLs"),
        ("rules: [{level: None, resources: [{resourceNames: [a]}]}]", "resourceNames need resources"),
    ],
)
def test_a_wrong_policy_is_an_error_that_names_the_field(policy, message):
    head = "" if policy.startswith(("[", "kind")) else "kind: Policy\napiVersion: audit.k8s.io/v1\n"
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_policy(head + policy)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("pods", "/api/v1/namespaces/a/pods/p", True),
        ("pods", "/api/v1/namespaces/a/pods/p/log", False),
        ("pods/log", "/api/v1/namespaces/a/pods/p/log", True),
        ("pods/*", "/api/v1/namespaces/a/pods/p/log", True),
        ("pods/*", "/api/v1/namespaces/a/pods/p", True),
        ("*/log", "/api/v1/namespaces/a/pods/p/log", True),
        ("*/log", "/api/v1/namespaces/a/pods/p", False),
        ("*", "/api/v1/namespaces/a/pods/p/log", True),
        ("*", "/version", False),
    ],
)
def test_resources_of_a_rule_match_as_on_a_real_server(pattern, path, matches):
    rule = {"level": "Metadata", "resources": [{"resources": [pattern]}]}
    policy = parse_policy(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}))
    verdict = policy.decide(request_attributes(Request("GET", path, {}, {})), is_authenticated=True)
    assert (verdict.level == "Metadata") == matches


async def test_a_watch_is_logged_at_its_start_and_end_with_one_id(tmp_path):
    path = tmp_path / "audit.log"
    await embedded(path)
    watches = [event for event in map(json.loads, path.read_text().splitlines()) if event["verb"] == "watch"]
    assert [event["stage"] for event in watches] == ["ResponseStarted", "ResponseComplete"]
    assert watches[0]["auditID"] == watches[1]["auditID"]
    assert watches[0]["stageTimestamp"] < watches[1]["stageTimestamp"]


async def test_the_log_has_no_bodies_and_mode_0600(tmp_path):
    path = tmp_path / "audit.log"
    server = Server(World(), tokens={"t": ADMIN}, audit=path)
    body = json.dumps({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}).encode()
    response = await server.transport().request(HttpRequest("POST", "/api/v1/namespaces/default/secrets", body=body))
    assert response.status == 201
    log = path.read_text()
    assert '"name":"s"' in log
    assert "hunter2" not in log
    assert "aHVudGVyMg" not in log
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_failing_audit_log_is_logged_once_and_requests_succeed(tmp_path, caplog):
    server = Server(World(), tokens=["t"], audit=tmp_path / "audit.log")
    os.dup2(os.open("/dev/full", os.O_WRONLY), server.audit._file)
    codes = [(await server.transport().request(HttpRequest("GET", "/version"))).status for _ in range(3)]
    assert codes == [200] * 3
    assert [record.message for record in caplog.records if "audit log" in record.message] == [
        f"cannot write the audit log {tmp_path / 'audit.log'}: No space left on device"
    ]


def test_an_audit_log_in_a_missing_folder_is_rejected_with_advice(tmp_path):
    with pytest.raises(ValueError, match="name a file in a folder"):
        Server(World(), audit=tmp_path / "none" / "audit.log")
