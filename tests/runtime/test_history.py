"""The history of a run: which records a pass emits, and why it ran."""

import asyncio

import fairlead as fl
from fairlead.api.history import ENDED, POINTS, READ, REQUEST, SKIPPED, WOKEN, WRITTEN, History
from fairlead.api.world import SystemClock
from fairlead.client.client import Client, PatchType
from fairlead.runtime.wakes import MAX_WAKES, Wake, Wakes

Thing = fl.kind("test.example.com/v1", "Thing")
Text = fl.ConfigMap


def record_into(records, *points):
    """Return a subscriber of a run that appends the records to a list."""
    return lambda running: running.history.subscribe(records.append, points or POINTS)


def of(records, *points):
    return [record for record in records if record.point in points]


def make_operator(text="Hello", **options):
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[Text], **options)
    async def reconcile(obj, ctx):
        ctx.get(Text, "absent")
        await ctx.apply(Text(obj.name, data={"text": obj.spec.get("text", text)}))

    return op


def test_first_pass_is_woken_reads_writes_and_ends(run_in_virtual_time):
    async def test(cluster):
        records = []
        await cluster.create("a")
        async with cluster.running(make_operator(), subscribers=[record_into(records)]) as running:
            await running.wait_until_idle()
        first_id = records[[record.point for record in records].index(WOKEN)].pass_id
        first = [record for record in records if record.pass_id == first_id and record.point != REQUEST]
        assert [record.point for record in first] == [WOKEN, READ, READ, WRITTEN, WRITTEN, ENDED]
        woken, primary, absent, child, status, ended = first
        assert {(str(record.primary), record.actor) for record in first} == {("Thing default/a", "tester/thing")}
        assert [cause.source for cause in woken.causes] == ["start"]
        assert (str(primary.object), primary.source, primary.outcome) == ("Thing default/a", "cache", "found")
        assert primary.version
        assert (str(absent.object), absent.outcome) == ("ConfigMap default/absent", "absent")
        assert (child.verb, str(child.object), child.outcome) == ("apply", "ConfigMap default/a", "created")
        assert ("data", None, {"text": "Hello"}) in child.fields
        assert (status.verb, status.subresource, status.outcome) == ("patch", "status", "changed")
        assert status.version_before == primary.version
        assert {change.path for change in status.fields} == {"status"}
        assert (ended.outcome, ended.reason, ended.next_look) == ("success", "Reconciled", None)

    run_in_virtual_time(test)


def test_changed_child_has_field_paths_and_an_unchanged_one_is_skipped(run_in_virtual_time):
    async def test(cluster):
        await cluster.create("a", spec={"text": "one"})
        async with cluster.running(make_operator()) as running:
            await running.wait_until_idle()
            records = []
            unsubscribe = running.history.subscribe(records.append)
            await cluster.patch_thing("a", spec={"text": "two"})
            await asyncio.sleep(1)
            (child,) = [record for record in of(records, WRITTEN) if record.object.kind == "ConfigMap"]
            assert child.fields == (("data.text", "one", "two"),)
            assert int(child.version) > int(child.version_before) > 0
            records.clear()
            running.resync()
            await asyncio.sleep(1)
            assert [(record.verb, record.object.kind, record.subresource) for record in of(records, SKIPPED)] == [
                ("apply", "ConfigMap", ""),
                ("patch", "Thing", "status"),
            ]
            assert of(records, WRITTEN) == []
            records.clear()
            unsubscribe()
            running.resync()
            await asyncio.sleep(1)
            assert records == []

    run_in_virtual_time(test)


def test_causes_distinguish_own_writes_from_those_of_others(run_in_virtual_time):
    async def test(cluster):
        records = []
        await cluster.create("a")
        async with cluster.running(make_operator(), subscribers=[record_into(records, WOKEN)]) as running:
            await running.wait_until_idle()
            echoes = [cause for record in records[1:] for cause in record.causes]
            assert {(cause.source, cause.event, str(cause.object)) for cause in echoes} == {
                ("child", "added", "ConfigMap default/a"),
                ("primary", "modified", "Thing default/a"),
            }
            assert all(cause.is_own for cause in echoes)

            records.clear()
            await cluster.patch_thing("a", spec={"text": "two"})
            await asyncio.sleep(1)
            (edit,) = records[0].causes
            assert (edit.source, edit.event, edit.is_own, edit.changed) == (
                "primary", "modified", False, ("generation",),
            )  # fmt: skip
            assert edit.version

            records.clear()
            await cluster.patch_thing("a", metadata={"labels": {"b": "c"}, "annotations": {"d": "e"}})
            await asyncio.sleep(1)
            assert records[0].causes[0].changed == ("labels", "annotations")

            records.clear()
            await cluster.client.delete(Text, "a", "default")
            await asyncio.sleep(1)
            (deleted,) = records[0].causes
            assert (deleted.source, deleted.event, deleted.is_own) == ("child", "deleted", False)

    run_in_virtual_time(test)


def test_causes_name_resync_retry_conflict_and_requeue_after(run_in_virtual_time):
    async def test(cluster):
        records, errors = [], [fl.RequeueAfter(30), OSError("down"), OSError("down")]
        op = fl.Operator("tester")

        @op.reconcile(Thing, resync=600, ready=None)
        async def reconcile(obj, ctx):
            if errors:
                raise errors.pop(0)

        await cluster.create("a")
        async with cluster.running(op, subscribers=[record_into(records, WOKEN, ENDED)]):
            await asyncio.sleep(700)
        causes = [tuple(cause[0] for cause in record.causes) for record in of(records, WOKEN)]
        expected = ["start", "retry", "retry", "requeue_after", "resync"]
        assert [source for (source,) in causes if source != "primary"] == expected
        retries = [cause.attempt for record in of(records, WOKEN) for cause in record.causes if cause.source == "retry"]
        assert retries == [1, 2]
        ends = of(records, ENDED)
        assert (ends[0].outcome, ends[0].next_look) == ("requeue_after", 30)
        failed = [record for record in ends if record.outcome == "error"]
        assert len(failed) == 2
        assert all(isinstance(record.error, OSError) and 0 < record.next_look < 1 for record in failed)

    run_in_virtual_time(test)


def test_mapped_change_names_the_object_that_caused_the_pass(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        records = []

        @op.reconcile(Thing, watches={Text: lambda obj: ["a"]}, ready=None)
        async def reconcile(obj, ctx): ...

        await cluster.create("a")
        async with cluster.running(op, subscribers=[record_into(records, WOKEN)]) as running:
            await running.wait_until_idle()
            records.clear()
            await cluster.client.create(Text("settings", "default"))
            await asyncio.sleep(1)
        (cause,) = records[0].causes
        assert (cause.source, cause.event, str(cause.object)) == ("mapped", "added", "ConfigMap default/settings")

    run_in_virtual_time(test)


def test_values_of_secrets_do_not_reach_the_history(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        records = []

        @op.reconcile(Thing, owns=[fl.Secret], ready=None)
        async def reconcile(obj, ctx):
            await ctx.apply(fl.Secret(obj.name, stringData={"password": obj.spec["password"]}))

        await cluster.create("a", spec={"password": "hunter2"})
        async with cluster.running(op, subscribers=[record_into(records, WRITTEN)]) as running:
            await running.wait_until_idle()
            await cluster.patch_thing("a", spec={"password": "hunter3"})
            await asyncio.sleep(1)
        created, changed = (record for record in records if record.object.kind == "Secret")
        assert ("data", None, {"password": "<redacted>"}) in created.fields
        assert changed.fields == (("data.password", "<redacted>", "<redacted>"),)
        assert "aHVudGVy" not in repr(records)

    run_in_virtual_time(test)


def test_failed_write_is_a_record_with_the_reason(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        records = []

        @op.reconcile(Thing, owns=[Text], ready=None)
        async def reconcile(obj, ctx):
            await ctx.apply(Text(obj.name, data={"a": 1}))

        await cluster.create("a")
        async with cluster.running(op, tries=1, subscribers=[record_into(records, WRITTEN, ENDED)]) as running:
            await running.wait_until_idle()
        written, ended = records[0], records[-1]
        assert written.outcome not in ("created", "changed")
        assert written.message
        assert ended.outcome == "error"

    run_in_virtual_time(test)


def test_deletes_and_requests_are_records_of_the_pass(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        records = []

        @op.reconcile(Thing, watches={Text: None}, ready=None)
        async def reconcile(obj, ctx):
            live = await ctx.live.get(Text, "old")
            if live is not None:
                await ctx.delete(live)

        await cluster.client.create(Text("old", "default"))
        await cluster.create("a")
        async with cluster.running(op, subscribers=[record_into(records)]) as running:
            await running.wait_until_idle()
        woken = of(records, WOKEN)[0]
        live = next(record for record in of(records, READ) if record.source == "live")
        assert (str(live.object), live.outcome) == ("ConfigMap default/old", "found")
        deleted = of(records, WRITTEN)[0]
        assert (deleted.verb, deleted.outcome, str(deleted.object)) == ("delete", "deleted", "ConfigMap default/old")
        requests = [record for record in of(records, REQUEST) if record.pass_id == woken.pass_id]
        path = "/api/v1/namespaces/default/configmaps/old"
        assert [(record.verb, record.path, record.outcome) for record in requests if record.path == path] == [
            ("GET", path, "200"),
            ("DELETE", path, "200"),
        ]

    run_in_virtual_time(test)


def test_without_subscribers_no_record_is_built(run_in_virtual_time, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("a record was built")

    monkeypatch.setattr("fairlead.runtime.running.DEFAULT_SUBSCRIBERS", ())
    monkeypatch.setattr("fairlead.api.history.Record", fail)
    monkeypatch.setattr("fairlead.cache.recording.find_changes", fail)
    monkeypatch.setattr("fairlead.runtime.wakes.Wake.to_cause", fail)
    monkeypatch.setattr(History, "_deliver", fail)

    async def test(cluster):
        await cluster.create("a")
        async with cluster.running(make_operator()) as running:
            for point in POINTS:
                assert not running.history.wants(point)
            await running.wait_until_idle()
            assert running.failures == {}
            assert (await cluster.get_thing("a")).is_true("Ready")

    run_in_virtual_time(test)


def test_failing_subscriber_affects_neither_the_pass_nor_other_subscribers(caplog):
    history, records = History(SystemClock(), "tester"), []

    def fail(record):
        raise ZeroDivisionError

    history.subscribe(fail)
    history.subscribe(records.append, [ENDED])
    history.record(ENDED, "reconcile")
    history.record(ENDED, "reconcile")
    history.record(WOKEN, "reconcile")
    assert [(record.point, record.actor) for record in records] == [(ENDED, "tester")] * 2
    assert caplog.text.count("Traceback") == 1


def test_wakes_of_a_key_are_bounded_and_counted():
    wakes = Wakes()
    for _ in range(100):
        wakes.add("key", Wake("resync"))
    wakes.delay("key", Wake("requeue_after", seconds=60), due=60)
    assert len(wakes.peek("key")) == MAX_WAKES
    taken, more = wakes.take("key", now=0)
    assert (len(taken), more) == (MAX_WAKES, 100 - MAX_WAKES)
    assert wakes.take("key", now=30) == ([], 0)
    (due,), _ = wakes.take("key", now=60)
    assert due.source == "requeue_after"
    assert wakes.take("key", now=90) == ([], 0)


async def test_own_writes_are_recognized_although_the_event_may_precede_the_answer(api):
    """On a real server, the watch often reports a write before the client has its answer."""
    client, records = Client(api.transport(), fl.World()), []
    op = fl.Operator("tester")

    @op.reconcile(fl.select(fl.Secret, labels="role=primary"), owns=[Text], ready=None)
    async def reconcile(obj, ctx):
        await ctx.apply(Text(obj.name, data={"text": obj["data"]["text"]}))

    names = [f"own-{number}" for number in range(10)]
    for name in names:
        await client.create(fl.Secret(name, api.namespace, labels={"role": "primary"}, data={"text": "b25l"}))
    subscribers = [record_into(records, WOKEN, WRITTEN)]
    async with op.running(api.transport(), namespaces=[api.namespace], subscribers=subscribers) as running:
        await running.wait_until_idle()
        for name in names:
            change = {"data": {"text": "dHdv"}}
            changed = await client.patch(fl.Secret, name, api.namespace, change, type=PatchType.MERGE)
        await running.wait_until_seen(changed)
        await running.wait_until_idle()
    causes = [cause for record in of(records, WOKEN) for cause in record.causes]
    assert {cause.is_own for cause in causes if cause.source == "child"} == {True}
    assert {cause.is_own for cause in causes if cause.source == "primary"} == {False}
    changes = [record for record in of(records, WRITTEN) if record.outcome == "changed"]
    assert [record.fields for record in changes] == [(("data.text", "b25l", "dHdv"),)] * len(names)
    assert "created" in {record.outcome for record in of(records, WRITTEN)}
