"""kr8s has no cache: this program lists in pages of a hundred and watches, into a dict."""

import asyncio

import kr8s


class Contestant:
    KEEPS = "boxes"

    async def start(self, url, on_event):
        self.api, self.objects = await kr8s.asyncio.api(url=url), {}
        async for pod in self.api.get("pods", namespace=kr8s.ALL):
            self.keep(pod)

        async def watch_pods():
            async for _, pod in self.api.watch("pods", namespace=kr8s.ALL):
                self.keep(pod)
                on_event(pod)

        self.task = asyncio.create_task(watch_pods())

    def keep(self, pod):
        self.objects[pod.namespace, pod.name] = pod

    def sent(self, pod):
        return pod.annotations["sent"]

    def cached_count(self):
        return len(self.objects)

    async def close(self):
        self.task.cancel()
