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

from many import MAPS, Connection, config_map, listed
from support.server_pair import Clock, Served, embedded

from fairlead.testing.real import VERSION, RealServer, missing
from support import recording

VERBS = {
    "create": ("POST", "application/json", ""),
    "update": ("PUT", "application/json", "/{name}"),
    "merge patch": ("PATCH", "application/merge-patch+json", "/{name}"),
    "apply": ("PATCH", "application/apply-patch+yaml", "/{name}?fieldManager=bench&force=true"),
    "delete": ("DELETE", "application/json", "/{name}"),
}


def body(verb, index, turn):
    obj = json.loads(config_map(index))
    obj["data"]["turn"] = f"{verb} {turn}"
    if verb == "merge patch":
        return {"data": {"turn": obj["data"]["turn"]}}
    return obj | {"apiVersion": "v1", "kind": "ConfigMap"} if verb != "delete" else {}


def write(connections, verb, indexes, turn):
    """Send one write per object over all connections concurrently. Return the seconds it took."""
    method, media, path = VERBS[verb]
    made = [(MAPS + path.format(name=f"c{n:06}"), json.dumps(body(verb, n, turn)).encode()) for n in indexes]
    sent, started = [], time.perf_counter()
    for where, content in made:
        connection = connections[len(sent) % len(connections)]
        if len(sent) >= len(connections):
            connection.answer()
        connection.send(method, where, content, media)
        sent.append(connection)
    for connection in sent[-len(connections) :]:
        connection.answer()
    return time.perf_counter() - started


def rates(served, writes):
    """Return the writes per second of each verb, and the server's CPU milliseconds per write."""
    found, clock = {}, Clock(*served.pids)
    for width in (1, 16):
        connections = [Connection(served) for _ in range(width)]
        for verb in VERBS:
            used = clock.cpu()
            found[f"{verb}, {width} connection{'s' * (width > 1)}"] = {
                "a second": writes / write(connections, verb, range(writes), width),
                "server CPU ms": (clock.cpu() - used) / writes * 1e3,
            }
    return found


def latency(served, events):
    """Return the milliseconds from sending a write to receiving its event."""
    writer, watcher, took = Connection(served), Connection(served), []
    write([writer], "create", [0], 0)
    version = json.loads(served.send("GET", MAPS))["metadata"]["resourceVersion"]
    watcher.send("GET", f"{MAPS}?watch=1&resourceVersion={version}")
    watcher.until(b"\r\n\r\n")
    for turn in range(events):
        started = time.perf_counter()
        content = json.dumps(body("merge patch", 0, turn)).encode()
        writer.send("PATCH", f"{MAPS}/c000000", content, VERBS["merge patch"][1])
        watcher.until(b"}\n")
        took.append((time.perf_counter() - started) * 1e3)
        writer.answer()
    write([writer], "delete", [0], 0)
    cut = statistics.quantiles(took, n=100)
    return {"p50": cut[49], "p99": cut[98]}


def measured(served, objects, writes, events):
    served.send("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    clock, found = Clock(*served.pids), {"memory at rest MB": served.memory()}
    found["writes"] = rates(served, writes)
    found["write to event ms"] = latency(served, events)
    write([Connection(served) for _ in range(16)], "create", range(objects), 0)
    used = clock.cpu()
    seconds, seen = listed(served)
    assert seen == objects, seen
    return found | {
        f"list of {objects:,} s": seconds,
        f"list of {objects:,} CPU s": clock.cpu() - used,
        f"memory with {objects:,} MB": served.memory(),
    }


def started(start, times):
    """Return the seconds of the fastest of several starts, and the server of the last start, which keeps running."""
    took = []
    for turn in range(times):
        stack, begun = ExitStack(), time.perf_counter()
        server = stack.enter_context(start())
        took.append(time.perf_counter() - begun)
        if turn < times - 1:
            stack.close()
    return min(took), server, stack


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
        ready, server, stack = started(start, times)
        with stack:
            served = server if name == "embedded" else Served.of(server)
            found = {"ready s": ready, **measured(served, objects, writes, events)}
        print(f"{name}\n{json.dumps(found, indent=1)}", flush=True)
        if options.save:
            recording.save("servers", {"objects": objects, "version": VERSION, "rows": {name: found}})


if __name__ == "__main__":
    main()
