"""Optional kinds: a controller works without them, and notices when their CRD appears or disappears."""

import asyncio

import pytest
from waiting import gone, until

import fairlead as fl
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing, permissive

App = fl.kind("optional.example.com/v1", "App")


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World(), user_agent="somebody-else")
    await install_missing(client, [App])
    return client


@pytest.fixture
def Monitor(api):  # noqa: N802 - a kind
    """A kind without a CRD, with a group of its own, because CRDs are shared by the tests of a real server."""
    return fl.kind(f"{api.namespace}.example.com/v1", "Monitor")


def operator(Monitor):  # noqa: N803 - a kind
    op = fl.Operator("apps")

    @op.reconcile(App, owns=[fl.ConfigMap, fl.select(Monitor, optional=True)])
    async def reconcile(app, ctx):
        await ctx.apply(fl.ConfigMap(app.name, data={"a": "1"}))
        if ctx.is_served(Monitor):
            await ctx.apply(Monitor(app.name, spec={"of": app.name}))
        assert ctx.is_served(Monitor) or ctx.children(Monitor) == ctx.list(Monitor) == []
        ctx.status(monitored=ctx.is_served(Monitor))
        await ctx.prune()

    return op


def has_monitored(value):
    return lambda app: app is not None and app.status.get("monitored") is value


async def test_optional_kind_is_picked_up_when_its_crd_appears_and_may_vanish(api, client, Monitor):  # noqa: N803
    await client.create(App("shop", api.namespace, spec={}))
    async with operator(Monitor).running(api.transport(), namespaces=[api.namespace], tries=2) as running:
        await running.wait_until_idle()
        app = await until(client, App, "shop", api.namespace, has_monitored(False))
        assert app.is_true("Ready")
        assert (running.failures, running.failing_watches, running.readiness_problems()) == ({}, {}, {})

        crd = await client.create(permissive(Monitor))
        await until(client, App, "shop", api.namespace, has_monitored(True))
        assert (await client.get(Monitor, "shop", api.namespace)).spec == {"of": "shop"}

        await client.delete(fl.CustomResourceDefinition, crd.name)
        await until(client, fl.CustomResourceDefinition, crd.name, None, gone)
        await until(client, App, "shop", api.namespace, has_monitored(False))
        assert (running.failures, running.failing_watches, running.readiness_problems()) == ({}, {}, {})


async def test_child_of_an_optional_kind_is_recreated_after_a_deletion(api, client, Monitor):  # noqa: N803
    """A kind that appears later is watched like any other."""
    await client.create(App("shop", api.namespace, spec={}))
    async with operator(Monitor).running(api.transport(), namespaces=[api.namespace]) as running:
        await running.wait_until_idle()
        await client.create(permissive(Monitor))
        await until(client, App, "shop", api.namespace, has_monitored(True))
        first = await client.get(Monitor, "shop", api.namespace)
        await client.delete(Monitor, "shop", api.namespace)
        await until(client, Monitor, "shop", api.namespace, lambda obj: obj is not None and obj.uid != first.uid)


async def test_kind_that_one_controller_needs_is_not_optional(api, client, Monitor):  # noqa: N803
    op = operator(Monitor)
    op.reconcile(Monitor)(lambda obj, ctx: None)
    async with op.running(api.transport(), namespaces=[api.namespace], tries=1) as running:
        async with asyncio.timeout(30):
            await running.services.watched.reader(App).wait_for_sync()
        assert any("Monitor" in scope for scope in running.readiness_problems())
