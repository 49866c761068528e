"""An upstream that cannot be read is unknown, and nothing is deleted.

The upstream is killed, slow, forbidden, empty or replaced, before or during a scan. The earlier evidence is not lost,
and the time without a successful scan does not count.
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


async def slow(*request):
    await asyncio.sleep(0)
    return TimeoutError("no response in 30 s")


FAULTS = {
    "killed": lambda *request: NotSent("connection refused"),
    "broken": lambda *request: ConnectionResetError("reset"),
    "slow": slow,
    "forbidden": lambda *request: 403,
    "forbids gateways": lambda method, path, query: 403 if "gateways" in path else None,
    "unavailable": lambda *request: 503,
    "responds 404 to everything": lambda *request: 404,
    "responds 404 to gateways": lambda method, path, query: 404 if "gateways" in path else None,
    "every list expires": lambda method, path, query: 410 if "gateways" in path else None,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("when", ["always", "after a first scan", "after the plan"])
@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_unreadable_upstream_is_not_treated_as_empty(bed, fault, when):
    await bed.create_route()
    transport = bed.upstream_transports["project-a"]
    if when == "always":
        transport.fault = FAULTS[fault]
    await bed.collect()
    if when == "after a first scan":
        transport.fault = FAULTS[fault]
    bed.clock.forward(GRACE)
    plan = await bed.plan()
    transport.fault = FAULTS[fault]
    deleter = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    done = await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert [one.outcome for one in done] == ([DeletionOutcome.LEFT] if when == "after the plan" else [])
    if when != "after the plan":
        assert [item.verdict.state for item in plan.items] == [State.REFUSED]
        assert not plan.complete
    assert await bed.find()
    assert not bed.journal
    transport.clear_fault()
    if when == "always":  # the time without a successful scan does not count
        assert await bed.collect() == []
        bed.clock.forward(GRACE)
    assert [one.outcome for one in await bed.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_that_is_empty_after_a_restart_is_unknown(bed):
    await bed.create_gateway()
    await bed.create_route()
    await bed.collect()
    await bed.set_upstream("project-a")  # the same address with another kube-system and no Gateways
    bed.clock.forward(GRACE)
    assert await bed.collect() == []
    bed.clock.forward(GRACE)
    assert await bed.collect() == []
    state, why = await bed.verdict()
    assert state is State.REFUSED
    assert "another cluster than before" in why
    assert "retired" in why


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_that_lost_its_crds_is_unknown(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE)
    for crd in GATEWAY_API:
        await bed.up["project-a"].delete(fl.CustomResourceDefinition, crd["metadata"]["name"])
    state, why = await bed.verdict()
    assert state is State.REFUSED
    assert "does not serve Gateway" in why


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_replaced_during_a_scan_is_unknown(bed):
    await bed.create_gateway()
    await bed.create_route()
    transport = bed.upstream_transports["project-a"]
    other = Server(bed.world).transport()
    for crd in GATEWAY_API:
        await Client(other, bed.world).create(crd)

    def replace(method, path, query):
        if "gateways" in path:
            transport.inner = other

    transport.fault = replace
    state, why = await bed.verdict(grace=0.0)
    assert (state, why) == (
        State.REFUSED,
        "Gateway default/gw in project-a: its identity changed during the look",
    )
    assert bed.evidence.clusters == {}


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_upstream_that_fails_between_two_pages_is_unknown(bed, monkeypatch):
    monkeypatch.setattr(looks, "PAGE_SIZE", 1)
    for name in ("a", "b", "gw"):
        await bed.create_gateway(name)
    await bed.create_route()
    transport = bed.upstream_transports["project-a"]
    transport.fault = lambda method, path, query: ConnectionResetError("reset") if "continue" in query else None
    assert (await bed.verdict(grace=0.0))[0] is State.REFUSED
    transport.clear_fault()
    assert (await bed.verdict(grace=0.0))[0] is State.KEPT


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_gateway_created_after_the_plan_keeps_its_route(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE)
    plan = await bed.plan()
    await bed.create_gateway()
    deleter = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    (done,) = await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert (done.outcome, done.why) == (DeletionOutcome.LEFT, "Gateway default/gw is in project-a")


async def test_two_contexts_for_the_same_cluster_are_refused(bed):
    """If two names select one cluster, or a name selects the downstream, every parent would seem missing."""
    await bed.create_route()
    await bed.create_route("other", cluster="cluster-project-b")
    await bed.set_upstream("project-b", bed.upstream_transports["project-a"].inner)
    plan = await bed.plan(0.0)
    assert {item.verdict.state for item in plan.items} == {State.REFUSED}
    await bed.set_upstream("project-b")
    await bed.set_upstream("project-a", bed.downstream_transport.inner)
    state, why = await bed.verdict(grace=0.0)
    assert state is State.REFUSED
    assert "the downstream cluster and project-a are the same cluster" in why


async def test_nothing_is_deleted_when_the_downstream_cluster_changes(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE)
    plan = await bed.plan()
    bed.evidence.downstream = "another"
    deleter = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    (done,) = await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)
    assert done.outcome is DeletionOutcome.LEFT
    with pytest.raises(Unreachable):
        await bed.plan()


async def test_live_parent_keeps_the_route_when_another_parent_is_unknown(bed):
    await bed.set_upstream("project-b")
    await bed.create_gateway("alive")
    await bed.create_route(parents=["alive", "missing"])
    assert (await bed.verdict(grace=0.0))[0] is State.KEPT


@pytest.mark.only("real", reason="the real server is upstream and the embedded one downstream")
async def test_real_upstream_gives_the_same_results(api):
    import fleets

    bed = fleets.Bed(Server(None).transport(), "default", fleets.manual_world())
    await bed.start()
    await bed.set_upstream("project-a", api.transport())
    await bed.create_gateway("gw", namespace=api.namespace)
    await bed.create_route("kept", namespace=api.namespace)
    await bed.create_route("orphan", parents=["missing"], namespace=api.namespace)
    await bed.create_route("paged", parents=[{"name": "gw", "namespace": "elsewhere"}], namespace=api.namespace)
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


@pytest.mark.only("embedded", reason="it tests the test bed")
async def test_assertion_inside_a_fault_fails_the_test(bed):
    await bed.create_route()

    def fail(method, path, query):
        raise AssertionError("unexpected request")

    bed.upstream_transports["project-a"].fault = fail
    with contextlib.suppress(AssertionError):  # a client may treat it as a lost response
        await bed.collect()
    with pytest.raises(AssertionError, match="unexpected request"):
        await bed.clean()
    for transport in bed.upstream_transports.values():
        transport.failures.clear()


async def select_one_cluster_twice(bed):
    """Connect project-b to the cluster of project-a. Return the transport of the cluster of project-b."""
    await bed.create_route("other", cluster="cluster-project-b")
    await bed.set_upstream("project-b")
    own_cluster = bed.upstream_transports["project-b"].inner
    bed.upstream_transports["project-b"].inner = bed.upstream_transports["project-a"].inner
    assert (await bed.verdict("other", grace=0.0))[0] is State.REFUSED
    return own_cluster


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_names_of_one_cluster_stay_refused_until_both_clusters_respond(bed):
    own_cluster = await select_one_cluster_twice(bed)
    bed.upstream_transports["project-a"].disconnect()
    state, why = await bed.verdict("other", grace=0.0)
    assert (state, "it was the same cluster as project-a" in why) == (State.REFUSED, True)
    bed.restart()
    assert (await bed.verdict("other", grace=0.0))[0] is State.REFUSED
    bed.upstream_transports["project-a"].clear_fault()
    bed.upstream_transports["project-b"].inner = own_cluster
    assert (await bed.verdict("other", grace=0.0))[0] is State.ORPHAN


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_cluster_formerly_known_by_another_name_is_unknown(bed):
    await bed.create_route()
    await bed.collect()
    await bed.create_route("other", cluster="cluster-project-b")
    bed.upstream_transports["project-b"] = bed.upstream_transports.pop("project-a")
    state, why = await bed.verdict("other", grace=0.0)
    assert (state, "formerly known as project-a" in why) == (State.REFUSED, True)


@pytest.mark.only("embedded", reason="the fault is upstream, where every server is embedded")
async def test_retired_cluster_that_responds_under_another_name_keeps_its_copies(bed):
    await bed.create_route()
    await bed.collect()
    bed.upstream_transports["renamed"] = bed.upstream_transports.pop("project-a")
    bed.retired = frozenset({"project-a"})
    state, why = await bed.verdict(grace=0.0)
    assert (state, "answers as renamed" in why) == (State.REFUSED, True)
    assert await bed.collect(grace=0.0) == []
