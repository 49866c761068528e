"""Steps with a custom resource that a webhook converts, and the outcomes on a real server.

`python -m tests.server.webhooks.conversion_cases` records the outcomes again.
"""

import asyncio
import copy
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path

from tests.server.admission.webhook_cases import MERGE, ask

OUTCOMES = Path(__file__).parent / "conversion_outcomes.jsonl"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
_GENERATED = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r'"\d{4}-\d\d-\d\dT[^"]*Z"', '"TIME"'),
    (r'"resourceVersion": "\d+"', '"resourceVersion": "VERSION"'),
)


def _version(name, field, *, storage):
    spec = {"type": "object", "properties": {field: {"type": "string"}, "size": {"type": "integer"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Text", "type": "string", "jsonPath": f".spec.{field}"}],
    }


def definition(group, client):
    """Return a definition whose field spec.old of v1, the storage version, is called spec.new in v2."""
    return {
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [_version("v1", "old", storage=True), _version("v2", "new", storage=False)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        },
    }


def convert(review, change=None, **response):
    """Return the ConversionReview that answers another one. `change` spoils each converted object."""
    request, converted = review["request"], []
    for original in request["objects"]:
        obj = copy.deepcopy(original)
        obj["apiVersion"] = request["desiredAPIVersion"]
        source, target = ("old", "new") if obj["apiVersion"].endswith("v2") else ("new", "old")
        if source in obj.get("spec", {}):
            obj["spec"][target] = obj["spec"].pop(source)
        if change is not None:
            change(obj)
        converted.append(obj)
    answer = {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}, **response}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": answer}


def _set(path, value):
    def change(obj):
        *parents, last = path.split(".")
        for parent in parents:
            obj = obj[parent]
        obj[last] = value

    return lambda review: convert(review, change)


def _answer(**response):
    return lambda review: convert(review, **response)


def thing(version="v2", name="x", /, metadata=None, **spec):
    return {
        "apiVersion": f"GROUP/{version}",
        "kind": "Thing",
        "metadata": {"name": name, **(metadata or {})},
        "spec": spec,
    }


# Each case: the steps that succeed first, the handler that is in use from then on, and the last step, whose outcome
# counts. A step is method, version, path, body, content type and query.
CREATED = ("POST", "v2", "", thing(new="1", size=1, metadata={"labels": {"l": "1"}}))
CASES = {
    "create": ([], convert, CREATED),
    "create at the storage version": ([], convert, ("POST", "v1", "", thing("v1", old="1"))),
    "dry run": ([], convert, (*CREATED, "application/json", {"dryRun": "All"})),
    "get": ([CREATED], convert, ("GET", "v2", "/x")),
    "get at the storage version": ([CREATED], convert, ("GET", "v1", "/x")),
    "list": ([CREATED, ("POST", "v1", "", thing("v1", "y", old="2"))], convert, ("GET", "v2", "")),
    "list with a selector": ([CREATED], convert, ("GET", "v2", "", None, "", {"labelSelector": "l=1"})),
    "undeclared field": ([], convert, ("POST", "v2", "", thing(new="1", nope="2"))),
    "put": ([CREATED], convert, ("PUT", "v2", "/x", thing(new="2", metadata={"resourceVersion": "LIVE"}))),
    "stale put": ([CREATED], convert, ("PUT", "v2", "/x", thing(new="2", metadata={"resourceVersion": "1"}))),
    "merge patch": ([CREATED], convert, ("PATCH", "v2", "/x", {"spec": {"new": "2"}}, MERGE)),
    "merge patch at the storage version": ([CREATED], convert, ("PATCH", "v1", "/x", {"spec": {"old": "2"}}, MERGE)),
    "patch that changes nothing": ([CREATED], convert, ("PATCH", "v2", "/x", {"spec": {"new": "1"}}, MERGE)),
    "status": ([CREATED], convert, ("PATCH", "v2", "/x/status", {"status": {"a": 1}}, MERGE)),
    "apply": ([CREATED], convert, ("PATCH", "v2", "/x", thing(size=3), APPLY, {"fieldManager": "m", "force": "true"})),
    "apply at both versions": (
        [("PATCH", "v2", "/x", thing(new="1"), APPLY, {"fieldManager": "m"})],
        convert,
        ("PATCH", "v1", "/x", thing("v1", size=3), APPLY, {"fieldManager": "m"}),
    ),
    "apply conflicts across versions": (
        [("PATCH", "v2", "/x", thing(new="1"), APPLY, {"fieldManager": "m"})],
        convert,
        ("PATCH", "v1", "/x", thing("v1", old="2"), APPLY, {"fieldManager": "n"}),
    ),
    "labels and annotations changed": (
        [CREATED],
        lambda review: convert(review, lambda obj: obj["metadata"].update(labels={"a": "b"}, annotations={"c": "d"})),
        ("GET", "v2", "/x"),
    ),
    "other metadata changed": (
        [CREATED],
        lambda review: convert(review, lambda obj: obj["metadata"].update(finalizers=["a/b"], generation=9)),
        ("GET", "v2", "/x"),
    ),
    "name changed": ([CREATED], _set("metadata.name", "z"), ("GET", "v2", "/x")),
    "namespace changed": ([CREATED], _set("metadata.namespace", "z"), ("GET", "v2", "/x")),
    "uid changed": ([CREATED], _set("metadata.uid", "z"), ("GET", "v2", "/x")),
    "no metadata": ([CREATED], _set("metadata", {}), ("GET", "v2", "/x")),
    "invalid label": ([CREATED], _set("metadata.labels", {"a b": "c"}), ("GET", "v2", "/x")),
    "other version": ([CREATED], _set("apiVersion", "z/v9"), ("GET", "v2", "/x")),
    "other kind": ([CREATED], _set("kind", "Other"), ("GET", "v2", "/x")),
    "too few objects": ([CREATED], _answer(convertedObjects=[]), ("GET", "v2", "/x")),
    "failure with a message": ([CREATED], _answer(result={"status": "Failure", "message": "no"}), ("GET", "v2", "/x")),
    "failure without a message": ([CREATED], _answer(result={"status": "Failure"}), ("GET", "v2", "/x")),
    "other uid of the review": ([CREATED], _answer(uid="z"), ("GET", "v2", "/x")),
    "no response": ([CREATED], lambda review: {**convert(review), "response": None}, ("GET", "v2", "/x")),
    "no review": ([CREATED], lambda review: {**convert(review), "kind": "Other"}, ("GET", "v2", "/x")),
    "not found": ([CREATED], lambda review: None, ("GET", "v2", "/x")),
    "failed create": ([], _answer(result={"status": "Failure", "message": "no"}), CREATED),
    "failed patch": ([CREATED], lambda review: None, ("PATCH", "v2", "/x", {"spec": {"new": "2"}}, MERGE)),
    "failed delete": ([CREATED], lambda review: None, ("DELETE", "v2", "/x")),
    "failed list after a good one": ([CREATED, ("GET", "v2", "")], lambda review: None, ("GET", "v2", "")),
    "plain write while the webhook fails drops the managed fields": (
        [CREATED, ("PATCH", "v1", "/x", thing("v1", size=3), APPLY, {"fieldManager": "m", "force": "true"})],
        lambda review: None,
        ("PATCH", "v1", "/x", {"spec": {"size": 4}}, MERGE),
    ),
    "apply while the webhook fails": (
        [CREATED],
        lambda review: None,
        ("PATCH", "v1", "/x", thing("v1", size=3), APPLY, {"fieldManager": "m", "force": "true"}),
    ),
    "put at the storage version while the webhook fails": (
        [CREATED],
        lambda review: None,
        ("PUT", "v1", "/x", thing("v1", old="2", metadata={"resourceVersion": "LIVE"})),
    ),
    "delete": ([CREATED], convert, ("DELETE", "v2", "/x")),
    "delete with a finalizer": (
        [("POST", "v2", "", thing(new="1", metadata={"finalizers": ["a.b/c"]}))],
        convert,
        ("DELETE", "v2", "/x"),
    ),
    "delete of a collection": ([CREATED], convert, ("DELETE", "v2", "")),
}


@asynccontextmanager
async def defined(api, webhooks):
    """Define the custom resource of the test until the block ends. Yields its group."""
    group = f"{api.namespace}.example.com"
    webhooks.handlers["/convert"] = convert
    status, body, _ = await ask(api, "POST", DEFINITIONS, definition(group, webhooks.client_config("/convert")))
    assert status == 201, body
    try:
        for version in ("v1", "v2"):
            await _wait_until_served(api, group, version)
        yield group
    finally:
        webhooks.handlers["/convert"] = convert
        await ask(api, "DELETE", f"{DEFINITIONS}/things.{group}")


async def _wait_until_served(api, group, version):
    """Wait until the server converts: a dry run has to pass."""
    path = f"/apis/{group}/{version}/namespaces/{api.namespace}/things"
    body = json.loads(json.dumps(thing(version, "probe")).replace("GROUP", group))
    for _ in range(600):
        try:
            status, answer, _ = await ask(api, "POST", path, body, dryRun="All")
        except json.JSONDecodeError:  # "404 page not found"
            status = 404
        if status == 201:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"the server never served {group}/{version}: {answer}")


async def take(api, group, step):
    """Take one step and return status, body and warnings of the response."""
    method, version, path, *rest = step
    body, content_type, query = (*rest, *(None, "application/json", {})[len(rest) :])
    base = f"/apis/{group}/{version}/namespaces/{api.namespace}/things"
    if body is not None:
        text = json.dumps(body).replace("GROUP", group)
        if "LIVE" in text:
            _, live, _ = await ask(api, "GET", base + path)
            text = text.replace("LIVE", live["metadata"]["resourceVersion"])
        body = json.loads(text)
    return await ask(api, method, base + path, body, content_type or "application/json", **query)


async def run(api, webhooks, case):
    """Take the steps of a case and return the outcome of the last one, and what is stored then."""
    steps, handler, last = case
    async with defined(api, webhooks) as group:
        for step in steps:
            status, body, _ = await take(api, group, step)
            assert status in (200, 201), body
        webhooks.handlers["/convert"] = handler
        status, body, warnings = await take(api, group, last)
        webhooks.handlers["/convert"] = convert
        _, stored, _ = await take(api, group, ("GET", "v1", ""))
    text = json.dumps({"status": status, "body": body, "warnings": warnings, "stored": stored["items"]}, sort_keys=True)
    text = text.replace(api.namespace, "NAMESPACE").replace(str(webhooks.port), "PORT")
    for pattern, replacement in _GENERATED:
        text = re.sub(pattern, replacement, text)
    return json.loads(text)


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
                lines.append(json.dumps({"case": name, **await run(api, webhooks, case)}))
                for transport in api.opened:
                    await transport.close()
    OUTCOMES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(_record())
