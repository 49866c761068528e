"""A whole fairlead operator whose reconcile function has nothing to do."""

import fairlead as fl
from fairlead.client.http import Cluster, HttpTransport


class Contestant:
    KEEPS = "bytes"

    async def start(self, url, on_event):
        op, self.transport = fl.Operator("bench"), HttpTransport(Cluster(url))

        @op.reconcile(fl.Pod, ready=None)
        async def reconcile(obj, ctx):
            on_event(obj)

        self.running = op.running(self.transport)
        self.entered = await self.running.__aenter__()
        await self.entered.wait_until_idle()

    def sent(self, obj):
        return obj["metadata"]["annotations"]["sent"]

    def cached_count(self):
        return None

    async def close(self):
        await self.running.__aexit__(None, None, None)
        await self.transport.close()
