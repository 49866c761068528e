"""Tests of admission webhooks. The outcomes of the table were recorded from a real server."""

import asyncio
import contextlib
import json
import ssl

import pytest
from tests.server.admission import webhook_cases
from tests.server.admission.webhook_cases import CASES, CONFIGURATIONS, MERGE, Case, allow, ask, deny
from tests.support.virtual_time import in_virtual_time
from tests.support.webhook_server import HOST, serve_webhooks

from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.webhooks.calls import WebhookReply
from fairlead.server.webhooks.https_caller import HttpsCaller

OUTCOMES = webhook_cases.read_outcomes()


@pytest.mark.parametrize("name", CASES)
async def test_outcome_is_that_of_a_real_server(api, name):
    async with serve_webhooks() as webhooks:
        outcome = await webhook_cases.run(api, webhooks, CASES[name])
        assert webhook_cases.normalize(api, webhooks, outcome) == OUTCOMES[name]


CONFIG_MAPS = [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]


@contextlib.asynccontextmanager
async def configured(api, webhooks, handler, *, mutating=False, **fields):
    """Let a webhook see the ConfigMaps of the test's namespace."""
    case = Case(handler, mutating=mutating, hook={"rules": CONFIG_MAPS, **fields})
    async with webhook_cases.configured(api, webhooks, case):
        yield


def at(api, name=""):
    return f"/api/v1/namespaces/{api.namespace}/configmaps" + (f"/{name}" if name else "")


async def test_other_requests_go_on_while_a_webhook_is_called(api):
    called, may_answer = asyncio.Event(), asyncio.Event()

    async def wait(review):
        called.set()
        await may_answer.wait()
        return allow(review)

    async with serve_webhooks() as webhooks, configured(api, webhooks, wait):
        writing = asyncio.create_task(ask(api, "POST", at(api), {"metadata": {"name": "slow"}}))
        await called.wait()
        assert (await ask(api, "GET", at(api, "slow")))[0] == 404
        assert (await ask(api, "GET", "/api/v1/namespaces/default"))[0] == 200
        may_answer.set()
        assert (await writing)[0] == 201


async def test_webhook_is_asked_again_if_the_object_changed_meanwhile(api):
    async def change_meanwhile(review):
        new, old = (review["request"][key].get("data") or {} for key in ("object", "oldObject"))
        if "slow" in new and "fast" not in old:
            await ask(api, "PATCH", at(api, "x"), {"data": {"fast": "1"}}, MERGE)
        return allow(review)

    async with serve_webhooks() as webhooks:
        await ask(api, "POST", at(api), {"metadata": {"name": "x"}})
        async with configured(api, webhooks, change_meanwhile):
            status, body, _ = await ask(api, "PATCH", at(api, "x"), {"data": {"slow": "1"}}, MERGE)
        assert (status, body["data"]) == (200, {"slow": "1", "fast": "1"})
        seen = [review["request"]["object"]["data"] for _, review in webhooks.reviews]
        assert seen == [{"slow": "1"}, {"fast": "1"}, {"slow": "1", "fast": "1"}]


async def test_guarded_update_conflicts_if_the_object_changed_meanwhile(api):
    async def change_meanwhile(review):
        if "slow" in review["request"]["object"]["data"]:
            await ask(api, "PATCH", at(api, "x"), {"data": {"fast": "1", "slow": None}}, MERGE)
        return allow(review)

    async with serve_webhooks() as webhooks:
        _, live, _ = await ask(api, "POST", at(api), {"metadata": {"name": "x"}, "data": {"a": "1"}})
        async with configured(api, webhooks, change_meanwhile):
            status, body, _ = await ask(api, "PUT", at(api, "x"), {**live, "data": {"slow": "1"}})
        assert (status, body["reason"]) == (409, "Conflict")


async def test_webhook_sees_the_name_and_uid_that_are_stored(api):
    async with serve_webhooks() as webhooks, configured(api, webhooks, allow):
        _, body, _ = await ask(api, "POST", at(api), {"metadata": {"generateName": "x-"}})
        shown = webhooks.reviews[-1][1]["request"]
        assert shown["name"] == body["metadata"]["name"]
        assert shown["object"]["metadata"]["uid"] == body["metadata"]["uid"]


async def test_connections_are_reused(api):
    async with serve_webhooks() as webhooks, configured(api, webhooks, allow):
        before = webhooks.connections
        for number in range(5):
            await ask(api, "POST", at(api), {"metadata": {"name": f"x{number}"}})
        assert webhooks.connections - before <= 1


async def test_bundle_may_be_the_certificate_of_the_webhook(api):
    async with serve_webhooks() as webhooks:
        leaf = await asyncio.to_thread(ssl.get_server_certificate, (HOST, webhooks.port))
        webhooks.ca = leaf.encode()
        async with configured(api, webhooks, deny(message="no")):
            status, body, _ = await ask(api, "POST", at(api), {"metadata": {"name": "x"}})
        assert (status, body["message"]) == (400, 'admission webhook "h0.example.com" denied the request: no')


async def test_webhook_configurations_are_exempt(api):
    async with serve_webhooks() as webhooks:
        rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "Cluster"}
        mine = {"objectSelector": {"matchLabels": {"of": api.namespace}}, "rules": [rule], "namespaceSelector": {}}
        async with webhook_cases.configured(api, webhooks, Case(deny(message="no"), hook=mine)):
            metadata = {"name": f"y-{api.namespace}", "labels": {"of": api.namespace}}
            path = f"{CONFIGURATIONS}mutatingwebhookconfigurations"
            assert (await ask(api, "POST", path, {"metadata": metadata}))[0] == 201
            assert (await ask(api, "DELETE", f"{path}/{metadata['name']}"))[0] == 200
            body = {"metadata": metadata, "value": 1}
            status, body, _ = await ask(api, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
            assert (status, "denied the request" in body["message"]) == (400, True)


@pytest.mark.only("embedded", reason="a real server has no option that maps services to ports")
async def test_service_is_reached_at_the_mapped_address(api):
    async with serve_webhooks(["hook.apps.svc"]) as webhooks:
        api.server._webhook_caller = HttpsCaller(services={"apps/hook": (HOST, webhooks.port)})
        target = {"service": {"namespace": "apps", "name": "hook", "path": f"/{api.namespace}/0"}}
        probe = {"service": {"namespace": "apps", "name": "hook", "path": f"/{api.namespace}/probe"}}
        async with configured(api, webhooks, deny(message="no"), clientConfig=target, probe=probe):
            status, body, _ = await ask(api, "POST", at(api), {"metadata": {"name": "x"}})
        assert (status, body["message"]) == (400, 'admission webhook "h0.example.com" denied the request: no')


class RecordingCaller:
    """Answers in the test's process, without sockets, and takes its time."""

    def __init__(self, seconds=0.0, **response):
        self.calls = []
        self._seconds = seconds
        self._response = response

    async def call(self, call):
        self.calls.append(call)
        await asyncio.sleep(self._seconds)
        review = json.loads(call.body)
        answer = {**review, "response": {"uid": review["request"]["uid"], **self._response}}
        return WebhookReply(200, "application/json", json.dumps(answer).encode())

    def close(self):
        """Do nothing."""


async def create(server, plural, body, prefix="/api/v1/namespaces/default/"):
    headers = {"content-type": "application/json"}
    return await server.handle(Request("POST", prefix + plural, {}, headers, json.dumps(body).encode()))


def hook(url="https://127.0.0.1:1/x", **fields):
    rules = {"rules": CONFIG_MAPS, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    return {"name": "a.example.com", "clientConfig": {"url": url}, **rules, **fields}


async def configure(server, **fields):
    body = {"metadata": {"name": "x"}, "webhooks": [hook(**fields)]}
    assert (await create(server, "validatingwebhookconfigurations", body, CONFIGURATIONS)).status == 201


async def test_caller_can_be_replaced():
    caller = RecordingCaller(allowed=False, status={"message": "no"})
    server = Server(webhook_caller=caller)
    await configure(server, timeoutSeconds=7)
    assert (await create(server, "configmaps", {"metadata": {"name": "x"}})).status == 400
    assert [call.target for call in caller.calls] == ["https://127.0.0.1:1/x?timeout=7s"]


@in_virtual_time
async def test_timeout_passes_in_virtual_time():
    server = Server(webhook_caller=RecordingCaller(3600.0, allowed=True))
    await configure(server, timeoutSeconds=30)
    response = await create(server, "configmaps", {"metadata": {"name": "x"}})
    assert b"context deadline exceeded" in response.body


async def test_suspended_request_counts_once(tmp_path):
    server = Server(webhook_caller=RecordingCaller(allowed=True, warnings=["once"]), audit=tmp_path / "audit")
    await configure(server)
    response = await create(server, "configmaps", {"metadata": {"name": "x"}})
    assert response.warnings == ["once"]
    lines = (tmp_path / "audit").read_text().splitlines()
    assert [json.loads(line)["objectRef"]["resource"] for line in lines] == [
        "validatingwebhookconfigurations",
        "configmaps",
    ]
    server.close()


async def test_webhook_on_another_machine_needs_permission():
    server = Server()
    await configure(server, url="https://webhook.example.com/x")
    response = await create(server, "configmaps", {"metadata": {"name": "x"}})
    assert b"this server calls webhooks on loopback only: allow it with --webhook-hosts=webhook" in response.body


async def test_audit_event_has_the_annotations_of_webhooks(tmp_path):
    caller = RecordingCaller(allowed=True, auditAnnotations={"reason": "fine"})
    server = Server(webhook_caller=caller, audit=tmp_path / "audit")
    body = {"metadata": {"name": "m"}, "webhooks": [hook()]}
    await create(server, "mutatingwebhookconfigurations", body, CONFIGURATIONS)
    await create(server, "configmaps", {"metadata": {"name": "x"}})
    annotations = json.loads((tmp_path / "audit").read_text().splitlines()[-1])["annotations"]
    assert annotations["a.example.com/reason"] == "fine"
    assert annotations["mutation.webhook.admission.k8s.io/round_0_index_0"] == (
        '{"configuration":"m","webhook":"a.example.com","mutated":false}'
    )
    server.close()


@in_virtual_time
async def test_request_ends_if_its_object_changes_at_each_call():
    class Meddler(RecordingCaller):
        async def call(self, call):
            live = server.store.table("", "configmaps").get("default", "x")
            server.store.put(server.store.table("", "configmaps"), {**live.object, "data": {"n": str(len(self.calls))}})
            return await super().call(call)

    server = Server(webhook_caller=Meddler(5.0, allowed=True))
    await create(server, "configmaps", {"metadata": {"name": "x"}})
    await configure(server)
    headers = {"content-type": MERGE}
    body = b'{"data":{"mine":"1"}}'
    response = await server.handle(Request("PATCH", "/api/v1/namespaces/default/configmaps/x", {}, headers, body))
    assert (response.status, b"context deadline exceeded" in response.body) == (504, True)
