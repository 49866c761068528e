"""Tests of migrate: only declared fields move, values stay, and a later apply can remove the fields."""

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.errors import Invalid
from fairlead.writes import ObjectDeleted, apply, migrate

OLD_MANAGER = "old-agent"


async def create_with_old_manager(env, **fields):
    """Create a widget with fields of the old field manager, written by create and update."""
    widget = WIDGET("w", env.namespace, **fields)
    return await env.foreign_client.create(widget, field_manager=OLD_MANAGER)


def entries(obj):
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in obj.metadata["managedFields"]}


LISTENERS = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]


async def test_field_written_by_update_stays_without_a_migration(env):
    await create_with_old_manager(env, spec={"listeners": LISTENERS, "note": "x"})
    after = await apply(env.writer, WIDGET("w", env.namespace, spec={"listeners": LISTENERS[:1]}), adopt=True)
    assert [item["name"] for item in after.spec["listeners"]] == ["a", "b"]


async def test_apply_after_a_migration_removes_omitted_fields(env):
    old = await create_with_old_manager(env, spec={"listeners": LISTENERS, "note": "x"})
    migration = await migrate(env.writer, WIDGET, old, fields=["spec.listeners", "spec.note"], managers=[OLD_MANAGER])
    assert {".spec.note", '.spec.listeners[name="a"].port'} <= set(migration.moved)
    assert migration.object.spec == old.spec
    after = await apply(env.writer, WIDGET("w", env.namespace, spec={"listeners": LISTENERS[:1]}))
    assert [item["name"] for item in after.spec["listeners"]] == ["a"]
    assert "note" not in after.spec


async def test_undeclared_fields_stay_in_the_old_entry(env):
    """Tests that only declared paths move, because another controller may share the managed-fields entry."""
    old = await create_with_old_manager(env, spec={"note": "ours", "options": {"theirs": "x"}})
    migration = await migrate(env.writer, WIDGET, old, fields=["spec.note"], managers=[OLD_MANAGER])
    owners = entries(migration.object)
    assert owners[MANAGER, "Apply"] == {"f:spec": {"f:note": {}}}
    assert "f:options" in owners[OLD_MANAGER, "Update"]["f:spec"]
    after = await apply(env.writer, WIDGET("w", env.namespace, spec={"size": 1}))
    assert after.spec == {"size": 1, "options": {"theirs": "x"}}


async def test_entries_of_other_managers_stay(env):
    """Tests that only entries of the named managers move."""
    old = await create_with_old_manager(env, spec={"size": 1})
    live = await env.merge_patch(old, {"spec": {"note": "theirs"}}, manager="someone")
    migration = await migrate(env.writer, WIDGET, live, fields=["spec"], managers=[OLD_MANAGER])
    assert entries(migration.object)["someone", "Update"] == {"f:spec": {"f:note": {}}}
    after = await apply(env.writer, WIDGET("w", env.namespace, labels={"still": "ours"}))
    assert after.spec == {"note": "theirs"}


async def test_write_between_read_and_migration_is_not_lost(env):
    """Tests the resourceVersion guard: without it, the migration would overwrite another writer's entry."""
    old = await create_with_old_manager(env, spec={"size": 1, "note": "x"})
    env.faulty_transport.before_writes = [lambda: env.merge_patch(old, {"spec": {"note": "theirs"}}, manager="someone")]
    migration = await migrate(env.writer, WIDGET, old, fields=["spec"], managers=[OLD_MANAGER])
    assert ("someone", "Update") in entries(migration.object)
    assert ".spec.note" not in migration.moved


async def test_second_migration_sends_nothing(env):
    old = await create_with_old_manager(env, spec={"size": 1})
    await migrate(env.writer, WIDGET, old, fields=["spec"], managers=[OLD_MANAGER])
    env.faulty_transport.forget_requests()
    second_migration = await migrate(env.writer, WIDGET, old, fields=["spec"], managers=[OLD_MANAGER])
    assert second_migration.moved == ()
    assert env.faulty_transport.writes == []


async def test_dry_run_reports_what_would_move(env):
    old = await create_with_old_manager(env, spec={"size": 1})
    planned = await migrate(env.writer, WIDGET, old, fields=["spec.size"], managers=[OLD_MANAGER], dry_run=True)
    assert planned.moved == (".spec.size",)
    assert env.faulty_transport.writes == []


async def test_key_with_dots_is_given_as_a_pointer(env):
    old = await create_with_old_manager(env, annotations={"a.b/c": "x", "d": "y"})
    migration = await migrate(env.writer, WIDGET, old, fields=["/metadata/annotations/a.b~1c"], managers=[OLD_MANAGER])
    assert migration.moved == (".metadata.annotations.a.b/c",)


PROXY_FIELDS = [f"spec.listeners[*].{name}" for name in ("name", "port", "mode")]
TWO_LISTENERS = [{"name": "a", "port": 1, "hostname": "h.a"}, {"name": "b", "port": 2, "hostname": "h.b"}]


@pytest.mark.parametrize("proxy_first", [True, False])
async def test_two_controllers_with_one_manager_name_take_their_own_fields(env, proxy_first):
    """Tests one Update entry that owns the listeners of one controller and the hostnames of another."""
    old = await create_with_old_manager(env, spec={"listeners": TWO_LISTENERS})
    proxy, gateway = env.writer.with_manager("proxy"), env.writer.with_manager("gateway")
    moves = [(proxy, PROXY_FIELDS), (gateway, ["spec.listeners[*].hostname"])]
    for writer, fields in moves if proxy_first else reversed(moves):
        migration = await migrate(writer, WIDGET, old, fields=fields, managers=[OLD_MANAGER])
    owners = entries(migration.object)
    assert owners[OLD_MANAGER, "Update"]["f:spec"] == {".": {}, "f:listeners": {}}
    assert owners["gateway", "Apply"]["f:spec"]["f:listeners"]['k:{"name":"a"}'] == {"f:hostname": {}}
    # The proxy's next apply omits the hostnames. They stay with the listeners that stay.
    remaining = WIDGET("w", env.namespace, spec={"listeners": [{"name": "a", "port": 7}]})
    after = await apply(proxy, remaining, adopt=True)
    assert after.spec["listeners"][0] == {"name": "a", "port": 7, "hostname": "h.a", "mode": "plain"}
    hosts = {"listeners": [{"name": "a", "hostname": "h.new"}]}
    after = await apply(gateway, WIDGET("w", env.namespace, spec=hosts), adopt=True)
    assert after.spec["listeners"] == [{"name": "a", "port": 7, "hostname": "h.new", "mode": "plain"}]


async def test_one_item_of_a_keyed_list_moves_alone(env):
    old = await create_with_old_manager(env, spec={"listeners": LISTENERS, "tags": ["x", "y"]})
    fields = ["spec.listeners[name=a]", "spec.tags[=x]"]
    migration = await migrate(env.writer, WIDGET, old, fields=fields, managers=[OLD_MANAGER])
    assert set(migration.moved) == {
        '.spec.listeners[name="a"].mode',
        '.spec.listeners[name="a"].name',
        '.spec.listeners[name="a"].port',
        '.spec.tags[="x"]',
    }
    after = await apply(env.writer, WIDGET("w", env.namespace, spec={"size": 1}))
    assert [item["name"] for item in after.spec["listeners"]] == ["b"]
    assert after.spec["tags"] == ["y"]


async def test_before_first_apply_can_be_migrated(env):
    await create_with_old_manager(env, spec={"note": "x"})
    await env.send_raw(
        "PATCH", WIDGET.path(env.namespace, "w"), {"metadata": {"managedFields": [{}]}}, "merge-patch"
    )  # fmt: skip
    live = await apply(env.writer, WIDGET("w", env.namespace, spec={"size": 1}), adopt=True)
    assert ("before-first-apply", "Update") in entries(live)
    await migrate(env.writer, WIDGET, live, fields=["spec"], managers=["before-first-apply"])
    after = await apply(env.writer, WIDGET("w", env.namespace, spec={"size": 2}))
    assert after.spec == {"size": 2}


async def test_migration_of_a_deleted_object_is_rejected(env):
    old = await create_with_old_manager(env)
    await env.foreign_client.delete(WIDGET, "w", env.namespace)
    with pytest.raises(ObjectDeleted):
        await migrate(env.writer, WIDGET, old, fields=["spec"], managers=[OLD_MANAGER])


async def test_migration_with_a_lost_answer_reports_what_moved(env):
    widget = await env.foreign_client.create(WIDGET("w", env.namespace, spec={"note": "x"}), field_manager="old")
    env.faulty_transport.lost_responses = 1
    migration = await migrate(env.writer, WIDGET, widget, fields=["spec.note"], managers=["old"])
    assert [path.removeprefix(".") for path in migration.moved] == ["spec.note"]


async def test_entries_of_subresources_do_not_move(env):
    widget = await env.widget(spec={"note": "x"})
    widget = await env.merge_patch(widget, {"status": {"phase": "Old"}}, subresource="status", manager="old")
    migration = await migrate(env.writer, WIDGET, widget, fields=["status.phase"], managers=["old"])
    assert migration.moved == ()
    assert migration.object["metadata"]["managedFields"] == widget["metadata"]["managedFields"]


async def test_webhook_rejection_is_raised_unchanged(env, monkeypatch):
    """Tests a rejection by a webhook, which has no causes, like the rejection of a failed JSON patch test."""
    widget = await env.widget(spec={"note": "a"})

    async def raise_denied(*args, **options):
        raise Invalid({"reason": "Invalid", "code": 422, "message": "not on Fridays"})

    monkeypatch.setattr(env.client, "patch", raise_denied)
    with pytest.raises(Invalid, match="not on Fridays"):
        await migrate(env.writer, WIDGET, widget, fields=["spec.note"], managers=["maker"])
