"""The garbage collector and the namespace controller of kube-controller-manager. Both are off by default.

`gc` deletes objects that lost their owners, and does foreground and orphan deletion. `namespace` empties a namespace
that is being deleted and then removes it. Both run on the event loop right after the write that triggered them, in the
order of the writes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import StatusError
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema.metadata_validation import FOREGROUND, ORPHAN
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs.delete import DeleteOptions, delete_object

if TYPE_CHECKING:
    from fairlead.server.app import Server

Key = tuple[str, str, str, str]  # group, plural, namespace, name
NAMES = ("gc", "namespace")


class Controllers:
    """Runs the enabled controllers, and holds the queue of their pending work."""

    def __init__(self, server: "Server", names: frozenset[str]) -> None:
        unknown = names - set(NAMES)
        if unknown:
            raise ValueError(f"no such controller: {', '.join(sorted(unknown))}; use {' or '.join(NAMES)}")
        self._server = server
        self._collects_garbage = "gc" in names
        self._empties_namespaces = "namespace" in names
        self._live: dict[str, Key] = {}  # uid -> key of the object
        self._dependents: dict[str, dict[Key, None]] = {}  # owner's uid -> keys of its dependents, in order
        self._work: deque[Callable[[], None]] = deque()
        self._is_busy = False

    def after_write(self, resource: Resource, previous: Stored | None, stored: Stored, is_deleted: bool) -> None:
        """Queue the garbage collection and the namespace cleanup that a committed write makes necessary."""
        metadata = stored.object["metadata"]
        key = (resource.group, resource.plural, metadata.get("namespace", ""), metadata["name"])
        if self._collects_garbage:
            self._update_index(key, previous, stored, is_deleted)
        if self._empties_namespaces:
            namespace = (
                metadata["name"] if _is_namespace(resource) and not is_deleted else metadata.get("namespace", "")
            )
            if namespace and (_is_namespace(resource) or is_deleted):
                self._enqueue(lambda: self._empty_namespace(namespace))

    def rebuild(self, delay: float) -> None:
        """Rebuild the owner index from the store, and check every object again after `delay` seconds.

        Needed after the store was loaded from disk, and after writes were undone.
        """
        self._live.clear()
        self._dependents.clear()
        self._work.clear()
        self._is_busy = True  # index all objects before processing any
        for (group, plural), table in list(self._server.store.tables()):
            resource = self._server.registry.storage(group, plural)
            if resource is not None:
                for _, stored in list(table.scan(None)):
                    self.after_write(resource, None, stored, False)
        if delay:
            asyncio.get_running_loop().call_later(delay, self._run_pending_work)
        else:
            self._run_pending_work()

    def _enqueue(self, work: Callable[[], None]) -> None:
        self._work.append(work)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            asyncio.get_running_loop().call_soon(self._run_pending_work)
        except RuntimeError:  # the server is used without an event loop
            self._run_pending_work()

    def _run_pending_work(self) -> None:
        try:
            while self._work:
                try:
                    self._work.popleft()()
                except StatusError:
                    continue  # another write came first; it queues work of its own
        finally:
            self._is_busy = False

    def _update_index(self, key: Key, previous: Stored | None, stored: Stored, is_deleted: bool) -> None:
        metadata = stored.object["metadata"]
        uid = metadata["uid"]
        before = _list_owner_uids(previous.object) if previous else set()
        after = set() if is_deleted else _list_owner_uids(stored.object)
        for owner in before - after:
            self._dependents.get(owner, {}).pop(key, None)
        for owner in after:
            self._dependents.setdefault(owner, {})[key] = None
        if is_deleted:
            self._live.pop(uid, None)
            for dependent in list(self._dependents.pop(uid, ())):
                self._enqueue(lambda dependent=dependent: self._delete_if_orphaned(dependent))  # type: ignore[misc]
            for owner in before:  # a foreground deletion may wait for this object
                if owner in self._live:
                    self._enqueue(lambda owner=owner: self._finish_deletion(self._live.get(owner)))  # type: ignore[misc]
            return
        self._live[uid] = key
        if after and previous is None:
            self._enqueue(lambda: self._delete_if_orphaned(key))
        if "deletionTimestamp" in metadata:
            self._enqueue(lambda: self._finish_deletion(key))

    def _find_object(self, key: Key) -> tuple[Resource, Stored] | None:
        group, plural, namespace, name = key
        resource = self._server.registry.storage(group, plural)
        stored = self._server.store.table(group, plural).get(namespace, name)
        return (resource, stored) if resource and stored else None

    def _delete_if_orphaned(self, key: Key) -> None:
        """Delete an object if all its owners are gone. Otherwise remove its references to owners that are gone."""
        found_object = self._find_object(key)
        if found_object is None:
            return
        resource, stored = found_object
        references = stored.object["metadata"].get("ownerReferences") or []
        existing = [r for r in references if self._owner_exists(r, key)]
        if not references or len(existing) == len(references):
            return
        if not existing:
            if "deletionTimestamp" not in stored.object["metadata"]:
                delete_object(self._server, resource, stored, DeleteOptions(propagation="Background"))
        else:
            self._write_metadata(resource, stored, {"ownerReferences": existing})

    def _owner_exists(self, reference: Object, dependent: Key) -> bool:
        """Return whether an owner exists. Initial objects that were never written are only in the store."""
        if reference["uid"] in self._live:
            return True
        named = (reference["apiVersion"], reference["kind"])
        for owner in self._server.registry.served():
            if (owner.api_version, owner.kind) == named:
                stored = self._server.table(owner).get(dependent[2] if owner.namespaced else "", reference["name"])
                return stored is not None and stored.object["metadata"]["uid"] == reference["uid"]
        return False

    def _finish_deletion(self, key: Key | None) -> None:
        """Delete or orphan the dependents of an object that has the foregroundDeletion or orphan finalizer."""
        found_object = self._find_object(key) if key else None
        if found_object is None:
            return
        resource, stored = found_object
        metadata = stored.object["metadata"]
        finalizers = metadata.get("finalizers") or []
        if "deletionTimestamp" not in metadata:
            return
        dependents = list(self._find_dependents(metadata["uid"]))
        if ORPHAN in finalizers:
            for kind, dependent in dependents:
                references = dependent.object["metadata"]["ownerReferences"]
                remaining = [r for r in references if r["uid"] != metadata["uid"]]
                self._write_metadata(kind, dependent, {"ownerReferences": remaining})
            self._write_metadata(resource, stored, {"finalizers": [f for f in finalizers if f != ORPHAN]})
        elif FOREGROUND in finalizers:
            for kind, dependent in dependents:
                if "deletionTimestamp" not in dependent.object["metadata"]:
                    delete_object(self._server, kind, dependent, DeleteOptions(propagation="Foreground"))
            if not any(
                _blocks_owner_deletion(d.object, metadata["uid"]) for _, d in self._find_dependents(metadata["uid"])
            ):
                self._write_metadata(resource, stored, {"finalizers": [f for f in finalizers if f != FOREGROUND]})

    def _find_dependents(self, uid: str) -> Iterator[tuple[Resource, Stored]]:
        for key in list(self._dependents.get(uid, ())):
            found_object = self._find_object(key)
            if found_object is not None:
                yield found_object

    def _write_metadata(self, resource: Resource, stored: Stored, changes: Object) -> None:
        """Store an object with changed metadata.

        Remove the object if it is being deleted and has no finalizers left.
        """
        metadata = {k: v for k, v in {**stored.object["metadata"], **changes}.items() if v or k not in changes}
        table = self._server.store.table(resource.group, resource.plural)
        if (
            "deletionTimestamp" in metadata
            and not metadata.get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
        ):
            removed = self._server.store.delete(table, stored)
            self._server.after_write(resource, stored, removed, is_deleted=True)
            return
        new_stored = self._server.store.put(table, {**stored.object, "metadata": metadata}, stored.normalized_for)
        self._server.after_write(resource, stored, new_stored)

    def _empty_namespace(self, namespace: str) -> None:
        """Delete the objects of a terminating namespace.

        Remove the namespace or its finalizer once no object is left.
        """
        table = self._server.store.table("", "namespaces")
        stored = table.get("", namespace)
        if stored is None or "deletionTimestamp" not in stored.object["metadata"]:
            return
        has_content = False
        for (group, plural), contents in list(self._server.store.tables()):
            resource = self._server.registry.storage(group, plural)
            if resource is None or not resource.namespaced:
                continue
            for _, item in list(contents.scan(namespace)):
                if "deletionTimestamp" not in item.object["metadata"]:
                    delete_object(self._server, resource, item, DeleteOptions())
            has_content = has_content or next(contents.scan(namespace), None) is not None
        spec = stored.object.get("spec") or {}
        if has_content or "kubernetes" not in (spec.get("finalizers") or ()):
            return
        finalizers = [f for f in spec["finalizers"] if f != "kubernetes"]
        new_spec = (
            {**spec, "finalizers": finalizers} if finalizers else {k: v for k, v in spec.items() if k != "finalizers"}
        )
        resource = self._server.namespace_resource
        if finalizers or stored.object["metadata"].get("finalizers"):
            new_stored = self._server.store.put(table, {**stored.object, "spec": new_spec})
            self._server.after_write(resource, stored, new_stored)
        else:
            removed = self._server.store.delete(table, stored)
            self._server.after_write(resource, stored, removed, is_deleted=True)


def _is_namespace(resource: Resource) -> bool:
    return resource.plural == "namespaces" and not resource.group


def _list_owner_uids(obj: Object) -> set[str]:
    return {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()}


def _blocks_owner_deletion(obj: Object, owner: str) -> bool:
    references = obj["metadata"].get("ownerReferences") or ()
    return any(r["uid"] == owner and r.get("blockOwnerDeletion") for r in references)
