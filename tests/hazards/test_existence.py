"""Hazards: existence and identity. Each test shows a naive write, and what fairlead does instead."""

import asyncio

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap, Lease, Namespace
from fairlead.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from fairlead.api.objects import Object
from fairlead.writes import ObjectDeleted, ObjectReplaced, apply, create_only, delete, finalizers


def cm(bench, **metadata):
    return ConfigMap("c", bench.namespace, data={"a": "1"}) | {
        "metadata": {"name": "c", "namespace": bench.namespace, **metadata}
    }


async def test_h01_late_apply_recreates_a_deleted_object(bench):
    made = await bench.other.apply(cm(bench), field_manager="naive")
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    recreated = await bench.other.apply(cm(bench), field_manager="naive")
    assert recreated.uid != made.uid
    # fairlead: the change is intended for the deleted object.
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    await apply(bench.cached, cm(bench))
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    with pytest.raises(ObjectDeleted):
        await apply(bench.cached, cm(bench) | {"data": {"a": "2"}})
    with pytest.raises(NotFound):
        await bench.live(made)


async def test_h01_apply_to_status_does_not_create(bench):
    with pytest.raises(NotFound):
        await bench.other.apply(
            WIDGET("w", bench.namespace, status={"phase": "x"}), field_manager="naive", subresource="status"
        )


async def test_h02_apply_with_a_uid_does_not_create(bench):
    with pytest.raises(Conflict, match="uid mismatch"):
        await bench.other.apply(cm(bench, uid="00000000-0000-0000-0000-000000000000"), field_manager="naive")


async def test_h03_replaced_object_is_422_for_patch_and_409_for_put(bench):
    old = await bench.config_map("c", data={"a": "1"})
    await bench.recreate(old)
    with pytest.raises(Invalid, match="field is immutable"):
        await bench.other.apply(cm(bench, uid=old.uid), field_manager="naive")
    with pytest.raises(Conflict, match="Precondition failed: UID"):
        await bench.other.replace(cm(bench, uid=old.uid))
    with pytest.raises(ObjectReplaced):
        await finalizers.add(bench.writer, ConfigMap, old, "a.b/c")


async def test_h04_resource_version_does_not_stop_an_apply_from_creating(bench):
    made = await bench.other.apply(cm(bench, resourceVersion="12345"), field_manager="naive")
    assert made.uid
    # fairlead uses that for a create that fails if an object exists.
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    assert (await apply(bench.writer, cm(bench)))["data"] == {"a": "1"}


async def test_h05_stale_resource_version_rejects_a_forced_apply(bench):
    await bench.config_map("c", data={"a": "theirs"})
    with pytest.raises(Conflict, match="object has been modified"):
        await bench.other.apply(cm(bench, resourceVersion="1"), field_manager="naive", force=True)


async def test_h06_create_with_a_resource_version_is_500_without_reason(bench):
    with pytest.raises(ApiError, match="resourceVersion should not be set") as error:
        await bench.other.create(cm(bench, resourceVersion="5"))
    assert (error.value.code, error.value.reason) == (500, "")


async def test_h07_put_creates_missing_objects_of_some_kinds(bench):
    with pytest.raises(NotFound):
        await bench.other.replace(cm(bench))
    lease = Lease("l", bench.namespace, spec={"holderIdentity": "x"})
    assert (await bench.other.replace(lease)).uid
    # fairlead never sends PUT: a decision does not recreate a deleted Lease.
    seen = await bench.other.get(Lease, "l", bench.namespace)
    await bench.other.delete(Lease, "l", bench.namespace)
    with pytest.raises(ObjectDeleted):
        await finalizers.add(bench.writer, Lease, seen, "a.b/c")


async def test_h08_delete_without_a_uid_deletes_the_recreated_object(bench):
    old = await bench.config_map("c")
    new = await bench.recreate(old)
    await delete(bench.writer, ConfigMap, old)
    assert await bench.exists(new)
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    assert not await bench.exists(new)


async def test_h09_recreated_object_is_detected_by_its_uid(bench):
    old = bench.view.put(ConfigMap, await bench.config_map("c"))
    await bench.recreate(old)
    with pytest.raises(ObjectReplaced):
        await finalizers.add(bench.cached, ConfigMap, old, "a.b/c")
    assert bench.view.objects == {}


async def test_h10_generate_name_after_a_lost_answer_creates_two_objects(bench):
    for _ in range(2):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"generateName": "g-", "namespace": bench.namespace},
        }
        await bench.other.create(body)
    made = [obj for obj in (await bench.other.list(ConfigMap, bench.namespace)).items if obj.name.startswith("g-")]
    assert len(made) == 2
    # fairlead requires a name, so that a lost answer can be looked up.
    with pytest.raises(ValueError, match="needs a name"):
        await create_only(bench.writer, body)
    bench.wire.lost = 1
    await create_only(bench.writer, ConfigMap("named", bench.namespace))
    assert bench.wire.writes == ["POST"]


async def test_h11_create_over_a_terminating_object_already_exists(bench):
    """The embedded server has no nodePort allocation, so the test uses the name for the order of checks."""
    held = await bench.merge(await bench.config_map("c"), {"metadata": {"finalizers": ["a.b/c"]}})
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await bench.other.create(cm(bench))
    assert (await create_only(bench.writer, cm(bench))).uid == held.uid


async def test_h12_write_in_a_terminating_namespace_is_forbidden(bench):
    name = f"{bench.namespace}-terminating"
    made = await bench.other.create(Namespace(name) | {"metadata": {"name": name, "finalizers": ["a.b/c"]}})
    await bench.other.delete(Namespace, name)
    with pytest.raises(Forbidden) as error:
        await apply(bench.writer, ConfigMap("c", name, data={"a": "1"}))
    assert error.value.causes[0]["reason"] == "NamespaceTerminating"
    assert bench.wire.writes == ["PATCH"], "sent once, because a retry cannot succeed"
    await bench.merge(made, {"metadata": {"finalizers": None}})


async def test_h04_one_of_many_concurrent_creates_wins(bench):
    owners = [await bench.widget(f"o{n}") for n in range(8)]
    results = await asyncio.gather(
        *(apply(bench.writer.with_manager(f"m{n}"), cm(bench), owner=owner) for n, owner in enumerate(owners)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Object) for result in results) == 1
