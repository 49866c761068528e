"""Tests that children match their parents after network and server faults, and that no requests follow."""

import asyncio
import random

import pytest

import fairlead as fl
from fairlead.server.faults import Fault, Plan

Thing = fl.kind("test.example.com/v1", "Thing")


FAULTS = [
    Fault(drop="before", probability=0.05, user_agent="tester*"),
    Fault(status=429, probability=0.05, user_agent="tester*"),
    Fault(status=503, probability=0.03, user_agent="tester*"),
    Fault(status=504, probability=0.03, user_agent="tester*"),
    Fault(status=500, probability=0.02, user_agent="tester*"),
    Fault(status=410, probability=0.05, verb="watch", user_agent="tester*"),
    Fault(delay=(0.0, 0.1), user_agent="tester*"),
    Fault(drop="after", probability=0.1, user_agent="tester*"),
    Fault(stale=2.0, probability=0.3, verb="watch", user_agent="tester*"),
    Fault(cut=(0.0, 60.0), probability=0.5, user_agent="tester*"),
]


@pytest.mark.parametrize("seed", range(8))
def test_children_match_their_parents_after_faults(run_in_virtual_time, seed, caplog):
    async def test(cluster):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def reconcile(obj, ctx):
            for child in obj.spec["children"]:
                await ctx.apply(fl.ConfigMap(f"{obj.name}-{child}", data={"turn": str(obj.spec["turn"])}))
            await ctx.prune(fl.ConfigMap)
            ctx.status(turn=obj.spec["turn"])

        @op.cleanup(Thing)
        async def cleanup(obj, ctx):
            ctx.log.debug("leaving")

        rng = random.Random(seed)

        def spec(round_number):
            return {"turn": round_number, "children": rng.sample("abcd", rng.randint(0, 4))}

        specs = {}
        for number in range(8):
            specs[f"t{number}"] = spec(0)
            await cluster.create(f"t{number}", spec=specs[f"t{number}"])
        async with cluster.running(op) as running:
            faults = cluster.server.inject(
                Plan(FAULTS, seed)
            )  # Not earlier: a failing discovery would delay the start.
            for round_number in range(1, 40):
                await asyncio.sleep(rng.expovariate(2))
                name = f"t{rng.randrange(10)}"
                if name not in specs:
                    specs[name] = spec(round_number)
                    await cluster.create(name, spec=specs[name])
                elif rng.random() < 0.15:
                    await cluster.client.delete(Thing, name, "default")
                    del specs[name]
                    await asyncio.sleep(40)  # Longer than any back-off, so its cleanup has run.
                else:
                    specs[name] = spec(round_number)
                    await cluster.patch_thing(name, spec=specs[name])
                if rng.random() < 0.2:
                    faults.cut()
                if rng.random() < 0.2 and (children := (await cluster.client.list(fl.ConfigMap, "default")).items):
                    await cluster.client.delete(fl.ConfigMap, rng.choice(children).name, "default")
            assert set(faults.counts) >= {"drop", "429", "delay"}
            cluster.server.inject(Plan())
            faults.cut()
            await asyncio.sleep(60)
            await running.wait_until_idle()
            assert running.failures == {}
            assert await running.find_differences() == []
            things = {thing.name: thing for thing in (await cluster.client.list(Thing, "default")).items}
            assert {name: thing.spec for name, thing in things.items()} == specs
            for thing in things.values():
                assert thing.is_true("Ready")
                assert thing.status["turn"] == thing.spec["turn"]
            children = {child.name: child for child in (await cluster.client.list(fl.ConfigMap, "default")).items}
            assert {name: child["data"]["turn"] for name, child in children.items()} == {
                f"{name}-{child}": str(spec["turn"]) for name, spec in specs.items() for child in spec["children"]
            }
            for child in children.values():
                assert child.metadata["ownerReferences"][0]["uid"] == things[child.name.split("-")[0]].uid
            request_count = len(cluster.transport.requests)
            running.resync()
            await running.wait_until_idle()
            assert len(cluster.transport.requests) == request_count, "and then it is quiet"

    run_in_virtual_time(test)
