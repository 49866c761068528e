"""The five cases of the original test plan, one test for each defect of the original, and further guarantees."""

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


async def collect_after_grace(bed):
    """Run two passes, one grace apart."""
    await bed.collect()
    bed.clock.forward(GRACE)
    return [done.outcome for done in await bed.collect()]


# The cases of the original


async def test_orphan_is_deleted_after_its_grace(bed):
    await bed.create_route()
    assert await collect_after_grace(bed) == [DeletionOutcome.DELETED]
    assert await bed.find() is None


async def test_route_with_a_live_gateway_stays(bed):
    await bed.create_gateway()
    await bed.create_route()
    assert await collect_after_grace(bed) == []
    assert await bed.find()


async def test_orphan_within_its_grace_stays_and_is_due_later(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE - 1)
    (item,) = (await bed.plan()).items
    assert (item.verdict.state, item.verdict.due - bed.clock.now()) == (State.WAITING, 1.0)
    assert await bed.collect() == []
    assert await bed.find()


async def test_route_with_one_live_and_one_missing_gateway_stays(bed):
    await bed.create_gateway("present")
    await bed.create_route(parents=["missing", "present"])
    assert await collect_after_grace(bed) == []
    assert await bed.find()


async def test_plan_without_downstream_routes_is_empty(bed):
    plan = await bed.plan()
    assert (plan.items, plan.problems) == ([], [])


# Defects of the original


@pytest.mark.parametrize("parents", [[], [{"group": "", "kind": "Service", "name": "mesh"}]])
async def test_route_without_gateway_parents_is_not_an_orphan(bed, parents):
    await bed.create_route(parents=parents)
    assert await collect_after_grace(bed) == []
    assert await bed.find()


async def test_grace_starts_when_the_gateway_is_missing(bed):
    """An old route whose Gateway has been gone for a second is not yet an orphan."""
    await bed.create_gateway()
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(10 * GRACE)
    await bed.delete_gateway()
    bed.clock.forward(1)
    assert await bed.collect() == []
    bed.clock.forward(GRACE)
    assert [done.outcome for done in await bed.collect()] == [DeletionOutcome.DELETED]


async def test_recent_orphan_does_not_delay_older_ones(bed):
    await bed.create_gateway("z")
    await bed.create_route("a-young", parents=["z"])
    await bed.create_route("b-old")
    await bed.collect()
    await bed.delete_gateway("z")
    bed.clock.forward(GRACE)
    assert [done.item.candidate.name for done in await bed.collect()] == ["b-old"]
    assert await bed.find("a-young")


async def test_parent_is_looked_up_in_its_own_namespace(bed):
    await bed.create_gateway("shared", namespace="infra")
    await bed.create_route(parents=[{"name": "shared", "namespace": "infra"}])
    await bed.create_route("other", parents=[{"name": "shared"}])
    await bed.collect()
    bed.clock.forward(GRACE)
    assert [done.item.candidate.name for done in await bed.collect()] == ["other"]
    assert await bed.find("web")


@pytest.mark.parametrize("labels", [{"kind": "TLSRoute"}, {"group": "example.com"}])
async def test_copies_of_other_kinds_are_not_selected(bed, labels):
    await bed.create_route(**labels)
    assert await collect_after_grace(bed) == []
    assert (await bed.plan()).selected["httproute-gateway"] == 0


async def test_route_recreated_before_the_delete_stays(bed):
    old = await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE)
    plan = await bed.plan()

    async def replace(method, path, query):
        if method == "DELETE":
            bed.downstream_transport.clear_fault()
            await bed.down.delete(HTTPRoute, "web", bed.namespace)
            await bed.create_route()

    bed.downstream_transport.fault = lambda *request: replace(*request)
    await delete(bed, plan)
    assert (await bed.find()).uid != old.uid


async def test_route_changed_before_the_delete_stays(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE)
    plan = await bed.plan()

    async def attach(method, path, query):
        if method == "DELETE":
            bed.downstream_transport.clear_fault()
            patch = {"spec": {"parentRefs": [{"name": "new"}]}}
            await bed.down.patch(HTTPRoute, "web", bed.namespace, patch, type=PatchType.MERGE)

    bed.downstream_transport.fault = lambda *request: attach(*request)
    (done,) = await delete(bed, plan)
    assert done.outcome is DeletionOutcome.LEFT
    assert await bed.find()


async def delete(bed, plan):
    deleter = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    return await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)


async def test_absence_is_never_read_from_a_watch_cache(bed):
    """Reads have no resourceVersion: a replica's watch cache may answer "0" before it has all objects."""
    await bed.create_route()
    await collect_after_grace(bed)
    requests = bed.upstream_transports["project-a"].requests + bed.downstream_transport.requests
    assert requests
    assert not [query for _, _, query in requests if "resourceVersion" in query]


async def test_copies_of_a_retired_cluster_are_deleted_after_the_grace(bed):
    await bed.create_route(cluster="cluster-gone")
    assert await collect_after_grace(bed) == []
    assert (await bed.verdict())[0] is State.REFUSED
    bed.retired = frozenset({"gone"})
    assert await bed.collect() == []  # its grace begins when it is first listed as retired
    bed.clock.forward(GRACE)
    assert [done.outcome for done in await bed.collect()] == [DeletionOutcome.DELETED]


@pytest.mark.parametrize("label", ["cluster-project-a", "cluster-_project-a"])
async def test_every_past_encoding_of_a_cluster_name_is_read(bed, label):
    await bed.create_gateway()
    await bed.create_route("kept", cluster=label)
    await bed.create_route("orphan", cluster=label, parents=["missing"])
    assert await collect_after_grace(bed) == [DeletionOutcome.DELETED]
    assert await bed.find("kept")


async def test_upstream_rule_deletes_a_route_that_is_gone_upstream(bed, tmp_path):
    await bed.create_gateway()
    await bed.create_route()
    assert await collect_after_grace(bed) == []
    (tmp_path / "rules.yaml").write_text("rules: [{use: httproute-upstream, grace: 1m}]")
    bed.rules = load(tmp_path / "rules.yaml")
    await bed.collect()
    bed.clock.forward(60)
    assert [done.why for done in await bed.collect()] == ["HTTPRoute default/web is gone from project-a"]


async def test_upstream_rule_keeps_a_route_that_exists_upstream(bed, tmp_path):
    spec = {"parentRefs": [{"name": "gw"}]}
    await bed.up["project-a"].create(HTTPRoute("web", "default", spec=spec))
    await bed.create_route()
    (tmp_path / "rules.yaml").write_text("rules: [{use: httproute-upstream}]")
    bed.rules = load(tmp_path / "rules.yaml")
    assert await collect_after_grace(bed) == []


# Further guarantees


async def test_terminating_gateway_counts_as_alive(bed):
    gateway = await bed.create_gateway()
    patch = {"metadata": {"finalizers": ["example.com/hold"]}}
    await bed.up["project-a"].patch(Gateway, "gw", "default", patch, type=PatchType.MERGE)
    await bed.delete_gateway()
    assert (await bed.up["project-a"].get(Gateway, "gw", "default")).uid == gateway.uid
    await bed.create_route()
    assert await collect_after_grace(bed) == []


async def test_orphan_older_than_the_process_is_deleted_after_one_grace(bed):
    await bed.create_route()
    bed.clock.forward(30 * 86400)
    assert await collect_after_grace(bed) == [DeletionOutcome.DELETED]


async def test_restart_neither_loses_nor_shortens_the_grace(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE - 1)
    bed.restart()
    assert await bed.collect() == []
    bed.restart()
    bed.clock.forward(1)
    assert [done.outcome for done in await bed.collect()] == [DeletionOutcome.DELETED]


async def test_gateway_that_came_back_restarts_the_grace(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.forward(GRACE - 1)
    await bed.create_gateway()
    await bed.collect()
    await bed.delete_gateway()
    bed.clock.forward(1)
    assert await bed.collect() == []
    bed.clock.forward(GRACE - 1)
    assert await bed.collect() == []
    bed.clock.forward(1)
    assert [done.outcome for done in await bed.collect()] == [DeletionOutcome.DELETED]


async def test_clock_set_forward_does_not_shorten_the_grace(bed):
    await bed.create_route()
    await bed.collect()
    bed.clock.wall += 86400
    assert await bed.collect() == []


async def test_zero_grace_deletes_after_one_scan(bed):
    await bed.create_route()
    assert [done.outcome for done in await bed.collect(grace=0.0)] == [DeletionOutcome.DELETED]


async def test_run_above_the_cap_deletes_nothing(bed):
    for i in range(11):
        await bed.create_route(f"web-{i}")
    assert await bed.collect(grace=0.0) == []
    assert len(await bed.collect(grace=0.0, cap=Cap.parse("100%"))) == 11


async def test_anchor_is_deleted_when_its_owner_is_gone(bed):
    await bed.create_gateway()
    identity = {"cluster-name": "cluster-project-a", "group": Gateway.group, "kind": "Gateway", "namespace": "default"}
    for name, owner in (("anchor-1", "gw"), ("anchor-2", "missing"), ("settings", "missing")):
        labels = {PREFIX + key: value for key, value in {**identity, "name": owner}.items()}
        await bed.down.create(fl.ConfigMap(name, bed.namespace, labels=labels))
    assert [done.item.candidate.name for done in await bed.collect(grace=0.0)] == ["anchor-2"]
    assert await bed.find("settings", fl.ConfigMap)


async def test_deletion_writes_an_event_and_a_journal_entry_with_the_object(bed):
    route = await bed.create_route()
    await bed.collect(grace=0.0)
    (event,) = [e for e in (await bed.down.list(fl.Event, bed.namespace)).items if e["reason"] == "OrphanDeleted"]
    assert event["involvedObject"]["uid"] == route.uid
    assert "Gateway default/gw is gone from project-a" in event["message"]
    before, after = bed.journal
    assert (before["what"], before["object"]["spec"], before["uid"]) == ("deleting", route.spec, route.uid)
    assert (after["what"], after["cluster"], after["rule"]) == ("deleted", "project-a", "httproute-gateway")


async def test_nothing_is_deleted_without_a_journal_entry(bed, tmp_path):
    await bed.create_route()
    bed.journal = DeletionJournalFile(tmp_path / "taken")
    bed.journal.path.mkdir()
    with pytest.raises(JournalError, match="nothing more is deleted"):
        await bed.collect(grace=0.0)
    assert await bed.find()


async def test_unreadable_labels_are_refused_with_the_reason(bed):
    await bed.create_route("no-name")
    await bed.relabel("no-name", name=None)
    await bed.create_route("odd-cluster", cluster="project-a")
    assert await bed.verdict("no-name", 0.0) == (State.REFUSED, f"it has no label {PREFIX}name")
    assert (await bed.verdict("odd-cluster", 0.0))[0] is State.REFUSED
    assert await bed.collect(grace=0.0) == []
