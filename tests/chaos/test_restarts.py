"""The server is killed and restarted, with its data or with an old backup, under a cache and under an operator."""

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


async def write_on(client, acknowledged):
    """Write until stopped, and record the acknowledged writes."""
    number = 0
    while True:
        number += 1
        with contextlib.suppress(ApiError, UnknownOutcome, OSError):
            await client.create(fl.ConfigMap(f"w-{number}", "default", data={"n": str(number)}))
            acknowledged.append(f"w-{number}")
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("memory", ["remembers", "forgets"])
def test_cache_equals_the_server_after_a_kill_and_restart(machine, watched, memory, caplog):
    if memory == "forgets" and not hasattr(machine, "forget"):
        pytest.skip("nothing but time makes a server in a process of its own forget")
    caplog.set_level("INFO")

    async def test(machine):
        client = Client(machine.transport(), machine.world)
        for name in ("stays", "goes", "again"):
            await client.create(fl.ConfigMap(name, "default", data={"before": "yes"}))
        async with watched(machine, fl.ConfigMap, namespaces=["default"]) as mine:
            acknowledged = []
            writer = asyncio.create_task(write_on(client, acknowledged))
            await until(lambda: len(acknowledged) > 20)
            await machine.crash()
            await until(lambda: mine.view.health()[0].error)  # The watch reports the failure.
            writer.cancel()
            mine.gate.shut()  # The cache must not see the following changes one by one.
            await machine.recover()
            await client.delete(fl.ConfigMap, "goes", "default")
            await client.delete(fl.ConfigMap, "again", "default")
            await client.create(fl.ConfigMap("again", "default", data={"after": "yes"}))
            if memory == "forgets":
                await machine.forget()
            mine.gate.open()
            await mine.assert_true(await client.create(fl.ConfigMap("marker", "default")))
            assert ("listing again" in caplog.text) == (memory == "forgets")
            assert mine.deleted() == ["again", "goes"]
            assert {obj.name for obj in mine.view.list()} >= {*acknowledged, "stays", "again", "marker"}
            assert mine.view.get("again", "default")["data"] == {"after": "yes"}

    machine.run(test)


def test_cache_follows_a_server_restored_from_a_backup(machine, watched):
    async def test(machine):
        client = Client(machine.transport(), machine.world)
        for name in ("kept", "edited", "deleted since"):
            await client.create(fl.ConfigMap(name.replace(" ", "-"), "default", data={"turn": "old"}))
        await machine.crash()
        machine.back_up()
        await machine.recover()
        async with watched(machine, fl.ConfigMap, namespaces=["default"]) as mine:
            for number in range(400):  # more writes than a restart makes
                patch = {"data": {"turn": str(number)}}
                last = await client.patch(fl.ConfigMap, "edited", "default", patch, type=PatchType.MERGE)
            await client.delete(fl.ConfigMap, "deleted-since", "default")
            last = await client.create(fl.ConfigMap("made-since", "default"))
            await mine.view.wait_until(last.resource_version)
            mine.changes.clear()
            was = {obj.name: (obj.uid, int(obj.resource_version)) for obj in mine.view.list()}
            await machine.crash()
            machine.restore()
            await machine.recover()
            assert int((await client.list(fl.ConfigMap, "default")).resource_version) < int(last.resource_version)
            await until(lambda: mine.view.get("made-since", "default") is None)
            assert mine.deleted() == ["made-since"]
            assert mine.view.get("deleted-since", "default")["data"] == {"turn": "old"}
            assert mine.view.get("edited", "default")["data"] == {"turn": "old"}
            mine.changes[:0] = [(name, None, version) for name, version in was.items()]
            await mine.assert_true(await client.create(fl.ConfigMap("marker", "default")))

    machine.run(test)


def test_operator_continues_after_its_server_was_killed_and_restarted(machine):
    async def test(machine):
        client = Client(machine.transport(), machine.world)
        await install_missing(client, [Thing])
        for number in range(5):
            await client.create(Thing(f"t{number}", "default", spec={"turn": 0}))
        op, left = fl.Operator("chaos"), []

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"turn": str(obj.spec["turn"])}))
            ctx.status(turn=obj.spec["turn"])

        @op.cleanup(Thing)
        async def leave(obj, ctx):
            left.append(obj.name)

        async def edit(name, turn):
            await client.patch(Thing, name, "default", {"spec": {"turn": turn}}, type=PatchType.MERGE)

        async with op.running(machine.transport(), machine.world, namespaces=["default"]) as running:
            await running.wait_until_idle()
            for number in range(5):
                await edit(f"t{number}", 1)
            await machine.crash()  # The edits are still on their way.
            await until(lambda: all(health.error for health in running.services.watched.cache.health()))
            await machine.recover()
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
            assert left == ["t1"]
            turns = {"t0": 2, "t2": 1, "t3": 1, "t4": 1, "t5": 3}
            things = {thing.name: thing for thing in (await client.list(Thing, "default")).items}
            assert {name: thing.status["turn"] for name, thing in things.items()} == turns
            owned = [child for child in (await client.list(fl.ConfigMap, "default")).items if child.name in turns]
            assert {child.name: child["data"]["turn"] for child in owned} == {
                name: str(turn) for name, turn in turns.items()
            }

    machine.run(test)
