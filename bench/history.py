"""Measure what the history costs: `python bench/history.py [--objects N] [--rounds N]`.

It prints the CPU time of a pass without subscribers, with the default ones (log and metrics), with all records kept (as
a page does), with traces, and with -v. The ratios are those to the default. The server runs in another process. The
variants alternate, so compare the ratios of one run.
"""

import argparse
import asyncio
import collections
import logging
import os
import time
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from support.server_pair import embedded

import fairlead as fl
from fairlead.client.client import Client
from fairlead.client.http import HttpTransport
from fairlead.client.locate import locate
from fairlead.runtime import logs, running
from fairlead.runtime.definitions import install_missing
from fairlead.runtime.tracing import Tracing

Greeting = fl.kind("bench.example.com/v1", "Greeting")
LOG = logging.getLogger("fairlead")
DEFAULT = running.DEFAULT_SUBSCRIBERS


class DroppingExporter(SpanExporter):
    """Drops the spans. An exporter encodes and sends them in a thread of its own."""

    def export(self, spans):
        return SpanExportResult.SUCCESS


def trace_passes():
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(DroppingExporter()))
    return Tracing(provider)


def keep_records(run):
    run.history.subscribe(collections.deque(maxlen=10_000).append)


# name: default subscribers, further subscribers, log level
VARIANTS = {
    "no subscribers": ((), list, logging.INFO),
    "log and metrics (default)": (DEFAULT, list, logging.INFO),
    "and all records kept": (DEFAULT, lambda: [keep_records], logging.INFO),
    "and traces": (DEFAULT, lambda: [trace_passes()], logging.INFO),
    "and -v": (DEFAULT, list, logging.DEBUG),
}


async def measure(transport, world, variant):
    """Return the CPU microseconds of a pass that writes, and of one that finds nothing to do."""
    running.DEFAULT_SUBSCRIBERS, make_subscribers, level = VARIANTS[variant]
    LOG.setLevel(level)
    op, turn, passes = fl.Operator("bench"), [time.time_ns()], []

    @op.reconcile(Greeting, owns=[fl.ConfigMap])
    async def greet(obj, ctx):
        passes.append(obj.name)
        await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}", "turn": str(turn[0])}))

    async with op.running(transport, world, subscribers=make_subscribers()) as run:
        await run.wait_until_idle()
        results = []
        for writes in (True, False):
            turn[0] += writes
            passes.clear()
            started = time.process_time()
            run.resync()
            await run.wait_until_idle()
            results.append((time.process_time() - started) / len(passes) * 1e6)
    return results


async def main(objects, rounds):
    logs.configure(fl.World(), stream=open(os.devnull, "w"))  # noqa: SIM115, PTH123, ASYNC230
    world = fl.World()
    figures = {name: ([], []) for name in VARIANTS}
    with embedded() as server:
        access = locate(world, path=Path(server.kubeconfig))
        transport = HttpTransport(access.cluster, access.credentials)
        client = Client(transport, world)
        await install_missing(client, [Greeting])
        for number in range(objects):
            await client.create(Greeting(f"hello-{number}", "default", spec={"who": "world"}))
        for _ in range(rounds):
            for name in VARIANTS:
                for values, value in zip(figures[name], await measure(transport, world, name), strict=True):
                    values.append(value)
        await transport.close()
    # The fastest round has the least noise of other processes.
    base = [min(values) for values in figures["log and metrics (default)"]]
    print(f"{'CPU of a pass':28} {'that writes, and its echo':>26} {'with nothing to do':>26}")
    for name, columns in figures.items():
        cells = [
            f"{min(values):.0f} µs ({min(values) / first:.2f}x)" for values, first in zip(columns, base, strict=True)
        ]
        print(f"{name:28} {cells[0]:>26} {cells[1]:>26}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.objects, arguments.rounds))
