"""migrate: only declared fields move, values stay, and a later apply can remove the fields."""

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.errors import Invalid
from fairlead.writes import ObjectDeleted, apply, migrate

OLD = "old-agent"


async def once_written(bench, **fields):
    """Create a widget that this controller once wrote by create and update."""
    made = WIDGET("w", bench.namespace, **fields)
    return await bench.other.create(made, field_manager=OLD)


def entries(obj):
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in obj.metadata["managedFields"]}


LISTENERS = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]


async def test_field_written_by_update_stays_without_a_migration(bench):
    await once_written(bench, spec={"listeners": LISTENERS, "note": "x"})
    after = await apply(bench.writer, WIDGET("w", bench.namespace, spec={"listeners": LISTENERS[:1]}), adopt=True)
    assert [item["name"] for item in after.spec["listeners"]] == ["a", "b"]


async def test_apply_after_a_migration_removes_omitted_fields(bench):
    old = await once_written(bench, spec={"listeners": LISTENERS, "note": "x"})
    moved = await migrate(bench.writer, WIDGET, old, fields=["spec.listeners", "spec.note"], managers=[OLD])
    assert {".spec.note", '.spec.listeners[name="a"].port'} <= set(moved.moved)
    assert moved.object.spec == old.spec
    after = await apply(bench.writer, WIDGET("w", bench.namespace, spec={"listeners": LISTENERS[:1]}))
    assert [item["name"] for item in after.spec["listeners"]] == ["a"]
    assert "note" not in after.spec


async def test_undeclared_fields_stay_in_the_old_entry(bench):
    """Guard: declared paths only. Another controller of the same process shares the entry."""
    old = await once_written(bench, spec={"note": "ours", "options": {"theirs": "x"}})
    moved = await migrate(bench.writer, WIDGET, old, fields=["spec.note"], managers=[OLD])
    owners = entries(moved.object)
    assert owners[MANAGER, "Apply"] == {"f:spec": {"f:note": {}}}
    assert "f:options" in owners[OLD, "Update"]["f:spec"]
    after = await apply(bench.writer, WIDGET("w", bench.namespace, spec={"size": 1}))
    assert after.spec == {"size": 1, "options": {"theirs": "x"}}


async def test_entries_of_other_managers_stay(bench):
    """Guard: named managers only."""
    old = await once_written(bench, spec={"size": 1})
    live = await bench.merge(old, {"spec": {"note": "theirs"}}, manager="someone")
    moved = await migrate(bench.writer, WIDGET, live, fields=["spec"], managers=[OLD])
    assert entries(moved.object)["someone", "Update"] == {"f:spec": {"f:note": {}}}
    after = await apply(bench.writer, WIDGET("w", bench.namespace, labels={"still": "ours"}))
    assert after.spec == {"note": "theirs"}


async def test_write_between_read_and_migration_is_not_lost(bench):
    """Without the resourceVersion, the migration would overwrite the managedFields entry of another writer."""
    old = await once_written(bench, spec={"size": 1, "note": "x"})
    bench.wire.first = [lambda: bench.merge(old, {"spec": {"note": "theirs"}}, manager="someone")]
    moved = await migrate(bench.writer, WIDGET, old, fields=["spec"], managers=[OLD])
    assert ("someone", "Update") in entries(moved.object)
    assert ".spec.note" not in moved.moved


async def test_second_migration_sends_nothing(bench):
    old = await once_written(bench, spec={"size": 1})
    await migrate(bench.writer, WIDGET, old, fields=["spec"], managers=[OLD])
    bench.wire.forget()
    again = await migrate(bench.writer, WIDGET, old, fields=["spec"], managers=[OLD])
    assert again.moved == ()
    assert bench.wire.writes == []


async def test_dry_run_reports_what_would_move(bench):
    old = await once_written(bench, spec={"size": 1})
    planned = await migrate(bench.writer, WIDGET, old, fields=["spec.size"], managers=[OLD], dry_run=True)
    assert planned.moved == (".spec.size",)
    assert bench.wire.writes == []


async def test_key_with_dots_is_given_as_a_pointer(bench):
    old = await once_written(bench, annotations={"a.b/c": "x", "d": "y"})
    moved = await migrate(bench.writer, WIDGET, old, fields=["/metadata/annotations/a.b~1c"], managers=[OLD])
    assert moved.moved == (".metadata.annotations.a.b/c",)


PROXY = [f"spec.listeners[*].{name}" for name in ("name", "port", "mode")]
BOTH = [{"name": "a", "port": 1, "hostname": "h.a"}, {"name": "b", "port": 2, "hostname": "h.b"}]


@pytest.mark.parametrize("proxy_first", [True, False])
async def test_two_controllers_with_one_manager_name_take_their_own_fields(bench, proxy_first):
    """One controller created the listeners, another set their hostnames, and one Update entry owns both."""
    old = await once_written(bench, spec={"listeners": BOTH})
    proxy, gateway = bench.writer.with_manager("proxy"), bench.writer.with_manager("gateway")
    moves = [(proxy, PROXY), (gateway, ["spec.listeners[*].hostname"])]
    for writer, fields in moves if proxy_first else reversed(moves):
        moved = await migrate(writer, WIDGET, old, fields=fields, managers=[OLD])
    owners = entries(moved.object)
    assert owners[OLD, "Update"]["f:spec"] == {".": {}, "f:listeners": {}}
    assert owners["gateway", "Apply"]["f:spec"]["f:listeners"]['k:{"name":"a"}'] == {"f:hostname": {}}
    # The proxy's next apply omits the hostnames. They stay with the listeners that stay.
    remaining = WIDGET("w", bench.namespace, spec={"listeners": [{"name": "a", "port": 7}]})
    after = await apply(proxy, remaining, adopt=True)
    assert after.spec["listeners"][0] == {"name": "a", "port": 7, "hostname": "h.a", "mode": "plain"}
    hosts = {"listeners": [{"name": "a", "hostname": "h.new"}]}
    after = await apply(gateway, WIDGET("w", bench.namespace, spec=hosts), adopt=True)
    assert after.spec["listeners"] == [{"name": "a", "port": 7, "hostname": "h.new", "mode": "plain"}]


async def test_one_item_of_a_keyed_list_moves_alone(bench):
    old = await once_written(bench, spec={"listeners": LISTENERS, "tags": ["x", "y"]})
    fields = ["spec.listeners[name=a]", "spec.tags[=x]"]
    moved = await migrate(bench.writer, WIDGET, old, fields=fields, managers=[OLD])
    assert set(moved.moved) == {
        '.spec.listeners[name="a"].mode',
        '.spec.listeners[name="a"].name',
        '.spec.listeners[name="a"].port',
        '.spec.tags[="x"]',
    }
    after = await apply(bench.writer, WIDGET("w", bench.namespace, spec={"size": 1}))
    assert [item["name"] for item in after.spec["listeners"]] == ["b"]
    assert after.spec["tags"] == ["y"]


async def test_before_first_apply_can_be_migrated(bench):
    await once_written(bench, spec={"note": "x"})
    await bench.raw(
        "PATCH", WIDGET.path(bench.namespace, "w"), {"metadata": {"managedFields": [{}]}}, "merge-patch"
    )  # fmt: skip
    live = await apply(bench.writer, WIDGET("w", bench.namespace, spec={"size": 1}), adopt=True)
    assert ("before-first-apply", "Update") in entries(live)
    await migrate(bench.writer, WIDGET, live, fields=["spec"], managers=["before-first-apply"])
    after = await apply(bench.writer, WIDGET("w", bench.namespace, spec={"size": 2}))
    assert after.spec == {"size": 2}


async def test_migration_of_a_deleted_object_is_rejected(bench):
    old = await once_written(bench)
    await bench.other.delete(WIDGET, "w", bench.namespace)
    with pytest.raises(ObjectDeleted):
        await migrate(bench.writer, WIDGET, old, fields=["spec"], managers=[OLD])


async def test_migration_with_a_lost_answer_reports_what_moved(bench):
    widget = await bench.other.create(WIDGET("w", bench.namespace, spec={"note": "x"}), field_manager="old")
    bench.wire.lost = 1
    done = await migrate(bench.writer, WIDGET, widget, fields=["spec.note"], managers=["old"])
    assert [path.removeprefix(".") for path in done.moved] == ["spec.note"]


async def test_entries_of_subresources_do_not_move(bench):
    widget = await bench.widget(spec={"note": "x"})
    widget = await bench.merge(widget, {"status": {"phase": "Old"}}, subresource="status", manager="old")
    done = await migrate(bench.writer, WIDGET, widget, fields=["status.phase"], managers=["old"])
    assert done.moved == ()
    assert done.object["metadata"]["managedFields"] == widget["metadata"]["managedFields"]


async def test_webhook_rejection_is_raised_unchanged(bench, monkeypatch):
    """The error has no causes, like that of a failed test."""
    widget = await bench.widget(spec={"note": "a"})

    async def denied(*args, **options):
        raise Invalid({"reason": "Invalid", "code": 422, "message": "not on Fridays"})

    monkeypatch.setattr(bench.client, "patch", denied)
    with pytest.raises(Invalid, match="not on Fridays"):
        await migrate(bench.writer, WIDGET, widget, fields=["spec.note"], managers=["maker"])
