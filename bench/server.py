"""Measure an apply on the embedded server, and its start-up: `python bench/server.py [--quick] [--profile]`.

Rates use CPU time, so that other load does not affect them. The program applies ConfigMaps with ten keys, then one
object with a growing keyed list. The cost must grow linearly with the list.
"""

import asyncio
import cProfile
import http.client
import json
import pstats
import resource
import statistics
import subprocess
import sys
import time

from support.server_pair import UNCHECKED

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server
from support import recording

QUICK = "--quick" in sys.argv
APPLIES, ROUNDS, STARTS = (200, 1, 2) if QUICK else (2_000, 3, 7)
APPLY = {"Content-Type": "application/apply-patch+yaml", "Authorization": "Bearer bench"}
KEYED = {1_000: 30}  # milliseconds at most, by items
CONFIG_MAP = "/api/v1/namespaces/bench/configmaps/a"


def config_map(number):
    data = {f"key-{i}": f"value {i}" for i in range(9)}
    metadata = {"name": "a", "labels": {"app": "bench"}}
    return json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data, "n": str(number)}}
    ).encode()


def deployment(items, number):
    variables = [{"name": f"VARIABLE_{i}", "value": str(number)} for i in range(items)]
    pod = {"containers": [{"name": "c", "image": "i", "env": variables}]}
    template = {"metadata": {"labels": {"app": "bench"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "bench"}}, "template": template}
    return json.dumps(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"d{items}"}, "spec": spec}
    ).encode()


async def measure_applies(transport, path, bodies):
    """Return the CPU seconds of these applies, sent one after another."""
    start = time.process_time()
    for body in bodies:
        query = {"fieldManager": "bench", "force": "true"}
        response = await transport.request(HttpRequest("PATCH", path, query=query, headers=APPLY, body=body))
        assert response.status in (200, 201), response.body
    return time.process_time() - start


async def main():
    """Return the measured costs of applies and their limits, by name."""
    transport = Server(World(), tokens=["bench"]).transport()
    json_headers = {**APPLY, "Content-Type": "application/json"}
    namespace = b'{"metadata": {"name": "bench"}}'
    await transport.request(HttpRequest("POST", "/api/v1/namespaces", headers=json_headers, body=namespace))
    await measure_applies(transport, CONFIG_MAP, [config_map(-n) for n in range(200)])
    bodies = [config_map(n) for n in range(APPLIES)]
    changing = min([await measure_applies(transport, CONFIG_MAP, bodies) for _ in range(ROUNDS)])
    unchanged = min([await measure_applies(transport, CONFIG_MAP, [bodies[-1]] * APPLIES) for _ in range(ROUNDS)])
    print(f"ten-key ConfigMap: {APPLIES / changing:,.0f} applies a second that change something (at least 2,500)")
    print(f"                   {APPLIES / unchanged:,.0f} that change nothing (at least 5,000)")
    figures = {
        "applies that change something, a second": (APPLIES / changing, 2_500),
        "applies that change nothing, a second": (APPLIES / unchanged, 5_000),
    }
    for items in (100, 1_000, 2_000):
        path = f"/apis/apps/v1/namespaces/bench/deployments/d{items}"
        spent = [await measure_applies(transport, path, [deployment(items, n)]) for n in range(1 + 2 * ROUNDS)]
        print(f"{items:5,} keyed items: {min(spent[1:]) * 1e3:5.1f} ms an apply that changes all of them")
        figures[f"an apply that changes {items:,} keyed items, ms"] = (min(spent[1:]) * 1e3, KEYED.get(items))
    if "--profile" in sys.argv:
        profile = cProfile.Profile()
        profile.enable()
        await measure_applies(transport, CONFIG_MAP, bodies)
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)
    return figures


def measure_start(code):
    """Return the milliseconds of the fastest of a few starts, each in a new process."""
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(ROUNDS)) * 1e3


def start_up():
    start_program = "s = time.perf_counter(); Server(World()); print(time.perf_counter() - s)"
    imports = "from fairlead.api.world import World; from fairlead.server.app import Server"
    inside = measure_start(f"import time; {imports}; {start_program}")
    print(f"ready in-process in {inside:.0f} ms (under 50)")
    times, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(STARTS):
        start = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-m", "fairlead", "serve"], stdout=subprocess.PIPE, text=True
        ) as process:
            check_readiness(process.stdout.readline().removeprefix("serving on https://").strip())
            times.append(time.perf_counter() - start)
            process.terminate()
            process.stdout.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / STARTS
    print(
        f"ready as a command in {min(times) * 1e3:.0f} ms (under 600; median of {STARTS}: "
        f"{statistics.median(times) * 1e3:.0f}), to the first answer of /readyz over HTTPS; "
        f"{spent * 1e3:.0f} ms of processor time, stopping included"
    )
    return {
        "ready in-process, ms": (inside, 50),
        "ready as a command, to the first answer of /readyz over HTTPS, ms": (min(times) * 1e3, 600),
        f"the same, median of {STARTS}, ms": (statistics.median(times) * 1e3, None),
        "processor time of that, stopping included, ms": (spent * 1e3, None),
    }


def check_readiness(host):
    """Request the readiness of a server."""
    connection = http.client.HTTPSConnection(host, context=UNCHECKED)
    connection.request("GET", "/readyz")
    assert connection.getresponse().status == 200
    connection.close()


if __name__ == "__main__":
    figures = asyncio.run(main()) | start_up()
    if "--save" in sys.argv:
        recording.save("server", {"rows": figures})
