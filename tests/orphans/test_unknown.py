"""Tests that nothing is deleted while an upstream server cannot be read.

The upstream server is killed, slow, forbidden, empty or replaced, before or during a scan. The earlier evidence is
kept, and the time without a successful scan does not count.
"""

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


async def hang(*request):
    await asyncio.sleep(0)
    return TimeoutError("no response in 30 s")


FAULTS = {
    "killed": lambda *request: NotSent("connection refused"),
    "broken": lambda *request: ConnectionResetError("reset"),
    "slow": hang,
    "forbidden": lambda *request: 403,
    "forbids gateways": lambda method, path, query: 403 if "gateways" in path else None,
    "unavailable": lambda *request: 503,
    "responds 404 to everything": lambda *request: 404,
    "responds 404 to gateways": lambda method, path, query: 404 if "gateways" in path else None,
    "every list expires": lambda method, path, query: 410 if "gateways" in path else None,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("fault_time", ["always", "after a first scan", "after the plan"])
@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_unreadable_upstream_is_not_treated_as_empty(harness, fault, fault_time):
    await harness.create_route()
    transport = harness.upstream_transports["project-a"]
    if fault_time == "always":
        transport.fault = FAULTS[fault]
    await harness.collect()
    if fault_time == "after a first scan":
        transport.fault = FAULTS[fault]
    harness.clock.advance(GRACE)
    plan = await harness.plan()
    transport.fault = FAULTS[fault]
    deleter = OrphanDeleter(harness.fleet, harness.evidence, harness.world, harness.journal)
    deletions = await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert [deletion.outcome for deletion in deletions] == (
        [DeletionOutcome.LEFT] if fault_time == "after the plan" else []
    )
    if fault_time != "after the plan":
        assert [item.verdict.state for item in plan.items] == [State.REFUSED]
        assert not plan.complete
    assert await harness.find()
    assert not harness.journal
    transport.clear_fault()
    if fault_time == "always":  # the time without a successful scan does not count
        assert await harness.collect() == []
        harness.clock.advance(GRACE)
    assert [deletion.outcome for deletion in await harness.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_that_is_empty_after_a_restart_is_unknown(harness):
    await harness.create_gateway()
    await harness.create_route()
    await harness.collect()
    await harness.set_upstream("project-a")  # the same address with another kube-system and no Gateways
    harness.clock.advance(GRACE)
    assert await harness.collect() == []
    harness.clock.advance(GRACE)
    assert await harness.collect() == []
    state, reason = await harness.verdict()
    assert state is State.REFUSED
    assert "another cluster than before" in reason
    assert "retired" in reason


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_that_lost_its_crds_is_unknown(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE)
    for crd in GATEWAY_API:
        await harness.upstream_clients["project-a"].delete(fl.CustomResourceDefinition, crd["metadata"]["name"])
    state, reason = await harness.verdict()
    assert state is State.REFUSED
    assert "does not serve Gateway" in reason


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_replaced_during_a_scan_is_unknown(harness):
    await harness.create_gateway()
    await harness.create_route()
    transport = harness.upstream_transports["project-a"]
    other_transport = Server(harness.world).transport()
    for crd in GATEWAY_API:
        await Client(other_transport, harness.world).create(crd)

    def replace_upstream(method, path, query):
        if "gateways" in path:
            transport.inner = other_transport

    transport.fault = replace_upstream
    state, reason = await harness.verdict(grace=0.0)
    assert (state, reason) == (
        State.REFUSED,
        "Gateway default/gw in project-a: its identity changed during the look",
    )
    assert harness.evidence.clusters == {}


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_that_fails_between_two_pages_is_unknown(harness, monkeypatch):
    monkeypatch.setattr(looks, "PAGE_SIZE", 1)
    for name in ("a", "b", "gw"):
        await harness.create_gateway(name)
    await harness.create_route()
    transport = harness.upstream_transports["project-a"]
    transport.fault = lambda method, path, query: ConnectionResetError("reset") if "continue" in query else None
    assert (await harness.verdict(grace=0.0))[0] is State.REFUSED
    transport.clear_fault()
    assert (await harness.verdict(grace=0.0))[0] is State.KEPT


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_gateway_created_after_the_plan_keeps_its_route(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE)
    plan = await harness.plan()
    await harness.create_gateway()
    deleter = OrphanDeleter(harness.fleet, harness.evidence, harness.world, harness.journal)
    (deletion,) = await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert (deletion.outcome, deletion.why) == (DeletionOutcome.LEFT, "Gateway default/gw is in project-a")


async def test_two_contexts_for_the_same_cluster_are_refused(harness):
    """Tests two names for one cluster, and a name for the downstream cluster: every parent would seem missing."""
    await harness.create_route()
    await harness.create_route("other", cluster="cluster-project-b")
    await harness.set_upstream("project-b", harness.upstream_transports["project-a"].inner)
    plan = await harness.plan(0.0)
    assert {item.verdict.state for item in plan.items} == {State.REFUSED}
    await harness.set_upstream("project-b")
    await harness.set_upstream("project-a", harness.downstream_transport.inner)
    state, reason = await harness.verdict(grace=0.0)
    assert state is State.REFUSED
    assert "the downstream cluster and project-a are the same cluster" in reason


async def test_nothing_is_deleted_when_the_downstream_cluster_changes(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE)
    plan = await harness.plan()
    harness.evidence.downstream = "another"
    deleter = OrphanDeleter(harness.fleet, harness.evidence, harness.world, harness.journal)
    (deletion,) = await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert deletion.outcome is DeletionOutcome.LEFT
    with pytest.raises(Unreachable):
        await harness.plan()


async def test_live_parent_keeps_the_route_when_another_parent_is_unknown(harness):
    await harness.set_upstream("project-b")
    await harness.create_gateway("alive")
    await harness.create_route(parents=["alive", "missing"])
    assert (await harness.verdict(grace=0.0))[0] is State.KEPT


@pytest.mark.only("real", reason="the real server is upstream and the embedded one downstream")
async def test_real_upstream_gives_the_same_results(api):
    import fleets

    harness = fleets.FleetHarness(Server(None).transport(), "default", fleets.manual_world())
    await harness.start()
    await harness.set_upstream("project-a", api.transport())
    await harness.create_gateway("gw", namespace=api.namespace)
    await harness.create_route("kept", namespace=api.namespace)
    await harness.create_route("orphan", parents=["missing"], namespace=api.namespace)
    await harness.create_route("paged", parents=[{"name": "gw", "namespace": "elsewhere"}], namespace=api.namespace)
    await harness.collect()
    harness.clock.advance(GRACE)
    deletions = await harness.collect()
    assert sorted(
        deletion.item.candidate.name for deletion in deletions if deletion.outcome is DeletionOutcome.DELETED
    ) == [
        "orphan",
        "paged",
    ]
    await harness.upstream_clients["project-a"].delete(Gateway, "gw", api.namespace)
    await harness.collect()
    harness.clock.advance(GRACE)
    assert [deletion.outcome for deletion in await harness.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.only("embedded", reason="it tests the harness")
async def test_assertion_inside_a_fault_fails_the_test(harness):
    await harness.create_route()

    def fail_assertion(method, path, query):
        raise AssertionError("unexpected request")

    harness.upstream_transports["project-a"].fault = fail_assertion
    with contextlib.suppress(AssertionError):  # a client may treat it as a lost response
        await harness.collect()
    with pytest.raises(AssertionError, match="unexpected request"):
        await harness.clean()
    for transport in harness.upstream_transports.values():
        transport.failures.clear()


async def select_one_cluster_twice(harness):
    """Connect project-b to the cluster of project-a. Return the transport of the cluster of project-b."""
    await harness.create_route("other", cluster="cluster-project-b")
    await harness.set_upstream("project-b")
    own_cluster = harness.upstream_transports["project-b"].inner
    harness.upstream_transports["project-b"].inner = harness.upstream_transports["project-a"].inner
    assert (await harness.verdict("other", grace=0.0))[0] is State.REFUSED
    return own_cluster


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_names_of_one_cluster_stay_refused_until_both_clusters_respond(harness):
    own_cluster = await select_one_cluster_twice(harness)
    harness.upstream_transports["project-a"].disconnect()
    state, reason = await harness.verdict("other", grace=0.0)
    assert (state, "it was the same cluster as project-a" in reason) == (State.REFUSED, True)
    harness.restart()
    assert (await harness.verdict("other", grace=0.0))[0] is State.REFUSED
    harness.upstream_transports["project-a"].clear_fault()
    harness.upstream_transports["project-b"].inner = own_cluster
    assert (await harness.verdict("other", grace=0.0))[0] is State.ORPHAN


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_cluster_formerly_known_by_another_name_is_unknown(harness):
    await harness.create_route()
    await harness.collect()
    await harness.create_route("other", cluster="cluster-project-b")
    harness.upstream_transports["project-b"] = harness.upstream_transports.pop("project-a")
    state, reason = await harness.verdict("other", grace=0.0)
    assert (state, "formerly known as project-a" in reason) == (State.REFUSED, True)


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_retired_cluster_that_responds_under_another_name_keeps_its_copies(harness):
    await harness.create_route()
    await harness.collect()
    harness.upstream_transports["renamed"] = harness.upstream_transports.pop("project-a")
    harness.retired = frozenset({"project-a"})
    state, reason = await harness.verdict(grace=0.0)
    assert (state, "answers as renamed" in reason) == (State.REFUSED, True)
    assert await harness.collect(grace=0.0) == []
