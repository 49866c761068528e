"""Tests of the five cases of the original test plan, of each defect of the original, and of further guarantees."""

import pytest
from fleets import PREFIX, Gateway, HTTPRoute

import fairlead as fl
from fairlead.client.client import PatchType
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.deletion import DeletionOutcome, OrphanDeleter
from fairlead.tools.orphans.journal import DeletionJournalFile, JournalError
from fairlead.tools.orphans.rule_files import load
from fairlead.tools.orphans.verdicts import State

GRACE = 300.0


async def collect_after_grace(harness):
    """Run two passes, one grace apart."""
    await harness.collect()
    harness.clock.advance(GRACE)
    return [deletion.outcome for deletion in await harness.collect()]


# The cases of the original


async def test_orphan_is_deleted_after_its_grace(harness):
    await harness.create_route()
    assert await collect_after_grace(harness) == [DeletionOutcome.DELETED]
    assert await harness.find() is None


async def test_route_with_a_live_gateway_stays(harness):
    await harness.create_gateway()
    await harness.create_route()
    assert await collect_after_grace(harness) == []
    assert await harness.find()


async def test_orphan_within_its_grace_stays_and_is_due_later(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE - 1)
    (item,) = (await harness.plan()).items
    assert (item.verdict.state, item.verdict.due - harness.clock.now()) == (State.WAITING, 1.0)
    assert await harness.collect() == []
    assert await harness.find()


async def test_route_with_one_live_and_one_missing_gateway_stays(harness):
    await harness.create_gateway("present")
    await harness.create_route(parents=["missing", "present"])
    assert await collect_after_grace(harness) == []
    assert await harness.find()


async def test_plan_without_downstream_routes_is_empty(harness):
    plan = await harness.plan()
    assert (plan.items, plan.problems) == ([], [])


# Defects of the original


@pytest.mark.parametrize("parents", [[], [{"group": "", "kind": "Service", "name": "mesh"}]])
async def test_route_without_gateway_parents_is_not_an_orphan(harness, parents):
    await harness.create_route(parents=parents)
    assert await collect_after_grace(harness) == []
    assert await harness.find()


async def test_grace_starts_when_the_gateway_is_missing(harness):
    """Tests an old route whose Gateway was deleted a second ago: the route is not an orphan yet."""
    await harness.create_gateway()
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(10 * GRACE)
    await harness.delete_gateway()
    harness.clock.advance(1)
    assert await harness.collect() == []
    harness.clock.advance(GRACE)
    assert [deletion.outcome for deletion in await harness.collect()] == [DeletionOutcome.DELETED]


async def test_recent_orphan_does_not_delay_older_ones(harness):
    await harness.create_gateway("z")
    await harness.create_route("a-young", parents=["z"])
    await harness.create_route("b-old")
    await harness.collect()
    await harness.delete_gateway("z")
    harness.clock.advance(GRACE)
    assert [deletion.item.candidate.name for deletion in await harness.collect()] == ["b-old"]
    assert await harness.find("a-young")


async def test_parent_is_looked_up_in_its_own_namespace(harness):
    await harness.create_gateway("shared", namespace="infra")
    await harness.create_route(parents=[{"name": "shared", "namespace": "infra"}])
    await harness.create_route("other", parents=[{"name": "shared"}])
    await harness.collect()
    harness.clock.advance(GRACE)
    assert [deletion.item.candidate.name for deletion in await harness.collect()] == ["other"]
    assert await harness.find("web")


@pytest.mark.parametrize("labels", [{"kind": "TLSRoute"}, {"group": "example.com"}])
async def test_copies_of_other_kinds_are_not_selected(harness, labels):
    await harness.create_route(**labels)
    assert await collect_after_grace(harness) == []
    assert (await harness.plan()).selected["httproute-gateway"] == 0


async def test_route_recreated_before_the_delete_stays(harness):
    old = await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE)
    plan = await harness.plan()

    async def recreate_route(method, path, query):
        if method == "DELETE":
            harness.downstream_transport.clear_fault()
            await harness.downstream_client.delete(HTTPRoute, "web", harness.namespace)
            await harness.create_route()

    harness.downstream_transport.fault = lambda *request: recreate_route(*request)
    await delete(harness, plan)
    assert (await harness.find()).uid != old.uid


async def test_route_changed_before_the_delete_stays(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE)
    plan = await harness.plan()

    async def attach_gateway(method, path, query):
        if method == "DELETE":
            harness.downstream_transport.clear_fault()
            patch = {"spec": {"parentRefs": [{"name": "new"}]}}
            await harness.downstream_client.patch(HTTPRoute, "web", harness.namespace, patch, type=PatchType.MERGE)

    harness.downstream_transport.fault = lambda *request: attach_gateway(*request)
    (deletion,) = await delete(harness, plan)
    assert deletion.outcome is DeletionOutcome.LEFT
    assert await harness.find()


async def delete(harness, plan):
    deleter = OrphanDeleter(harness.fleet, harness.evidence, harness.world, harness.journal)
    return await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)


async def test_absence_is_never_read_from_a_watch_cache(harness):
    """Tests that reads have no resourceVersion "0": a watch cache may answer such a read before it has all objects."""
    await harness.create_route()
    await collect_after_grace(harness)
    requests = harness.upstream_transports["project-a"].requests + harness.downstream_transport.requests
    assert requests
    assert not [query for _, _, query in requests if "resourceVersion" in query]


async def test_copies_of_a_retired_cluster_are_deleted_after_the_grace(harness):
    await harness.create_route(cluster="cluster-gone")
    assert await collect_after_grace(harness) == []
    assert (await harness.verdict())[0] is State.REFUSED
    harness.retired = frozenset({"gone"})
    assert await harness.collect() == []  # its grace begins when it is first listed as retired
    harness.clock.advance(GRACE)
    assert [deletion.outcome for deletion in await harness.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.parametrize("label", ["cluster-project-a", "cluster-_project-a"])
async def test_every_past_encoding_of_a_cluster_name_is_read(harness, label):
    await harness.create_gateway()
    await harness.create_route("kept", cluster=label)
    await harness.create_route("orphan", cluster=label, parents=["missing"])
    assert await collect_after_grace(harness) == [DeletionOutcome.DELETED]
    assert await harness.find("kept")


async def test_upstream_rule_deletes_a_route_that_is_gone_upstream(harness, tmp_path):
    await harness.create_gateway()
    await harness.create_route()
    assert await collect_after_grace(harness) == []
    (tmp_path / "rules.yaml").write_text("rules: [{use: httproute-upstream, grace: 1m}]")
    harness.rules = load(tmp_path / "rules.yaml")
    await harness.collect()
    harness.clock.advance(60)
    assert [deletion.why for deletion in await harness.collect()] == ["HTTPRoute default/web is gone from project-a"]


async def test_upstream_rule_keeps_a_route_that_exists_upstream(harness, tmp_path):
    spec = {"parentRefs": [{"name": "gw"}]}
    await harness.upstream_clients["project-a"].create(HTTPRoute("web", "default", spec=spec))
    await harness.create_route()
    (tmp_path / "rules.yaml").write_text("rules: [{use: httproute-upstream}]")
    harness.rules = load(tmp_path / "rules.yaml")
    assert await collect_after_grace(harness) == []


# Further guarantees


async def test_terminating_gateway_counts_as_alive(harness):
    gateway = await harness.create_gateway()
    patch = {"metadata": {"finalizers": ["example.com/hold"]}}
    await harness.upstream_clients["project-a"].patch(Gateway, "gw", "default", patch, type=PatchType.MERGE)
    await harness.delete_gateway()
    assert (await harness.upstream_clients["project-a"].get(Gateway, "gw", "default")).uid == gateway.uid
    await harness.create_route()
    assert await collect_after_grace(harness) == []


async def test_orphan_older_than_the_process_is_deleted_after_one_grace(harness):
    await harness.create_route()
    harness.clock.advance(30 * 86400)
    assert await collect_after_grace(harness) == [DeletionOutcome.DELETED]


async def test_restart_neither_loses_nor_shortens_the_grace(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE - 1)
    harness.restart()
    assert await harness.collect() == []
    harness.restart()
    harness.clock.advance(1)
    assert [deletion.outcome for deletion in await harness.collect()] == [DeletionOutcome.DELETED]


async def test_gateway_that_came_back_restarts_the_grace(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.advance(GRACE - 1)
    await harness.create_gateway()
    await harness.collect()
    await harness.delete_gateway()
    harness.clock.advance(1)
    assert await harness.collect() == []
    harness.clock.advance(GRACE - 1)
    assert await harness.collect() == []
    harness.clock.advance(1)
    assert [deletion.outcome for deletion in await harness.collect()] == [DeletionOutcome.DELETED]


async def test_clock_set_forward_does_not_shorten_the_grace(harness):
    await harness.create_route()
    await harness.collect()
    harness.clock.wall_time += 86400
    assert await harness.collect() == []


async def test_zero_grace_deletes_after_one_scan(harness):
    await harness.create_route()
    assert [deletion.outcome for deletion in await harness.collect(grace=0.0)] == [DeletionOutcome.DELETED]


async def test_run_above_the_cap_deletes_nothing(harness):
    for i in range(11):
        await harness.create_route(f"web-{i}")
    assert await harness.collect(grace=0.0) == []
    assert len(await harness.collect(grace=0.0, cap=Cap.parse("100%"))) == 11


async def test_anchor_is_deleted_when_its_owner_is_gone(harness):
    await harness.create_gateway()
    identity = {"cluster-name": "cluster-project-a", "group": Gateway.group, "kind": "Gateway", "namespace": "default"}
    for name, owner in (("anchor-1", "gw"), ("anchor-2", "missing"), ("settings", "missing")):
        labels = {PREFIX + key: value for key, value in {**identity, "name": owner}.items()}
        await harness.downstream_client.create(fl.ConfigMap(name, harness.namespace, labels=labels))
    assert [deletion.item.candidate.name for deletion in await harness.collect(grace=0.0)] == ["anchor-2"]
    assert await harness.find("settings", fl.ConfigMap)


async def test_deletion_writes_an_event_and_a_journal_entry_with_the_object(harness):
    route = await harness.create_route()
    await harness.collect(grace=0.0)
    (event,) = [
        event
        for event in (await harness.downstream_client.list(fl.Event, harness.namespace)).items
        if event["reason"] == "OrphanDeleted"
    ]
    assert event["involvedObject"]["uid"] == route.uid
    assert "Gateway default/gw is gone from project-a" in event["message"]
    entry_before, entry_after = harness.journal
    assert (entry_before["what"], entry_before["object"]["spec"], entry_before["uid"]) == (
        "deleting",
        route.spec,
        route.uid,
    )
    assert (entry_after["what"], entry_after["cluster"], entry_after["rule"]) == (
        "deleted",
        "project-a",
        "httproute-gateway",
    )


async def test_nothing_is_deleted_without_a_journal_entry(harness, tmp_path):
    await harness.create_route()
    harness.journal = DeletionJournalFile(tmp_path / "taken")
    harness.journal.path.mkdir()
    with pytest.raises(JournalError, match="nothing more is deleted"):
        await harness.collect(grace=0.0)
    assert await harness.find()


async def test_unreadable_labels_are_refused_with_the_reason(harness):
    await harness.create_route("no-name")
    await harness.relabel("no-name", name=None)
    await harness.create_route("odd-cluster", cluster="project-a")
    assert await harness.verdict("no-name", 0.0) == (State.REFUSED, f"it has no label {PREFIX}name")
    assert (await harness.verdict("odd-cluster", 0.0))[0] is State.REFUSED
    assert await harness.collect(grace=0.0) == []
