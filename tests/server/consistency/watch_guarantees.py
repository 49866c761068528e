"""Checks of the guarantees of watches, as etcd states them, on received events and actual commits.

- Ordered: events come in the order of their versions.
- Unique: an event never comes twice, even after a resume.
- Reliable: there is no gap between events.
- Resumable: a broken watch resumes after the last version it received.
- Bookmarkable: every event that is not newer than a bookmark comes before it.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Stream:
    """One watch. `start` is the version from which it resumes, or None if it starts with the current objects."""

    start: int | None
    frames: list = field(default_factory=list)  # (type, object)


@dataclass
class Watcher:
    """Consecutive watches. Each one resumes the previous one, unless it starts with the current objects."""

    label: str | None = None  # only objects that carry it
    namespace: str | None = None
    streams: list = field(default_factory=list)

    def selects(self, obj):
        metadata = obj["metadata"]
        if self.namespace and metadata["namespace"] != self.namespace:
            return False
        return self.label is None or self.label in (metadata.get("labels") or {})


class CommitHistory:
    """Records every commit of a server's store, in order."""

    def __init__(self, server):
        store = server.store
        # (version, key, object before, object after): the objects of a new server come first
        self.commits = [
            (stored.version, tuple(key.split("/")), None, stored.object)
            for key, stored in store.table("", "configmaps").scan(None)
        ]
        original_put, delete = store.put, store.delete

        def noted(table, before, stored, after):
            if table is store.table("", "configmaps"):
                metadata = stored.object["metadata"]
                key = metadata["namespace"], metadata["name"]
                self.commits.append((stored.version, key, before and before.object, stored.object if after else None))
            return stored

        def tapped_put(table, obj, *remainder):
            metadata = obj["metadata"]
            before = table.get(metadata.get("namespace", ""), metadata["name"])
            return noted(table, before, original_put(table, obj, *remainder), True)

        store.put = tapped_put
        store.delete = lambda table, previous: noted(table, previous, delete(table, previous), False)

    def state(self, version):
        """Return the objects that existed at a version."""
        objects = {}
        for at, key, _, after in self.commits:
            if at > version:
                break
            objects.pop(key, None)
            if after:
                objects[key] = after
        return objects

    def events(self, watcher, after):
        """Return the events that a watcher must receive after a version: (version, type, name)."""
        events = []
        for version, key, before, now in self.commits:
            was = before is not None and watcher.selects(before)
            is_ = now is not None and watcher.selects(now)
            if version > after and (was or is_):
                events.append((version, "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED", key))
        return events


def violations(truth, watcher):
    """Count the guarantees that were violated for a watcher, with a line of explanation as the key."""
    violated = Counter()
    received, chain, began = Counter(), [], None
    for stream in watcher.streams:
        is_initial = stream.start is None
        since = stream.start
        live_names = {}
        stream_events = []
        for kind, obj in stream.frames:
            metadata = obj["metadata"]
            version = int(metadata["resourceVersion"])
            if kind == "BOOKMARK":
                if is_initial and "k8s.io/initial-events-end" in (metadata.get("annotations") or {}):
                    is_initial, since = False, version
                    expected = {key: obj for key, obj in truth.state(version).items() if watcher.selects(obj)}
                    if live_names != {key: obj["metadata"]["resourceVersion"] for key, obj in expected.items()}:
                        violated["reliable: the initial events are not what was there"] += 1
                    chain, began = [], version
                    received.clear()
                elif since is not None:
                    missed = [e for e in truth.events(watcher, since) if e[0] <= version and e not in stream_events]
                    if missed:
                        violated["bookmarkable: an event did not come before the bookmark that covers it"] += 1
                continue
            key = metadata["namespace"], metadata["name"]
            if is_initial:
                live_names[key] = metadata["resourceVersion"]
                continue
            stream_events.append((version, kind, key))
            chain.append((version, kind, key))
            received[version, key] += 1
        versions = [version for version, _, _ in stream_events]
        if versions != sorted(versions):
            violated["ordered: an older event came after a newer one"] += 1
        if since is not None and versions:
            expected = [event for event in truth.events(watcher, since) if event[0] <= max(versions)]
            if set(expected) - set(stream_events):
                violated["reliable: a change was passed over"] += 1
            if set(stream_events) - set(truth.events(watcher, -1)):
                violated["reliable: an event came that did not happen"] += 1
        if began is not None and chain:
            expected = [event for event in truth.events(watcher, began) if event[0] <= max(e[0] for e in chain)]
            if set(expected) - set(chain):
                violated["resumable: a change was lost between two streams"] += 1
        if any(count > 1 for count in received.values()):
            violated["unique: an event came twice"] += 1
    return violated
