"""Run random histories on a real server and on the embedded one and report every difference.

python -m tests.differential.run -n 1000 --seed 0      starts a real server of its own
    --server URL --token T  uses that one; --keep writes shrunk failures to tests/differential/cases
    --family NAME           only histories of that family; --no-shrink reports them as they were drawn
    --case FILE             only records the real server's answers to the history in that file
    --coverage              tells what was asked and how often it was answered with which code
    --results FILE          notes each history as it is done; the next run with that file passes over those that agreed

Closes with a table by family, also when interrupted. Exit status 1 if an
answer differs in a way that docs/explanation/differences.md does not list.
"""

import argparse
import asyncio
import collections
import contextlib
import hashlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from fairlead.api.errors import UserError
from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.testing.real import RealServer

from . import histories, known
from .playing import Both, Difference, Played, is_text
from .shrinking import shrink

SUBRESOURCES = (
    "status",
    "scale",
    "eviction",
    "binding",
    "approval",
    "finalize",
    "token",
    "ephemeralcontainers",
    "resize",
)
CASES = Path(__file__).parent / "cases"
JOBS = 6  # histories under way at once: a real server answers while we compare


class Report:
    """What a run found: for each family how many histories passed, and each way of failing with one history of it."""

    def __init__(self) -> None:
        self.played: collections.Counter[str] = collections.Counter()
        self.differed: collections.Counter[str] = collections.Counter()
        self.texts: collections.Counter[str] = collections.Counter()
        self.known: collections.Counter[str] = collections.Counter()
        self.ways: dict[str, list[histories.Scenario]] = {}
        self.failed: set[str] = set()
        self.answers: dict[str, collections.Counter[tuple[str, int]]] = collections.defaultdict(collections.Counter)

    def add(self, scenario: histories.Scenario, played: Played) -> list[Difference]:
        """Count a history; its undocumented differences where it is the first that differs in this way."""
        family = scenario["family"]
        self.played[family] += 1
        for index, real, _ in played:
            if index >= 0 and "code" in real:
                self.answers[asked(scenario["steps"][index])][family, real["code"]] += 1
        unknown, names = known.sorted_out(scenario, played)
        self.known.update(names)
        if not unknown:
            return []
        way = way_of(scenario, unknown[0])
        self.failed.add(scenario["name"])
        (self.texts if is_text(unknown[0]) else self.differed)[family] += 1
        self.ways.setdefault(way, []).append(scenario)
        return unknown if len(self.ways[way]) == 1 else []

    def table(self) -> Iterator[str]:
        yield f"{'family':14} {'histories':>9} {'differ':>7} {'in texts only':>14}"
        for family in self.played:
            yield f"{family:14} {self.played[family]:9} {self.differed[family]:7} {self.texts[family]:14}"
        for name, count in sorted(self.known.items()):
            yield f"documented: {name}: {count}"

    def coverage(self) -> Iterator[str]:
        """What was asked, and how often the real server answered it with which code, by family."""
        codes = sorted({code for counts in self.answers.values() for _, code in counts})
        yield f"{'asked':26} {'family':12} " + " ".join(f"{code:>6}" for code in codes)
        for what in sorted(self.answers):
            counts = self.answers[what]
            for family in sorted({family for family, _ in counts}):
                yield f"{what:26} {family:12} " + " ".join(f"{counts[family, code] or '.':>6}" for code in codes)


Tell = Callable[[Report, histories.Scenario, list[Difference]], None]


def asked(step: histories.Step) -> str:
    """A step's verb, patch type and subresource, or its representation."""
    below = step["path"].rpartition("/")[2]
    parts = [step["do"], step.get("type", "")[12:].partition("-")[0], f"/{below}" if below in SUBRESOURCES else ""]
    return " ".join(part for part in [*parts, *(("as",) if step.get("accept") else ())] if part)


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
            unknown, _ = known.sorted_out(candidate, await both.play(candidate))
            return bool(unknown) and way_of(candidate, unknown[0]) == way
        return False

    return await shrink(scenario, fails)


async def answered(both: Both, scenario: histories.Scenario) -> histories.Scenario:
    """A history with the real server's answers, for tests that have no real server."""
    steps = list(scenario["steps"])
    for index, answer, _ in await both.play(scenario):
        if index >= 0 and "code" in answer:
            steps[index] = {**steps[index], "expect": answer}
    return {**scenario, "steps": steps}


def read(path: Path) -> histories.Scenario:
    case: histories.Scenario = json.loads(path.read_text())
    return case


def write(path: Path, scenario: histories.Scenario) -> None:
    path.write_text(json.dumps(scenario, indent=1, ensure_ascii=False) + "\n")


def told(difference: Difference) -> str:
    index, path, want, got = difference
    real, ours = (json.dumps(value, ensure_ascii=False) for value in (want, got))
    alike = next((at for at, (a, b) in enumerate(zip(real, ours, strict=False)) if a != b), 0)
    start = max(0, alike - 200)  # long texts differ late
    shown = [f"      {who:8} {text[start : start + 600]}" for who, text in (("real", real), ("embedded", ours))]
    return "\n".join([f"  step {index}: {path}", *shown])


class Results:
    """The histories that agreed, one a line, so that a long run can be had in parts.

    Each by its name and what it asks: a history that is drawn otherwise by now is played again.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        if path:
            path.touch()  # a place that cannot be written is told before anything is played
        self.before = set(path.read_text().splitlines()) if path else set()

    def has(self, scenario: histories.Scenario) -> bool:
        return _line(scenario) in self.before

    def note(self, scenario: histories.Scenario, report: Report) -> None:
        if self._path and scenario["name"] not in report.failed:
            with self._path.open("a") as file:
                file.write(f"{_line(scenario)}\n")


def _line(scenario: histories.Scenario) -> str:
    asked = json.dumps(scenario, sort_keys=True).encode()
    return f"{scenario['name']} {hashlib.sha256(asked).hexdigest()[:12]}"


async def played(
    both: Both,
    seeds: Iterable[int],
    family: str = "",
    tell: Tell = lambda *_: None,
    results: Results | None = None,
    report: Report | None = None,
) -> Report:
    """The report on the histories of these seeds; `tell` is called after each, with differences of a new kind."""
    report, drawn, results = report or Report(), iter(seeds), results or Results()

    async def worker() -> None:
        for seed in drawn:
            scenario = histories.scenario(seed)
            if family not in ("", scenario["family"]) or results.has(scenario):
                continue
            try:
                answers = await both.play(scenario)
            except Exception as error:  # a failure of the run is a finding too
                answers = [(0, {"code": "an answer"}, {"code": f"{type(error).__name__}: {error}"[:300]})]
            new = report.add(scenario, answers)
            results.note(scenario, report)
            tell(report, scenario, new)

    await asyncio.gather(*(worker() for _ in range(JOBS)))
    return report


class Progress:
    """Tells of each new kind of difference at once, and now and then how far the run has come."""

    def __init__(self, histories: int) -> None:
        self._histories, self._start = histories, time.monotonic()
        self._live = sys.stderr.isatty()
        self._told = self._start

    def __call__(self, report: Report, scenario: histories.Scenario, new: list[Difference]) -> None:
        if new:
            print(f"\n{scenario['name']}  {way_of(scenario, new[0])}", flush=True)
            print("\n".join(told(one) for one in new[:2]), flush=True)
        done = report.played.total()
        if time.monotonic() - self._told > (1 if self._live else 30):
            self._told = time.monotonic()
            rate = done / self.seconds
            line = (
                f"{done} of {self._histories} histories, {rate:.1f}/s, {(self._histories - done) / rate / 60:.0f} min "
            )
            line += f"left, {len(report.ways)} ways to differ"
            print(f"\r{line}  ", end="" if self._live else "\n", file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


async def run(transport: Any, arguments: argparse.Namespace) -> Report:
    both, progress = Both(transport), Progress(arguments.n)
    seeds = range(arguments.seed, arguments.seed + arguments.n)
    results = Results(arguments.results)
    report = Report()
    try:
        await played(both, seeds, arguments.family, progress, results, report)
    except asyncio.CancelledError:
        print("\n".join(["", "interrupted", *report.table()]), flush=True)
        raise
    print()
    for way, failed in report.ways.items() if arguments.shrink else ():
        print(f"making {failed[0]['name']} small", file=sys.stderr, flush=True)
        small = await reduced(both, failed[0], way)
        found = known.sorted_out(small, await both.play(small))[0]
        print(f"\n== {way}\n{json.dumps(small, ensure_ascii=False)}")
        print("\n".join(told(one) for one in found[:3]))
        if arguments.keep:
            write(CASES / f"{failed[0]['name']}.json", await answered(both, small))
    for way, failed in sorted(report.ways.items(), key=lambda item: -len(item[1])):
        print(f"{len(failed):5}  {way}  ({', '.join(one['name'] for one in failed[:3])})")
    print("\n".join([*(report.coverage() if arguments.coverage else ()), *report.table()]))
    before = f", and {len(results.before)} that agreed in runs before" if results.before else ""
    print(f"{report.played.total()} histories in {progress.seconds:.0f} s{before}")
    return report


@contextlib.asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator[HttpTransport]:
    with contextlib.ExitStack() as stack:
        url, token, ca = arguments.server, arguments.token, b""
        if not url:
            server = stack.enter_context(RealServer())
            url, token, ca = server.url, server.token, server.ca_data
        cluster = Cluster(url, ca) if ca else Cluster(url, insecure=True)
        transport = HttpTransport(cluster, StaticCredentials.token(token))
        try:
            await transport.request(HttpRequest("GET", "/version"))  # an address that is wrong is told at once
            yield transport
        finally:
            await transport.close()


def positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=positive, default=500, help="histories")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--family", default="", choices=list(histories.FAMILIES))
    parser.add_argument("--server")
    parser.add_argument("--token", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--case", type=Path, metavar="FILE")
    parser.add_argument("--coverage", action="store_true", help="what was asked and answered how often")
    arguments = parser.parse_args()
    async with connected(arguments) as transport:
        if arguments.case:
            write(arguments.case, await answered(Both(transport), read(arguments.case)))
            return 0
        report = await run(transport, arguments)
    return 1 if report.differed or report.texts else 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except KeyboardInterrupt:
        sys.exit(130)
    except (UserError, OSError) as error:
        sys.exit(str(error))
