import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.patches.strategic import StrategicError, apply
from fairlead.server.schema import builtin

DEPLOYMENT = builtin.schema_of_kind("apps", "v1", "Deployment")
SERVICE = builtin.schema_of_kind("", "v1", "Service")
CONFIG_MAP = builtin.schema_of_kind("", "v1", "ConfigMap")


def containers(patch, *names):
    """Return the names of a Deployment's containers after a patch of its pod spec."""
    original = {"spec": {"template": {"spec": {"containers": [{"name": n, "image": "i"} for n in names]}}}}
    result = apply(DEPLOYMENT, original, {"spec": {"template": {"spec": patch}}})
    return [c["name"] for c in result["spec"]["template"]["spec"]["containers"]]


def test_keyed_list_merges_by_key_and_new_items_come_first():
    assert containers({"containers": [{"name": "e"}]}, "c", "d") == ["e", "c", "d"]
    assert containers({"containers": [{"name": "d", "image": "j"}]}, "c", "d") == ["c", "d"]


def test_items_merge_field_by_field():
    original = {"spec": {"ports": [{"port": 80, "name": "h", "targetPort": 1}]}}
    result = apply(SERVICE, original, {"spec": {"ports": [{"port": 80, "targetPort": 2}]}})
    assert result == {"spec": {"ports": [{"port": 80, "name": "h", "targetPort": 2}]}}
    assert original["spec"]["ports"][0]["targetPort"] == 1


def test_primitive_list_merges_and_a_directive_deletes_items():
    original = {"metadata": {"finalizers": ["a", "b"]}}
    assert apply(CONFIG_MAP, original, {"metadata": {"finalizers": ["c"]}})["metadata"]["finalizers"] == ["c", "a", "b"]
    deleted = apply(CONFIG_MAP, original, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}})
    assert deleted == {"metadata": {"finalizers": ["b"]}}
    assert apply(CONFIG_MAP, original, {"metadata": {"finalizers": None}}) == {"metadata": {}}


def test_lists_without_a_strategy_are_replaced():
    original = {"spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["a", "b"]}]}}}}
    result = apply(
        DEPLOYMENT, original, {"spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["z"]}]}}}}
    )
    assert result["spec"]["template"]["spec"]["containers"] == [{"name": "c", "args": ["z"]}]


def test_items_can_be_deleted_and_lists_and_maps_replaced():
    assert containers({"containers": [{"$patch": "delete", "name": "c"}]}, "c", "d") == ["d"]
    assert containers({"containers": [{"$patch": "replace"}, {"name": "x"}]}, "c", "d") == ["x"]
    original = {"spec": {"strategy": {"type": "A", "rollingUpdate": {}}}}
    replaced = apply(DEPLOYMENT, original, {"spec": {"strategy": {"$patch": "replace", "type": "B"}}})
    assert replaced == {"spec": {"strategy": {"type": "B"}}}


def test_retain_keys_directive_removes_the_other_keys():
    original = {"spec": {"strategy": {"type": "A", "rollingUpdate": {}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "B"}}}
    assert apply(DEPLOYMENT, original, patch) == {"spec": {"strategy": {"type": "B"}}}


def test_order_directive_sorts_the_items_that_it_names():
    order = [{"name": "d"}, {"name": "n"}, {"name": "c"}]
    assert containers({"$setElementOrder/containers": order, "containers": [{"name": "n"}]}, "c", "d") == [
        "d",
        "n",
        "c",
    ]
    assert containers({"$setElementOrder/containers": order[:1]}, "c", "d") == ["c", "d"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"containers": [{"$patch": "frob", "name": "c"}]}, "unknown patch type: frob in map: map[$patch:frob name:c]"),
        ({"containers": [{"image": "i:2"}]}, "map: map[image:i:2] does not contain declared merge key: name"),
        (
            {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "z"}]},
            "The order in patch list:\n[map[name:z]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n",
        ),
    ],
)
def test_invalid_directive_raises_the_real_servers_message(patch, message):
    with pytest.raises(StrategicError) as error:
        containers(patch, "c")
    assert str(error.value) == message


def test_new_field_gets_the_patch_without_nulls_and_directives():
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": None}, {"$patch": "delete"}]}}}}
    assert apply(DEPLOYMENT, {}, patch) == {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True))
def test_merge_keeps_every_item_once_and_is_idempotent(live, patch):
    names = containers({"containers": [{"name": n} for n in patch]}, *live)
    assert sorted(names) == sorted({*live, *patch})
    assert [n for n in names if n in patch] == patch or not live
    assert containers({"containers": [{"name": n} for n in patch]}, *names) == names
