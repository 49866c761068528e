"""apply: no foreign object is changed, no deleted one recreated, no read value applied, and no no-op sent."""

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
async def owner(bench):
    return await bench.widget("owner", spec={"size": 1})


def cm(text="hello", name="child", **fields):
    return ConfigMap(name, data={"text": text}, **fields)


async def test_first_apply_is_one_request_and_sets_the_owner(bench, owner):
    child = await apply(bench.writer, cm(), owner=owner)
    assert child["data"] == {"text": "hello"}
    assert child.namespace == owner.namespace
    assert child.metadata["ownerReferences"][0]["uid"] == owner.uid
    assert bench.wire.writes == ["PATCH"]
    assert bench.wire.reads == []


async def test_foreign_object_of_that_name_is_not_changed(bench, owner):
    """Guard: the create that fails if an object exists. Without it, a forced apply adopts the object silently."""
    theirs = await bench.config_map("child", data={"text": "theirs"})
    with pytest.raises(ForeignObject, match=r"has no controller: delete it.*or choose another name") as error:
        await apply(bench.writer, cm(), owner=owner)
    assert "adopt=True" in error.value.hint
    assert await bench.live(theirs) == theirs


async def test_child_of_another_owner_is_not_changed_even_with_adopt(bench, owner):
    other = await bench.widget("other")
    theirs = await apply(Writer(bench.other, bench.world, "theirs"), cm("theirs"), owner=other)
    with pytest.raises(ForeignObject, match="controlled by Widget other"):
        await apply(bench.writer, cm(), owner=owner, adopt=True)
    assert await bench.live(theirs) == theirs


async def test_object_without_controller_can_be_adopted(bench, owner):
    theirs = await bench.config_map("child", data={"text": "theirs", "more": "x"})
    child = await apply(bench.writer, cm(), owner=owner, adopt=True)
    assert child.uid == theirs.uid
    assert child["data"] == {"text": "hello", "more": "x"}


async def test_cached_object_without_controller_is_adopted_in_one_request(bench, owner):
    """Adopting many objects of an earlier release must not cause a 409 for each."""
    theirs = bench.view.put(ConfigMap, await bench.config_map("child", data={"old": "x"}))
    child = await apply(bench.cached, cm(), owner=owner, adopt=True)
    assert (child.uid, child["data"]) == (theirs.uid, {"old": "x", "text": "hello"})
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"]


@pytest.mark.parametrize("when", ["before", "recreated"])
async def test_object_is_not_adopted_if_it_got_a_controller_since_it_was_cached(bench, owner, when):
    """Guard: the resourceVersion of the cached object."""
    theirs = bench.view.put(ConfigMap, await bench.config_map("child", data={"old": "x"}))
    other = await bench.widget("other")
    live = await bench.recreate(theirs) if when == "recreated" else theirs
    ref = {"apiVersion": other.api_version, "kind": other.kind, "name": other.name, "uid": other.uid}
    live = await bench.merge(live, {"metadata": {"ownerReferences": [{**ref, "controller": True}]}})
    with pytest.raises(ForeignObject, match="is controlled by Widget other"):
        await apply(bench.cached, cm(), owner=owner, adopt=True)
    assert await bench.live(theirs) == live
    with pytest.raises(ForeignObject):
        await apply(bench.cached, ConfigMap("child", bench.namespace), adopt=True)
    assert await bench.live(theirs) == live


async def test_cached_foreign_object_is_read_live_first(bench, owner):
    """The cache may still show a foreign object that was deleted."""
    theirs = bench.view.put(ConfigMap, await bench.config_map("child"))
    await bench.other.delete(ConfigMap, theirs.name, theirs.namespace)
    assert (await apply(bench.cached, cm(), owner=owner))["data"] == {"text": "hello"}


async def test_deleted_child_that_was_seen_is_not_recreated(bench, owner):
    """Guard: uid. The change was intended for the deleted object."""
    child = await apply(bench.cached, cm(), owner=owner)
    await bench.other.delete(ConfigMap, child.name, child.namespace)
    with pytest.raises(ObjectDeleted):
        await apply(bench.cached, cm("changed"), owner=owner)
    with pytest.raises(NotFound):
        await bench.live(child)
    assert (await apply(bench.cached, cm("changed"), owner=owner)).uid != child.uid


async def test_child_that_the_watch_reported_deleted_is_recreated(bench, owner):
    """Guard: coverage. An object that a complete watch does not show does not exist, even if it is remembered."""
    child = await apply(bench.cached, cm(), owner=owner)
    await bench.other.delete(ConfigMap, child.name, child.namespace)
    bench.view.objects.clear()
    bench.wire.forget()
    assert (await apply(bench.cached, cm(), owner=owner)).uid != child.uid
    assert bench.wire.writes == ["PATCH"]


async def test_child_recreated_by_someone_else_is_not_taken_over(bench, owner):
    """Guard: uid."""
    child = await apply(bench.cached, cm(), owner=owner)
    new = await bench.recreate(child)
    with pytest.raises(ObjectReplaced):
        await apply(bench.cached, cm("changed"), owner=owner)
    assert await bench.live(new) == new
    with pytest.raises(ForeignObject):
        await apply(bench.cached, cm("changed"), owner=owner)


async def test_uid_is_remembered_without_a_cache(bench, owner):
    child = await apply(bench.writer, cm(), owner=owner)
    bench.wire.forget()
    await apply(bench.writer, cm("more"), owner=owner)
    assert bench.wire.writes == ["PATCH"]
    await bench.other.delete(ConfigMap, child.name, child.namespace)
    with pytest.raises(ObjectDeleted):
        await apply(bench.writer, cm("most"), owner=owner)


async def test_lost_answer_of_a_create_is_looked_up(bench, owner):
    bench.wire.lost = 1
    child = await apply(bench.writer, cm(), owner=owner)
    assert child["data"] == {"text": "hello"}
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH", "GET"]


async def test_lost_answer_of_a_change_is_looked_up(bench, owner):
    await apply(bench.cached, cm(), owner=owner)
    bench.wire.forget()
    bench.wire.lost = 1
    assert (await apply(bench.cached, cm("changed"), owner=owner))["data"] == {"text": "changed"}
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH", "GET"]


async def test_foreign_fields_stay_and_omitted_own_fields_are_removed(bench, owner):
    child = await apply(bench.cached, cm(labels={"ours": "1"}), owner=owner)
    foreign = {"metadata": {"labels": {"theirs": "1"}, "finalizers": ["a.b/c"]}, "data": {"theirs": "x"}}
    bench.view.put(ConfigMap, await bench.merge(child, foreign))
    child = await apply(bench.cached, cm("two"), owner=owner)
    assert child["data"] == {"text": "two", "theirs": "x"}
    assert child.labels == {"theirs": "1"}
    assert child.finalizers == ["a.b/c"]


async def test_field_that_another_manager_took_is_taken_back(bench, owner):
    child = await apply(bench.cached, cm(), owner=owner)
    bench.view.put(ConfigMap, await bench.merge(child, {"data": {"text": "theirs"}}))
    assert (await apply(bench.cached, cm(), owner=owner))["data"] == {"text": "hello"}


async def test_cluster_scoped_child_is_recognized_by_its_apply_entry(bench, owner):
    role = ClusterRole(f"{bench.namespace}-role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    made = await apply(bench.writer, role, owner=owner)
    assert "ownerReferences" not in made.metadata
    again = Writer(bench.client, bench.world, bench.writer.manager)
    assert (await apply(again, role, owner=owner)).uid == made.uid
    with pytest.raises(ForeignObject):
        await apply(Writer(bench.client, bench.world, "someone"), role, owner=owner)
    await bench.other.delete(ClusterRole, made.name)


async def test_child_in_another_namespace_is_recognized_by_its_apply_entry(bench, owner):
    made = await apply(bench.writer, ConfigMap(f"{bench.namespace}-c", "default", data={"a": "1"}), owner=owner)
    assert "ownerReferences" not in made.metadata
    again = Writer(bench.client, bench.world, bench.writer.manager)
    changed = await apply(again, ConfigMap(made.name, "default", data={"a": "2"}), owner=owner)
    assert (changed.uid, changed["data"]) == (made.uid, {"a": "2"})
    with pytest.raises(ForeignObject):
        await apply(Writer(bench.client, bench.world, "someone"), ConfigMap(made.name, "default", data={}), owner=owner)
    await bench.other.delete(ConfigMap, made.name, "default")


async def test_cluster_scoped_owner_controls_namespaced_children(bench):
    role = await bench.other.create(ClusterRole(f"{bench.namespace}-owner", rules=[]))
    child = await apply(bench.writer, cm(namespace=bench.namespace), owner=role)
    [ref] = child.metadata["ownerReferences"]
    assert (ref["kind"], ref["uid"], ref["controller"]) == ("ClusterRole", role.uid, True)
    with pytest.raises(ValueError, match="needs a namespace"):
        await apply(bench.writer, cm(), owner=role)
    await bench.other.delete(ClusterRole, role.name)


FRAMES = {
    "a payload must be a map with apiVersion, kind and metadata": [None, "x", [1]],
    "needs an apiVersion and a kind": [{}, {"kind": "ConfigMap", "metadata": {"name": "c"}}, {"apiVersion": "v1"}],
    "metadata of a ConfigMap must be a map": [{**cm(), "metadata": "c"}, {**cm(), "metadata": ["c"]}],
    r"metadata\.name of a ConfigMap must be text": [ConfigMap(5), ConfigMap({"a": 1})],
    r"metadata\.namespace of a ConfigMap must be text": [ConfigMap("c", 5)],
    r"stringData must be a map": [Secret("c", stringData="x"), Secret("c", stringData=["x"])],
    r": data must be a map": [Secret("c", data="x", stringData={"a": "b"})],
}


@pytest.mark.parametrize("message", FRAMES)
async def test_malformed_payload_is_rejected_before_anything_is_sent(bench, owner, message):
    for payload in FRAMES[message]:
        for write in (apply(bench.writer, payload, owner=owner), apply_all(bench.writer, [payload], owner=owner)):
            with pytest.raises(ValueError, match=message):
                await write
    assert bench.wire.sent == []


async def test_rejected_payload_names_the_remedy(bench, owner):
    generated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
    with pytest.raises(ValueError, match="a ConfigMap needs a name"):
        await apply(bench.writer, generated, owner=owner)
    with pytest.raises(ValueError, match=r"stringData\.port must be text.*: quote it"):
        await apply(bench.writer, Secret("s", stringData={"port": 80}), owner=owner)
    with pytest.raises(ValueError, match="stringData") as error:
        await apply(bench.writer, Secret("s", stringData={"password": 12345}), owner=owner)
    assert "12345" not in str(error.value), "more people read conditions and logs than Secrets"
    assert bench.wire.sent == []


async def test_writes_to_one_object_are_serialized(bench, owner):
    """Guard: the lock. Without it the ten writes would conflict and read the object again."""
    await asyncio.gather(*(apply(bench.cached, cm(str(n)), owner=owner) for n in range(10)))
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"] * 10


async def test_apply_all_tries_every_payload_and_reports_failures(bench, owner):
    await bench.config_map("b")
    with pytest.raises(ForeignObject, match=r"ConfigMap .*/b"):
        await apply_all(bench.writer, [cm(name="a"), cm(name="b"), cm(name="c")], owner=owner)
    for name in "ac":
        assert (await bench.other.get(ConfigMap, name, bench.namespace))["data"] == {"text": "hello"}


async def test_object_read_from_a_server_cannot_be_applied(bench, owner):
    child = await apply(bench.writer, cm(), owner=owner)
    for wrong in (
        child,
        {**cm(), "data": {"copy": child}},
        {**cm(), "metadata": {"name": "child", "resourceVersion": "5"}},
    ):
        with pytest.raises(ReadValueInPayload, match="from scratch"):
            await apply(bench.writer, wrong, owner=owner)


async def test_part_of_a_draft_cannot_be_applied(bench, owner):
    leaked = []

    def keep(draft):
        leaked[:] = [draft.spec]

    with pytest.raises(Exception, match="leaked"):
        await decide(bench.writer, WIDGET, owner, keep)
    with pytest.raises(ReadValueInPayload, match=r"data\.spec"):
        await apply(bench.writer, {**cm(), "data": {"spec": leaked[0]}}, owner=owner)


async def test_unknown_field_is_an_error_and_sent_once(bench, owner):
    with pytest.raises(ApiError, match="not declared in schema"):
        await apply(bench.writer, {**cm(), "spec": {"no": "such"}}, owner=owner)
    assert bench.wire.writes == ["PATCH"]


async def test_two_releases_of_one_operator_delete_each_others_fields(bench, owner):
    """Leader election prevents this. To the server both releases are one field manager."""
    old, new = (Writer(bench.client, bench.world, "operator") for _ in range(2))
    await apply(old, ConfigMap("child", data={"a": "1", "dropped": "x"}), owner=owner)
    for _ in range(2):
        child = await apply(new, ConfigMap("child", data={"a": "1", "added": "y"}), owner=owner)
        assert child["data"] == {"a": "1", "added": "y"}
        child = await apply(old, ConfigMap("child", data={"a": "1", "dropped": "x"}), owner=owner)
        assert child["data"] == {"a": "1", "dropped": "x"}


# Immutable fields


def binding(role):
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return RoleBinding("rb", roleRef=ref, subjects=[{"kind": "ServiceAccount", "name": "a"}])


async def test_immutable_field_is_an_error_that_names_the_remedy(bench, owner):
    await apply(bench.writer, binding("view"), owner=owner)
    with pytest.raises(ImmutableField, match=r"roleRef.*delete the object so that it is created again"):
        await apply(bench.writer, binding("edit"), owner=owner)


async def test_recreate_changes_an_immutable_field(bench, owner):
    old = await apply(bench.writer, binding("view"), owner=owner)
    new = await apply(bench.writer, binding("edit"), owner=owner, recreate=True)
    assert new["roleRef"]["name"] == "edit"
    assert new.uid != old.uid


async def test_recreate_with_adopt_changes_an_immutable_field_of_an_adopted_object(bench, owner):
    theirs = await bench.other.create({**binding("view"), "metadata": {"name": "rb", "namespace": bench.namespace}})
    with pytest.raises(ForeignObject):
        await apply(bench.writer, binding("edit"), owner=owner, recreate=True)
    with pytest.raises(ImmutableField):
        await apply(bench.writer, binding("edit"), owner=owner, adopt=True)
    assert await bench.live(theirs) == theirs
    new = await apply(bench.writer, binding("edit"), owner=owner, adopt=True, recreate=True)
    assert new["roleRef"]["name"] == "edit"
    assert new.uid != theirs.uid


@pytest.mark.parametrize("when", ["before the change", "after its refusal", "before the delete"])
async def test_recreate_never_deletes_an_object_that_someone_else_created(bench, owner, when):
    """Guards: a live read shows that the deleted object is ours, and its uid is a precondition."""
    await apply(bench.writer, binding("view"), owner=owner)
    foreign_objects = []

    async def squat():
        await bench.other.delete(RoleBinding, "rb", bench.namespace)
        body = {**binding("view"), "metadata": {"name": "rb", "namespace": bench.namespace}}
        foreign_objects.append(await bench.other.create(body, field_manager="squatter"))

    async def wait():
        pass

    bench.wire.first = {"before the change": [squat], "before the delete": [wait, squat]}.get(when, [])
    bench.wire.then = [squat] if when == "after its refusal" else []
    with pytest.raises((ForeignObject, ObjectDeleted)):
        await apply(bench.writer, binding("edit"), owner=owner, recreate=True)
    assert await bench.live(foreign_objects[0]) == foreign_objects[0]


async def test_recreate_does_not_delete_for_an_invalid_payload(bench, owner):
    """Guard: recreate only if immutable fields are the only cause. Otherwise the old object would be lost."""

    def labelled(label, container):
        pod = {"metadata": {"labels": {"a": label}}, "spec": {"containers": [{"name": container, "image": "i"}]}}
        return Deployment("d", spec={"selector": {"matchLabels": {"a": label}}, "template": pod})

    old = await apply(bench.writer, labelled("b", "c"), owner=owner)
    with pytest.raises(Invalid, match=r"containers\[0\]\.name"):
        await apply(bench.writer, labelled("other", "No Name"), owner=owner, recreate=True)
    assert await bench.exists(old)
    new = await apply(bench.writer, labelled("other", "c"), owner=owner, recreate=True)
    assert new.uid != old.uid


async def test_invalid_value_containing_immutable_deletes_nothing(bench, owner):
    """Servers quote the rejected value in their message."""
    old = await apply(bench.writer, cm(), owner=owner)
    for key in ("is immutable!", 'a " may not change'):
        with pytest.raises(Invalid):
            await apply(bench.writer, ConfigMap("child", data={key: "x"}), owner=owner, recreate=True)
    assert await bench.exists(old)


async def test_immutable_field_is_reported_beside_an_emptied_map(bench, owner):
    await apply(bench.writer, WIDGET("child", spec={"fixed": "a", "options": {"a": "b"}}), owner=owner)
    with pytest.raises(ImmutableField, match=r"spec\.fixed"):
        await apply(bench.writer, WIDGET("child", spec={"fixed": "b", "options": {}}), owner=owner)


async def test_immutable_field_by_a_validation_rule_is_reported(bench, owner):
    await apply(bench.writer, WIDGET("child", spec={"fixed": "a"}), owner=owner)
    with pytest.raises(ImmutableField, match=r"spec\.fixed"):
        await apply(bench.writer, WIDGET("child", spec={"fixed": "b"}), owner=owner)


async def test_recreate_waits_until_the_old_object_is_gone(bench, owner):
    old = await apply(bench.writer, binding("view"), owner=owner)
    await bench.merge(old, {"metadata": {"finalizers": ["a.b/c"]}})

    async def remove_finalizer():  # Runs after the rejected change, the delete, and one read of the terminating object.
        live = await bench.live(old)
        assert live.deleting
        await bench.merge(old, {"metadata": {"finalizers": None}})

    bench.wire.after_reads(3, remove_finalizer)
    new = await apply(bench.writer, binding("edit"), owner=owner, recreate=True)
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
    "a config map": cm(labels={"x": "y"}),
    "an empty map": ConfigMap("child", data={}),
    "empty labels": cm(labels={}),
    "nulls": ConfigMap("child", data={"text": "x", "none": None}, labels=None),
    "text with marks": cm("a&b<c>\u2028ü"),
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
async def test_repeated_apply_sends_nothing_even_after_foreign_writes(bench, owner, payload):
    child = await apply(bench.cached, payload, owner=owner)
    bench.wire.forget()
    await apply(bench.cached, payload, owner=owner)
    kind = bench.kind_of(child)
    bench.view.put(kind, await bench.merge(child, {"metadata": {"labels": {"theirs": "x"}}}))
    await apply(bench.cached, payload, owner=owner)
    await apply(bench.cached, payload, owner=owner)
    assert bench.wire.sent == []


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_repeated_apply_after_a_restart_costs_at_most_one_request(bench, owner, payload):
    await apply(bench.cached, payload, owner=owner)
    bench.wire.forget()
    restarted = dataclasses.replace(bench.cached, last_writes={})
    for _ in range(3):
        await apply(restarted, payload, owner=owner)
    normalised = {"a deployment with quantities, defaulted keys and empty maps"}
    name = next(key for key, value in PAYLOADS.items() if value is payload)
    assert len(bench.wire.sent) == (1 if name in normalised else 0)


CHANGES = {
    "a value": (cm("a"), cm("b")),
    "a field more": (cm(), cm(labels={"x": "y"})),
    "a field less": (cm(labels={"x": "y"}), cm()),
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


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("restart", [False, True], ids=["", "restarted"])
async def test_changed_payload_is_sent_and_takes_effect(bench, owner, before, after, restart):
    child = await apply(bench.cached, before, owner=owner)
    bench.wire.forget()
    writer = dataclasses.replace(bench.cached, last_writes={}) if restart else bench.cached
    changed = await apply(writer, after, owner=owner)
    assert bench.wire.writes == ["PATCH"]
    assert changed.resource_version != child.resource_version
    # A fresh apply of the same payload gives the same result as the change.
    await bench.other.delete(bench.kind_of(child), child.name, child.namespace)
    fresh = await apply(Writer(bench.other, bench.world, "ours"), after, owner=owner)
    body = {key: value for key, value in fresh.items() if key not in ("metadata", "status")}
    assert {key: changed[key] for key in body} == body


async def test_map_can_be_emptied(bench, owner):
    """If an apply gives up the last key of a map, the server turns the map into null and rejects it."""
    await apply(bench.cached, WIDGET("child", spec={"size": 1, "options": {"a": "b"}}), owner=owner)
    empty = WIDGET("child", spec={"size": 1, "options": {}})
    assert not (await apply(bench.cached, empty, owner=owner)).spec.get("options")
    bench.wire.forget()
    await apply(bench.cached, empty, owner=owner)
    assert bench.wire.sent == []


async def test_unchanged_children_send_nothing_and_one_change_sends_one_request(bench, owner):
    children = [cm(str(n), name=f"child-{n}") for n in range(20)]
    await apply_all(bench.cached, children, owner=owner)
    bench.wire.forget()
    await apply_all(bench.cached, children, owner=owner)
    assert bench.wire.sent == []
    children[7] = cm("changed", name="child-7")
    await apply_all(bench.cached, children, owner=owner)
    assert bench.wire.writes == ["PATCH"]


async def test_forgotten_name_costs_as_much_as_a_restart(bench, owner, monkeypatch):
    """With more names than are remembered, a name costs no request, or one if the server normalizes values."""
    monkeypatch.setattr("fairlead.writes.writer.MAX_REMEMBERED", 2)
    for child in (cm(name="a"), deployment(), cm(name="c")):
        await apply(bench.cached, child, owner=owner)
    assert len(bench.cached.last_writes) == 2
    bench.wire.forget()
    await apply(bench.cached, cm(name="a"), owner=owner)
    assert bench.wire.sent == []
    await apply(bench.cached, deployment(), owner=owner)
    await apply(bench.cached, deployment(), owner=owner)
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"]


async def test_forgotten_name_is_found_again_without_a_cache(bench, owner, monkeypatch):
    monkeypatch.setattr("fairlead.writes.writer.MAX_REMEMBERED", 1)
    child = await apply(bench.writer, cm("a"), owner=owner)
    await apply(bench.writer, cm(name="other"), owner=owner)
    bench.wire.forget()
    assert (await apply(bench.writer, cm("b"), owner=owner)).uid == child.uid
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH", "GET", "PATCH"]


async def test_remembered_name_does_not_evict_another(bench, owner, monkeypatch):
    monkeypatch.setattr("fairlead.writes.writer.MAX_REMEMBERED", 2)
    for _ in range(2):
        for child in (cm(name="a"), cm(name="b")):
            await apply(bench.writer, child, owner=owner)
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"] * 4


async def test_child_deleted_by_someone_else_is_not_recreated(bench, owner):
    await apply(bench.writer, binding("view"), owner=owner)
    bench.wire.then = [lambda: bench.other.delete(RoleBinding, "rb", bench.namespace)]
    with pytest.raises(ObjectDeleted):
        await apply(bench.writer, binding("edit"), owner=owner, recreate=True)


@pytest.mark.parametrize("placed", [False, True], ids=["both implied", "one names the namespace"])
async def test_two_payloads_of_one_object_are_rejected(bench, owner, placed):
    namespace = bench.namespace if placed else None
    twice = [WIDGET("child", spec={"size": 1}), WIDGET("other"), WIDGET("child", namespace, spec={"note": "x"})]
    with pytest.raises(DuplicatePayload, match="Widget child is in two payloads"):
        await apply_all(bench.writer, twice, owner=owner)
    assert bench.wire.writes == []
