"""Tests of random histories under random faults.

The cache converges to the server's state. Before that, it reports each deletion once, the states of each object in
order, and shows own writes immediately.
"""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.testing import virtual

NAMES = ["a", "b", "c", "d"]
name = st.sampled_from(NAMES)
how = st.sampled_from(["end", "break", "mid", "hang", "410", "500"])
action = st.one_of(
    st.tuples(st.just("put"), name),
    st.tuples(st.just("put"), name),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("own put"), name, st.integers(0, 3)),
    st.tuples(st.just("own delete"), name, st.integers(0, 3)),
    st.tuples(st.just("own last finalizer"), name, st.integers(0, 3)),
    st.tuples(st.just("break"), how),
    st.tuples(st.just("cut"), how, st.integers(0, 6)),
    st.tuples(st.just("fail"), st.sampled_from(["refused", "429", "500", "410"])),
    st.tuples(st.just("compact")),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.9, 20.0, 130.0])),
)


class History:
    """Plays a history on a scripted server, and checks every guarantee of the cache against the real history."""

    def __init__(self, chaos, world):
        self.chaos, self.world, self.server = chaos, world, world.server
        self.overlay = world.view._informers[0].overlay
        self.gone = set()  # uids that we know to be removed
        self.answers = []  # [actions until it arrives, answer, …]

    async def play(self, actions):
        for what, *arguments in actions:
            await self.do(what, *arguments)
            self.deliver()
        for _ in range(4):
            self.deliver()
        self.server.calm()
        await asyncio.sleep(300)
        self.world.assert_true()
        assert not self.overlay._pending
        assert self.world.health.failures == 0

    async def do(self, what, *arguments):
        server = self.server
        match what:
            case "put":
                server.put(arguments[0], server.version)
            case "delete":
                server.delete(arguments[0])
            case "own put":
                self.send(arguments[1], server.put(arguments[0], server.version))
            case "own delete":
                if obj := server.delete(arguments[0]):
                    self.send(arguments[1], None, (arguments[0], obj["metadata"]["uid"]))
            case "own last finalizer":
                if ("n", arguments[0]) in server.objects:
                    before = server.put(arguments[0], deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x"])
                    metadata = {key: value for key, value in before["metadata"].items() if key != "finalizers"}
                    server.delete(arguments[0])
                    self.send(arguments[1], {**before, "metadata": metadata}, (arguments[0], metadata["uid"]))
            case "break":
                server.break_watches(arguments[0])
            case "cut":
                server.cuts.append(self.chaos.Cut(arguments[1], arguments[0]))
            case "fail":
                failures = {
                    "refused": self.chaos.NotSent("refused"),
                    "429": self.chaos.status(429, "TooManyRequests"),
                    "500": self.chaos.status(500, "InternalError"),
                    "410": self.chaos.status(410, "Expired"),
                }
                server.failures.append(failures[arguments[0]])
            case "compact":
                server.compact()
            case "wait":
                await asyncio.sleep(arguments[0])

    def send(self, delay, answer, gone=None):
        """Carry out an own write whose answer arrives after `delay` more actions."""
        writing = self.world.cache.writing(self.world.view.kind, "n")
        own = writing.__enter__()
        self.answers.append([delay, answer, gone, own, writing])

    def deliver(self):
        for waiting in list(self.answers):
            waiting[0] -= 1
            if waiting[0] < 0:
                self.answers.remove(waiting)
                self.answered(*waiting[1:])
        for obj in self.world.view.list():
            assert obj.uid not in self.gone, "an object that we know to be removed is visible"

    def answered(self, answer, gone, own, writing):
        if gone:
            if any(obj.uid == gone[1] for obj in self.world.view.list()):
                self.gone.add(gone[1])
            own.record(answer) if answer else own.record_delete(*gone, None)
        else:
            own.record(answer)
            shown = self.world.view.get_snapshot(answer["metadata"]["name"], "n")
            uid, version = answer["metadata"]["uid"], int(answer["metadata"]["resourceVersion"])
            deleted = [event for event in self.server.history if event[1] == "DELETED" and event[0] > version]
            if shown is None or shown.uid != uid:
                assert any(event[2]["metadata"]["uid"] == uid for event in deleted), "our own write is not seen"
            else:
                assert shown.version >= version, "our own write is not seen"
        writing.__exit__(None, None, None)


@pytest.mark.parametrize("streams", [True, False], ids=["initial events", "pages"])
@settings(max_examples=300, deadline=None)
@given(actions=st.lists(action, max_size=40), seed=st.integers(0, 2**16))
def test_the_cache_converges_after_any_history_of_faults(chaos, streams, actions, seed):
    async def main():
        world = chaos.World(seed)
        world.server.streams = streams
        world.server.put("a")
        world.server.put("b")
        async with world:
            await History(chaos, world).play(actions)
        states = {(event[2]["metadata"]["uid"], event[0]): event[0] for event in world.server.history}
        for key in {key for key, _, _ in world.changes}:
            seen = [new for changed, _, new in world.changes if changed == key and new]
            assert all(state in states for state in seen), "a state that never was"
            assert [version for _, version in seen] == sorted({version for _, version in seen}), "not in their order"

    virtual.run(main())


@settings(max_examples=100, deadline=None)
@given(before=st.lists(action, max_size=10), after=st.lists(action, max_size=10), seed=st.integers(0, 2**16))
def test_the_cache_converges_after_a_restore_from_backup(chaos, before, after, seed):
    async def main():
        world = chaos.World(seed)
        world.server.put("a")
        async with world:
            await world.cache.wait_for_sync()
            backup = world.server.snapshot()
            for number in range(60):
                world.server.put("b", number)
            history = History(chaos, world)
            await history.play(before)
            world.server.restore(backup)
            await asyncio.sleep(60)
            await History(chaos, world).play(after)

    virtual.run(main())
