"""The behaviour of the operator, on both servers."""

import pytest
from waiting import gone, there

import fairlead as fl
from fairlead_operators.httpproxy import demo, gateway_controller
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


def rules(endpoint, **backend_fields):
    return [{"backends": [{"endpoint": endpoint, **backend_fields}]}]


async def test_basic_reconcile_creates_resources(running_env):
    proxy = await running_env.create()
    created = await running_env.wait_until(Gateway, "web", there)
    assert [item["name"] for item in created.spec["listeners"]] == ["default-http", "default-https"]
    route = await running_env.wait_until(HTTPRoute, "web", there)
    assert route.spec["rules"][0]["backendRefs"][0]["name"] == "web-0-0"
    assert route.spec["rules"][0]["filters"][0]["urlRewrite"] == {"hostname": "backend.example.com"}
    endpoints = await running_env.wait_until(EndpointSlice, "web-0-0", there)
    assert (endpoints["addressType"], endpoints["ports"][0]["appProtocol"]) == ("FQDN", "https")
    for child in (created, route, endpoints):
        assert [o["uid"] for o in child.metadata["ownerReferences"] if o["controller"]] == [proxy.uid]
    assert FINALIZER in (await running_env.get(HTTPProxy)).finalizers


async def test_address_and_hostname_propagation(running_env):
    await running_env.gateway()
    await running_env.create()
    await running_env.condition("Programmed", "True", "Programmed")
    created = await running_env.get(Gateway)
    status = (await running_env.get(HTTPProxy)).status
    assert status["addresses"] == [{"type": "IPAddress", "value": gateway_controller.ADDRESS}]
    assert status["hostnames"] == [created.spec["listeners"][0]["hostname"]]
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
async def test_child_of_another_owner_is_reported_and_replaced_after_its_deletion(running_env, kind, name, body):
    owner = await running_env.client.create(fl.ConfigMap("other", running_env.namespace))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": owner.uid, "controller": True}
    foreign = kind(name, running_env.namespace, **body)
    foreign["metadata"]["ownerReferences"] = [reference]
    foreign = await running_env.client.create(foreign)
    await running_env.create()
    condition = await running_env.condition("Programmed", "False", "Conflict")
    assert name in condition["message"]
    assert (await running_env.get(kind, name)).resource_version == foreign.resource_version
    await running_env.client.delete(kind, name, running_env.namespace)
    recreated = await running_env.wait_until(kind, name, there)
    assert recreated.uid != foreign.uid
    await running_env.condition("Programmed", "False", "Pending")


async def test_connector_not_ready_uses_direct_response(running_env):
    await running_env.connector(is_ready=False)
    await running_env.create(rules=demo.TUNNEL_RULES)
    answer = await running_env.wait_until(HTTPRouteFilter, "connector-offline-web", there)
    assert answer.spec["directResponse"]["statusCode"] == 503
    route = await running_env.wait_until(HTTPRoute, "web", there)
    assert route.spec["rules"][0]["filters"][0]["extensionRef"]["name"] == "connector-offline-web"
    assert "backendRefs" not in route.spec["rules"][0]
    await running_env.connector(is_ready=True)
    await running_env.wait_until(HTTPRouteFilter, "connector-offline-web", gone)
    route = await running_env.get(HTTPRoute)
    assert route.spec["rules"][0]["backendRefs"][0]["name"] == "web-0-0"


async def test_envoy_patch_policy_waits_for_the_https_listener(running_env):
    await running_env.connector(is_ready=True)
    await running_env.create(rules=demo.TUNNEL_RULES)
    await running_env.condition("ConnectorMetadataProgrammed", "False", "Pending")
    assert await running_env.get(EnvoyPatchPolicy, "connector-web") is None
    await running_env.gateway()
    policy = await running_env.wait_until(EnvoyPatchPolicy, "connector-web", there)
    assert "key-1" in str(policy.spec["jsonPatches"])
    await running_env.condition("ConnectorMetadataProgrammed", "True", "ConnectorMetadataApplied")


async def test_patch_policy_removed_when_connector_cleared(running_env):
    await running_env.gateway()
    await running_env.connector(is_ready=True)
    await running_env.create(rules=demo.TUNNEL_RULES)
    await running_env.wait_until(EnvoyPatchPolicy, "connector-web", there)
    await running_env.change("web", rules=rules("http://backend.example.com"))
    await running_env.wait_until(EnvoyPatchPolicy, "connector-web", gone)


async def test_custom_hostnames_programmed_when_verified(running_env):
    await running_env.gateway(verified=["www.example.com"])
    await running_env.create(hostnames=["www.example.com"])
    await running_env.condition("HostnamesVerified", "True", "HostnamesVerified")
    proxy = await running_env.wait_until(
        HTTPProxy, "web", lambda obj: "www.example.com" in obj.status.get("hostnames", [])
    )
    assert len(proxy.status["hostnames"]) == 2


async def test_custom_hostnames_unverified(running_env):
    await running_env.gateway()
    await running_env.create(hostnames=["www.example.com"])
    condition = await running_env.condition("HostnamesVerified", "False", "UnverifiedHostnamesPresent")
    assert "www.example.com" in condition["message"]
    assert "www.example.com" not in (await running_env.get(HTTPProxy)).status["hostnames"]


async def test_hostname_in_use_by_another_gateway_is_reported(running_env):
    await running_env.gateway(verified=["www.example.com"])
    await running_env.create("first", hostnames=["www.example.com"])
    await running_env.condition("Programmed", "True", "Programmed", "first")
    await running_env.create("second", hostnames=["www.example.com"])
    await running_env.condition("HostnamesInUse", "True", "HostnameInUse", "second")


async def test_certificate_annotation_follows_the_backend_scheme(running_env):
    await running_env.create(rules=rules("http://backend.example.com"))
    endpoints = await running_env.wait_until(EndpointSlice, "web-0-0", there)
    assert CERT_HOSTNAME not in endpoints.annotations
    await running_env.change("web", rules=rules("https://backend.example.com", tls={"hostname": "cert.example.com"}))
    await running_env.wait_until(
        EndpointSlice, "web-0-0", lambda obj: obj.annotations.get(CERT_HOSTNAME) == "cert.example.com"
    )
    await running_env.change("web", rules=rules("http://backend.example.com"))
    await running_env.wait_until(EndpointSlice, "web-0-0", lambda obj: CERT_HOSTNAME not in obj.annotations)


async def test_listener_held_by_another_manager_is_reported_and_recovers(running_env):
    """A listener with a hostname of another manager stays, without its port: 422 until that manager removes it."""
    await running_env.create(hostnames=["www.example.com"])
    await running_env.wait_until(Gateway, "web", there)
    listeners = [{"name": "http-hostname-0", "hostname": "www.example.com"}]
    foreign = Gateway("web", running_env.namespace, spec={"listeners": listeners})
    await running_env.client.apply(foreign, field_manager=gateway_controller.MANAGER)
    await running_env.change("web", hostnames=None)
    condition = await running_env.condition("Programmed", "False", "Invalid")
    assert "port" in condition["message"]
    await running_env.client.apply(Gateway("web", running_env.namespace), field_manager=gateway_controller.MANAGER)
    await running_env.wait_until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 2)
    await running_env.condition("Programmed", "False", "Pending")


async def test_slice_is_recreated_when_the_address_type_changes(running_env):
    await running_env.create(rules=rules("http://backend.example.com"))
    before = await running_env.wait_until(EndpointSlice, "web-0-0", there)
    await running_env.change("web", rules=rules("http://192.0.2.7:8080"))
    after = await running_env.wait_until(
        EndpointSlice, "web-0-0", lambda obj: obj is not None and obj["addressType"] == "IPv4"
    )
    assert after.uid != before.uid
    assert after["endpoints"][0]["addresses"] == ["192.0.2.7"]


async def test_surplus_slices_are_deleted_when_a_rule_is_removed(running_env):
    two = rules("http://a.example.com") + rules("http://b.example.com")
    await running_env.create(rules=two)
    await running_env.wait_until(EndpointSlice, "web-1-0", there)
    await running_env.change("web", rules=two[:1])
    await running_env.wait_until(EndpointSlice, "web-1-0", gone)
    assert await running_env.get(EndpointSlice, "web-0-0") is not None


@pytest.mark.parametrize("mode", ["update", "apply"])
async def test_gateway_hostnames_and_finalizer_survive_a_spec_change(running_env, mode):
    await running_env.gateway(mode=mode)
    await running_env.create()
    await running_env.condition("Programmed", "True", "Programmed")
    assigned = (await running_env.get(Gateway)).spec["listeners"][0]["hostname"]
    await running_env.change("web", hostnames=["www.example.com"])
    created = await running_env.wait_until(Gateway, "web", lambda obj: len(obj.spec["listeners"]) == 4)
    assert [item.get("hostname") for item in created.spec["listeners"][:2]] == [assigned, assigned]
    assert gateway_controller.FINALIZER in created.finalizers


async def test_deleting_the_proxy_removes_the_tunnel(running_env):
    await running_env.gateway()
    await running_env.connector(is_ready=True)
    await running_env.create(rules=demo.TUNNEL_RULES)
    await running_env.wait_until(EnvoyPatchPolicy, "connector-web", there)
    await running_env.client.delete(HTTPProxy, "web", running_env.namespace)
    await running_env.wait_until(HTTPProxy, "web", gone)
    assert await running_env.get(EnvoyPatchPolicy, "connector-web") is None


PATH = {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}


@pytest.mark.parametrize("filter_place", ["rule", "backend"])
async def test_hostname_is_added_to_the_users_rewrite_filter(running_env, filter_place):
    backend = {"endpoint": "http://backend.example.com"}
    rule, rewrite = {"backends": [backend]}, [{"type": "URLRewrite", "urlRewrite": PATH}]
    (rule if filter_place == "rule" else backend)["filters"] = rewrite
    await running_env.create(rules=[rule])
    route = await running_env.wait_until(HTTPRoute, "web", there)
    expected = {"type": "URLRewrite", "urlRewrite": {**PATH, "hostname": "backend.example.com"}}
    assert route.spec["rules"][0]["filters"] == [expected]


async def test_rule_with_a_redirect_has_no_backend(running_env):
    redirect = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}
    plain_rule = rules("http://backend.example.com")[0]
    await running_env.create(rules=[{**plain_rule, "filters": [redirect]}, plain_rule])
    route = await running_env.wait_until(HTTPRoute, "web", there)
    redirected, rule_with_backend = route.spec["rules"]
    assert (redirected["filters"], "backendRefs" in redirected) == ([redirect], False)
    assert rule_with_backend["backendRefs"][0]["name"] == "web-1-0"
    await running_env.wait_until(EndpointSlice, "web-1-0", there)
    assert await running_env.get(EndpointSlice, "web-0-0") is None


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [("http://[2001:db8:0:0::7]", "2001:db8::7"), ("http://[::ffff:192.0.2.7]", "192.0.2.7")],
)
async def test_ip_addresses_are_normalized(running_env, endpoint, address):
    await running_env.create(rules=rules(endpoint))
    created = await running_env.wait_until(EndpointSlice, "web-0-0", there)
    assert created["endpoints"][0]["addresses"] == [address]
