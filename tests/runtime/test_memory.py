"""Tests that the memory of an operator does not grow with the number of deleted objects."""

import asyncio
import collections

import fairlead as fl
from fairlead.cache.own_versions import OwnVersions

Thing = fl.kind("test.example.com/v1", "Thing")


def test_deleted_objects_leave_no_memory_behind(run_in_virtual_time):
    """Tests that deleted objects with unique names leave no entry in any container.

    Some of them fail or are migrated.
    """

    async def test(cluster):
        async def reconcile(obj, ctx):
            await ctx.migrate(obj, fields=["spec.size"], managers=["somebody-else"])
            await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))
            if obj.spec.get("bad"):
                raise ValueError("no such colour")

        async def cleanup(obj, ctx):
            for child in ctx.children(fl.ConfigMap):
                await ctx.delete(child)

        op = fl.Operator("tester")
        op.reconcile(Thing, owns=[fl.ConfigMap])(reconcile)
        op.cleanup(Thing)(cleanup)

        async def create_things(names):
            for name in names:
                await cluster.create(name, spec={"bad": name.endswith("5")})
            await asyncio.sleep(20)

        async def delete_things(names):
            for name in names:
                await cluster.client.delete(Thing, name, "default")
            await running.wait_until_idle()
            return await count_container_entries(running)

        async with cluster.running(op) as running:
            await create_things(["first"])
            size_before = await delete_things(["first"])
            names = [f"thing-{number}" for number in range(40)]
            await create_things(names)
            assert await count_container_entries(running) > size_before + len(names)
            assert await delete_things(names) == size_before

    run_in_virtual_time(test)


async def count_container_entries(running):
    """Return the number of entries in all containers of the run.

    Events and own versions are excluded because their number is limited.
    """
    await asyncio.sleep(120)  # Bookmarks end the overlay of own writes.
    attributes = vars(running.services) | vars(running)
    pending = [attributes[name] for name in attributes.keys() - {"recorder", "_recorder", "metrics", "services"}]
    seen_ids, count, own_modules = set(), 0, ("fairlead.cache", "fairlead.queue", "fairlead.writes", "fairlead.runtime")
    while pending:
        value = pending.pop()
        if id(value) in seen_ids:
            continue
        seen_ids.add(id(value))
        if isinstance(value, OwnVersions):
            continue
        if isinstance(value, dict | list | set | collections.deque):
            count += len(value)
            pending += [*value.keys(), *value.values()] if isinstance(value, dict) else value
        elif type(value).__module__.startswith(own_modules):
            names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
            pending += [getattr(value, name) for name in names if name != "_services"]
    return count
