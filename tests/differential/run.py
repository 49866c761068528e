"""Play random histories on a real server and on the embedded one, and report all differences.

python -m tests.differential.run -n 1000 --seed 0      starts a real server

The output ends with a table by family, also after an interrupt. The exit status is 1 if a response differs in a way
that docs/explanation/differences.md does not list.
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

from recordings import Scenario, read_scenarios, write_scenarios

from fairlead.api.errors import UserError
from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.testing.real import RealServer

from . import histories
from .comparison import Difference, is_text_difference
from .documented_differences import find_undocumented
from .servers import Played, ServerPair
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
CONCURRENCY = 6  # histories at the same time, because a real server is slow


class Report:
    """The results of a run: how many histories passed in each family, and the histories of each kind of difference."""

    def __init__(self) -> None:
        self.played: collections.Counter[str] = collections.Counter()
        self.differed: collections.Counter[str] = collections.Counter()
        self.differed_in_texts: collections.Counter[str] = collections.Counter()
        self.documented: collections.Counter[str] = collections.Counter()
        self.by_signature: dict[str, list[Scenario]] = {}
        self.failed: set[str] = set()
        self.codes: dict[str, collections.Counter[tuple[str, int]]] = collections.defaultdict(collections.Counter)

    def add(self, scenario: Scenario, played: Played) -> list[Difference]:
        """Count a history. Return its undocumented differences if no earlier history had the same signature."""
        family = scenario["family"]
        self.played[family] += 1
        for index, real, _ in played:
            if index >= 0 and "code" in real:
                self.codes[describe_request(scenario["steps"][index])][family, real["code"]] += 1
        undocumented, names = find_undocumented(scenario, played)
        self.documented.update(names)
        if not undocumented:
            return []
        signature = build_signature(scenario, undocumented[0])
        self.failed.add(scenario["name"])
        (self.differed_in_texts if is_text_difference(undocumented[0]) else self.differed)[family] += 1
        self.by_signature.setdefault(signature, []).append(scenario)
        return undocumented if len(self.by_signature[signature]) == 1 else []

    def table(self) -> Iterator[str]:
        yield f"{'family':14} {'histories':>9} {'differ':>7} {'in texts only':>14}"
        for family in self.played:
            yield f"{family:14} {self.played[family]:9} {self.differed[family]:7} {self.differed_in_texts[family]:14}"
        for name, count in sorted(self.documented.items()):
            yield f"documented: {name}: {count}"

    def coverage(self) -> Iterator[str]:
        """Yield a table of the real server's status codes by request and family."""
        codes = sorted({code for counts in self.codes.values() for _, code in counts})
        yield f"{'request':26} {'family':12} " + " ".join(f"{code:>6}" for code in codes)
        for request in sorted(self.codes):
            counts = self.codes[request]
            for family in sorted({family for family, _ in counts}):
                yield f"{request:26} {family:12} " + " ".join(f"{counts[family, code] or '.':>6}" for code in codes)


OnResult = Callable[[Report, Scenario, list[Difference]], None]


def describe_request(step: histories.Step) -> str:
    """Return a step's verb, patch type and subresource, and whether it requests another representation."""
    subresource = step["path"].rpartition("/")[2]
    parts = [
        step["do"],
        step.get("type", "")[12:].partition("-")[0],
        f"/{subresource}" if subresource in SUBRESOURCES else "",
        "as" if step.get("accept") else "",
    ]
    return " ".join(filter(None, parts))


def build_signature(scenario: Scenario, difference: Difference) -> str:
    """Return a text that identifies a kind of difference: the request and the path in the response, not the values."""
    index, path, real, embedded = difference
    step = scenario["steps"][index] if index >= 0 else {"do": "define"}
    response_path = re.sub(r"\[\d+\]|\{[^}]*\}", "", path)[:80]
    target = re.sub(r"\{ns\}|[^/]*example\.com", "_", step.get("path", "")).removeprefix("/apis").split("/w/")[-1]
    codes = f" {real}->{embedded}" if path == ".code" else ""
    return f"{step['do']} {step.get('type', '')[12:17]} {target}: {response_path}{codes}"


async def shrink_scenario(servers: ServerPair, scenario: Scenario, signature: str) -> Scenario:
    """Return a smaller scenario with the same kind of difference."""

    async def fails(candidate: Scenario) -> bool:
        with contextlib.suppress(Exception):
            undocumented, _ = find_undocumented(candidate, await servers.play(candidate))
            return bool(undocumented) and build_signature(candidate, undocumented[0]) == signature
        return False

    return await shrink(scenario, fails)


async def record_responses(servers: ServerPair, scenario: Scenario) -> Scenario:
    """Return a scenario with the real server's responses, for tests without a real server."""
    steps = list(scenario["steps"])
    for index, response, _ in await servers.play(scenario):
        if index >= 0 and "code" in response:
            steps[index] = {**steps[index], "expect": response}
    return {**scenario, "steps": steps}


def read_case(path: Path) -> Scenario:
    [scenario] = read_scenarios(path)
    return scenario


def format_difference(difference: Difference) -> str:
    index, path, *values = difference
    real, embedded = (json.dumps(value, ensure_ascii=False) for value in values)
    first = next((at for at, (a, b) in enumerate(zip(real, embedded, strict=False)) if a != b), 0)
    start = max(0, first - 200)  # Long texts often differ only at their end.
    lines = [
        f"      {name:8} {response_text[start : start + 600]}"
        for name, response_text in (("real", real), ("embedded", embedded))
    ]
    return "\n".join([f"  step {index}: {path}", *lines])


class ResultsFile:
    """The histories without differences, one per line, so that a long run can be continued.

    A line has the name and a hash of the content: a history that has changed is played again.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        if path:
            path.touch()  # An unwritable path fails before the first history.
        self.passed_before = set(path.read_text().splitlines()) if path else set()

    def contains(self, scenario: Scenario) -> bool:
        return _result_line(scenario) in self.passed_before

    def add(self, scenario: Scenario, report: Report) -> None:
        if self._path and scenario["name"] not in report.failed:
            with self._path.open("a") as file:
                file.write(f"{_result_line(scenario)}\n")


def _result_line(scenario: Scenario) -> str:
    content = json.dumps(scenario, sort_keys=True).encode()
    return f"{scenario['name']} {hashlib.sha256(content).hexdigest()[:12]}"


async def play_histories(
    servers: ServerPair,
    seeds: Iterable[int],
    family: str = "",
    on_result: OnResult = lambda *_: None,
    results: ResultsFile | None = None,
    report: Report | None = None,
) -> Report:
    """Play the histories of these seeds. Call `on_result` after each, with its new kinds of differences."""
    report, remaining, results = report or Report(), iter(seeds), results or ResultsFile()

    async def work() -> None:
        for seed in remaining:
            scenario = histories.generate_scenario(seed)
            if family not in ("", scenario["family"]) or results.contains(scenario):
                continue
            try:
                played = await servers.play(scenario)
            except Exception as error:  # An exception is reported like a difference.
                played = [(0, {"code": "a response"}, {"code": f"{type(error).__name__}: {error}"[:300]})]
            new_differences = report.add(scenario, played)
            results.add(scenario, report)
            on_result(report, scenario, new_differences)

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return report


class Progress:
    """Prints each new kind of difference immediately, and the progress from time to time."""

    def __init__(self, total: int) -> None:
        self._total, self._start = total, time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._last_line = self._start

    def __call__(self, report: Report, scenario: Scenario, new_differences: list[Difference]) -> None:
        if new_differences:
            print(f"\n{scenario['name']}  {build_signature(scenario, new_differences[0])}", flush=True)
            print("\n".join(map(format_difference, new_differences[:2])), flush=True)
        played_count = report.played.total()
        if time.monotonic() - self._last_line > (1 if self._is_terminal else 30):
            self._last_line = time.monotonic()
            rate = played_count / self.seconds
            minutes = (self._total - played_count) / rate / 60
            line = f"{played_count} of {self._total} histories, {rate:.1f}/s, {minutes:.0f} min left, "
            line += f"{len(report.by_signature)} kinds of differences"
            print(f"\r{line}  ", end="" if self._is_terminal else "\n", file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


async def run(transport: Any, arguments: argparse.Namespace) -> Report:
    servers, progress = ServerPair(transport), Progress(arguments.n)
    seeds = range(arguments.seed, arguments.seed + arguments.n)
    results = ResultsFile(arguments.results)
    report = Report()
    try:
        await play_histories(servers, seeds, arguments.family, progress, results, report)
    except asyncio.CancelledError:
        print("\n".join(["", "interrupted", *report.table()]), flush=True)
        raise
    print()
    for signature, failed_scenarios in report.by_signature.items() if arguments.shrink else ():
        print(f"shrinking {failed_scenarios[0]['name']}", file=sys.stderr, flush=True)
        small = await shrink_scenario(servers, failed_scenarios[0], signature)
        differences = find_undocumented(small, await servers.play(small))[0]
        print(f"\n== {signature}\n{json.dumps(small, ensure_ascii=False)}")
        print("\n".join(map(format_difference, differences[:3])))
        if arguments.keep:
            write_scenarios(CASES / f"{failed_scenarios[0]['name']}.jsonl", [await record_responses(servers, small)])
    for signature, failed_scenarios in sorted(report.by_signature.items(), key=lambda item: -len(item[1])):
        print(f"{len(failed_scenarios):5}  {signature}  ({', '.join(item['name'] for item in failed_scenarios[:3])})")
    print("\n".join([*(report.coverage() if arguments.coverage else ()), *report.table()]))
    before = f", and {len(results.passed_before)} without differences in earlier runs" if results.passed_before else ""
    print(f"{report.played.total()} histories in {progress.seconds:.0f} s{before}")
    return report


@contextlib.asynccontextmanager
async def connect(arguments: argparse.Namespace) -> AsyncIterator[HttpTransport]:
    with contextlib.ExitStack() as stack:
        url, token, ca = arguments.server, arguments.token, b""
        if not url:
            server = stack.enter_context(RealServer())
            url, token, ca = server.url, server.token, server.ca_data
        cluster = Cluster(url, ca) if ca else Cluster(url, insecure=True)
        transport = HttpTransport(cluster, StaticCredentials.token(token))
        try:
            await transport.request(HttpRequest("GET", "/version"))  # A wrong address fails immediately.
            yield transport
        finally:
            await transport.close()


def positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=positive, default=500, help="number of histories")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first history")
    parser.add_argument("--family", default="", choices=list(histories.FAMILIES), help="play only this family")
    parser.add_argument("--server", help="URL of a real server (default: start one)")
    parser.add_argument("--token", default="", help="bearer token for --server")
    parser.add_argument("--keep", action="store_true", help="write shrunk differences to tests/differential/cases")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false", help="do not shrink histories")
    parser.add_argument("--results", type=Path, metavar="FILE", help="skip the histories that passed, and add new ones")
    parser.add_argument("--case", type=Path, metavar="FILE", help="only record the responses to the case in this file")
    parser.add_argument("--coverage", action="store_true", help="print how often each request got each status code")
    arguments = parser.parse_args()
    async with connect(arguments) as transport:
        if arguments.case:
            case = await record_responses(ServerPair(transport), read_case(arguments.case))
            write_scenarios(arguments.case, [case])
            return 0
        report = await run(transport, arguments)
    return 1 if report.differed or report.differed_in_texts else 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except KeyboardInterrupt:
        sys.exit(130)
    except (UserError, OSError) as error:
        sys.exit(str(error))
