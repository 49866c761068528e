"""Replay the recorded traces of a real kube-apiserver and print where a server's answers differ.

python -m tests.conformance.replay                         the embedded server, in this process, in virtual time
python -m tests.conformance.replay --server URL --token T  any server, over HTTP
    --data keeps the embedded server's state in a directory, --restart closes and opens it before each request too,
    -k WORD selects scenarios, --messages compares texts and warnings to the letter, --record FILE records instead,
    --settle takes the scenarios that pass now out of differs.txt (and never adds one).

Closes with a table by family and 'N passed, N failed'. Exit status 1 where any failed.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import secrets
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import traces


class Restarting:
    """A transport to a server in a directory that is closed and opened again before each request, but for watches."""

    def __init__(self, serve, restart):
        self._serve, self._restart = serve, restart
        self._server, self._streams = serve(), []

    async def request(self, request):
        self._turn()
        return await self._server.transport().request(request)

    async def stream(self, request):
        self._turn()
        self._streams.append(await self._server.transport().stream(request))
        return self._streams[-1]

    def _turn(self):
        if self._restart and not self._streams:
            self._server.close()
            self._server = self._serve()

    async def close(self):
        self._server.close()


async def embedded(scenario, data=False, restart=False):
    """One scenario on a server of its own."""
    from fairlead.server.app import Server
    from fairlead.testing import virtual

    options = {"tokens": ["conformance"], "authorization": "RBAC"}
    world = virtual.world()
    if not data:
        return await traces.run(Server(world, **options).transport(), scenario, "x0f1e2d")
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        transport = Restarting(lambda: Server(world, data=Path(folder), **options), restart)
        try:
            return await traces.run(transport, scenario, "x0f1e2d")
        finally:
            await transport.close()


def play(scenario, data=False, restart=False):
    from fairlead.testing import virtual

    return virtual.run(embedded(scenario, data, restart))


@contextlib.asynccontextmanager
async def remote(url, token):
    from fairlead.client.access import Cluster
    from fairlead.client.credentials import StaticCredentials
    from fairlead.client.http import HttpTransport

    transport = HttpTransport(Cluster(url, insecure=url.startswith("https:")), StaticCredentials.token(token))
    try:
        yield transport
    finally:
        await transport.close()


async def play_remote(scenarios, arguments):
    run = "x" + secrets.token_hex(3)  # drawn once: of a thousand drawn singly, two are soon the same
    async with remote(arguments.server, arguments.token) as transport:
        for number, scenario in enumerate(scenarios):
            try:
                yield scenario, await traces.run(transport, scenario, f"{run}{number:03x}")
            except Exception as error:
                yield scenario, error


async def play_embedded(scenarios, arguments):
    for scenario in scenarios:
        try:
            yield (
                scenario,
                await asyncio.to_thread(play, scenario, arguments.data or arguments.restart, arguments.restart),
            )
        except Exception as error:
            yield scenario, error


def save(path, recorded):
    Path(path).write_text(json.dumps(recorded, indent=1) + "\n")
    print(f"recorded {len(recorded)} scenarios")


def settle(passing):
    path = Path(__file__).parent / "differs.txt"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines() if line not in passing))


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="recordings; the whole corpus by default")
    parser.add_argument("--server", help="URL of a server; the embedded one by default")
    parser.add_argument("--token")
    parser.add_argument("--data", action="store_true")
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("-k", default="", metavar="WORD")
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--show", type=int, default=6, help="differences shown a scenario")
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--settle", action="store_true")
    arguments = parser.parse_args()
    scenarios = [s for s in traces.load(arguments.files) if arguments.k in s["name"]]
    tally = collections.defaultdict(lambda: [0, 0])
    recorded, passing, start = [], set(), time.monotonic()
    async for scenario, seen in (play_remote if arguments.server else play_embedded)(scenarios, arguments):
        if arguments.record and not isinstance(seen, Exception):
            steps = [dict(step, expect=got) for step, got in zip(scenario["steps"], seen, strict=True)]
            recorded.append({key: value for key, value in scenario.items() if key != "file"} | {"steps": steps})
            continue
        bad = [] if isinstance(seen, Exception) else list(traces.mismatches(scenario, seen, arguments.messages))
        failed = isinstance(seen, Exception) or bool(bad)
        tally[scenario["file"]][failed] += 1
        if not failed:
            passing.add(scenario["name"])
        if failed:
            print(f"FAIL {scenario['name']}  ({scenario.get('why', '')})")
            if isinstance(seen, Exception):
                print(f"  {type(seen).__name__}: {seen}")
            print("\n".join(traces.told(one) for one in bad[: arguments.show]))
            if len(bad) > arguments.show:
                print(f"  (+{len(bad) - arguments.show} more)")
    if arguments.record:
        save(arguments.record, recorded)
        return 0
    if arguments.settle:
        settle(passing)
    for family, (passed, failed) in tally.items():
        print(f"{family:18} {passed:4} passed {failed:4} failed")
    passed, failed = (sum(counts[i] for counts in tally.values()) for i in (0, 1))
    print(f"{passed} passed, {failed} failed in {time.monotonic() - start:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
