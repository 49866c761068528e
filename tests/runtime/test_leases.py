"""Tests that at most one process holds a lease, within the documented limits."""

import asyncio
import json

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


def read_holder(server):
    return server.objects["greeter"]["spec"]["holderIdentity"]


@in_virtual_time
async def test_second_candidate_waits_until_the_first_releases(server):
    world = virtual.world()
    first_lease, second_lease = lease(server, world, "a"), lease(server, world, "b")
    await first_lease.acquire()
    keep_task = asyncio.create_task(first_lease.keep())
    acquire_task = asyncio.create_task(second_lease.acquire())
    await asyncio.sleep(120)
    assert not acquire_task.done()
    assert first_lease.seconds_left() > 0 >= second_lease.seconds_left()
    keep_task.cancel()
    await first_lease.release()
    assert first_lease.seconds_left() <= 0
    start = world.clock.monotonic()
    await acquire_task
    assert read_holder(server) == "b"
    assert world.clock.monotonic() - start < 3
    assert server.objects["greeter"]["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("silent_for", [0.0, 1.9])
def test_successor_leads_only_after_the_holder_has_given_up(server, silent_for):
    async def test():
        world = virtual.world()
        first_lease, second_lease = lease(server, world, "a"), lease(server, world, "b")
        await first_lease.acquire()  # Then it never renews.
        await asyncio.sleep(silent_for)
        acquire_task = asyncio.create_task(second_lease.acquire())
        while not acquire_task.done():
            assert not (first_lease.seconds_left() > 0 and second_lease.seconds_left() > 0)
            await asyncio.sleep(0.1)
        assert second_lease.seconds_left() > 0 >= first_lease.seconds_left()
        assert first_lease.seconds_left() <= -5  # the margin

    virtual.run(test())


@in_virtual_time
async def test_holder_that_cannot_renew_gives_up_before_the_lease_ends(server):
    world = virtual.world()
    first_lease = lease(server, world, "a", duration=15.0)
    await first_lease.acquire()
    server.failure_to_raise = NotSent("refused")
    start = world.clock.monotonic()
    await first_lease.keep()
    assert 9.0 <= world.clock.monotonic() - start <= 10.0
    assert first_lease.seconds_left() <= 0


@in_virtual_time
async def test_hanging_renewal_does_not_outlast_the_lease(server):
    world = virtual.world()
    first_lease = lease(server, world, "a")
    await first_lease.acquire()
    server.delay = 3600
    start = world.clock.monotonic()
    await first_lease.keep()
    assert world.clock.monotonic() - start <= 10.0


@in_virtual_time
async def test_foreign_edit_of_the_lease_does_not_lose_it(server):
    world = virtual.world()
    slow_renewals = []
    first_lease = lease(server, world, "a", on_slow_renewal=lambda: slow_renewals.append(1))
    await first_lease.acquire()
    keep_task = asyncio.create_task(first_lease.keep())
    for _ in range(10):
        await asyncio.sleep(7)
        obj = dict(server.objects["greeter"])
        server._store({**obj, "metadata": {**obj["metadata"], "labels": {"team": "b"}}})
    assert not keep_task.done()
    assert first_lease.seconds_left() > 0
    assert server.objects["greeter"]["metadata"]["labels"] == {"team": "b"}
    assert len(slow_renewals) in (9, 10), "each edit makes one renewal read first, and nothing else does"
    keep_task.cancel()


@in_virtual_time
async def test_holder_stops_when_its_lease_was_taken(server):
    world = virtual.world()
    first_lease = lease(server, world, "a")
    await first_lease.acquire()
    keep_task = asyncio.create_task(first_lease.keep())
    obj = dict(server.objects["greeter"])
    server._store({**obj, "spec": {**obj["spec"], "holderIdentity": "thief"}})
    await keep_task
    assert first_lease.seconds_left() <= 0
    await first_lease.release()
    assert read_holder(server) == "thief"


@in_virtual_time
async def test_no_write_is_sent_from_the_deletion_of_the_lease_until_it_is_created_again(server):
    world, server.events = virtual.world(), asyncio.Queue()
    first_lease = lease(server, world, "a")
    await first_lease.acquire()
    keep_task = asyncio.create_task(first_lease.keep())
    await asyncio.sleep(0.5)
    server.delay = 0.2
    server.events.put_nowait(("MODIFIED", b'{"spec": {"holderIdentity": "a"}}'))
    await asyncio.sleep(0.1)
    assert first_lease.seconds_left() > 0, "our own renewal"
    server.events.put_nowait(("DELETED", json.dumps(server.objects.pop("greeter")).encode()))
    await asyncio.sleep(0.1)
    assert first_lease.seconds_left() <= 0
    await asyncio.sleep(0.5)  # a read and a create
    assert read_holder(server) == "a"
    assert first_lease.seconds_left() > 0
    server.events.put_nowait(("MODIFIED", b'{"spec": {"holderIdentity": "thief"}}'))
    server.objects["greeter"]["spec"]["holderIdentity"] = "thief"
    await asyncio.sleep(0.1)
    assert first_lease.seconds_left() <= 0
    await keep_task


@in_virtual_time
async def test_renewal_that_was_sent_before_a_foreign_change_does_not_end_the_doubt(server):
    world, server.events = virtual.world(), asyncio.Queue()
    first_lease = lease(server, world, "a")
    await first_lease.acquire()
    keep_task = asyncio.create_task(first_lease.keep())
    await asyncio.sleep(0.5)
    server.delay = 1.0
    await asyncio.sleep(2.0)  # A renewal is on its way.
    server.events.put_nowait(("MODIFIED", b'{"spec": {"holderIdentity": "thief"}}'))
    await asyncio.sleep(0.6)  # Its answer has arrived.
    assert first_lease.seconds_left() <= 0
    keep_task.cancel()


@pytest.mark.parametrize("renewals", [0, 3])
def test_standby_waits_out_the_lease_that_it_saw_before_it_creates_a_missing_one(server, renewals):
    async def test():
        world = virtual.world()
        holder, standby = lease(server, world, "a"), lease(server, world, "b")
        await holder.acquire()
        acquire_task = asyncio.create_task(standby.acquire())
        for _ in range(renewals):
            await asyncio.sleep(3)
            await holder._try()
        await asyncio.sleep(3)
        del server.objects["greeter"]
        while not acquire_task.done():
            assert not (holder.seconds_left() > 0 and standby.seconds_left() > 0)
            await asyncio.sleep(0.1)
        assert standby.seconds_left() > 0 >= holder.seconds_left()

    virtual.run(test())


@in_virtual_time
async def test_standby_creates_a_missing_lease_at_once_if_it_saw_no_holder(server):
    world = virtual.world()
    await asyncio.wait_for(lease(server, world, "a").acquire(), 0.1)


class SuspendingClock:
    """A clock that includes the seconds of a suspend. The clock of the event loop does not include them."""

    def __init__(self):
        self._inner = virtual.VirtualClock()
        self.suspended_seconds = 0.0

    def now(self):
        return self._inner.now() + self.suspended_seconds

    def monotonic(self):
        return self._inner.monotonic() + self.suspended_seconds


@in_virtual_time
async def test_no_write_is_sent_on_the_old_lease_after_a_suspend(server):
    clock = SuspendingClock()
    world = fl.World.seeded(clock, 0)
    first_lease = lease(server, world, "a")
    await first_lease.acquire()
    send_recorder = SendRecorder()
    fenced_transport = FencedTransport(send_recorder, first_lease)
    await fenced_transport.request(HttpRequest("PATCH", "/x"))
    clock.suspended_seconds = 3600.0  # one hour of suspend
    with pytest.raises(NotLeading):
        await fenced_transport.request(HttpRequest("PATCH", "/x"))
    assert len(send_recorder.sent) == 1
    await first_lease.keep()  # It gives up immediately.


class SendRecorder:
    def __init__(self):
        self.sent = []
        self.before_send = None  # called between the check of the FencedTransport and the send

    async def request(self, request):
        if self.before_send:
            self.before_send()
            request.before_send()
        self.sent.append((request.method, request.timeout))

    async def close(self): ...


class FakeLease:
    def __init__(self, seconds_left):
        self._seconds_left = seconds_left

    def seconds_left(self):
        return self._seconds_left


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_write_is_not_sent_without_the_lease(method):
    send_recorder = SendRecorder()
    with pytest.raises(NotLeading):
        await FencedTransport(send_recorder, FakeLease(0.0)).request(HttpRequest(method, "/api/v1/pods"))
    assert send_recorder.sent == []


async def test_lease_is_checked_again_at_the_last_moment():
    send_recorder, fake_lease = SendRecorder(), FakeLease(5.0)
    send_recorder.before_send = lambda: setattr(fake_lease, "_seconds_left", 0.0)
    with pytest.raises(NotLeading):
        await FencedTransport(send_recorder, fake_lease).request(HttpRequest("PATCH", "/api/v1/pods"))
    assert send_recorder.sent == []


async def test_read_is_sent_without_the_lease():
    send_recorder = SendRecorder()
    await FencedTransport(send_recorder, FakeLease(0.0)).request(HttpRequest("GET", "/api/v1/pods", timeout=30.0))
    assert send_recorder.sent == [("GET", 30.0)]


@pytest.mark.parametrize(
    ("requested_timeout", "seconds_left", "expected_timeout"), [(30.0, 4.0, 4.0), (2.0, 4.0, 2.0), (None, 4.0, 4.0)]
)
async def test_deadline_of_a_write_is_before_the_end_of_the_lease(requested_timeout, seconds_left, expected_timeout):
    send_recorder = SendRecorder()
    await FencedTransport(send_recorder, FakeLease(seconds_left)).request(
        HttpRequest("PATCH", "/api/v1/pods", timeout=requested_timeout)
    )
    assert send_recorder.sent == [("PATCH", expected_timeout)]
