"""Tests of conversion webhooks. The outcomes of the table were recorded from a real server."""

import asyncio
import json

import pytest
from tests.server.admission import webhook_cases
from tests.server.admission.webhook_cases import MERGE, Case, ask, change
from tests.server.webhooks import conversion_cases
from tests.server.webhooks.conversion_cases import CASES, convert, take, thing
from tests.support.webhook_server import serve_webhooks

from fairlead.api.requests import HttpRequest

OUTCOMES = conversion_cases.read_outcomes()


@pytest.mark.parametrize("name", CASES)
async def test_outcome_is_that_of_a_real_server(api, name):
    async with serve_webhooks() as webhooks:
        assert await conversion_cases.run(api, webhooks, CASES[name]) == OUTCOMES[name]


async def read_events(api, path, count, **query):
    """Return the first events of a watch."""
    stream = await api.transport().stream(HttpRequest("GET", path, query={"watch": "true", **query}))
    text = b""
    try:
        while text.count(b"\n") < count:
            text += await stream.read()
    finally:
        await stream.close()
    return [json.loads(line) for line in text.splitlines()[:count]]


async def test_watch_converts_initial_objects_and_changes(api):
    async with serve_webhooks() as webhooks, conversion_cases.defined(api, webhooks) as group:
        await take(api, group, ("POST", "v1", "", thing("v1", old="1")))
        path = f"/apis/{group}/v2/namespaces/{api.namespace}/things"
        watching = asyncio.create_task(read_events(api, path, 3))
        await asyncio.sleep(0.05)
        await take(api, group, ("PATCH", "v1", "/x", {"spec": {"old": "2"}}, MERGE))
        await take(api, group, ("DELETE", "v1", "/x"))
        events = [(event["type"], event["object"]["spec"]["new"]) for event in await watching]
        assert events == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def test_admission_webhook_for_another_version_sees_converted_objects(api):
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["things"]}
    replace = {"op": "replace", "path": "/spec/old", "value": "webhook"}
    async with serve_webhooks() as webhooks, conversion_cases.defined(api, webhooks) as group:
        case = Case(change(replace), mutating=True, hook={"rules": [rule]})
        async with webhook_cases.configured(api, webhooks, case):
            status, body, _ = await take(api, group, ("POST", "v2", "", thing(new="1")))
        assert (status, body["apiVersion"], body["spec"]) == (201, f"{group}/v2", {"new": "webhook"})
        request = next(review["request"] for path, review in webhooks.reviews if path != "/convert")
        assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
        assert (request["object"]["apiVersion"], request["object"]["spec"]) == (f"{group}/v1", {"old": "1"})


@pytest.mark.only("embedded", reason="a real server calls the webhook for each object, and from several caches")
async def test_list_needs_one_call(api):
    async with serve_webhooks() as webhooks, conversion_cases.defined(api, webhooks) as group:
        for number in range(50):
            await take(api, group, ("POST", "v1", "", thing("v1", f"x{number}", old="1")))
        webhooks.reviews.clear()
        for _ in range(2):
            _, body, _ = await take(api, group, ("GET", "v2", ""))
            assert [item["spec"] for item in body["items"]] == [{"new": "1"}] * 50
        assert [len(review["request"]["objects"]) for _, review in webhooks.reviews] == [50]


async def test_failing_conversion_stores_nothing(api):
    async with serve_webhooks() as webhooks, conversion_cases.defined(api, webhooks) as group:

        def fail_back(review):
            return convert(review) if review["request"]["desiredAPIVersion"].endswith("v1") else None

        webhooks.handlers["/convert"] = fail_back
        status, body, _ = await take(api, group, ("POST", "v2", "", thing(new="1")))
        assert (status, body["message"].startswith("conversion webhook for")) == (500, True)


INVALID = {
    "no webhook": {"strategy": "Webhook"},
    "no target": {"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}},
    "no versions": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a/b"}}},
    "unknown version": {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://a/b"}, "conversionReviewVersions": ["v9"]},
    },
    "plain http": {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "http://a/b"}, "conversionReviewVersions": ["v1"]},
    },
    "no service name": {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": {"namespace": "a", "path": "b"}}, "conversionReviewVersions": ["v1"]},
    },
    "webhook without the strategy": {
        "strategy": "None",
        "webhook": {"clientConfig": {"url": "https://a/b"}, "conversionReviewVersions": ["v1"]},
    },
}
NO_STRATEGY = "Forbidden: should not be set when strategy is not set to Webhook"
HTTPS_ONLY = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
CAUSES = {
    "no webhook": [
        ("webhookClientConfig", "Required value: required when strategy is set to Webhook"),
        ("conversionReviewVersions", "Required value"),
    ],
    "no target": [("webhookClientConfig", "Required value: exactly one of url or service is required")],
    "no versions": [("conversionReviewVersions", "Required value")],
    "unknown version": [
        ("conversionReviewVersions", 'Invalid value: ["v9"]: must include at least one of v1, v1beta1')
    ],
    "plain http": [("webhookClientConfig.url", f'Invalid value: "http": {HTTPS_ONLY}')],
    "no service name": [
        ("webhookClientConfig.service.namespace", "Required value"),
        ("webhookClientConfig.service.path", "Invalid value: \"b\": must start with a '/'"),
        ("webhookClientConfig.service.path", 'Invalid value: "b": segment[0] may not be empty'),
    ],
    "webhook without the strategy": [
        ("webhookClientConfig", NO_STRATEGY),
        ("conversionReviewVersions", NO_STRATEGY),
    ],
}


@pytest.mark.parametrize("name", INVALID)
async def test_invalid_conversion_is_rejected(api, name):
    body = conversion_cases.definition(f"{api.namespace}.example.com", {})
    body["spec"]["conversion"] = INVALID[name]
    status, answer, _ = await ask(api, "POST", conversion_cases.DEFINITIONS, body)
    found = answer["details"]["causes"]
    causes = [(cause["field"].removeprefix("spec.conversion."), cause["message"]) for cause in found]
    assert (status, causes) == (422, CAUSES[name])
