"""Measure what the history costs: `python bench/history.py [--objects N] [--rounds N]`.

It prints the CPU time of a pass without subscribers, with the default ones (log and metrics), with the live page
(`--ui`), with traces, and with -v. The ratios are those to the default. The server runs in another process. One
run switches between the variants, and the ratios are medians over its rounds.
"""

import argparse
import asyncio
import logging
import os
import statistics
import time
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from support.server_pair import embedded

import fairlead as fl
from fairlead.api.history import POINTS
from fairlead.client.client import Client
from fairlead.client.http import HttpTransport
from fairlead.client.locate import locate
from fairlead.report.live.server import serve_page
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


# name: default subscribers, further subscribers, log level
VARIANTS = {
    "no subscribers": ((), list, logging.INFO),
    "log and metrics (default)": (DEFAULT, list, logging.INFO),
    "and --ui": (DEFAULT, lambda: [serve_page("0")], logging.INFO),
    "and traces": (DEFAULT, lambda: [trace_passes()], logging.INFO),
    "and -v": (DEFAULT, list, logging.DEBUG),
}


def subscribe_variants(run):
    """Return the subscribers of each variant, so that one run can switch between them."""
    tables = {}
    for name, (default, make_subscribers, level) in VARIANTS.items():
        LOG.setLevel(level)
        run.history._subscribers = dict.fromkeys(POINTS, ())  # noqa: SLF001
        for subscribe in (*default, *make_subscribers()):
            subscribe(run)
        tables[name] = run.history._subscribers  # noqa: SLF001
    return tables


async def measure(transport, world, rounds):
    """Return for each variant the CPU microseconds of passes that write, and of those that find nothing to do."""
    op, turn, passes = fl.Operator("bench"), [0], []

    @op.reconcile(Greeting, owns=[fl.ConfigMap])
    async def greet(obj, ctx):
        passes.append(obj.name)
        await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}", "turn": str(turn[0])}))

    figures = {name: ([], []) for name in VARIANTS}
    async with op.running(transport, world) as run:
        await run.wait_until_idle()
        tables = subscribe_variants(run)
        for _ in range(rounds):
            for name, columns in figures.items():
                LOG.setLevel(VARIANTS[name][2])
                run.history._subscribers = tables[name]  # noqa: SLF001
                for writes, column in zip((True, False), columns, strict=True):
                    turn[0] += writes
                    passes.clear()
                    started = time.process_time()
                    run.resync()
                    await run.wait_until_idle()
                    column.append((time.process_time() - started) / len(passes) * 1e6)
    return figures


async def main(objects, rounds):
    logs.configure(fl.World(), stream=open(os.devnull, "w"))  # noqa: SIM115, PTH123, ASYNC230
    world = fl.World()
    with embedded() as server:
        access = locate(world, path=Path(server.kubeconfig))
        transport = HttpTransport(access.cluster, access.credentials)
        client = Client(transport, world)
        await install_missing(client, [Greeting])
        for number in range(objects):
            await client.create(Greeting(f"hello-{number}", "default", spec={"who": "world"}))
        figures = await measure(transport, world, rounds)
        await transport.close()
    print(f"{'CPU of a pass':28} {'that writes, and its echo':>26} {'with nothing to do':>26}")
    for name, columns in figures.items():
        cells = []
        for values, base in zip(columns, figures["log and metrics (default)"], strict=True):
            # The machine may be slower in some rounds, so the ratios are those within a round.
            ratio = statistics.median(value / first for value, first in zip(values, base, strict=True))
            cells.append(f"{statistics.median(values):.0f} µs ({ratio:.2f}x)")
        print(f"{name:28} {cells[0]:>26} {cells[1]:>26}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.objects, arguments.rounds))
