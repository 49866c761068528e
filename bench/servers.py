"""Measure both servers with the same clients: `python bench/servers.py [--quick]`.

The program measures the start-up, writes by verb over 1 and 16 connections with the server's CPU time, the latency from
a write to its watch event, a list of 10,000 objects, and the memory. Only one server runs at a time. The clients are
raw
connections, because a client library would distort the result. See also bench/wrk.py and bench/many.py.
"""

import argparse
import json
import statistics
import time
from contextlib import ExitStack

from many import MAPS, Connection, config_map, measure_list
from support.server_pair import Clock, RunningServer, embedded

from fairlead.testing.real import VERSION, RealServer, missing
from support import recording

VERBS = {
    "create": ("POST", "application/json", ""),
    "update": ("PUT", "application/json", "/{name}"),
    "merge patch": ("PATCH", "application/merge-patch+json", "/{name}"),
    "apply": ("PATCH", "application/apply-patch+yaml", "/{name}?fieldManager=bench&force=true"),
    "delete": ("DELETE", "application/json", "/{name}"),
}


def body(verb, index, round_number):
    obj = json.loads(config_map(index))
    obj["data"]["turn"] = f"{verb} {round_number}"
    if verb == "merge patch":
        return {"data": {"turn": obj["data"]["turn"]}}
    return obj | {"apiVersion": "v1", "kind": "ConfigMap"} if verb != "delete" else {}


def write(connections, verb, indexes, round_number):
    """Send one write per object over all connections concurrently. Return the seconds it took."""
    method, media, path = VERBS[verb]
    requests = [
        (MAPS + path.format(name=f"c{n:06}"), json.dumps(body(verb, n, round_number)).encode()) for n in indexes
    ]
    used_connections, started_at = [], time.perf_counter()
    for full_path, content in requests:
        connection = connections[len(used_connections) % len(connections)]
        if len(used_connections) >= len(connections):
            connection.answer()
        connection.send(method, full_path, content, media)
        used_connections.append(connection)
    for connection in used_connections[-len(connections) :]:
        connection.answer()
    return time.perf_counter() - started_at


def measure_rates(running_server, writes):
    """Return the writes per second of each verb, and the server's CPU milliseconds per write."""
    figures, clock = {}, Clock(*running_server.pids)
    for width in (1, 16):
        connections = [Connection(running_server) for _ in range(width)]
        for verb in VERBS:
            cpu_seconds = clock.cpu()
            figures[f"{verb}, {width} connection{'s' * (width > 1)}"] = {
                "a second": writes / write(connections, verb, range(writes), width),
                "server CPU ms": (clock.cpu() - cpu_seconds) / writes * 1e3,
            }
    return figures


def measure_latency(running_server, events):
    """Return the milliseconds from sending a write to receiving its event."""
    writer, watcher, durations = Connection(running_server), Connection(running_server), []
    write([writer], "create", [0], 0)
    version = json.loads(running_server.send("GET", MAPS))["metadata"]["resourceVersion"]
    watcher.send("GET", f"{MAPS}?watch=1&resourceVersion={version}")
    watcher.until(b"\r\n\r\n")
    for round_number in range(events):
        started_at = time.perf_counter()
        content = json.dumps(body("merge patch", 0, round_number)).encode()
        writer.send("PATCH", f"{MAPS}/c000000", content, VERBS["merge patch"][1])
        watcher.until(b"}\n")
        durations.append((time.perf_counter() - started_at) * 1e3)
        writer.answer()
    write([writer], "delete", [0], 0)
    percentiles = statistics.quantiles(durations, n=100)
    return {"p50": percentiles[49], "p99": percentiles[98]}


def measured(running_server, objects, writes, events):
    running_server.send("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    clock, figures = Clock(*running_server.pids), {"memory at rest MB": running_server.memory()}
    figures["writes"] = measure_rates(running_server, writes)
    figures["write to event ms"] = measure_latency(running_server, events)
    write([Connection(running_server) for _ in range(16)], "create", range(objects), 0)
    cpu_seconds = clock.cpu()
    seconds, listed_count = measure_list(running_server)
    assert listed_count == objects, listed_count
    return figures | {
        f"list of {objects:,} s": seconds,
        f"list of {objects:,} CPU s": clock.cpu() - cpu_seconds,
        f"memory with {objects:,} MB": running_server.memory(),
    }


def measure_start(start, times):
    """Return the seconds of the fastest of several starts, and the server of the last start, which keeps running."""
    durations = []
    for round_number in range(times):
        stack, started_at = ExitStack(), time.perf_counter()
        server = stack.enter_context(start())
        durations.append(time.perf_counter() - started_at)
        if round_number < times - 1:
            stack.close()
    return min(durations), server, stack


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="see that it works: a twentieth of everything")
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    options = parser.parse_args()
    objects, writes, events, times = (500, 32, 15, 1) if options.quick else (10_000, 640, 300, 3)
    reason = missing()
    if reason:
        print(f"the real pair is left out: {reason}")
    for name, start in {"embedded": embedded, **({} if reason else {"real": RealServer})}.items():
        seconds_to_ready, server, stack = measure_start(start, times)
        with stack:
            running_server = server if name == "embedded" else RunningServer.of(server)
            figures = {"ready s": seconds_to_ready, **measured(running_server, objects, writes, events)}
        print(f"{name}\n{json.dumps(figures, indent=1)}", flush=True)
        if options.save:
            recording.save("servers", {"objects": objects, "version": VERSION, "rows": {name: figures}})


if __name__ == "__main__":
    main()
