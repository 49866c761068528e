"""A scripted server with list and watch, in which every fault can be injected."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.cache import Cache
from fairlead.cache.entries import as_integer
from fairlead.client.client import Client
from fairlead.client.transport import NotSent
from fairlead.testing import virtual

DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "configmaps",
                            "responseKind": {"kind": "ConfigMap"},
                            "scope": "Namespaced",
                            "verbs": ["list", "watch"],
                        }
                    ],
                }
            ],
        }
    ],
}


def encoded(value):
    return json.dumps(value, separators=(",", ":")).encode()


def status(code, reason, **more):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, **more}


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict = field(default_factory=dict)
    warnings: list = field(default_factory=list)


@dataclass
class Cut:
    """A fault of a watch after some frames: `end`, `break`, `mid` (inside a frame), `hang`, or the code of an ERROR."""

    after: int
    how: str = "break"


class Stream:
    """One watch: its frames, a bookmark each minute, and an end after the timeout."""

    def __init__(self, server, selects, frames, timeout, cut):
        self.status, self.headers = 200, {}
        self._server, self._selects, self._cut = server, selects, cut
        self._frames = deque(frames)
        self._sent = 0
        self._ends = asyncio.get_running_loop().time() + timeout
        self._more = asyncio.Event()
        self.broken = False

    def push(self, kind, obj):
        if self._selects(obj):
            self._frames.append((kind, obj))
            self._more.set()

    def breaks(self, how="break"):
        self._cut = Cut(self._sent, how)
        self._more.set()

    def calm(self):
        if self._cut and self._sent < self._cut.after:
            self._cut = None

    async def read(self):
        loop = asyncio.get_running_loop()
        bookmark_at = loop.time() + 60
        while True:
            if self._cut and self._sent >= self._cut.after:
                match self._cut.how:
                    case "end":
                        return b""
                    case "mid":
                        self._cut = Cut(0, "break")
                        return b'{"type":"MODIFIED","obj'
                    case "hang":
                        await loop.create_future()
                    case "break":
                        raise ConnectionResetError("cut")
                    case code:
                        self._cut = Cut(0, "end")
                        error = status(int(code), "Expired" if code == "410" else "InternalError")
                        return encoded({"type": "ERROR", "object": error}) + b"\n"
            if self._frames:
                kind, obj = self._frames.popleft()
                self._sent += 1
                return encoded({"type": kind, "object": obj}) + b"\n"
            if loop.time() >= self._ends:
                return b""
            if loop.time() >= bookmark_at:
                self._frames.append(("BOOKMARK", self._server.bookmark()))
                bookmark_at += 60
                continue
            self._more.clear()
            try:
                async with asyncio.timeout_at(min(self._ends, bookmark_at)):
                    await self._more.wait()
            except TimeoutError:
                pass

    async def close(self):
        self._server.watches.remove(self)


class Server:
    """A Transport to a server of ConfigMaps with integer versions and a history to resume from."""

    def __init__(self):
        self.version = 10
        self.oldest = 10  # versions before this one are forgotten
        self.objects = {}  # (namespace, name) -> object
        self.history = []  # (version, type, object)
        self.watches = []
        self.requests = []  # "list", "page", "watch", "initial", "check", in order
        self.streams = True  # whether it offers initial events
        self.ignores_initial_events = False
        self.cuts = deque()  # the faults of the next watches
        self.failures = deque()  # the errors of the next lists and watches; None means success
        self.uids = 0
        self.after_page = None
        self.prefix = ""  # of every version; versions with a prefix are not integers

    # Changes and faults

    def put(self, name, data=0, namespace="n", **metadata):
        known = self.objects.get((namespace, name))
        self.version += 1
        if known is None:
            self.uids += 1
        meta = {"name": name, "namespace": namespace, "uid": known["metadata"]["uid"] if known else f"u{self.uids}"}
        obj = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {**meta, "resourceVersion": f"{self.prefix}{self.version}", **metadata},
            "data": {"value": str(data)},
        }
        self.objects[namespace, name] = obj
        self._happened("MODIFIED" if known else "ADDED", obj)
        return obj

    def delete(self, name, namespace="n"):
        obj = self.objects.pop((namespace, name), None)
        if obj is None:
            return None
        self.version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": f"{self.prefix}{self.version}"}}
        self._happened("DELETED", obj)
        return obj

    def _happened(self, kind, obj):
        self.history.append((self.version, kind, obj))
        for watch in self.watches:
            watch.push(kind, obj)

    def compact(self):
        self.oldest = self.version

    def break_watches(self, how="break"):
        for watch in list(self.watches):
            watch.breaks(how)

    def calm(self):
        """Remove all faults. A watch that already hangs stays so."""
        self.cuts.clear()
        self.failures.clear()
        for watch in self.watches:
            watch.calm()

    def snapshot(self):
        return self.version, dict(self.objects)

    def restore(self, snapshot):
        """Restore a backup: versions go backwards, and every connection breaks."""
        self.version, self.objects = snapshot[0], dict(snapshot[1])
        self.history = [entry for entry in self.history if entry[0] <= self.version]
        self.break_watches()

    def bookmark(self, **annotations):
        meta = {
            "resourceVersion": f"{self.prefix}{self.version}",
            **({"annotations": annotations} if annotations else {}),
        }
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta}

    # Requests

    def _fails(self):
        failure = self.failures.popleft() if self.failures else None
        if isinstance(failure, Exception):
            raise failure
        return failure

    async def request(self, request):
        if request.path == "/api":
            return Answer(200, encoded(DISCOVERY))
        query = request.query or {}
        self.requests.append("page" if "continue" in query else "check" if query.get("limit") == "1" else "list")
        if failure := self._fails():
            return Answer(failure["code"], encoded(failure), headers={"Content-Type": "application/json"})
        limit = int(query.get("limit") or 0)
        if token := query.get("continue"):
            version, start = map(int, token.split(":"))
            if version < self.oldest:
                return Answer(410, encoded(status(410, "Expired")))
            state = self._state_at(version)
        else:
            version, start, state = self.version, 0, self.objects
        selects = self._selects(request.path)
        items = [state[key] for key in sorted(state) if selects(state[key])]
        page = items[start : start + limit] if limit else items
        meta = {"resourceVersion": f"{self.prefix}{version}"}
        if limit and start + limit < len(items):
            meta["continue"] = f"{version}:{start + limit}"
            if self.after_page:
                self.after_page()
        bare = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in page]
        return Answer(200, encoded({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta, "items": bare}))

    def _state_at(self, version):
        state = dict(self.objects)
        for past, kind, obj in reversed([entry for entry in self.history if entry[0] > version]):
            key = obj["metadata"]["namespace"], obj["metadata"]["name"]
            before = [
                old
                for when, what, old in self.history
                if when < past and what != "DELETED" and (old["metadata"]["namespace"], old["metadata"]["name"]) == key
            ]
            if kind == "ADDED":
                state.pop(key, None)
            else:
                state[key] = before[-1]
        return state

    def _selects(self, path):
        parts = path.strip("/").split("/")
        namespace = parts[3] if "namespaces" in parts else None
        return lambda obj: namespace is None or obj["metadata"]["namespace"] == namespace

    async def stream(self, request):
        initial = request.query.get("sendInitialEvents") == "true"
        self.requests.append("initial" if initial else "watch")
        failure = self._fails()
        if initial and not self.streams:
            failure = status(422, "Invalid")
        if failure:
            return _Refusal(failure)
        selects = self._selects(request.path)
        frames = []
        if initial or self.ignores_initial_events:
            frames = [("ADDED", self.objects[key]) for key in sorted(self.objects) if selects(self.objects[key])]
            if not self.ignores_initial_events:
                frames.append(("BOOKMARK", self.bookmark(**{"k8s.io/initial-events-end": "true"})))
        cut = self.cuts.popleft() if self.cuts else None
        if not initial:
            version = int(request.query["resourceVersion"].removeprefix(self.prefix))
            if version < self.oldest:
                cut = Cut(0, "410")
            frames = [(kind, obj) for when, kind, obj in self.history if when > version and selects(obj)]
        stream = Stream(self, selects, frames, float(request.query["timeoutSeconds"]), cut)
        self.watches.append(stream)
        return stream

    async def close(self):
        pass


class _Refusal:
    def __init__(self, failure):
        self.status, self.headers = failure["code"], {"Content-Type": "application/json"}
        self._body = [encoded(failure), b""]

    async def read(self):
        return self._body.pop(0)

    async def close(self):
        pass


class World:
    """A server, a cache of it, and the changes that a handler was called with."""

    def __init__(self, seed=0, **watch):
        self.world = virtual.world(seed)
        self.server = Server()
        self.cache = Cache(Client(self.server, self.world), self.world)
        self.view = self.cache.watch(ConfigMap, **watch)
        self.changes = []  # (key, old (uid, version) or None, new (uid, version) or None)
        self.view.subscribe(self._note)

    def _note(self, change):
        def version(side):
            return None if side is None else (side.uid, side.version)

        self.changes.append(((change.namespace, change.name), version(change.old), version(change.new)))

    @property
    def health(self):
        (health,) = self.view.health()
        return health

    def seen(self):
        """Return the objects of the reader, and check that the changes add up to the same."""
        objects = {(obj.namespace, obj.name): obj for obj in self.view.list()}
        state = {}
        for key, old, new in self.changes:
            assert state.get(key) == old, f"{key}: change {old} -> {new} but the state is {state.get(key)}"
            assert old is None or new is None or old[0] == new[0], "another uid is another object"
            state[key] = new
        state = {key: version for key, version in state.items() if version}
        assert state == {key: (obj.uid, as_integer(obj.resource_version)) for key, obj in objects.items()}
        return objects

    def assert_true(self):
        """Check that the cache has the objects of the server, at the version in its health."""
        assert self.seen() == self.server.objects
        overlay = self.view._informers[0].overlay
        assert not overlay
        assert not overlay._versions

    async def __aenter__(self):
        await self.cache.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.cache.__aexit__(*error)
        assert not self.server.watches, "a watch was left open"


@pytest.fixture(scope="session")
def chaos():
    """`World` of a scripted server, `Cut`, `Server`, `status` and `NotSent`, to be used inside `virtual.run`."""

    class Chaos:
        pass

    chaos = Chaos()
    chaos.World, chaos.Cut, chaos.status, chaos.NotSent = World, Cut, status, NotSent
    return chaos
