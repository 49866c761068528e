"""Tests of the incident report's claims about server-side apply, on both servers."""

import asyncio
import json
from collections import Counter

from fairlead.api.errors import Conflict
from fairlead.api.gojson import dumps
from fairlead.api.requests import HttpRequest
from fairlead.client.client import PatchType
from fairlead_operators.httpproxy.kinds import EndpointSlice, Gateway, HTTPRoute

LISTENER = {"name": "default-http", "port": 80, "protocol": "HTTP"}


def make_gateway(namespace, **listener):
    return Gateway("web", namespace, spec={"gatewayClassName": "x", "listeners": [{**LISTENER, **listener}]})


async def put_hostname(env, hostname):
    """Write a hostname and a finalizer with PUT, as the gateway controller does."""
    live = await env.get(Gateway)
    live["spec"]["listeners"][0]["hostname"] = hostname
    live["metadata"]["finalizers"] = ["example.com/gateway"]
    return await env.client.replace(live, field_manager="gateway")


async def test_forced_apply_keeps_foreign_fields_of_a_keyed_list_item(env):
    """The report claims that ForceOwnership on a list item clears other fields. That is wrong for keyed lists."""
    payload = make_gateway(env.namespace)
    await env.client.apply(payload, field_manager="proxy")
    before = await put_hostname(env, "a.example.com")
    after = await env.client.apply(payload, field_manager="proxy", force=True)
    assert after.spec["listeners"][0]["hostname"] == "a.example.com"
    assert after.finalizers == ["example.com/gateway"]
    assert after.resource_version == before.resource_version


async def test_forced_apply_removes_foreign_fields_in_an_atomic_list(env):
    """Endpoints of a slice have no keys. A forced apply removes foreign fields, and without force it conflicts."""
    body = {"addressType": "FQDN", "ports": [{"name": "web", "port": 80}]}
    slice_ = EndpointSlice("web", env.namespace, endpoints=[{"addresses": ["a.example.com"]}], **body)
    await env.client.apply(slice_, field_manager="proxy")
    live = await env.get(EndpointSlice)
    live["endpoints"][0]["hostname"] = "a"
    await env.client.replace(live, field_manager="gateway")
    try:
        await env.client.apply(slice_, field_manager="proxy", force=False)
        raise AssertionError("no conflict")
    except Conflict:
        pass
    after = await env.client.apply(slice_, field_manager="proxy", force=True)
    assert "hostname" not in after["endpoints"][0]


async def test_applying_a_value_that_was_read_reverts_and_later_deletes_it(env):
    """The fix that the report proposes does harm: the operator becomes the owner of a value that may be stale."""
    await env.client.apply(make_gateway(env.namespace), field_manager="proxy")
    cached = await put_hostname(env, "old.example.com")
    await put_hostname(env, "new.example.com")
    carried = make_gateway(env.namespace, hostname=cached.spec["listeners"][0]["hostname"])
    reverted = await env.client.apply(carried, field_manager="proxy", force=True)
    assert reverted.spec["listeners"][0]["hostname"] == "old.example.com"
    deleted = await env.client.apply(make_gateway(env.namespace), field_manager="proxy", force=True)
    assert "hostname" not in deleted.spec["listeners"][0]


async def test_sixteen_identical_forced_applies_make_one_event_and_no_conflict(env):
    payload = HTTPRoute("route", env.namespace, spec={"parentRefs": [{"name": "gateway"}]})
    path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{env.namespace}/httproutes"
    query = {"fieldManager": "m", "force": "true"}
    headers = {"Content-Type": PatchType.APPLY.value}
    empty_list = await env.client.list(HTTPRoute, env.namespace)
    transport = env.api.transport()
    requests = [
        transport.request(HttpRequest("PATCH", f"{path}/route", query=query, headers=headers, body=dumps(payload)))
        for _ in range(16)
    ]
    answers = await asyncio.gather(*requests)
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 15}
    versions = {json.loads(answer.body)["metadata"]["resourceVersion"] for answer in answers}
    assert versions == {(await env.get(HTTPRoute, "route")).resource_version}
    await env.client.create(HTTPRoute("last", env.namespace, spec={}))
    event_counts = Counter()
    since = empty_list.resource_version
    async with asyncio.timeout(20), env.client.watch(HTTPRoute, env.namespace, resource_version=since) as watch:
        async for frame in watch:
            name = json.loads(frame.raw)["metadata"]["name"]
            if name == "last":
                break
            event_counts[frame.type] += 1
    assert event_counts == {"ADDED": 1}
