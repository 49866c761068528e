"""Replay recorded requests of a real kube-apiserver and print where a server's responses differ.

python tests/conformance/replay.py                         the embedded server, in this process, in virtual time
python tests/conformance/replay.py --server URL --token T  any server, over HTTP
python tests/conformance/replay.py FILE...                 only these recordings (.jsonl, or a JSON array in .json)

The output ends with a table by file and 'N passed, N failed'. The exit status is 1 if a scenario failed.
"""

import argparse
import asyncio
import collections
import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))  # This file is also run as a script.
from recordings import Scenario, find_mismatches, format_mismatch, play_scenario, read_scenarios, write_scenarios

CASES = Path(__file__).parent / "cases"
KNOWN_FAILURES = Path(__file__).parent / "known_failures.txt"
RUN_ID = "x0f1e2d"


def load_scenarios(files: list[str] | None = None) -> list[Scenario]:
    """Return the scenarios of these files (by default of all), each with the `file` that it is from."""
    paths = [Path(file) for file in files] if files else sorted(CASES.glob("*.jsonl"))
    return [{**scenario, "file": path.stem} for path in paths for scenario in read_scenarios(path)]


def read_known_failures() -> set[str]:
    """Return the names of the scenarios that are known to fail."""
    return {line for line in KNOWN_FAILURES.read_text().splitlines() if line and not line.startswith("#")}


class RestartingTransport:
    """A transport to a durable server that is restarted before each request, except during watches."""

    def __init__(self, create_server: Callable[[], Any], *, restarts: bool) -> None:
        self._create_server, self._restart = create_server, restarts
        self._server, self._streams = create_server(), []

    async def request(self, request: Any) -> Any:
        self._restart_server()
        return await self._server.transport().request(request)

    async def stream(self, request: Any) -> Any:
        self._restart_server()
        self._streams.append(await self._server.transport().stream(request))
        return self._streams[-1]

    def _restart_server(self) -> None:
        if self._restart and not self._streams:
            self._server.close()
            self._server = self._create_server()

    async def close(self) -> None:
        self._server.close()


async def _play_embedded(scenario: Scenario, *, is_durable: bool, restarts: bool) -> list[Any]:
    from fairlead.server.app import Server
    from fairlead.testing import virtual

    options: dict[str, Any] = {"tokens": ["conformance"], "authorization": "RBAC"}
    world = virtual.world()
    if not is_durable:
        return await play_scenario(Server(world, **options).transport(), scenario, RUN_ID)
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        transport = RestartingTransport(lambda: Server(world, data=Path(directory), **options), restarts=restarts)
        try:
            return await play_scenario(transport, scenario, RUN_ID)
        finally:
            await transport.close()


def play_embedded(scenario: Scenario, *, is_durable: bool = False, restarts: bool = False) -> list[Any]:
    """Return the responses of a new embedded server, which may store its state on the disk."""
    from fairlead.testing import virtual

    return virtual.run(_play_embedded(scenario, is_durable=is_durable, restarts=restarts))


@contextlib.asynccontextmanager
async def _connect(url: str, token: str) -> AsyncIterator[Any]:
    from fairlead.client.access import Cluster
    from fairlead.client.credentials import StaticCredentials
    from fairlead.client.http import HttpTransport

    transport = HttpTransport(Cluster(url, insecure=url.startswith("https:")), StaticCredentials.token(token))
    try:
        yield transport
    finally:
        await transport.close()


Played = AsyncIterator[tuple[Scenario, list[Any] | Exception]]


async def _play_all_remote(scenarios: list[Scenario], arguments: argparse.Namespace) -> Played:
    run_id = "x" + secrets.token_hex(3)  # One random id with a counter: many random ids would soon repeat.
    async with _connect(arguments.server, arguments.token) as transport:
        for number, scenario in enumerate(scenarios):
            try:
                yield scenario, await play_scenario(transport, scenario, f"{run_id}{number:03x}")
            except Exception as error:
                yield scenario, error


async def _play_all_embedded(scenarios: list[Scenario], arguments: argparse.Namespace) -> Played:
    durable = arguments.data or arguments.restart
    for scenario in scenarios:
        try:
            yield (
                scenario,
                await asyncio.to_thread(play_embedded, scenario, is_durable=durable, restarts=arguments.restart),
            )
        except Exception as error:
            yield scenario, error


def _remove_known_failures(passed: set[str]) -> None:
    lines = KNOWN_FAILURES.read_text().splitlines()
    KNOWN_FAILURES.write_text("".join(f"{line}\n" for line in lines if line not in passed))


def _print_failure(scenario: Scenario, result: list[Any] | Exception, mismatches: list[Any], limit: int) -> None:
    print(f"FAIL {scenario['name']}  ({scenario.get('why', '')})")
    if isinstance(result, Exception):
        print(f"  {type(result).__name__}: {result}")
    for mismatch in mismatches[:limit]:
        print(format_mismatch(mismatch))
    if len(mismatches) > limit:
        print(f"  (+{len(mismatches) - limit} more)")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="recordings (default: all in tests/conformance/cases)")
    parser.add_argument("--server", help="URL of a server (default: the embedded server)")
    parser.add_argument("--token", help="bearer token for --server")
    parser.add_argument("--data", action="store_true", help="store the state of the embedded server on the disk")
    parser.add_argument("--restart", action="store_true", help="restart the embedded server before each request")
    parser.add_argument("-k", default="", metavar="WORD", help="replay only scenarios with this word in their name")
    parser.add_argument("--messages", action="store_true", help="also compare messages and warnings")
    parser.add_argument("--show", type=int, default=6, help="how many differences to print per scenario")
    parser.add_argument("--record", metavar="FILE", help="write the server's responses to FILE (.jsonl or .json)")
    parser.add_argument(
        "--remove-passed", action="store_true", help="remove scenarios that pass from known_failures.txt"
    )
    return parser.parse_args()


async def main() -> int:
    arguments = _parse_arguments()
    scenarios = [scenario for scenario in load_scenarios(arguments.files) if arguments.k in scenario["name"]]
    counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])  # file -> passed, failed
    recorded, passed_names, start = [], set(), time.monotonic()
    play_all = _play_all_remote if arguments.server else _play_all_embedded
    async for scenario, result in play_all(scenarios, arguments):
        if arguments.record and not isinstance(result, Exception):
            steps = [dict(step, expect=response) for step, response in zip(scenario["steps"], result, strict=True)]
            recorded.append({key: value for key, value in scenario.items() if key != "file"} | {"steps": steps})
            continue
        is_error = isinstance(result, Exception)
        mismatches = [] if is_error else list(find_mismatches(scenario, result, arguments.messages))
        has_failed = is_error or bool(mismatches)
        counts[scenario["file"]][has_failed] += 1
        if has_failed:
            _print_failure(scenario, result, mismatches, arguments.show)
        else:
            passed_names.add(scenario["name"])
    if arguments.record:
        write_scenarios(Path(arguments.record), recorded)
        print(f"recorded {len(recorded)} scenarios")
        return 0
    if arguments.remove_passed:
        _remove_known_failures(passed_names)
    for file, (passed, failed) in counts.items():
        print(f"{file:28} {passed:4} passed {failed:4} failed")
    passed, failed = (sum(pair[index] for pair in counts.values()) for index in (0, 1))
    print(f"{passed} passed, {failed} failed in {time.monotonic() - start:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
