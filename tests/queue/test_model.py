"""Tests that the queue returns the same keys as a simple model, in the same order and at the same times."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api import backoff
from fairlead.queue import Priority, Queue
from fairlead.testing import virtual


class Model:
    """A simple model of the queue: a list of ready keys and a few dictionaries."""

    def __init__(self, world, lane):
        self.world = world  # has the seed of the queue's world, so that both have the same delays
        self.lane = lane
        self.now = 0.0
        self.ready = []  # [key, priority, since], in order of arrival
        self.out = {}  # key -> priority
        self.again = {}  # key -> priority
        self.held = {}  # key -> (until, how many were set before, priority)
        self.wakes = {}  # key -> (when, how many were set before, priority)
        self.set = 0
        self.errors, self.conflicts = {}, {}
        self.rota, self.limits = [], {}
        self.fresh_in_a_row = 0

    def advance(self, seconds):
        end = self.now + seconds
        while True:
            due = [(when, before, key, "held") for key, (when, before, _) in self.held.items()]
            due += [(when, before, key, "wake") for key, (when, before, _) in self.wakes.items()]
            due = [entry for entry in due if entry[0] <= end]
            if not due:
                break
            self.now, _, key, what = min(due)
            if what == "held":
                self.make_ready(key, self.held.pop(key)[2])
            else:
                self.want(key, self.wakes.pop(key)[2])
        self.now = end

    def add(self, key, priority, after):
        if after:
            self.set += 1
            when, before = self.now + after, self.set
            if key in self.wakes:
                when, before = min((when, before), self.wakes[key][:2])
                priority = max(priority, self.wakes[key][2])
            self.wakes[key] = (when, before, priority)
        else:
            self.want(key, priority)

    def want(self, key, priority):
        if key in self.out:
            self.again[key] = max(priority, self.again.get(key, priority))
        elif key in self.held:
            until, before, held = self.held[key]
            self.held[key] = (until, before, max(held, priority))
        else:
            self.make_ready(key, priority)

    def make_ready(self, key, priority):
        self.know(self.lane(key))
        for entry in self.ready:
            if entry[0] == key:
                if priority > entry[1]:
                    self.ready.remove(entry)
                    self.ready.append([key, priority, entry[2]])
                return
        self.ready.append([key, priority, self.now])

    def know(self, lane):
        if lane not in self.rota:
            self.rota.append(lane)

    def limit(self, most, lane):
        self.limits[lane] = most
        if lane is not None:
            self.know(lane)

    def take(self):
        if len(self.out) >= self.limits.get(None, 1_000):
            return None
        turns = [(Priority.FRESH, 1e9), (Priority.RESYNC, 1e9)]
        if self.fresh_in_a_row >= 7:
            turns.insert(0, (Priority.RESYNC, self.now - 30))
        for priority, before in turns:
            for lane in self.rota:
                if sum(self.lane(key) == lane for key in self.out) >= self.limits.get(lane, 1_000):
                    continue
                mine = [entry for entry in self.ready if self.lane(entry[0]) == lane and entry[1] == priority]
                if not mine or mine[0][2] > before:
                    continue
                self.ready.remove(mine[0])
                self.out[mine[0][0]] = priority
                self.rota.remove(lane)
                self.rota.append(lane)
                self.fresh_in_a_row = self.fresh_in_a_row + 1 if priority is Priority.FRESH else 0
                return mine[0][0]
        return None

    def done(self, key):
        del self.out[key]
        self.errors.pop(key, None)
        self.conflicts.pop(key, None)
        if key in self.again:
            self.make_ready(key, self.again.pop(key))

    def retry(self, key):
        self.errors[key] = self.errors.get(key, 0) + 1
        self.hold(key, backoff.delay(self.errors[key], 0.005, 30, self.world))

    def conflict(self, key):
        self.conflicts[key] = self.conflicts.get(key, 0) + 1
        self.hold(key, backoff.delay(self.conflicts[key], 0.010, 1, self.world))

    def hold(self, key, seconds):
        priority = self.out.pop(key)
        self.set += 1
        self.held[key] = (self.now + seconds, self.set, max(priority, self.again.pop(key, priority)))


LANES = ["a", "b", "c"]
KEYS = [lane + str(number) for lane in LANES for number in range(3)]

key = st.sampled_from(KEYS)
add = st.tuples(st.just("add"), key, st.sampled_from(Priority), st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0, 40.0]))
take = st.just(("take",))
give_back = st.tuples(st.sampled_from(["done", "retry", "conflict"]), st.integers(0, 8))
# Never a sum of the delays above, so that no two events have the same time.
advance = st.tuples(st.just("advance"), st.sampled_from([0.0037, 0.1003, 0.7001, 31.00007]))
limit = st.tuples(st.just("limit"), st.sampled_from([None, *LANES]), st.integers(0, 4))


async def taken_now(queue):
    getter = asyncio.create_task(queue.get())
    for _ in range(2):
        await asyncio.sleep(0)
    if getter.done():
        return getter.result()
    getter.cancel()
    await asyncio.gather(getter, return_exceptions=True)
    return None


async def compare(history):
    queue, model = Queue(virtual.world(1), lane=lambda key: key[0]), Model(virtual.world(1), lambda key: key[0])
    for action, *arguments in history:
        match action:
            case "add":
                name, priority, after = arguments
                queue.add(name, priority=priority, after=after)
                model.add(name, priority, after)
            case "take":
                assert await taken_now(queue) == model.take()
            case "advance":
                await asyncio.sleep(arguments[0])
                model.advance(arguments[0])
            case "limit":
                lane, most = arguments
                queue.limit(most, lane)
                model.limit(most, lane)
            case _ if model.out:
                name = sorted(model.out)[arguments[0] % len(model.out)]
                getattr(queue, action)(name)
                getattr(model, action)(name)
        assert len(queue) == len(model.ready)
        assert sorted(queue.in_progress()) == sorted(model.out)
        assert queue.is_idle == (not model.ready and not model.out and not model.held)
    for lane in [None, *LANES]:
        queue.limit(None, lane)
        model.limit(1_000, lane)
    for name in list(model.out):
        queue.done(name)
        model.done(name)
    await asyncio.sleep(100.3)
    model.advance(100.3)
    while (expected := model.take()) is not None:
        assert await taken_now(queue) == expected
        queue.done(expected)
        model.done(expected)
    assert len(queue) == 0
    assert queue.is_idle
    assert not queue._states, "a key with nothing to know is still remembered"


@settings(max_examples=600, deadline=None)
@given(st.lists(st.one_of(add, add, take, take, give_back, give_back, advance, limit), max_size=80))
def test_queue_matches_the_model_after_any_history(history):
    virtual.run(compare(history))
