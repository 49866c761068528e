"""Ownership after plain writes."""

import pytest

from fairlead.api.fields.tries import union_of_roots
from fairlead.server import ownership
from fairlead.server.ownership import FieldConflict
from fairlead.server.ownership.comparing import compare, first
from fairlead.server.ownership.shapes import shape_of
from fairlead.server.schema import builtin, codec
from fairlead.server.schema.nodes import Node

from .kinds import Kind, Story, root, spec, text


@pytest.fixture
def configmap() -> Story:
    return Story(Kind("ConfigMap", v1=root(data=Node("object", values=text()))))


def test_a_create_owns_each_map_and_leaf(configmap):
    configmap.write("m1", metadata={"labels": {"x": "y"}}, data={"k": "1"})
    assert configmap.owns("m1", "Update") == {
        "f:data": {".": {}, "f:k": {}},
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
    }


def test_a_write_takes_what_it_changes_and_leaves_what_it_repeats(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.write("m2", metadata={"uid": "u"}, data={"k": "2", "l": "1"})
    assert configmap.owns("m1") == {"f:data": {"f:l": {}}}
    assert configmap.owns("m2", "Update") == {"f:data": {"f:k": {}}}


def test_what_is_removed_is_owned_by_no_one(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.write("m2", metadata={"uid": "u"}, data={"l": "1"})
    assert configmap.owns("m1") == {"f:data": {"f:l": {}}}
    assert configmap.owns("m2", "Update") is None


def test_one_manager_is_two_by_its_two_operations(configmap):
    configmap.write("m1", data={"k": "1"})
    with pytest.raises(FieldConflict, match='"m1" using v1'):
        configmap.apply("m1", data={"k": "2"})


def test_an_object_that_no_one_owns_is_not_tracked(configmap):
    configmap.live = configmap.object(metadata={"uid": "u"}, data={"k": "1"})
    configmap.write("m1", metadata={"uid": "u"}, data={"k": "2"})
    assert configmap.managed == ()


def test_the_eleventh_updater_makes_the_two_oldest_one(configmap):
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
    assert configmap.owns("ancient-changes", "Update") == {"f:data": {"f:k0": {}, "f:k1": {}}}


def test_what_the_strategy_resets_is_not_owned():
    story = Story(Kind(v1=spec(size=Node("integer"))))
    story.write(
        "m1",
        reset=ownership.decode([entry({"f:spec": {}})])[0].fields,
        spec={"size": 1},
        metadata={"labels": {"a": "b"}},
    )
    assert story.owns("m1", "Update") == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}


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
    assert [each.manager for each in configmap.managed] == ["m1", "m2"]


def test_an_applier_that_moves_to_another_version_stays_itself():
    node = spec(size=Node("integer"), other=text())
    story = Story(Kind(v1=node, v2=node))
    story.apply("m1", spec={"size": 1, "other": "x"})
    story.version = "v2"
    story.live = {**story.live, "apiVersion": "v2"}
    story.apply("m1", spec={"size": 1})
    assert story.live["spec"] == {"size": 1}
    assert [(each.manager, each.api_version) for each in story.managed] == [("m1", "v2")]


def test_what_became_atomic_is_owned_whole():
    fields = {"a": text(), "b": text()}
    story = Story(Kind(v1=spec(pair=Node("object", fields=fields))))
    story.apply("m1", spec={"pair": {"a": "1", "b": "2"}})
    story.schemas = Kind(v1=spec(pair=Node("object", fields=fields, map_type="atomic")))
    story.apply("m2", spec={}, metadata={"labels": {"a": "b"}})
    assert story.owns("m1") == {"f:spec": {"f:pair": {}}}


@pytest.mark.parametrize("said", [[], [{}]])
def test_empty_managed_fields_reset(configmap, said):
    configmap.write("m1", data={"k": "1"})
    assert ownership.sent(configmap.managed, said) == ()


@pytest.mark.parametrize(
    "said",
    [
        None,
        [entry({}, operation="Upsert")],
        [entry({}, apiVersion="")],
        [entry({}, fieldsType="FieldsV2")],
        [entry({}, fieldsType="")],
        [entry({"nonsense": {}})],
    ],
)
def test_managed_fields_that_say_nothing_keep_the_live_ones(configmap, said):
    configmap.write("m1", data={"k": "1"})
    assert ownership.sent(configmap.managed, said) is configmap.managed


def test_entries_stand_by_operation_then_time_then_name():
    said = [
        entry({"f:a": {}}, manager="u"),
        entry({"f:a": {}}, manager="late", operation="Apply", time="2026-01-01T00:00:02Z"),
        entry({"f:a": {}}, manager="b", operation="Apply", time="2026-01-01T00:00:01Z"),
        entry({"f:a": {}}, manager="a", operation="Apply", time="2026-01-01T00:00:01Z"),
        entry({"f:a": {}}, manager="timeless", operation="Apply"),
    ]
    assert [each["manager"] for each in ownership.encode(ownership.decode(said))] == ["timeless", "a", "b", "late", "u"]


@pytest.mark.parametrize(
    ("everywhere", "left"), [(True, {"f:status": {".": {}, "f:a": {}}}), (False, {"f:status": {}})]
)
def test_what_is_reset_may_still_be_lost_at_another_version(everywhere, left):
    node = root(status=Node("object", fields={"a": text()}))
    schemas = Kind(v1=node, v2=node)
    old = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a", "uid": "u"}, "status": {"a": "1"}}
    managed = ownership.decode([entry({"f:status": {".": {}, "f:a": {}}}, apiVersion="v2")])
    reset = ownership.decode([entry({"f:status": {}})])[0].fields
    after = ownership.update(
        old,
        managed,
        {**old, "status": {"a": "2"}},
        manager="m1",
        api_version="v1",
        schemas=schemas,
        reset=reset,
        reset_everywhere=everywhere,
        now="2026-01-01T00:00:00Z",
    )
    assert [(each["manager"], each["fieldsV1"]) for each in ownership.encode(after)] == [("m", left)]


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
def test_a_first_write_is_told_apart_from_nothing_as_any_other_is(api_version, kind, sample):
    group, _, version = api_version.rpartition("/")
    node = builtin.schema_of_kind(group, version, kind)
    named = {"apiVersion": api_version, "kind": kind}
    empty, new = codec.decode(node, named).object, codec.decode(node, {**named, **sample}).object
    changes = compare(shape_of(node), empty, new)
    assert first(shape_of(node), empty, new) == union_of_roots(changes.added, changes.modified)
