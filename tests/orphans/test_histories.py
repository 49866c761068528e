"""Random histories, in virtual time: parents are deleted, made anew and partitioned away, doors lead to other clusters,
copies change hands.

No copy with a live parent is ever deleted, none before the grace is over, and every true orphan is gone in the end.
Changes come at any moment but one: upstream, between a copy's own look and its deletion, since two clusters share no
transaction. Downstream they come there too. `scripts/mutation/run.py orphans` takes each guard out and sees this fail.
"""

import asyncio
import contextlib

from fleets import PREFIX, Door, Lines
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
SETS = [("p",), ("q",), ("p", "q"), ("r", "p")]
COPIES = {f"copy-{c}-{'-'.join(ps)}": (c, ps) for c in CLUSTERS for ps in SETS}


def parents(obj, identity):
    return [Parent("", "ConfigMap", identity.namespace, name) for name in obj["data"]["parents"].split(",")]


RULE = OrphanRule("copies", fl.ConfigMap, parents, grace=GRACE)

cluster, parent = st.sampled_from(CLUSTERS), st.sampled_from(PARENTS)
upstream = st.one_of(
    st.tuples(st.sampled_from(["delete", "create"]), cluster, parent),
    # a door that is shut, that leads to a new and empty cluster, or to the other one; and back
    st.tuples(st.sampled_from(["partition", "empty", "crossed", "home"]), cluster),
)
copy, some_parents = st.sampled_from(sorted(COPIES)), st.sampled_from(SETS)
downstream = st.tuples(st.sampled_from(["anew", "reparent"]), copy, some_parents)
waits = st.tuples(st.just("wait"), st.sampled_from([1.0, 100.0, 299.0, 300.0, 1000.0]))
step = st.one_of(
    waits,
    st.tuples(st.just("restart")),
    st.tuples(st.just("now"), upstream | downstream),
    st.tuples(st.just("during"), upstream),  # before a list of parents is answered
    st.tuples(st.just("late"), upstream | downstream),  # before a copy's own look
    st.tuples(st.just("last"), downstream),  # between that look and the deletion
)


GONE = ("now", ("delete", "a", "p"))
LONG = ("wait", 400.0)  # a grace, and a look after it


TWISTS = ("young", "apart", "back late", "anew", "reparent", "flicker", "restart", "away", "away while looked at")


def drama(draw, twist):
    """A copy that becomes an orphan, and something that happens to it on the way.

    It begins with the copy and all its parents in place, so that no drama spoils the next one.
    """
    name = draw(copy)
    home, wanted = COPIES[name]
    others = draw(st.sampled_from([one for one in SETS if set(one) - set(wanted)]))  # not all of them gone
    away = draw(st.sampled_from(["partition", "empty", "crossed"]))
    orphaned = [("now", ("delete", home, one)) for one in wanted]
    first, last = orphaned[0], orphaned[-1]
    back = ("now", ("create", home, wanted[0]))
    twists = {
        "young": [*orphaned, ("wait", 299.0)],
        "apart": [first, ("wait", 200.0), last, ("wait", 299.0)],
        "back late": [*orphaned, ("late", ("create", home, wanted[0])), LONG],
        "anew": [*orphaned, ("last", ("anew", name, others)), LONG],
        "reparent": [*orphaned, ("last", ("reparent", name, others)), LONG],
        "flicker": [*orphaned, ("wait", 299.0), back, ("wait", 61.0), first, ("wait", 299.0)],
        "restart": [*orphaned, ("wait", 299.0), ("restart",), ("wait", 2.0), back],
        "away": [("now", (away, home)), LONG, ("now", ("home", home))],
        "away while looked at": [("during", (away, home)), LONG, ("now", ("home", home))],
    }
    return [("now", ("again", name)), ("wait", 1.0), *twists[twist]]


@st.composite
def histories(draw):
    """Several dramas, each with a twist of its own: chance alone seldom brings an orphan and what should save it. Then
    a few steps of chance anywhere between."""
    twists = draw(st.lists(st.sampled_from(TWISTS), min_size=2, max_size=3, unique=True))
    steps = [one for twist in twists for one in drama(draw, twist)]
    for stray in draw(st.lists(step, max_size=2)):
        steps.insert(draw(st.integers(0, len(steps))), stray)
    return steps


# the first look goes through a door of a that leads to b, and then b cannot be asked
shared = parent.map(lambda one: [("now", ("delete", "b", one)), ("now", ("partition", "b")), LONG])
scenes = st.one_of(
    st.tuples(histories(), st.just(False)),
    st.tuples(histories(), st.just(False)),
    st.tuples(st.tuples(shared, histories()).map(lambda both: both[0] + both[1]), st.just(True)),
)


class Watched(Door):
    """The way downstream; `deleted` is told of each deletion that the server made, with the object as it was."""

    def __init__(self, inner, hand, deleted):
        super().__init__(inner)
        self._hand, self._deleted = hand, deleted

    async def request(self, request):
        if request.method != "DELETE":
            return await super().request(request)
        await self.fault(request.method, request.path, {})
        name = request.path.rpartition("/")[2]
        try:
            obj = await self._hand.get(fl.ConfigMap, name, "default")
        except NotFound:
            obj = None
        answer = await self.inner.request(request)
        if answer.status < 300:
            self._deleted(obj)
        return answer


class History:
    def __init__(self, world):
        self.world = world
        down = Server(world)
        self.up = {name: Server(world) for name in CLUSTERS}
        self.hand = Client(down.transport(), world)
        self.hands = {name: Client(server.transport(), world) for name, server in self.up.items()}
        self.doors = {name: Door(server.transport()) for name, server in self.up.items()}
        self.door = Watched(down.transport(), self.hand, self.deleted)
        self.pending = {}  # by moment
        self.alive = set()  # (cluster, parent)
        self.absent = {}  # (cluster, parent): when it first went after it was last seen
        self.wrong = []  # an error raised inside a write would be taken for a lost answer
        self.disturbed = False
        self.cut, self.astray = set(), set()
        for name, door in self.doors.items():
            door.fault = lambda method, path, query, name=name: self.upstream(name, path)
        self.door.fault = self.downstream

    async def upstream(self, name, path):
        if path.endswith("/configmaps"):
            await self.changes("during")
        return ConnectionRefusedError("partitioned away") if name in self.cut else None

    async def downstream(self, method, path, query):
        copy = path.rpartition("/")[2]
        if method == "GET" and copy in COPIES:
            await self.changes("late", copy)
        if method == "DELETE":
            await self.changes("last", copy)

    def deleted(self, obj):
        cluster = obj.labels[f"{PREFIX}cluster-name"].removeprefix("cluster-")
        for name in obj["data"]["parents"].split(","):
            if (cluster, name) in self.alive:
                self.wrong.append(f"{obj.name} went, and {name} lives in {cluster}")
            elif (age := self.world.clock.now() - self.absent[cluster, name]) < GRACE:
                self.wrong.append(f"{obj.name} went, and {name} was absent from {cluster} for {age} s only")

    async def changes(self, when, copy=""):
        """What was to happen at that moment; to a copy, at that moment of its own."""
        waiting = self.pending.pop(when, [])
        self.pending[when] = [change for change in waiting if change[1] in COPIES and change[1] != copy]
        for change in (change for change in waiting if change not in self.pending[when]):
            self.disturbed = True
            await self.change(*change)

    async def change(self, what, *rest):
        await getattr(self, what)(*rest)

    async def partition(self, cluster):
        self.cut.add(cluster)

    async def empty(self, cluster):
        self.astray.add(cluster)
        self.doors[cluster].inner = Server(self.world).transport()

    async def crossed(self, cluster):
        self.astray.add(cluster)
        self.doors[cluster].inner = self.up[next(name for name in CLUSTERS if name != cluster)].transport()

    async def home(self, cluster):
        self.cut.discard(cluster)
        self.astray.discard(cluster)
        self.doors[cluster].inner = self.up[cluster].transport()

    async def create(self, cluster, name):
        with contextlib.suppress(AlreadyExists):
            await self.hands[cluster].create(fl.ConfigMap(name, "default"))
            self.alive.add((cluster, name))

    async def delete(self, cluster, name):
        with contextlib.suppress(NotFound):
            await self.hands[cluster].delete(fl.ConfigMap, name, "default")
            self.alive.discard((cluster, name))
            self.absent.setdefault((cluster, name), self.world.clock.now())

    async def anew(self, copy, wanted):
        with contextlib.suppress(NotFound):
            obj = await self.hand.get(fl.ConfigMap, copy, "default")
            await self.hand.delete(fl.ConfigMap, copy, "default")
            data = {"parents": ",".join(wanted)}
            await self.hand.create(fl.ConfigMap(copy, "default", labels=obj.labels, data=data))

    async def again(self, copy):
        """The copy as it was at first, its cluster reached and all its parents alive."""
        cluster, wanted = COPIES[copy]
        await self.home(cluster)
        for name in wanted:
            await self.create(cluster, name)
        with contextlib.suppress(NotFound):
            await self.hand.delete(fl.ConfigMap, copy, "default")
        await self.make(copy)

    async def make(self, copy):
        cluster, wanted = COPIES[copy]
        said = {"cluster-name": f"cluster-{cluster}", "group": "", "kind": "ConfigMap", "name": copy}
        labels = {PREFIX + key: value for key, value in {**said, "namespace": "default"}.items()}
        await self.hand.create(fl.ConfigMap(copy, "default", labels=labels, data={"parents": ",".join(wanted)}))

    async def reparent(self, copy, wanted):
        with contextlib.suppress(NotFound):
            obj = await self.hand.get(fl.ConfigMap, copy, "default")
            await self.hand.replace(fl.Object({**obj, "data": {"parents": ",".join(wanted)}}))

    def start(self):
        """A process that knows only what was recorded."""
        client = Client(self.door, self.world)
        upstreams = {name: Cluster(name, Client(door, self.world)) for name, door in self.doors.items()}
        fleet = Fleet(Cluster("downstream", client), upstreams)
        store = EvidenceConfigMap(client, "default")
        return Collector(fleet, [RULE], self.world, store, Lines(), cap=Cap.parse("100%"))

    async def look(self, collector, parse_duration):
        until = self.world.clock.now() + parse_duration
        while (left := until - self.world.clock.now()) > 0:
            self.disturbed = False
            after = await collector.scan()
            assert not self.wrong
            if not self.disturbed:
                reached = set(CLUSTERS) - self.cut - self.astray
                self.absent = {k: at for k, at in self.absent.items() if k not in self.alive or k[0] not in reached}
            await asyncio.sleep(min(after, left))

    async def run(self, steps, crossed):
        for cluster in CLUSTERS:
            for name in PARENTS:
                await self.create(cluster, name)
        for copy in COPIES:
            await self.make(copy)
        collector = self.start()
        if crossed:
            await self.crossed(CLUSTERS[0])
        await self.look(collector, 1)
        for what, *rest in steps:
            if what == "now":
                await self.change(*rest[0])
            elif what == "restart":
                collector = self.start()
            elif what == "wait":
                await self.look(collector, rest[0])
            else:
                self.pending.setdefault(what, []).append(rest[0])
        self.pending.clear()
        for cluster in CLUSTERS:
            await self.home(cluster)
        await self.look(collector, 2 * GRACE + 120)
        for obj in (await self.hand.list(fl.ConfigMap, "default", labels=f"{PREFIX}cluster-name")).items:
            cluster = obj.labels[f"{PREFIX}cluster-name"].removeprefix("cluster-")
            living = [name for name in obj["data"]["parents"].split(",") if (cluster, name) in self.alive]
            assert living, f"{obj.name} is an orphan, and still there"


def leads_astray(step):
    return step[0] in MOMENTS and step[1][0] in ("empty", "crossed")


# One for each guard, so that none depends on chance.
@example(([GONE, ("wait", 299.0)], False))
@example(([GONE, ("wait", 200.0), ("now", ("delete", "a", "q")), ("wait", 299.0)], False))
@example(([GONE, ("late", ("create", "a", "p")), LONG], False))
@example(([GONE, ("last", ("reparent", "copy-a-p", ("q",))), LONG], False))
@example(([GONE, ("last", ("anew", "copy-a-p", ("q",))), LONG], False))
@example(([GONE, ("wait", 299.0), ("now", ("create", "a", "p")), ("wait", 61.0), GONE, ("wait", 299.0)], False))
@example(([GONE, ("wait", 299.0), ("restart",), ("wait", 2.0), ("now", ("create", "a", "p"))], False))
@example(([("now", ("empty", "a")), LONG], False))
@example(([("during", ("empty", "a")), ("wait", 1.0), ("now", ("partition", "a")), LONG], False))
@example(([LONG], True))
@example(([("now", ("delete", "b", "p")), ("now", ("partition", "b")), LONG], True))
@example(([("now", ("partition", "a")), LONG], False))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenes)
def test_histories_delete_every_orphan_and_no_copy_with_a_live_parent(scene):
    steps, crossed = scene

    async def main():
        # of a cluster that was never seen nobody can tell that it is another one
        known = [step for step in steps if not crossed or not leads_astray(step)]
        await History(virtual.world()).run(known, crossed)

    virtual.run(main())
