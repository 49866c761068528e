"""Compare a request of fairlead's client with one of bare aiohttp: `python bench/client.py [--requests N]`.

Both use the same loopback server, which runs in its own process. bench/cache.py measures the cost of a watch.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time

import aiohttp
import msgspec

from fairlead.api.builtin import ConfigMap
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.http import HttpTransport

CONCURRENT = 32
DISCOVERY = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
BODY = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}).encode()


def serve(sending):
    """Serve the same response to every GET."""

    class Trivial(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            for request_head in data.split(b"\r\n\r\n")[:-1]:
                path = request_head.split(b" ", 2)[1]
                body = json.dumps(DISCOVERY).encode() if b"/namespaces/" not in path else BODY
                request_head = (
                    f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                )
                self.transport.write(request_head.encode() + body)

    async def main():
        server = await asyncio.get_running_loop().create_server(Trivial, "127.0.0.1", 0)
        sending.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def rate(get, concurrent, count):
    """Return the number of requests per second."""

    async def worker():
        for _ in range(count // concurrent):
            await get()

    await worker()
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        await asyncio.gather(*[worker() for _ in range(concurrent)])
        rates.append(count // concurrent * concurrent / (time.perf_counter() - start))
    return statistics.median(rates)


async def requests(url, count):
    transport = HttpTransport(Cluster(url))
    client = Client(transport, World())
    async with aiohttp.ClientSession() as session:

        async def request_with_aiohttp():
            async with session.get(f"{url}/api/v1/namespaces/n/configmaps/a") as response:
                msgspec.json.decode(await response.read())

        for name, concurrent in (("one after another", 1), (f"{CONCURRENT} at once", CONCURRENT)):
            fairlead_rate = await rate(lambda: client.get(ConfigMap, "a", "n"), concurrent, count)
            floor = await rate(request_with_aiohttp, concurrent, count)
            print(f"GET, {name}: {fairlead_rate:.0f} a second, {floor / fairlead_rate:.2f} × the time of bare aiohttp")
    await transport.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000)
    count = parser.parse_args().requests
    receiving, sending = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(sending,), daemon=True)
    server.start()
    try:
        asyncio.run(requests(f"http://127.0.0.1:{receiving.recv()}", count))
    finally:
        server.kill()
        server.join()


if __name__ == "__main__":
    main()
