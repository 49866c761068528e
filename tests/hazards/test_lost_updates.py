"""Hazards: lost updates with PUT and patches. Each test shows a naive write, and what fairlead does instead."""

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import ApiError, Conflict, Invalid, NotFound, RequestEntityTooLarge, UnsupportedMediaType
from fairlead.api.objects import Object
from fairlead.client.client import PatchType
from fairlead.writes import ObjectReplaced, StatusReport, apply, decide, delete, finalizers, status

OURS, THEIRS = "a.b/ours", "a.b/theirs"


async def test_h13_put_without_a_resource_version_overwrites_or_is_422(bench):
    old = await bench.config_map("c", data={"a": "1"})
    await bench.merge(old, {"metadata": {"labels": {"theirs": "x"}}})
    naive = await bench.other.replace(ConfigMap("c", bench.namespace, data={"a": "2"}))
    assert naive.labels == {}
    await bench.widget()
    with pytest.raises(Invalid, match="must be specified for an update"):
        await bench.other.replace(WIDGET("w", bench.namespace))
    # fairlead changes only one field.
    await bench.merge(old, {"metadata": {"labels": {"theirs": "x"}}})
    decided = await decide(bench.writer, ConfigMap, naive, lambda draft: draft["data"].update(a="3"))
    assert decided.object.labels == {"theirs": "x"}


async def test_h14_patch_without_precondition_overwrites_unseen_values(bench):
    widget = await bench.widget(spec={"note": "old"})
    await bench.merge(widget, {"spec": {"note": "theirs"}})
    naive = await bench.merge(widget, {"spec": {"note": "naive"}})
    assert naive.spec["note"] == "naive"
    # fairlead reads the object again.
    seen = []
    await bench.merge(widget, {"spec": {"note": "theirs"}})

    def keep(draft):
        if draft.spec["note"] == "naive":
            draft.spec["note"] = "ours"
        return draft.spec["note"]

    seen.append((await decide(bench.writer, WIDGET, naive, keep)).result)
    assert seen == ["theirs"]


async def test_h15_null_resource_version_disables_the_lock(bench):
    old = await bench.config_map("c", data={"a": "1"})
    await bench.merge(old, {"data": {"a": "theirs"}})
    for version in (None, "", "0"):
        assert await bench.merge(old, {"metadata": {"resourceVersion": version}, "data": {"a": "naive"}})
    widget = await bench.widget()
    with pytest.raises(Invalid, match="must be specified for an update"):
        await bench.merge(widget, {"metadata": {"resourceVersion": None}, "spec": {"size": 1}})
    with pytest.raises(ApiError) as error:
        await bench.merge(old, {"metadata": {"resourceVersion": "abc"}, "data": {"a": "2"}})
    assert error.value.code == 500


async def test_h16_diff_against_a_stale_base_omits_a_field(bench):
    widget = await bench.widget(spec={"size": 1})
    await bench.merge(widget, {"spec": {"size": 5}})
    naive = await bench.merge(
        widget, {"metadata": {"labels": {"sized": "1"}}}
    )  # size: 1 equals the base, so it is not sent.
    assert (naive.spec["size"], naive.labels["sized"]) == (5, "1")
    # fairlead tests the size that was read.

    def label(draft):
        draft.labels["sized"] = str(draft.spec["size"])

    assert (await decide(bench.writer, WIDGET, widget, label)).object.labels == {"sized": "5"}


async def test_h17_merge_patch_of_finalizers_drops_foreign_entries(bench):
    widget = await bench.merge(await bench.widget(), {"metadata": {"finalizers": [OURS]}})
    await bench.merge(widget, {"metadata": {"finalizers": [OURS, THEIRS]}})
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    await bench.merge(widget, {"metadata": {"finalizers": None}})  # From a copy that has only our finalizer.
    with pytest.raises(NotFound):
        await bench.live(widget)
    # fairlead
    widget = await bench.merge(await bench.widget(), {"metadata": {"finalizers": [OURS]}})
    await bench.merge(widget, {"metadata": {"finalizers": [OURS, THEIRS]}})
    await bench.other.delete(WIDGET, widget.name, widget.namespace)
    await finalizers.remove(bench.writer, WIDGET, widget, OURS)
    assert (await bench.live(widget)).finalizers == [THEIRS]


async def test_h17b_merge_patch_of_conditions_drops_foreign_types(bench):
    widget = await bench.widget(status={"conditions": [{"type": "Theirs", "status": "True"}]})
    naive = await bench.merge(widget, {"status": {"conditions": [{"type": "Ours", "status": "True"}]}}, "status")
    assert not naive.is_true("Theirs")
    widget = await bench.merge(widget, {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}}, "status")
    report = StatusReport(1)
    report.condition("Ours", True, "Because")
    after = await status.write_status(bench.writer, WIDGET, widget, report)
    assert after.is_true("Theirs")
    assert after.is_true("Ours")


async def test_h18_locked_patch_without_changes_is_still_a_conflict(bench):
    widget = await bench.widget(spec={"size": 1})
    await bench.merge(widget, {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(Conflict):
        await bench.merge(widget, {"metadata": {"resourceVersion": widget.resource_version}})
    await decide(bench.writer, WIDGET, widget, lambda draft: draft.spec.update(size=1))
    assert bench.wire.sent == []


async def test_h19_finalizer_patch_by_name_hits_the_recreated_object(bench):
    old = await bench.widget()
    new = await bench.recreate(old)
    assert (await bench.merge(old, {"metadata": {"finalizers": [OURS]}})).uid == new.uid
    with pytest.raises(ObjectReplaced):
        await finalizers.add(bench.writer, WIDGET, old, THEIRS)


async def test_h20_json_patch_by_index_changes_another_item(bench):
    widget = await bench.widget(spec={"listeners": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]})
    turned = {"spec": {"listeners": [{"name": "b", "port": 2}, {"name": "a", "port": 1}]}}
    await bench.merge(widget, turned)
    naive = await bench.other.patch(
        WIDGET, "w", bench.namespace, [{"op": "replace", "path": "/spec/listeners/0/port", "value": 9}],
        type=PatchType.JSON,
    )  # fmt: skip
    assert naive.spec["listeners"][0] == {"name": "b", "port": 9, "mode": "plain"}
    with pytest.raises(Invalid) as error:
        await bench.other.patch(
            WIDGET, "w", bench.namespace, [{"op": "test", "path": "/spec/listeners/0/name", "value": "a"}],
            type=PatchType.JSON,
        )  # fmt: skip
    assert error.value.details == {}
    # fairlead, from the copy with the old order
    await bench.merge(widget, turned)

    def port(draft):
        next(item for item in draft.spec["listeners"] if item["name"] == "a")["port"] = 9

    after = (await decide(bench.writer, WIDGET, widget, port)).object
    assert [(item["name"], item["port"]) for item in after.spec["listeners"]] == [("b", 2), ("a", 9)]


async def test_h21_json_patch_stores_duplicate_finalizers(bench):
    widget = await bench.merge(await bench.widget(), {"metadata": {"finalizers": [OURS]}})
    naive = await bench.other.patch(
        WIDGET, "w", bench.namespace, [{"op": "add", "path": "/metadata/finalizers/-", "value": OURS}],
        type=PatchType.JSON,
    )  # fmt: skip
    assert naive.finalizers == [OURS, OURS]
    await bench.merge(widget, {"metadata": {"finalizers": [OURS]}})
    stale = Object({**widget, "metadata": {**widget.metadata, "finalizers": []}})
    assert (await finalizers.add(bench.writer, WIDGET, stale, OURS)).finalizers == [OURS]


async def test_h22_strategic_merge_patch_of_a_custom_resource_is_415(bench):
    await bench.widget()
    with pytest.raises(UnsupportedMediaType):
        await bench.other.patch(WIDGET, "w", bench.namespace, {"spec": {"size": 2}}, type=PatchType.STRATEGIC)


async def test_h23_put_drops_fields_that_the_client_does_not_know(bench):
    widget = await bench.widget(spec={"size": 1, "note": "newer field"})
    typed = Object({**widget, "spec": {"size": 2}})
    assert (await bench.other.replace(typed)).spec == {"size": 2}
    widget = await bench.merge(widget, {"spec": {"note": "newer field"}})
    assert (await decide(bench.writer, WIDGET, widget, lambda d: d.spec.update(size=3))).object.spec == {
        "size": 3,
        "note": "newer field",
    }


async def test_h24_more_than_10000_operations_are_413(bench):
    await bench.widget()
    ops = [{"op": "test", "path": "/kind", "value": "Widget"}] * 10_001
    with pytest.raises(RequestEntityTooLarge):
        await bench.other.patch(WIDGET, "w", bench.namespace, ops, type=PatchType.JSON)


async def test_h25_delete_preconditions_reach_the_server(bench):
    """Some client libraries lose them between option structs."""
    old = await bench.config_map("c")
    await delete(bench.writer, ConfigMap, old, unchanged=True, propagation="Background")
    [(method, _, body)] = bench.wire.sent
    assert method == "DELETE"
    assert body["preconditions"] == {"uid": old.uid, "resourceVersion": old.resource_version}
    assert body["propagationPolicy"] == "Background"


async def test_h14_two_writers_never_mix_their_plans(bench):
    widget = await bench.widget()
    for plan in ({"id": "A", "steps": ["a"]}, {"id": "B"}):
        naive = await bench.merge(widget, {"status": {"plan": plan}}, "status")
    assert naive.status["plan"] == {"id": "B", "steps": ["a"]}, "merge patches mix two plans"

    def plan_for(draft):
        if draft.status.get("plan"):
            return draft.status["plan"]["id"]
        draft.status["plan"] = {"id": "C"}
        return "C"

    assert (await decide(bench.writer, WIDGET, widget, plan_for)).result == "B"


async def test_h13_apply_of_one_field_keeps_the_others(bench):
    theirs = await bench.config_map("c", data={"a": "1"}, labels={"x": "y"})
    after = await apply(bench.writer, ConfigMap("c", bench.namespace, data={"b": "2"}), adopt=True)
    assert after["data"] == {"a": "1", "b": "2"}
    assert after.labels == theirs.labels
