"""Leases: at most one process is the leader, within the stated limits."""

import asyncio

import pytest
from virtual_time import in_virtual_time

import fairlead as fl
from fairlead.api.requests import HttpRequest
from fairlead.client.transport import NotSent
from fairlead.runtime.leases import Lease
from fairlead.runtime.transports import FencedTransport, NotLeading
from fairlead.testing import virtual


def lease(server, world, identity, **options):
    return Lease(server, world, "greeter", "default", identity, **options)


def holder(server):
    return server.objects["greeter"]["spec"]["holderIdentity"]


@in_virtual_time
async def test_second_candidate_waits_until_the_first_releases(server):
    world = virtual.world()
    first, second = lease(server, world, "a"), lease(server, world, "b")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(120)
    assert not waiting.done()
    assert first.seconds_left() > 0 >= second.seconds_left()
    keeping.cancel()
    await first.release()
    assert first.seconds_left() <= 0
    start = world.clock.monotonic()
    await waiting
    assert holder(server) == "b"
    assert world.clock.monotonic() - start < 3
    assert server.objects["greeter"]["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("silent_for", [0.0, 1.9])
def test_successor_leads_only_after_the_holder_has_given_up(server, silent_for):
    async def test():
        world = virtual.world()
        first, second = lease(server, world, "a"), lease(server, world, "b")
        await first.acquire()  # Then it never renews.
        await asyncio.sleep(silent_for)
        waiting = asyncio.create_task(second.acquire())
        while not waiting.done():
            assert not (first.seconds_left() > 0 and second.seconds_left() > 0)
            await asyncio.sleep(0.1)
        assert second.seconds_left() > 0 >= first.seconds_left()
        assert first.seconds_left() <= -5  # the margin

    virtual.run(test())


@in_virtual_time
async def test_holder_that_cannot_renew_gives_up_before_the_lease_ends(server):
    world = virtual.world()
    first = lease(server, world, "a", duration=15.0)
    await first.acquire()
    server.fail = NotSent("refused")
    start = world.clock.monotonic()
    await first.keep()
    assert 9.0 <= world.clock.monotonic() - start <= 10.0
    assert first.seconds_left() <= 0


@in_virtual_time
async def test_hanging_renewal_does_not_outlast_the_lease(server):
    world = virtual.world()
    first = lease(server, world, "a")
    await first.acquire()
    server.delay = 3600
    start = world.clock.monotonic()
    await first.keep()
    assert world.clock.monotonic() - start <= 10.0


@in_virtual_time
async def test_foreign_edit_of_the_lease_does_not_lose_it(server):
    world = virtual.world()
    slow = []
    first = lease(server, world, "a", on_slow_renewal=lambda: slow.append(1))
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    for _ in range(10):
        await asyncio.sleep(7)
        obj = dict(server.objects["greeter"])
        server._store({**obj, "metadata": {**obj["metadata"], "labels": {"team": "b"}}})
    assert not keeping.done()
    assert first.seconds_left() > 0
    assert server.objects["greeter"]["metadata"]["labels"] == {"team": "b"}
    assert len(slow) in (9, 10), "each edit makes one renewal read first, and nothing else does"
    keeping.cancel()


@in_virtual_time
async def test_holder_stops_when_its_lease_was_taken(server):
    world = virtual.world()
    first = lease(server, world, "a")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    obj = dict(server.objects["greeter"])
    server._store({**obj, "spec": {**obj["spec"], "holderIdentity": "thief"}})
    await keeping
    assert first.seconds_left() <= 0
    await first.release()
    assert holder(server) == "thief"


class Suspending:
    """A clock that counts a suspend, while the clock of the event loop does not."""

    def __init__(self):
        self._inner = virtual.VirtualClock()
        self.asleep = 0.0

    def now(self):
        return self._inner.now() + self.asleep

    def monotonic(self):
        return self._inner.monotonic() + self.asleep


@in_virtual_time
async def test_no_write_is_sent_on_the_old_lease_after_a_suspend(server):
    clock = Suspending()
    world = fl.World.seeded(clock, 0)
    first = lease(server, world, "a")
    await first.acquire()
    wire = Wire()
    fenced = FencedTransport(wire, first)
    await fenced.request(HttpRequest("PATCH", "/x"))
    clock.asleep = 3600.0  # one hour of suspend
    with pytest.raises(NotLeading):
        await fenced.request(HttpRequest("PATCH", "/x"))
    assert len(wire.sent) == 1
    await first.keep()  # It gives up immediately.


class Wire:
    def __init__(self):
        self.sent = []

    async def request(self, request):
        self.sent.append((request.method, request.timeout))

    async def close(self): ...


class Lead:
    def __init__(self, left):
        self._left = left

    def seconds_left(self):
        return self._left


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_write_is_not_sent_without_the_lease(method):
    wire = Wire()
    with pytest.raises(NotLeading):
        await FencedTransport(wire, Lead(0.0)).request(HttpRequest(method, "/api/v1/pods"))
    assert wire.sent == []


async def test_read_is_sent_without_the_lease():
    wire = Wire()
    await FencedTransport(wire, Lead(0.0)).request(HttpRequest("GET", "/api/v1/pods", timeout=30.0))
    assert wire.sent == [("GET", 30.0)]


@pytest.mark.parametrize(("asked", "left", "sent"), [(30.0, 4.0, 4.0), (2.0, 4.0, 2.0), (None, 4.0, 4.0)])
async def test_deadline_of_a_write_is_before_the_end_of_the_lease(asked, left, sent):
    wire = Wire()
    await FencedTransport(wire, Lead(left)).request(HttpRequest("PATCH", "/api/v1/pods", timeout=asked))
    assert wire.sent == [("PATCH", sent)]
