"""Tests of server-side apply: merging, conflicts and pruning."""

import pytest

from fairlead.server.ownership import FieldConflict, TypedError
from fairlead.server.schema.nodes import Node

from .tracked_object import LATER, NOW, Kind, TrackedObject, root, spec, text


@pytest.fixture
def configmap() -> TrackedObject:
    return TrackedObject(Kind("ConfigMap", v1=root(data=Node("object", values=text()))))


def test_apply_owns_exactly_the_leaves_of_its_configuration(configmap):
    configmap.apply("m1", metadata={"labels": {"x": "y"}}, data={"k": "1", "l": "2"})
    assert configmap.fields_of("m1") == {"f:data": {"f:k": {}, "f:l": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}


def test_repeated_apply_changes_neither_object_nor_time(configmap):
    configmap.apply("m1", data={"k": "1"})
    live, managed_fields = configmap.live, configmap.managed
    result = configmap.apply("m1", data={"k": "1"}, now=LATER)
    assert result.object is live
    assert result.managed == managed_fields


def test_apply_of_another_value_raises_a_conflict_with_the_owner(configmap):
    configmap.apply("m1", data={"k": "1"})
    with pytest.raises(FieldConflict) as caught:
        configmap.apply("m2", data={"k": "2"})
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "m1": .data.k'
    assert caught.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.k"}
    ]


def test_forced_apply_takes_the_field_from_its_owner(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.apply("m2", force=True, data={"k": "2"})
    assert configmap.live["data"] == {"k": "2", "l": "1"}
    assert configmap.fields_of("m1") == {"f:data": {"f:l": {}}}
    assert configmap.fields_of("m2") == {"f:data": {"f:k": {}}}


def test_apply_of_the_same_value_shares_the_field_without_a_time(configmap):
    configmap.apply("m1", data={"k": "1"})
    result = configmap.apply("m2", data={"k": "1"}, now=LATER)
    assert [(entry.manager, entry.time) for entry in result.managed] == [("m1", NOW), ("m2", None)]


def test_dropped_field_is_removed_unless_another_manager_owns_it(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.apply("m2", data={"l": "1"})
    configmap.apply("m1", data={})
    assert configmap.live["data"] == {"l": "1"}
    assert configmap.fields_of("m1") == {"f:data": {}}


def test_first_apply_assigns_existing_fields_to_before_first_apply(configmap):
    configmap.live = configmap.object(metadata={"uid": "u"}, data={"k": "1"})
    with pytest.raises(FieldConflict) as caught:
        configmap.apply("m1", data={"k": "2"})
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k'


def test_nonconforming_configuration_raises_typed_error_with_the_path(configmap):
    with pytest.raises(TypedError) as caught:
        configmap.apply("m1", data={"k": 1})
    assert str(caught.value) == (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
        ".data.k: expected string, got &value.valueUnstructured{Value:1}"
    )
    with pytest.raises(TypedError, match=r"\.nonsense: field not declared in schema$"):
        configmap.apply("m1", nonsense=1)


def listeners() -> TrackedObject:
    item = Node("object", fields={"name": text(), "hostname": text(), "port": Node("integer")})
    return TrackedObject(Kind(v1=spec(listeners=Node("array", items=item, list_type="map", keys=("name",)))))


def test_forced_apply_keeps_fields_outside_of_its_configuration():
    obj = listeners()
    obj.apply("m1", spec={"listeners": [{"name": "x", "port": 1}]})
    obj.write("other", metadata={"uid": "u"}, spec={"listeners": [{"name": "x", "port": 1, "hostname": "h"}]})
    obj.apply("m1", force=True, spec={"listeners": [{"name": "x", "port": 2}]})
    assert obj.live["spec"]["listeners"] == [{"name": "x", "port": 2, "hostname": "h"}]


def test_dropped_item_is_removed_with_the_fields_that_updates_added():
    obj = listeners()
    obj.apply("m1", spec={"listeners": [{"name": "x", "port": 1}, {"name": "y"}]})
    obj.write(
        "other", metadata={"uid": "u"}, spec={"listeners": [{"name": "x", "port": 1, "hostname": "h"}, {"name": "y"}]}
    )
    obj.apply("m1", spec={"listeners": [{"name": "y"}]})
    assert obj.live["spec"]["listeners"] == [{"name": "y"}]


def test_dropped_item_stays_if_another_applier_owns_it():
    obj = listeners()
    obj.apply("m1", spec={"listeners": [{"name": "x", "port": 1}]})
    obj.apply("m2", spec={"listeners": [{"name": "x", "hostname": "h"}]})
    obj.apply("m1", spec={"listeners": []})
    assert obj.live["spec"]["listeners"] == [{"name": "x", "hostname": "h"}]


def test_new_items_are_inserted_before_the_common_item_they_precede():
    obj = listeners()
    obj.apply("m1", spec={"listeners": [{"name": n} for n in "abc"]})
    obj.apply("m2", spec={"listeners": [{"name": n} for n in "xbycz"]})
    assert [item["name"] for item in obj.live["spec"]["listeners"]] == ["a", "x", "b", "y", "c", "z"]
