"""Tests that requests are counted by verb, kind and code."""

import json

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_requests_are_counted_by_verb_kind_and_code():
    server = Server()
    transport = server.transport()
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    for _ in range(3):
        await transport.request(HttpRequest("POST", MAPS, body=body))
    config = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).encode()
    headers = {"Content-Type": "application/apply-patch+yaml"}
    await transport.request(
        HttpRequest("PATCH", f"{MAPS}/a", query={"fieldManager": "m"}, headers=headers, body=config)
    )
    assert server.metrics.total(verb="POST", resource="configmaps", code="409") == 2
    assert server.metrics.total(verb="APPLY", resource="configmaps", code="200") == 1
    metrics = (await transport.request(HttpRequest("GET", "/metrics"))).body.decode()
    assert 'apiserver_request_total{verb="POST",group="",version="v1",resource="configmaps"' in metrics
