"""Measure the cost of --data: `python bench/state.py [--directory DIR] [--objects N]`.

The embedded server runs in this process. One writer and several concurrent writers create small ConfigMaps, in memory
and in a directory. Then the server restarts. `--directory` selects the disk. The program also prints the time of one
small write with fsync, which is the minimum cost of a commit. Compare ratios within one run, not absolute values.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server

MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = (1, 16, 128)


async def create(server, writers, count, prefix):
    """Return the writes per second, and the median and 99th percentile of a write in milliseconds."""
    api, indexes, durations = server.transport(), iter(range(count)), []

    async def write():
        for number in indexes:
            body = json.dumps({"metadata": {"name": f"{prefix}-{number}"}, "data": {"text": "x" * 200}}).encode()
            started_at = time.perf_counter()
            response = await api.request(HttpRequest("POST", MAPS, body=body))
            durations.append(time.perf_counter() - started_at)
            assert response.status == 201, response.body

    started_at = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    elapsed = time.perf_counter() - started_at
    return count / elapsed, statistics.median(durations) * 1e3, statistics.quantiles(durations, n=100)[98] * 1e3


def fsync(folder, rounds=200):
    """Return the milliseconds of one small write with fsync."""
    path = folder / "probe"
    durations = []
    with path.open("wb", buffering=0) as file:
        for _ in range(rounds):
            started_at = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            durations.append(time.perf_counter() - started_at)
    path.unlink()
    return statistics.median(durations) * 1e3


def main(directory, objects):
    with tempfile.TemporaryDirectory(prefix="fairlead-", dir=directory) as scratch:
        folder = Path(scratch)
        print(f"the disk: {fsync(folder):.2f} ms a write and fsync\n")
        print(f"{'writers':>8} {'':12} {'writes/s':>9} {'median ms':>10} {'99% ms':>8}")
        for writers in WRITERS:
            for name, options in (("memory", {}), ("directory", {"data": folder / f"d{writers}"})):
                server = Server(**options)
                asyncio.run(create(server, writers, 200, "warm"))
                rate, median, percentile_99 = asyncio.run(create(server, writers, 2000, "bench"))
                server.close()
                print(f"{writers:8} {name:12} {rate:9.0f} {median:10.2f} {percentile_99:8.2f}")
        data_directory = folder / "restart"
        server = Server(data=data_directory)
        asyncio.run(create(server, 128, objects, "kept"))
        server.close()
        size = sum(path.stat().st_size for path in data_directory.iterdir()) / 1e6
        started_at = time.perf_counter()
        Server(data=data_directory).close()
        print(
            f"\na restart with {objects} objects: {time.perf_counter() - started_at:.2f} s, {size:.1f} MB on the disk"
        )
        started_at = time.perf_counter()
        Server()
        print(f"a start in memory: {time.perf_counter() - started_at:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--objects", type=int, default=10_000)
    arguments = parser.parse_args()
    main(arguments.directory, arguments.objects)
