"""The memory of an operator does not grow with the number of deleted objects."""

import asyncio
import collections

import fairlead as fl

Thing = fl.kind("test.example.com/v1", "Thing")


def test_deleted_objects_leave_no_memory_behind(virtually):
    """Deleted objects with unique names, some of them failing or migrated, leave no entry in any container."""

    async def test(bed):
        async def reconcile(obj, ctx):
            await ctx.migrate(obj, fields=["spec.size"], managers=["somebody-else"])
            await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))
            if obj.spec.get("bad"):
                raise ValueError("no such colour")

        async def leave(obj, ctx):
            for child in ctx.children(fl.ConfigMap):
                await ctx.delete(child)

        op = fl.Operator("tester")
        op.reconcile(Thing, owns=[fl.ConfigMap])(reconcile)
        op.cleanup(Thing)(leave)

        async def come(names):
            for name in names:
                await bed.make(name, spec={"bad": name.endswith("5")})
            await asyncio.sleep(20)

        async def go(names):
            for name in names:
                await bed.client.delete(Thing, name, "default")
            await running.wait_until_idle()
            return await deep_size(running)

        async with bed.running(op) as running:
            await come(["first"])
            before = await go(["first"])
            names = [f"thing-{number}" for number in range(40)]
            await come(names)
            assert await deep_size(running) > before + len(names)
            assert await go(names) == before

    virtually(test)


async def deep_size(running):
    """Return the number of entries in all containers of the run, without Events, whose number is limited."""
    await asyncio.sleep(120)  # Bookmarks end the overlay of own writes.
    named = vars(running.services) | vars(running)
    todo = [named[name] for name in named.keys() - {"recorder", "_recorder", "metrics", "services"}]
    seen, count, ours = set(), 0, ("fairlead.cache", "fairlead.queue", "fairlead.writes", "fairlead.runtime")
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict | list | set | collections.deque):
            count += len(one)
            todo += [*one.keys(), *one.values()] if isinstance(one, dict) else one
        elif type(one).__module__.startswith(ours):
            names = [*getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ())]
            todo += [getattr(one, name) for name in names if name != "_services"]
    return count
