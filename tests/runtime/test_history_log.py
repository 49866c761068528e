"""The log of an operator: what each level contains, and how repeated errors are counted."""

import asyncio
import logging

import pytest

import fairlead as fl
from fairlead.cli.verbosity import choose_levels

Thing = fl.kind("test.example.com/v1", "Thing")


@pytest.fixture
def logged(caplog):
    """Set the levels as -v does, and return a function that returns the lines logged since its last call."""
    changed = []

    def set_verbosity(verbose):
        for name, level in choose_levels(verbose, {}).items():
            logger = logging.getLogger(name)
            changed.append((logger, logger.level))
            logger.setLevel(level)

        def lines():
            messages = [record.getMessage() for record in caplog.records if record.name.startswith("fairlead")]
            caplog.clear()
            return messages

        return lines

    yield set_verbosity
    for logger, level in reversed(changed):
        logger.setLevel(level)


def make_operator():
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        if not obj.spec.get("text"):
            raise fl.Wait("NoText", "set spec.text")
        await ctx.apply(fl.ConfigMap(obj.name, data={"text": obj.spec["text"]}))
        ctx.status(length=len(obj.spec["text"]))

    @op.cleanup(Thing)
    async def clean(obj, ctx): ...

    return op


def test_default_level_logs_changes_conditions_and_cleanup(run_in_virtual_time, logged):
    lines = logged(0)

    async def test(cluster):
        async with cluster.running(make_operator()):
            await cluster.create("a")
            await asyncio.sleep(1)
            assert lines() == ["changed Thing a: metadata.finalizers", "Ready is now False: NoText, set spec.text"]

            await cluster.patch_thing("a", spec={"text": "one"})
            await asyncio.sleep(1)
            assert lines() == ["created ConfigMap a", "Ready is now True: Reconciled", "changed Thing a: status.length"]

            await cluster.patch_thing("a", spec={"text": "two"})
            await asyncio.sleep(1)
            assert lines() == ["changed ConfigMap a: data.text"]

            await cluster.client.delete(Thing, "a", "default")
            await asyncio.sleep(1)
            assert lines() == ["cleaned up: the finalizer is removed, and Thing default/a is deleted"]

    run_in_virtual_time(test)


def test_verbose_logs_causes_reads_skipped_writes_and_durations(run_in_virtual_time, logged):
    lines = logged(1)

    async def test(cluster):
        await cluster.create("a", spec={"text": "one"})
        async with cluster.running(make_operator()) as running:
            await running.wait_until_idle()
            first, *_ = lines()
            assert first == "woken by start: the object exists"

            running.resync()
            await asyncio.sleep(1)
            woken, read, *skipped, ended = lines()
            assert woken == "woken by resync"
            assert read.startswith("read Thing a from the cache at version ")
            assert "skipped apply of ConfigMap a: unchanged" in skipped
            assert ended == "ended after 0 ms: success (Reconciled)"

            await cluster.client.delete(fl.ConfigMap, "a", "default")
            await asyncio.sleep(1)
            messages = lines()
            assert messages[0] == "woken by child ConfigMap a deleted"
            assert "woken by child ConfigMap a added by this process" in messages

            await cluster.patch_thing("a", metadata={"labels": {"x": "y"}})
            await asyncio.sleep(1)
            assert lines()[0] == "woken by Thing a modified (labels)"

    run_in_virtual_time(test)


def test_twice_verbose_logs_each_request(run_in_virtual_time, logged):
    lines = logged(2)

    async def test(cluster):
        await cluster.create("a", spec={"text": "one"})
        async with cluster.running(make_operator()) as running:
            await running.wait_until_idle()

    run_in_virtual_time(test)
    assert "PATCH /api/v1/namespaces/default/configmaps/a 201 0 ms" in lines()


def test_repeated_error_is_logged_once_with_traceback_and_then_counted(run_in_virtual_time, caplog):
    async def test(cluster):
        op, broken = fl.Operator("tester"), True

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            if broken:
                raise KeyError("who")

        await cluster.create("a")
        async with cluster.running(op):
            await asyncio.sleep(1)
            await cluster.create("b")
            await asyncio.sleep(299)
            broken = False
            await asyncio.sleep(60)

    with caplog.at_level(logging.INFO):
        run_in_virtual_time(test)
    messages = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert messages[0] == "KeyError: 'who'"
    assert messages[1].startswith("KeyError: 'who' (traceback above, ")
    assert "test_history_log.py:" in messages[1]
    assert caplog.text.count("Traceback") == 1
    summaries = messages[2:]
    assert 3 <= len(summaries) <= 5
    assert "the same error, " in summaries[-1]
    assert summaries[-1].endswith(", for 2 objects")
    assert any(record.getMessage().startswith("succeeded after ") for record in caplog.records)


def test_failures_of_a_run_keep_the_type_of_the_exception(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            obj.spec["who"]

        await cluster.create("a")
        async with cluster.running(op, tries=1) as running:
            await running.wait_until_idle()
            assert list(running.failures.values()) == ["KeyError: 'who'"]

    run_in_virtual_time(test)


@pytest.mark.parametrize(
    ("verbose", "log_level", "levels"),
    [
        (0, {}, {"fairlead": logging.INFO}),
        (1, {}, {"fairlead": logging.DEBUG, "fairlead.client": logging.INFO}),
        (2, {}, {"fairlead": logging.DEBUG}),
        (3, {}, {"fairlead": logging.DEBUG}),
        (0, {"fairlead.client": logging.DEBUG}, {"fairlead": logging.INFO, "fairlead.client": logging.DEBUG}),
        (1, {"fairlead": logging.ERROR}, {"fairlead": logging.ERROR, "fairlead.client": logging.INFO}),
    ],
)
def test_log_level_overrides_verbosity(verbose, log_level, levels):
    assert choose_levels(verbose, log_level) == levels
