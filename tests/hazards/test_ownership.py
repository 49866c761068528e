"""Tests of the hazards of field ownership with server-side apply: a naive write, and the write of fairlead.

H37 to H39 have no test: they need a CRD with several versions and a conversion webhook.
"""

import dataclasses

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.builtin import ConfigMap, Deployment
from fairlead.api.errors import ApiError, BadRequest, Conflict
from fairlead.api.objects import Object
from fairlead.client.client import PatchType
from fairlead.writes import ReadValueInPayload, StatusReport, apply, decide, migrate, status


def widget(env, **spec):
    return WIDGET("w", env.namespace, spec=spec)


def managers(obj):
    return {(entry["manager"], entry["operation"]) for entry in obj.metadata.get("managedFields", ())}


def entry(obj, manager, operation="Apply"):
    return next(e for e in obj.metadata["managedFields"] if (e["manager"], e["operation"]) == (manager, operation))


def fields(obj, manager, operation="Apply"):
    return entry(obj, manager, operation)["fieldsV1"]


async def test_h26_update_and_apply_of_one_manager_are_two_owners(env):
    await env.foreign_client.create(widget(env, note="mine", size=1), field_manager="me")
    after = await env.foreign_client.apply(widget(env, size=1), field_manager="me")
    assert managers(after) >= {("me", "Update"), ("me", "Apply")}
    assert after.spec["note"] == "mine", "the apply omits it, but the Update entry still owns it"


async def test_h27_apply_removes_updated_fields_after_a_migration(env):
    created = await env.foreign_client.create(widget(env, note="mine", size=1), field_manager="me")
    await migrate(env.writer, WIDGET, created, fields=["spec"], managers=["me"])
    after = await apply(env.writer, widget(env, size=1), adopt=True)
    assert after.spec == {"size": 1}


async def test_h28_cleared_managed_fields_do_not_transfer_ownership(env):
    await env.foreign_client.create(widget(env, note="x"), field_manager="me")
    patched = await env.foreign_client.patch(
        WIDGET, "w", env.namespace, {"metadata": {"managedFields": [{}]}}, type=PatchType.MERGE
    )
    assert "managedFields" not in patched.metadata
    after = await env.foreign_client.apply(widget(env, size=1), field_manager="me")
    assert ("before-first-apply", "Update") in managers(after)
    assert after.spec == {"note": "x", "size": 1}


async def test_h29_payload_from_a_stale_read_deletes_newer_own_fields(env):
    await env.foreign_client.apply(widget(env, size=1), field_manager="naive")
    stale_spec = {"size": 1}
    await env.foreign_client.apply(widget(env, size=1, note="newer"), field_manager="naive")
    assert (await env.foreign_client.apply(widget(env, **stale_spec), field_manager="naive")).spec == {"size": 1}
    # fairlead rejects a payload that was read from the server.
    live = await env.foreign_client.get(WIDGET, "w", env.namespace)
    with pytest.raises(ReadValueInPayload):
        await apply(env.writer, live)


async def test_h30_omitting_a_shared_field_only_gives_up_ownership(env):
    await env.foreign_client.apply(widget(env, size=1, note="n"), field_manager="a")
    await env.foreign_client.apply(widget(env, note="n"), field_manager="b")
    after = await env.foreign_client.apply(widget(env, size=1), field_manager="a")
    assert after.spec == {"size": 1, "note": "n"}
    assert "f:note" not in fields(after, "a")["f:spec"]


async def test_h31_omitting_a_list_item_removes_foreign_fields_in_it(env):
    applied = await env.foreign_client.apply(widget(env, listeners=[{"name": "a"}, {"name": "b"}]), field_manager="a")
    await env.merge_patch(applied, {"spec": {"listeners": [{"name": "a", "hostname": "theirs"}, {"name": "b"}]}})
    applied = await env.foreign_client.apply(widget(env, listeners=[{"name": "a"}, {"name": "b"}]), field_manager="a")
    assert applied.spec["listeners"][0]["hostname"] == "theirs"
    after = await env.foreign_client.apply(widget(env, listeners=[{"name": "b"}]), field_manager="a")
    assert [item["name"] for item in after.spec["listeners"]] == ["b"]


async def test_h32_field_survives_a_handover_only_if_already_co_owned(env):
    await env.foreign_client.apply(widget(env, size=1, note="n"), field_manager="a")
    await env.foreign_client.apply(widget(env, size=1), field_manager="b")
    assert (await env.foreign_client.apply(widget(env, note="n"), field_manager="a")).spec["size"] == 1
    await env.foreign_client.delete(WIDGET, "w", env.namespace)
    await env.foreign_client.apply(widget(env, size=1, note="n"), field_manager="a")
    assert "size" not in (await env.foreign_client.apply(widget(env, note="n"), field_manager="a")).spec


async def test_h33_unforced_apply_of_a_foreign_field_is_a_conflict(env):
    await env.foreign_client.create(widget(env, size=1), field_manager="human")
    with pytest.raises(Conflict) as error:
        await env.foreign_client.apply(widget(env, size=2), field_manager="naive", force=False)
    [cause] = error.value.causes
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".spec.size")
    # fairlead forces only on children. A decision sees what a person wrote.
    human = await env.foreign_client.get(WIDGET, "w", env.namespace)

    def grow(draft):
        if draft.spec["size"] < 2:
            draft.spec["size"] = 2

    await env.merge_patch(human, {"spec": {"size": 7}})
    assert (await decide(env.writer, WIDGET, human, grow)).object.spec["size"] == 7


async def test_h34_null_is_stored_as_an_empty_string(env):
    naive_result = await env.foreign_client.apply(
        ConfigMap("c", env.namespace, data={"n": None}), field_manager="naive"
    )
    assert naive_result["data"] == {"n": ""}
    await env.foreign_client.delete(ConfigMap, "c", env.namespace)
    ours = await apply(env.writer, ConfigMap("c", env.namespace, data={"n": None, "a": "1"}))
    assert ours["data"] == {"a": "1"}


async def test_h35_apply_cannot_remove_a_foreign_field(env):
    await env.foreign_client.apply(widget(env, note="theirs"), field_manager="other")
    after = await env.foreign_client.apply(widget(env, size=1), field_manager="me")
    assert after.spec == {"note": "theirs", "size": 1}
    # fairlead: a decision can remove it on purpose.
    decided = await decide(env.writer, WIDGET, after, lambda draft: draft.spec.pop("note", None))
    assert decided.object.spec == {"size": 1}


async def test_h36_many_update_managers_become_ancient_changes(env):
    created_widget = await env.foreign_client.create(widget(env), field_manager="m0")
    for n in range(1, 12):
        created_widget = await env.merge_patch(
            created_widget, {"metadata": {"annotations": {f"a{n}": "x"}}}, manager=f"m{n}"
        )
    assert ("ancient-changes", "Update") in managers(created_widget)
    # Our Apply entry is not merged.
    await apply(env.writer, widget(env, size=1), adopt=True)
    for n in range(12, 24):
        created_widget = await env.merge_patch(
            created_widget, {"metadata": {"annotations": {f"a{n}": "x"}}}, manager=f"m{n}"
        )
    assert (MANAGER, "Apply") in managers(created_widget)


@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_h40_oversized_object_is_rejected_and_not_retried(env):
    big = ConfigMap("c", env.namespace, data={"a": "x" * 3_200_000})
    with pytest.raises(ApiError) as error:
        await apply(env.writer, big)
    assert error.value.code in (413, 422, 500)
    assert env.faulty_transport.writes == ["PATCH"]


async def test_h41_field_manager_defaults_to_the_user_agent(env):
    path = f"/api/v1/namespaces/{env.namespace}/configmaps/c"
    code, response = await env.send_raw("PATCH", path, ConfigMap("c", env.namespace), "apply")
    assert (code, response["details"]["kind"]) == (422, "PatchOptions")
    await env.config_map("c", data={"x": "y"})
    _, response = await env.send_raw("PATCH", path, {"data": {"a": "b"}}, "merge-patch")
    assert ("raw", "Update") in managers(Object(response))
    code, _ = await env.send_raw("PATCH", path, {"data": {"a": "c"}}, "merge-patch", force="true")
    assert code == 422


async def test_h42_managed_fields_in_a_payload_are_rejected(env):
    body = ConfigMap("c", env.namespace)
    body["metadata"]["managedFields"] = [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}]
    with pytest.raises(BadRequest, match="managedFields must be nil"):
        await env.foreign_client.apply(body, field_manager="naive")
    with pytest.raises(ReadValueInPayload, match="managedFields"):
        await apply(env.writer, body)


async def test_h44_status_and_main_endpoint_have_different_owners(env):
    await env.foreign_client.apply(widget(env, size=1), field_manager="me")
    body = WIDGET("w", env.namespace, status={"phase": "x"})
    await env.foreign_client.apply(body, field_manager="me", subresource="status")
    after = await env.foreign_client.apply(widget(env, size=2), field_manager="me")
    assert after.status == {"phase": "x"}
    assert {e.get("subresource") for e in after.metadata["managedFields"]} == {None, "status"}


async def test_h45_scale_takes_ownership_of_replicas(env):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await env.foreign_client.apply(Deployment("d", env.namespace, spec=spec), field_manager="deployer")
    scale = {"spec": {"replicas": 3}}
    await env.foreign_client.patch(
        Deployment, "d", env.namespace, scale, type=PatchType.MERGE, subresource="scale", field_manager="hpa"
    )
    after = await env.foreign_client.get(Deployment, "d", env.namespace)
    assert fields(after, "hpa", "Update")["f:spec"] == {"f:replicas": {}}
    assert "f:replicas" not in fields(after, "deployer")["f:spec"]


async def test_h46_cache_without_managed_fields_leads_to_a_request(env):
    applied = await apply(env.writer, widget(env, size=1, note="n"))
    metadata = {key: value for key, value in applied.metadata.items() if key != "managedFields"}
    env.cache.put(WIDGET, Object({**applied, "metadata": metadata}))
    restarted = dataclasses.replace(env.cached_writer, last_writes={})
    env.faulty_transport.forget_requests()
    # Only the missing entry shows that the note was ours and must be removed.
    after = await apply(restarted, widget(env, size=1), adopt=True)
    assert after.spec == {"size": 1}
    assert env.faulty_transport.writes


async def test_h29_applying_a_read_value_reverts_a_newer_one(env):
    """Tests a forced apply of a hostname that was read from a stale copy."""
    applied = await env.foreign_client.apply(widget(env, listeners=[{"name": "a"}]), field_manager="naive")
    await env.merge_patch(applied, {"spec": {"listeners": [{"name": "a", "hostname": "old"}]}})
    await env.merge_patch(applied, {"spec": {"listeners": [{"name": "a", "hostname": "new"}]}})
    naive_result = await env.foreign_client.apply(
        widget(env, listeners=[{"name": "a", "hostname": "old"}]), field_manager="naive"
    )
    assert naive_result.spec["listeners"][0]["hostname"] == "old"
    # fairlead applies only its own fields, and those of others stay.
    await env.foreign_client.delete(WIDGET, "w", env.namespace)
    applied = await apply(env.writer, widget(env, listeners=[{"name": "a"}]))
    await env.merge_patch(applied, {"spec": {"listeners": [{"name": "a", "hostname": "new"}]}})
    after = await apply(env.writer, widget(env, listeners=[{"name": "a", "port": 1}]))
    assert after.spec["listeners"] == [{"name": "a", "hostname": "new", "port": 1, "mode": "plain"}]


async def test_h43_field_manager_kubectl_is_rejected(env):
    """Tests the manager name kubectl: the server changes the last-applied annotation for it and may force applies."""
    with pytest.raises(ValueError, match="kubectl"):
        env.writer.with_manager("kubectl")


async def test_h33_unforced_invalid_value_is_not_a_conflict(env):
    with pytest.raises(ApiError, match="expected numeric") as error:
        await env.foreign_client.apply(widget(env, size="text"), field_manager="naive", force=False)
    assert error.value.code == 500


async def test_h66_update_takes_an_applied_field(env):
    applied = await env.foreign_client.apply(widget(env, size=1, note="n"), field_manager="helm", force=False)
    applied.spec["size"] = 2
    updated = await env.foreign_client.replace(applied, field_manager="naive")
    assert fields(updated, "naive", "Update")["f:spec"] == {"f:size": {}}
    with pytest.raises(Conflict) as error:
        await env.foreign_client.apply(widget(env, size=3, note="n"), field_manager="helm", force=False)
    assert [cause["field"] for cause in error.value.causes] == [".spec.size"]
    # fairlead writes computed values to the status, and the next upgrade succeeds.
    await env.foreign_client.delete(WIDGET, "w", env.namespace)
    applied = await env.foreign_client.apply(widget(env, size=1), field_manager="helm", force=False)
    await status.write_status(env.writer, WIDGET, applied, StatusReport(1, fields={"phase": "Resized"}))
    after = await env.foreign_client.apply(widget(env, size=3), field_manager="helm", force=False)
    assert after.spec == {"size": 3}
