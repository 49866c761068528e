"""What a cluster's controller manager does that people forget is not the API server: off unless asked for.

`gc` deletes what lost its owners, and carries out foreground and orphan deletion. `namespace` empties a namespace that
is being deleted and lets it go. Both work on the loop right after the write that gave them cause, in its order.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import StatusError
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs.delete import DeleteOptions, delete_object
from fairlead.server.write.metadata import FOREGROUND, ORPHAN

if TYPE_CHECKING:
    from fairlead.server.app import Server

Key = tuple[str, str, str, str]  # group, plural, namespace, name
NAMES = ("gc", "namespace")


class Controllers:
    """The controllers that were asked for, and what they have yet to look at."""

    def __init__(self, server: "Server", names: frozenset[str]) -> None:
        unknown = names - set(NAMES)
        if unknown:
            raise ValueError(f"no such controller: {', '.join(sorted(unknown))}; there are {' and '.join(NAMES)}")
        self._server = server
        self._gc = "gc" in names
        self._namespaces = "namespace" in names
        self._live: dict[str, Key] = {}  # uid -> where it is
        self._dependents: dict[str, dict[Key, None]] = {}  # owner's uid -> those that name it, in order
        self._work: deque[Callable[[], None]] = deque()
        self._busy = False

    def after_write(self, resource: Resource, previous: Stored | None, stored: Stored, deleted: bool) -> None:
        """Called after each committed write."""
        metadata = stored.object["metadata"]
        key = (resource.group, resource.plural, metadata.get("namespace", ""), metadata["name"])
        if self._gc:
            self._index(key, previous, stored, deleted)
        if self._namespaces:
            namespace = metadata["name"] if _is_namespace(resource) and not deleted else metadata.get("namespace", "")
            if namespace and (_is_namespace(resource) or deleted):
                self._later(lambda: self._empty(namespace))

    def rebuild(self, pause: float) -> None:
        """Forget what was seen and, after a pause, judge what is stored: by an earlier process, or not undone."""
        self._live.clear()
        self._dependents.clear()
        self._work.clear()
        self._busy = True  # all of it is indexed before anything is judged
        for (group, plural), table in list(self._server.store.tables()):
            resource = self._server.registry.storage(group, plural)
            if resource is not None:
                for _, stored in list(table.scan(None)):
                    self.after_write(resource, None, stored, False)
        if pause:
            asyncio.get_running_loop().call_later(pause, self._drain)
        else:
            self._drain()

    def _later(self, work: Callable[[], None]) -> None:
        self._work.append(work)
        if self._busy:
            return
        self._busy = True
        try:
            asyncio.get_running_loop().call_soon(self._drain)
        except RuntimeError:  # no loop: the server is used from plain functions
            self._drain()

    def _drain(self) -> None:
        try:
            while self._work:
                try:
                    self._work.popleft()()
                except StatusError:
                    continue  # someone else was faster: what they did comes by as a change of its own
        finally:
            self._busy = False

    def _index(self, key: Key, previous: Stored | None, stored: Stored, deleted: bool) -> None:
        metadata = stored.object["metadata"]
        uid = metadata["uid"]
        before = _owners(previous.object) if previous else set()
        after = set() if deleted else _owners(stored.object)
        for owner in before - after:
            self._dependents.get(owner, {}).pop(key, None)
        for owner in after:
            self._dependents.setdefault(owner, {})[key] = None
        if deleted:
            self._live.pop(uid, None)
            for dependent in list(self._dependents.pop(uid, ())):
                self._later(lambda dependent=dependent: self._orphaned(dependent))  # type: ignore[misc]
            for owner in before:  # a foreground deletion may wait for this one
                if owner in self._live:
                    self._later(lambda owner=owner: self._deleting(self._live.get(owner)))  # type: ignore[misc]
            return
        self._live[uid] = key
        if after and previous is None:
            self._later(lambda: self._orphaned(key))
        if "deletionTimestamp" in metadata:
            self._later(lambda: self._deleting(key))

    def _find(self, key: Key) -> tuple[Resource, Stored] | None:
        group, plural, namespace, name = key
        resource = self._server.registry.storage(group, plural)
        stored = self._server.store.table(group, plural).get(namespace, name)
        return (resource, stored) if resource and stored else None

    def _orphaned(self, key: Key) -> None:
        """Delete an object none of whose owners is there; else drop the references to those that are not."""
        found = self._find(key)
        if found is None:
            return
        resource, stored = found
        references = stored.object["metadata"].get("ownerReferences") or []
        held = [r for r in references if r["uid"] in self._live]
        if not references or len(held) == len(references):
            return
        if not held:
            if "deletionTimestamp" not in stored.object["metadata"]:
                delete_object(self._server, resource, stored, DeleteOptions(propagation="Background"))
        else:
            self._write(resource, stored, {"ownerReferences": held})

    def _deleting(self, key: Key | None) -> None:
        """Carry out foreground or orphan deletion of an object that waits for it."""
        found = self._find(key) if key else None
        if found is None:
            return
        resource, stored = found
        metadata = stored.object["metadata"]
        finalizers = metadata.get("finalizers") or []
        if "deletionTimestamp" not in metadata:
            return
        dependents = list(self._of(metadata["uid"]))
        if ORPHAN in finalizers:
            for kind, dependent in dependents:
                references = dependent.object["metadata"]["ownerReferences"]
                kept = [r for r in references if r["uid"] != metadata["uid"]]
                self._write(kind, dependent, {"ownerReferences": kept})
            self._write(resource, stored, {"finalizers": [f for f in finalizers if f != ORPHAN]})
        elif FOREGROUND in finalizers:
            for kind, dependent in dependents:
                if "deletionTimestamp" not in dependent.object["metadata"]:
                    delete_object(self._server, kind, dependent, DeleteOptions(propagation="Foreground"))
            if not any(_blocks(d.object, metadata["uid"]) for _, d in self._of(metadata["uid"])):
                self._write(resource, stored, {"finalizers": [f for f in finalizers if f != FOREGROUND]})

    def _of(self, uid: str) -> Iterator[tuple[Resource, Stored]]:
        for key in list(self._dependents.get(uid, ())):
            found = self._find(key)
            if found is not None:
                yield found

    def _write(self, resource: Resource, stored: Stored, changes: Object) -> None:
        """Change metadata as the server itself; the last finalizer of a deleting object takes the object with it."""
        metadata = {k: v for k, v in {**stored.object["metadata"], **changes}.items() if v or k not in changes}
        table = self._server.store.table(resource.group, resource.plural)
        if (
            "deletionTimestamp" in metadata
            and not metadata.get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
        ):
            gone = self._server.store.delete(table, stored)
            self._server.after_write(resource, stored, gone, deleted=True)
            return
        written = self._server.store.put(table, {**stored.object, "metadata": metadata}, stored.normalized_for)
        self._server.after_write(resource, stored, written)

    def _empty(self, namespace: str) -> None:
        """Delete what is in a terminating namespace; when nothing is left, let it go."""
        table = self._server.store.table("", "namespaces")
        stored = table.get("", namespace)
        if stored is None or "deletionTimestamp" not in stored.object["metadata"]:
            return
        left = False
        for (group, plural), contents in list(self._server.store.tables()):
            resource = self._server.registry.storage(group, plural)
            if resource is None or not resource.namespaced:
                continue
            for _, item in list(contents.scan(namespace)):
                if "deletionTimestamp" not in item.object["metadata"]:
                    delete_object(self._server, resource, item, DeleteOptions())
            left = left or next(contents.scan(namespace), None) is not None
        spec = stored.object.get("spec") or {}
        if left or "kubernetes" not in (spec.get("finalizers") or ()):
            return
        finalizers = [f for f in spec["finalizers"] if f != "kubernetes"]
        kept = (
            {**spec, "finalizers": finalizers} if finalizers else {k: v for k, v in spec.items() if k != "finalizers"}
        )
        resource = self._server.namespace_resource
        if finalizers or stored.object["metadata"].get("finalizers"):
            written = self._server.store.put(table, {**stored.object, "spec": kept})
            self._server.after_write(resource, stored, written)
        else:
            gone = self._server.store.delete(table, stored)
            self._server.after_write(resource, stored, gone, deleted=True)


def _is_namespace(resource: Resource) -> bool:
    return resource.plural == "namespaces" and not resource.group


def _owners(obj: Object) -> set[str]:
    return {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()}


def _blocks(obj: Object, owner: str) -> bool:
    references = obj["metadata"].get("ownerReferences") or ()
    return any(r["uid"] == owner and r.get("blockOwnerDeletion") for r in references)
