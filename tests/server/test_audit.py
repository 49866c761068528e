"""Tests that the audit log has the same lines as that of a real server."""

import asyncio
import json
import os
import stat
import urllib.error
import urllib.request
from ssl import create_default_context

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.server.authentication.users import User
from fairlead.testing.real import RealServer

MAPS = "/api/v1/namespaces/default/configmaps"
ADMIN = User("admin", ("system:masters",), "admin")
MERGE = "application/merge-patch+json"
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


def send(url, ca, token):
    """Send all requests of this file one after another, over TLS."""
    context = create_default_context(cadata=ca.decode())
    for method, path, body, headers in REQUESTS:
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
        (event["responseStatus"].get("details") or {}).pop("uid", None)
        events.append(event)
    return events


async def embedded(path):
    server = Server(World(), tokens={"t": ADMIN}, authorization="RBAC", audit=path)
    listening = await server.listen()
    await asyncio.to_thread(send, listening.url, listening.ca, "t")
    await listening.close()
    return lines(path)


class Audited(RealServer):
    """A real server with an audit log at the level Metadata."""

    def __init__(self, folder):
        super().__init__()
        self.log = folder / "real.log"
        self.policy = folder / "policy.json"
        rules = {"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}
        self.policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **rules}))

    def _spawn(self, binary, *flags):
        if binary.name == "kube-apiserver":
            flags = (*flags, f"--audit-policy-file={self.policy}", f"--audit-log-path={self.log}")
        return super()._spawn(binary, *flags)


@pytest.mark.real
@pytest.mark.slow
async def test_requests_are_logged_like_on_a_real_server(tmp_path):
    embedded_lines = await embedded(tmp_path / "audit.log")
    with Audited(tmp_path) as server:
        await asyncio.to_thread(send, server.url, server.ca_data, server.token)
        for _ in range(100):
            real_lines = lines(server.log)
            if len(real_lines) >= len(embedded_lines):
                break
            await asyncio.sleep(0.05)  # its log is written behind
    assert real_lines == embedded_lines


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
