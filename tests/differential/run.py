"""Run random histories on a real server and on the embedded one and report every difference.

python -m tests.differential.run -n 1000 --seed 0      starts a real server of its own
    --server URL --token T  uses that one; --keep writes shrunk failures to tests/differential/cases
    --family NAME           only histories of that family; --no-shrink reports them as they were drawn

Closes with a table by family. Exit status 1 where an answer differed beyond docs/differences.md.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from fairlead.client.access import Cluster
from fairlead.client.credentials import Static
from fairlead.client.http import HttpTransport
from fairlead.testing.real import RealServer

from . import histories, known
from .playing import Both, Difference, is_text
from .shrinking import shrink

CASES = Path(__file__).parent / "cases"
JOBS = 4  # histories under way at once: a real server answers while we compare


class Report:
    """What a run found: for each family how many histories passed, and each way of failing with one history of it."""

    def __init__(self) -> None:
        self.played: collections.Counter[str] = collections.Counter()
        self.differed: collections.Counter[str] = collections.Counter()
        self.texts: collections.Counter[str] = collections.Counter()
        self.known: collections.Counter[str] = collections.Counter()
        self.ways: dict[str, list[histories.Scenario]] = {}

    def add(self, scenario: histories.Scenario, found: list[Difference]) -> str | None:
        """Count a history; the way in which it failed where it is the first that did so."""
        family = scenario["family"]
        self.played[family] += 1
        unknown, names = known.sorted_out(scenario, found)
        self.known.update(names)
        if not unknown:
            return None
        way = way_of(scenario, unknown[0])
        (self.texts if is_text(unknown[0]) else self.differed)[family] += 1
        self.ways.setdefault(way, []).append(scenario)
        return way if len(self.ways[way]) == 1 else None

    def table(self) -> Iterator[str]:
        yield f"{'family':14} {'histories':>9} {'differ':>7} {'in texts only':>14}"
        for family in self.played:
            yield f"{family:14} {self.played[family]:9} {self.differed[family]:7} {self.texts[family]:14}"
        for name, count in sorted(self.known.items()):
            yield f"documented: {name}: {count}"


def way_of(scenario: histories.Scenario, difference: Difference) -> str:
    """What tells one way of failing from another: the request and where its answer differed, not the values."""
    index, path, want, got = difference
    step = scenario["steps"][index] if index >= 0 else {"do": "define"}
    short = re.sub(r"\[\d+\]|\{[^}]*\}", "", path)[:80]
    where = re.sub(r"\{ns\}|[^/]*example\.com", "_", step.get("path", "")).removeprefix("/apis").split("/w/")[-1]
    shown = f" {want}->{got}" if path == ".code" else ""
    return f"{step['do']} {step.get('type', '')[12:17]} {where}: {short}{shown}"


async def reduced(both: Both, scenario: histories.Scenario, way: str) -> histories.Scenario:
    async def fails(candidate: histories.Scenario) -> bool:
        with contextlib.suppress(Exception):
            unknown, _ = known.sorted_out(candidate, await both.differences(candidate))
            return bool(unknown) and way_of(candidate, unknown[0]) == way
        return False

    return await shrink(scenario, fails)


def told(scenario: histories.Scenario, difference: Difference) -> str:
    index, path, want, got = difference
    return f"  step {index}: {path}\n      real     {_short(want)}\n      embedded {_short(got)}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:600]


async def run(transport: Any, seeds: Iterator[int], arguments: argparse.Namespace) -> Report:
    report, both, start = Report(), Both(transport), time.monotonic()
    firsts: list[tuple[str, histories.Scenario]] = []

    async def worker() -> None:
        for seed in seeds:
            scenario = histories.scenario(seed)
            if arguments.family not in scenario["name"]:
                continue
            try:
                found = await both.differences(scenario)
            except Exception as error:  # a failure of the run is a finding too
                found = [(0, f".{type(error).__name__}", "an answer", str(error)[:300])]
            if way := report.add(scenario, found):
                firsts.append((way, scenario))
                print(f"\n{scenario['name']}  {way}", flush=True)
                print("\n".join(told(scenario, one) for one in known.sorted_out(scenario, found)[0][:2]), flush=True)
            if (done := report.played.total()) % 50 == 0:
                rate = done / (time.monotonic() - start)
                print(f"\r{done} histories, {rate:.1f}/s, {len(report.ways)} ways to differ", end="", flush=True)

    await asyncio.gather(*(worker() for _ in range(JOBS)))
    print()
    for way, scenario in firsts if arguments.shrink else ():
        small = await reduced(both, scenario, way)
        found = known.sorted_out(small, await both.differences(small))[0]
        print(f"\n== {way}\n{json.dumps(small, ensure_ascii=False)}")
        print("\n".join(told(small, one) for one in found[:3]))
        if arguments.keep:
            (CASES / f"{scenario['name']}.json").write_text(json.dumps(small, indent=1, ensure_ascii=False) + "\n")
    for way, failed in sorted(report.ways.items(), key=lambda item: -len(item[1])):
        print(f"{len(failed):5}  {way}  ({', '.join(one['name'] for one in failed[:3])})")
    print("\n".join(report.table()))
    print(f"{report.played.total()} histories in {time.monotonic() - start:.0f} s")
    return report


@contextlib.asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator[HttpTransport]:
    with contextlib.ExitStack() as stack:
        url, token, ca = arguments.server, arguments.token, b""
        if not url:
            server = stack.enter_context(RealServer())
            url, token, ca = server.url, server.token, server.ca_data
        cluster = Cluster(url, ca) if ca else Cluster(url, insecure=True)
        transport = HttpTransport(cluster, Static.token(token))
        try:
            yield transport
        finally:
            await transport.close()


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=500, help="histories")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--family", default="", metavar="WORD")
    parser.add_argument("--server")
    parser.add_argument("--token", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    arguments = parser.parse_args()
    async with connected(arguments) as transport:
        report = await run(transport, iter(range(arguments.seed, arguments.seed + arguments.n)), arguments)
    return 1 if report.differed or report.texts else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
