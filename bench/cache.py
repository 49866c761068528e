"""The cache beside a floor that only keeps bytes: `python bench/cache.py [--objects N] [--events N]`.

A feeder process plays an API server over loopback (initial events, then MODIFIED events, all rendered beforehand or
nearly so). Each contestant runs in a process of its own:

    floor      aiohttp and msgspec: splits frames, looks at name and version, keeps the bytes in a dict
    fairlead   client, reflector, store, one handler
    no-op      the same, with the queue behind it: each event wakes its key, whose turn finds nothing to do
    pages      fairlead on a server that offers no initial events

Trust the ratios within one run, not the absolutes.
"""

import argparse
import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import ClassVar

NAMESPACES = 20
LATENCY_EVENTS, LATENCY_RATE = 1_000, 200


def pod(number):
    """About 6 KiB, a quarter of it managedFields, as a real server sends it."""
    containers = [
        {
            "name": f"container-{c}",
            "image": f"registry.example.com/team/service-{c}:v1.2.{number % 50}",
            "env": [{"name": f"SETTING_{e}", "value": f"value of setting {e} of pod {number}"} for e in range(15)],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m"}},
            "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/serviceaccount"}],
        }
        for c in range(3)
    ]
    fields = {
        f"f:field{f}": {".": {}, f'k:{{"name":"SETTING_{f}"}}': {".": {}, "f:name": {}, "f:value": {}}}
        for f in range(18)
    }
    managed = {
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
            "managedFields": [managed],
        },
        "spec": {"containers": containers, "nodeName": f"node-{number % 50}", "serviceAccountName": "default"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]},
    }  # fmt: skip


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


# The feeder


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
            head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            asyncio.get_running_loop().create_task(self.answer(head.split(b" ", 2)[1].decode()))

    def send(self, status, body):
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def chunk(self, data):
        self.transport.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def answer(self, path):
        path, _, query = path.partition("?")
        options = dict(part.split("=", 1) for part in query.split("&") if part)
        if path == "/api":
            resource = {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "verbs": []}
            version = {"version": "v1", "resources": [resource]}
            self.send("200 OK", compact({"kind": "APIGroupDiscoveryList", "items": [{"versions": [version]}]}))
        elif path == "/events":
            self.send("200 OK", b"{}")
            if options.get("rate"):
                await self.trickle(int(options["count"]), float(options["rate"]))
            else:
                await self.flood(int(options["count"]))
        elif "watch" not in options:
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
        part = self.templates[start : start + limit] if limit else self.templates
        meta = {"resourceVersion": str(Feeder.version)}
        if limit and start + limit < len(self.templates):
            meta["continue"] = str(start + limit)
        items = b",".join(b"{" + before + b"1" + after for before, after in part)
        self.send(
            "200 OK", b'{"kind":"PodList","apiVersion":"v1","metadata":' + compact(meta) + b',"items":[' + items + b"]}"
        )

    async def frames(self, kind, numbers):
        head, batch, size = b'{"type":"' + kind + b'","object":{"kind":"Pod","apiVersion":"v1",', [], 0
        for number in numbers:
            before, after = self.templates[number % len(self.templates)]
            Feeder.version += 1
            batch += [head, before, str(Feeder.version).encode(), after, b"}\n"]
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
                obj["sent"] = time.monotonic()
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


# The contestants


class Floor:
    """Bytes in a dict: nothing resumes, nothing is indexed, nobody is told."""

    def __init__(self, port):
        self.port, self.objects, self.handler, self.synced = port, {}, None, asyncio.Event()

    async def __aenter__(self):
        import aiohttp

        self.session = aiohttp.ClientSession(read_bufsize=2**20)
        self.task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *error):
        self.task.cancel()
        await self.session.close()

    async def run(self):
        import msgspec

        class Event(msgspec.Struct):
            type: str
            object: msgspec.Raw

        class Meta(msgspec.Struct):
            name: str = ""
            namespace: str = ""
            resourceVersion: str = ""  # noqa: N815

        class Head(msgspec.Struct):
            metadata: Meta

        event, head = msgspec.json.Decoder(Event).decode, msgspec.json.Decoder(Head).decode
        url = f"http://127.0.0.1:{self.port}/api/v1/pods?watch=true&sendInitialEvents=true"
        async with self.session.get(url, timeout=aiohttp_forever()) as response:
            rest = b""
            while chunk := await response.content.readany():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if not line:
                        continue
                    told = event(line)
                    raw = bytes(told.object)
                    meta = head(raw).metadata
                    if told.type == "BOOKMARK":
                        self.synced.set()
                        continue
                    self.objects[meta.namespace, meta.name] = raw
                    if self.handler:
                        self.handler(raw)

    def subscribe(self, handler):
        self.handler = handler

    def held(self):
        return sum(map(len, self.objects.values())), len(self.objects)


def aiohttp_forever():
    import aiohttp

    return aiohttp.ClientTimeout(total=None)


class Fairlead:
    def __init__(self, port, labels=None):
        from fairlead.api.builtin import Pod
        from fairlead.api.world import World
        from fairlead.cache import Cache
        from fairlead.client.client import Client
        from fairlead.client.http import Cluster, HttpTransport

        self.transport, world = HttpTransport(Cluster(f"http://127.0.0.1:{port}")), World()
        self.cache = Cache(Client(self.transport, world), world, field_managers=["bench"])
        self.view = self.cache.watch(Pod, labels=labels)

    async def __aenter__(self):
        await self.cache.__aenter__()
        self.synced = self.view._informers[0].synced  # noqa: SLF001
        return self

    async def __aexit__(self, *error):
        await self.cache.__aexit__(*error)
        await self.transport.close()

    def subscribe(self, handler):
        self.view.subscribe(lambda change: None if change.initial else handler(change))

    def held(self):
        entries = [entry for _, entry in self.view._informers[0].store.items()]  # noqa: SLF001
        return sum(len(entry.raw) for entry in entries), len(entries)


def rss():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def contest(name, port, objects, events):
    import aiohttp

    result = {}
    async with aiohttp.ClientSession() as control:

        async def ask(count, rate=""):
            async with control.get(f"http://127.0.0.1:{port}/events?count={count}&rate={rate}") as response:
                await response.read()

        contestant = Floor(port) if name == "floor" else Fairlead(port, "pages" if name == "pages" else None)
        import fairlead.cache  # so that all begin with the same memory
        import fairlead.client.http  # noqa: F401

        if name == "trace":
            tracemalloc.start()
        gc.collect()
        before, started, used = rss(), time.perf_counter(), time.process_time()
        async with contestant:
            await contestant.synced.wait()
            result["sync s"] = time.perf_counter() - started
            result["sync CPU s"] = time.process_time() - used
            gc.collect()
            held, count = contestant.held()
            assert count == objects, (count, objects)
            result["JSON held MB"] = held / 1e6
            if name == "trace":
                return {"overhead B": (tracemalloc.get_traced_memory()[0] - held) / count}
            result["steady MB"] = (rss() - before) / 1e6
            result["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 - before / 1e6
            done, seen = asyncio.Event(), 0
            finish = await no_op(contestant) if name == "no-op" else None

            def handler(change):
                nonlocal seen
                seen += 1
                if finish:
                    finish(change, seen)
                if seen == events:
                    done.set()

            contestant.subscribe(handler)
            started, used = time.perf_counter(), time.process_time()
            await ask(events)
            await done.wait()
            result["events/s"] = events / (time.perf_counter() - started)
            result["event CPU µs"] = (time.process_time() - used) / events * 1e6
            if name in ("floor", "fairlead"):
                result.update(await latency(contestant, ask))
    return result


async def no_op(contestant):
    """Each event wakes a key; a worker looks which version is there, without decoding it, and notes it."""
    from fairlead.api.world import World
    from fairlead.queue import Queue

    queue, known = Queue(World()), {}

    async def worker():
        while True:
            key = await queue.get()
            found = contestant.view.look(key[1], key[0])
            known[key] = found.uid, found.version
            queue.done(key)

    contestant.workers = [asyncio.create_task(worker()) for _ in range(8)]
    return lambda change, seen: queue.add((change.namespace, change.name))


async def latency(contestant, ask):
    times, seen = [], asyncio.Event()

    def handler(change):
        now = time.monotonic()
        raw = change if isinstance(change, bytes) else change.new._entry.raw  # noqa: SLF001
        times.append(now - json.loads(raw)["sent"])
        if len(times) == LATENCY_EVENTS:
            seen.set()

    if isinstance(contestant, Floor):
        contestant.handler = handler
    else:
        informer = contestant.view._informers[0]  # noqa: SLF001
        informer._handlers = [handler]  # noqa: SLF001
    await ask(LATENCY_EVENTS, LATENCY_RATE)
    await seen.wait()
    cut = statistics.quantiles(times, n=100)
    return {"p50 µs": cut[49] * 1e6, "p99 µs": cut[98] * 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--only", help="run one contestant in this process, for a profiler")
    parser.add_argument("--feed", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        asyncio.run(feed(options.objects))
        return
    counts = ["--objects", str(options.objects), "--events", str(options.events)]
    if options.port:
        print(json.dumps(asyncio.run(contest(options.only, options.port, options.objects, options.events))))
        return
    feeder = subprocess.Popen([sys.executable, __file__, "--feed", *counts], stdout=subprocess.PIPE, text=True)
    try:
        port = feeder.stdout.readline().strip()
        if options.only:
            print(json.dumps(asyncio.run(contest(options.only, int(port), options.objects, options.events)), indent=1))
            return
        results = {}
        for name in ("floor", "fairlead", "no-op", "pages", "trace"):
            command = [sys.executable, __file__, "--only", name, "--port", port, *counts]
            results[name] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    finally:
        feeder.terminate()
        feeder.wait()
    report(options, results)


def report(options, results):
    print(f"{options.objects} objects of {len(compact(pod(1))) / 1024:.1f} KiB, {options.events} events\n")
    rows = dict.fromkeys(row for result in results.values() for row in result)
    shown = [name for name in results if name != "trace"]
    print(f"{'':16}" + "".join(f"{name:>12}" for name in shown) + f"{'of floor':>12}")
    for row in rows:
        if row == "overhead B":
            continue
        values = [results[name].get(row) for name in shown]
        ratio = f"{values[1] / values[0]:11.2f}×" if values[0] and values[1] else ""
        print(f"{row:16}" + "".join(f"{'' if v is None else f'{v:,.2f}':>12}" for v in values) + ratio)
    ours = results["fairlead"]
    print(f"\nsteady memory is {ours['steady MB'] / ours['JSON held MB']:.2f}× the JSON held; ", end="")
    print(f"an object costs {results['trace']['overhead B']:.0f} bytes beside its JSON")


if __name__ == "__main__":
    main()
