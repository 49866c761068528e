"""Tests that webhooks which change nothing change no response, over random histories."""

import json
import re

import pytest
from recordings import RequestSender, play_scenario

from fairlead.server.app import Server
from fairlead.server.webhooks.calls import WebhookReply
from fairlead.testing import virtual

from . import histories
from .servers import DEFINITIONS, play_embedded, resolve_definition

HISTORIES = 40
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/"
RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
HOOK = {
    "name": "allow.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "rules": [RULE],
}


class Echo:
    """Allows every write, and converts objects by changing their apiVersion."""

    async def call(self, call):
        review = json.loads(call.body)
        request = review["request"]
        if review["kind"] == "AdmissionReview":
            response = {"uid": request["uid"], "allowed": True}
        else:
            converted = [{**obj, "apiVersion": request["desiredAPIVersion"]} for obj in request["objects"]]
            response = {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
        return WebhookReply(200, "application/json", json.dumps({**review, "response": response}).encode())

    def close(self):
        """Do nothing."""


async def play_with_webhooks(scenario, definition, *, converts):
    server = Server(virtual.world(), tokens=["differential"], authorization="RBAC", webhook_caller=Echo())
    transport = server.transport()
    sender = RequestSender(transport)
    if definition and converts:
        webhook = {"clientConfig": HOOK["clientConfig"], "conversionReviewVersions": ["v1"]}
        conversion = {"strategy": "Webhook", "webhook": webhook}
        definition = {**definition, "spec": {**definition["spec"], "conversion": conversion}}
    if definition:
        await sender.send("POST", DEFINITIONS, body=definition)
    if not converts:
        for kind in ("mutating", "validating"):
            body = {"metadata": {"name": "allow"}, "webhooks": [HOOK]}
            await sender.send("POST", f"{CONFIGURATIONS}{kind}webhookconfigurations", body=body)
    return await play_scenario(transport, scenario, "none")


@pytest.mark.parametrize("converts", [False, True], ids=["admission", "conversion"])
def test_webhooks_that_change_nothing_change_no_response(converts):
    for seed in range(HISTORIES):
        scenario, definition = resolve_definition(histories.generate_scenario(seed))
        if converts and not definition:
            continue
        expected = play_embedded(scenario, definition)
        responses = virtual.run(play_with_webhooks(scenario, definition, converts=converts))
        for step, plain, seen in zip(scenario["steps"], expected, responses, strict=True):
            assert hide_versions(plain) == hide_versions(seen), f"seed {seed}: {step}"


def hide_versions(response):
    """Return a response without the resourceVersions in texts: the configurations use up two of them."""
    return json.loads(re.sub(r"\b1\d{3}\b", "VERSION", json.dumps(response)))
