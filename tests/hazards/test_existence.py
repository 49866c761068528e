"""Tests of the hazards of existence and identity: a naive write, and the write of fairlead."""

import asyncio

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap, Lease, Namespace
from fairlead.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from fairlead.api.objects import Object
from fairlead.api.requests import HttpRequest
from fairlead.writes import ObjectDeleted, ObjectReplaced, apply, create_only, delete, finalizers


def config_map(env, **metadata):
    return ConfigMap("c", env.namespace, data={"a": "1"}) | {
        "metadata": {"name": "c", "namespace": env.namespace, **metadata}
    }


async def test_h01_late_apply_recreates_a_deleted_object(env):
    applied = await env.foreign_client.apply(config_map(env), field_manager="naive")
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    recreated = await env.foreign_client.apply(config_map(env), field_manager="naive")
    assert recreated.uid != applied.uid
    # fairlead: the change is intended for the deleted object.
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    await apply(env.cached_writer, config_map(env))
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    with pytest.raises(ObjectDeleted):
        await apply(env.cached_writer, config_map(env) | {"data": {"a": "2"}})
    with pytest.raises(NotFound):
        await env.get_live(applied)


async def test_h01_apply_to_status_does_not_create(env):
    with pytest.raises(NotFound):
        await env.foreign_client.apply(
            WIDGET("w", env.namespace, status={"phase": "x"}), field_manager="naive", subresource="status"
        )


async def test_h02_apply_with_a_uid_does_not_create(env):
    with pytest.raises(Conflict, match="uid mismatch"):
        await env.foreign_client.apply(
            config_map(env, uid="00000000-0000-0000-0000-000000000000"), field_manager="naive"
        )


async def test_h03_replaced_object_is_422_for_patch_and_409_for_put(env):
    old = await env.config_map("c", data={"a": "1"})
    await env.recreate(old)
    with pytest.raises(Invalid, match="field is immutable"):
        await env.foreign_client.apply(config_map(env, uid=old.uid), field_manager="naive")
    with pytest.raises(Conflict, match="Precondition failed: UID"):
        await env.foreign_client.replace(config_map(env, uid=old.uid))
    with pytest.raises(ObjectReplaced):
        await finalizers.add(env.writer, ConfigMap, old, "a.b/c")


async def test_h04_resource_version_does_not_stop_an_apply_from_creating(env):
    applied = await env.foreign_client.apply(config_map(env, resourceVersion="12345"), field_manager="naive")
    assert applied.uid
    # fairlead uses that for a create that fails if an object exists.
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    assert (await apply(env.writer, config_map(env)))["data"] == {"a": "1"}


async def test_h05_stale_resource_version_rejects_a_forced_apply(env):
    await env.config_map("c", data={"a": "theirs"})
    with pytest.raises(Conflict, match="object has been modified"):
        await env.foreign_client.apply(config_map(env, resourceVersion="1"), field_manager="naive", force=True)


async def test_h06_create_with_a_resource_version_is_500_without_reason(env):
    with pytest.raises(ApiError, match="resourceVersion should not be set") as error:
        await env.foreign_client.create(config_map(env, resourceVersion="5"))
    assert (error.value.code, error.value.reason) == (500, "")


async def test_h07_put_creates_missing_objects_of_some_kinds(env):
    with pytest.raises(NotFound):
        await env.foreign_client.replace(config_map(env))
    lease = Lease("l", env.namespace, spec={"holderIdentity": "x"})
    assert (await env.foreign_client.replace(lease)).uid
    # fairlead never sends PUT: a decision does not recreate a deleted Lease.
    lease_read = await env.foreign_client.get(Lease, "l", env.namespace)
    await env.foreign_client.delete(Lease, "l", env.namespace)
    with pytest.raises(ObjectDeleted):
        await finalizers.add(env.writer, Lease, lease_read, "a.b/c")


async def test_h08_delete_without_a_uid_deletes_the_recreated_object(env):
    old = await env.config_map("c")
    new = await env.recreate(old)
    await delete(env.writer, ConfigMap, old)
    assert await env.exists(new)
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    assert not await env.exists(new)


async def test_h09_recreated_object_is_detected_by_its_uid(env):
    old = env.cache.put(ConfigMap, await env.config_map("c"))
    await env.recreate(old)
    with pytest.raises(ObjectReplaced):
        await finalizers.add(env.cached_writer, ConfigMap, old, "a.b/c")
    assert env.cache.objects == {}


async def test_h10_generate_name_after_a_lost_answer_creates_two_objects(env):
    for _ in range(2):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"generateName": "g-", "namespace": env.namespace},
        }
        await env.foreign_client.create(body)
    created = [
        obj for obj in (await env.foreign_client.list(ConfigMap, env.namespace)).items if obj.name.startswith("g-")
    ]
    assert len(created) == 2
    # fairlead requires a name, so that a lost answer can be looked up.
    with pytest.raises(ValueError, match="needs a name"):
        await create_only(env.writer, body)
    env.faulty_transport.lost_responses = 1
    await create_only(env.writer, ConfigMap("named", env.namespace))
    assert env.faulty_transport.writes == ["POST"]


async def test_h11_create_over_a_terminating_object_already_exists(env):
    """Tests the order of checks with the name: the embedded server does not allocate nodePorts."""
    terminating = await env.merge_patch(await env.config_map("c"), {"metadata": {"finalizers": ["a.b/c"]}})
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await env.foreign_client.create(config_map(env))
    assert (await create_only(env.writer, config_map(env))).uid == terminating.uid


async def test_h12_write_in_a_terminating_namespace_is_forbidden(env):
    name = f"{env.namespace}-terminating"
    created = await env.foreign_client.create(Namespace(name) | {"metadata": {"name": name, "finalizers": ["a.b/c"]}})
    await env.foreign_client.delete(Namespace, name)
    with pytest.raises(Forbidden) as error:
        await apply(env.writer, ConfigMap("c", name, data={"a": "1"}))
    assert error.value.causes[0]["reason"] == "NamespaceTerminating"
    assert env.faulty_transport.writes == ["PATCH"], "sent once, because a retry cannot succeed"
    await env.merge_patch(created, {"metadata": {"finalizers": None}})


async def test_h04_one_of_many_concurrent_creates_wins(env):
    owners = [await env.widget(f"o{n}") for n in range(8)]
    results = await asyncio.gather(
        *(apply(env.writer.with_manager(f"m{n}"), config_map(env), owner=owner) for n, owner in enumerate(owners)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Object) for result in results) == 1


async def test_h67_failed_read_does_not_mean_absence(env):
    widget = await env.widget()
    path = f"/apis/{WIDGET.group}/v9/namespaces/{env.namespace}/widgets/w"
    assert (await env.transport.request(HttpRequest("GET", path))).status == 404
    assert await env.exists(widget), "only the version is not served"
    code, body = await env.send_raw("GET", f"/apis/{WIDGET.group}/v1/namespaces/{env.namespace}/widgets/missing")
    assert (code, body["details"]["name"]) == (404, "missing"), "the server names an object that does not exist"
