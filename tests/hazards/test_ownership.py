"""Hazards: field ownership under server-side apply. Each test shows a naive write, and what fairlead does instead.

H37 to H39 have no test: they need a CRD with several versions and a conversion webhook.
"""

import dataclasses

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.builtin import ConfigMap, Deployment
from fairlead.api.errors import ApiError, BadRequest, Conflict
from fairlead.api.objects import Object
from fairlead.client.client import PatchType
from fairlead.writes import ReadValueInPayload, apply, decide, migrate


def widget(bench, **spec):
    return WIDGET("w", bench.namespace, spec=spec)


def managers(obj):
    return {(entry["manager"], entry["operation"]) for entry in obj.metadata.get("managedFields", ())}


def entry(obj, manager, operation="Apply"):
    return next(e for e in obj.metadata["managedFields"] if (e["manager"], e["operation"]) == (manager, operation))


def fields(obj, manager, operation="Apply"):
    return entry(obj, manager, operation)["fieldsV1"]


async def test_h26_update_and_apply_of_one_manager_are_two_owners(bench):
    await bench.other.create(widget(bench, note="mine", size=1), field_manager="me")
    after = await bench.other.apply(widget(bench, size=1), field_manager="me")
    assert managers(after) >= {("me", "Update"), ("me", "Apply")}
    assert after.spec["note"] == "mine", "the apply omits it, but the Update entry still owns it"


async def test_h27_apply_removes_updated_fields_after_a_migration(bench):
    made = await bench.other.create(widget(bench, note="mine", size=1), field_manager="me")
    await migrate(bench.writer, WIDGET, made, fields=["spec"], managers=["me"])
    after = await apply(bench.writer, widget(bench, size=1), adopt=True)
    assert after.spec == {"size": 1}


async def test_h28_cleared_managed_fields_do_not_transfer_ownership(bench):
    await bench.other.create(widget(bench, note="x"), field_manager="me")
    made = await bench.other.patch(
        WIDGET, "w", bench.namespace, {"metadata": {"managedFields": [{}]}}, type=PatchType.MERGE
    )
    assert "managedFields" not in made.metadata
    after = await bench.other.apply(widget(bench, size=1), field_manager="me")
    assert ("before-first-apply", "Update") in managers(after)
    assert after.spec == {"note": "x", "size": 1}


async def test_h29_payload_from_a_stale_read_deletes_newer_own_fields(bench):
    await bench.other.apply(widget(bench, size=1), field_manager="naive")
    stale = {"size": 1}
    await bench.other.apply(widget(bench, size=1, note="newer"), field_manager="naive")
    assert (await bench.other.apply(widget(bench, **stale), field_manager="naive")).spec == {"size": 1}
    # fairlead rejects a payload that was read from the server.
    live = await bench.other.get(WIDGET, "w", bench.namespace)
    with pytest.raises(ReadValueInPayload):
        await apply(bench.writer, live)


async def test_h30_omitting_a_shared_field_only_gives_up_ownership(bench):
    await bench.other.apply(widget(bench, size=1, note="n"), field_manager="a")
    await bench.other.apply(widget(bench, note="n"), field_manager="b")
    after = await bench.other.apply(widget(bench, size=1), field_manager="a")
    assert after.spec == {"size": 1, "note": "n"}
    assert "f:note" not in fields(after, "a")["f:spec"]


async def test_h31_omitting_a_list_item_removes_foreign_fields_in_it(bench):
    made = await bench.other.apply(widget(bench, listeners=[{"name": "a"}, {"name": "b"}]), field_manager="a")
    await bench.merge(made, {"spec": {"listeners": [{"name": "a", "hostname": "theirs"}, {"name": "b"}]}})
    kept = await bench.other.apply(widget(bench, listeners=[{"name": "a"}, {"name": "b"}]), field_manager="a")
    assert kept.spec["listeners"][0]["hostname"] == "theirs"
    after = await bench.other.apply(widget(bench, listeners=[{"name": "b"}]), field_manager="a")
    assert [item["name"] for item in after.spec["listeners"]] == ["b"]


async def test_h32_field_survives_a_handover_only_if_already_co_owned(bench):
    await bench.other.apply(widget(bench, size=1, note="n"), field_manager="a")
    await bench.other.apply(widget(bench, size=1), field_manager="b")
    assert (await bench.other.apply(widget(bench, note="n"), field_manager="a")).spec["size"] == 1
    await bench.other.delete(WIDGET, "w", bench.namespace)
    await bench.other.apply(widget(bench, size=1, note="n"), field_manager="a")
    assert "size" not in (await bench.other.apply(widget(bench, note="n"), field_manager="a")).spec


async def test_h33_unforced_apply_of_a_foreign_field_is_a_conflict(bench):
    await bench.other.create(widget(bench, size=1), field_manager="human")
    with pytest.raises(Conflict) as error:
        await bench.other.apply(widget(bench, size=2), field_manager="naive", force=False)
    [cause] = error.value.causes
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".spec.size")
    # fairlead forces only on children. A decision sees what a person wrote.
    human = await bench.other.get(WIDGET, "w", bench.namespace)

    def grow(draft):
        if draft.spec["size"] < 2:
            draft.spec["size"] = 2

    await bench.merge(human, {"spec": {"size": 7}})
    assert (await decide(bench.writer, WIDGET, human, grow)).object.spec["size"] == 7


async def test_h34_null_is_stored_as_an_empty_string(bench):
    naive = await bench.other.apply(ConfigMap("c", bench.namespace, data={"n": None}), field_manager="naive")
    assert naive["data"] == {"n": ""}
    await bench.other.delete(ConfigMap, "c", bench.namespace)
    ours = await apply(bench.writer, ConfigMap("c", bench.namespace, data={"n": None, "a": "1"}))
    assert ours["data"] == {"a": "1"}


async def test_h35_apply_cannot_remove_a_foreign_field(bench):
    await bench.other.apply(widget(bench, note="theirs"), field_manager="other")
    after = await bench.other.apply(widget(bench, size=1), field_manager="me")
    assert after.spec == {"note": "theirs", "size": 1}
    # fairlead: a decision can remove it on purpose.
    done = await decide(bench.writer, WIDGET, after, lambda draft: draft.spec.pop("note", None))
    assert done.object.spec == {"size": 1}


async def test_h36_many_update_managers_become_ancient_changes(bench):
    made = await bench.other.create(widget(bench), field_manager="m0")
    for n in range(1, 12):
        made = await bench.merge(made, {"metadata": {"annotations": {f"a{n}": "x"}}}, manager=f"m{n}")
    assert ("ancient-changes", "Update") in managers(made)
    # Our Apply entry is not merged.
    await apply(bench.writer, widget(bench, size=1), adopt=True)
    for n in range(12, 24):
        made = await bench.merge(made, {"metadata": {"annotations": {f"a{n}": "x"}}}, manager=f"m{n}")
    assert (MANAGER, "Apply") in managers(made)


@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_h40_oversized_object_is_rejected_and_not_retried(bench):
    big = ConfigMap("c", bench.namespace, data={"a": "x" * 3_200_000})
    with pytest.raises(ApiError) as error:
        await apply(bench.writer, big)
    assert error.value.code in (413, 422, 500)
    assert bench.wire.writes == ["PATCH"]


async def test_h41_field_manager_defaults_to_the_user_agent(bench):
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps/c"
    code, answer = await bench.raw("PATCH", path, ConfigMap("c", bench.namespace), "apply")
    assert (code, answer["details"]["kind"]) == (422, "PatchOptions")
    await bench.config_map("c", data={"x": "y"})
    _, answer = await bench.raw("PATCH", path, {"data": {"a": "b"}}, "merge-patch")
    assert ("raw", "Update") in managers(Object(answer))
    code, _ = await bench.raw("PATCH", path, {"data": {"a": "c"}}, "merge-patch", force="true")
    assert code == 422


async def test_h42_managed_fields_in_a_payload_are_rejected(bench):
    body = ConfigMap("c", bench.namespace)
    body["metadata"]["managedFields"] = [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}]
    with pytest.raises(BadRequest, match="managedFields must be nil"):
        await bench.other.apply(body, field_manager="naive")
    with pytest.raises(ReadValueInPayload, match="managedFields"):
        await apply(bench.writer, body)


async def test_h44_status_and_main_endpoint_have_different_owners(bench):
    await bench.other.apply(widget(bench, size=1), field_manager="me")
    body = WIDGET("w", bench.namespace, status={"phase": "x"})
    await bench.other.apply(body, field_manager="me", subresource="status")
    after = await bench.other.apply(widget(bench, size=2), field_manager="me")
    assert after.status == {"phase": "x"}
    assert {e.get("subresource") for e in after.metadata["managedFields"]} == {None, "status"}


async def test_h45_scale_takes_ownership_of_replicas(bench):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await bench.other.apply(Deployment("d", bench.namespace, spec=spec), field_manager="deployer")
    scale = {"spec": {"replicas": 3}}
    await bench.other.patch(
        Deployment, "d", bench.namespace, scale, type=PatchType.MERGE, subresource="scale", field_manager="hpa"
    )
    after = await bench.other.get(Deployment, "d", bench.namespace)
    assert fields(after, "hpa", "Update")["f:spec"] == {"f:replicas": {}}
    assert "f:replicas" not in fields(after, "deployer")["f:spec"]


async def test_h46_cache_without_managed_fields_leads_to_a_request(bench):
    made = await apply(bench.writer, widget(bench, size=1, note="n"))
    metadata = {key: value for key, value in made.metadata.items() if key != "managedFields"}
    bench.view.put(WIDGET, Object({**made, "metadata": metadata}))
    restarted = dataclasses.replace(bench.cached, last_writes={})
    bench.wire.forget()
    # Only the missing entry shows that the note was ours and must be removed.
    after = await apply(restarted, widget(bench, size=1), adopt=True)
    assert after.spec == {"size": 1}
    assert bench.wire.writes


async def test_h29_applying_a_read_value_reverts_a_newer_one(bench):
    """A hostname from a stale copy is applied by force."""
    made = await bench.other.apply(widget(bench, listeners=[{"name": "a"}]), field_manager="naive")
    await bench.merge(made, {"spec": {"listeners": [{"name": "a", "hostname": "old"}]}})
    await bench.merge(made, {"spec": {"listeners": [{"name": "a", "hostname": "new"}]}})
    naive = await bench.other.apply(widget(bench, listeners=[{"name": "a", "hostname": "old"}]), field_manager="naive")
    assert naive.spec["listeners"][0]["hostname"] == "old"
    # fairlead applies only its own fields, and those of others stay.
    await bench.other.delete(WIDGET, "w", bench.namespace)
    made = await apply(bench.writer, widget(bench, listeners=[{"name": "a"}]))
    await bench.merge(made, {"spec": {"listeners": [{"name": "a", "hostname": "new"}]}})
    after = await apply(bench.writer, widget(bench, listeners=[{"name": "a", "port": 1}]))
    assert after.spec["listeners"] == [{"name": "a", "hostname": "new", "port": 1, "mode": "plain"}]


async def test_h43_field_manager_kubectl_is_rejected(bench):
    """The server rewrites the last-applied annotation for this manager and may force its applies."""
    with pytest.raises(ValueError, match="kubectl"):
        bench.writer.with_manager("kubectl")


async def test_h33_unforced_invalid_value_is_not_a_conflict(bench):
    with pytest.raises(ApiError, match="expected numeric") as error:
        await bench.other.apply(widget(bench, size="text"), field_manager="naive", force=False)
    assert error.value.code == 500
