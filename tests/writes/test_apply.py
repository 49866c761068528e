"""Tests of apply: it does not change foreign objects, recreate deleted ones, apply read values, or send no-ops."""

import asyncio
import dataclasses

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ClusterRole, ConfigMap, Deployment, RoleBinding, Secret, Service
from fairlead.api.errors import ApiError, Invalid, NotFound
from fairlead.writes import (
    DuplicatePayload,
    ForeignObject,
    ImmutableField,
    ObjectDeleted,
    ObjectReplaced,
    ReadValueInPayload,
    Writer,
    apply,
    apply_all,
    decide,
)


@pytest.fixture
async def owner(env):
    return await env.widget("owner", spec={"size": 1})


def child_config_map(text="hello", name="child", **fields):
    return ConfigMap(name, data={"text": text}, **fields)


async def test_first_apply_is_one_request_and_sets_the_owner(env, owner):
    child = await apply(env.writer, child_config_map(), owner=owner)
    assert child["data"] == {"text": "hello"}
    assert child.namespace == owner.namespace
    assert child.metadata["ownerReferences"][0]["uid"] == owner.uid
    assert env.faulty_transport.writes == ["PATCH"]
    assert env.faulty_transport.reads == []


async def test_foreign_object_of_that_name_is_not_changed(env, owner):
    """Tests the guard that creates instead of applying: a forced apply would adopt the foreign object silently."""
    foreign_object = await env.config_map("child", data={"text": "theirs"})
    with pytest.raises(ForeignObject, match=r"has no controller: delete it.*or choose another name") as error:
        await apply(env.writer, child_config_map(), owner=owner)
    assert "adopt=True" in error.value.hint
    assert await env.get_live(foreign_object) == foreign_object


async def test_child_of_another_owner_is_not_changed_even_with_adopt(env, owner):
    other = await env.widget("other")
    foreign_object = await apply(
        Writer(env.foreign_client, env.world, "theirs"), child_config_map("theirs"), owner=other
    )
    with pytest.raises(ForeignObject, match="controlled by Widget other"):
        await apply(env.writer, child_config_map(), owner=owner, adopt=True)
    assert await env.get_live(foreign_object) == foreign_object


async def test_object_without_controller_can_be_adopted(env, owner):
    foreign_object = await env.config_map("child", data={"text": "theirs", "more": "x"})
    child = await apply(env.writer, child_config_map(), owner=owner, adopt=True)
    assert child.uid == foreign_object.uid
    assert child["data"] == {"text": "hello", "more": "x"}


async def test_cached_object_without_controller_is_adopted_in_one_request(env, owner):
    """Tests that adopting many objects of an earlier release does not cause a 409 for each."""
    foreign_object = env.cache.put(ConfigMap, await env.config_map("child", data={"old": "x"}))
    child = await apply(env.cached_writer, child_config_map(), owner=owner, adopt=True)
    assert (child.uid, child["data"]) == (foreign_object.uid, {"old": "x", "text": "hello"})
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"]


@pytest.mark.parametrize("when", ["before", "recreated"])
async def test_object_is_not_adopted_if_it_got_a_controller_since_it_was_cached(env, owner, when):
    """Tests the guard that sends the resourceVersion of the cached object."""
    foreign_object = env.cache.put(ConfigMap, await env.config_map("child", data={"old": "x"}))
    other = await env.widget("other")
    live = await env.recreate(foreign_object) if when == "recreated" else foreign_object
    owner_reference = {"apiVersion": other.api_version, "kind": other.kind, "name": other.name, "uid": other.uid}
    live = await env.merge_patch(live, {"metadata": {"ownerReferences": [{**owner_reference, "controller": True}]}})
    with pytest.raises(ForeignObject, match="is controlled by Widget other"):
        await apply(env.cached_writer, child_config_map(), owner=owner, adopt=True)
    assert await env.get_live(foreign_object) == live
    with pytest.raises(ForeignObject):
        await apply(env.cached_writer, ConfigMap("child", env.namespace), adopt=True)
    assert await env.get_live(foreign_object) == live


async def test_cached_foreign_object_is_read_live_first(env, owner):
    """Tests a cache that still shows a foreign object after its deletion."""
    foreign_object = env.cache.put(ConfigMap, await env.config_map("child"))
    await env.foreign_client.delete(ConfigMap, foreign_object.name, foreign_object.namespace)
    assert (await apply(env.cached_writer, child_config_map(), owner=owner))["data"] == {"text": "hello"}


async def test_deleted_child_that_was_seen_is_not_recreated(env, owner):
    """Tests the uid guard: the change was intended for the deleted object."""
    child = await apply(env.cached_writer, child_config_map(), owner=owner)
    await env.foreign_client.delete(ConfigMap, child.name, child.namespace)
    with pytest.raises(ObjectDeleted):
        await apply(env.cached_writer, child_config_map("changed"), owner=owner)
    with pytest.raises(NotFound):
        await env.get_live(child)
    assert (await apply(env.cached_writer, child_config_map("changed"), owner=owner)).uid != child.uid


async def test_child_that_the_watch_reported_deleted_is_recreated(env, owner):
    """Tests that an object that a complete watch does not show is treated as deleted, even if the writer
    remembers it.
    """
    child = await apply(env.cached_writer, child_config_map(), owner=owner)
    await env.foreign_client.delete(ConfigMap, child.name, child.namespace)
    env.cache.objects.clear()
    env.faulty_transport.forget_requests()
    assert (await apply(env.cached_writer, child_config_map(), owner=owner)).uid != child.uid
    assert env.faulty_transport.writes == ["PATCH"]


async def test_child_recreated_by_someone_else_is_not_taken_over(env, owner):
    """Tests the uid guard."""
    child = await apply(env.cached_writer, child_config_map(), owner=owner)
    new = await env.recreate(child)
    with pytest.raises(ObjectReplaced):
        await apply(env.cached_writer, child_config_map("changed"), owner=owner)
    assert await env.get_live(new) == new
    with pytest.raises(ForeignObject):
        await apply(env.cached_writer, child_config_map("changed"), owner=owner)


async def test_uid_is_remembered_without_a_cache(env, owner):
    child = await apply(env.writer, child_config_map(), owner=owner)
    env.faulty_transport.forget_requests()
    await apply(env.writer, child_config_map("more"), owner=owner)
    assert env.faulty_transport.writes == ["PATCH"]
    await env.foreign_client.delete(ConfigMap, child.name, child.namespace)
    with pytest.raises(ObjectDeleted):
        await apply(env.writer, child_config_map("most"), owner=owner)


async def test_lost_answer_of_a_create_is_looked_up(env, owner):
    env.faulty_transport.lost_responses = 1
    child = await apply(env.writer, child_config_map(), owner=owner)
    assert child["data"] == {"text": "hello"}
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH", "GET"]


async def test_lost_answer_of_a_change_is_looked_up(env, owner):
    await apply(env.cached_writer, child_config_map(), owner=owner)
    env.faulty_transport.forget_requests()
    env.faulty_transport.lost_responses = 1
    assert (await apply(env.cached_writer, child_config_map("changed"), owner=owner))["data"] == {"text": "changed"}
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH", "GET"]


async def test_foreign_fields_stay_and_omitted_own_fields_are_removed(env, owner):
    child = await apply(env.cached_writer, child_config_map(labels={"ours": "1"}), owner=owner)
    foreign = {"metadata": {"labels": {"theirs": "1"}, "finalizers": ["a.b/c"]}, "data": {"theirs": "x"}}
    env.cache.put(ConfigMap, await env.merge_patch(child, foreign))
    child = await apply(env.cached_writer, child_config_map("two"), owner=owner)
    assert child["data"] == {"text": "two", "theirs": "x"}
    assert child.labels == {"theirs": "1"}
    assert child.finalizers == ["a.b/c"]


async def test_field_that_another_manager_took_is_taken_back(env, owner):
    child = await apply(env.cached_writer, child_config_map(), owner=owner)
    env.cache.put(ConfigMap, await env.merge_patch(child, {"data": {"text": "theirs"}}))
    assert (await apply(env.cached_writer, child_config_map(), owner=owner))["data"] == {"text": "hello"}


async def test_cluster_scoped_child_is_recognized_by_its_apply_entry(env, owner):
    role = ClusterRole(f"{env.namespace}-role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    applied = await apply(env.writer, role, owner=owner)
    assert "ownerReferences" not in applied.metadata
    restarted_writer = Writer(env.client, env.world, env.writer.manager)
    assert (await apply(restarted_writer, role, owner=owner)).uid == applied.uid
    with pytest.raises(ForeignObject):
        await apply(Writer(env.client, env.world, "someone"), role, owner=owner)
    await env.foreign_client.delete(ClusterRole, applied.name)


async def test_child_in_another_namespace_is_recognized_by_its_apply_entry(env, owner):
    applied = await apply(env.writer, ConfigMap(f"{env.namespace}-c", "default", data={"a": "1"}), owner=owner)
    assert "ownerReferences" not in applied.metadata
    restarted_writer = Writer(env.client, env.world, env.writer.manager)
    applied_again = await apply(restarted_writer, ConfigMap(applied.name, "default", data={"a": "2"}), owner=owner)
    assert (applied_again.uid, applied_again["data"]) == (applied.uid, {"a": "2"})
    with pytest.raises(ForeignObject):
        await apply(Writer(env.client, env.world, "someone"), ConfigMap(applied.name, "default", data={}), owner=owner)
    await env.foreign_client.delete(ConfigMap, applied.name, "default")


async def test_cluster_scoped_owner_controls_namespaced_children(env):
    role = await env.foreign_client.create(ClusterRole(f"{env.namespace}-owner", rules=[]))
    child = await apply(env.writer, child_config_map(namespace=env.namespace), owner=role)
    [owner_reference] = child.metadata["ownerReferences"]
    assert (owner_reference["kind"], owner_reference["uid"], owner_reference["controller"]) == (
        "ClusterRole",
        role.uid,
        True,
    )
    with pytest.raises(ValueError, match="needs a namespace"):
        await apply(env.writer, child_config_map(), owner=role)
    await env.foreign_client.delete(ClusterRole, role.name)


MALFORMED_PAYLOADS = {
    "a payload must be a map with apiVersion, kind and metadata": [None, "x", [1]],
    "needs an apiVersion and a kind": [{}, {"kind": "ConfigMap", "metadata": {"name": "c"}}, {"apiVersion": "v1"}],
    "metadata of a ConfigMap must be a map": [
        {**child_config_map(), "metadata": "c"},
        {**child_config_map(), "metadata": ["c"]},
    ],
    r"metadata\.name of a ConfigMap must be text": [ConfigMap(5), ConfigMap({"a": 1})],
    r"metadata\.namespace of a ConfigMap must be text": [ConfigMap("c", 5)],
    r"stringData must be a map": [Secret("c", stringData="x"), Secret("c", stringData=["x"])],
    r": data must be a map": [Secret("c", data="x", stringData={"a": "b"})],
}


@pytest.mark.parametrize("message", MALFORMED_PAYLOADS)
async def test_malformed_payload_is_rejected_before_anything_is_sent(env, owner, message):
    for payload in MALFORMED_PAYLOADS[message]:
        for write in (apply(env.writer, payload, owner=owner), apply_all(env.writer, [payload], owner=owner)):
            with pytest.raises(ValueError, match=message):
                await write
    assert env.faulty_transport.sent_requests == []


async def test_rejected_payload_names_the_remedy(env, owner):
    generated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
    with pytest.raises(ValueError, match="a ConfigMap needs a name"):
        await apply(env.writer, generated, owner=owner)
    with pytest.raises(ValueError, match=r"stringData\.port must be text.*: quote it"):
        await apply(env.writer, Secret("s", stringData={"port": 80}), owner=owner)
    with pytest.raises(ValueError, match="stringData") as error:
        await apply(env.writer, Secret("s", stringData={"password": 12345}), owner=owner)
    assert "12345" not in str(error.value), "more people read conditions and logs than Secrets"
    assert env.faulty_transport.sent_requests == []


async def test_writes_to_one_object_are_serialized(env, owner):
    """Tests the lock: without it, the ten writes would conflict and read the object again."""
    await asyncio.gather(
        *(apply(env.cached_writer, child_config_map(str(number)), owner=owner) for number in range(10))
    )
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"] * 10


async def test_apply_all_tries_every_payload_and_reports_failures(env, owner):
    await env.config_map("b")
    with pytest.raises(ForeignObject, match=r"ConfigMap .*/b"):
        await apply_all(
            env.writer,
            [child_config_map(name="a"), child_config_map(name="b"), child_config_map(name="c")],
            owner=owner,
        )
    for name in "ac":
        assert (await env.foreign_client.get(ConfigMap, name, env.namespace))["data"] == {"text": "hello"}


async def test_object_read_from_a_server_cannot_be_applied(env, owner):
    child = await apply(env.writer, child_config_map(), owner=owner)
    for unappliable in (
        child,
        {**child_config_map(), "data": {"copy": child}},
        {**child_config_map(), "metadata": {"name": "child", "resourceVersion": "5"}},
    ):
        with pytest.raises(ReadValueInPayload, match="from scratch"):
            await apply(env.writer, unappliable, owner=owner)


async def test_part_of_a_draft_cannot_be_applied(env, owner):
    draft_parts = []

    def keep_part(draft):
        draft_parts[:] = [draft.spec]

    with pytest.raises(Exception, match="draft_parts"):
        await decide(env.writer, WIDGET, owner, keep_part)
    with pytest.raises(ReadValueInPayload, match=r"data\.spec"):
        await apply(env.writer, {**child_config_map(), "data": {"spec": draft_parts[0]}}, owner=owner)


async def test_unknown_field_is_an_error_and_sent_once(env, owner):
    with pytest.raises(ApiError, match="not declared in schema"):
        await apply(env.writer, {**child_config_map(), "spec": {"no": "such"}}, owner=owner)
    assert env.faulty_transport.writes == ["PATCH"]


async def test_two_releases_of_one_operator_delete_each_others_fields(env, owner):
    """Tests a limitation that leader election prevents: both releases have the same field manager."""
    old, new = (Writer(env.client, env.world, "operator") for _ in range(2))
    await apply(old, ConfigMap("child", data={"a": "1", "dropped": "x"}), owner=owner)
    for _ in range(2):
        child = await apply(new, ConfigMap("child", data={"a": "1", "added": "y"}), owner=owner)
        assert child["data"] == {"a": "1", "added": "y"}
        child = await apply(old, ConfigMap("child", data={"a": "1", "dropped": "x"}), owner=owner)
        assert child["data"] == {"a": "1", "dropped": "x"}


# Immutable fields


def binding(role):
    owner_reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return RoleBinding("rb", roleRef=owner_reference, subjects=[{"kind": "ServiceAccount", "name": "a"}])


async def test_immutable_field_is_an_error_that_names_the_remedy(env, owner):
    await apply(env.writer, binding("view"), owner=owner)
    with pytest.raises(ImmutableField, match=r"roleRef.*delete the object so that it is created again"):
        await apply(env.writer, binding("edit"), owner=owner)


async def test_recreate_changes_an_immutable_field(env, owner):
    old = await apply(env.writer, binding("view"), owner=owner)
    new = await apply(env.writer, binding("edit"), owner=owner, recreate=True)
    assert new["roleRef"]["name"] == "edit"
    assert new.uid != old.uid


async def test_recreate_with_adopt_changes_an_immutable_field_of_an_adopted_object(env, owner):
    foreign_object = await env.foreign_client.create(
        {**binding("view"), "metadata": {"name": "rb", "namespace": env.namespace}}
    )
    with pytest.raises(ForeignObject):
        await apply(env.writer, binding("edit"), owner=owner, recreate=True)
    with pytest.raises(ImmutableField):
        await apply(env.writer, binding("edit"), owner=owner, adopt=True)
    assert await env.get_live(foreign_object) == foreign_object
    new = await apply(env.writer, binding("edit"), owner=owner, adopt=True, recreate=True)
    assert new["roleRef"]["name"] == "edit"
    assert new.uid != foreign_object.uid


@pytest.mark.parametrize("when", ["before the change", "after its refusal", "before the delete"])
async def test_recreate_never_deletes_an_object_that_someone_else_created(env, owner, when):
    """Tests two guards: a live read shows that the object is ours, and the delete has its uid as a precondition."""
    await apply(env.writer, binding("view"), owner=owner)
    foreign_objects = []

    async def recreate_as_foreign():
        await env.foreign_client.delete(RoleBinding, "rb", env.namespace)
        body = {**binding("view"), "metadata": {"name": "rb", "namespace": env.namespace}}
        foreign_objects.append(await env.foreign_client.create(body, field_manager="squatter"))

    async def wait():
        pass

    env.faulty_transport.before_writes = {
        "before the change": [recreate_as_foreign],
        "before the delete": [wait, recreate_as_foreign],
    }.get(when, [])
    env.faulty_transport.after_writes = [recreate_as_foreign] if when == "after its refusal" else []
    with pytest.raises((ForeignObject, ObjectDeleted)):
        await apply(env.writer, binding("edit"), owner=owner, recreate=True)
    assert await env.get_live(foreign_objects[0]) == foreign_objects[0]


async def test_recreate_does_not_delete_for_an_invalid_payload(env, owner):
    """Tests that only immutable fields cause a recreate. Otherwise an invalid payload would delete the old object."""

    def labelled(label, container):
        pod = {"metadata": {"labels": {"a": label}}, "spec": {"containers": [{"name": container, "image": "i"}]}}
        return Deployment("d", spec={"selector": {"matchLabels": {"a": label}}, "template": pod})

    old = await apply(env.writer, labelled("b", "c"), owner=owner)
    with pytest.raises(Invalid, match=r"containers\[0\]\.name"):
        await apply(env.writer, labelled("other", "No Name"), owner=owner, recreate=True)
    assert await env.exists(old)
    new = await apply(env.writer, labelled("other", "c"), owner=owner, recreate=True)
    assert new.uid != old.uid


async def test_invalid_value_containing_immutable_deletes_nothing(env, owner):
    """Tests an invalid value that contains the word "immutable", because servers quote rejected values."""
    old = await apply(env.writer, child_config_map(), owner=owner)
    for key in ("is immutable!", 'a " may not change'):
        with pytest.raises(Invalid):
            await apply(env.writer, ConfigMap("child", data={key: "x"}), owner=owner, recreate=True)
    assert await env.exists(old)


async def test_immutable_field_is_reported_beside_an_emptied_map(env, owner):
    await apply(env.writer, WIDGET("child", spec={"fixed": "a", "options": {"a": "b"}}), owner=owner)
    with pytest.raises(ImmutableField, match=r"spec\.fixed"):
        await apply(env.writer, WIDGET("child", spec={"fixed": "b", "options": {}}), owner=owner)


async def test_immutable_field_by_a_validation_rule_is_reported(env, owner):
    await apply(env.writer, WIDGET("child", spec={"fixed": "a"}), owner=owner)
    with pytest.raises(ImmutableField, match=r"spec\.fixed"):
        await apply(env.writer, WIDGET("child", spec={"fixed": "b"}), owner=owner)


async def test_recreate_waits_until_the_old_object_is_gone(env, owner):
    old = await apply(env.writer, binding("view"), owner=owner)
    await env.merge_patch(old, {"metadata": {"finalizers": ["a.b/c"]}})

    async def remove_finalizer():  # Runs after the rejected change, the delete, and one read of the terminating object.
        live = await env.get_live(old)
        assert live.deleting
        await env.merge_patch(old, {"metadata": {"finalizers": None}})

    env.faulty_transport.after_reads(3, remove_finalizer)
    new = await apply(env.writer, binding("edit"), owner=owner, recreate=True)
    assert new.uid != old.uid


# Nothing is sent when nothing would change

CONTAINER = {
    "name": "c",
    "image": "i",
    "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
    "env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}],
    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
POD = {"containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {}}], "securityContext": {}}


def deployment(**container):
    pod = {**POD, "containers": [{**CONTAINER, **container}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    return Deployment("d", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 2})


PAYLOADS = {
    "a config map": child_config_map(labels={"x": "y"}),
    "an empty map": ConfigMap("child", data={}),
    "empty labels": child_config_map(labels={}),
    "nulls": ConfigMap("child", data={"text": "x", "none": None}, labels=None),
    "text with marks": child_config_map("a&b<c>\u2028ü"),
    "a secret with stringData": Secret("child", stringData={"a": "b"}, data={"c": "ZA=="}),
    "a deployment with quantities, defaulted keys and empty maps": deployment(),
    "a service with defaulted protocol": Service("child", spec={"ports": [{"port": 80}, {"name": "b", "port": 81}]}),
    "a widget with lists": WIDGET(
        "child",
        spec={
            "listeners": [{"name": "b", "port": 1}, {"name": "a"}],
            "tags": ["z", "y"],
            "lines": ["2", "1"],
            "free": {"a": [{"b": 1.5}], "e": {}},
            "options": {"x": "y"},
        },
    ),
    "a widget with empty lists": WIDGET("child", spec={"listeners": [], "tags": [], "lines": [], "size": 0}),
}
PAYLOADS["a service with defaulted protocol"]["spec"]["ports"][0]["name"] = "a"


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_repeated_apply_sends_nothing_even_after_foreign_writes(env, owner, payload):
    child = await apply(env.cached_writer, payload, owner=owner)
    env.faulty_transport.forget_requests()
    await apply(env.cached_writer, payload, owner=owner)
    kind = env.kind_of(child)
    env.cache.put(kind, await env.merge_patch(child, {"metadata": {"labels": {"theirs": "x"}}}))
    await apply(env.cached_writer, payload, owner=owner)
    await apply(env.cached_writer, payload, owner=owner)
    assert env.faulty_transport.sent_requests == []


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_repeated_apply_after_a_restart_costs_at_most_one_request(env, owner, payload):
    await apply(env.cached_writer, payload, owner=owner)
    env.faulty_transport.forget_requests()
    restarted = dataclasses.replace(env.cached_writer, last_writes={})
    for _ in range(3):
        await apply(restarted, payload, owner=owner)
    normalised = {"a deployment with quantities, defaulted keys and empty maps"}
    name = next(key for key, value in PAYLOADS.items() if value is payload)
    assert len(env.faulty_transport.sent_requests) == (1 if name in normalised else 0)


CHANGES = {
    "a value": (child_config_map("a"), child_config_map("b")),
    "a field more": (child_config_map(), child_config_map(labels={"x": "y"})),
    "a field less": (child_config_map(labels={"x": "y"}), child_config_map()),
    "an item more": (
        WIDGET("child", spec={"listeners": [{"name": "a"}]}),
        WIDGET("child", spec={"listeners": [{"name": "a"}, {"name": "b"}]}),
    ),
    "an item less": (
        WIDGET("child", spec={"listeners": [{"name": "a"}, {"name": "b"}]}),
        WIDGET("child", spec={"listeners": [{"name": "a"}]}),
    ),
    "the order of keyed items": (
        WIDGET("child", spec={"listeners": [{"name": "a"}, {"name": "b"}]}),
        WIDGET("child", spec={"listeners": [{"name": "b"}, {"name": "a"}]}),
    ),
    "the order of a set": (WIDGET("child", spec={"tags": ["a", "b"]}), WIDGET("child", spec={"tags": ["b", "a"]})),
    "the order of a plain list": (
        WIDGET("child", spec={"lines": ["a", "b"]}),
        WIDGET("child", spec={"lines": ["b", "a"]}),
    ),
    "a field of an item less": (
        WIDGET("child", spec={"listeners": [{"name": "a", "port": 1}]}),
        WIDGET("child", spec={"listeners": [{"name": "a"}]}),
    ),
    "an empty list more": (WIDGET("child", spec={"size": 1}), WIDGET("child", spec={"size": 1, "listeners": []})),
    "an empty map more": (WIDGET("child", spec={"size": 1}), WIDGET("child", spec={"size": 1, "options": {}})),
    "an empty map less": (WIDGET("child", spec={"size": 1, "options": {}}), WIDGET("child", spec={"size": 1})),
    "a quantity": (deployment(), deployment(resources={"requests": {"cpu": "2"}})),
    "an explicit default": (
        WIDGET("child", spec={"listeners": [{"name": "a"}]}),
        WIDGET("child", spec={"listeners": [{"name": "a", "mode": "plain"}]}),
    ),
    "a key of a secret less": (
        Secret("child", stringData={"a": "b", "c": "d"}),
        Secret("child", stringData={"a": "b"}),
    ),
}


@pytest.mark.parametrize(("payload_before", "payload_after"), CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("restart", [False, True], ids=["", "restarted"])
async def test_changed_payload_is_sent_and_takes_effect(env, owner, payload_before, payload_after, restart):
    child = await apply(env.cached_writer, payload_before, owner=owner)
    env.faulty_transport.forget_requests()
    writer = dataclasses.replace(env.cached_writer, last_writes={}) if restart else env.cached_writer
    applied_again = await apply(writer, payload_after, owner=owner)
    assert env.faulty_transport.writes == ["PATCH"]
    assert applied_again.resource_version != child.resource_version
    # A fresh apply of the same payload gives the same result as the change.
    await env.foreign_client.delete(env.kind_of(child), child.name, child.namespace)
    expected_object = await apply(Writer(env.foreign_client, env.world, "ours"), payload_after, owner=owner)
    body = {key: value for key, value in expected_object.items() if key not in ("metadata", "status")}
    assert {key: applied_again[key] for key in body} == body


async def test_map_can_be_emptied(env, owner):
    """Tests an apply that removes the last key of a map: the server would set the map to null and reject it."""
    await apply(env.cached_writer, WIDGET("child", spec={"size": 1, "options": {"a": "b"}}), owner=owner)
    empty = WIDGET("child", spec={"size": 1, "options": {}})
    assert not (await apply(env.cached_writer, empty, owner=owner)).spec.get("options")
    env.faulty_transport.forget_requests()
    await apply(env.cached_writer, empty, owner=owner)
    assert env.faulty_transport.sent_requests == []


async def test_unchanged_children_send_nothing_and_one_change_sends_one_request(env, owner):
    children = [child_config_map(str(number), name=f"child-{number}") for number in range(20)]
    await apply_all(env.cached_writer, children, owner=owner)
    env.faulty_transport.forget_requests()
    await apply_all(env.cached_writer, children, owner=owner)
    assert env.faulty_transport.sent_requests == []
    children[7] = child_config_map("changed", name="child-7")
    await apply_all(env.cached_writer, children, owner=owner)
    assert env.faulty_transport.writes == ["PATCH"]


async def test_forgotten_name_costs_as_much_as_a_restart(env, owner, monkeypatch):
    """Tests more names than the writer remembers: a name costs no request, or one if the server normalizes values."""
    monkeypatch.setattr("fairlead.writes.writer.MAX_REMEMBERED", 2)
    for child in (child_config_map(name="a"), deployment(), child_config_map(name="c")):
        await apply(env.cached_writer, child, owner=owner)
    assert len(env.cached_writer.last_writes) == 2
    env.faulty_transport.forget_requests()
    await apply(env.cached_writer, child_config_map(name="a"), owner=owner)
    assert env.faulty_transport.sent_requests == []
    await apply(env.cached_writer, deployment(), owner=owner)
    await apply(env.cached_writer, deployment(), owner=owner)
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"]


async def test_forgotten_name_is_found_again_without_a_cache(env, owner, monkeypatch):
    monkeypatch.setattr("fairlead.writes.writer.MAX_REMEMBERED", 1)
    child = await apply(env.writer, child_config_map("a"), owner=owner)
    await apply(env.writer, child_config_map(name="other"), owner=owner)
    env.faulty_transport.forget_requests()
    assert (await apply(env.writer, child_config_map("b"), owner=owner)).uid == child.uid
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH", "GET", "PATCH"]


async def test_remembered_name_does_not_evict_another(env, owner, monkeypatch):
    monkeypatch.setattr("fairlead.writes.writer.MAX_REMEMBERED", 2)
    for _ in range(2):
        for child in (child_config_map(name="a"), child_config_map(name="b")):
            await apply(env.writer, child, owner=owner)
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"] * 4


async def test_child_deleted_by_someone_else_is_not_recreated(env, owner):
    await apply(env.writer, binding("view"), owner=owner)
    env.faulty_transport.after_writes = [lambda: env.foreign_client.delete(RoleBinding, "rb", env.namespace)]
    with pytest.raises(ObjectDeleted):
        await apply(env.writer, binding("edit"), owner=owner, recreate=True)


@pytest.mark.parametrize("namespace_is_set", [False, True], ids=["both implied", "one names the namespace"])
async def test_two_payloads_of_one_object_are_rejected(env, owner, namespace_is_set):
    namespace = env.namespace if namespace_is_set else None
    payloads = [WIDGET("child", spec={"size": 1}), WIDGET("other"), WIDGET("child", namespace, spec={"note": "x"})]
    with pytest.raises(DuplicatePayload, match="Widget child is in two payloads"):
        await apply_all(env.writer, payloads, owner=owner)
    assert env.faulty_transport.writes == []
