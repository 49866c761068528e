"""Measure fairlead's cache, a minimal cache and other clients: `python bench/cache.py`.

bench/feeder.py plays the API server. Each client (bench/contestants) runs in a process of its own. Other clients run in
the environment of `make bench-peers`, if it exists. The program measures the first list, the rate of MODIFIED events,
the latency from sending an event to its handler at 200 events a second, and the import. Compare ratios within one run,
not absolute values.
"""

import argparse
import asyncio
import contextlib
import gc
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

from feeder import compact, pod

from support import recording

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv/peers/bin/python"
OURS = ("floor", "ours", "ours_operator", "ours_pages")
PEERS = ("lightkube", "cloudcoil", "kubernetes", "kubernetes_asyncio", "kr8s", "kopf")
BATCH, SECONDS, PATIENCE = 2_000, 6.0, 600
LATENCY_RATE = 200


async def get(port, path):
    """Send one GET over a plain socket, so that the process contains no client library except the measured one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    response_head = await reader.readuntil(b"\r\n\r\n")
    length = int(response_head.lower().split(b"content-length:")[1].split()[0])
    body = await reader.readexactly(length)
    writer.close()
    return json.loads(body)


class EventCounter:
    """Counts events, and records their times while latency is measured. Other threads may call it."""

    def __init__(self):
        self.loop, self.expected, self.count, self.arrivals = asyncio.get_running_loop(), 0, 0, None

    def expect(self, count, *, is_timed=False):
        self.expected, self.count, self.arrivals = count, 0, [] if is_timed else None
        self.done = asyncio.Event()
        return self.done.wait()

    def __call__(self, obj):
        if self.arrivals is not None:
            self.arrivals.append((time.monotonic(), obj))
        self.count += 1
        if self.count == self.expected:
            self.loop.call_soon_threadsafe(self.done.set)


def rss():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def contest(name, port, objects, event_count, timed):
    result, counter = {}, EventCounter()
    contestant = importlib.import_module(f"contestants.{name}").Contestant()
    contestant.expected = objects
    gc.collect()
    before, started, cpu_start = rss(), time.perf_counter(), time.process_time()
    await contestant.start(f"http://127.0.0.1:{port}", counter)
    result["sync s"] = time.perf_counter() - started
    result["sync CPU s"] = time.process_time() - cpu_start
    gc.collect()
    cached_count = contestant.cached_count()
    assert cached_count in (objects, None), (cached_count, objects)
    result["keeps"] = contestant.KEEPS
    result["steady MB"] = (rss() - before) / 1e6
    result["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 - before / 1e6
    while not (await get(port, "/watchers"))["count"]:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)
    sent_count, batch = 0, min(BATCH, objects)  # an operator may take two changes of one object together
    started, cpu_start = time.perf_counter(), time.process_time()
    while sent_count < event_count and time.perf_counter() - started < SECONDS:
        all_received = counter.expect(batch)
        await get(port, f"/events?count={batch}")
        await all_received
        sent_count += batch
    result["events/s"] = sent_count / (time.perf_counter() - started)
    result["event CPU µs"] = (time.process_time() - cpu_start) / sent_count * 1e6
    all_received = counter.expect(timed, is_timed=True)
    await get(port, f"/events?count={timed}&rate={LATENCY_RATE}")
    await all_received
    percentiles = statistics.quantiles(
        [arrived_at - float(contestant.sent(obj)) for arrived_at, obj in counter.arrivals], n=100
    )
    result |= {"p50 µs": percentiles[49] * 1e6, "p99 µs": percentiles[98] * 1e6}
    await contestant.close()
    return result


async def measure_overhead(port, objects):
    """Return the bytes that our cache needs per object in addition to its JSON, and the bytes of all the JSON."""
    from contestants import ours

    contestant = ours.Contestant()
    tracemalloc.start()
    await contestant.start(f"http://127.0.0.1:{port}", lambda change: None)
    gc.collect()
    json_size = contestant.json_bytes()
    result = {
        "overhead B": (tracemalloc.get_traced_memory()[0] - json_size) / objects,
        "JSON held MB": json_size / 1e6,
    }
    await contestant.close()
    return result


def better_figures(first_figures, second_figures):
    """Return the better value of each figure, because disturbances only make a run worse."""
    if first_figures.get("failed") or second_figures.get("failed"):
        return second_figures if first_figures.get("failed") else first_figures
    return {
        row: value
        if isinstance(value, str)
        else (max if row == "events/s" else min)(value, second_figures.get(row, value))
        for row, value in first_figures.items()
    }


def measure_import(python_path, name):
    """Return the CPU milliseconds of the client's import: the best of five new processes."""
    # kopf imports whichever other client it finds: alone, it would find none
    hidden = "import sys; sys.modules.update(dict.fromkeys(['kubernetes', 'kubernetes_asyncio', 'pykube']))"
    timed = f"import time; s = time.process_time(); import contestants.{name}; print(time.process_time() - s)"
    command = [python_path, "-c", f"{hidden if name == 'kopf' else ''}\n{timed}"]
    return min(float(subprocess.check_output(command, cwd=HERE)) for _ in range(5)) * 1e3


def read_peer_versions():
    """Return the versions of the other clients, from the lock file."""
    pins = (HERE.parent / "requirements/peers.txt").read_text().splitlines()
    pinned = dict(line.split(" ")[0].split("==") for line in pins if "==" in line and line[0] not in " #")
    return {name: pinned[name.replace("_", "-")] for name in PEERS}


def measure_decoding():
    """Return the CPU microseconds to decode one watch event with fairlead, and to parse it with orjson.

    The values are the best of many short rounds. Without orjson, only fairlead's value is returned.
    """
    from fairlead.api.builtin import Pod
    from fairlead.cache.entries import EntryCodec
    from fairlead.client.watching import FrameSplitter, decode_frame

    read = EntryCodec(Pod, field_managers=frozenset({"bench"})).encode
    frames = [{"type": "MODIFIED", "object": {"kind": "Pod", "apiVersion": "v1", **pod(n)}} for n in range(200)]
    lines = [compact(frame) + b"\n" for frame in frames]
    stream = b"".join(lines)
    chunks = [stream[at : at + 2**16] for at in range(0, len(stream), 2**16)]

    def decode_with_fairlead():
        splitter = FrameSplitter()
        for chunk in chunks:
            for line in splitter.feed(chunk):
                read(decode_frame(line).raw)

    decoders = {"ours": decode_with_fairlead}
    sys.path += map(str, PEERS_PYTHON.parent.parent.glob("lib/python*/site-packages"))
    with contextlib.suppress(ImportError):
        import orjson

        decoders["orjson"] = lambda: [orjson.loads(line) and None for line in lines]
    durations = {name: [] for name in decoders}
    for _ in range(100):
        for name, decoder in decoders.items():
            cpu_start = time.process_time_ns()
            decoder()
            durations[name].append((time.process_time_ns() - cpu_start) / len(lines) / 1e3)
    return {name: min(times) for name, times in durations.items()}


def measure_contestant(name, port, options):
    """Return the figures of one client's process, or its error."""
    python_path = PEERS_PYTHON if name in PEERS else sys.executable
    counts = ["--objects", str(options.objects), "--events", str(options.events), "--timed", str(options.timed)]
    command = [python_path, __file__, "--only", name, "--port", port, *counts]
    try:
        completed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=PATIENCE)
        figures = json.loads(completed.stdout)
        delays = {row: figures.pop(row) for row in ("p50 µs", "p99 µs")} if name != "overhead" else {}
        if options.latency:
            return delays
        if not options.save:  # a thousand objects are the calmer place for them: --latency
            figures |= delays
        if name != "overhead" and not options.quick:
            figures["import ms"] = measure_import(python_path, name)
        return figures | {"failed": ""}
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {PATIENCE} s"}
    except (subprocess.CalledProcessError, ValueError) as error:
        return {"failed": str(error).splitlines()[0].rpartition("' ")[2]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--only", action="append", help="a contestant; may be repeated")
    parser.add_argument("--rounds", type=int, default=1, help="measure the floor and ours so often; the best is kept")
    parser.add_argument("--latency", action="store_true", help="that alone, with a thousand objects")
    parser.add_argument("--quick", action="store_true", help="see that it works: 200 objects, one peer")
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    parser.add_argument("--timed", type=int, default=1_000, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.port:
        name = options.only[0]
        run = (
            measure_overhead(options.port, options.objects)
            if name == "overhead"
            else contest(name, options.port, options.objects, options.events, options.timed)
        )
        print(json.dumps(asyncio.run(run)), flush=True)
        os._exit(0)  # threads of a client that never end are not ours to wait for
    if options.latency:
        options.objects, options.events = 1_000, BATCH
    if options.quick:
        options.objects, options.events, options.timed = 200, 200, 40
    peers = PEERS[: 1 if options.quick else None] if PEERS_PYTHON.exists() else ()
    names = options.only or [*OURS, *peers]
    # A peer takes minutes, and is further away than the noise: once is enough for it.
    repeated_names = [name for name in names if name in OURS] * (options.rounds - 1)
    last = ["overhead"] if "ours" in names and not options.latency else []
    results, is_partial = {}, bool(options.only or options.latency)
    feeder = subprocess.Popen(
        [sys.executable, HERE / "feeder.py", str(options.objects)], stdout=subprocess.PIPE, text=True
    )
    try:
        port = feeder.stdout.readline().strip()
        for name in [*repeated_names, *names, *last]:
            figures = measure_contestant(name, port, options)
            results[name] = better_figures(results.get(name, figures), figures)
            printed_figures = {
                row: round(value, 2) if isinstance(value, float) else value for row, value in figures.items()
            }
            print(name, printed_figures, file=sys.stderr, flush=True)
            if options.save:
                about = {} if options.latency else {"objects": options.objects, "versions": read_peer_versions()}
                recording.save("clients", {**about, "rows": {name: results[name]}}, is_partial=is_partial)
    finally:
        feeder.terminate()
        feeder.wait()
    decoded = {} if options.latency else measure_decoding()
    if options.save and len(decoded) == 2:
        recording.save("clients", {"decoding µs": decoded}, is_partial=is_partial)
    report(options, results, decoded)


def report(options, results, decoded):
    print(f"{options.objects} objects of {len(compact(pod(1))) / 1024:.1f} KiB\n")
    overhead = results.pop("overhead", None)
    rows = dict.fromkeys(row for result in results.values() for row in result if row not in ("keeps", "failed"))
    print(f"{'':14}" + "".join(f"{name:>14.14}" for name in results))
    for row in rows:
        values = [result.get(row) for result in results.values()]
        print(f"{row:14}" + "".join(f"{'' if v is None else f'{v:,.2f}':>14}" for v in values))
    for name, result in results.items():
        if result.get("failed"):
            print(f"{name} failed: {result['failed']}")
    if decoded:
        print(f"\na watch event, from chunk to entry: {decoded['ours']:.1f} µs, ", end="")
        print(
            f"{decoded['ours'] / decoded['orjson']:.2f}× orjson's full parse (bar 0.6)"
            if "orjson" in decoded
            else "and no orjson to compare with: run `make bench-peers`"
        )
    if overhead and not overhead["failed"]:
        print(
            f"\nsteady memory is {results['ours']['steady MB'] / overhead['JSON held MB']:.2f}× the JSON held; ", end=""
        )
        print(f"an object costs {overhead['overhead B']:.0f} bytes beside its JSON")


if __name__ == "__main__":
    main()
