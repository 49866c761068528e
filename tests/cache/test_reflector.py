"""Tests of the reflector under faults, in virtual time: the cache converges, and its health reports the fault."""

import asyncio
import logging

import pytest

from fairlead.api.kinds import kind
from fairlead.testing import virtual

OBJECTS = 4


@pytest.fixture
def run(chaos, caplog):
    """Run `prepare(server)`, then `main(world)` in virtual time on a server with a few objects."""

    def run(main, prepare=None, **watch):
        async def whole():
            world = chaos.World(**watch)
            for number in range(OBJECTS):
                world.server.put(f"o{number}")
            if prepare:
                prepare(world.server)
            async with world:
                await main(world)

        virtual.run(whole())
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]

    return run


def offer(streams):
    def prepare(server):
        server.streams = streams

    return prepare


BOTH = pytest.mark.parametrize("streams", [True, False], ids=["initial events", "pages"])


@BOTH
def test_reflector_syncs_and_follows_changes(run, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        world.assert_true()
        world.server.put("o1", 2)
        world.server.put("new")
        world.server.delete("o2")
        await asyncio.sleep(1)
        world.assert_true()
        assert world.health.synced
        assert world.health.failures == 0
        expected = ["initial"] if streams else ["initial", "list", "watch"]
        assert world.server.requests == expected

    run(main, offer(streams))


@BOTH
def test_reflector_resumes_without_listing_again(run, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.changes.clear()
        world.server.break_watches()
        world.server.put("o1", 2)
        world.server.delete("o2")
        await asyncio.sleep(10)
        assert [key[1] for key, _, _ in world.changes] == ["o1", "o2"]
        assert set(world.server.requests) == {"check", "watch"}

    run(main, offer(streams))


@pytest.mark.parametrize("how", ["end", "break", "mid", "hang"])
@pytest.mark.parametrize("after", range(OBJECTS + 5))
def test_a_watch_cut_at_any_frame_loses_no_change(run, chaos, after, how):
    """Before, in the middle of and after the initial events, and after events that followed them."""

    def prepare(server):
        server.cuts.append(chaos.Cut(after, how))

    async def main(world):
        await asyncio.sleep(0.5)
        world.server.put("o1", 2)
        world.server.delete("o2")
        world.server.put("o3", 3)
        world.server.put("new")
        await asyncio.sleep(200)
        world.assert_true()
        assert world.health.synced
        assert world.health.failures == 0

    run(main, prepare)


def test_e1_interrupted_initial_events_start_again(run, chaos):
    """Resuming at the version of the last object would never report the others (kopf)."""

    def prepare(server):
        server.cuts.append(chaos.Cut(2, "break"))

    async def main(world):
        await world.cache.wait_for_sync()
        assert world.server.requests == ["initial", "initial"]
        world.assert_true()
        assert len(world.changes) == OBJECTS, "no handler was called for the interrupted stream"

    run(main, prepare)


@pytest.mark.parametrize("form", ["event", "answer"])
@BOTH
def test_e2_a_410_lists_again_and_reports_missed_deletions_once(run, chaos, form, streams):
    """A relist that yields only existing objects leaves deleted ones in indexes (kopf, lightkube)."""

    async def main(world):
        await world.cache.wait_for_sync()
        owned = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "owner"}]
        world.server.put("o3", ownerReferences=owned)
        await asyncio.sleep(1)
        assert len(world.view.owned_by("owner")) == 1
        world.changes.clear()
        world.server.break_watches()
        for name in ("o1", "o3"):
            world.server.delete(name)
        world.server.put("new")
        if form == "event":
            world.server.compact()
        else:
            world.server.failures.extend([None, chaos.status(410, "Expired")])
        await asyncio.sleep(30)
        changes = [(key[1], new is None) for key, _, new in world.changes]
        assert sorted(changes) == [("new", False), ("o1", True), ("o3", True)]
        assert world.view.owned_by("owner") == []
        assert {(obj.namespace, obj.name): obj for obj in world.view.list()} == world.server.objects

    run(main, offer(streams))


@pytest.mark.parametrize("code", [200, 203, 206])
def test_an_answer_that_is_not_a_list_never_empties_the_cache(run, chaos, code):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.failures.extend([{"code": code}] * 3)
        seen = len(world.changes)
        world.server.break_watches("410")
        await asyncio.sleep(0.5)
        assert world.server.requests[-1] == "list"
        assert "not what was requested" in world.health.error or f"HTTP {code}" in world.health.error
        assert len(world.view.list()) == OBJECTS
        await asyncio.sleep(200)
        assert len(world.changes) == seen
        world.assert_true()

    run(main, offer(streams=False))


def test_e2b_a_watch_error_other_than_410_is_retried_and_shown_in_health(run, chaos):
    """An ERROR event such as "etcdserver: no leader" must not end a watch permanently (kopf)."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches("500")
        await asyncio.sleep(0.1)
        assert world.health.failures == 1
        assert "InternalError" in world.health.error
        world.server.put("new")
        await asyncio.sleep(10)
        assert "initial" not in world.server.requests[1:]
        world.assert_true()

    run(main)


def test_e3_a_refused_reconnect_is_retried(run, chaos):
    """The reconnect must be inside the retry loop (lightkube)."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.failures.extend([chaos.NotSent("refused")] * 20)
        world.server.break_watches()
        world.server.put("new")
        await asyncio.sleep(600)
        assert "initial" not in world.server.requests[1:], "nothing was wrong with the version"
        world.assert_true()

    run(main)


def test_e4_repeated_410_backs_off(run, chaos):
    """522 requests in two seconds (kr8s)."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.server.cuts.extend([chaos.Cut(0, "410")] * 1000)
        world.server.break_watches()
        await asyncio.sleep(60)
        assert len(world.server.requests) < 20
        world.server.cuts.clear()
        await asyncio.sleep(60)
        world.assert_true()

    run(main)


def test_e4b_a_watch_that_ends_in_time_resumes_without_delay(run):
    """A generator that silently ends at the server's timeout is a dead watch (kr8s)."""

    async def main(world):
        await world.cache.wait_for_sync()
        await asyncio.sleep(3600)
        assert 6 <= world.server.requests.count("watch") <= 12
        assert "check" not in world.server.requests, "nothing is in doubt when it ended when it should"
        world.server.put("new")
        await asyncio.sleep(0.001)
        world.assert_true()

    run(main)


def test_a_watch_starts_at_the_list_version_not_at_an_objects_version(run):
    """Objects are sorted by name, so the version of the last one may be compacted (the official client)."""

    def prepare(server):
        server.put("a", 1)
        server.compact()

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches()
        await asyncio.sleep(10)
        assert world.server.requests.count("initial") == 1
        world.assert_true()

    run(main, prepare)


@BOTH
def test_a_storm_of_429_backs_off_without_a_relist(run, chaos, streams):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.server.failures.extend([chaos.status(429, "TooManyRequests")] * 30)
        world.server.break_watches()
        world.server.put("new")
        await asyncio.sleep(60)
        assert len(world.server.requests) < 12
        assert world.health.failures > 3
        assert not world.health.error.startswith("OSError")
        assert set(world.server.requests) <= {"check", "watch"}
        await asyncio.sleep(3600)
        assert set(world.server.requests) <= {"check", "watch"}
        world.assert_true()
        assert world.health.failures == 0

    run(main, offer(streams))


def test_retry_after_is_honoured(run, chaos):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        refusal = chaos.status(429, "TooManyRequests", details={"retryAfterSeconds": 120})
        world.server.failures.extend([None, refusal])
        world.server.break_watches()
        await asyncio.sleep(100)
        assert world.server.requests == ["check", "watch"]
        await asyncio.sleep(60)
        assert world.server.requests == ["check", "watch", "check", "watch"]

    run(main)


def test_reflector_waits_for_a_server_that_is_down_at_the_start(run, chaos):
    def prepare(server):
        server.failures.extend([chaos.NotSent("refused")] * 5 + [chaos.status(500, "InternalError")] * 2)

    async def main(world):
        await asyncio.sleep(1)
        assert not world.health.synced
        assert world.health.fed_at is None
        await world.cache.wait_for_sync()
        world.assert_true()

    run(main, prepare)


def test_a_very_short_watch_without_events_is_a_failure(run, chaos):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.requests.clear()
        world.server.cuts.extend([chaos.Cut(0, "end")] * 1000)
        world.server.break_watches("end")
        await asyncio.sleep(60)
        assert world.server.requests.count("watch") < 10
        assert world.health.failures
        assert "ended the watch after 0.00 s" in world.health.error

    run(main)


def test_a_half_open_connection_is_replaced(run):
    async def main(world):
        await world.cache.wait_for_sync()
        fed = world.health.fed_at
        world.server.break_watches("hang")
        world.server.put("new")
        await asyncio.sleep(80)
        assert world.health.fed_at == fed, "fed_at stays while nothing arrives"
        await asyncio.sleep(40)
        world.assert_true()
        assert world.health.fed_at > fed

    run(main)


def test_a_kind_without_bookmarks_is_watched_again_without_a_warning(run, caplog):
    """A real server sends no bookmarks for Events, because they are not in its watch cache."""

    async def main(world):
        await world.cache.wait_for_sync()
        world.server.break_watches("hang")
        await asyncio.sleep(91)
        world.server.put("new")
        await asyncio.sleep(0.1)
        world.assert_true()
        assert (world.health.failures, world.health.error) == (0, None)

    caplog.set_level(logging.WARNING)
    run(main)
    assert caplog.text == ""


def test_bookmarks_keep_the_version_fresh_enough_to_resume(run):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.version += 1000  # writes of other kinds
        await asyncio.sleep(61)
        world.server.compact()
        world.server.break_watches()
        await asyncio.sleep(10)
        assert world.server.requests.count("initial") == 1
        assert world.health.fed_at > 60

    run(main)


@BOTH
def test_a_restored_server_is_listed_again(run, streams):
    """A restored server accepts a watch at a future version and sends nothing."""

    async def main(world):
        await world.cache.wait_for_sync()
        backup = world.server.snapshot()
        for number in range(20):
            world.server.put("o1", number)
        world.server.put("lost")
        world.server.delete("o2")
        await asyncio.sleep(1)
        world.assert_true()
        world.server.restore(backup)
        await asyncio.sleep(30)
        world.assert_true()
        world.server.put("o3", 9)
        await asyncio.sleep(1)
        world.assert_true()

    run(main, offer(streams))


def test_a_version_that_goes_backwards_during_a_watch_relists(run):
    async def main(world):
        await world.cache.wait_for_sync()
        world.server.version = 12
        world.server.put("o1", 9)
        await asyncio.sleep(1)
        world.assert_true()
        world.server.version = 5
        await asyncio.sleep(61)  # a bookmark
        assert world.health.resource_version == "5"
        world.assert_true()

    run(main)


@BOTH
def test_versions_that_are_not_integers_are_sent_back_unchanged(run, streams):
    """Some aggregated APIs have such versions."""

    def prepare(server):
        server.streams, server.prefix = streams, "x"
        for key in list(server.objects):
            server.put(key[1], 1)

    async def main(world):
        await world.cache.wait_for_sync()
        for forget in (False, True):
            world.server.put("o1", 2)
            await asyncio.sleep(1)
            world.server.break_watches()
            world.server.delete("o1")
            world.server.put("o1", 3)
            if forget:
                world.server.compact()
            await asyncio.sleep(10)
            world.assert_true()

    run(main, prepare)


def test_a_thousand_reconnects_leak_nothing(run):
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
        world.assert_true()

    run(main)


def test_an_object_recreated_during_an_outage_is_two_changes(run):
    async def main(world):
        await world.cache.wait_for_sync()
        world.changes.clear()
        for forget in (False, True):
            world.server.break_watches()
            world.server.delete("o1")
            world.server.put("o1", 2)
            if forget:
                world.server.compact()
            await asyncio.sleep(10)
        changes = [(old and old[0], new and new[0]) for _, old, new in world.changes]
        assert changes == [("u2", None), (None, "u5"), ("u5", None), (None, "u6")]

    run(main)


def test_an_expired_page_token_lists_without_pages(run, monkeypatch):
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
        world.assert_true()

    run(main, prepare)


def test_changes_between_two_pages_come_from_the_watch(run, monkeypatch):
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
        world.assert_true()
        assert (("n", "o3"), ("u4", 14), None) in world.changes

    run(main, prepare)


def test_a_server_that_ignores_initial_events_is_listed(run):
    def prepare(server):
        server.ignores_initial_events = True

    async def main(world):
        await asyncio.sleep(30)
        world.assert_true()
        assert world.server.requests[:3] == ["initial", "list", "watch"]

    run(main, prepare)


def test_each_namespace_has_one_watch_shared_by_equal_scopes(run):
    async def main(world):
        both = world.cache.watch(world.view.kind, namespaces=["n", "m"])
        guessed = kind("v1", "ConfigMap", plural="not settled yet")
        again = world.cache.watch(guessed, namespaces=["m"])
        world.server.put("elsewhere", namespace="m")
        await world.cache.wait_for_sync()
        assert world.server.requests.count("initial") == 3
        assert both.get("elsewhere", "m") == again.get("elsewhere", "m") == world.server.objects["m", "elsewhere"]
        assert len(both.list()) == OBJECTS + 1
        assert [obj.name for obj in both.list("m")] == ["elsewhere"]
        assert again.get("o1", "n") is None
        assert world.cache.covers(world.view.kind, "x")

    run(main)


def test_wait_until_returns_when_the_version_is_reached(run):
    async def main(world):
        await world.cache.wait_for_sync()
        reached = asyncio.create_task(world.view.wait_until(str(world.server.version + 2)))
        world.server.put("o1", 2)
        await asyncio.sleep(1)
        assert not reached.done()
        world.server.put("o1", 3)
        await asyncio.sleep(0.001)
        assert reached.done()
        await world.view.wait_until(str(world.server.version))

    run(main)


def test_a_handler_that_raises_does_not_stop_the_watch(chaos, caplog):
    async def main():
        world = chaos.World()

        def broken(change):
            raise RuntimeError("a bug of the user's")

        world.view.subscribe(broken)
        async with world:
            await world.cache.wait_for_sync()
            world.server.put("new")
            await asyncio.sleep(1)
            world.assert_true()

    virtual.run(main())
    assert "a handler of changes to ConfigMap failed on n/new" in caplog.text


def test_a_late_handler_is_first_called_with_existing_objects(run):
    async def main(world):
        await world.cache.wait_for_sync()
        changes = []
        world.view.subscribe(lambda change: changes.append((change.name, change.initial)))
        world.server.put("new")
        await asyncio.sleep(1)
        assert changes == [("o0", True), ("o1", True), ("o2", True), ("o3", True), ("new", False)]

    run(main)
