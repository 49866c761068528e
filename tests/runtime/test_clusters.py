"""Tests of an operator that watches, reads and writes several clusters by their names."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from virtual_time import run_in_virtual_time

import fairlead as fl
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server
from fairlead.testing import virtual

Thing = fl.kind("test.example.com/v1", "Thing")
Replica = fl.kind("test.example.com/v1", "Replica")


def operator():
    op = fl.Operator("tester")

    def thing_of(replica):
        return [("default", replica.name)]

    @op.reconcile(Thing, watches={fl.select(Replica, cluster="edge"): thing_of})
    async def reconcile(obj, ctx):
        edge = ctx.cluster("edge")
        replica = await edge.apply(Replica(obj.name, spec={"size": obj.spec["size"]}))
        ctx.status(phase=replica.status.get("phase", "Pending"))

    @op.cleanup(Thing)
    async def cleanup(obj, ctx):
        edge = ctx.cluster("edge")
        replica = edge.get(Replica, obj.name)
        if replica is not None:
            await edge.delete(replica)

    return op


class TwoClusters:
    """The operator's own cluster and a cluster named edge, in virtual time."""

    async def start(self):
        self.world = virtual.world()
        self.servers = {name: Server(self.world) for name in ("home", "edge")}
        self.clients = {name: Client(server.transport(), self.world) for name, server in self.servers.items()}
        await install_missing(self.clients["home"], [Thing])
        await install_missing(self.clients["edge"], [Replica])
        return self

    def running(self, op, **options):
        edge = {"edge": self.servers["edge"].transport()}
        return op.running(self.servers["home"].transport(), self.world, clusters=edge, **options)


@asynccontextmanager
async def two_clusters():
    yield await TwoClusters().start()


def test_change_in_another_cluster_starts_a_pass_and_cleanup_reaches_it():
    async def test(clusters):
        home, edge = clusters.clients["home"], clusters.clients["edge"]
        await home.create(Thing("a", "default", spec={"size": 3}))
        async with clusters.running(operator()) as running:
            await running.wait_until_idle()
            replica = await edge.get(Replica, "a", "default")
            assert replica.spec == {"size": 3}
            assert "ownerReferences" not in replica.metadata
            assert [entry["manager"] for entry in replica.metadata["managedFields"]] == ["tester/thing"]
            await edge.replace(fl.Object(replica | {"status": {"phase": "Running"}}), subresource="status")
            await asyncio.sleep(1)
            assert (await home.get(Thing, "a", "default")).status["phase"] == "Running"
            await home.delete(Thing, "a", "default")
            await asyncio.sleep(1)
            assert (await edge.list(Replica, "default")).items == []
            assert (await home.list(Thing, "default")).items == []

    run_in_virtual_time(test, two_clusters)


def test_passes_start_only_after_every_cluster_has_listed():
    async def test(clusters):
        await clusters.clients["home"].create(Thing("a", "default", spec={"size": 3}))
        edge = clusters.servers["edge"].transport()
        edge_watch_allowed = asyncio.Event()

        class SlowEdgeTransport:
            async def request(self, request):
                return await edge.request(request)

            async def stream(self, request):
                await edge_watch_allowed.wait()
                return await edge.stream(request)

            async def close(self): ...

        async with operator().running(
            clusters.servers["home"].transport(), clusters.world, clusters={"edge": SlowEdgeTransport()}
        ) as running:
            await asyncio.sleep(5)
            assert [name for name in running.readiness_problems() if name.endswith("at edge")]
            assert (await clusters.clients["home"].get(Thing, "a", "default")).finalizers == []
            edge_watch_allowed.set()
            await running.wait_until_idle()
            assert running.readiness_problems() == {}

    run_in_virtual_time(test, two_clusters)


def test_lease_of_the_own_cluster_guards_writes_to_others():
    async def test(clusters):
        await clusters.clients["home"].create(Thing("a", "default", spec={"size": 3}))
        async with clusters.running(operator(), lease_namespace="default") as running:
            await running.wait_until_idle()
            running.lease._until = float("-inf")
            with pytest.raises(ConnectionError, match="may not hold the lease"):
                await running.services.clusters["edge"].client.create(Replica("b", "default"))

    run_in_virtual_time(test, two_clusters)


def test_impossible_cluster_declarations_are_rejected_with_the_remedy():
    op = fl.Operator("tester")
    with pytest.raises(ValueError, match="can be watched only"):
        op.reconcile(Thing, owns=[fl.select(Replica, cluster="edge")])(lambda obj, ctx: None)

    async def run():
        world = virtual.world()
        operator().running(Server(world).transport(), world)

    with pytest.raises(ValueError, match=r"watches the cluster edge: add it with clusters=\{'edge'"):
        virtual.run(run())


def test_sync_handler_writes_to_another_cluster():
    async def test(clusters):
        op = fl.Operator("tester")

        @op.reconcile(Thing, watches={fl.select(Replica, cluster="edge"): None})
        def reconcile(obj, ctx):
            replica = ctx.cluster("edge").apply(Replica(obj.name, spec={"size": 3}))
            ctx.status(seen=replica.uid)

        await clusters.clients["home"].create(Thing("thing", "default", spec={}))
        async with clusters.running(op) as running:
            await running.wait_until_idle()
            assert running.failures == {}
        replica = await clusters.clients["edge"].get(Replica, "thing", "default")
        assert (await clusters.clients["home"].get(Thing, "thing", "default")).status["seen"] == replica.uid

    run_in_virtual_time(test, two_clusters)
