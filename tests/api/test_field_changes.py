"""The difference of two versions of an object."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.field_changes import find_changes
from fairlead.api.redaction import redact


def pod(image, **metadata):
    container = {"name": "app", "image": image}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [container, {"name": "log", "image": "l"}]}}


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (pod("a"), pod("b"), [("spec.containers[name=app].image", "a", "b")]),
        (pod("a", resourceVersion="1", generation=1), pod("a", resourceVersion="2", generation=2), []),
        (pod("a"), pod("a", labels={"x": "y"}), [("metadata.labels", None, {"x": "y"})]),
        ({"metadata": {"labels": {"a/b": "1"}}}, {"metadata": {"labels": {}}}, [("metadata.labels[a/b]", "1", None)]),
        ({"spec": {"a": [1, 2]}}, {"spec": {"a": [1, 3]}}, [("spec.a[1]", 2, 3)]),
        ({"spec": {"a": [1, 2]}}, {"spec": {"a": [1]}}, [("spec.a", [1, 2], [1])]),
        ({"spec": {"a": 1}}, {"spec": {"a": True}}, [("spec.a", 1, True)]),
        ({"spec": {"a": [{"name": "x"}, {"name": "y"}]}}, {"spec": {"a": [{"name": "y"}, {"name": "x"}]}},
         [("spec.a", [{"name": "x"}, {"name": "y"}], [{"name": "y"}, {"name": "x"}])]),
        ({"spec": {"a": [{"name": "x"}]}}, {"spec": {"a": [{"name": "x"}, {"name": "y"}]}},
         [("spec.a[name=y]", None, {"name": "y"})]),
    ],
)  # fmt: skip
def test_changed_fields_have_readable_paths(old, new, changes):
    assert list(find_changes(old, new)) == changes


def test_new_object_has_each_field_as_a_whole():
    new = {"kind": "ConfigMap", "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}}, "data": {"k": "v"}}
    assert find_changes(None, new) == (("metadata.labels", None, {"x": "y"}), ("data", None, {"k": "v"}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, {"data": {"k": "SECRET"}}),
        ({"data": {"k": "SECRET"}}, {"data": {"k": "SECRET2"}}),
        ({"data": {"k": "SECRET"}}, {}),
        ({}, {"stringData": "SECRET"}),
        (None, {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "SECRET"}}}),
        (
            {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "SECRET"}}},
            {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "SECRET2"}}},
        ),
    ],
)
def test_values_of_secrets_are_redacted(old, new):
    new = {"kind": "Secret", **new}
    changes = find_changes(old, new)
    assert changes
    assert "SECRET" not in repr(changes)
    assert "SECRET" not in repr(redact(new))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abn"), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["spec", "data"]), JSON), st.dictionaries(st.sampled_from(["spec", "data"]), JSON)
)
def test_there_is_a_change_exactly_if_the_objects_differ(old, new):
    before, after = copy.deepcopy(old), copy.deepcopy(new)
    changes = find_changes(old, new)
    assert bool(changes) == (repr(_sorted(old)) != repr(_sorted(new)))
    for change in changes:  # The values belong to the caller.
        for value in (change.old, change.new):
            if isinstance(value, dict | list):
                value.clear()
    assert (old, new) == (before, after)


def _sorted(value):
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
