"""Tests of the bytes that the cache stores for each object."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.builtin import ConfigMap, Pod
from fairlead.api.kinds import kind
from fairlead.cache.entries import EntryCodec

KUBECTL_ENTRY = {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {}}}
OWN_ENTRY = {"manager": "greeter", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}}


def to_json(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def pod(**metadata):
    kind_fields = {"kind": "Pod", "apiVersion": "v1"}
    return {**kind_fields, "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", **metadata}}


def test_entry_has_name_uid_version_and_decodes_to_the_object():
    codec = EntryCodec(Pod)
    namespace, name, version, entry = codec.encode(to_json(pod(labels={"a": "b"})))
    assert (namespace, name, version, entry.uid, entry.version) == ("n", "a", "7", "u", 7)
    assert codec.decode(entry) == pod(labels={"a": "b"})


def test_each_decode_returns_a_new_object():
    codec = EntryCodec(Pod)
    *_, entry = codec.encode(to_json(pod(labels={"a": "b"})))
    codec.decode(entry)["metadata"]["labels"]["a"] = "changed by a careless reader"
    assert codec.decode(entry) == pod(labels={"a": "b"})


def test_list_items_and_events_are_stored_as_the_same_bytes():
    """Tests list items of a built-in kind, which have no apiVersion and no kind."""
    codec = EntryCodec(Pod)
    event = pod()
    item = {"metadata": event["metadata"]}
    assert codec.encode(to_json(event))[3] == codec.encode(to_json(item))[3]
    assert codec.decode(codec.encode(to_json(item))[3]) == event


def test_metadata_only_objects_keep_their_own_kind():
    partial = {**pod(), "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    codec = EntryCodec(Pod)
    assert codec.decode(codec.encode(to_json(partial))[3]).kind == "Pod"


def test_a_custom_resource_with_fields_before_its_kind_decodes_completely():
    widget = kind("example.com/v1", "Widget")
    obj = {"apiVersion": "example.com/v1", "data": 1, "kind": "Widget", "metadata": {"name": "a"}}
    codec = EntryCodec(widget)
    assert codec.decode(codec.encode(to_json(obj))[3]) == obj


@pytest.mark.parametrize("position", ["first", "middle", "last", "alone"])
@pytest.mark.parametrize("encode", [to_json, lambda value: json.dumps(value, indent=2).encode()])
def test_managed_fields_are_dropped_except_own_apply_entries(position, encode):
    managed_fields = [KUBECTL_ENTRY, OWN_ENTRY, {**OWN_ENTRY, "operation": "Update"}]
    other_metadata = {"name": "a", "resourceVersion": "7"}
    metadata = {
        "first": {"managedFields": managed_fields, **other_metadata},
        "middle": {"name": "a", "managedFields": managed_fields, "resourceVersion": "7"},
        "last": {**other_metadata, "managedFields": managed_fields},
        "alone": {"managedFields": managed_fields, "name": "a"},
    }[position]
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}
    obj_with_own_entry = {**obj, "metadata": {**metadata, "managedFields": [OWN_ENTRY]}}
    obj_without_managed_fields = {
        **obj,
        "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
    }
    for managers, expected in (
        (["greeter"], obj_with_own_entry),
        (["other"], obj_without_managed_fields),
        ([], obj_without_managed_fields),
    ):
        codec = EntryCodec(Pod, field_managers=frozenset(managers))
        assert codec.decode(codec.encode(encode(obj))[3]) == expected


def test_managed_fields_outside_metadata_are_kept():
    widget = kind("example.com/v1", "Widget")
    spec_with_managed_fields = {"managedFields": [KUBECTL_ENTRY]}
    obj = {
        "apiVersion": "example.com/v1",
        "data": spec_with_managed_fields,
        "kind": "Widget",
        "metadata": {"name": "a", **spec_with_managed_fields},
        "z": spec_with_managed_fields,
    }
    codec = EntryCodec(widget)
    expected = {**obj, "metadata": {"name": "a"}}
    assert codec.decode(codec.encode(to_json(obj))[3]) == expected


keys = st.sampled_from(["name2", "managedFields", "metadata", 'a"managedFields":[', "é\u2028\u0085"])
values = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(0, 9), st.just([KUBECTL_ENTRY])),
    lambda inner: st.one_of(st.dictionaries(keys, inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=8,
)


@given(
    values,
    st.dictionaries(keys.filter(lambda key: key != "managedFields"), values, max_size=3),
    st.lists(st.sampled_from([KUBECTL_ENTRY, OWN_ENTRY]), max_size=3),
    st.booleans(),
)
def test_only_managed_fields_are_dropped(value, extra, managed_fields, with_spaces):
    obj = {
        "apiVersion": "v1",
        "data": value,
        "kind": "ConfigMap",
        "metadata": {**extra, "managedFields": managed_fields},
    }
    obj["metadata"]["name"] = "a"
    obj["zeta"] = value
    encoded = json.dumps(obj).encode() if with_spaces else to_json(obj)
    codec = EntryCodec(ConfigMap, field_managers=frozenset(["greeter"]))
    own_entries = [entry for entry in managed_fields if entry is OWN_ENTRY]
    expected = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
    if own_entries:
        expected["metadata"]["managedFields"] = own_entries
    assert codec.decode(codec.encode(encoded)[3]) == expected


def test_a_transformed_entry_keeps_its_version():
    codec = EntryCodec(Pod, transform=lambda obj: {"spec": obj.get("spec")})
    _, name, version, entry = codec.encode(to_json({**pod(), "spec": {"a": 1}, "status": {"b": 2}}))
    assert (name, version, entry.uid, entry.version) == ("a", "7", "u", 7)
    assert codec.decode(entry) == {"apiVersion": "v1", "kind": "Pod", "spec": {"a": 1}}


def test_a_version_that_is_not_an_integer_is_zero():
    codec = EntryCodec(Pod)
    assert codec.encode(to_json(pod(resourceVersion="a7")))[3].version == 0
