"""A fake API server that sends prepared Pods as fast as a client reads them.

`python bench/feeder.py OBJECTS` prints its port. It supports what the clients of bench/cache.py request: discovery in
both formats, lists with and without pages, watches with and without initial events. GET /events?count=N sends N
MODIFIED events to every watch. With rate=R it sends R events a second, each with its time in an annotation.
"""

import asyncio
import json
import sys
import time
from typing import ClassVar

NAMESPACES = 20


def pod(number):
    """Return a Pod of about 6 KiB, a quarter of which is managedFields, as a real server sends it."""
    containers = [
        {
            "name": f"container-{c}",
            "image": f"registry.example.com/team/service-{c}:v1.2.{number % 50}",
            "env": [{"name": f"SETTING_{e}", "value": f"value of setting {e} of pod {number}"} for e in range(16)],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m"}},
            "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/serviceaccount"}],
        }
        for c in range(3)
    ]
    fields = {
        f"f:field{f}": {".": {}, f'k:{{"name":"SETTING_{f}"}}': {".": {}, "f:name": {}, "f:value": {}}}
        for f in range(18)
    }
    managed_fields_entry = {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"rs-{number // 10}",
        "uid": f"owner-{number // 10:08d}",
    }
    return {
        "metadata": {
            "name": f"service-{number:06d}-abcde",
            "namespace": f"namespace-{number % NAMESPACES}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": "VERSION",
            "labels": {"app": f"service-{number % 100}", "tier": "web"},
            "ownerReferences": [{**owner, "controller": True}],
            "managedFields": [managed_fields_entry],
        },
        "spec": {"containers": containers, "nodeName": f"node-{number % 50}", "serviceAccountName": "default"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]},
    }  # fmt: skip


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


VERBS = ["get", "list", "watch", "patch", "create", "update", "delete"]
AGGREGATED = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "verbs": VERBS}
                    ],
                }
            ]
        }
    ],
}
DISCOVERY = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": VERBS},
            {
                "name": "namespaces",
                "singularName": "namespace",
                "namespaced": False,
                "kind": "Namespace",
                "verbs": VERBS,
            },
        ],
    },
}


class Feeder(asyncio.Protocol):
    templates: ClassVar[list] = []  # (before the version, after it), without the type
    watchers: ClassVar[list] = []
    version = 0

    def connection_made(self, transport):
        self.transport, self.resumed = transport, asyncio.Event()
        self.resumed.set()
        self.buffer = b""

    def pause_writing(self):
        self.resumed.clear()

    def resume_writing(self):
        self.resumed.set()

    def connection_lost(self, error):
        self.resumed.set()
        if self in Feeder.watchers:
            Feeder.watchers.remove(self)

    def data_received(self, data):
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            request_head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            is_aggregated = b"apidiscovery.k8s.io" in request_head
            asyncio.get_running_loop().create_task(self.answer(request_head.split(b" ", 2)[1].decode(), is_aggregated))

    def send(self, status, body):
        response_head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(response_head.encode() + body)

    def chunk(self, chunk_bytes):
        self.transport.write(f"{len(chunk_bytes):x}\r\n".encode() + chunk_bytes + b"\r\n")

    async def answer(self, path, aggregated):
        path, _, query = path.partition("?")
        path = path.rstrip("/")
        options = dict(pair.split("=", 1) for pair in query.split("&") if pair)
        if path in DISCOVERY:
            self.send("200 OK", compact(AGGREGATED if aggregated and path == "/api" else DISCOVERY[path]))
        elif path == "/watchers":
            self.send("200 OK", compact({"count": len(self.watchers)}))
        elif path == "/events":
            self.send("200 OK", b"{}")
            if options.get("rate"):
                await self.trickle(int(options["count"]), float(options["rate"]))
            else:
                await self.flood(int(options["count"]))
        elif path != "/api/v1/pods":
            self.send("404 Not Found", compact({"kind": "Status", "code": 404, "reason": "NotFound", "message": path}))
        elif options.get("watch", "").lower() not in ("true", "1"):
            self.page(int(options.get("limit") or 0), int(options.get("continue") or 0))
        elif options.get("sendInitialEvents") == "true" and options.get("labelSelector") == "pages":
            self.send("422 Unprocessable Entity", compact({"kind": "Status", "code": 422, "reason": "Invalid"}))
        else:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            if options.get("sendInitialEvents") == "true":
                await self.frames(b"ADDED", range(len(self.templates)))
                annotations = {"k8s.io/initial-events-end": "true"}
                self.chunk(self.bookmark(annotations))
            Feeder.watchers.append(self)

    def bookmark(self, annotations):
        meta = {"resourceVersion": str(Feeder.version), "annotations": annotations}
        return compact({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": meta}}) + b"\n"

    def page(self, limit, start):
        page_templates = self.templates[start : start + limit] if limit else self.templates
        meta = {"resourceVersion": str(Feeder.version)}
        if limit and start + limit < len(self.templates):
            meta |= {"continue": str(start + limit), "remainingItemCount": len(self.templates) - start - limit}
        items = b",".join(b"{" + before + b"1" + after for before, after in page_templates)
        self.send(
            "200 OK", b'{"kind":"PodList","apiVersion":"v1","metadata":' + compact(meta) + b',"items":[' + items + b"]}"
        )

    async def frames(self, kind, numbers):
        frame_start, batch, size = b'{"type":"' + kind + b'","object":{"kind":"Pod","apiVersion":"v1",', [], 0
        for number in numbers:
            before, after = self.templates[number % len(self.templates)]
            Feeder.version += 1
            batch += [frame_start, before, str(Feeder.version).encode(), after, b"}\n"]
            size += len(before) + len(after)
            if size > 2**18:
                self.chunk(b"".join(batch))
                batch, size = [], 0
                await self.resumed.wait()
        self.chunk(b"".join([*batch]) or b"\n")

    async def flood(self, count):
        await asyncio.gather(*(watcher.frames(b"MODIFIED", range(count)) for watcher in self.watchers))

    async def trickle(self, count, rate):
        start = time.monotonic()
        for number in range(count):
            await asyncio.sleep(max(0, start + number / rate - time.monotonic()))
            for watcher in self.watchers:
                Feeder.version += 1
                obj = pod(number)
                obj["metadata"]["resourceVersion"] = str(Feeder.version)
                obj["metadata"]["annotations"] = {"sent": str(time.monotonic())}
                watcher.chunk(
                    compact({"type": "MODIFIED", "object": {"kind": "Pod", "apiVersion": "v1", **obj}}) + b"\n"
                )


async def feed(objects):
    for number in range(objects):
        before, after = compact(pod(number))[1:].split(b"VERSION")
        Feeder.templates.append((before, after))
    Feeder.version = 100
    server = await asyncio.get_running_loop().create_server(Feeder, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(feed(int(sys.argv[1])))
