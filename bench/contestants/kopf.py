"""kopf: an event handler, which keeps no objects. The first list is complete when it has seen `expected` objects."""

import asyncio

import kopf


class Contestant:
    KEEPS = "nothing"

    async def start(self, url, on_event):
        registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
        settings.posting.enabled = False
        self.seen, first_list, self.stop = 0, asyncio.Event(), asyncio.Event()

        @kopf.on.login(registry=registry)
        async def login(**_):
            return kopf.ConnectionInfo(server=url)

        @kopf.on.event("pods", registry=registry)
        async def event(event, body, **_):
            if event["type"] is None:
                self.seen += 1
                if self.seen == self.expected:
                    first_list.set()
            else:
                on_event(body)

        self.task = asyncio.create_task(
            kopf.operator(registry=registry, settings=settings, clusterwide=True, standalone=True, stop_flag=self.stop)
        )
        await first_list.wait()

    def sent(self, body):
        return body.metadata.annotations["sent"]

    def cached_count(self):
        return self.seen

    async def close(self):
        self.stop.set()
        await self.task
