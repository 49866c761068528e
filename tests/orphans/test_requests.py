"""What one plan costs: pages downstream, and a handful of requests for each upstream cluster, whatever the routes."""

import asyncio
import os

from fairlead.tools.orphans.verdicts import State

ROUTES = int(os.environ.get("FAIRLEAD_ROUTES", "200"))
"""10,000 are the claim's: FAIRLEAD_ROUTES=10000, a minute, some on a real server."""
CLUSTERS = max(4, ROUTES // 200)
GATEWAYS, PAGE_SIZE = 20, 500


async def test_requests_of_a_plan_grow_with_pages_and_clusters_only(bed):
    names = ["project-a", *(f"project-{i}" for i in range(1, CLUSTERS))]
    for name in names[1:]:
        await bed.upstream(name)
    for name in names:
        for i in range(GATEWAYS):
            await bed.gateway(f"gw-{i}", cluster=name)
    made, costs = 0, []
    for count in (ROUTES // 4, ROUTES):
        for start in range(made, count, 50):
            await asyncio.gather(*(route(bed, names, i) for i in range(start, min(start + 50, count))))
        made = count
        for door in (bed.door, *bed.doors.values()):
            door.requests.clear()
        plan = await bed.plan(grace=0.0)
        assert len(plan.of(State.ORPHAN)) == len(range(0, count, GATEWAYS))
        costs.append((len(bed.door.requests), {len(door.requests) for door in bed.doors.values()}))
    (few, each), (many, each_later) = costs
    print(f"{ROUTES} routes, {CLUSTERS} clusters: {many} requests downstream, {max(each_later)} for each upstream")
    assert each_later == each
    assert max(each) <= 8
    assert many - few <= ROUTES / PAGE_SIZE


async def route(bed, names, i):
    """One in twenty names a Gateway that is not there."""
    gateway = f"gw-{i % GATEWAYS}" if i % GATEWAYS else "missing"
    await bed.route(f"route-{i}", parents=[gateway], cluster=f"cluster-{names[i % len(names)]}")
