"""What a watch promises, as etcd's guarantees state it, judged on what watches were told and what truly happened.

Ordered: by version. Unique: no event twice, over resumptions too. Reliable: no gap between what was told. Resumable: a
watch that broke goes on after the last version it told. Bookmarkable: whatever is not newer than a bookmark was told
before it.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Stream:
    """One watch from its beginning to its end. `start` is the version it goes on from (None: it tells the present)."""

    start: int | None
    frames: list = field(default_factory=list)  # (type, object)


@dataclass
class Watcher:
    """Streams one after another, each resuming the one before unless it starts with the present again."""

    label: str | None = None  # only objects that carry it
    namespace: str | None = None
    streams: list = field(default_factory=list)

    def selects(self, obj):
        metadata = obj["metadata"]
        if self.namespace and metadata["namespace"] != self.namespace:
            return False
        return self.label is None or self.label in (metadata.get("labels") or {})


class Truth:
    """Every commit of a server's store, in order."""

    def __init__(self, server):
        self.commits = []  # (version, key, object before, object after)
        store = server.store
        put, delete = store.put, store.delete

        def noted(table, before, stored, after):
            if table is store.table("", "configmaps"):
                metadata = stored.object["metadata"]
                key = metadata["namespace"], metadata["name"]
                self.commits.append((stored.version, key, before and before.object, stored.object if after else None))
            return stored

        def tapped_put(table, obj, *rest):
            metadata = obj["metadata"]
            before = table.get(metadata.get("namespace", ""), metadata["name"])
            return noted(table, before, put(table, obj, *rest), True)

        store.put = tapped_put
        store.delete = lambda table, previous: noted(table, previous, delete(table, previous), False)

    def state(self, version):
        """The objects there were at a version."""
        there = {}
        for at, key, _, after in self.commits:
            if at > version:
                break
            there.pop(key, None)
            if after:
                there[key] = after
        return there

    def events(self, watcher, after):
        """What a watcher is to be told of what happened after a version: (version, type, name)."""
        told = []
        for version, key, before, now in self.commits:
            was = before is not None and watcher.selects(before)
            is_ = now is not None and watcher.selects(now)
            if version > after and (was or is_):
                told.append((version, "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED", key))
        return told


def violations(truth, watcher):
    """The promises that were broken to a watcher, each with a line about how."""
    found = Counter()
    told, chain, began = Counter(), [], None
    for stream in watcher.streams:
        initial = stream.start is None
        since = stream.start
        present = {}
        got = []
        for kind, obj in stream.frames:
            metadata = obj["metadata"]
            version = int(metadata["resourceVersion"])
            if kind == "BOOKMARK":
                if initial and "k8s.io/initial-events-end" in (metadata.get("annotations") or {}):
                    initial, since = False, version
                    wanted = {key: obj for key, obj in truth.state(version).items() if watcher.selects(obj)}
                    if present != {key: obj["metadata"]["resourceVersion"] for key, obj in wanted.items()}:
                        found["reliable: the initial events are not what was there"] += 1
                    chain, began = [], version
                    told.clear()
                elif since is not None:
                    missed = [e for e in truth.events(watcher, since) if e[0] <= version and e not in got]
                    if missed:
                        found["bookmarkable: a change was not told before the bookmark that covers it"] += 1
                continue
            key = metadata["namespace"], metadata["name"]
            if initial:
                present[key] = metadata["resourceVersion"]
                continue
            got.append((version, kind, key))
            chain.append((version, kind, key))
            told[version, key] += 1
        versions = [version for version, _, _ in got]
        if versions != sorted(versions):
            found["ordered: an older change was told after a newer one"] += 1
        if since is not None and versions:
            wanted = [event for event in truth.events(watcher, since) if event[0] <= max(versions)]
            if set(wanted) - set(got):
                found["reliable: a change was passed over"] += 1
            if set(got) - set(truth.events(watcher, -1)):
                found["reliable: something was told that did not happen"] += 1
        if began is not None and chain:
            wanted = [event for event in truth.events(watcher, began) if event[0] <= max(e[0] for e in chain)]
            if set(wanted) - set(chain):
                found["resumable: a change was lost between two streams"] += 1
        if any(count > 1 for count in told.values()):
            found["unique: a change was told twice"] += 1
    return found
