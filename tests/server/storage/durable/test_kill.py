"""Tests that acknowledged writes survive repeated `kill -9` of a server during writes."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport

KILLS = int(os.environ.get("FAIRLEAD_KILLS", "3"))
SEED = int(os.environ.get("FAIRLEAD_KILLS_SEED", "1"))
MAPS = "/api/v1/namespaces/default/configmaps"
DELETED = "deleted"
GROUP_SIZE = 5


@dataclass
class Observations:
    """Records all changes that any client has received."""

    versions: dict[int, Any] = field(default_factory=dict)  # version -> its change
    highest: int = 0
    acknowledged: int = 0

    def add(self, version: int, change: Any) -> None:
        """Record a change. Fail if the version was received with another change."""
        assert self.versions.setdefault(version, change) == change, f"version {version} has two changes"
        self.highest = max(self.highest, version)


class Writer:
    """Writes one object, one request at a time. The server must have the last acknowledged state or the pending one."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng, self.count = name, rng, 0
        self.acknowledged: Any = DELETED
        self.in_flight: Any = DELETED

    async def write(self, api: HttpTransport, observations: Observations) -> None:
        self.count += 1
        delete = self.acknowledged != DELETED and self.rng.random() < 0.2
        self.in_flight = DELETED if delete else {"n": str(self.count), "again": str(self.count), "pad": "x" * 500}
        body = json.dumps({"metadata": {"name": self.name}, "data": self.in_flight}).encode()
        if delete:
            response = await api.request(HttpRequest("DELETE", f"{MAPS}/{self.name}"))
        elif self.acknowledged == DELETED:
            response = await api.request(HttpRequest("POST", MAPS, body=body))
        else:
            response = await api.request(HttpRequest("PUT", f"{MAPS}/{self.name}", body=body))
        assert response.status in (200, 201), response.body
        self.acknowledged = self.in_flight
        observations.acknowledged += 1
        if not delete:
            obj = json.loads(response.body)
            observations.add(int(obj["metadata"]["resourceVersion"]), (self.name, obj["data"]))

    def check(self, stored: dict[str, Any]) -> None:
        actual = stored[self.name]["data"] if self.name in stored else DELETED
        assert actual in (self.acknowledged, self.in_flight), f"{self.name} has another state: {actual}"
        self.acknowledged = self.in_flight = actual


class GroupWriter:
    """Creates a few objects and deletes them in one request, which must delete all of them or none."""

    def __init__(self) -> None:
        self.created = 0
        self.deleting = False

    async def write(self, api: HttpTransport, observations: Observations) -> None:
        if self.created < GROUP_SIZE:
            body = {"metadata": {"name": f"group-{self.created}", "labels": {"group": "yes"}}}
            response = await api.request(HttpRequest("POST", MAPS, body=json.dumps(body).encode()))
            assert response.status == 201, response.body
            self.created += 1
        else:
            self.deleting = True
            response = await api.request(HttpRequest("DELETE", MAPS, query={"labelSelector": "group=yes"}))
            assert response.status == 200, response.body
            self.created, self.deleting = 0, False

    def check(self, stored: dict[str, Any]) -> None:
        count = sum(name.startswith("group-") for name in stored)
        assert count in ((0, GROUP_SIZE) if self.deleting else (self.created, self.created + 1))
        self.created, self.deleting = count, False


@contextlib.asynccontextmanager
async def serving(folder):
    """Run `fairlead serve --data` in a process. At the end it is killed, never stopped."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fairlead", "serve", "--data", str(folder), "--no-tls",
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "FAIRLEAD_TOKEN": "t"},
    )  # fmt: skip
    transport = None
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        transport = HttpTransport(Cluster(line.split()[-1]), StaticCredentials.token("t"))
        yield process, transport
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if transport is not None:
            await transport.close()


class Watcher:
    """Watches the ConfigMaps across all restarts, without ever listing them."""

    def __init__(self) -> None:
        self.version = 0
        self.state: dict[str, Any] = {}

    async def follow(self, api: HttpTransport, observations: Observations, until: str = "") -> None:
        stream = await api.stream(
            HttpRequest("GET", MAPS, query={"watch": "true", "resourceVersion": str(self.version)})
        )
        remainder = b""
        try:
            while until not in self.state and (chunk := await stream.read()):
                *lines, remainder = (remainder + chunk).split(b"\n")
                for line in lines:
                    self.handle_event(json.loads(line), observations)
        finally:
            await stream.close()

    def handle_event(self, frame: dict[str, Any], observations: Observations) -> None:
        assert frame["type"] in ("ADDED", "MODIFIED", "DELETED"), frame
        metadata = frame["object"]["metadata"]
        name, version = metadata["name"], int(metadata["resourceVersion"])
        assert version > self.version
        self.version = version
        if frame["type"] == "DELETED":
            observations.add(version, (name, DELETED))
            del self.state[name]
        else:
            observations.add(version, (name, frame["object"].get("data")) if not name.startswith("group-") else name)
            self.state[name] = frame["object"]


async def run_and_kill(folder, rng, observations, writers, watcher) -> None:
    """Start a server, compare its state with the acknowledged one, write, and kill the server."""
    async with serving(folder) as (process, api):
        listed = json.loads((await api.request(HttpRequest("GET", MAPS))).body)
        stored = {item["metadata"]["name"]: item for item in listed["items"]}
        version = int(listed["metadata"]["resourceVersion"])
        assert version >= observations.highest, "the server lost a version that a client has seen"
        for writer in writers:
            writer.check(stored)
        if not watcher.version:
            watcher.version = version
        until = observations.acknowledged + rng.randrange(1, 150)

        async def write_until_killed(writer) -> None:
            while True:
                await writer.write(api, observations)
                if observations.acknowledged >= until and process.returncode is None:
                    process.send_signal(signal.SIGKILL)  # Other writers have requests in flight.

        results = await asyncio.gather(
            watcher.follow(api, observations),
            *(write_until_killed(writer) for writer in writers),
            return_exceptions=True,
        )
        for result in results:
            assert isinstance(result, ConnectionError | None), result


async def test_acknowledged_writes_survive_kill_9(tmp_path):
    rng = random.Random(SEED)
    observations, watcher = Observations(), Watcher()
    writers = [*(Writer(f"w{n}", rng) for n in range(6)), GroupWriter()]
    for _ in range(KILLS):
        await run_and_kill(tmp_path / "d", rng, observations, writers, watcher)
    async with serving(tmp_path / "d") as (_, api):  # The watch alone must have the same state as a list.
        listed = json.loads((await api.request(HttpRequest("GET", MAPS))).body)
        version = int(listed["metadata"]["resourceVersion"])
        for writer in writers:
            writer.check({item["metadata"]["name"]: item for item in listed["items"]})
        last = json.loads((await api.request(HttpRequest("POST", MAPS, body=b'{"metadata":{"name":"last"}}'))).body)
        assert int(last["metadata"]["resourceVersion"]) == version + 1
        await watcher.follow(api, observations, until="last")
    watched_objects = {name: obj for name, obj in watcher.state.items() if name != "last"}
    assert {name: obj["metadata"]["resourceVersion"] for name, obj in watched_objects.items()} == {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for item in listed["items"]
        if item["metadata"]["name"] != "kube-root-ca.crt"
    }
    print(f"{KILLS} kills, {observations.acknowledged} writes acknowledged, {len(observations.versions)} versions seen")
