"""Tests of random histories: parents are deleted and recreated, clusters are partitioned or replaced, parents change.

The collector never deletes a copy that has a live parent or whose grace has not ended. In the end it has deleted
every orphan. Downstream changes happen at any time. Upstream changes happen at any time except between the last read
for a copy and its deletion, because two clusters share no transaction. `scripts/mutation/run.py orphans` removes each
guard and checks that this test fails. All histories run in virtual time.
"""

import asyncio
import contextlib

from fleets import PREFIX, FaultyTransport, MemoryJournal
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fairlead as fl
from fairlead.api.errors import AlreadyExists, NotFound
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.clusters import Cluster, Fleet
from fairlead.tools.orphans.collector import Collector
from fairlead.tools.orphans.evidence_stores import EvidenceConfigMap
from fairlead.tools.orphans.rules import OrphanRule, Parent

GRACE = 300.0
MOMENTS = ("now", "during", "late", "last")
CLUSTERS = ("a", "b")
PARENTS = ("p", "q", "r")
PARENT_SETS = [("p",), ("q",), ("p", "q"), ("r", "p")]
COPIES = {f"copy-{c}-{'-'.join(ps)}": (c, ps) for c in CLUSTERS for ps in PARENT_SETS}


def parents(obj, identity):
    return [Parent("", "ConfigMap", identity.namespace, name) for name in obj["data"]["parents"].split(",")]


RULE = OrphanRule("copies", fl.ConfigMap, parents, grace=GRACE)

cluster, parent = st.sampled_from(CLUSTERS), st.sampled_from(PARENTS)
upstream = st.one_of(
    st.tuples(st.sampled_from(["delete", "create"]), cluster, parent),
    # The transport is partitioned, or leads to a new and empty cluster or to the other one, and is then restored.
    st.tuples(st.sampled_from(["partition", "empty", "crossed", "home"]), cluster),
)
copy, some_parents = st.sampled_from(sorted(COPIES)), st.sampled_from(PARENT_SETS)
downstream = st.tuples(st.sampled_from(["recreate", "reparent"]), copy, some_parents)
wait_step = st.tuples(st.just("wait"), st.sampled_from([1.0, 100.0, 299.0, 300.0, 1000.0]))
step = st.one_of(
    wait_step,
    st.tuples(st.just("restart")),
    st.tuples(st.just("now"), upstream | downstream),
    st.tuples(st.just("during"), upstream),  # before the response to a list of parents
    st.tuples(st.just("late"), upstream | downstream),  # before the last read for a copy
    st.tuples(st.just("last"), downstream),  # between that read and the deletion
)


DELETE_A_PARENT = ("now", ("delete", "a", "p"))
LONG_WAIT = ("wait", 400.0)  # a grace and a scan after it


VARIATIONS = ("young", "apart", "back late", "recreate", "reparent", "flicker", "restart", "away", "away during a scan")


def scenario(draw, variation):
    """Draw the steps of a copy that becomes an orphan while something else happens to it.

    The copy and all its parents exist at the beginning, so that scenarios do not affect each other.
    """
    name = draw(copy)
    home_cluster, parent_names = COPIES[name]
    new_parents = draw(
        st.sampled_from([names for names in PARENT_SETS if set(names) - set(parent_names)])
    )  # not all deleted
    outage = draw(st.sampled_from(["partition", "empty", "crossed"]))
    orphaned = [("now", ("delete", home_cluster, parent_name)) for parent_name in parent_names]
    first_delete, last_delete = orphaned[0], orphaned[-1]
    recreated = ("now", ("create", home_cluster, parent_names[0]))
    variations = {
        "young": [*orphaned, ("wait", 299.0)],
        "apart": [first_delete, ("wait", 200.0), last_delete, ("wait", 299.0)],
        "back late": [*orphaned, ("late", ("create", home_cluster, parent_names[0])), LONG_WAIT],
        "recreate": [*orphaned, ("last", ("recreate", name, new_parents)), LONG_WAIT],
        "reparent": [*orphaned, ("last", ("reparent", name, new_parents)), LONG_WAIT],
        "flicker": [*orphaned, ("wait", 299.0), recreated, ("wait", 61.0), first_delete, ("wait", 299.0)],
        "restart": [*orphaned, ("wait", 299.0), ("restart",), ("wait", 2.0), recreated],
        "away": [("now", (outage, home_cluster)), LONG_WAIT, ("now", ("home", home_cluster))],
        "away during a scan": [("during", (outage, home_cluster)), LONG_WAIT, ("now", ("home", home_cluster))],
    }
    return [("now", ("reset", name)), ("wait", 1.0), *variations[variation]]


@st.composite
def histories(draw):
    """Draw several scenarios and a few random steps between them.

    Random steps alone rarely create an orphan together with the event that must prevent its deletion.
    """
    variations = draw(st.lists(st.sampled_from(VARIATIONS), min_size=2, max_size=3, unique=True))
    steps = [step_ for variation in variations for step_ in scenario(draw, variation)]
    for random_step in draw(st.lists(step, max_size=2)):
        steps.insert(draw(st.integers(0, len(steps))), random_step)
    return steps


# In the first scan the transport of cluster a leads to b. Then b is partitioned.
partitioned_histories = parent.map(
    lambda name: [("now", ("delete", "b", name)), ("now", ("partition", "b")), LONG_WAIT]
)
scenes = st.one_of(
    st.tuples(histories(), st.just(False)),
    st.tuples(histories(), st.just(False)),
    st.tuples(
        st.tuples(partitioned_histories, histories()).map(lambda two_histories: two_histories[0] + two_histories[1]),
        st.just(True),
    ),
)


class ObservedTransport(FaultyTransport):
    """The downstream transport. It calls `on_delete` with the object after every successful deletion."""

    def __init__(self, inner, client, on_delete):
        super().__init__(inner)
        self._client, self._on_delete = client, on_delete

    async def request(self, request):
        if request.method != "DELETE":
            return await super().request(request)
        await self.fault(request.method, request.path, {})
        name = request.path.rpartition("/")[2]
        try:
            obj = await self._client.get(fl.ConfigMap, name, "default")
        except NotFound:
            obj = None
        response = await self.inner.request(request)
        if response.status < 300:
            self._on_delete(obj)
        return response


class CollectorHistory:
    def __init__(self, world):
        self.world = world
        downstream_server = Server(world)
        self.upstream_servers = {name: Server(world) for name in CLUSTERS}
        self.client = Client(downstream_server.transport(), world)
        self.upstream_clients = {
            name: Client(server.transport(), world) for name, server in self.upstream_servers.items()
        }
        self.upstream_transports = {
            name: FaultyTransport(server.transport()) for name, server in self.upstream_servers.items()
        }
        self.downstream_transport = ObservedTransport(downstream_server.transport(), self.client, self.check_deletion)
        self.pending = {}  # by moment
        self.alive = set()  # (cluster, parent)
        self.absent = {}  # (cluster, parent): when it was deleted after the last scan that saw it
        self.violations = []  # recorded, because the client would treat an error raised here as a lost response
        self.disturbed = False
        self.partitioned, self.redirected = set(), set()
        for name, transport in self.upstream_transports.items():
            transport.fault = lambda method, path, query, name=name: self.on_upstream_request(name, path)
        self.downstream_transport.fault = self.on_downstream_request

    async def on_upstream_request(self, name, path):
        if path.endswith("/configmaps"):
            await self.run_pending("during")
        return ConnectionRefusedError("partitioned") if name in self.partitioned else None

    async def on_downstream_request(self, method, path, query):
        copy = path.rpartition("/")[2]
        if method == "GET" and copy in COPIES:
            await self.run_pending("late", copy)
        if method == "DELETE":
            await self.run_pending("last", copy)

    def check_deletion(self, obj):
        cluster = obj.labels[f"{PREFIX}cluster-name"].removeprefix("cluster-")
        for name in obj["data"]["parents"].split(","):
            if (cluster, name) in self.alive:
                self.violations.append(f"{obj.name} was deleted, but {name} exists in {cluster}")
            elif (age := self.world.clock.now() - self.absent[cluster, name]) < GRACE:
                self.violations.append(f"{obj.name} was deleted, but {name} was absent from {cluster} for only {age} s")

    async def run_pending(self, when, copy=""):
        """Run the pending changes of this moment. Changes of a copy wait for the moment of that copy."""
        pending_changes = self.pending.pop(when, [])
        self.pending[when] = [change for change in pending_changes if change[1] in COPIES and change[1] != copy]
        for change in (change for change in pending_changes if change not in self.pending[when]):
            self.disturbed = True
            await self.change(*change)

    async def change(self, change_type, *change_arguments):
        await getattr(self, change_type)(*change_arguments)

    async def partition(self, cluster):
        self.partitioned.add(cluster)

    async def empty(self, cluster):
        self.redirected.add(cluster)
        self.upstream_transports[cluster].inner = Server(self.world).transport()

    async def crossed(self, cluster):
        self.redirected.add(cluster)
        self.upstream_transports[cluster].inner = self.upstream_servers[
            next(name for name in CLUSTERS if name != cluster)
        ].transport()

    async def home(self, cluster):
        self.partitioned.discard(cluster)
        self.redirected.discard(cluster)
        self.upstream_transports[cluster].inner = self.upstream_servers[cluster].transport()

    async def create(self, cluster, name):
        with contextlib.suppress(AlreadyExists):
            await self.upstream_clients[cluster].create(fl.ConfigMap(name, "default"))
            self.alive.add((cluster, name))

    async def delete(self, cluster, name):
        with contextlib.suppress(NotFound):
            await self.upstream_clients[cluster].delete(fl.ConfigMap, name, "default")
            self.alive.discard((cluster, name))
            self.absent.setdefault((cluster, name), self.world.clock.now())

    async def recreate(self, copy, parent_names):
        with contextlib.suppress(NotFound):
            obj = await self.client.get(fl.ConfigMap, copy, "default")
            await self.client.delete(fl.ConfigMap, copy, "default")
            data = {"parents": ",".join(parent_names)}
            await self.client.create(fl.ConfigMap(copy, "default", labels=obj.labels, data=data))

    async def reset(self, copy):
        """Recreate the copy and all its parents, and reconnect its cluster."""
        cluster, parent_names = COPIES[copy]
        await self.home(cluster)
        for name in parent_names:
            await self.create(cluster, name)
        with contextlib.suppress(NotFound):
            await self.client.delete(fl.ConfigMap, copy, "default")
        await self.create_copy(copy)

    async def create_copy(self, copy):
        cluster, parent_names = COPIES[copy]
        identity = {"cluster-name": f"cluster-{cluster}", "group": "", "kind": "ConfigMap", "name": copy}
        labels = {PREFIX + key: value for key, value in {**identity, "namespace": "default"}.items()}
        await self.client.create(fl.ConfigMap(copy, "default", labels=labels, data={"parents": ",".join(parent_names)}))

    async def reparent(self, copy, parent_names):
        with contextlib.suppress(NotFound):
            obj = await self.client.get(fl.ConfigMap, copy, "default")
            await self.client.replace(fl.Object({**obj, "data": {"parents": ",".join(parent_names)}}))

    def start(self):
        """Return a new collector that knows only the recorded evidence."""
        client = Client(self.downstream_transport, self.world)
        upstreams = {
            name: Cluster(name, Client(transport, self.world)) for name, transport in self.upstream_transports.items()
        }
        fleet = Fleet(Cluster("downstream", client), upstreams)
        store = EvidenceConfigMap(client, "default")
        return Collector(fleet, [RULE], self.world, store, MemoryJournal(), cap=Cap.parse("100%"))

    async def run_collector(self, collector, duration):
        end = self.world.clock.now() + duration
        while (remaining := end - self.world.clock.now()) > 0:
            self.disturbed = False
            delay = await collector.scan()
            assert not self.violations
            if not self.disturbed:
                reached = set(CLUSTERS) - self.partitioned - self.redirected
                self.absent = {
                    key: absent_since
                    for key, absent_since in self.absent.items()
                    if key not in self.alive or key[0] not in reached
                }
            await asyncio.sleep(min(delay, remaining))

    async def run(self, steps, is_crossed):
        for cluster in CLUSTERS:
            for name in PARENTS:
                await self.create(cluster, name)
        for copy in COPIES:
            await self.create_copy(copy)
        collector = self.start()
        if is_crossed:
            await self.crossed(CLUSTERS[0])
        await self.run_collector(collector, 1)
        for change_type, *change_arguments in steps:
            if change_type == "now":
                await self.change(*change_arguments[0])
            elif change_type == "restart":
                collector = self.start()
            elif change_type == "wait":
                await self.run_collector(collector, change_arguments[0])
            else:
                self.pending.setdefault(change_type, []).append(change_arguments[0])
        self.pending.clear()
        for cluster in CLUSTERS:
            await self.home(cluster)
        await self.run_collector(collector, 2 * GRACE + 120)
        for obj in (await self.client.list(fl.ConfigMap, "default", labels=f"{PREFIX}cluster-name")).items:
            cluster = obj.labels[f"{PREFIX}cluster-name"].removeprefix("cluster-")
            live_parents = [name for name in obj["data"]["parents"].split(",") if (cluster, name) in self.alive]
            assert live_parents, f"{obj.name} is an orphan and still exists"


def is_redirect(step):
    return step[0] in MOMENTS and step[1][0] in ("empty", "crossed")


# One example for each guard: the detection of a missing guard must not be random.
@example(([DELETE_A_PARENT, ("wait", 299.0)], False))
@example(([DELETE_A_PARENT, ("wait", 200.0), ("now", ("delete", "a", "q")), ("wait", 299.0)], False))
@example(([DELETE_A_PARENT, ("late", ("create", "a", "p")), LONG_WAIT], False))
@example(([DELETE_A_PARENT, ("last", ("reparent", "copy-a-p", ("q",))), LONG_WAIT], False))
@example(([DELETE_A_PARENT, ("last", ("recreate", "copy-a-p", ("q",))), LONG_WAIT], False))
@example(
    (
        [
            DELETE_A_PARENT,
            ("wait", 299.0),
            ("now", ("create", "a", "p")),
            ("wait", 61.0),
            DELETE_A_PARENT,
            ("wait", 299.0),
        ],
        False,
    )
)
@example(([DELETE_A_PARENT, ("wait", 299.0), ("restart",), ("wait", 2.0), ("now", ("create", "a", "p"))], False))
@example(([("now", ("empty", "a")), LONG_WAIT], False))
@example(([("during", ("empty", "a")), ("wait", 1.0), ("now", ("partition", "a")), LONG_WAIT], False))
@example(([LONG_WAIT], True))
@example(([("now", ("delete", "b", "p")), ("now", ("partition", "b")), LONG_WAIT], True))
@example(([("now", ("partition", "a")), LONG_WAIT], False))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenes)
def test_histories_delete_every_orphan_and_no_copy_with_a_live_parent(scene):
    steps, is_crossed = scene

    async def main():
        # The collector cannot detect that a cluster was replaced before the first scan.
        steps_that_apply = [step for step in steps if not is_crossed or not is_redirect(step)]
        await CollectorHistory(virtual.world()).run(steps_that_apply, is_crossed)

    virtual.run(main())
