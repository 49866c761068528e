"""The SharedInformer of the official client, which runs its handlers in a thread of its own."""

import asyncio

from kubernetes import client
from kubernetes.informer import MODIFIED, SharedInformer


class Contestant:
    KEEPS = "models"

    async def start(self, url, on_event):
        api = client.CoreV1Api(client.ApiClient(client.Configuration(host=url)))
        self.informer = SharedInformer(api.list_pod_for_all_namespaces)
        self.informer.add_event_handler(MODIFIED, on_event)
        self.informer.start()
        while self.cached_count() < self.expected:  # noqa: ASYNC110 - another thread, which sets no event
            await asyncio.sleep(0.05)

    def sent(self, pod):
        return pod.metadata.annotations["sent"]

    def cached_count(self):
        return len(self.informer.cache.list_keys())

    async def close(self):
        self.informer.stop()
