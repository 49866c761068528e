"""Tests that a plan needs one request per downstream page and at most eight per upstream cluster."""

import asyncio
import os

from fairlead.tools.orphans.verdicts import State

ROUTES = int(os.environ.get("FAIRLEAD_ROUTES", "200"))
"""The documentation claims 10,000: run with FAIRLEAD_ROUTES=10000, which takes a minute or more."""
CLUSTERS = max(4, ROUTES // 200)
GATEWAYS, PAGE_SIZE = 20, 500


async def test_requests_of_a_plan_grow_with_pages_and_clusters_only(harness):
    names = ["project-a", *(f"project-{i}" for i in range(1, CLUSTERS))]
    for name in names[1:]:
        await harness.set_upstream(name)
    for name in names:
        for i in range(GATEWAYS):
            await harness.create_gateway(f"gw-{i}", cluster=name)
    created, request_counts = 0, []
    for count in (ROUTES // 4, ROUTES):
        for start in range(created, count, 50):
            await asyncio.gather(*(create_route(harness, names, i) for i in range(start, min(start + 50, count))))
        created = count
        for transport in (harness.downstream_transport, *harness.upstream_transports.values()):
            transport.requests.clear()
        plan = await harness.plan(grace=0.0)
        assert len(plan.of(State.ORPHAN)) == len(range(0, count, GATEWAYS))
        request_counts.append(
            (
                len(harness.downstream_transport.requests),
                {len(transport.requests) for transport in harness.upstream_transports.values()},
            )
        )
    (first_count, per_cluster), (later_count, per_cluster_later) = request_counts
    print(
        f"{ROUTES} routes, {CLUSTERS} clusters: {later_count} requests downstream, "
        f"{max(per_cluster_later)} for each upstream"
    )
    assert per_cluster_later == per_cluster
    assert max(per_cluster) <= 8
    assert later_count - first_count <= ROUTES / PAGE_SIZE


async def create_route(harness, names, i):
    """Create a route. Every twentieth route names a missing Gateway."""
    gateway = f"gw-{i % GATEWAYS}" if i % GATEWAYS else "missing"
    await harness.create_route(f"route-{i}", parents=[gateway], cluster=f"cluster-{names[i % len(names)]}")
