"""Tests that the queue returns the same keys as a simple model, in the same order and at the same times."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api import backoff
from fairlead.queue import Priority, Queue
from fairlead.testing import virtual


class QueueModel:
    """A simple model of the queue: a list of ready keys and a few dictionaries."""

    def __init__(self, world, lane):
        self.world = world  # has the seed of the queue's world, so that both have the same delays
        self.lane = lane
        self.now = 0.0
        self.ready = []  # [key, priority, since], in order of arrival
        self.in_progress = {}  # key -> priority
        self.added_again = {}  # key -> priority
        self.backing_off = {}  # key -> (time of the retry, sequence number, priority)
        self.delayed = {}  # key -> (time of the add, sequence number, priority)
        self.holds = {}  # key -> (end of the hold, sequence number)
        self.held_back = {}  # key -> priority of the run that the hold delays
        self.sequence = 0
        self.after_error = set()  # keys that back off after an error
        self.early_tokens = {}  # key -> (tokens, when they were counted)
        self.errors, self.conflicts = {}, {}
        self.lane_order, self.limits = [], {}
        self.tokens, self.rates, self.filled_at = {}, {}, {}  # lane -> tokens, rate, when the tokens were counted
        self.fresh_in_a_row = 0

    def advance(self, seconds):
        end = self.now + seconds
        while True:
            due_entries = [(when, order, key, "held") for key, (when, order, _) in self.backing_off.items()]
            due_entries += [(when, order, key, "wake") for key, (when, order, _) in self.delayed.items()]
            due_entries += [(when, order, key, "release") for key, (when, order) in self.holds.items()]
            due_entries = [entry for entry in due_entries if entry[0] <= end]
            if not due_entries:
                break
            self.now, _, key, entry_type = min(due_entries)
            if entry_type == "held":
                self.make_ready(key, self.backing_off.pop(key)[2])
            elif entry_type == "release":
                self.release(key)
            else:
                self.want_now(key, self.delayed.pop(key)[2])
        self.now = end

    def add(self, key, priority, after):
        if after:
            self.sequence += 1
            when, order = self.now + after, self.sequence
            if key in self.delayed:
                when, order = min((when, order), self.delayed[key][:2])
                priority = max(priority, self.delayed[key][2])
            self.delayed[key] = (when, order, priority)
        else:
            self.want_now(key, priority)

    def want_now(self, key, priority):
        if key in self.in_progress:
            self.added_again[key] = max(priority, self.added_again.get(key, priority))
        elif key in self.backing_off:
            ready_at, order, held_priority = self.backing_off[key]
            self.backing_off[key] = (ready_at, order, max(held_priority, priority))
        else:
            self.make_ready(key, priority)

    def make_ready(self, key, priority):
        if key in self.holds:
            self.held_back[key] = max(priority, self.held_back.get(key, priority))
            return
        self.register_lane(self.lane(key))
        for entry in self.ready:
            if entry[0] == key:
                if priority > entry[1]:
                    self.ready.remove(entry)
                    self.ready.append([key, priority, entry[2]])
                return
        self.ready.append([key, priority, self.now])

    def register_lane(self, lane):
        if lane not in self.lane_order:
            self.lane_order.append(lane)

    def limit(self, maximum, lane):
        self.limits[lane] = maximum
        if lane is not None:
            self.register_lane(lane)

    def limit_rate(self, rate, lane):
        self.register_lane(lane)
        self.rates[lane], self.tokens[lane], self.filled_at[lane] = rate, max(1.0, rate), self.now

    def refill(self, lane):
        rate = self.rates[lane]
        tokens = self.tokens[lane] + rate * (self.now - self.filled_at[lane])
        self.tokens[lane], self.filled_at[lane] = min(max(1.0, rate), tokens), self.now
        return self.tokens[lane]

    def take(self):
        if len(self.in_progress) >= self.limits.get(None, 1_000):
            return None
        turns = [(Priority.FRESH, 1e9), (Priority.RESYNC, 1e9)]
        if self.fresh_in_a_row >= 7:
            turns.insert(0, (Priority.RESYNC, self.now - 30))
        for priority, not_after in turns:
            for lane in self.lane_order:
                if sum(self.lane(key) == lane for key in self.in_progress) >= self.limits.get(lane, 1_000):
                    continue
                if lane in self.rates and self.refill(lane) < 1 - 1e-9:
                    continue
                candidates = [entry for entry in self.ready if self.lane(entry[0]) == lane and entry[1] == priority]
                if not candidates or candidates[0][2] > not_after:
                    continue
                self.ready.remove(candidates[0])
                if lane in self.rates:
                    self.tokens[lane] -= 1
                self.in_progress[candidates[0][0]] = priority
                self.lane_order.remove(lane)
                self.lane_order.append(lane)
                self.fresh_in_a_row = self.fresh_in_a_row + 1 if priority is Priority.FRESH else 0
                return candidates[0][0]
        return None

    def done(self, key):
        del self.in_progress[key]
        self.early_tokens.pop(key, None)
        self.errors.pop(key, None)
        self.conflicts.pop(key, None)
        if key in self.added_again:
            self.make_ready(key, self.added_again.pop(key))

    def hold(self, key, seconds):
        self.sequence += 1
        self.holds[key] = (self.now + seconds, self.sequence)

    def release(self, key):
        if self.holds.pop(key, None) and key in self.held_back:
            self.make_ready(key, self.held_back.pop(key))

    def retry(self, key):
        self.errors[key] = self.errors.get(key, 0) + 1
        self.back_off(key, backoff.delay(self.errors[key], 0.005, 30, self.world))
        self.after_error.add(key)

    def cut_backoff(self, key):
        if key not in self.backing_off or key not in self.after_error:
            return
        tokens, counted_at = self.early_tokens.get(key, (3.0, self.now))
        tokens = min(3.0, tokens + self.now - counted_at)
        when = self.now + max(0.0, 1.0 - tokens)
        ready_at, _, priority = self.backing_off[key]
        if when >= ready_at:
            return
        self.early_tokens[key] = tokens - 1, self.now
        if when > self.now:
            self.sequence += 1
            self.backing_off[key] = (when, self.sequence, priority)
        else:
            del self.backing_off[key]
            self.make_ready(key, priority)

    def conflict(self, key):
        self.conflicts[key] = self.conflicts.get(key, 0) + 1
        self.back_off(key, backoff.delay(self.conflicts[key], 0.010, 1, self.world))

    def back_off(self, key, seconds):
        self.after_error.discard(key)
        priority = self.in_progress.pop(key)
        self.sequence += 1
        self.backing_off[key] = (self.now + seconds, self.sequence, max(priority, self.added_again.pop(key, priority)))


LANES = ["a", "b", "c"]
KEYS = [lane + str(number) for lane in LANES for number in range(3)]

key = st.sampled_from(KEYS)
add = st.tuples(st.just("add"), key, st.sampled_from(Priority), st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0, 40.0]))
take_one = st.just(("take",))
give_back = st.tuples(st.sampled_from(["done", "retry", "conflict"]), st.integers(0, 8))
cut = st.tuples(st.just("cut"), key)
# Never a sum of the delays above, so that no two events have the same time.
advance = st.tuples(st.just("advance"), st.sampled_from([0.0037, 0.1003, 0.7001, 31.00007]))
limit = st.tuples(st.just("limit"), st.sampled_from([None, *LANES]), st.integers(0, 4))
hold = st.tuples(st.just("hold"), st.integers(0, 8), st.sampled_from([0.5, 12.0]))
release = st.tuples(st.just("release"), key)
rate = st.tuples(st.just("rate"), st.sampled_from(LANES), st.sampled_from([0.013, 0.77, 5.9]))


async def take_key_now(queue):
    getter = asyncio.create_task(queue.get())
    for _ in range(2):
        await asyncio.sleep(0)
    if getter.done():
        return getter.result()
    getter.cancel()
    await asyncio.gather(getter, return_exceptions=True)
    return None


async def compare_with_model(history):
    queue, model = Queue(virtual.world(1), lane=lambda key: key[0]), QueueModel(virtual.world(1), lambda key: key[0])
    for action, *arguments in history:
        match action:
            case "add":
                name, priority, after = arguments
                queue.add(name, priority=priority, after=after)
                model.add(name, priority, after)
            case "take":
                assert await take_key_now(queue) == model.take()
            case "advance":
                await asyncio.sleep(arguments[0])
                model.advance(arguments[0])
            case "limit":
                lane, maximum = arguments
                queue.limit(maximum, lane)
                model.limit(maximum, lane)
            case "rate":
                lane, per_second = arguments
                queue.limit_rate(per_second, lane)
                model.limit_rate(per_second, lane)
            case "cut":
                queue.cut_backoff(arguments[0])
                model.cut_backoff(arguments[0])
            case "release":
                queue.release(*arguments)
                model.release(*arguments)
            case _ if model.in_progress:
                name = sorted(model.in_progress)[arguments[0] % len(model.in_progress)]
                getattr(queue, action)(name, *arguments[1:])
                getattr(model, action)(name, *arguments[1:])
        assert len(queue) == len(model.ready)
        assert sorted(queue.in_progress()) == sorted(model.in_progress)
        assert queue.is_idle == (not (model.ready or model.in_progress or model.backing_off or model.held_back))
    for lane in [None, *LANES]:
        queue.limit(None, lane)
        model.limit(1_000, lane)
    for lane in LANES:
        queue.limit_rate(float("inf"), lane)
    model.rates.clear()
    for name in list(model.in_progress):
        queue.done(name)
        model.done(name)
    await asyncio.sleep(100.3)
    model.advance(100.3)
    while (expected := model.take()) is not None:
        assert await take_key_now(queue) == expected
        queue.done(expected)
        model.done(expected)
    assert len(queue) == 0
    assert queue.is_idle
    assert not queue._states, "a key with nothing to know is still remembered"


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.one_of(add, add, take_one, take_one, give_back, give_back, cut, advance, limit, rate, hold, release),
        max_size=80,
    )
)
def test_queue_matches_the_model_after_any_history(history):
    virtual.run(compare_with_model(history))
