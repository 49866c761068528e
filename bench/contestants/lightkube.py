"""lightkube has no cache: this program lists in pages and watches, into a dict."""

import asyncio

from lightkube import AsyncClient, KubeConfig
from lightkube.config.models import Cluster, User
from lightkube.resources.core_v1 import Pod


class Contestant:
    KEEPS = "structs"

    async def start(self, url, on_event):
        self.client, self.objects = AsyncClient(KubeConfig.from_one(cluster=Cluster(server=url), user=User())), {}
        first_list = self.client.list(Pod, namespace="*", chunk_size=500)
        async for pod in first_list:
            self.keep(pod)
        version = first_list.resourceVersion

        async def watch_pods():
            async for _, pod in self.client.watch(Pod, namespace="*", resource_version=version):
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
        await self.client.close()
