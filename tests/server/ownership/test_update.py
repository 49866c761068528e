"""Tests of field ownership after creates, replaces and patches."""

import pytest

from fairlead.api.fields.tries import union_of_roots
from fairlead.server import ownership
from fairlead.server.ownership import FieldConflict, FieldWrite
from fairlead.server.ownership.comparison import compare, compare_with_empty
from fairlead.server.ownership.merge_schema import merge_schema_of
from fairlead.server.schema import builtin, codec
from fairlead.server.schema.nodes import Node

from .tracked_object import NOW, Kind, TrackedObject, root, spec, text


@pytest.fixture
def configmap() -> TrackedObject:
    return TrackedObject(Kind("ConfigMap", v1=root(data=Node("object", values=text()))))


def test_create_owns_all_maps_and_leaves(configmap):
    configmap.write("m1", metadata={"labels": {"x": "y"}}, data={"k": "1"})
    assert configmap.fields_of("m1", "Update") == {
        "f:data": {".": {}, "f:k": {}},
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
    }


def test_update_takes_changed_fields_and_no_unchanged_ones(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.write("m2", metadata={"uid": "u"}, data={"k": "2", "l": "1"})
    assert configmap.fields_of("m1") == {"f:data": {"f:l": {}}}
    assert configmap.fields_of("m2", "Update") == {"f:data": {"f:k": {}}}


def test_update_that_removes_a_field_removes_its_owners(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.write("m2", metadata={"uid": "u"}, data={"l": "1"})
    assert configmap.fields_of("m1") == {"f:data": {"f:l": {}}}
    assert configmap.fields_of("m2", "Update") is None


def test_apply_conflicts_with_an_update_of_the_same_manager(configmap):
    configmap.write("m1", data={"k": "1"})
    with pytest.raises(FieldConflict, match='"m1" using v1'):
        configmap.apply("m1", data={"k": "2"})


def test_update_of_an_untracked_object_keeps_it_untracked(configmap):
    configmap.live = configmap.object(metadata={"uid": "u"}, data={"k": "1"})
    configmap.write("m1", metadata={"uid": "u"}, data={"k": "2"})
    assert configmap.managed == ()


def test_eleventh_updater_merges_the_two_oldest_entries(configmap):
    configmap.apply("applier", data={"z": "1"})
    for number in range(10):
        now = f"2026-01-01T00:00:{number:02d}Z"
        data = {**configmap.live["data"], f"k{number}": "1"}
        configmap.write(f"m{number}", now=now, metadata={"uid": "u"}, data=data)
    assert len(configmap.managed) == 11
    configmap.write(
        "last", now="2026-01-01T00:01:00Z", metadata={"uid": "u"}, data={**configmap.live["data"], "n": "1"}
    )
    names = [entry["manager"] for entry in ownership.encode(configmap.managed)]
    assert names == ["applier", "ancient-changes", *[f"m{n}" for n in range(2, 10)], "last"]
    assert configmap.fields_of("ancient-changes", "Update") == {"f:data": {"f:k0": {}, "f:k1": {}}}


def test_reset_fields_are_not_owned():
    obj = TrackedObject(Kind(v1=spec(size=Node("integer"))))
    obj.write(
        "m1",
        reset=ownership.decode([entry({"f:spec": {}})])[0].fields,
        spec={"size": 1},
        metadata={"labels": {"a": "b"}},
    )
    assert obj.fields_of("m1", "Update") == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}


def entry(fields, **changes):
    return {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **changes,
    }


def test_entries_of_versions_no_longer_served_are_dropped(configmap):
    configmap.write("m1", data={"k": "1"})
    configmap.managed += ownership.decode([entry({"f:data": {"f:k": {}}}, manager="old", apiVersion="v0")])
    configmap.write("m2", metadata={"uid": "u"}, data={"k": "1", "l": "1"})
    assert [item.manager for item in configmap.managed] == ["m1", "m2"]


def test_applier_that_changes_its_version_keeps_its_entry():
    node = spec(size=Node("integer"), other=text())
    obj = TrackedObject(Kind(v1=node, v2=node))
    obj.apply("m1", spec={"size": 1, "other": "x"})
    obj.version = "v2"
    obj.live = {**obj.live, "apiVersion": "v2"}
    obj.apply("m1", spec={"size": 1})
    assert obj.live["spec"] == {"size": 1}
    assert [(item.manager, item.api_version) for item in obj.managed] == [("m1", "v2")]


def test_map_that_became_atomic_is_owned_as_a_whole():
    fields = {"a": text(), "b": text()}
    obj = TrackedObject(Kind(v1=spec(pair=Node("object", fields=fields))))
    obj.apply("m1", spec={"pair": {"a": "1", "b": "2"}})
    obj.kind = Kind(v1=spec(pair=Node("object", fields=fields, map_type="atomic")))
    obj.apply("m2", spec={}, metadata={"labels": {"a": "b"}})
    assert obj.fields_of("m1") == {"f:spec": {"f:pair": {}}}


@pytest.mark.parametrize("submitted", [[], [{}]])
def test_empty_managed_fields_reset_the_live_ones(configmap, submitted):
    configmap.write("m1", data={"k": "1"})
    assert ownership.read_submitted(configmap.managed, submitted) == ()


@pytest.mark.parametrize(
    "submitted",
    [
        None,
        [entry({}, operation="Upsert")],
        [entry({}, apiVersion="")],
        [entry({}, fieldsType="FieldsV2")],
        [entry({}, fieldsType="")],
        [entry({"nonsense": {}})],
    ],
)
def test_absent_or_invalid_managed_fields_keep_the_live_ones(configmap, submitted):
    configmap.write("m1", data={"k": "1"})
    assert ownership.read_submitted(configmap.managed, submitted) is configmap.managed


def test_entries_are_sorted_by_operation_then_time_then_manager():
    submitted = [
        entry({"f:a": {}}, manager="u"),
        entry({"f:a": {}}, manager="late", operation="Apply", time="2026-01-01T00:00:02Z"),
        entry({"f:a": {}}, manager="b", operation="Apply", time="2026-01-01T00:00:01Z"),
        entry({"f:a": {}}, manager="a", operation="Apply", time="2026-01-01T00:00:01Z"),
        entry({"f:a": {}}, manager="timeless", operation="Apply"),
    ]
    assert [item["manager"] for item in ownership.encode(ownership.decode(submitted))] == [
        "timeless",
        "a",
        "b",
        "late",
        "u",
    ]


@pytest.mark.parametrize(
    ("all_versions", "remaining"), [(True, {"f:status": {".": {}, "f:a": {}}}), (False, {"f:status": {}})]
)
def test_reset_fields_at_another_version_are_lost_unless_all_versions_reset(all_versions, remaining):
    node = root(status=Node("object", fields={"a": text()}))
    versions = Kind(v1=node, v2=node)
    old = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a", "uid": "u"}, "status": {"a": "1"}}
    managed_fields = ownership.decode([entry({"f:status": {".": {}, "f:a": {}}}, apiVersion="v2")])
    reset = ownership.decode([entry({"f:status": {}})])[0].fields
    write = FieldWrite("m1", "v1", versions, NOW, reset_fields=reset, resets_all_versions=all_versions)
    after = ownership.update(old, managed_fields, {**old, "status": {"a": "2"}}, write)
    assert [(item["manager"], item["fieldsV1"]) for item in ownership.encode(after)] == [("m", remaining)]


SAMPLES = [
    {},
    {"metadata": {}, "data": {}},
    {"metadata": {"name": "a", "labels": {"x": "y"}, "annotations": {}}, "data": {"k": "v"}},
    {"metadata": {"name": "a", "finalizers": ["b/c", "a/b"]}, "spec": {"replicas": 1, "selector": {"app": "a"}}},
    {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}},
    {
        "spec": {"ports": [{"port": 80}, {"port": 81, "protocol": "UDP"}], "selector": {}},
        "status": {"loadBalancer": {}},
    },
    {"spec": {"replicas": 0}, "status": {"replicas": 0}},
    {"spec": None, "metadata": {"generateName": "x"}},
]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@pytest.mark.parametrize(
    ("api_version", "kind"), [("v1", "ConfigMap"), ("v1", "Service"), ("apps/v1", "Deployment"), ("v1", "Pod")]
)
def test_comparison_with_the_empty_object_equals_the_general_comparison(api_version, kind, sample):
    group, _, version = api_version.rpartition("/")
    node = builtin.schema_of_kind(group, version, kind)
    type_meta = {"apiVersion": api_version, "kind": kind}
    empty, new = codec.decode(node, type_meta).object, codec.decode(node, {**type_meta, **sample}).object
    changes = compare(merge_schema_of(node), empty, new)
    assert compare_with_empty(merge_schema_of(node), empty, new) == union_of_roots(changes.added, changes.modified)
