"""Tests of each guarantee of the queue, in virtual time."""

import asyncio
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import in_virtual_time

from fairlead.api import backoff
from fairlead.queue import Outcome, Priority, Queue, QueueClosed
from fairlead.testing import virtual


@pytest.fixture
def queue():
    return Queue(virtual.world(), lane=lambda key: key[0])


def now():
    return asyncio.get_running_loop().time()


@in_virtual_time
async def test_a_key_has_one_worker_and_an_add_meanwhile_runs_it_again(queue):
    queue.add("a")
    assert await queue.get() == "a"
    for _ in range(5):
        queue.add("a")
    second_get = asyncio.create_task(queue.get())
    await asyncio.sleep(100)
    assert not second_get.done()
    queue.done("a")
    assert await second_get == "a"
    queue.done("a")
    assert queue.is_idle


@in_virtual_time
async def test_many_adds_of_one_key_are_one_run(queue):
    for _ in range(1_000):
        queue.add("a")
    assert len(queue) == 1


@in_virtual_time
async def test_fresh_keys_run_before_resyncs_and_a_resync_can_become_fresh(queue):
    for number in range(100):
        queue.add(f"a{number}", priority=Priority.RESYNC)
    queue.add("a-new")
    queue.add("a42")
    assert [await queue.get() for _ in range(3)] == ["a-new", "a42", "a0"]


@in_virtual_time
async def test_a_steady_stream_of_fresh_keys_does_not_starve_a_resync(queue):
    queue.add("a-resync", priority=Priority.RESYNC)
    taken_keys = []
    for number in range(100):
        queue.add(f"a{number}")
        queue.add(f"a{number}-too")
        taken_keys.append(await queue.get())
        queue.done(taken_keys[-1])
        await asyncio.sleep(1)
    assert 30 <= taken_keys.index("a-resync") <= 40


@in_virtual_time
async def test_a_backlog_of_resyncs_does_not_starve_fresh_keys(queue):
    for number in range(1_000):
        queue.add(f"a{number}", priority=Priority.RESYNC)
    await asyncio.sleep(60)
    for number in range(14):
        queue.add(f"a-new{number}")
    first_keys = [await queue.get() for _ in range(16)]
    assert sum("new" in key for key in first_keys) == 14


@in_virtual_time
async def test_controllers_take_turns(queue):
    for number in range(1_000):
        queue.add(f"a{number}")
    queue.add("b0")
    queue.add("b1")
    assert [await queue.get() for _ in range(5)] == ["a0", "b0", "a1", "b1", "a2"]


@in_virtual_time
async def test_a_controller_at_its_limit_does_not_block_another(queue):
    queue.limit(1, "a")
    for key in ("a0", "a1", "b0"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a0", "b0"]
    third_get = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not third_get.done()
    queue.done("a0")
    assert await third_get == "a1"


@in_virtual_time
async def test_a_rate_delays_the_keys_of_its_lane_only(queue):
    queue.limit_rate(2.0, "a")
    for number in range(6):
        queue.add(f"a{number}")
        queue.add(f"b{number}")
    started = {}
    for _ in range(12):
        key = await queue.get()
        started[key] = now()
        queue.done(key)
    assert [started[f"a{number}"] for number in range(6)] == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0]
    assert {started[f"b{number}"] for number in range(6)} == {0.0}


@in_virtual_time
async def test_removing_the_rate_wakes_waiting_workers(queue):
    queue.limit_rate(0.001, "a")
    for number in range(3):
        queue.add(f"a{number}")
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    assert [getter.done() for getter in getters] == [True, False, False]
    queue.limit_rate(float("inf"), "a")
    assert sorted(await asyncio.gather(*getters)) == ["a0", "a1", "a2"]


@in_virtual_time
async def test_each_lane_has_its_own_back_off(queue):
    queue.set_backoff(2.0, 3.0, "a")
    for key, shortest, longest in (("a", 2.0, 3.0), ("b", 0.005, 0.010)):
        queue.add(key)
        failed_at = now()
        queue.retry(await queue.get())
        assert shortest <= await wait_for_key(queue) - failed_at <= longest
    queue.retry("a")
    failed_at = now()
    assert 2.0 <= await wait_for_key(queue) - failed_at <= 3.0


async def wait_for_key(queue):
    await queue.get()
    return now()


@in_virtual_time
async def test_raising_the_limit_wakes_waiting_workers(queue):
    queue.limit(1)
    for key in ("a0", "a1", "a2"):
        queue.add(key)
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    assert [getter.done() for getter in getters] == [True, False, False]
    queue.limit(None)
    assert sorted(await asyncio.gather(*getters)) == ["a0", "a1", "a2"]


@in_virtual_time
async def test_a_cancelled_get_loses_no_key(queue):
    getters = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add("a")
    getters[0].cancel()  # it was woken, but does not have the key yet
    assert await getters[1] == "a"


@in_virtual_time
async def test_errors_back_off_from_5_ms_to_30_s_and_success_resets(queue):
    queue.add("a")
    await queue.get()
    delays = []
    for _ in range(20):
        queue.retry("a")
        start = now()
        await queue.get()
        delays.append(now() - start)
    queue.done("a")
    assert 0.005 <= delays[0] <= 0.010
    assert all(earlier < later for earlier, later in itertools.pairwise(delays[:6]))
    assert 15 <= delays[-1] <= 30
    queue.add("a")
    await queue.get()
    queue.retry("a")
    start = now()
    await queue.get()
    assert now() - start <= 0.010


@in_virtual_time
async def test_adds_neither_shorten_nor_extend_the_back_off(queue):
    queue.add("a")
    for _ in range(12):
        await queue.get()
        queue.retry("a")
    start, runs = now(), []

    async def add_continuously():
        while True:
            queue.add("a")
            await asyncio.sleep(0.001)

    flood_task = asyncio.create_task(add_continuously())
    await queue.get()
    runs.append(now() - start)
    flood_task.cancel()
    assert 10 <= runs[0] <= 20.48


async def fail_until_the_back_off_is_long(queue, key="a"):
    queue.add(key)
    await queue.get()
    while queue.retry(key) < 10:
        await queue.get()


@in_virtual_time
async def test_a_cut_runs_a_key_that_failed_at_once_and_keeps_its_error_count(queue):
    await fail_until_the_back_off_is_long(queue)
    failed_at = now()
    await asyncio.sleep(1)
    queue.cut_backoff("a")
    assert await wait_for_key(queue) == failed_at + 1
    assert queue.retry("a") >= 10, "the early look counts as one more error, not as the first"


@in_virtual_time
async def test_early_looks_are_three_at_once_and_then_one_per_second(queue):
    await fail_until_the_back_off_is_long(queue)
    looks, started = [], now()
    for _ in range(500):  # 100 cuts per second.
        queue.cut_backoff("a")
        if key := await try_to_get(queue):
            looks.append(now() - started)
            queue.retry(key)
        await asyncio.sleep(0.01)
    assert looks == pytest.approx([0.0, 0.01, 0.02, 1.0, 2.0, 3.0, 4.0], abs=0.03)


async def try_to_get(queue):
    return await queue.get() if len(queue) else None


@in_virtual_time
async def test_100_cuts_a_second_add_at_most_one_run_a_second_and_three(queue):
    async def count_runs(seconds, key, cut):
        queue.add(key)
        runs, end = 0, now() + seconds
        while now() < end:
            if cut:
                queue.cut_backoff(key)
            if (taken := await try_to_get(queue)) is not None:
                runs += 1
                queue.retry(taken)
            await asyncio.sleep(0.01)
        return runs

    alone = await count_runs(300, "a", cut=False)
    queue = Queue(virtual.world(), lane=lambda key: key[0])
    edited = await count_runs(300, "b", cut=True)
    assert alone < 40
    assert edited <= alone + 300 + 3


@in_virtual_time
async def test_a_wait_after_a_conflict_is_not_cut(queue):
    queue.add("a")
    await queue.get()
    while queue.conflict("a") < 0.5:
        await queue.get()
    queue.cut_backoff("a")
    assert len(queue) == 0
    started = now()
    assert await wait_for_key(queue) - started >= 0.5


@in_virtual_time
async def test_cuts_of_other_keys_are_ignored(queue):
    queue.cut_backoff("a")
    assert queue.is_idle
    queue.add("a", after=10)
    queue.cut_backoff("a")
    assert len(queue) == 0
    await asyncio.sleep(10)
    assert len(queue) == 1
    queue.cut_backoff("a")
    await queue.get()
    queue.cut_backoff("a")
    queue.done("a")
    assert queue.is_idle


@in_virtual_time
async def test_many_other_keys_do_not_starve_a_retry(queue):
    queue.add("a")
    await queue.get()
    queue.retry("a")
    await asyncio.sleep(1)
    for number in range(100):
        queue.add(f"a{number}")
    assert await queue.get() == "a"


@in_virtual_time
async def test_conflicts_have_a_short_delay_and_do_not_extend_the_back_off(queue):
    queue.add("a")
    await queue.get()
    delays = []
    for _ in range(30):
        queue.conflict("a")
        start = now()
        queue.add("a")  # the event of the other writer
        await queue.get()
        delays.append(now() - start)
    assert 0.010 <= delays[0] <= 0.020
    assert all(0.010 <= delay <= 1 for delay in delays)
    assert delays[-1] >= 0.5
    queue.retry("a")
    start = now()
    await queue.get()
    assert 0.005 <= now() - start <= 0.010


@in_virtual_time
async def test_a_conflict_does_not_reset_the_back_off(queue):
    queue.add("a")
    for _ in range(12):
        await queue.get()
        queue.retry("a")
    await queue.get()
    queue.conflict("a")
    await queue.get()
    queue.retry("a")
    start = now()
    await queue.get()
    assert now() - start > 10


@in_virtual_time
async def test_a_delayed_add_runs_at_the_earliest_time(queue):
    queue.add("a", after=60)
    queue.add("a", after=5)
    queue.add("a", after=30)
    await queue.get()
    assert now() == pytest.approx(5)
    queue.done("a")
    assert queue.is_idle


@in_virtual_time
async def test_an_add_runs_before_a_delayed_add_and_does_not_replace_it(queue):
    queue.add("a", after=60)
    queue.add("a")
    queue.done(await queue.get())
    assert now() == 0
    await queue.get()
    assert now() == pytest.approx(60)


@in_virtual_time
async def test_a_drain_processes_ready_keys_and_waits_for_those_in_progress(queue):
    for key in ("a0", "a1"):
        queue.add(key)
    queue.add("a-later", after=10)
    queue.add("a-failing")
    in_progress_key = await queue.get()
    queue.add(in_progress_key)  # again, before the close
    close_task = asyncio.create_task(queue.close())
    await asyncio.sleep(1)
    queue.add("a-too-late")
    drained_keys = [await queue.get(), await queue.get()]
    assert drained_keys == ["a1", "a-failing"]
    queue.retry("a-failing")
    queue.done("a1")
    assert not close_task.done()
    queue.done(in_progress_key)
    assert await queue.get() == in_progress_key
    get_task = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not close_task.done()
    queue.done(in_progress_key)
    await close_task
    with pytest.raises(QueueClosed):
        await get_task
    assert now() < 5, "nothing delayed was waited for"


@in_virtual_time
async def test_close_without_drain_drops_ready_keys(queue):
    for key in ("a0", "a1"):
        queue.add(key)
    await queue.get()
    queue.add("a0")
    close_task = asyncio.create_task(queue.close(drain=False))
    await asyncio.sleep(0)
    queue.done("a0")
    await close_task
    with pytest.raises(QueueClosed):
        await queue.get()


@in_virtual_time
async def test_returning_a_key_twice_raises_value_error(queue):
    queue.add("a")
    await queue.get()
    queue.done("a")
    with pytest.raises(ValueError, match="is not in progress"):
        queue.done("a")
    queue.add("a")
    with pytest.raises(ValueError, match="is not in progress"):
        queue.done("a")
    queue.retry(await queue.get())
    with pytest.raises(ValueError, match="is not in progress"):
        queue.conflict("a")


async def test_the_observer_is_called_for_every_step():
    calls = []

    class Observer:
        def added(self, lane):
            calls.append(("added", lane))

        def taken(self, lane, seconds_waited):
            calls.append(("taken", lane, seconds_waited))

        def finished(self, lane, seconds_taken, outcome):
            calls.append(("finished", lane, seconds_taken, outcome))

    async def main():
        queue = Queue(virtual.world(), observer=Observer(), lane=lambda key: key[0])
        queue.add("a")
        await asyncio.sleep(2)
        await queue.get()
        await asyncio.sleep(3)
        assert queue.in_progress() == {"a": 3}
        queue.conflict("a")

    await asyncio.to_thread(virtual.run, main())
    assert calls == [("added", "a"), ("taken", "a", 2), ("finished", "a", 3, Outcome.CONFLICT)]


@given(st.integers(1, 10_000), st.integers())
def test_every_delay_is_within_its_bounds(failures, seed):
    world = virtual.world(seed)
    assert 0.005 <= backoff.delay(failures, 0.005, 30, world) <= 30


def test_jitter_spreads_keys_that_failed_together():
    world = virtual.world()
    assert len({backoff.delay(3, 0.005, 30, world) for _ in range(100)}) == 100


@pytest.mark.parametrize("seed", range(20))
def test_workers_never_share_a_key_and_every_add_is_followed_by_a_run(seed):
    """Tests that a run starts soon after every add, with random outcomes and durations of the runs."""
    rng = random.Random(seed)
    keys = [lane + str(number) for lane in "ab" for number in range(5)]
    working, last_added, last_started = set(), {}, {}

    async def worker(queue):
        while True:
            try:
                key = await queue.get()
            except QueueClosed:
                return
            assert key not in working
            working.add(key)
            last_started[key] = now()
            await asyncio.sleep(rng.choice([0, 0.001, 0.3]))
            working.discard(key)
            rng.choice([queue.done, queue.done, queue.retry, queue.conflict])(key)

    async def main():
        queue = Queue(virtual.world(seed), lane=lambda key: key[0])
        workers = [asyncio.create_task(worker(queue)) for _ in range(4)]
        for _ in range(300):
            key = rng.choice(keys)
            queue.add(key, priority=rng.choice(list(Priority)), after=rng.choice([0, 0, 0.05]))
            last_added[key] = now()
            await asyncio.sleep(rng.choice([0, 0, 0.01, 0.2]))
        await asyncio.sleep(600)
        assert queue.is_idle
        await queue.close()
        await asyncio.gather(*workers)
        assert all(last_started[key] >= last_added[key] for key in last_added)
        assert not queue._states

    virtual.run(main())


@in_virtual_time
async def test_a_held_key_runs_once_at_the_end_and_delays_no_other_key(queue):
    queue.limit(1, "a")
    queue.add("a1")
    key = await queue.get()
    queue.add("a2")
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(key)
    queue.hold(key, 10)
    queue.done(key)
    assert await waiting == "a2"
    assert now() == 0
    queue.done("a2")
    assert not queue.is_idle
    queue.add(key, after=2)
    queue.add(key)
    assert await queue.get() == key
    assert now() == 10
    queue.done(key)
    assert queue.is_idle


@in_virtual_time
async def test_a_hold_ends_at_release_and_runs_only_a_key_that_was_added(queue):
    for key in ("a1", "a2", "a3"):
        queue.add(key)
        await queue.get()
        queue.hold(key, 10)
    queue.done("a1")
    queue.retry("a2")
    queue.done("a3")
    queue.release("a1")
    queue.release("unknown")
    assert queue.is_idle is False
    await asyncio.sleep(1)
    assert len(queue) == 0
    queue.add("a1")
    queue.release("a2")
    assert [await queue.get(), await queue.get()] == ["a1", "a2"]
    assert now() == 1
    queue.done("a1")
    queue.done("a2")
    await asyncio.sleep(20)
    assert len(queue) == 0
    with pytest.raises(ValueError, match="hold a key before it is returned"):
        queue.hold("a1", 1)


@in_virtual_time
async def test_a_closing_queue_drops_held_keys(queue):
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.hold("a", 10)
    queue.done("a")
    await queue.close()
    with pytest.raises(QueueClosed):
        await queue.get()


@in_virtual_time
async def test_states_name_each_key_that_is_not_idle(queue):
    for key in ("h", "a", "b", "c"):
        queue.add(key)
    queue.add("d", after=30)
    assert await queue.get() == "h"
    queue.add("h")
    queue.hold("h", 5)
    queue.done("h")
    assert await queue.get() == "a"
    queue.retry("a")
    assert await queue.get() == "b"
    await asyncio.sleep(0.001)
    states = dict(queue.states())
    assert {key: state.name for key, state in states.items()} == {
        "a": "backoff", "b": "processing", "c": "ready", "d": "delayed", "h": "held",
    }  # fmt: skip
    assert states["d"].seconds == pytest.approx(29.999)
    assert states["b"].seconds == pytest.approx(0.001)
    assert 0 < states["a"].seconds <= 0.01
    assert queue.state("d") == states["d"]
    assert queue.state("unknown") is None
