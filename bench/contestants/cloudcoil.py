"""cloudcoil: a list in pages and a watch with its client, into a dict.

The informer of version 0.6, the last one for Python before 3.14, keeps only the first page of a list.
"""

import asyncio

from cloudcoil.client import Config
from cloudcoil.models.kubernetes.core.v1 import Pod


class Contestant:
    KEEPS = "models"

    async def start(self, url, on_event):
        self.objects = {}
        Config(server=url).__enter__()  # for good: the watch looks for it too
        first_list = await Pod.async_list(all_namespaces=True, limit=500)
        version = first_list.metadata.resource_version
        async for pod in first_list:
            self.keep(pod)

        async def watch_pods():
            async for _, pod in await Pod.async_watch(all_namespaces=True, resource_version=version):
                self.keep(pod)
                on_event(pod)

        self.task = asyncio.create_task(watch_pods())

    def keep(self, pod):
        self.objects[pod.metadata.namespace, pod.metadata.name] = pod

    def sent(self, pod):
        return pod.metadata.annotations["sent"]

    def cached_count(self):
        return len(self.objects)

    async def close(self):
        self.task.cancel()
