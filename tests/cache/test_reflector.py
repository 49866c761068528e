"""Tests of the reflector under faults, in virtual time: the cache converges, and its health reports the fault."""

import asyncio
import logging

import pytest

from fairlead.api.kinds import kind
from fairlead.testing import virtual

OBJECTS = 4


@pytest.fixture
def run_on_fake_server(fakes, caplog):
    """Return a function that runs `prepare(server)`, then `main(harness)`, in virtual time on a server with a few
    objects.
    """

    def run_on_fake_server(main, prepare=None, **watch):
        async def run_with_objects():
            world = fakes.CacheHarness(**watch)
            for number in range(OBJECTS):
                world.server.put(f"o{number}")
            if prepare:
                prepare(world.server)
            async with world:
                await main(world)

        virtual.run(run_with_objects())
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]

    return run_on_fake_server


def serve_initial_events(streams):
    def prepare(server):
        server.streams = streams

    return prepare


WITH_AND_WITHOUT_INITIAL_EVENTS = pytest.mark.parametrize("streams", [True, False], ids=["initial events", "pages"])


@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_reflector_syncs_and_follows_changes(run_on_fake_server, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        world.assert_converged()
        world.server.put("o1", 2)
        world.server.put("new")
        world.server.delete("o2")
        await asyncio.sleep(1)
        world.assert_converged()
        assert world.health.synced
        assert world.health.failures == 0
        expected = ["initial"] if streams else ["initial", "list", "watch"]
        assert world.server.requests == expected

    run_on_fake_server(main, serve_initial_events(streams))


@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_reflector_resumes_without_listing_again(run_on_fake_server, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.changes.clear()
        world.server.break_watches()
        world.server.put("o1", 2)
        world.server.delete("o2")
        await asyncio.sleep(10)
        assert [key[1] for key, _, _ in world.changes] == ["o1", "o2"]
        assert world.server.requests == ["watch"]

    run_on_fake_server(main, serve_initial_events(streams))


@pytest.mark.parametrize("fault_type", ["end", "break", "mid", "hang"])
@pytest.mark.parametrize("after_frames", range(OBJECTS + 5))
def test_a_watch_cut_at_any_frame_loses_no_change(run_on_fake_server, fakes, after_frames, fault_type):
    """Tests cuts before, during and after the initial events, and after later events."""

    def prepare(server):
        server.watch_faults.append(fakes.WatchFault(after_frames, fault_type))

    async def main(world):
        await asyncio.sleep(0.5)
        world.server.put("o1", 2)
        world.server.delete("o2")
        world.server.put("o3", 3)
        world.server.put("new")
        await asyncio.sleep(200)
        world.assert_converged()
        assert world.health.synced
        assert world.health.failures == 0

    run_on_fake_server(main, prepare)


def test_e1_interrupted_initial_events_start_again(run_on_fake_server, fakes):
    """Tests a bug of kopf: a watch that resumes at the version of the last received object misses the other objects."""

    def prepare(server):
        server.watch_faults.append(fakes.WatchFault(2, "break"))

    async def main(world):
        await world.cache.wait_for_sync()
        assert world.server.requests == ["initial", "initial"]
        world.assert_converged()
        assert len(world.changes) == OBJECTS, "no handler was called for the interrupted stream"

    run_on_fake_server(main, prepare)


@pytest.mark.parametrize("expiry", ["event", "answer"])
@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_e2_a_410_lists_again_and_reports_missed_deletions_once(run_on_fake_server, fakes, expiry, streams):
    """Tests a bug of kopf and lightkube: a relist that yields only existing objects leaves deleted objects in
    indexes.
    """

    async def main(world):
        await world.cache.wait_for_sync()
        owner_references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "owner"}]
        world.server.put("o3", ownerReferences=owner_references)
        await asyncio.sleep(1)
        assert len(world.view.owned_by("owner")) == 1
        world.changes.clear()
        world.server.break_watches()
        for name in ("o1", "o3"):
            world.server.delete(name)
        world.server.put("new")
        if expiry == "event":
            world.server.compact()
        else:
            world.server.failures.extend([None, fakes.status(410, "Expired")])
        await asyncio.sleep(30)
        changes = [(key[1], new is None) for key, _, new in world.changes]
        assert sorted(changes) == [("new", False), ("o1", True), ("o3", True)]
        assert world.view.owned_by("owner") == []
        assert {(obj.namespace, obj.name): obj for obj in world.view.list()} == world.server.objects

    run_on_fake_server(main, serve_initial_events(streams))


@pytest.mark.parametrize("code", [200, 203, 206])
def test_an_answer_that_is_not_a_list_never_empties_the_cache(run_on_fake_server, fakes, code):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.failures.extend([{"code": code}] * 3)
        change_count_before = len(world.changes)
        world.server.break_watches("410")
        await asyncio.sleep(0.5)
        assert world.server.requests[-1] == "list"
        assert "not what was requested" in world.health.error or f"HTTP {code}" in world.health.error
        assert len(world.view.list()) == OBJECTS
        await asyncio.sleep(200)
        assert len(world.changes) == change_count_before
        world.assert_converged()

    run_on_fake_server(main, serve_initial_events(streams=False))


def test_e2b_a_watch_error_other_than_410_is_retried_and_shown_in_health(run_on_fake_server, fakes):
    """Tests a bug of kopf: an ERROR event such as "etcdserver: no leader" ends the watch permanently."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches("500")
        await asyncio.sleep(0.1)
        assert world.health.failures == 1
        assert "InternalError" in world.health.error
        world.server.put("new")
        await asyncio.sleep(10)
        assert "initial" not in world.server.requests[1:]
        world.assert_converged()

    run_on_fake_server(main)


def test_e3_a_refused_reconnect_is_retried(run_on_fake_server, fakes):
    """Tests a bug of lightkube: the reconnect is outside the retry loop."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.failures.extend([fakes.NotSent("refused")] * 20)
        world.server.break_watches()
        world.server.put("new")
        await asyncio.sleep(600)
        assert "initial" not in world.server.requests[1:], "nothing was wrong with the version"
        world.assert_converged()

    run_on_fake_server(main)


def test_e4_repeated_410_backs_off(run_on_fake_server, fakes):
    """Tests a bug of kr8s: after a 410 the client sends 522 requests in two seconds."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.server.watch_faults.extend([fakes.WatchFault(0, "410")] * 1000)
        world.server.break_watches()
        await asyncio.sleep(60)
        assert len(world.server.requests) < 20
        world.server.watch_faults.clear()
        await asyncio.sleep(60)
        world.assert_converged()

    run_on_fake_server(main)


def test_e4b_a_watch_that_ends_in_time_resumes_without_delay(run_on_fake_server):
    """Tests a bug of kr8s: the watch generator ends silently at the server's timeout."""

    async def main(world):
        await world.cache.wait_for_sync()
        await asyncio.sleep(3600)
        assert 6 <= world.server.requests.count("watch") <= 12
        assert "check" not in world.server.requests, "nothing is in doubt when it ended when it should"
        world.server.put("new")
        await asyncio.sleep(0.001)
        world.assert_converged()

    run_on_fake_server(main)


def test_a_watch_starts_at_the_list_version_not_at_an_objects_version(run_on_fake_server):
    """Tests a bug of the official client: a list is sorted by name, so the version of its last object may be
    compacted.
    """

    def prepare(server):
        server.put("a", 1)
        server.compact()

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches()
        await asyncio.sleep(10)
        assert world.server.requests.count("initial") == 1
        world.assert_converged()

    run_on_fake_server(main, prepare)


@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_a_storm_of_429_backs_off_without_a_relist(run_on_fake_server, fakes, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.server.failures.extend([fakes.status(429, "TooManyRequests")] * 30)
        world.server.break_watches()
        world.server.put("new")
        await asyncio.sleep(60)
        assert len(world.server.requests) < 12
        assert world.health.failures > 3
        assert not world.health.error.startswith("OSError")
        assert set(world.server.requests) <= {"check", "watch"}
        await asyncio.sleep(3600)
        assert set(world.server.requests) <= {"check", "watch"}
        world.assert_converged()
        assert world.health.failures == 0

    run_on_fake_server(main, serve_initial_events(streams))


def test_retry_after_is_honoured(run_on_fake_server, fakes):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        too_many_requests = fakes.status(429, "TooManyRequests", details={"retryAfterSeconds": 120})
        world.server.failures.append(too_many_requests)
        world.server.break_watches()
        await asyncio.sleep(100)
        assert world.server.requests == ["watch"]
        await asyncio.sleep(60)
        assert world.server.requests == ["watch", "check", "watch"]

    run_on_fake_server(main)


def test_reflector_waits_for_a_server_that_is_down_at_the_start(run_on_fake_server, fakes):
    def prepare(server):
        server.failures.extend([fakes.NotSent("refused")] * 5 + [fakes.status(500, "InternalError")] * 2)

    async def main(world):
        await asyncio.sleep(1)
        assert not world.health.synced
        assert world.health.fed_at is None
        await world.cache.wait_for_sync()
        world.assert_converged()

    run_on_fake_server(main, prepare)


def test_a_very_short_watch_without_events_is_a_failure(run_on_fake_server, fakes):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.server.watch_faults.extend([fakes.WatchFault(0, "end")] * 1000)
        world.server.break_watches("end")
        await asyncio.sleep(60)
        assert world.server.requests.count("watch") < 10
        assert world.health.failures
        assert "ended the watch after 0.00 s" in world.health.error

    run_on_fake_server(main)


def test_a_half_open_connection_is_replaced(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        fed_at = world.health.fed_at
        world.server.break_watches("hang")
        world.server.put("new")
        await asyncio.sleep(80)
        assert world.health.fed_at == fed_at, "fed_at stays while nothing arrives"
        await asyncio.sleep(40)
        world.assert_converged()
        assert world.health.fed_at > fed_at

    run_on_fake_server(main)


def test_a_kind_without_bookmarks_is_watched_again_without_a_warning(run_on_fake_server, caplog):
    """Tests Events: a real server sends no bookmarks for Events because they are not in its watch cache."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches("hang")
        await asyncio.sleep(91)
        world.server.put("new")
        await asyncio.sleep(0.1)
        world.assert_converged()
        assert (world.health.failures, world.health.error) == (0, None)

    caplog.set_level(logging.WARNING)
    run_on_fake_server(main)
    assert caplog.text == ""


def test_bookmarks_keep_the_version_fresh_enough_to_resume(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.version += 1000  # writes of other kinds
        await asyncio.sleep(61)
        world.server.compact()
        world.server.break_watches()
        await asyncio.sleep(10)
        assert world.server.requests.count("initial") == 1
        assert world.health.fed_at > 60

    run_on_fake_server(main)


@pytest.mark.parametrize("how", ["end", "break", "mid", "503", "500", "429"])
@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_a_watch_that_ended_early_resumes_without_another_request(run_on_fake_server, fakes, streams, how):
    """Tests that a cut connection and an error at the start of a watch cost one watch, and neither list nor check."""

    async def main(world):
        await world.cache.wait_for_sync()
        for number in range(10):
            world.server.put("o1", number)
            await asyncio.sleep(45)  # A bookmark arrives each minute.
            world.server.requests.clear()
            if how.isdecimal():
                world.server.failures.append(fakes.status(int(how), "ServiceUnavailable"))
            world.server.break_watches("break" if how.isdecimal() else how)
            world.server.put("o2", number)
            await asyncio.sleep(8)
            assert world.server.requests == ["watch"] * (2 if how.isdecimal() else 1)
            world.assert_converged()

    run_on_fake_server(main, serve_initial_events(streams))


def test_a_quiet_watch_is_confirmed_by_its_bookmarks(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        await asyncio.sleep(250)  # No event, a bookmark each minute, and no end of the watch yet.
        world.server.break_watches()
        await asyncio.sleep(8)
        assert world.server.requests == ["watch"]

    run_on_fake_server(main)


@pytest.mark.parametrize("outage", ["refused", "long"])
def test_an_outage_is_followed_by_one_check_of_the_version(run_on_fake_server, fakes, outage):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        if outage == "refused":
            world.server.failures.append(fakes.NotSent("refused"))
        else:
            world.server.failures.extend([fakes.status(503, "ServiceUnavailable")] * 5)
        world.server.break_watches()
        await asyncio.sleep(80)
        assert world.server.requests.count("check") == (1 if outage == "refused" else 3)
        assert "list" not in world.server.requests
        assert "initial" not in world.server.requests
        world.assert_converged()

    run_on_fake_server(main)


@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_a_server_restored_without_an_outage_is_listed_again_after_a_silence(run_on_fake_server, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        backup = world.server.snapshot()
        world.server.put("lost")
        await asyncio.sleep(1)
        world.server.restore(backup)
        world.server.failures.clear()
        await asyncio.sleep(200)
        world.assert_converged()

    run_on_fake_server(main, serve_initial_events(streams))


@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_a_restored_server_is_listed_again(run_on_fake_server, streams):
    """Tests a server restored from a backup: it accepts a watch at a future version and sends no events."""

    async def main(world):
        await world.cache.wait_for_sync()
        backup = world.server.snapshot()
        for number in range(20):
            world.server.put("o1", number)
        world.server.put("lost")
        world.server.delete("o2")
        await asyncio.sleep(1)
        world.assert_converged()
        world.server.restore(backup)
        await asyncio.sleep(30)
        world.assert_converged()
        world.server.put("o3", 9)
        await asyncio.sleep(1)
        world.assert_converged()

    run_on_fake_server(main, serve_initial_events(streams))


def test_a_version_that_goes_backwards_during_a_watch_relists(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.version = 12
        world.server.put("o1", 9)
        await asyncio.sleep(1)
        world.assert_converged()
        world.server.version = 5
        await asyncio.sleep(61)  # a bookmark
        assert world.health.resource_version == "5"
        world.assert_converged()

    run_on_fake_server(main)


@WITH_AND_WITHOUT_INITIAL_EVENTS
def test_versions_that_are_not_integers_are_sent_back_unchanged(run_on_fake_server, streams):
    """Tests resource versions that are not integers. Some aggregated APIs have them."""

    def prepare(server):
        server.streams, server.prefix = streams, "x"
        for key in list(server.objects):
            server.put(key[1], 1)

    async def main(world):
        await world.cache.wait_for_sync()
        for forgets_history in (False, True):
            world.server.put("o1", 2)
            await asyncio.sleep(1)
            world.server.break_watches()
            world.server.delete("o1")
            world.server.put("o1", 3)
            if forgets_history:
                world.server.compact()
            await asyncio.sleep(10)
            world.assert_converged()

    run_on_fake_server(main, prepare)


def test_a_thousand_reconnects_leak_nothing(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches()
        await asyncio.sleep(60)
        tasks = len(asyncio.all_tasks())
        for number in range(1000):
            world.server.put("o1", number)
            world.server.break_watches(["break", "end", "mid", "410"][number % 4])
            await asyncio.sleep(60)
        assert len(asyncio.all_tasks()) == tasks
        assert len(world.server.watches) == 1
        assert len(asyncio.get_running_loop()._scheduled) < 10
        world.assert_converged()

    run_on_fake_server(main)


def test_an_object_recreated_during_an_outage_is_two_changes(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        world.changes.clear()
        for forgets_history in (False, True):
            world.server.break_watches()
            world.server.delete("o1")
            world.server.put("o1", 2)
            if forgets_history:
                world.server.compact()
            await asyncio.sleep(10)
        changes = [(old and old[0], new and new[0]) for _, old, new in world.changes]
        assert changes == [("u2", None), (None, "u5"), ("u5", None), (None, "u6")]

    run_on_fake_server(main)


def test_an_expired_page_token_lists_without_pages(run_on_fake_server, monkeypatch):
    monkeypatch.setattr("fairlead.cache.reflector.PAGE_SIZE", 2)

    def prepare(server):
        server.streams = False

        def between():
            server.put("o0", 5)
            server.compact()
            server.after_page = None

        server.after_page = between

    async def main(world):
        await world.cache.wait_for_sync()
        assert world.server.requests[:4] == ["initial", "list", "page", "list"]
        await asyncio.sleep(1)
        world.assert_converged()

    run_on_fake_server(main, prepare)


def test_changes_between_two_pages_come_from_the_watch(run_on_fake_server, monkeypatch):
    monkeypatch.setattr("fairlead.cache.reflector.PAGE_SIZE", 1)

    def prepare(server):
        server.streams = False

        def between():
            server.delete("o3")
            server.put("new")

        server.after_page = between

    async def main(world):
        await world.cache.wait_for_sync()
        await asyncio.sleep(1)
        world.assert_converged()
        assert (("n", "o3"), ("u4", 14), None) in world.changes

    run_on_fake_server(main, prepare)


def test_a_server_that_ignores_initial_events_is_listed(run_on_fake_server):
    def prepare(server):
        server.ignores_initial_events = True

    async def main(world):
        await asyncio.sleep(30)
        world.assert_converged()
        assert world.server.requests[:3] == ["initial", "list", "watch"]

    run_on_fake_server(main, prepare)


def test_each_namespace_has_one_watch_shared_by_equal_scopes(run_on_fake_server):
    async def main(world):
        view_of_both_namespaces = world.cache.watch(world.view.kind, namespaces=["n", "m"])
        guessed_kind = kind("v1", "ConfigMap", plural="not settled yet")
        second_view = world.cache.watch(guessed_kind, namespaces=["m"])
        world.server.put("elsewhere", namespace="m")
        await world.cache.wait_for_sync()
        assert world.server.requests.count("initial") == 3
        assert (
            view_of_both_namespaces.get("elsewhere", "m")
            == second_view.get("elsewhere", "m")
            == world.server.objects["m", "elsewhere"]
        )
        assert len(view_of_both_namespaces.list()) == OBJECTS + 1
        assert [obj.name for obj in view_of_both_namespaces.list("m")] == ["elsewhere"]
        assert second_view.get("o1", "n") is None
        assert world.cache.covers(world.view.kind, "x")

    run_on_fake_server(main)


def test_wait_until_returns_when_the_version_is_reached(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        wait_task = asyncio.create_task(world.view.wait_until(str(world.server.version + 2)))
        world.server.put("o1", 2)
        await asyncio.sleep(1)
        assert not wait_task.done()
        world.server.put("o1", 3)
        await asyncio.sleep(0.001)
        assert wait_task.done()
        await world.view.wait_until(str(world.server.version))

    run_on_fake_server(main)


def test_a_handler_that_raises_does_not_stop_the_watch(fakes, caplog):
    async def main():
        world = fakes.CacheHarness()

        def raising_handler(change):
            raise RuntimeError("a bug of the user's")

        world.view.subscribe(raising_handler)
        async with world:
            await world.cache.wait_for_sync()
            world.server.put("new")
            await asyncio.sleep(1)
            world.assert_converged()

    virtual.run(main())
    assert "a handler of changes to ConfigMap failed on n/new" in caplog.text


def test_a_late_handler_is_first_called_with_existing_objects(run_on_fake_server):
    async def main(world):
        await world.cache.wait_for_sync()
        changes = []
        world.view.subscribe(lambda change: changes.append((change.name, change.initial)))
        world.server.put("new")
        await asyncio.sleep(1)
        assert changes == [("o0", True), ("o1", True), ("o2", True), ("o3", True), ("new", False)]

    run_on_fake_server(main)
