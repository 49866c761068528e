"""Tests of the hazards of lists, schemas, status and metadata: a naive write, and the write of fairlead."""

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap, Pod, RoleBinding, Service
from fairlead.api.errors import ApiError, Invalid
from fairlead.api.requests import HttpRequest
from fairlead.client.client import PatchType
from fairlead.writes import ImmutableField, ObjectDeleting, apply, decide, finalizers


def service(env, *ports):
    return Service("s", env.namespace, spec={"ports": list(ports)})


def pod(env, *ports):
    return Pod("p", env.namespace, spec={"containers": [{"name": "c", "image": "i", "ports": list(ports)}]})


async def test_h54_omitted_list_key_gets_its_default(env):
    first = await env.foreign_client.apply(service(env, {"port": 80}), field_manager="a")
    applied = await env.foreign_client.apply(service(env, {"port": 80, "protocol": "TCP"}), field_manager="a")
    assert len(applied.spec["ports"]) == 1
    assert applied.resource_version != first.resource_version, "the same item, but one more owned field"
    # fairlead: both forms converge.
    for payload in (service(env, {"port": 80}), service(env, {"port": 80, "protocol": "TCP"})):
        await apply(env.cached_writer, payload, adopt=True)
        env.faulty_transport.forget_requests()
        await apply(env.cached_writer, payload)
        assert env.faulty_transport.sent_requests == []


async def test_h55_duplicate_list_keys_are_500_and_not_retried(env):
    with pytest.raises(ApiError, match="duplicate entries for key") as error:
        await apply(env.writer, pod(env, {"containerPort": 80}, {"containerPort": 80, "name": "x"}))
    assert (error.value.code, error.value.reason) == (500, "")
    assert env.faulty_transport.writes == ["PATCH"]


async def test_h56_unmarked_list_is_replaced_as_a_whole(env):
    applied = await env.foreign_client.apply(WIDGET("w", env.namespace, spec={"lines": ["a"]}), field_manager="a")
    await env.merge_patch(applied, {"spec": {"lines": ["a", "theirs"]}})
    after = await env.foreign_client.apply(WIDGET("w", env.namespace, spec={"lines": ["a"]}), field_manager="a")
    assert after.spec["lines"] == ["a"]
    # fairlead: a decision adds a line beside those of others.

    def add(draft):
        if "mine" not in draft.spec["lines"]:
            draft.spec["lines"].append("mine")

    stale_object = after
    await env.merge_patch(applied, {"spec": {"lines": ["a", "theirs"]}})
    assert (await decide(env.writer, WIDGET, stale_object, add)).object.spec["lines"] == ["a", "theirs", "mine"]


async def test_h57_unknown_field_in_an_apply_is_500_and_not_retried(env):
    with pytest.raises(ApiError, match="field not declared in schema") as error:
        await apply(env.writer, WIDGET("w", env.namespace, spec={"none": 1}))
    assert (error.value.code, error.value.reason) == (500, "")
    assert env.faulty_transport.writes == ["PATCH"]


async def test_h58_status_at_the_main_endpoint_is_dropped(env):
    widget = await env.widget()
    assert "status" not in await env.merge_patch(widget, {"status": {"phase": "x"}})
    decided = await decide(env.writer, WIDGET, widget, lambda draft: draft.status.update(phase="x"))
    assert decided.object.status == {"phase": "x"}
    naive_result = await env.merge_patch(widget, {"spec": {"size": 9}}, subresource="status")
    assert naive_result.spec == {}


async def test_h59_finalizer_on_a_deleting_object_is_rejected(env):
    widget = await env.merge_patch(await env.widget(), {"metadata": {"finalizers": ["a.b/held"]}})
    deleting = await env.foreign_client.delete(WIDGET, "w", env.namespace)
    with pytest.raises(Invalid, match="no new finalizers can be added"):
        await env.merge_patch(widget, {"metadata": {"finalizers": ["a.b/held", "a.b/new"]}})
    env.faulty_transport.forget_requests()
    with pytest.raises(ObjectDeleting):
        await finalizers.add(env.writer, WIDGET, deleting, "a.b/new")
    assert env.faulty_transport.sent_requests == []


async def test_h60_immutable_field_is_reported_or_recreated(env):
    def binding(role):
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        return RoleBinding("rb", env.namespace, roleRef=ref)

    old = await apply(env.writer, binding("view"))
    with pytest.raises(Invalid, match="cannot change roleRef"):
        await env.foreign_client.apply(binding("edit"), field_manager="naive")
    with pytest.raises(ImmutableField):
        await apply(env.writer, binding("edit"))
    assert (await apply(env.writer, binding("edit"), recreate=True)).uid != old.uid


async def test_h61_two_controller_references_are_rejected(env):
    def ref(uid, **extra_fields):
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid, **extra_fields}

    body = ConfigMap("c", env.namespace)
    body["metadata"]["ownerReferences"] = [ref("1", controller=True), ref("2", controller=True)]
    with pytest.raises(Invalid, match="Only one reference can have Controller set to true"):
        await env.foreign_client.create(body)
    body["metadata"]["ownerReferences"] = [ref("1"), ref("1")]
    assert len((await env.foreign_client.create(body)).metadata["ownerReferences"]) == 1


async def test_h62_json_patch_test_needs_the_servers_encoding(env):
    created = await env.config_map("c", data={"u": "x?a=1&b=2"})
    path = f"/api/v1/namespaces/{env.namespace}/configmaps/c"
    headers = {"Content-Type": PatchType.JSON}
    plain_patch = b'[{"op":"test","path":"/data/u","value":"x?a=1&b=2"}]'
    assert (await env.transport.request(HttpRequest("PATCH", path, headers=headers, body=plain_patch))).status == 422
    escaped = plain_patch.replace(b"&", rb"\u0026")
    assert (await env.transport.request(HttpRequest("PATCH", path, headers=headers, body=escaped))).status == 200
    # fairlead

    def read(draft):
        draft.annotations["seen"] = draft["data"]["u"]

    decided = await decide(env.writer, ConfigMap, created, read)
    assert decided.object.annotations == {"seen": "x?a=1&b=2"}
    assert env.faulty_transport.writes == ["PATCH"]
