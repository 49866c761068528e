"""The client of an operator records each of its writes in the cache, once, and nothing else records a write."""

import contextlib

import fairlead as fl
from fairlead.cache import Cache
from fairlead.client.client import PatchType

Thing = fl.kind("test.example.com/v1", "Thing")


def test_each_own_write_is_recorded_in_the_cache_exactly_once(virtually, monkeypatch):
    recorded = []
    writing = Cache.writing

    @contextlib.contextmanager
    def counted(self, kind, namespace):
        recorded.append(kind.kind)
        with writing(self, kind, namespace) as own:
            yield own

    monkeypatch.setattr(Cache, "writing", counted)
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

    async def test(bed):
        await bed.make("x", spec={"turn": 1})
        async with bed.running(op) as running:
            await running.wait_until_idle()
            await bed.edit("x", spec={"turn": 2})
            await running.wait_until_idle()
            await bed.client.delete(Thing, "x", "default")
            await running.wait_until_idle()
        writes = [path for method, path, _ in bed.wire.requests if method != "GET" and "/events" not in path]
        assert len(writes) >= 8
        assert len(recorded) == len(writes)

    virtually(test)
