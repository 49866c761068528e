"""A plan needs one request per downstream page and at most eight per upstream cluster, for any number of routes."""

import asyncio
import os

from fairlead.tools.orphans.verdicts import State

ROUTES = int(os.environ.get("FAIRLEAD_ROUTES", "200"))
"""The documentation claims 10,000: run with FAIRLEAD_ROUTES=10000, which takes a minute or more."""
CLUSTERS = max(4, ROUTES // 200)
GATEWAYS, PAGE_SIZE = 20, 500


async def test_requests_of_a_plan_grow_with_pages_and_clusters_only(bed):
    names = ["project-a", *(f"project-{i}" for i in range(1, CLUSTERS))]
    for name in names[1:]:
        await bed.set_upstream(name)
    for name in names:
        for i in range(GATEWAYS):
            await bed.create_gateway(f"gw-{i}", cluster=name)
    created, costs = 0, []
    for count in (ROUTES // 4, ROUTES):
        for start in range(created, count, 50):
            await asyncio.gather(*(create_route(bed, names, i) for i in range(start, min(start + 50, count))))
        created = count
        for transport in (bed.downstream_transport, *bed.upstream_transports.values()):
            transport.requests.clear()
        plan = await bed.plan(grace=0.0)
        assert len(plan.of(State.ORPHAN)) == len(range(0, count, GATEWAYS))
        costs.append(
            (
                len(bed.downstream_transport.requests),
                {len(transport.requests) for transport in bed.upstream_transports.values()},
            )
        )
    (few, per_cluster), (many, per_cluster_later) = costs
    print(
        f"{ROUTES} routes, {CLUSTERS} clusters: {many} requests downstream, {max(per_cluster_later)} for each upstream"
    )
    assert per_cluster_later == per_cluster
    assert max(per_cluster) <= 8
    assert many - few <= ROUTES / PAGE_SIZE


async def create_route(bed, names, i):
    """Create a route. One in twenty names a missing Gateway."""
    gateway = f"gw-{i % GATEWAYS}" if i % GATEWAYS else "missing"
    await bed.create_route(f"route-{i}", parents=[gateway], cluster=f"cluster-{names[i % len(names)]}")
