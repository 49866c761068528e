"""The thread through every room: watch, queue, reconcile, apply, finalizer, status, on both servers."""

import os
from collections import Counter

import pytest

from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import DemoRun
from fairlead.testing.demo.outcomes import play
from fairlead_operators.httpproxy import demo, legacy

CHILDREN = ("gateways", "httproutes", "endpointslices")
MANY = int(os.environ.get("FAIRLEAD_PROXIES", "50"))
"""How many are made at once: 1000 take a minute in virtual time, and a minute and a half on a real server."""


async def test_proxy_is_programmed_with_few_writes_and_no_conflict(api):
    run = DemoRun(api.transport, World(), api.namespace, network=False)
    await demo.play(run, "new", 1)
    writes = Counter(
        (m.action, m.code) for m in run.marks if m.actor == "operator" and m.action not in ("GET", "reconcile")
    )
    assert writes.pop(("PATCH", 201)) == 4  # the children
    # the finalizer, and as many reports as there were stages to see: in virtual time three
    assert 2 <= writes.pop(("PATCH", 200)) <= 6
    assert not writes
    await run.close()


def told(variant, *, seed=1, scale=3):
    async def main():
        world = virtual.world(seed)
        return await play(demo, variant, scale, Server(world).transport, world)

    return virtual.run(main())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_legacy_gets_conflicts_and_operator_gets_none(seed):
    theirs, ours = told("old", seed=seed), told("new", seed=seed)
    assert theirs.conflicts > 10
    assert ours.conflicts == ours.already_exists == 0
    assert not [mark for mark in ours.marks if mark.action == "reconcile" and mark.actor == "operator" and mark.code]
    assert ours.seconds_until_done(1.0) < theirs.seconds_until_done(1.0)


def test_tunnel_takes_minutes_with_legacy_and_a_second_with_operator():
    """Nothing sleeps in the old variant but its back-off, which each 409 of the server doubles."""
    theirs, ours = told("old", scale=1), told("new", scale=1)
    assert ours.seconds_until_done(1.0) <= 1.0
    assert theirs.seconds_until_done(1.0) > 120
    passes = [mark for mark in theirs.marks if mark.action == "reconcile" and mark.actor == "operator"]
    burst = [mark for mark in passes if mark.at < 5]
    assert sum(mark.code for mark in burst) >= 15  # failures, as many as the incident had
    silence = [mark for mark in passes if 5 <= mark.at < theirs.seconds_until_done(1.0) - 1]
    assert not silence


def test_legacy_takes_seconds_when_configmap_events_are_not_late(monkeypatch):
    """The conflicts make the back-off long; that the last of them is on an object whose event wakes nobody is what
    makes it be waited for. With ConfigMaps as punctual as the rest, an event always comes to the rescue."""
    monkeypatch.setattr(demo, "WATCH_LAGS", {})
    theirs = told("old", scale=1)
    assert theirs.conflicts > 10
    assert theirs.seconds_until_done(1.0) < 10


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_many_proxies_conflict_with_five_legacy_workers_but_not_with_one(monkeypatch, seed):
    """Why 40 at once meet none on a child: one worker comes back to each of them later than the cache lags."""
    alone = told("old", scale=40, seed=seed)
    running = legacy.running
    monkeypatch.setattr(legacy, "running", lambda *args, **options: running(*args, workers=5, **options))
    five = told("old", scale=40, seed=seed)
    assert on_children(alone) == 0
    assert on_children(five) > 50


def on_children(outcome):
    return sum(
        n for (verb, what, code), n in outcome.responses.items() if (verb, code) == ("PUT", 409) and what in CHILDREN
    )


def test_operator_writes_nothing_after_the_proxy_is_programmed():
    ours = told("new", scale=1)
    assert not [mark for mark in ours.marks if mark.actor == "operator" and mark.action == "PATCH" and mark.at > 1.5]


def test_many_proxies_get_no_conflict_and_no_backoff():
    assert_none_waited(told("new", scale=MANY))


@pytest.mark.timeout(1800)
@pytest.mark.only("real", reason="the embedded one is asked in virtual time")
async def test_many_proxies_get_no_conflict_and_no_backoff_on_a_real_server(api):
    assert_none_waited(await play(demo, "new", MANY, api.transport, World(), namespace=f"{api.namespace}-many"))


def assert_none_waited(ours):
    passes = [mark for mark in ours.marks if mark.action == "reconcile" and mark.actor == "operator"]
    failed = [mark for mark in passes if mark.code]  # each of which would put its key into back-off
    print(f"{MANY} proxies: {ours.conflicts} conflicts, {ours.already_exists} exist, {ours.requests} requests")
    p50, last = ours.seconds_until_done(0.5), ours.seconds_until_done(1.0)
    print(f"{len(passes)} reconciles, {len(failed)} failed; p50 {p50:.1f} s, last {last:.1f} s")
    assert (ours.conflicts, ours.already_exists, ours.stuck, failed) == (0, 0, [], [])


@pytest.mark.only("real", reason="virtual time has no wall")
async def test_tunnel_is_programmed_within_a_second_of_wall_time(api):
    """The quickest of up to five: a busy machine only ever adds."""
    for attempt in range(5):
        ours = await play(demo, "new", 1, api.transport, World(), namespace=f"{api.namespace}-wall-{attempt}")
        if ours.seconds_until_done(1.0) <= 1.0:
            return
    pytest.fail(f"the last of five took {ours.seconds_until_done(1.0):.1f} s")


def test_same_seed_gives_the_same_outcome():
    assert told("old", scale=2) == told("old", scale=2)
