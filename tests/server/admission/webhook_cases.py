"""Webhook configurations and requests, and the outcomes on a real server.

`python -m tests.server.admission.webhook_cases` records the outcomes again.
"""

import asyncio
import base64
import json
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.webhook_server import patch, respond

from fairlead.api.requests import HttpRequest

OUTCOMES = Path(__file__).parent / "webhook_outcomes.jsonl"
_GENERATED = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r'"\d{4}-\d\d-\d\dT[^"]*Z"', '"TIME"'),
    (r'"resourceVersion": "\d+"', '"resourceVersion": "VERSION"'),
    (r'"x-[a-z0-9]{5}"', '"x-SUFFIX"'),
)
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/"
MERGE = "application/merge-patch+json"


def allow(review):
    return respond(review, allowed=True)


def deny(**status):
    return lambda review: respond(review, allowed=False, status=status)


def answer(**response):
    return lambda review: respond(review, **response)


def change(*operations):
    return lambda review: patch(review, *operations)


def raw(status, content_type, body):
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return lambda review: head.encode() + body


def encode(operations):
    return base64.b64encode(json.dumps(operations).encode()).decode()


async def never(review):
    await asyncio.sleep(30)


@dataclass
class Case:
    """One webhook with its answer, and the request that it sees."""

    handler: object = allow
    mutating: bool = False
    hook: dict = field(default_factory=dict)
    method: str = "POST"
    path: str = "configmaps"
    body: dict | None = field(default_factory=lambda: {"metadata": {"name": "x"}, "data": {"a": "1"}})
    content_type: str = "application/json"
    query: dict = field(default_factory=dict)
    exists: dict | None = None  # an object that exists before the webhook does
    more: tuple = ()  # other webhooks of the configuration: (handler, fields)


ADD_LABEL = {"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}
RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
LIVE = {"metadata": {"name": "x"}, "data": {"a": "0"}}

CASES = {
    "allowed": Case(),
    "denied without a status": Case(answer(allowed=False)),
    "denied with a message": Case(deny(message="no")),
    "denied with a code": Case(deny(message="no", code=418, reason="Teapot", details={"name": "y"})),
    "denied with a reason": Case(deny(reason="Forbidden", code=403)),
    "denied with a success": Case(deny(message="no", code=200, status="Success")),
    "denied by a mutating webhook": Case(deny(message="no", code=403), mutating=True),
    "warnings": Case(answer(allowed=True, warnings=["first", "second"])),
    "warnings of a denial": Case(answer(allowed=False, warnings=["first"], status={"message": "no"})),
    "label added": Case(change(ADD_LABEL), mutating=True),
    "data replaced": Case(change({"op": "replace", "path": "/data/a", "value": "2"}), mutating=True),
    "empty patch": Case(change(), mutating=True),
    "patch that does not apply": Case(change({"op": "remove", "path": "/data/b"}), mutating=True),
    "patch of a wrong type": Case(change({"op": "add", "path": "/data/b", "value": 1}), mutating=True),
    "unknown field in a patch": Case(change({"op": "add", "path": "/nope", "value": 1}), mutating=True),
    "patch that is no list": Case(answer(allowed=True, patchType="JSONPatch", patch=encode({})), mutating=True),
    "patch without a type": Case(answer(allowed=True, patch=encode([ADD_LABEL])), mutating=True),
    "type without a patch": Case(answer(allowed=True, patchType="JSONPatch"), mutating=True),
    "empty patch type": Case(answer(allowed=True, patchType="", patch=encode([ADD_LABEL])), mutating=True),
    "other patch type": Case(answer(allowed=True, patchType="Merge", patch=encode([ADD_LABEL])), mutating=True),
    "patch of a validating webhook": Case(change(ADD_LABEL)),
    "patch type of a validating webhook": Case(answer(allowed=True, patchType="JSONPatch")),
    "name changed": Case(change({"op": "replace", "path": "/metadata/name", "value": "y"}), mutating=True),
    "namespace changed": Case(change({"op": "replace", "path": "/metadata/namespace", "value": "y"}), mutating=True),
    "kind changed": Case(change({"op": "replace", "path": "/kind", "value": "Endpoints"}), mutating=True),
    "managed fields removed": Case(change({"op": "remove", "path": "/metadata/managedFields"}), mutating=True),
    "invalid object made": Case(
        change({"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}), mutating=True
    ),
    "other uid": Case(lambda review: respond(review, allowed=True) | {"response": {"uid": "z", "allowed": True}}),
    "no response": Case(lambda review: {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
    "empty object": Case(lambda review: {}),
    "no kind": Case(lambda review: {"response": {"uid": review["request"]["uid"], "allowed": True}}),
    "other kind": Case(lambda review: {**respond(review, allowed=True), "apiVersion": "v1", "kind": "ConfigMap"}),
    "other version": Case(lambda review: {**respond(review, allowed=True), "apiVersion": "admission.k8s.io/v1beta1"}),
    "review of v1beta1": Case(hook={"admissionReviewVersions": ["v1beta1", "v1"]}),
    "patch in v1beta1": Case(change(ADD_LABEL), mutating=True, hook={"admissionReviewVersions": ["v1beta1"]}),
    "status 404": Case(raw(404, "text/plain", b"not here")),
    "status 500 with text": Case(raw(500, "text/plain", b"boom\n")),
    "status 500 with JSON": Case(raw(500, "application/json", b'{"a":1}')),
    "status 403 with text": Case(raw(403, "text/plain; charset=utf-8", b"go away")),
    "status 302": Case(raw(302, "text/plain", b"moved")),
    "status 400": Case(raw(400, "text/plain", b"bad")),
    "status 503": Case(raw(503, "text/plain", b"busy")),
    "empty body": Case(raw(200, "application/json", b"")),
    "no JSON": Case(raw(200, "application/json", b"hello")),
    "text instead of JSON": Case(raw(200, "text/plain", b"hello")),
    "a list": Case(raw(200, "application/json", b"[]")),
    "ignored failure": Case(raw(500, "text/plain", b"boom"), hook={"failurePolicy": "Ignore"}),
    "ignored denial": Case(deny(message="no"), hook={"failurePolicy": "Ignore"}),
    "timeout": Case(never, hook={"timeoutSeconds": 1}),
    "ignored timeout": Case(never, hook={"timeoutSeconds": 1, "failurePolicy": "Ignore"}),
    "refused connection": Case(hook={"clientConfig": {"url": "https://127.0.0.1:1/x"}}),
    "unknown authority": Case(hook={"clientConfig": {"caBundle": ""}}),
    "missing service": Case(hook={"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/x"}}}),
    "missing service and port": Case(hook={"clientConfig": {"service": {"name": "s", "namespace": "n", "port": 8443}}}),
    "dry run": Case(query={"dryRun": "All"}),
    "update": Case(change(ADD_LABEL), mutating=True, method="PUT", path="configmaps/x", exists=LIVE),
    "update that changes nothing": Case(method="PUT", path="configmaps/x", exists=LIVE, body=LIVE),
    "no-op update that a webhook changes": Case(
        change(ADD_LABEL), mutating=True, method="PUT", path="configmaps/x", exists=LIVE, body=LIVE
    ),
    "patch that changes nothing": Case(
        method="PATCH", path="configmaps/x", exists=LIVE, body={"data": {"a": "0"}}, content_type=MERGE
    ),
    "patch denied": Case(
        deny(message="no"),
        method="PATCH",
        path="configmaps/x",
        exists=LIVE,
        body={"data": {"a": "1"}},
        content_type=MERGE,
    ),
    "apply that creates": Case(
        change(ADD_LABEL),
        mutating=True,
        method="PATCH",
        path="configmaps/x",
        query={"fieldManager": "m"},
        content_type="application/apply-patch+yaml",
        body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}},
    ),
    "apply that updates": Case(
        change(ADD_LABEL),
        mutating=True,
        method="PATCH",
        path="configmaps/x",
        query={"fieldManager": "m", "force": "true"},
        content_type="application/apply-patch+yaml",
        exists=LIVE,
        body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}},
    ),
    "delete": Case(method="DELETE", path="configmaps/x", exists=LIVE, body=None),
    "delete denied": Case(deny(message="no"), method="DELETE", path="configmaps/x", exists=LIVE, body=None),
    "delete with a patch": Case(
        change(ADD_LABEL), mutating=True, method="DELETE", path="configmaps/x", exists=LIVE, body=None
    ),
    "delete with options": Case(
        method="DELETE", path="configmaps/x", exists=LIVE, body={"propagationPolicy": "Orphan", "gracePeriodSeconds": 3}
    ),
    "delete of a collection": Case(method="DELETE", path="configmaps", exists=LIVE, body=None),
    "delete of a collection denied": Case(
        deny(message="no"), method="DELETE", path="configmaps", exists=LIVE, body=None
    ),
    "generated name": Case(body={"metadata": {"generateName": "x-"}}),
    "pod": Case(
        change({"op": "add", "path": "/spec/containers/-", "value": {"name": "s", "image": "s"}}),
        mutating=True,
        path="pods",
        body={"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    ),
    "object selector": Case(deny(), hook={"objectSelector": {"matchLabels": {"a": "b"}}}),
    "object selector that matches": Case(
        deny(), hook={"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}
    ),
    "other operation": Case(deny(), hook={"rules": [{**RULE, "operations": ["UPDATE", "DELETE"]}]}),
    "other group": Case(deny(), hook={"rules": [{**RULE, "apiGroups": ["apps"]}]}),
    "other resource": Case(deny(), hook={"rules": [{**RULE, "resources": ["secrets", "configmaps/status"]}]}),
    "only subresources": Case(deny(), hook={"rules": [{**RULE, "resources": ["*/status"]}]}),
    "cluster scope": Case(deny(), hook={"rules": [{**RULE, "scope": "Cluster"}]}),
    "namespaced scope": Case(deny(), hook={"rules": [{**RULE, "scope": "Namespaced"}]}),
    "equivalent version": Case(
        path="/apis/autoscaling/v2/NS/horizontalpodautoscalers",
        hook={"rules": [{**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"]}]},
        body={
            "metadata": {"name": "x"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
        },
    ),
    "exact version": Case(
        deny(),
        path="/apis/autoscaling/v2/NS/horizontalpodautoscalers",
        hook={"rules": [{**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"]}], "matchPolicy": "Exact"},
        body={
            "metadata": {"name": "x"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
        },
    ),
    "match condition true": Case(
        deny(), hook={"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'x'"}]}
    ),
    "match condition false": Case(
        deny(), hook={"matchConditions": [{"name": "a", "expression": "request.operation == 'DELETE'"}]}
    ),
    "match condition with an error": Case(
        deny(), hook={"matchConditions": [{"name": "a", "expression": "object.nope == 'x'"}]}
    ),
    "match condition with an ignored error": Case(
        deny(),
        hook={"failurePolicy": "Ignore", "matchConditions": [{"name": "a", "expression": "object.nope == 'x'"}]},
    ),
    "error and false condition": Case(
        deny(),
        hook={
            "matchConditions": [
                {"name": "a", "expression": "object.nope == 'x'"},
                {"name": "b", "expression": "oldObject != null"},
            ]
        },
    ),
    "two webhooks in order": Case(
        change({"op": "add", "path": "/data/a", "value": "first"}),
        mutating=True,
        more=((change({"op": "add", "path": "/data/b", "value": "second"}), {}),),
    ),
    "reinvocation": Case(
        change({"op": "add", "path": "/data/a", "value": "first"}),
        mutating=True,
        hook={"reinvocationPolicy": "IfNeeded"},
        more=((change({"op": "add", "path": "/data/b", "value": "second"}), {"reinvocationPolicy": "IfNeeded"}),),
    ),
    "no reinvocation": Case(
        change({"op": "add", "path": "/data/a", "value": "first"}),
        mutating=True,
        more=((change({"op": "add", "path": "/data/b", "value": "second"}), {}),),
    ),
    "second webhook is skipped after a denial": Case(
        deny(message="no"), mutating=True, more=((change({"op": "add", "path": "/data/b", "value": "2"}), {}),)
    ),
    "scale": Case(
        method="PATCH",
        path="/apis/apps/v1/NS/deployments/x/scale",
        body={"spec": {"replicas": 3}},
        content_type=MERGE,
        exists={
            "metadata": {"name": "x"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        },
    ),
    "status": Case(
        method="PATCH",
        path="/apis/apps/v1/NS/deployments/x/status",
        body={"status": {"replicas": 3}},
        content_type=MERGE,
        exists={
            "metadata": {"name": "x"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        },
    ),
    "binding": Case(
        path="pods/x/binding",
        body={"metadata": {"name": "x"}, "target": {"name": "n"}},
        exists={"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    ),
    "eviction denied": Case(
        deny(message="no"),
        path="pods/x/eviction",
        body={"metadata": {"name": "x"}},
        exists={"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    ),
}


async def ask(api, method, path, body=None, content_type="application/json", **query):
    headers = {"Content-Type": content_type, "User-Agent": "tester/1"}
    data = json.dumps(body).encode() if body is not None else None
    response = await api.transport().request(HttpRequest(method, path, query=query, headers=headers, body=data))
    return response.status, json.loads(response.body), list(response.warnings)


def _resolve(api, path):
    if path.startswith("/"):
        return path.replace("/NS/", f"/namespaces/{api.namespace}/")
    return f"/api/v1/namespaces/{api.namespace}/{path}"


async def run(api, webhooks, case):
    """Configure the webhooks of a case, send its request, and return what came back and what the webhooks saw."""
    if case.exists:
        collection = _resolve(api, case.path).split("/x")[0]
        status, body, _ = await ask(api, "POST", collection, case.exists)
        assert status == 201, body
    async with configured(api, webhooks, case):
        path = _resolve(api, case.path)
        result = await ask(api, case.method, path, case.body, case.content_type, **case.query)
    return result, [(path.rpartition("/")[2], review) for path, review in webhooks.reviews]


@asynccontextmanager
async def configured(api, webhooks, case):
    """Configure the webhooks of a case for the test's namespace until the block ends."""
    name = api.namespace
    plural = CONFIGURATIONS + ("mutating" if case.mutating else "validating") + "webhookconfigurations"
    await ask(api, "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"hooked": name}}}, MERGE)
    await ask(api, "POST", "/api/v1/namespaces", {"metadata": {"name": f"probe-{name}", "labels": {"probed": name}}})
    hooks = [
        _build_hook(api, webhooks, index, handler, fields)
        for index, (handler, fields) in enumerate([(case.handler, case.hook), *case.more])
    ]
    probe = {
        **hooks[0],
        "name": "probe.example.com",
        "clientConfig": {**webhooks.client_config(f"/{name}/probe"), **case.hook.get("probe", {})},
        "rules": [RULE],
        "namespaceSelector": {"matchLabels": {"probed": name}},
        "objectSelector": {},
        "failurePolicy": "Ignore",
        "matchConditions": [],
        "timeoutSeconds": 10,
    }
    if "service" in probe["clientConfig"]:
        del probe["clientConfig"]["url"]
    webhooks.handlers[f"/{name}/probe"] = deny(message="the webhook works")
    body = {"metadata": {"name": name}, "webhooks": [probe, *hooks]}
    status, answer, _ = await ask(api, "POST", plural, body)
    assert status == 201, answer
    try:
        await _wait_until_called(api)
        webhooks.reviews.clear()
        yield
    finally:
        await ask(api, "DELETE", f"{plural}/{name}")


def _build_hook(api, webhooks, index, handler, fields):
    path = f"/{api.namespace}/{index}"
    webhooks.handlers[path] = handler
    client = {**webhooks.client_config("/" + path), **fields.get("clientConfig", {})}
    if "service" in client:
        del client["url"]
    if not client["caBundle"] or "url" in fields.get("clientConfig", {}):
        del client["caBundle"]
    return {
        "name": f"h{index}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [RULE],
        "namespaceSelector": {"matchLabels": {"hooked": api.namespace}},
        **{key: value for key, value in fields.items() if key != "probe"},
        "clientConfig": client,
    }


async def _wait_until_called(api):
    """Wait until the server has read the configuration. A real server takes a fraction of a second."""
    body = {"metadata": {"name": "probe"}}
    for _ in range(600):
        status, answer, _ = await ask(
            api, "POST", f"/api/v1/namespaces/probe-{api.namespace}/configmaps", body, dryRun="All"
        )
        if status == 400:
            return
        assert status == 201, answer
        await asyncio.sleep(0.02)
    raise AssertionError("the server never called the webhook")


def normalize(api, webhooks, outcome):
    """Return an outcome as plain JSON values that are the same in every run."""
    (status, body, warnings), reviews = outcome
    shortened = [{"webhook": name, **_shorten(review)} for name, review in reviews]
    text = json.dumps({"status": status, "body": body, "warnings": warnings, "reviews": shortened}, sort_keys=True)
    text = text.replace(api.namespace, "NAMESPACE").replace(str(webhooks.port), "PORT")
    for pattern, replacement in _GENERATED:
        text = re.sub(pattern, replacement, text)
    return json.loads(text)


def _shorten(review):
    """Return a review without the parts that most reviews have in common."""
    request = dict(review["request"])
    assert request.pop("userInfo")["username"] in ("admin", "embedded")
    for key in ("kind", "resource", "subResource"):
        requested = "request" + key[0].upper() + key[1:]
        if request.get(requested) == request.get(key):
            request.pop(requested, None)
    return {"apiVersion": review["apiVersion"], "request": request}


def read_outcomes():
    lines = OUTCOMES.read_text().splitlines()
    return {outcome.pop("case"): outcome for outcome in map(json.loads, lines)}


async def _record():
    import conftest
    from tests.support.webhook_server import serve_webhooks

    from fairlead.testing.real import RealServer

    lines = []
    with RealServer() as server:
        for number, (name, case) in enumerate(CASES.items()):
            async with conftest._real(server, f"record-{number}") as api, serve_webhooks() as webhooks:
                await ask(api, "POST", "/api/v1/namespaces", {"metadata": {"name": api.namespace}})
                outcome = normalize(api, webhooks, await run(api, webhooks, case))
                lines.append(json.dumps({"case": name, **outcome}))
                for transport in api.opened:
                    await transport.close()
    OUTCOMES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(_record())
