"""The operator's cases, each on both servers."""

import pytest
from waiting import gone, there

import fairlead as fl
from fairlead_operators.httpproxy import demo, gateway
from fairlead_operators.httpproxy.kinds import (
    CERT_HOSTNAME,
    FINALIZER,
    EndpointSlice,
    EnvoyPatchPolicy,
    Gateway,
    HTTPProxy,
    HTTPRoute,
    HTTPRouteFilter,
)


def rules(endpoint, **more):
    return [{"backends": [{"endpoint": endpoint, **more}]}]


TUNNELLED = demo.TUNNELLED


async def test_basic_reconcile_creates_resources(world):
    proxy = await world.create()
    made = await world.until(Gateway, "web", there)
    assert [item["name"] for item in made.spec["listeners"]] == ["default-http", "default-https"]
    route = await world.until(HTTPRoute, "web", there)
    assert route.spec["rules"][0]["backendRefs"][0]["name"] == "web-0-0"
    assert route.spec["rules"][0]["filters"][0]["urlRewrite"] == {"hostname": "backend.example.com"}
    endpoints = await world.until(EndpointSlice, "web-0-0", there)
    assert (endpoints["addressType"], endpoints["ports"][0]["appProtocol"]) == ("FQDN", "https")
    for child in (made, route, endpoints):
        assert [o["uid"] for o in child.metadata["ownerReferences"] if o["controller"]] == [proxy.uid]
    assert FINALIZER in (await world.get(HTTPProxy)).finalizers


async def test_address_and_hostname_propagation(world):
    await world.gateway()
    await world.create()
    await world.condition("Programmed", "True", "Programmed")
    made = await world.get(Gateway)
    status = (await world.get(HTTPProxy)).status
    assert status["addresses"] == [{"type": "IPAddress", "value": gateway.ADDRESS}]
    assert status["hostnames"] == [made.spec["listeners"][0]["hostname"]]
    assert status["canonicalHostname"] == status["hostnames"][0]


@pytest.mark.parametrize(
    ("kind", "name", "body"),
    [
        (
            Gateway,
            "web",
            {"spec": {"gatewayClassName": "x", "listeners": [{"name": "a", "port": 1, "protocol": "TCP"}]}},
        ),
        (HTTPRoute, "web", {"spec": {}}),
        (EndpointSlice, "web-0-0", {"addressType": "IPv4", "endpoints": []}),
    ],
    ids=["gateway", "httproute", "endpointslice"],
)
async def test_conflict_with_different_owner_is_named_and_recovers_when_it_goes_away(world, kind, name, body):
    owner = await world.client.create(fl.ConfigMap("other", world.namespace))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": owner.uid, "controller": True}
    foreign = kind(name, world.namespace, **body)
    foreign["metadata"]["ownerReferences"] = [reference]
    foreign = await world.client.create(foreign)
    await world.create()
    said = await world.condition("Programmed", "False", "Conflict")
    assert name in said["message"]
    assert (await world.get(kind, name)).resource_version == foreign.resource_version
    await world.client.delete(kind, name, world.namespace)
    mine = await world.until(kind, name, there)
    assert mine.uid != foreign.uid
    await world.condition("Programmed", "False", "Pending")


async def test_connector_not_ready_uses_direct_response(world):
    await world.connector(ready=False)
    await world.create(rules=TUNNELLED)
    answer = await world.until(HTTPRouteFilter, "connector-offline-web", there)
    assert answer.spec["directResponse"]["statusCode"] == 503
    route = await world.until(HTTPRoute, "web", there)
    assert route.spec["rules"][0]["filters"][0]["extensionRef"]["name"] == "connector-offline-web"
    assert "backendRefs" not in route.spec["rules"][0]
    await world.connector(ready=True)
    await world.until(HTTPRouteFilter, "connector-offline-web", gone)
    route = await world.get(HTTPRoute)
    assert route.spec["rules"][0]["backendRefs"][0]["name"] == "web-0-0"


async def test_waits_for_default_https_programmed_then_connector_backend_creates_envoy_patch_policy(world):
    await world.connector(ready=True)
    await world.create(rules=TUNNELLED)
    await world.condition("ConnectorMetadataProgrammed", "False", "Pending")
    assert await world.get(EnvoyPatchPolicy, "connector-web") is None
    await world.gateway()
    policy = await world.until(EnvoyPatchPolicy, "connector-web", there)
    assert "key-1" in str(policy.spec["jsonPatches"])
    await world.condition("ConnectorMetadataProgrammed", "True", "ConnectorMetadataApplied")


async def test_patch_policy_removed_when_connector_cleared(world):
    await world.gateway()
    await world.connector(ready=True)
    await world.create(rules=TUNNELLED)
    await world.until(EnvoyPatchPolicy, "connector-web", there)
    await world.change("web", rules=rules("http://backend.example.com"))
    await world.until(EnvoyPatchPolicy, "connector-web", gone)


async def test_custom_hostnames_programmed_when_verified(world):
    await world.gateway(verified=["www.example.com"])
    await world.create(hostnames=["www.example.com"])
    await world.condition("HostnamesVerified", "True", "HostnamesVerified")
    proxy = await world.until(HTTPProxy, "web", lambda obj: "www.example.com" in obj.status.get("hostnames", []))
    assert len(proxy.status["hostnames"]) == 2


async def test_custom_hostnames_unverified(world):
    await world.gateway()
    await world.create(hostnames=["www.example.com"])
    said = await world.condition("HostnamesVerified", "False", "UnverifiedHostnamesPresent")
    assert "www.example.com" in said["message"]
    assert "www.example.com" not in (await world.get(HTTPProxy)).status["hostnames"]


async def test_a_hostname_in_use_by_another_gateway_is_said(world):
    await world.gateway(verified=["www.example.com"])
    await world.create("first", hostnames=["www.example.com"])
    await world.condition("Programmed", "True", "Programmed", "first")
    await world.create("second", hostnames=["www.example.com"])
    await world.condition("HostnamesInUse", "True", "HostnameInUse", "second")


async def test_the_certificate_annotation_comes_and_goes_with_the_need_of_it(world):
    await world.create(rules=rules("http://backend.example.com"))
    endpoints = await world.until(EndpointSlice, "web-0-0", there)
    assert CERT_HOSTNAME not in endpoints.annotations
    await world.change("web", rules=rules("https://backend.example.com", tls={"hostname": "cert.example.com"}))
    await world.until(EndpointSlice, "web-0-0", lambda obj: obj.annotations.get(CERT_HOSTNAME) == "cert.example.com")
    await world.change("web", rules=rules("http://backend.example.com"))
    await world.until(EndpointSlice, "web-0-0", lambda obj: CERT_HOSTNAME not in obj.annotations)


async def test_a_listener_that_the_gateway_holds_on_to_is_said_and_recovers(world):
    """Another manager's hostname keeps a dropped listener alive without its port: 422 until that manager lets go."""
    await world.create(hostnames=["www.example.com"])
    await world.until(Gateway, "web", there)
    held = [{"name": "http-hostname-0", "hostname": "www.example.com"}]
    mine = Gateway("web", world.namespace, spec={"listeners": held})
    await world.client.apply(mine, field_manager=gateway.MANAGER)
    await world.change("web", hostnames=None)
    said = await world.condition("Programmed", "False", "Invalid")
    assert "port" in said["message"]
    await world.client.apply(Gateway("web", world.namespace), field_manager=gateway.MANAGER)
    await world.until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    await world.condition("Programmed", "False", "Pending")


async def test_a_flip_of_the_address_type_makes_the_slice_anew(world):
    await world.create(rules=rules("http://backend.example.com"))
    before = await world.until(EndpointSlice, "web-0-0", there)
    await world.change("web", rules=rules("http://192.0.2.7:8080"))
    after = await world.until(EndpointSlice, "web-0-0", lambda obj: obj is not None and obj["addressType"] == "IPv4")
    assert after.uid != before.uid
    assert after["endpoints"][0]["addresses"] == ["192.0.2.7"]


async def test_surplus_slices_are_pruned_when_a_rule_is_removed(world):
    two = rules("http://a.example.com") + rules("http://b.example.com")
    await world.create(rules=two)
    await world.until(EndpointSlice, "web-1-0", there)
    await world.change("web", rules=two[:1])
    await world.until(EndpointSlice, "web-1-0", gone)
    assert await world.get(EndpointSlice, "web-0-0") is not None


@pytest.mark.parametrize("mode", ["update", "apply"])
async def test_the_gateways_hostnames_and_finalizer_survive_a_change_of_ours(world, mode):
    await world.gateway(mode=mode)
    await world.create()
    await world.condition("Programmed", "True", "Programmed")
    assigned = (await world.get(Gateway)).spec["listeners"][0]["hostname"]
    await world.change("web", hostnames=["www.example.com"])
    made = await world.until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 4)
    assert [item.get("hostname") for item in made.spec["listeners"][:2]] == [assigned, assigned]
    assert gateway.FINALIZER in made.finalizers


async def test_deleting_the_proxy_takes_the_tunnel_out_and_lets_it_go(world):
    await world.gateway()
    await world.connector(ready=True)
    await world.create(rules=TUNNELLED)
    await world.until(EnvoyPatchPolicy, "connector-web", there)
    await world.client.delete(HTTPProxy, "web", world.namespace)
    await world.until(HTTPProxy, "web", gone)
    assert await world.get(EnvoyPatchPolicy, "connector-web") is None


PATH = {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}


@pytest.mark.parametrize("place", ["rule", "backend"])
async def test_a_rewrite_of_the_users_gets_the_hostname_and_stays_the_only_one(world, place):
    backend = {"endpoint": "http://backend.example.com"}
    rule, rewrite = {"backends": [backend]}, [{"type": "URLRewrite", "urlRewrite": PATH}]
    (rule if place == "rule" else backend)["filters"] = rewrite
    await world.create(rules=[rule])
    route = await world.until(HTTPRoute, "web", there)
    wanted = {"type": "URLRewrite", "urlRewrite": {**PATH, "hostname": "backend.example.com"}}
    assert route.spec["rules"][0]["filters"] == [wanted]


async def test_a_rule_that_redirects_reaches_no_backend(world):
    redirect = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}
    plain = rules("http://backend.example.com")[0]
    await world.create(rules=[{**plain, "filters": [redirect]}, plain])
    route = await world.until(HTTPRoute, "web", there)
    redirected, sent = route.spec["rules"]
    assert (redirected["filters"], "backendRefs" in redirected) == ([redirect], False)
    assert sent["backendRefs"][0]["name"] == "web-1-0"
    await world.until(EndpointSlice, "web-1-0", there)
    assert await world.get(EndpointSlice, "web-0-0") is None


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [("http://[2001:db8:0:0::7]", "2001:db8::7"), ("http://[::ffff:192.0.2.7]", "192.0.2.7")],
)
async def test_an_address_is_written_as_the_server_wants_it(world, endpoint, address):
    await world.create(rules=rules(endpoint))
    made = await world.until(EndpointSlice, "web-0-0", there)
    assert made["endpoints"][0]["addresses"] == [address]
