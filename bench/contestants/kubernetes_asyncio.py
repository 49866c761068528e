"""kubernetes-asyncio has no cache: this program lists in pages and watches, into a dict."""

import asyncio

from kubernetes_asyncio import client, watch


class Contestant:
    KEEPS = "models"

    async def start(self, url, on_event):
        self.api, self.objects = client.ApiClient(client.Configuration(host=url)), {}
        pods, token = client.CoreV1Api(self.api), None
        while True:
            page = await pods.list_pod_for_all_namespaces(limit=500, _continue=token)
            for pod in page.items:
                self.keep(pod)
            token = page.metadata._continue  # noqa: SLF001 - the model's own name for it
            if not token:
                break
        version = page.metadata.resource_version

        async def watch_pods():
            stream = watch.Watch().stream(pods.list_pod_for_all_namespaces, resource_version=version)
            async for event in stream:
                self.keep(event["object"])
                on_event(event["object"])

        self.task = asyncio.create_task(watch_pods())

    def keep(self, pod):
        self.objects[pod.metadata.namespace, pod.metadata.name] = pod

    def sent(self, pod):
        return pod.metadata.annotations["sent"]

    def cached_count(self):
        return len(self.objects)

    async def close(self):
        self.task.cancel()
        await self.api.close()
