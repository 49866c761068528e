"""Random histories of parents that are deleted, made anew and partitioned away, in virtual time.

No object with a live parent is ever deleted, and every true orphan is gone in the end. Changes may come at any moment
of a pass but the last one: between an object's own look and its deletion lies a moment that two clusters cannot close.
"""

import asyncio
import contextlib

from fleets import PREFIX, Door, Lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fairlead as fl
from fairlead.api.errors import AlreadyExists, NotFound
from fairlead.client.client import Client
from fairlead.orphans.caps import Cap
from fairlead.orphans.clusters import Cluster, Fleet
from fairlead.orphans.rules import Parent, Rule
from fairlead.orphans.stores import InConfigMap
from fairlead.orphans.watch import Collector
from fairlead.server.app import Server
from fairlead.testing import virtual

GRACE = 300.0
CLUSTERS = ("a", "b")
PARENTS = ("p", "q", "r")
COPIES = {f"copy-{c}-{'-'.join(ps)}": (c, ps) for c in CLUSTERS for ps in [("p",), ("q",), ("p", "q"), ("r", "p")]}


def parents(obj, identity):
    return [Parent("", "ConfigMap", identity.namespace, name) for name in obj["data"]["parents"].split(",")]


RULE = Rule("copies", fl.ConfigMap, parents, grace=GRACE)

cluster, parent = st.sampled_from(CLUSTERS), st.sampled_from(PARENTS)
changes = st.one_of(
    st.tuples(st.just("delete"), cluster, parent),
    st.tuples(st.just("create"), cluster, parent),
    st.tuples(st.just("partition"), cluster),
    st.tuples(st.just("heal"), cluster),
)
steps = st.one_of(
    st.tuples(st.just("now"), changes),
    st.tuples(st.sampled_from(["during", "late"]), changes),  # a list of parents; an object's own look
    st.tuples(st.just("wait"), st.sampled_from([1.0, 100.0, 299.0, 300.0, 1000.0])),
    st.tuples(st.just("restart")),
)


class History:
    def __init__(self, world):
        self.world = world
        self.down = Server(world)
        self.up = {name: Server(world) for name in CLUSTERS}
        self.doors = {name: Door(server.transport()) for name, server in self.up.items()}
        self.door = Door(self.down.transport())
        self.pending = {}  # by moment
        self.absent = set()  # (cluster, parent)
        self.hand = Client(self.down.transport(), world)
        self.hands = {name: Client(server.transport(), world) for name, server in self.up.items()}
        self.cut = set()
        for name, door in self.doors.items():
            door.fault = lambda method, path, query, name=name: self.upstream(name, method, path, query)
        self.door.fault = self.downstream

    async def upstream(self, name, method, path, query):
        if path.endswith("/configmaps"):  # a list: changes come before its pages
            await self.changes("during")
        return ConnectionRefusedError("partitioned away") if name in self.cut else None

    async def downstream(self, method, path, query):
        if method == "GET" and "/configmaps/copy-" in path:
            await self.changes("late")
        if method == "DELETE":
            cluster, wanted = COPIES[path.rpartition("/")[2]]
            for name in wanted:
                assert (cluster, name) in self.absent, f"{path} goes, and {name} lives in {cluster}"

    async def changes(self, when):
        for change in self.pending.pop(when, ()):
            await self.change(*change)

    async def change(self, what, cluster, name=None):
        if what == "partition":
            self.cut.add(cluster)
        elif what == "heal":
            self.cut.discard(cluster)
        elif what == "create":
            with contextlib.suppress(AlreadyExists):
                await self.hands[cluster].create(fl.ConfigMap(name, "default"))
                self.absent.discard((cluster, name))
        else:
            with contextlib.suppress(NotFound):
                await self.hands[cluster].delete(fl.ConfigMap, name, "default")
                self.absent.add((cluster, name))

    def start(self):
        """A process that knows only what was recorded."""
        client = Client(self.door, self.world)
        upstreams = {name: Cluster(name, Client(door, self.world)) for name, door in self.doors.items()}
        fleet = Fleet(Cluster("downstream", client), upstreams)
        store = InConfigMap(client, "default")
        return Collector(fleet, [RULE], self.world, store, Lines(), cap=Cap.parse("100%"))

    async def look(self, collector, seconds):
        until = self.world.clock.now() + seconds
        while (left := until - self.world.clock.now()) > 0:
            after = await collector.look()
            await asyncio.sleep(min(after, left))

    async def run(self, steps):
        for cluster in CLUSTERS:
            for name in PARENTS:
                await self.change("create", cluster, name)
        for name, (cluster, wanted) in COPIES.items():
            said = {"cluster-name": f"cluster-{cluster}", "group": "", "kind": "ConfigMap", "name": name}
            labels = {PREFIX + key: value for key, value in {**said, "namespace": "default"}.items()}
            await self.hand.create(fl.ConfigMap(name, "default", labels=labels, data={"parents": ",".join(wanted)}))
        collector = self.start()
        for what, *rest in steps:
            if what == "now":
                await self.change(*rest[0])
            elif what in ("during", "late"):
                self.pending.setdefault(what, []).append(rest[0])
            elif what == "restart":
                collector = self.start()
            else:
                await self.look(collector, rest[0])
        self.pending.clear()
        self.cut.clear()
        await self.look(collector, 2 * GRACE + 120)
        left = {obj.name for obj in (await self.hand.list(fl.ConfigMap, "default")).items if obj.name in COPIES}
        for name, (cluster, wanted) in COPIES.items():
            orphan = all((cluster, one) in self.absent for one in wanted)
            assert not (orphan and name in left), f"{name} is an orphan, and still there"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=25))
def test_no_object_with_a_live_parent_goes_and_every_orphan_does(steps):
    async def main():
        await History(virtual.world()).run(steps)

    virtual.run(main())
