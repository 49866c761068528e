"""Tests of invalid specs and missing references: the condition names the fix, and there is no retry loop."""

import pytest
from waiting import gone, there

import fairlead as fl
from fairlead.api.errors import Invalid
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import DemoRun
from fairlead_operators.httpproxy import demo
from fairlead_operators.httpproxy.controller import op
from fairlead_operators.httpproxy.kinds import (
    Connector,
    EndpointSlice,
    EnvoyPatchPolicy,
    Gateway,
    HTTPProxy,
    HTTPRoute,
    HTTPRouteFilter,
)

HOSTNAMES = [f"www-{i}.example.com" for i in range(17)]


def backend_spec(endpoint, **backend_fields):
    return {"rules": [{"backends": [{"endpoint": endpoint, **backend_fields}]}]}


def with_filter(spec, **rule_filter):
    return {"rules": [{**spec["rules"][0], "filters": [rule_filter]}]}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"rules": []}, "rules"),
        ({"rules": [{}]}, "backends"),
        ({"rules": [{"backends": []}]}, "backends"),
        (backend_spec("backend.example.com"), "endpoint"),
        (backend_spec("ftp://backend.example.com"), "endpoint"),
        (backend_spec("https://backend.example.com/a/path"), "endpoint"),
        (
            with_filter(
                backend_spec("http://b.example.com"), type="RequestHeaderModifier", requestHeaderModifier="oops"
            ),
            "must be of type",
        ),
        (
            with_filter(
                backend_spec("http://b.example.com"),
                type="RequestHeaderModifier",
                requestHeaderModifier={"set": [{"value": "x"}]},
            ),
            "set.0..name",
        ),
        (with_filter(backend_spec("http://b.example.com"), type="URLRewrite", urlRewrite=["x"]), "must be of type"),
        (with_filter(backend_spec("http://b.example.com"), type="Anything"), "Unsupported value"),
        (
            backend_spec("http://b.example.com", filters=[{"type": "URLRewrite", "urlRewrite": {"hostname": 1}}]),
            "must be of type",
        ),
        ({"hostnames": HOSTNAMES}, "must have at most 16 items"),
        ({"hostnames": ["a.example.com", "a.example.com"]}, "Duplicate value"),
        ({"hostnames": ["not a name"]}, "hostnames"),
    ],
    ids=[
        "no rules",
        "no backends",
        "empty backends",
        "no scheme",
        "odd scheme",
        "a path",
        "a text for a filter",
        "a header without a name",
        "a list for a filter",
        "odd filter",
        "odd filter of a backend",
        "17 names",
        "twice",
        "no name",
    ],
)
async def test_schema_rejects_an_invalid_spec(env, spec, message):
    with pytest.raises(Invalid, match=message):
        await env.create(**spec)


async def test_schema_rejects_a_name_too_long_for_the_children(env):
    with pytest.raises(Invalid, match="at most 235 characters"):
        await env.create("n" * 236)


async def test_longest_name_and_sixteen_hostnames_work(running_env):
    name = "n" * 235
    await running_env.connector(is_ready=False)
    await running_env.gateway(verified=HOSTNAMES[:16])
    await running_env.create(
        name, hostnames=HOSTNAMES[:16], **backend_spec("http://localhost:8080", connector={"name": "tunnel"})
    )
    proxy = await running_env.wait_until(HTTPProxy, name, lambda obj: len(obj.status.get("hostnames", ())) == 17)
    assert len((await running_env.get(Gateway, name)).spec["listeners"]) == 34
    assert len(proxy.status["hostnameStatuses"]) == 16
    assert await running_env.get(HTTPRouteFilter, f"connector-offline-{name}") is not None


BAD_ENDPOINTS = {
    "https://192.0.2.7": "set its tls.hostname",
    "http://backend.example.com:99999": "Port out of range",
    "http://backend.example.com:0": "has no valid host or port",
    "http://[::1": "write a URL like https://",
    "http://:8080": "has no valid host or port",
    "http://back_end!": "has no valid host or port",
    "http://backend:8080": "write one like backend.default.svc.cluster.local",
    f"http://{'a' * 64}.example.com": "at most 63 characters: shorten it",
    "http://[fe80::1%25eth0]:80": "write an address without %25eth0",
    "http://[fe80::1]:80": "write an address that the gateway can reach",
    "http://127.0.0.1:8080": "write an address that the gateway can reach",
    "http://224.0.0.1": "write an address that the gateway can reach",
}


@pytest.mark.parametrize(("endpoint", "message"), BAD_ENDPOINTS.items())
async def test_invalid_endpoint_is_reported_and_a_valid_one_recovers(running_env, endpoint, message):
    await running_env.create(**backend_spec(endpoint))
    condition = await running_env.condition("Programmed", "False", "InvalidEndpoint")
    assert message in condition["message"]
    assert (await running_env.condition("Accepted", "False", "InvalidEndpoint"))["message"] == condition["message"]
    assert await running_env.get(Gateway) is None
    await running_env.change("web", **backend_spec("http://backend.example.com"))
    await running_env.wait_until(Gateway, "web", there)
    await running_env.condition("Programmed", "False", "Pending")


async def test_missing_connector_is_reported_and_its_creation_noticed(running_env):
    await running_env.gateway()
    await running_env.create(rules=demo.TUNNEL_RULES)
    await running_env.wait_until(HTTPRouteFilter, "connector-offline-web", there)
    condition = await running_env.condition("ConnectorMetadataProgrammed", "False", "Pending")
    assert "Connector tunnel does not exist: create it" in condition["message"]
    await running_env.connector(is_ready=True)
    await running_env.condition("ConnectorMetadataProgrammed", "True", "ConnectorMetadataApplied")


async def test_connector_enqueues_its_proxies_despite_an_invalid_proxy(env, caplog):
    """An invalid endpoint in one proxy must not break the mapping function for all others."""
    running = await env.operator()
    await env.gateway()
    await env.create("a", **backend_spec("http://[::1"))
    await env.condition("Programmed", "False", "InvalidEndpoint", name="a")
    await env.create(rules=demo.TUNNEL_RULES)
    await env.condition("Programmed", "True", "Programmed")
    await running.wait_until_idle()
    await env.connector(is_ready=True)
    await env.condition("ConnectorMetadataProgrammed", "True", "ConnectorMetadataApplied")
    assert "proxies_of raised" not in caplog.text


async def test_deleted_connector_is_reported_and_disables_the_tunnel(running_env):
    await running_env.gateway()
    await running_env.connector(is_ready=True)
    await running_env.create(rules=demo.TUNNEL_RULES)
    await running_env.condition("ConnectorMetadataProgrammed", "True", "ConnectorMetadataApplied")
    await running_env.client.delete(Connector, "tunnel", running_env.namespace)
    await running_env.wait_until(EnvoyPatchPolicy, "connector-web", gone)
    await running_env.wait_until(HTTPRouteFilter, "connector-offline-web", there)
    condition = await running_env.condition("ConnectorMetadataProgrammed", "False", "Pending")
    assert "Connector tunnel does not exist" in condition["message"]


@pytest.mark.parametrize(("kind", "name"), [(Gateway, "web"), (HTTPRoute, "web"), (EndpointSlice, "web-0-0")])
async def test_deleted_child_is_recreated(running_env, kind, name):
    await running_env.create()
    first = await running_env.wait_until(kind, name, there)
    await running_env.client.delete(kind, name, running_env.namespace)
    await running_env.wait_until(kind, name, lambda obj: obj is not None and obj.uid != first.uid)


@pytest.mark.parametrize(
    "spec", [backend_spec("http://[::1"), {"rules": demo.TUNNEL_RULES}], ids=["bad endpoint", "no connector"]
)
def test_invalid_spec_is_not_retried_in_a_loop(spec):
    """Ten minutes of virtual time: a few reconciles at the start, then none."""

    async def main():
        world = virtual.world(1)
        run = DemoRun(Server(world).transport, world)
        await demo.install(run.admin)
        async with run.record_reconciles(op).running(run.transport("operator"), world, namespaces=["default"]):
            await run.start(["web"])
            await run.admin.create(demo.make_proxy("web", "default", **spec))
            await run.record_idle_time()
        proxy = await run.admin.get(HTTPProxy, "web", "default")
        await run.close()
        return proxy, [record for record in run.records if record.verb != "GET" and "/events/" not in record.path]

    proxy, records = virtual.run(main())
    assert fl.Object(proxy).condition("Programmed")["status"] == "False"
    assert len(records) < 20
    assert not [record for record in records if record.time > 5]
