"""Tests of Events: equal Events are counted in one object, and the number of Events per object is limited."""

import asyncio
import contextlib

from fairlead.api.builtin import ConfigMap, Event
from fairlead.api.errors import UnknownOutcome
from fairlead.api.objects import Object
from fairlead.runtime.events import Recorder
from fairlead.testing import virtual


@contextlib.asynccontextmanager
async def recorder_on(server):
    recorder = Recorder(server, virtual.world(), "greeter", "greeter-1")
    task = asyncio.create_task(recorder.run())
    yield recorder
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def object_reference(name="hello"):
    obj = ConfigMap(name, "default")
    obj["metadata"]["uid"] = f"uid-{name}"
    return Object(obj)


def test_equal_events_are_counted_in_one_object(server):
    async def test():
        async with recorder_on(server) as recorder:
            for _ in range(100):
                recorder.record(object_reference(), "Failed", "no such \x1b[31m thing", warning=True)
                await asyncio.sleep(1)
            await recorder.flush()
            (event,) = server.objects.values()
            assert event["count"] == 100
            assert event["type"] == "Warning"
            assert event["involvedObject"]["uid"] == "uid-hello"
            assert "\x1b" not in event["message"]
            assert event["firstTimestamp"] < event["lastTimestamp"]
            assert len(server.log) <= 6  # one create, then one patch every half minute

    virtual.run(test())


def test_different_events_are_different_objects(server):
    async def test():
        async with recorder_on(server) as recorder:
            recorder.record(object_reference(), "Applied", "one")
            recorder.record(object_reference(), "Applied", "two")
            recorder.record(object_reference("other"), "Applied", "two")
            await recorder.flush()
            assert sorted(event["message"] for event in server.objects.values()) == ["one", "two", "two"]

    virtual.run(test())


def test_events_of_one_object_are_limited_and_others_are_not(server):
    async def test():
        async with recorder_on(server) as recorder:
            for number in range(100):
                recorder.record(object_reference(), "Talking", f"number {number}")
            recorder.record(object_reference("quiet"), "Talking", "once")
            await recorder.flush()
            names = [event["involvedObject"]["name"] for event in server.objects.values()]
            assert (names.count("hello"), names.count("quiet")) == (25, 1)

    virtual.run(test())


def test_expired_event_is_created_again(server):
    async def test():
        async with recorder_on(server) as recorder:
            recorder.record(object_reference(), "Failed", "again")
            await recorder.flush()
            server.objects.clear()
            recorder.record(object_reference(), "Failed", "again")
            await recorder.flush()
            assert [event["count"] for event in server.objects.values()] == [2]

    virtual.run(test())


def test_failed_event_write_is_logged(server, caplog):
    async def test():
        async with recorder_on(server) as recorder:
            server.failure_to_raise = UnknownOutcome("lost")
            recorder.record(object_reference(), "Failed", "one")
            await recorder.flush()
            server.failure_to_raise = None
            recorder.record(object_reference(), "Failed", "two")
            await recorder.flush()
            assert [event["message"] for event in server.objects.values()] == ["two"]

    virtual.run(test())
    assert "cannot write an Event" in caplog.text


def test_flush_sends_a_cancelled_event_once(server):
    async def flush_after_cancelling(after_arrival):
        server.objects.clear()
        server.delay = 1.0
        async with recorder_on(server) as recorder:
            recorder.record(object_reference(), "Failed", "last words")
            await asyncio.sleep(0.5)
            if after_arrival:
                (name,) = (series.name for series, _ in recorder._series.values())
                server.objects[name] = Event(name, "default") | {"message": "last words"}
        server.delay = 0.0
        await recorder.flush()
        return [event["message"] for event in server.objects.values()]

    async def test():
        assert await flush_after_cancelling(after_arrival=False) == ["last words"]
        assert await flush_after_cancelling(after_arrival=True) == ["last words"]

    virtual.run(test())
