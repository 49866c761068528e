"""The diff of a dry run."""

import asyncio
import io

import pytest
from rich.console import Console

import fairlead as fl
from fairlead.api.history import WRITTEN, FieldChange, History, ObjectRef
from fairlead.report.diff import DryRunDiff

OBJECT = ObjectRef("ConfigMap", "default", "a", "v1")


def print_diff(*records, **console):
    output, history = io.StringIO(), History(fl.World().clock, "tester")
    diff = DryRunDiff(Console(file=output, highlight=False, **console))
    diff.subscribe(history)
    for record in records:
        history.record(WRITTEN, "apply", object=OBJECT, is_dry_run=True, **record)
    return diff, output.getvalue()


def test_changes_are_printed_as_old_and_new_lines():
    fields = (FieldChange("data.text", "old", "new"), FieldChange("metadata.labels", None, {"a": "b"}))
    diff, printed = print_diff({"outcome": "changed", "fields": fields})
    assert printed.splitlines() == [
        "@ ConfigMap default/a would change",
        "- data.text: old",
        "+ data.text: new",
        "+ metadata.labels:",
        "+   a: b",
    ]
    assert diff.changed == {OBJECT}


def test_equal_diff_is_printed_once_and_unchanged_objects_are_not_printed():
    change = {"outcome": "changed", "fields": (FieldChange("data.text", "old", "new"),)}
    _, printed = print_diff(change, change, {"outcome": "unchanged"}, {"outcome": "Conflict"})
    assert printed.count("would change") == 1
    diff, printed = print_diff({"outcome": "unchanged"})
    assert (diff.changed, printed) == (set(), "")


@pytest.mark.parametrize(("outcome", "verb"), [("created", "created"), ("deleted", "deleted"), ("deleting", "deleted")])
def test_created_and_deleted_objects_are_named(outcome, verb):
    assert print_diff({"outcome": outcome})[1] == f"@ ConfigMap default/a would be {verb}\n"


def test_colours_are_used_only_on_a_terminal_without_no_color(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    change = {"outcome": "changed", "fields": (FieldChange("data.text", "old", "new"),)}
    assert "\x1b[32m" in print_diff(change, force_terminal=True)[1]
    assert "\x1b" not in print_diff(change)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in print_diff(change, force_terminal=True)[1]


def test_text_of_objects_cannot_control_the_terminal():
    evil = FieldChange("data.\x1b[2J", "[red]old\x1b[31m", "new\rfake")
    _, printed = print_diff({"outcome": "changed", "fields": (evil,)})
    assert "\x1b" not in printed
    assert "\r" not in printed
    assert "[red]" in printed


async def test_dry_run_prints_what_each_write_would_change(api):
    """The diff of a create, a change and a delete is the same on both servers, and Secrets are redacted."""
    thing = fl.ConfigMap
    op, output = fl.Operator("tester"), io.StringIO()

    @op.reconcile(fl.select(thing, labels="role=primary"), watches={fl.Secret: None}, ready=None)
    async def reconcile(obj, ctx):
        await ctx.apply(fl.Secret("new", stringData={"password": "hunter2"}))
        await ctx.unguarded.patch(
            fl.Secret, "existing", obj.namespace, {"stringData": {"b": "hunter3"}}, type="application/merge-patch+json"
        )
        live = await ctx.live.get(fl.Secret, "leftover")
        await ctx.delete(live)

    from fairlead.client.client import Client

    client = Client(api.transport(), fl.World())
    for name in ("existing", "leftover"):
        await client.create(fl.Secret(name, api.namespace, stringData={"a": "hunter2"}))
    await client.create(thing("primary", api.namespace, labels={"role": "primary"}))
    diff = DryRunDiff(Console(file=output, highlight=False, width=200))
    subscribers = [lambda running: diff.subscribe(running.history)]
    async with op.running(
        api.transport(), namespaces=[api.namespace], dry_run=True, tries=1, subscribers=subscribers
    ) as running:
        await asyncio.wait_for(running.wait_until_idle(), 20)
        assert running.failures == {}
    lines = output.getvalue().replace(f"{api.namespace}/", "").splitlines()
    assert "@ Secret new would be created" in lines
    assert "+   password: <redacted>" in lines
    assert lines[lines.index("@ Secret existing would change") + 1] == "+ data.b: <redacted>"
    assert "@ Secret leftover would be deleted" in lines
    assert {ref.name for ref in diff.changed} == {"new", "existing", "leftover"}
    assert {obj.name for obj in (await client.list(fl.Secret, api.namespace)).items} >= {"existing", "leftover"}
    assert "new" not in {obj.name for obj in (await client.list(fl.Secret, api.namespace)).items}
