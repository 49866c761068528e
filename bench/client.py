"""What the client costs, as ratios to what nobody can do without: `python bench/client.py`.

Decoding a watch event is measured against orjson's full parse of the same bytes, requests against bare aiohttp on the
same loopback server (a process of its own).
"""

import asyncio
import importlib.util
import json
import multiprocessing
import statistics
import sys
import time

import aiohttp
import msgspec

from fairlead.api.builtin import ConfigMap
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.http import HttpTransport
from fairlead.client.watching import FrameSplitter, decode_frame

EVENTS, ROUNDS, REQUESTS, CONCURRENT = 2_000, 15, 1_000, 32
DISCOVERY = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}


def event(number):
    """A pod-like object of about 6 KiB, most of it short strings, as pods are."""
    container = {
        "name": "app",
        "image": "registry.example/app:1.2.3",
        "env": [{"name": f"SETTING_{i}", "value": f"value {i}"} for i in range(25)],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": f"v{i}", "mountPath": f"/var/lib/{i}", "readOnly": True} for i in range(10)],
    }
    owned = {f"f:field{i}": {"f:value": {}, "f:type": {}} for i in range(30)}
    condition = {
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "Because",
        "message": "all well",
    }
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(number),
            "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": owned}}],
        },
        "spec": {"containers": [container, container]},
        "status": {"conditions": [{"type": f"Type{i}", **condition} for i in range(4)]},
    }
    return json.dumps({"type": "MODIFIED", "object": obj}, separators=(",", ":")).encode() + b"\n"


def best(work):
    """The median of several rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def decoding():
    lines = [event(number) for number in range(EVENTS)]
    stream = b"".join(lines)
    chunks = [stream[i : i + 65536] for i in range(0, len(stream), 65536)]

    def ours():
        splitter = FrameSplitter()
        for chunk in chunks:
            for line in splitter.feed(chunk):
                decode_frame(line)

    def whole(loads):
        def parse():
            for line in lines:
                loads(line)  # and let go: keeping them would measure the garbage collector

        return parse

    spent = best(ours)
    print(f"a watch event of {len(lines[0]) / 1024:.1f} KiB, split and decoded: {spent / EVENTS * 1e6:.1f} µs")
    if importlib.util.find_spec("orjson"):
        import orjson

        print(f"  {spent / best(whole(orjson.loads)):.2f} × orjson's full parse (goal: at most 0.6)")
    else:
        print("  orjson is not installed, so there is no ratio to it: pip install orjson")
    print(f"  {spent / best(whole(msgspec.json.decode)):.2f} × msgspec's full parse")
    print(f"  {spent / best(whole(json.loads)):.2f} × json's full parse")


BODY = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}).encode()


def serve(sending):
    """A server that answers every GET alike, as fast as asyncio can."""

    class Trivial(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            for head in data.split(b"\r\n\r\n")[:-1]:
                path = head.split(b" ", 2)[1]
                body = json.dumps(DISCOVERY).encode() if b"/namespaces/" not in path else BODY
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                self.transport.write(head.encode() + body)

    async def main():
        server = await asyncio.get_running_loop().create_server(Trivial, "127.0.0.1", 0)
        sending.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def rate(get, concurrent):
    """Requests a second."""

    async def worker():
        for _ in range(REQUESTS // concurrent):
            await get()

    await worker()
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        await asyncio.gather(*[worker() for _ in range(concurrent)])
        rates.append(REQUESTS // concurrent * concurrent / (time.perf_counter() - start))
    return statistics.median(rates)


async def requests(url):
    transport = HttpTransport(Cluster(url))
    client = Client(transport, World())
    async with aiohttp.ClientSession() as session:

        async def bare():
            async with session.get(f"{url}/api/v1/namespaces/n/configmaps/a") as response:
                msgspec.json.decode(await response.read())

        for name, concurrent in (("one after another", 1), (f"{CONCURRENT} at once", CONCURRENT)):
            ours = await rate(lambda: client.get(ConfigMap, "a", "n"), concurrent)
            floor = await rate(bare, concurrent)
            print(f"GET, {name}: {ours:.0f} a second, {floor / ours:.2f} × the time of bare aiohttp")
    await transport.close()


def main():
    decoding()
    receiving, sending = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(sending,), daemon=True)
    server.start()
    try:
        asyncio.run(requests(f"http://127.0.0.1:{receiving.recv()}"))
    finally:
        server.kill()
        server.join()


if __name__ == "__main__":
    sys.exit(main())
