"""Run random histories with faults on the embedded server in virtual time. A history depends only on its seed."""

import asyncio
import json
from collections import defaultdict
from random import Random

from tests.server.consistency.linearizability import Operation
from tests.server.consistency.watch_guarantees import CommitHistory, Stream, Watcher

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.faults import Fault, Plan
from fairlead.testing import virtual
from fairlead.testing.network import SlowTransport

WRITES = ("create", "update", "patch", "delete")
TROUBLE = [
    Fault(delay=(0.0, 0.5), probability=0.3),
    Fault(drop="before", verb=WRITES, probability=0.05),
    Fault(drop="after", verb=WRITES, probability=0.1),
    Fault(status=504, verb=WRITES, probability=0.05),
    Fault(status=503, verb="get", probability=0.05),
    Fault(status=410, verb="watch", probability=0.05),
    Fault(stale=3.0, verb=("get", "list", "watch"), probability=0.4),
    Fault(cut=(0.0, 20.0), verb="watch", probability=0.7),
]
SPACES, NAMES = ("default", "kube-public"), "abc"


class History:
    """Writers and watchers on one server. `operations` (by key) and `watchers` record the responses and events."""

    def __init__(self, seed, step_count):
        self.random = Random(seed)
        self.world = virtual.world(seed)
        self.server = Server(self.world)
        self.server.inject(Plan(TROUBLE, seed))
        self.truth = CommitHistory(self.server)
        self.transport = SlowTransport(self.server.transport(), self.world, request=(0.0, 0.2), watch=(0.0, 0.0))
        self.operations = defaultdict(list)
        self.turns = step_count
        self.write_count = 0
        self.watchers = [
            Watcher(),
            Watcher(namespace=SPACES[0]),
            Watcher(label="even"),
            Watcher(label="even", namespace=SPACES[1]),
        ]

    async def run(self):
        watching = [asyncio.create_task(self.watch(watcher)) for watcher in self.watchers]
        await asyncio.gather(*(self.write() for _ in range(4)))
        await asyncio.sleep(200)  # bookmarks come, and the last changes
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        return self

    # Writers

    async def write(self):
        for _ in range(self.turns):
            await asyncio.sleep(self.random.expovariate(2))
            key = self.random.choice(SPACES), self.random.choice(NAMES)
            verb = self.random.choices(["get", "create", "put", "cas", "delete"], [3, 3, 2, 4, 2])[0]
            await getattr(self, verb)(key)

    async def get(self, key):
        status, body = await self.operate(key, "get", "GET")
        return body if status == 200 else None

    async def create(self, key):
        await self.operate(key, "create", "POST", self.body(key))

    async def put(self, key):
        await self.operate(key, "put", "PUT", self.body(key))

    async def cas(self, key):
        if current_value := await self.get(key):
            await asyncio.sleep(self.random.expovariate(2))
            expected = current_value["data"]["v"]
            body = self.body(key, resourceVersion=current_value["metadata"]["resourceVersion"])
            await self.operate(key, "cas", "PUT", body, expected)

    async def delete(self, key):
        await self.operate(key, "delete", "DELETE")

    def body(self, key, **metadata):
        self.write_count += 1
        labels = {"even": ""} if self.write_count % 2 == 0 else {}
        return {"metadata": {"name": key[1], "labels": labels, **metadata}, "data": {"v": f"v{self.write_count}"}}

    async def operate(self, key, verb, method, body=None, expected=None):
        path = f"/api/v1/namespaces/{key[0]}/configmaps" + (f"/{key[1]}" if method != "POST" else "")
        start = self.world.clock.monotonic()
        encoded_body = json.dumps(body).encode() if body else None
        try:
            answer = await self.transport.request(HttpRequest(method, path, body=encoded_body))
            status, decoded = answer.status, json.loads(answer.body)
        except ConnectionError:
            status, decoded = 0, {}
        end = self.world.clock.monotonic()
        value = body["data"]["v"] if body else None
        if verb == "get":
            value = decoded["data"]["v"] if status == 200 else None
        answers = {200: "ok", 201: "ok", 404: "missing", 409: "exists" if verb == "create" else "conflict"}
        if verb == "get" and status == 404:
            answers[404] = "ok"
        if status in answers or verb != "get":
            answer = answers.get(status, "unknown")
            self.operations[key].append(Operation(verb, start, end, answer, value, expected))
        return status, decoded

    # Watchers

    async def watch(self, watcher):
        last = None
        while True:
            stream = Stream(last)
            watcher.streams.append(stream)
            last = await self.read(watcher, stream)

    async def read(self, watcher, stream):
        """Read one watch to its end. Return the version to resume from, or None to start with the current objects."""
        timeout = self.random.choice(["4", "6", "100"])  # a bookmark comes two seconds before the end
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": timeout}
        if watcher.label:
            query["labelSelector"] = watcher.label
        last, is_synced = stream.start, stream.start is not None
        if is_synced:
            query["resourceVersion"] = str(last)
        else:
            modes = [
                {"resourceVersion": "0"},
                {},
                {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
            ]
            query |= self.random.choice(modes)
        namespace_path = f"/namespaces/{watcher.namespace}" if watcher.namespace else ""
        try:
            opened = await self.transport.stream(HttpRequest("GET", f"/api/v1{namespace_path}/configmaps", query=query))
        except ConnectionError:
            return last
        remainder = b""
        try:
            while chunk := await opened.read():
                *lines, remainder = (remainder + chunk).split(b"\n")
                for event in map(json.loads, lines):
                    if event["type"] == "ERROR":
                        return None if event["object"]["code"] == 410 else last
                    stream.frames.append((event["type"], event["object"]))
                    annotations = event["object"]["metadata"].get("annotations") or {}
                    is_synced = is_synced or "k8s.io/initial-events-end" in annotations
                    if is_synced:
                        last = int(event["object"]["metadata"]["resourceVersion"])
        except ConnectionError:
            pass
        finally:
            await opened.close()
        return last if is_synced else None


def run_history(seed, step_count=30):
    """Run one history and return its record."""

    async def main():
        return await History(seed, step_count).run()

    return virtual.run(main())
