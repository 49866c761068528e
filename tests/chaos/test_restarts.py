"""Tests of a cache and an operator while the server is killed and restarted, with its data or with an old backup."""

import asyncio
import contextlib

import pytest

import fairlead as fl
from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing

Thing = fl.kind("chaos.example.com/v1", "Thing")


async def until(condition):
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)


async def write_until_stopped(client, acknowledged):
    """Write objects until stopped, and record the acknowledged writes."""
    number = 0
    while True:
        number += 1
        with contextlib.suppress(ApiError, UnknownOutcome, OSError):
            await client.create(fl.ConfigMap(f"w-{number}", "default", data={"n": str(number)}))
            acknowledged.append(f"w-{number}")
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("memory", ["remembers", "forgets"])
def test_cache_equals_the_server_after_a_kill_and_restart(server_under_test, watched, memory, caplog):
    if memory == "forgets" and not hasattr(server_under_test, "forget"):
        pytest.skip("nothing but time makes a server in a process of its own forget")
    caplog.set_level("INFO")

    async def test(server_under_test):
        client = Client(server_under_test.transport(), server_under_test.world)
        for name in ("stays", "goes", "again"):
            await client.create(fl.ConfigMap(name, "default", data={"before": "yes"}))
        async with watched(server_under_test, fl.ConfigMap, namespaces=["default"]) as cache:
            acknowledged = []
            writer = asyncio.create_task(write_until_stopped(client, acknowledged))
            await until(lambda: len(acknowledged) > 20)
            await server_under_test.crash()
            await until(lambda: cache.view.health()[0].error)  # The watch reports the failure.
            writer.cancel()
            cache.gate.shut()  # The cache must not see the following changes one by one.
            await server_under_test.recover()
            await client.delete(fl.ConfigMap, "goes", "default")
            await client.delete(fl.ConfigMap, "again", "default")
            await client.create(fl.ConfigMap("again", "default", data={"after": "yes"}))
            if memory == "forgets":
                await server_under_test.forget()
            cache.gate.open()
            await cache.assert_converged(await client.create(fl.ConfigMap("marker", "default")))
            assert ("listing again" in caplog.text) == (memory == "forgets")
            assert cache.deleted() == ["again", "goes"]
            assert {obj.name for obj in cache.view.list()} >= {*acknowledged, "stays", "again", "marker"}
            assert cache.view.get("again", "default")["data"] == {"after": "yes"}

    server_under_test.run(test)


def test_cache_follows_a_server_restored_from_a_backup(server_under_test, watched):
    async def test(server_under_test):
        client = Client(server_under_test.transport(), server_under_test.world)
        for name in ("kept", "edited", "deleted since"):
            await client.create(fl.ConfigMap(name.replace(" ", "-"), "default", data={"turn": "old"}))
        await server_under_test.crash()
        server_under_test.back_up()
        await server_under_test.recover()
        async with watched(server_under_test, fl.ConfigMap, namespaces=["default"]) as cache:
            for number in range(400):  # more writes than a restart makes
                patch = {"data": {"turn": str(number)}}
                last = await client.patch(fl.ConfigMap, "edited", "default", patch, type=PatchType.MERGE)
            await client.delete(fl.ConfigMap, "deleted-since", "default")
            last = await client.create(fl.ConfigMap("made-since", "default"))
            await cache.view.wait_until(last.resource_version)
            cache.changes.clear()
            was = {obj.name: (obj.uid, int(obj.resource_version)) for obj in cache.view.list()}
            await server_under_test.crash()
            server_under_test.restore()
            await server_under_test.recover()
            assert int((await client.list(fl.ConfigMap, "default")).resource_version) < int(last.resource_version)
            await until(lambda: cache.view.get("made-since", "default") is None)
            assert cache.deleted() == ["made-since"]
            assert cache.view.get("deleted-since", "default")["data"] == {"turn": "old"}
            assert cache.view.get("edited", "default")["data"] == {"turn": "old"}
            cache.changes[:0] = [(name, None, version) for name, version in was.items()]
            await cache.assert_converged(await client.create(fl.ConfigMap("marker", "default")))

    server_under_test.run(test)


def test_operator_continues_after_its_server_was_killed_and_restarted(server_under_test):
    async def test(server_under_test):
        client = Client(server_under_test.transport(), server_under_test.world)
        await install_missing(client, [Thing])
        for number in range(5):
            await client.create(Thing(f"t{number}", "default", spec={"turn": 0}))
        op, cleaned_names = fl.Operator("chaos"), []

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"turn": str(obj.spec["turn"])}))
            ctx.status(turn=obj.spec["turn"])

        @op.cleanup(Thing)
        async def cleanup(obj, ctx):
            cleaned_names.append(obj.name)

        async def edit(name, round_number):
            await client.patch(Thing, name, "default", {"spec": {"turn": round_number}}, type=PatchType.MERGE)

        async with op.running(
            server_under_test.transport(), server_under_test.world, namespaces=["default"]
        ) as running:
            await running.wait_until_idle()
            for number in range(5):
                await edit(f"t{number}", 1)
            await server_under_test.crash()  # The edits are still on their way.
            await until(lambda: all(health.error for health in running.services.watched.cache.health()))
            await server_under_test.recover()
            await edit("t0", 2)
            await client.delete(Thing, "t1", "default")
            await client.delete(fl.ConfigMap, "t2", "default")
            last = await client.create(Thing("t5", "default", spec={"turn": 3}))
            async with asyncio.timeout(120):
                await running.wait_until_seen(last)
                await running.wait_until_idle()
            assert await running.find_differences() == []
            assert running.failures == {}
            assert running.readiness_problems().keys() <= {"loop"}  # An overloaded machine may block the loop.
            assert cleaned_names == ["t1"]
            edits_by_name = {"t0": 2, "t2": 1, "t3": 1, "t4": 1, "t5": 3}
            things = {thing.name: thing for thing in (await client.list(Thing, "default")).items}
            assert {name: thing.status["turn"] for name, thing in things.items()} == edits_by_name
            owned_maps = [
                child for child in (await client.list(fl.ConfigMap, "default")).items if child.name in edits_by_name
            ]
            assert {child.name: child["data"]["turn"] for child in owned_maps} == {
                name: str(round_number) for name, round_number in edits_by_name.items()
            }

    server_under_test.run(test)
