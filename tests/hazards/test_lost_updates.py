"""Tests of the hazards of lost updates with PUT and patches: a naive write, and the write of fairlead."""

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import ApiError, Conflict, Invalid, NotFound, RequestEntityTooLarge, UnsupportedMediaType
from fairlead.api.objects import Object
from fairlead.client.client import PatchType
from fairlead.writes import ObjectReplaced, StatusReport, apply, decide, delete, finalizers, status

OURS, THEIRS = "a.b/ours", "a.b/theirs"


async def test_h13_put_without_a_resource_version_overwrites_or_is_422(env):
    old = await env.config_map("c", data={"a": "1"})
    await env.merge_patch(old, {"metadata": {"labels": {"theirs": "x"}}})
    naive_result = await env.foreign_client.replace(ConfigMap("c", env.namespace, data={"a": "2"}))
    assert naive_result.labels == {}
    await env.widget()
    with pytest.raises(Invalid, match="must be specified for an update"):
        await env.foreign_client.replace(WIDGET("w", env.namespace))
    # fairlead changes only one field.
    await env.merge_patch(old, {"metadata": {"labels": {"theirs": "x"}}})
    decided = await decide(env.writer, ConfigMap, naive_result, lambda draft: draft["data"].update(a="3"))
    assert decided.object.labels == {"theirs": "x"}


async def test_h14_patch_without_precondition_overwrites_unseen_values(env):
    widget = await env.widget(spec={"note": "old"})
    await env.merge_patch(widget, {"spec": {"note": "theirs"}})
    naive_result = await env.merge_patch(widget, {"spec": {"note": "naive"}})
    assert naive_result.spec["note"] == "naive"
    # fairlead reads the object again.
    read_values = []
    await env.merge_patch(widget, {"spec": {"note": "theirs"}})

    def keep(draft):
        if draft.spec["note"] == "naive":
            draft.spec["note"] = "ours"
        return draft.spec["note"]

    read_values.append((await decide(env.writer, WIDGET, naive_result, keep)).result)
    assert read_values == ["theirs"]


async def test_h15_null_resource_version_disables_the_lock(env):
    old = await env.config_map("c", data={"a": "1"})
    await env.merge_patch(old, {"data": {"a": "theirs"}})
    for version in (None, "", "0"):
        assert await env.merge_patch(old, {"metadata": {"resourceVersion": version}, "data": {"a": "naive"}})
    widget = await env.widget()
    with pytest.raises(Invalid, match="must be specified for an update"):
        await env.merge_patch(widget, {"metadata": {"resourceVersion": None}, "spec": {"size": 1}})
    with pytest.raises(ApiError) as error:
        await env.merge_patch(old, {"metadata": {"resourceVersion": "abc"}, "data": {"a": "2"}})
    assert error.value.code == 500


async def test_h16_diff_against_a_stale_base_omits_a_field(env):
    widget = await env.widget(spec={"size": 1})
    await env.merge_patch(widget, {"spec": {"size": 5}})
    naive_result = await env.merge_patch(
        widget, {"metadata": {"labels": {"sized": "1"}}}
    )  # size: 1 equals the base, so it is not sent.
    assert (naive_result.spec["size"], naive_result.labels["sized"]) == (5, "1")
    # fairlead tests the size that was read.

    def label(draft):
        draft.labels["sized"] = str(draft.spec["size"])

    assert (await decide(env.writer, WIDGET, widget, label)).object.labels == {"sized": "5"}


async def test_h17_merge_patch_of_finalizers_drops_foreign_entries(env):
    widget = await env.merge_patch(await env.widget(), {"metadata": {"finalizers": [OURS]}})
    await env.merge_patch(widget, {"metadata": {"finalizers": [OURS, THEIRS]}})
    await env.foreign_client.delete(WIDGET, widget.name, widget.namespace)
    await env.merge_patch(widget, {"metadata": {"finalizers": None}})  # From a copy that has only our finalizer.
    with pytest.raises(NotFound):
        await env.get_live(widget)
    # fairlead
    widget = await env.merge_patch(await env.widget(), {"metadata": {"finalizers": [OURS]}})
    await env.merge_patch(widget, {"metadata": {"finalizers": [OURS, THEIRS]}})
    await env.foreign_client.delete(WIDGET, widget.name, widget.namespace)
    await finalizers.remove(env.writer, WIDGET, widget, OURS)
    assert (await env.get_live(widget)).finalizers == [THEIRS]


async def test_h17b_merge_patch_of_conditions_drops_foreign_types(env):
    widget = await env.widget(status={"conditions": [{"type": "Theirs", "status": "True"}]})
    naive_result = await env.merge_patch(
        widget, {"status": {"conditions": [{"type": "Ours", "status": "True"}]}}, "status"
    )
    assert not naive_result.is_true("Theirs")
    widget = await env.merge_patch(widget, {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}}, "status")
    report = StatusReport(1)
    report.condition("Ours", True, "Because")
    after = await status.write_status(env.writer, WIDGET, widget, report)
    assert after.is_true("Theirs")
    assert after.is_true("Ours")


async def test_h18_locked_patch_without_changes_is_still_a_conflict(env):
    widget = await env.widget(spec={"size": 1})
    await env.merge_patch(widget, {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(Conflict):
        await env.merge_patch(widget, {"metadata": {"resourceVersion": widget.resource_version}})
    await decide(env.writer, WIDGET, widget, lambda draft: draft.spec.update(size=1))
    assert env.faulty_transport.sent_requests == []


async def test_h19_finalizer_patch_by_name_hits_the_recreated_object(env):
    old = await env.widget()
    new = await env.recreate(old)
    assert (await env.merge_patch(old, {"metadata": {"finalizers": [OURS]}})).uid == new.uid
    with pytest.raises(ObjectReplaced):
        await finalizers.add(env.writer, WIDGET, old, THEIRS)


async def test_h20_json_patch_by_index_changes_another_item(env):
    widget = await env.widget(spec={"listeners": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]})
    turned = {"spec": {"listeners": [{"name": "b", "port": 2}, {"name": "a", "port": 1}]}}
    await env.merge_patch(widget, turned)
    naive_result = await env.foreign_client.patch(
        WIDGET, "w", env.namespace, [{"op": "replace", "path": "/spec/listeners/0/port", "value": 9}],
        type=PatchType.JSON,
    )  # fmt: skip
    assert naive_result.spec["listeners"][0] == {"name": "b", "port": 9, "mode": "plain"}
    with pytest.raises(Invalid) as error:
        await env.foreign_client.patch(
            WIDGET, "w", env.namespace, [{"op": "test", "path": "/spec/listeners/0/name", "value": "a"}],
            type=PatchType.JSON,
        )  # fmt: skip
    assert error.value.details == {}
    # fairlead, from the copy with the old order
    await env.merge_patch(widget, turned)

    def port(draft):
        next(item for item in draft.spec["listeners"] if item["name"] == "a")["port"] = 9

    after = (await decide(env.writer, WIDGET, widget, port)).object
    assert [(item["name"], item["port"]) for item in after.spec["listeners"]] == [("b", 2), ("a", 9)]


async def test_h21_json_patch_stores_duplicate_finalizers(env):
    widget = await env.merge_patch(await env.widget(), {"metadata": {"finalizers": [OURS]}})
    naive_result = await env.foreign_client.patch(
        WIDGET, "w", env.namespace, [{"op": "add", "path": "/metadata/finalizers/-", "value": OURS}],
        type=PatchType.JSON,
    )  # fmt: skip
    assert naive_result.finalizers == [OURS, OURS]
    await env.merge_patch(widget, {"metadata": {"finalizers": [OURS]}})
    stale_widget = Object({**widget, "metadata": {**widget.metadata, "finalizers": []}})
    assert (await finalizers.add(env.writer, WIDGET, stale_widget, OURS)).finalizers == [OURS]


async def test_h22_strategic_merge_patch_of_a_custom_resource_is_415(env):
    await env.widget()
    with pytest.raises(UnsupportedMediaType):
        await env.foreign_client.patch(WIDGET, "w", env.namespace, {"spec": {"size": 2}}, type=PatchType.STRATEGIC)


async def test_h23_put_drops_fields_that_the_client_does_not_know(env):
    widget = await env.widget(spec={"size": 1, "note": "newer field"})
    typed = Object({**widget, "spec": {"size": 2}})
    assert (await env.foreign_client.replace(typed)).spec == {"size": 2}
    widget = await env.merge_patch(widget, {"spec": {"note": "newer field"}})
    assert (await decide(env.writer, WIDGET, widget, lambda d: d.spec.update(size=3))).object.spec == {
        "size": 3,
        "note": "newer field",
    }


async def test_h24_more_than_10000_operations_are_413(env):
    await env.widget()
    ops = [{"op": "test", "path": "/kind", "value": "Widget"}] * 10_001
    with pytest.raises(RequestEntityTooLarge):
        await env.foreign_client.patch(WIDGET, "w", env.namespace, ops, type=PatchType.JSON)


async def test_h25_delete_preconditions_reach_the_server(env):
    """Tests that the client sends delete preconditions. Some client libraries lose them."""
    old = await env.config_map("c")
    await delete(env.writer, ConfigMap, old, unchanged=True, propagation="Background")
    [(method, _, body)] = env.faulty_transport.sent_requests
    assert method == "DELETE"
    assert body["preconditions"] == {"uid": old.uid, "resourceVersion": old.resource_version}
    assert body["propagationPolicy"] == "Background"


async def test_h14_two_writers_never_mix_their_plans(env):
    widget = await env.widget()
    for plan in ({"id": "A", "steps": ["a"]}, {"id": "B"}):
        naive_result = await env.merge_patch(widget, {"status": {"plan": plan}}, "status")
    assert naive_result.status["plan"] == {"id": "B", "steps": ["a"]}, "merge patches mix two plans"

    def plan_for(draft):
        if draft.status.get("plan"):
            return draft.status["plan"]["id"]
        draft.status["plan"] = {"id": "C"}
        return "C"

    assert (await decide(env.writer, WIDGET, widget, plan_for)).result == "B"


async def test_h13_apply_of_one_field_keeps_the_others(env):
    theirs = await env.config_map("c", data={"a": "1"}, labels={"x": "y"})
    after = await apply(env.writer, ConfigMap("c", env.namespace, data={"b": "2"}), adopt=True)
    assert after["data"] == {"a": "1", "b": "2"}
    assert after.labels == theirs.labels


async def test_h63_fresh_version_on_old_values_overwrites_a_change(env):
    computed = await env.widget(spec={"size": 1})
    computed["spec"] = {"size": 2}
    newer = await env.merge_patch(computed, {"spec": {"note": "theirs"}})
    with pytest.raises(Conflict):
        await env.foreign_client.replace(computed)
    computed.metadata["resourceVersion"] = newer.resource_version
    naive_result = await env.foreign_client.replace(computed)
    assert naive_result.spec == {"size": 2}, "their note is gone"
    # fairlead decides again on the newer object.
    await env.merge_patch(computed, {"spec": {"note": "theirs"}})
    decided = await decide(env.writer, WIDGET, naive_result, lambda draft: draft.spec.update(size=3))
    assert decided.object.spec == {"size": 3, "note": "theirs"}


async def test_h64_update_of_a_stale_copy_fails_on_every_attempt(env):
    copy = await env.widget(spec={"size": 1})
    await env.merge_patch(copy, {"metadata": {"labels": {"theirs": "x"}}})
    copy["spec"] = {"size": 2}
    for _ in range(3):
        with pytest.raises(Conflict, match="the object has been modified"):
            await env.foreign_client.replace(copy)
    # fairlead sends the field that changes. Other fields of the object do not matter.
    decided = await decide(env.writer, WIDGET, copy, lambda draft: draft.spec.update(size=3))
    assert (decided.object.spec, decided.object.labels) == ({"size": 3}, {"theirs": "x"})


async def test_h65_changed_cached_object_hides_the_difference(env):
    def difference(obj, wanted):
        return {} if obj.spec == wanted else {"spec": wanted}

    cached = await env.widget(spec={"size": 1})
    cached.spec["size"] = 2  # A pass changes the shared object, and fails before it writes.
    await env.merge_patch(cached, difference(cached, {"size": 2}))
    assert (await env.get_live(cached)).spec == {"size": 1}, "the later pass sent nothing"

    # fairlead gives the decision a draft.
    def change_and_fail(draft):
        draft.spec["size"] = 2
        raise RuntimeError("the pass fails")

    cached = await env.get_live(cached)
    with pytest.raises(RuntimeError):
        await decide(env.writer, WIDGET, cached, change_and_fail)
    assert difference(cached, {"size": 2}) == {"spec": {"size": 2}}
