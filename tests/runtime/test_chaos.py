"""Whatever network and server do meanwhile, the world ends up as the controller wants it, and then it is quiet."""

import asyncio
import json
import random

import pytest

import fairlead as fl
from fairlead.client.transport import NotSent

Thing = fl.kind("test.example.com/v1", "Thing")


class Refused:
    warnings = ()

    def __init__(self, status, reason, retry_after):
        self.status = status
        self.headers = {"Retry-After": "1"} if retry_after else {}
        self.body = json.dumps({"kind": "Status", "code": status, "reason": reason, "message": reason}).encode()


class Cuttable:
    def __init__(self, inner, cut):
        self._inner = inner
        self._cut = cut
        self.status, self.headers = inner.status, inner.headers

    async def read(self):
        read = asyncio.ensure_future(self._inner.read())
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait([read, cut], return_when=asyncio.FIRST_COMPLETED)
            if not read.done():
                raise ConnectionResetError("cut")
            return read.result()
        finally:
            read.cancel()
            cut.cancel()
            await asyncio.gather(read, cut, return_exceptions=True)

    async def close(self):
        await self._inner.close()


class Unreliable:
    """While `bad`: loses requests and answers, refuses with 429, 500 and 503, delays, and cuts watches."""

    def __init__(self, inner, seed):
        self._inner = inner
        self._random = random.Random(seed)
        self._cut = asyncio.Event()
        self.bad = False
        self.requests = 0

    def cut(self):
        self._cut.set()
        self._cut = asyncio.Event()

    async def request(self, method, path, *, timeout=None, **rest):
        self.requests += 1
        fate = self._random.random() if self.bad else 1.0
        if fate < 0.05:
            raise NotSent("refused")
        if fate < 0.1:
            return Refused(429, "TooManyRequests", retry_after=True)
        if fate < 0.13:
            return Refused(503, "ServiceUnavailable", retry_after=self._random.random() < 0.5)
        if fate < 0.15:
            return Refused(500, "InternalError", retry_after=False)
        if self.bad:
            await asyncio.sleep(self._random.expovariate(20))
        answer = await self._inner.request(method, path, timeout=timeout, **rest)
        if fate < 0.25:
            raise ConnectionResetError("the answer was lost")
        return answer

    async def stream(self, path, **rest):
        if self.bad and self._random.random() < 0.2:
            raise NotSent("refused")
        return Cuttable(await self._inner.stream(path, **rest), self._cut)

    async def close(self): ...


@pytest.mark.parametrize("seed", range(8))
def test_children_follow_their_parents_through_every_kind_of_trouble(virtually, seed, caplog):
    async def test(bed):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def reconcile(obj, ctx):
            for child in obj.spec["children"]:
                await ctx.apply(fl.ConfigMap(f"{obj.name}-{child}", data={"turn": str(obj.spec["turn"])}))
            ctx.status(turn=obj.spec["turn"])

        @op.cleanup(Thing)
        async def leave(obj, ctx):
            ctx.log.debug("leaving")

        chance = random.Random(seed)

        def spec(turn):
            return {"turn": turn, "children": chance.sample("abcd", chance.randint(0, 4))}

        wanted = {}
        for number in range(8):
            wanted[f"t{number}"] = spec(0)
            await bed.make(f"t{number}", spec=wanted[f"t{number}"])
        wire = Unreliable(bed.server.transport(), seed)
        async with op.running(wire, bed.world) as running:
            wire.bad = True  # a start on a server that is not there is refused, and told
            for turn in range(1, 40):
                await asyncio.sleep(chance.expovariate(2))
                name = f"t{chance.randrange(10)}"
                if name not in wanted:
                    wanted[name] = spec(turn)
                    await bed.make(name, spec=wanted[name])
                elif chance.random() < 0.15:
                    await bed.client.delete(Thing, name, "default")
                    del wanted[name]
                    await asyncio.sleep(40)  # longer than any back-off, so its clean-up has run
                else:
                    wanted[name] = spec(turn)
                    await bed.edit(name, spec=wanted[name])
                if chance.random() < 0.2:
                    wire.cut()
                if chance.random() < 0.2 and (children := (await bed.client.list(fl.ConfigMap, "default")).items):
                    await bed.client.delete(fl.ConfigMap, chance.choice(children).name, "default")
            wire.bad = False
            wire.cut()
            await asyncio.sleep(60)
            await running.quiet()
            assert running.failures == {}
            things = {thing.name: thing for thing in (await bed.client.list(Thing, "default")).items}
            assert {name: thing.spec for name, thing in things.items()} == wanted
            for thing in things.values():
                assert thing.is_true("Ready")
                assert thing.status["turn"] == thing.spec["turn"]
            children = {child.name: child for child in (await bed.client.list(fl.ConfigMap, "default")).items}
            assert {name: child["data"]["turn"] for name, child in children.items()} == {
                f"{name}-{child}": str(spec["turn"]) for name, spec in wanted.items() for child in spec["children"]
            }
            for child in children.values():
                assert child.metadata["ownerReferences"][0]["uid"] == things[child.name.split("-")[0]].uid
            before = wire.requests
            running.resync()
            await running.quiet()
            assert wire.requests == before, "and then it is quiet"

    virtually(test)
