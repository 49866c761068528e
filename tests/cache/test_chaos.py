"""Tests of the cache with random writes and random faults.

The cache converges to the server's state. Until then, the cache reports each deletion once, reports the states of each
object in order, and shows own writes immediately.
"""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.testing import virtual

NAMES = ["a", "b", "c", "d"]
name = st.sampled_from(NAMES)
fault_type = st.sampled_from(["end", "break", "mid", "hang", "410", "500"])
action = st.one_of(
    st.tuples(st.just("put"), name),
    st.tuples(st.just("put"), name),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("own put"), name, st.integers(0, 3)),
    st.tuples(st.just("own delete"), name, st.integers(0, 3)),
    st.tuples(st.just("own last finalizer"), name, st.integers(0, 3)),
    st.tuples(st.just("break"), fault_type),
    st.tuples(st.just("cut"), fault_type, st.integers(0, 6)),
    st.tuples(st.just("fail"), st.sampled_from(["refused", "429", "500", "410"])),
    st.tuples(st.just("compact")),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.9, 20.0, 130.0])),
)


class HistoryPlayer:
    """Plays random actions on a fake server, and checks the guarantees of the cache against the server's history."""

    def __init__(self, fakes, world):
        self.fakes, self.world, self.server = fakes, world, world.server
        self.overlay = world.view._informers[0].overlay
        self.removed_uids = set()  # uids that we know to be removed
        self.pending_responses = []  # [actions until it arrives, answer, …]

    async def play(self, actions):
        for action_name, *arguments in actions:
            await self.do_action(action_name, *arguments)
            self.deliver_responses()
        for _ in range(4):
            self.deliver_responses()
        self.server.remove_faults()
        await asyncio.sleep(300)
        self.world.assert_converged()
        assert not self.overlay._pending
        assert self.world.health.failures == 0

    async def do_action(self, action_name, *arguments):
        server = self.server
        match action_name:
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
                    last_state = server.put(arguments[0], deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x"])
                    metadata = {key: value for key, value in last_state["metadata"].items() if key != "finalizers"}
                    server.delete(arguments[0])
                    self.send(arguments[1], {**last_state, "metadata": metadata}, (arguments[0], metadata["uid"]))
            case "break":
                server.break_watches(arguments[0])
            case "cut":
                server.watch_faults.append(self.fakes.WatchFault(arguments[1], arguments[0]))
            case "fail":
                failures = {
                    "refused": self.fakes.NotSent("refused"),
                    "429": self.fakes.status(429, "TooManyRequests"),
                    "500": self.fakes.status(500, "InternalError"),
                    "410": self.fakes.status(410, "Expired"),
                }
                server.failures.append(failures[arguments[0]])
            case "compact":
                server.compact()
            case "wait":
                await asyncio.sleep(arguments[0])

    def send(self, delay, response, removed=None):
        """Start an own write. The cache gets the response after `delay` more actions."""
        write_context = self.world.cache.writing(self.world.view.kind, "n")
        own_write = write_context.__enter__()
        self.pending_responses.append([delay, response, removed, own_write, write_context])

    def deliver_responses(self):
        for pending in list(self.pending_responses):
            pending[0] -= 1
            if pending[0] < 0:
                self.pending_responses.remove(pending)
                self.record_response(*pending[1:])
        for obj in self.world.view.list():
            assert obj.uid not in self.removed_uids, "an object that we know to be removed is visible"

    def record_response(self, response, removed, own_write, write_context):
        if removed:
            if any(obj.uid == removed[1] for obj in self.world.view.list()):
                self.removed_uids.add(removed[1])
            own_write.record(response) if response else own_write.record_delete(*removed, None)
        else:
            own_write.record(response)
            snapshot = self.world.view.get_snapshot(response["metadata"]["name"], "n")
            uid, version = response["metadata"]["uid"], int(response["metadata"]["resourceVersion"])
            deleted = [event for event in self.server.history if event[1] == "DELETED" and event[0] > version]
            if snapshot is None or snapshot.uid != uid:
                assert any(event[2]["metadata"]["uid"] == uid for event in deleted), "our own write is not seen"
            else:
                assert snapshot.version >= version, "our own write is not seen"
        write_context.__exit__(None, None, None)


@pytest.mark.parametrize("streams", [True, False], ids=["initial events", "pages"])
@settings(max_examples=300, deadline=None)
@given(actions=st.lists(action, max_size=40), seed=st.integers(0, 2**16))
def test_the_cache_converges_after_any_history_of_faults(fakes, streams, actions, seed):
    async def main():
        world = fakes.CacheHarness(seed)
        world.server.streams = streams
        world.server.put("a")
        world.server.put("b")
        async with world:
            await HistoryPlayer(fakes, world).play(actions)
        states = {(event[2]["metadata"]["uid"], event[0]): event[0] for event in world.server.history}
        for key in {key for key, _, _ in world.changes}:
            reported_states = [new for changed_key, _, new in world.changes if changed_key == key and new]
            assert all(state in states for state in reported_states), "a state that never was"
            assert [version for _, version in reported_states] == sorted({version for _, version in reported_states}), (
                "not in their order"
            )

    virtual.run(main())


@settings(max_examples=100, deadline=None)
@given(
    actions_before=st.lists(action, max_size=10),
    actions_after=st.lists(action, max_size=10),
    seed=st.integers(0, 2**16),
)
def test_the_cache_converges_after_a_restore_from_backup(fakes, actions_before, actions_after, seed):
    async def main():
        world = fakes.CacheHarness(seed)
        world.server.put("a")
        async with world:
            await world.cache.wait_for_sync()
            backup = world.server.snapshot()
            for number in range(60):
                world.server.put("b", number)
            history = HistoryPlayer(fakes, world)
            await history.play(actions_before)
            world.server.restore(backup)
            await asyncio.sleep(60)
            await HistoryPlayer(fakes, world).play(actions_after)

    virtual.run(main())
