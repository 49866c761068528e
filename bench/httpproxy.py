"""The httpproxy system on a real API server, old way against new, in real time.

python bench/httpproxy.py [how many proxies, ...]
"""

import asyncio
import sys

from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.credentials import Static
from fairlead.client.http import HttpTransport
from fairlead.operators.httpproxy import bed
from fairlead.report import tables
from fairlead.testing import real

COLUMNS = ["", "409s", "requests", "median", "last", "idle writes"]


async def race(server, way, count, namespace):
    opened = []

    def door():
        opened.append(HttpTransport(Cluster(server.url, server.ca_data), Static.token(server.token)))
        return opened[-1]

    try:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await Client(door(), World()).create(body)
        return await bed.race(door, World(), way, proxies=count, namespace=namespace, idle=10)
    finally:
        for transport in opened:
            await transport.close()


def main():
    if reason := real.missing():
        print(reason)
        return
    with real.RealServer() as server:
        for count in map(int, sys.argv[1:] or ["1", "20"]):
            ways = {"CreateOrUpdate": bed.theirs, "fairlead": bed.ours}
            outcomes = {
                name: asyncio.run(race(server, way, count, f"{name.lower()}-{count}")) for name, way in ways.items()
            }
            tables.show(f"{count} at once, real API server {real.VERSION}", COLUMNS, bed.summary(outcomes))
    tables.notes("As fairlead demo httpproxy; idle writes: in the ten seconds after.")


if __name__ == "__main__":
    main()
