"""Tests of virtual time: it jumps to the next timer, waits for threads, and detects a deadlock."""

import asyncio
import socket
import threading

import pytest

from fairlead.testing import virtual


def test_an_hour_of_sleep_takes_no_time_and_is_exact():
    async def main():
        clock = virtual.VirtualClock()
        before = clock.now()
        await asyncio.sleep(3600)
        return before, clock.now(), clock.monotonic()

    assert virtual.run(main(), start=1000.0) == (1000.0, 4600.0, 3600.0)


def test_timers_fire_in_order_and_at_their_time():
    async def main():
        loop = asyncio.get_running_loop()
        fired = []

        async def one(delay):
            await asyncio.sleep(delay)
            fired.append((delay, loop.time()))

        await asyncio.gather(*(one(d) for d in (3.0, 0.1, 86400.0 * 40, 0.1, 1e-6)))
        return fired

    fired_timers = virtual.run(main())
    assert [d for d, _ in fired_timers] == [1e-6, 0.1, 0.1, 3.0, 86400.0 * 40]
    assert all(at == d for d, at in fired_timers)


def test_time_stands_still_while_something_is_ready():
    async def main():
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) == 0.0


def test_a_timeout_expires_in_virtual_time():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) == 60.0


def test_two_runs_of_one_seed_are_the_same():
    async def main():
        world = virtual.world(7)
        trace = []

        async def worker(name):
            for _ in range(20):
                await asyncio.sleep(world.random.random())
                trace.append((name, world.clock.now(), world.uid()))

        await asyncio.gather(*(worker(n) for n in "abc"))
        return trace

    assert virtual.run(main()) == virtual.run(main())


def test_waiting_for_what_can_never_happen_is_an_error_that_names_who_waits():
    async def waits_for_ever():
        await asyncio.Event().wait()

    async def main():
        await asyncio.create_task(waits_for_ever(), name="lost")

    with pytest.raises(virtual.Deadlock, match=r"lost in .*waits_for_ever at .*test_virtual\.py:\d+"):
        virtual.run(main())


def test_time_stands_still_for_a_thread():
    entered = threading.Event()

    def blocking():
        entered.set()
        return "done"

    async def main():
        loop = asyncio.get_running_loop()
        timer = loop.call_later(5, lambda: None)
        result = await asyncio.to_thread(blocking)
        at = loop.time()
        timer.cancel()
        return result, at

    assert virtual.run(main()) == ("done", 0.0)
    assert entered.is_set()


def test_a_thread_that_waits_for_virtual_time_is_reported(monkeypatch):
    monkeypatch.setattr(virtual, "THREAD_TIMEOUT", 0.05)
    release = threading.Event()

    async def main():
        loop = asyncio.get_running_loop()
        loop.call_later(5, release.set)
        try:
            await asyncio.to_thread(release.wait)
        finally:
            release.set()

    with pytest.raises(virtual.Deadlock, match="must not wait for virtual time"):
        virtual.run(main())


def test_sockets_are_refused():
    async def main():
        with socket.socket() as sock:
            asyncio.get_running_loop().add_reader(sock, lambda: None)

    with pytest.raises(RuntimeError, match="in-process transport"):
        virtual.run(main())


def test_the_clock_is_refused_on_a_loop_of_real_time():
    async def main():
        return virtual.VirtualClock().now()

    with pytest.raises(RuntimeError, match=r"virtual\.run"):
        asyncio.run(main())
