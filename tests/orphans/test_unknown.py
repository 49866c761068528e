"""What is unknown is never absent: an upstream that is killed, forbids, is slow, empty, another one, or any of these in
the middle of a scan. Nothing is deleted, and what was known before is neither lost nor counted."""

import asyncio
import contextlib

import pytest
from fleets import GATEWAY_API, Gateway

import fairlead as fl
from fairlead.client.client import Client
from fairlead.client.transport import NotSent
from fairlead.server.app import Server
from fairlead.tools.orphans import looks
from fairlead.tools.orphans.clusters import Unreachable
from fairlead.tools.orphans.deletion import DeletionOutcome, OrphanDeleter
from fairlead.tools.orphans.verdicts import State

GRACE = 300.0


async def slow(*request):
    await asyncio.sleep(0)
    return TimeoutError("no answer in 30 s")


FAULTS = {
    "killed": lambda *request: NotSent("connection refused"),
    "broken": lambda *request: ConnectionResetError("reset"),
    "slow": slow,
    "forbidden": lambda *request: 403,
    "forbids gateways": lambda method, path, query: 403 if "gateways" in path else None,
    "unavailable": lambda *request: 503,
    "answers 404 to all": lambda *request: 404,
    "answers 404 to gateways": lambda method, path, query: 404 if "gateways" in path else None,
    "forgets each list": lambda method, path, query: 410 if "gateways" in path else None,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("when", ["always", "after a first look", "after the plan"])
@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_unreadable_upstream_is_not_treated_as_empty(bed, fault, when):
    await bed.route()
    door = bed.doors["project-a"]
    if when == "always":
        door.fault = FAULTS[fault]
    await bed.collect()
    if when == "after a first look":
        door.fault = FAULTS[fault]
    bed.clock.forward(GRACE)
    plan = await bed.plan()
    door.fault = FAULTS[fault]
    actor = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    done = await actor.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert [one.outcome for one in done] == ([DeletionOutcome.LEFT] if when == "after the plan" else [])
    if when != "after the plan":
        assert [item.verdict.state for item in plan.items] == [State.REFUSED]
        assert not plan.complete
    assert await bed.there()
    assert not bed.journal
    door.open()
    if when == "always":  # the time in which nobody could look counts for nothing
        assert await bed.collect() == []
        bed.clock.forward(GRACE)
    assert [one.outcome for one in await bed.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_upstream_that_is_empty_after_a_restart_is_unknown(bed):
    await bed.gateway()
    await bed.route()
    await bed.collect()
    await bed.upstream("project-a")  # the same address, another kube-system, no Gateways
    bed.clock.forward(GRACE)
    assert await bed.collect() == []
    bed.clock.forward(GRACE)
    assert await bed.collect() == []
    state, why = await bed.verdict()
    assert state is State.REFUSED
    assert "another cluster than before" in why
    assert "retired" in why


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_upstream_that_lost_its_crds_is_unknown(bed):
    await bed.route()
    await bed.collect()
    bed.clock.forward(GRACE)
    for crd in GATEWAY_API:
        await bed.up["project-a"].delete(fl.CustomResourceDefinition, crd["metadata"]["name"])
    state, why = await bed.verdict()
    assert state is State.REFUSED
    assert "does not serve Gateway" in why


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_upstream_replaced_during_a_scan_is_unknown(bed):
    await bed.gateway()
    await bed.route()
    door = bed.doors["project-a"]
    other = Server(bed.world).transport()
    for crd in GATEWAY_API:
        await Client(other, bed.world).create(crd)

    def replace(method, path, query):
        if "gateways" in path:
            door.inner = other

    door.fault = replace
    state, why = await bed.verdict(grace=0.0)
    assert (state, why) == (
        State.REFUSED,
        "Gateway default/gw in project-a: its identity changed during the look",
    )
    assert bed.evidence.clusters == {}


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_upstream_that_fails_between_two_pages_is_unknown(bed, monkeypatch):
    monkeypatch.setattr(looks, "PAGE_SIZE", 1)
    for name in ("a", "b", "gw"):
        await bed.gateway(name)
    await bed.route()
    door = bed.doors["project-a"]
    door.fault = lambda method, path, query: ConnectionResetError("reset") if "continue" in query else None
    assert (await bed.verdict(grace=0.0))[0] is State.REFUSED
    door.open()
    assert (await bed.verdict(grace=0.0))[0] is State.KEPT


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_gateway_created_after_the_plan_keeps_its_route(bed):
    await bed.route()
    await bed.collect()
    bed.clock.forward(GRACE)
    plan = await bed.plan()
    await bed.gateway()
    actor = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    (done,) = await actor.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert (done.outcome, done.why) == (DeletionOutcome.LEFT, "Gateway default/gw is in project-a")


async def test_two_contexts_for_the_same_cluster_are_refused(bed):
    """Two names for one cluster, or the downstream itself: everything would look gone."""
    await bed.route()
    await bed.route("other", cluster="cluster-project-b")
    await bed.upstream("project-b", bed.doors["project-a"].inner)
    plan = await bed.plan(0.0)
    assert {item.verdict.state for item in plan.items} == {State.REFUSED}
    await bed.upstream("project-b")
    await bed.upstream("project-a", bed.door.inner)
    state, why = await bed.verdict(grace=0.0)
    assert state is State.REFUSED
    assert "the downstream cluster and project-a are the same cluster" in why


async def test_nothing_is_deleted_when_the_downstream_cluster_changes(bed):
    await bed.route()
    await bed.collect()
    bed.clock.forward(GRACE)
    plan = await bed.plan()
    bed.evidence.downstream = "another"
    actor = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    (done,) = await actor.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert done.outcome is DeletionOutcome.LEFT
    with pytest.raises(Unreachable):
        await bed.plan()


async def test_live_parent_keeps_the_route_when_another_parent_is_unknown(bed):
    await bed.upstream("project-b")
    await bed.gateway("alive")
    await bed.route(parents=["alive", "missing"])
    assert (await bed.verdict(grace=0.0))[0] is State.KEPT


@pytest.mark.only("real", reason="the real server is upstream here, the embedded one downstream")
async def test_real_upstream_gives_the_same_results(api):
    import fleets

    bed = fleets.Bed(Server(None).transport(), "default", fleets.hand_world())
    await bed.start()
    await bed.upstream("project-a", api.transport())
    await bed.gateway("gw", namespace=api.namespace)
    await bed.route("kept", namespace=api.namespace)
    await bed.route("orphan", parents=["missing"], namespace=api.namespace)
    await bed.route("paged", parents=[{"name": "gw", "namespace": "elsewhere"}], namespace=api.namespace)
    await bed.collect()
    bed.clock.forward(GRACE)
    done = await bed.collect()
    assert sorted(one.item.candidate.name for one in done if one.outcome is DeletionOutcome.DELETED) == [
        "orphan",
        "paged",
    ]
    await bed.up["project-a"].delete(Gateway, "gw", api.namespace)
    await bed.collect()
    bed.clock.forward(GRACE)
    assert [one.outcome for one in await bed.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.only("embedded", reason="it is about the tests themselves")
async def test_assertion_inside_a_fault_fails_the_test(bed):
    await bed.route()

    def wrong(method, path, query):
        raise AssertionError("should not be asked")

    bed.doors["project-a"].fault = wrong
    with contextlib.suppress(AssertionError):  # a client may take it for a lost answer
        await bed.collect()
    with pytest.raises(AssertionError, match="should not be asked"):
        await bed.clean()
    for door in bed.doors.values():
        door.failures.clear()


async def two_names_for_one(bed):
    """project-b's door leads to project-a's cluster."""
    await bed.route("other", cluster="cluster-project-b")
    await bed.upstream("project-b")
    elsewhere = bed.doors["project-b"].inner
    bed.doors["project-b"].inner = bed.doors["project-a"].inner
    assert (await bed.verdict("other", grace=0.0))[0] is State.REFUSED
    return elsewhere


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_names_of_one_cluster_stay_refused_until_both_clusters_respond(bed):
    elsewhere = await two_names_for_one(bed)
    bed.doors["project-a"].shut()
    state, why = await bed.verdict("other", grace=0.0)
    assert (state, "it was the same cluster as project-a" in why) == (State.REFUSED, True)
    bed.restart()
    assert (await bed.verdict("other", grace=0.0))[0] is State.REFUSED
    bed.doors["project-a"].open()
    bed.doors["project-b"].inner = elsewhere
    assert (await bed.verdict("other", grace=0.0))[0] is State.ORPHAN


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_cluster_formerly_known_by_another_name_is_unknown(bed):
    await bed.route()
    await bed.collect()
    await bed.route("other", cluster="cluster-project-b")
    bed.doors["project-b"] = bed.doors.pop("project-a")
    state, why = await bed.verdict("other", grace=0.0)
    assert (state, "formerly known as project-a" in why) == (State.REFUSED, True)


@pytest.mark.only("embedded", reason="the fault is upstream, and upstreams are embedded")
async def test_retired_cluster_that_responds_under_another_name_keeps_its_copies(bed):
    await bed.route()
    await bed.collect()
    bed.doors["renamed"] = bed.doors.pop("project-a")
    bed.retired = frozenset({"project-a"})
    state, why = await bed.verdict(grace=0.0)
    assert (state, "answers as renamed" in why) == (State.REFUSED, True)
    assert await bed.collect(grace=0.0) == []
