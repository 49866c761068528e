"""Tests that only the operator's client records its writes in the cache, and records every write once."""

import contextlib

import fairlead as fl
from fairlead.cache import Cache
from fairlead.client.client import PatchType

Thing = fl.kind("test.example.com/v1", "Thing")


def test_each_own_write_is_recorded_in_the_cache_exactly_once(run_in_virtual_time, monkeypatch):
    recorded_writes = []
    original_writing = Cache.writing

    @contextlib.contextmanager
    def recording_writing(self, kind, namespace):
        recorded_writes.append(kind.kind)
        with original_writing(self, kind, namespace) as own_write:
            yield own_write

    monkeypatch.setattr(Cache, "writing", recording_writing)
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap])
    async def reconcile(obj, ctx):
        child = await ctx.apply(fl.ConfigMap("child", data={"turn": str(obj.spec["turn"])}))
        await ctx.create(fl.ConfigMap("shared", data={}))
        await ctx.decide(lambda draft: draft.metadata.setdefault("annotations", {"decided": "yes"}))
        await ctx.unguarded.patch(fl.ConfigMap, "shared", "default", {"data": {"a": "b"}}, type=PatchType.MERGE)
        if obj.spec["turn"] == 2:
            await ctx.delete(child)
        ctx.status(turn=obj.spec["turn"])

    @op.cleanup(Thing)
    async def cleanup(obj, ctx):
        pass

    async def test(cluster):
        await cluster.create("x", spec={"turn": 1})
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            await cluster.patch_thing("x", spec={"turn": 2})
            await running.wait_until_idle()
            await cluster.client.delete(Thing, "x", "default")
            await running.wait_until_idle()
        writes = [path for method, path, _ in cluster.transport.requests if method != "GET" and "/events" not in path]
        assert len(writes) >= 8
        assert len(recorded_writes) == len(writes)

    run_in_virtual_time(test)
