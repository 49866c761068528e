"""Server-side apply, rule by rule."""

import pytest

from fairlead.server.ownership import FieldConflict, TypedError
from fairlead.server.schema.nodes import Node

from .kinds import LATER, NOW, Kind, Story, root, spec, text


@pytest.fixture
def configmap() -> Story:
    return Story(Kind("ConfigMap", v1=root(data=Node("object", values=text()))))


def test_an_apply_owns_exactly_the_leaves_of_its_payload(configmap):
    configmap.apply("m1", metadata={"labels": {"x": "y"}}, data={"k": "1", "l": "2"})
    assert configmap.owns("m1") == {"f:data": {"f:k": {}, "f:l": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}


def test_a_repeated_apply_changes_nothing_not_even_the_time(configmap):
    configmap.apply("m1", data={"k": "1"})
    live, managed = configmap.live, configmap.managed
    made = configmap.apply("m1", data={"k": "1"}, now=LATER)
    assert made.object is live
    assert made.managed == managed


def test_another_value_is_a_conflict_that_names_the_owner(configmap):
    configmap.apply("m1", data={"k": "1"})
    with pytest.raises(FieldConflict) as caught:
        configmap.apply("m2", data={"k": "2"})
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "m1": .data.k'
    assert caught.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.k"}
    ]


def test_force_takes_the_field_over(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.apply("m2", force=True, data={"k": "2"})
    assert configmap.live["data"] == {"k": "2", "l": "1"}
    assert configmap.owns("m1") == {"f:data": {"f:l": {}}}
    assert configmap.owns("m2") == {"f:data": {"f:k": {}}}


def test_the_same_value_is_shared_and_the_new_entry_has_no_time(configmap):
    configmap.apply("m1", data={"k": "1"})
    made = configmap.apply("m2", data={"k": "1"}, now=LATER)
    assert [(entry.manager, entry.time) for entry in made.managed] == [("m1", NOW), ("m2", None)]


def test_a_field_given_up_goes_unless_someone_else_owns_it(configmap):
    configmap.apply("m1", data={"k": "1", "l": "1"})
    configmap.apply("m2", data={"l": "1"})
    configmap.apply("m1", data={})
    assert configmap.live["data"] == {"l": "1"}
    assert configmap.owns("m1") == {"f:data": {}}


def test_what_was_there_before_the_first_apply_belongs_to_one_entry(configmap):
    configmap.live = configmap.object(metadata={"uid": "u"}, data={"k": "1"})
    with pytest.raises(FieldConflict) as caught:
        configmap.apply("m1", data={"k": "2"})
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k'


def test_what_does_not_fit_the_schema_is_named(configmap):
    with pytest.raises(TypedError) as caught:
        configmap.apply("m1", data={"k": 1})
    assert str(caught.value) == (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
        ".data.k: expected string, got &value.valueUnstructured{Value:1}"
    )
    with pytest.raises(TypedError, match=r"\.nonsense: field not declared in schema$"):
        configmap.apply("m1", nonsense=1)


def listeners() -> Story:
    item = Node("object", fields={"name": text(), "hostname": text(), "port": Node("integer")})
    return Story(Kind(v1=spec(listeners=Node("array", items=item, list_type="map", keys=("name",)))))


def test_force_overrides_only_fields_of_the_payload():
    story = listeners()
    story.apply("m1", spec={"listeners": [{"name": "x", "port": 1}]})
    story.write("other", metadata={"uid": "u"}, spec={"listeners": [{"name": "x", "port": 1, "hostname": "h"}]})
    story.apply("m1", force=True, spec={"listeners": [{"name": "x", "port": 2}]})
    assert story.live["spec"]["listeners"] == [{"name": "x", "port": 2, "hostname": "h"}]


def test_dropping_an_item_takes_what_plain_writers_added_to_it():
    story = listeners()
    story.apply("m1", spec={"listeners": [{"name": "x", "port": 1}, {"name": "y"}]})
    story.write(
        "other", metadata={"uid": "u"}, spec={"listeners": [{"name": "x", "port": 1, "hostname": "h"}, {"name": "y"}]}
    )
    story.apply("m1", spec={"listeners": [{"name": "y"}]})
    assert story.live["spec"]["listeners"] == [{"name": "y"}]


def test_an_item_that_another_applier_has_stays():
    story = listeners()
    story.apply("m1", spec={"listeners": [{"name": "x", "port": 1}]})
    story.apply("m2", spec={"listeners": [{"name": "x", "hostname": "h"}]})
    story.apply("m1", spec={"listeners": []})
    assert story.live["spec"]["listeners"] == [{"name": "x", "hostname": "h"}]


def test_new_items_go_before_the_shared_item_that_they_precede():
    story = listeners()
    story.apply("m1", spec={"listeners": [{"name": n} for n in "abc"]})
    story.apply("m2", spec={"listeners": [{"name": n} for n in "xbycz"]})
    assert [item["name"] for item in story.live["spec"]["listeners"]] == ["a", "x", "b", "y", "c", "z"]
