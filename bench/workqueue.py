"""Measure the cost of adding, taking and finishing one key of the queue: `python bench/workqueue.py`."""

import asyncio
import statistics
import time

from fairlead.api.world import World
from fairlead.queue import Queue

KEYS, ROUNDS = 1_000, 50


async def main():
    queue = Queue(World(), lane=lambda key: key[0])
    keys = [("controller", "namespace", f"name-{number}") for number in range(KEYS)]
    adds, turn_times, coalesced = [], [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for key in keys:
            queue.add(key)
        added_at = time.perf_counter()
        for key in keys:
            queue.add(key)
        second_start = time.perf_counter()
        for _ in keys:
            queue.done(await queue.get())
        end = time.perf_counter()
        adds.append(added_at - start)
        coalesced.append(second_start - added_at)
        turn_times.append(end - second_start)
    for name, times in (("add", adds), ("add, coalesced", coalesced), ("get and done", turn_times)):
        print(f"{name:16} {statistics.median(times) / KEYS * 1e6:6.2f} µs a key")


asyncio.run(main())
