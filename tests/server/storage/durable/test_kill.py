"""kill -9 in the middle of writes, again and again, and what the next process knows."""

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
GONE = "gone"
TOGETHER = 5


@dataclass
class Book:
    """Everything that any client was ever told."""

    versions: dict[int, Any] = field(default_factory=dict)  # version -> the one change it stands for
    highest: int = 0
    acknowledged: int = 0

    def told(self, version: int, change: Any) -> None:
        """A version stands for one change, whoever tells of it and however often."""
        assert self.versions.setdefault(version, change) == change, f"version {version} was handed out twice"
        self.highest = max(self.highest, version)


class Writer:
    """Writes one object, one request at a time. What is stored is what was acknowledged, or the one in flight."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name, self.chance, self.count = name, chance, 0
        self.sure: Any = GONE
        self.maybe: Any = GONE

    async def write(self, api: HttpTransport, book: Book) -> None:
        self.count += 1
        delete = self.sure != GONE and self.chance.random() < 0.2
        self.maybe = GONE if delete else {"n": str(self.count), "again": str(self.count), "pad": "x" * 500}
        body = json.dumps({"metadata": {"name": self.name}, "data": self.maybe}).encode()
        if delete:
            reply = await api.request(HttpRequest("DELETE", f"{MAPS}/{self.name}"))
        elif self.sure == GONE:
            reply = await api.request(HttpRequest("POST", MAPS, body=body))
        else:
            reply = await api.request(HttpRequest("PUT", f"{MAPS}/{self.name}", body=body))
        assert reply.status in (200, 201), reply.body
        self.sure = self.maybe
        book.acknowledged += 1
        if not delete:
            made = json.loads(reply.body)
            book.told(int(made["metadata"]["resourceVersion"]), (self.name, made["data"]))

    def check(self, stored: dict[str, Any]) -> None:
        now = stored[self.name]["data"] if self.name in stored else GONE
        assert now in (self.sure, self.maybe), f"{self.name} is {now}, not {self.sure} nor {self.maybe}"
        self.sure = self.maybe = now


class Collector:
    """Creates a few objects and deletes them in one request: all of them, or none."""

    def __init__(self) -> None:
        self.made = 0
        self.deleting = False

    async def write(self, api: HttpTransport, book: Book) -> None:
        if self.made < TOGETHER:
            body = {"metadata": {"name": f"together-{self.made}", "labels": {"together": "yes"}}}
            reply = await api.request(HttpRequest("POST", MAPS, body=json.dumps(body).encode()))
            assert reply.status == 201, reply.body
            self.made += 1
        else:
            self.deleting = True
            reply = await api.request(HttpRequest("DELETE", MAPS, query={"labelSelector": "together=yes"}))
            assert reply.status == 200, reply.body
            self.made, self.deleting = 0, False

    def check(self, stored: dict[str, Any]) -> None:
        found = sum(name.startswith("together-") for name in stored)
        assert found in ((0, TOGETHER) if self.deleting else (self.made, self.made + 1))
        self.made, self.deleting = found, False


@contextlib.asynccontextmanager
async def serving(folder):
    """`fairlead serve --data` in a process of its own; killed at the end, never asked to stop."""
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
    """Follows the config maps from one process to the next, and never lists them."""

    def __init__(self) -> None:
        self.version = 0
        self.state: dict[str, Any] = {}

    async def follow(self, api: HttpTransport, book: Book, until: str = "") -> None:
        stream = await api.stream(
            HttpRequest("GET", MAPS, query={"watch": "true", "resourceVersion": str(self.version)})
        )
        left = b""
        try:
            while until not in self.state and (chunk := await stream.read()):
                *lines, left = (left + chunk).split(b"\n")
                for line in lines:
                    self.see(json.loads(line), book)
        finally:
            await stream.close()

    def see(self, frame: dict[str, Any], book: Book) -> None:
        assert frame["type"] in ("ADDED", "MODIFIED", "DELETED"), frame
        metadata = frame["object"]["metadata"]
        name, version = metadata["name"], int(metadata["resourceVersion"])
        assert version > self.version
        self.version = version
        if frame["type"] == "DELETED":
            book.told(version, (name, GONE))
            del self.state[name]
        else:
            book.told(version, (name, frame["object"].get("data")) if not name.startswith("together-") else name)
            self.state[name] = frame["object"]


async def one_life(folder, chance, book, writers, watcher) -> None:
    """Start, compare with what was acknowledged, write, and die."""
    async with serving(folder) as (process, api):
        listed = json.loads((await api.request(HttpRequest("GET", MAPS))).body)
        stored = {item["metadata"]["name"]: item for item in listed["items"]}
        version = int(listed["metadata"]["resourceVersion"])
        assert version >= book.highest, "a version that was told is unknown now"
        for writer in writers:
            writer.check(stored)
        if not watcher.version:
            watcher.version = version
        until = book.acknowledged + chance.randrange(1, 150)

        async def keep_on(writer) -> None:
            while True:
                await writer.write(api, book)
                if book.acknowledged >= until and process.returncode is None:
                    process.send_signal(signal.SIGKILL)  # whatever the others have in flight

        results = await asyncio.gather(
            watcher.follow(api, book), *(keep_on(writer) for writer in writers), return_exceptions=True
        )
        for result in results:
            assert isinstance(result, ConnectionError | None), result


async def test_what_was_acknowledged_survives_kill_9(tmp_path):
    chance = random.Random(SEED)
    book, watcher = Book(), Watcher()
    writers = [*(Writer(f"w{n}", chance) for n in range(6)), Collector()]
    for _ in range(KILLS):
        await one_life(tmp_path / "d", chance, book, writers, watcher)
    async with serving(tmp_path / "d") as (_, api):  # the watch alone knows as much as a list
        listed = json.loads((await api.request(HttpRequest("GET", MAPS))).body)
        version = int(listed["metadata"]["resourceVersion"])
        for writer in writers:
            writer.check({item["metadata"]["name"]: item for item in listed["items"]})
        last = json.loads((await api.request(HttpRequest("POST", MAPS, body=b'{"metadata":{"name":"last"}}'))).body)
        assert int(last["metadata"]["resourceVersion"]) == version + 1
        await watcher.follow(api, book, until="last")
    known = {name: obj for name, obj in watcher.state.items() if name != "last"}
    assert {name: obj["metadata"]["resourceVersion"] for name, obj in known.items()} == {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for item in listed["items"]
        if item["metadata"]["name"] != "kube-root-ca.crt"
    }
    print(f"{KILLS} kills, {book.acknowledged} writes acknowledged, {len(book.versions)} versions told")
