"""Tests that the owner of a field is found by its path in the history, and that a write lists only its own fields."""

import pytest

from fairlead.api.field_changes import find_changes, select_sent
from fairlead.api.field_owners import find_owners

POD = {
    "metadata": {
        "managedFields": [
            {
                "manager": "ours",
                "fieldsV1": {
                    "f:metadata": {"f:annotations": {"f:example.com/a": {}}},
                    "f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:image": {}}}},
                },
            },
            {
                "manager": "theirs",
                "fieldsV1": {
                    "f:data": {"f:color": {}},
                    "f:spec": {
                        "f:args": {},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {"f:hostPort": {}}},
                        "f:tags": {'v:"x"': {}},
                    },
                },
            },
            {"manager": "broken", "fieldsV1": {"nonsense": {}}},
        ]
    }
}


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("spec.containers[name=app].image", ["ours"]),
        ("metadata.annotations[example.com/a]", ["ours"]),
        ("metadata.annotations", ["ours"]),
        ("data.color", ["theirs"]),
        ("data.colors", []),
        ("spec.args[1]", ["theirs"]),
        ("spec.tags[0]", ["theirs"]),
        ("spec.ports[containerPort=80].hostPort", ["theirs"]),
        ("spec.ports[name=http].hostPort", ["theirs"]),
        ("spec", ["ours", "theirs"]),
        ("status.phase", []),
    ],
)
def test_owner_of_a_field_is_found(path, owners):
    assert find_owners(POD, path) == owners


def test_object_without_managed_fields_has_no_owners():
    assert find_owners({}, "data.a") == []


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"data": {"a": "2"}}, ["data.a", "data.gone"]),
        ({"metadata": {"name": "n"}, "spec": {}}, ["data.gone", "spec.size"]),
        ([{"op": "test", "path": "/data/a"}, {"op": "replace", "path": "/data/b~1c"}], ["data[b/c]", "data.gone"]),
        ([{"op": "add", "path": "/spec"}], ["data.gone", "spec.size"]),
        (None, ["data.a", "data[b/c]", "data.gone", "spec.size"]),
    ],
)
def test_write_is_given_only_the_changes_that_it_may_have_made(body, paths):
    old = {"data": {"a": "1", "b/c": "1", "gone": "1"}, "spec": {"size": 1}}
    new = {"data": {"a": "2", "b/c": "2"}, "spec": {"size": 2}}
    assert [change.path for change in select_sent(find_changes(old, new), body)] == paths
