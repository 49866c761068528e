"""fairlead's cache: a client, a reflector, a store and one handler."""

from fairlead.api.builtin import Pod
from fairlead.api.world import World
from fairlead.cache import Cache
from fairlead.client.client import Client
from fairlead.client.http import Cluster, HttpTransport


class Contestant:
    KEEPS = "bytes"
    labels: str | None = None

    async def start(self, url, on_event):
        world = World()
        self.transport = HttpTransport(Cluster(url))
        self.cache = Cache(Client(self.transport, world), world, field_managers=["bench"])
        self.view = self.cache.watch(Pod, labels=self.labels)
        self.view.subscribe(lambda change: None if change.initial else on_event(change))
        await self.cache.__aenter__()
        await self.view.wait_for_sync()

    def sent(self, change):
        return change.new.object()["metadata"]["annotations"]["sent"]

    def cached_count(self):
        return len(self.entries())

    def json_bytes(self):
        return sum(len(entry.raw) for entry in self.entries())

    def entries(self):
        return [entry for _, entry in self.view._informers[0].store.items()]  # noqa: SLF001

    async def close(self):
        await self.cache.__aexit__(None, None, None)
        await self.transport.close()
