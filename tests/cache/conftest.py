"""A fake API server of ConfigMaps with list and watch. Tests inject its faults."""

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


def encode_json(value):
    return json.dumps(value, separators=(",", ":")).encode()


def status(code, reason, **extra_fields):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, **extra_fields}


@dataclass
class FakeResponse:
    status: int
    body: bytes
    headers: dict = field(default_factory=dict)
    warnings: list = field(default_factory=list)


@dataclass
class WatchFault:
    """A fault of a watch after `after_frames` frames.

    `fault_type` is "end", "break", "mid" (the connection breaks inside a frame), "hang", or the code of an ERROR event.
    """

    after_frames: int
    fault_type: str = "break"


class FakeWatchStream:
    """The response to one watch request: it sends frames, a bookmark every minute, and ends after the timeout."""

    def __init__(self, server, is_selected, frames, timeout, fault):
        self.status, self.headers = 200, {}
        self._server, self._is_selected, self._fault = server, is_selected, fault
        self._frames = deque(frames)
        self._sent_count = 0
        self._ends_at = asyncio.get_running_loop().time() + timeout
        self._has_frames = asyncio.Event()
        self.broken = False

    def push(self, kind, obj):
        if self._is_selected(obj):
            self._frames.append((kind, obj))
            self._has_frames.set()

    def break_after_sent_frames(self, fault_type="break"):
        self._fault = WatchFault(self._sent_count, fault_type)
        self._has_frames.set()

    def remove_faults(self):
        if self._fault and self._sent_count < self._fault.after_frames:
            self._fault = None

    async def read(self):
        loop = asyncio.get_running_loop()
        bookmark_at = loop.time() + 60
        while True:
            if self._fault and self._sent_count >= self._fault.after_frames:
                match self._fault.fault_type:
                    case "end":
                        return b""
                    case "mid":
                        self._fault = WatchFault(0, "break")
                        return b'{"type":"MODIFIED","obj'
                    case "hang":
                        await loop.create_future()
                    case "break":
                        raise ConnectionResetError("cut")
                    case code:
                        self._fault = WatchFault(0, "end")
                        error = status(int(code), "Expired" if code == "410" else "InternalError")
                        return encode_json({"type": "ERROR", "object": error}) + b"\n"
            if self._frames:
                kind, obj = self._frames.popleft()
                self._sent_count += 1
                return encode_json({"type": kind, "object": obj}) + b"\n"
            if loop.time() >= self._ends_at:
                return b""
            if loop.time() >= bookmark_at:
                self._frames.append(("BOOKMARK", self._server.bookmark()))
                bookmark_at += 60
                continue
            self._has_frames.clear()
            try:
                async with asyncio.timeout_at(min(self._ends_at, bookmark_at)):
                    await self._has_frames.wait()
            except TimeoutError:
                pass

    async def close(self):
        self._server.watches.remove(self)


class FakeServer:
    """A Transport to a fake server of ConfigMaps. It has integer versions, and a history from which a watch resumes."""

    def __init__(self):
        self.version = 10
        self.oldest_version = 10  # versions before this one are forgotten
        self.objects = {}  # (namespace, name) -> object
        self.history = []  # (version, type, object)
        self.watches = []
        self.requests = []  # "list", "page", "watch", "initial", "check", in order
        self.streams = True  # whether it offers initial events
        self.ignores_initial_events = False
        self.watch_faults = deque()  # the faults of the next watches
        self.failures = deque()  # the errors of the next lists and watches; None means success
        self.uids = 0
        self.after_page = None
        self.prefix = ""  # of every version; versions with a prefix are not integers

    # Changes and faults

    def put(self, name, payload=0, namespace="n", **metadata):
        existing = self.objects.get((namespace, name))
        self.version += 1
        if existing is None:
            self.uids += 1
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": existing["metadata"]["uid"] if existing else f"u{self.uids}",
        }
        obj = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {**meta, "resourceVersion": f"{self.prefix}{self.version}", **metadata},
            "data": {"value": str(payload)},
        }
        self.objects[namespace, name] = obj
        self._record_event("MODIFIED" if existing else "ADDED", obj)
        return obj

    def delete(self, name, namespace="n"):
        obj = self.objects.pop((namespace, name), None)
        if obj is None:
            return None
        self.version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": f"{self.prefix}{self.version}"}}
        self._record_event("DELETED", obj)
        return obj

    def _record_event(self, kind, obj):
        self.history.append((self.version, kind, obj))
        for watch in self.watches:
            watch.push(kind, obj)

    def compact(self):
        self.oldest_version = self.version

    def break_watches(self, fault_type="break"):
        for watch in list(self.watches):
            watch.break_after_sent_frames(fault_type)

    def remove_faults(self):
        """Remove all faults. A watch that hangs already continues to hang."""
        self.watch_faults.clear()
        self.failures.clear()
        for watch in self.watches:
            watch.remove_faults()

    def snapshot(self):
        return self.version, dict(self.objects)

    def restore(self, snapshot):
        """Restore a backup: versions go backwards, every connection breaks, and the server is down for a moment."""
        self.version, self.objects = snapshot[0], dict(snapshot[1])
        self.history = [entry for entry in self.history if entry[0] <= self.version]
        self.break_watches()
        self.failures.appendleft(NotSent("the server is down"))

    def bookmark(self, **annotations):
        meta = {
            "resourceVersion": f"{self.prefix}{self.version}",
            **({"annotations": annotations} if annotations else {}),
        }
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta}

    # Requests

    def _next_failure(self):
        failure = self.failures.popleft() if self.failures else None
        if isinstance(failure, Exception):
            raise failure
        return failure

    async def request(self, request):
        if request.path == "/api":
            return FakeResponse(200, encode_json(DISCOVERY))
        query = request.query or {}
        self.requests.append("page" if "continue" in query else "check" if query.get("limit") == "1" else "list")
        if failure := self._next_failure():
            return FakeResponse(failure["code"], encode_json(failure), headers={"Content-Type": "application/json"})
        limit = int(query.get("limit") or 0)
        if token := query.get("continue"):
            version, start = map(int, token.split(":"))
            if version < self.oldest_version:
                return FakeResponse(410, encode_json(status(410, "Expired")))
            state = self._state_at(version)
        else:
            version, start, state = self.version, 0, self.objects
        is_selected = self._is_selected(request.path)
        items = [state[key] for key in sorted(state) if is_selected(state[key])]
        page = items[start : start + limit] if limit else items
        meta = {"resourceVersion": f"{self.prefix}{version}"}
        if limit and start + limit < len(items):
            meta["continue"] = f"{version}:{start + limit}"
            if self.after_page:
                self.after_page()
        items_without_kind = [
            {key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in page
        ]
        return FakeResponse(
            200,
            encode_json({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta, "items": items_without_kind}),
        )

    def _state_at(self, version):
        state = dict(self.objects)
        for event_version, kind, obj in reversed([entry for entry in self.history if entry[0] > version]):
            key = obj["metadata"]["namespace"], obj["metadata"]["name"]
            previous_objects = [
                old
                for version_then, event_type, old in self.history
                if version_then < event_version
                and event_type != "DELETED"
                and (old["metadata"]["namespace"], old["metadata"]["name"]) == key
            ]
            if kind == "ADDED":
                state.pop(key, None)
            else:
                state[key] = previous_objects[-1]
        return state

    def _is_selected(self, path):
        segments = path.strip("/").split("/")
        namespace = segments[3] if "namespaces" in segments else None
        return lambda obj: namespace is None or obj["metadata"]["namespace"] == namespace

    async def stream(self, request):
        wants_initial_events = request.query.get("sendInitialEvents") == "true"
        self.requests.append("initial" if wants_initial_events else "watch")
        failure = self._next_failure()
        if wants_initial_events and not self.streams:
            failure = status(422, "Invalid")
        if failure:
            return ErrorResponse(failure)
        is_selected = self._is_selected(request.path)
        frames = []
        if wants_initial_events or self.ignores_initial_events:
            frames = [("ADDED", self.objects[key]) for key in sorted(self.objects) if is_selected(self.objects[key])]
            if not self.ignores_initial_events:
                frames.append(("BOOKMARK", self.bookmark(**{"k8s.io/initial-events-end": "true"})))
        fault = self.watch_faults.popleft() if self.watch_faults else None
        if not wants_initial_events:
            version = int(request.query["resourceVersion"].removeprefix(self.prefix))
            if version < self.oldest_version:
                fault = WatchFault(0, "410")
            frames = [
                (kind, obj) for version_then, kind, obj in self.history if version_then > version and is_selected(obj)
            ]
        stream = FakeWatchStream(self, is_selected, frames, float(request.query["timeoutSeconds"]), fault)
        self.watches.append(stream)
        return stream

    async def close(self):
        pass


class ErrorResponse:
    def __init__(self, failure):
        self.status, self.headers = failure["code"], {"Content-Type": "application/json"}
        self._body = [encode_json(failure), b""]

    async def read(self):
        return self._body.pop(0)

    async def close(self):
        pass


class CacheHarness:
    """A fake server, a cache of its ConfigMaps, and the changes that the cache reported to a handler."""

    def __init__(self, seed=0, **watch):
        self.world = virtual.world(seed)
        self.server = FakeServer()
        self.cache = Cache(Client(self.server, self.world), self.world)
        self.view = self.cache.watch(ConfigMap, **watch)
        self.changes = []  # (key, old (uid, version) or None, new (uid, version) or None)
        self.view.subscribe(self._record_change)

    def _record_change(self, change):
        def identity_of(snapshot):
            return None if snapshot is None else (snapshot.uid, snapshot.version)

        self.changes.append(((change.namespace, change.name), identity_of(change.old), identity_of(change.new)))

    @property
    def health(self):
        (health,) = self.view.health()
        return health

    def check_objects(self):
        """Check that the reported changes lead to the cached objects, and return these objects."""
        objects = {(obj.namespace, obj.name): obj for obj in self.view.list()}
        state = {}
        for key, old, new in self.changes:
            assert state.get(key) == old, f"{key}: change {old} -> {new} but the state is {state.get(key)}"
            assert old is None or new is None or old[0] == new[0], "another uid is another object"
            state[key] = new
        state = {key: version for key, version in state.items() if version}
        assert state == {key: (obj.uid, as_integer(obj.resource_version)) for key, obj in objects.items()}
        return objects

    def assert_converged(self):
        """Check that the cache has the objects of the server and no pending own writes."""
        assert self.check_objects() == self.server.objects
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
def fakes():
    """Return the helpers of this file as attributes: `CacheHarness`, `WatchFault`, `status` and `NotSent`.

    Create a `CacheHarness` inside `virtual.run`.
    """

    class Fakes:
        pass

    fakes = Fakes()
    fakes.CacheHarness, fakes.WatchFault, fakes.status, fakes.NotSent = CacheHarness, WatchFault, status, NotSent
    return fakes
