"""The test environment of the HTTPProxy tests: a namespace, the operator and the gateway controller."""

from contextlib import AsyncExitStack

import pytest
from waiting import until, until_condition

from fairlead.api.errors import NotFound
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead_operators.httpproxy import demo, gateway_controller
from fairlead_operators.httpproxy.controller import op
from fairlead_operators.httpproxy.kinds import HTTPProxy


class Environment:
    """A namespace on a server with the CRDs of the HTTPProxy operator, and methods that start it and wait."""

    def __init__(self, api, stack):
        self.api, self.stack = api, stack
        self.namespace = api.namespace
        self.client = Client(api.transport(), World(), user_agent="test")

    async def operator(self):
        running = op.running(self.api.transport(), World(), namespaces=[self.namespace])
        return await self.stack.enter_async_context(running)

    async def gateway(self, *, user_agent="gateway", **options):
        client = Client(self.api.transport(), World(), user_agent=user_agent)
        running = gateway_controller.running(client, World(), namespace=self.namespace, **options)
        return await self.stack.enter_async_context(running)

    async def create(self, name="web", **spec):
        return await self.client.create(demo.make_proxy(name, self.namespace, **spec))

    async def change(self, name, **spec):
        patch = {"spec": spec}
        await self.client.patch(HTTPProxy, name, self.namespace, patch, type=PatchType.MERGE)

    async def connector(self, name="tunnel", *, is_ready):
        await demo.report_connector(self.client, name, self.namespace, is_ready=is_ready)

    async def get(self, kind, name="web"):
        try:
            return await self.client.get(kind, name, self.namespace)
        except NotFound:
            return None

    async def wait_until(self, kind, name, condition):
        return await until(self.client, kind, name, self.namespace, condition)

    async def condition(self, type_, status, reason, name="web"):
        return await until_condition(self.client, HTTPProxy, name, self.namespace, type_, status, reason)


@pytest.fixture
async def env(api):
    """Return an environment without a running operator."""
    async with AsyncExitStack() as stack:
        environment = Environment(api, stack)
        await demo.install(environment.client)
        yield environment


@pytest.fixture
async def running_env(env):
    """Return an environment with a running operator."""
    await env.operator()
    return env
