"""Change detection: whether a write must be stored, or changes nothing.

A real server stores an object as bytes in etcd. An update decodes these bytes, computes the new object, encodes it, and
compares the result with the stored bytes. If they are equal, nothing is stored: the resourceVersion stays, and watches
see no event. If they differ, the new bytes are stored, even if clients read the same object before and after.

That happens because decoding is lossy. The bytes can differ from what the decoded object would be encoded to:

- An apply stores a custom resource as it was merged, with `labels: {}` and with fields that the schema does not
  declare. Decoding drops both.
- A new custom resource is stored without the defaults of its status. Decoding adds them.
- A null value in the data of a Secret is stored as null. Decoding turns it into an empty value.
- A new Job without labels is stored without the labels of its Pods. Decoding adds them.
- A write through /scale stores the managed fields of a built-in object in alphabetical order.

This server keeps the decoded object, so it cannot compare bytes. It keeps one fact beside each object instead:
`Stored.bytes_differ` says that a real server's bytes differ from the encoding of this object. `ChangeDetection`
collects the same fact about the object that a write is about to store, and decides with both whether to store it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.server import ownership
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import empty_values
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.write.managed_fields import get_managed_fields, get_unmanaged, remove_managed_fields

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write

# Fields that the server itself sets. Manifests of Go tools contain them as empty values (`creationTimestamp: null`).
_SET_BY_SERVER = frozenset(("creationTimestamp", "generation", "namespace", "resourceVersion", "selfLink", "uid"))


@dataclass(slots=True)
class ChangeDetection:
    """Collects, during one write, facts that decide whether a real server would store the object again."""

    bytes_differ: bool = False  # a real server would store other bytes than the encoding of the decoded object
    omits_submitted: bool = False  # the body has empty lists or maps that are not stored, but count for the generation
    drops_empty: bool = False  # the new object had empty lists or maps that are not stored
    merged_metadata: Object | None = None  # a custom resource's metadata as an apply merged it, with its empty values

    def note_submitted(self, resource: Resource, value: Object) -> None:
        """Record whether a submitted object has null values that decoding changes."""
        if not resource.custom and resource.kind in ("Secret", "ConfigMap"):
            for key in ("data", "binaryData"):
                field = resource.schema.fields.get(key)
                if field is not None and field.values is not None and field.values.go.kind == "bytes":
                    self.bytes_differ = self.bytes_differ or None in (value.get(key) or {}).values()
        if resource.generation_counts_empty:
            fields = resource.schema.fields
            keys = resource.generation_fields
            self.omits_submitted = any(empty_values.has_omitted(fields[key], value.get(key)) for key in keys)

    def note_merged(self, write: "Write", merged: Object, decoded: Object) -> None:
        """Record the metadata that an apply merged, and whether decoding dropped any of it."""
        if not write.resource.custom:
            return
        self.merged_metadata = merged
        is_stored_as_merged = write.resource.storage is None and not write.subresource
        if is_stored_as_merged and not merged.keys() - _SET_BY_SERVER <= decoded["metadata"].keys():
            self.bytes_differ = True

    def note_pruned(self, before: Object, pruned: Object) -> None:
        """Record whether pruning changed an object. A real server stores the unpruned object and prunes it on read."""
        unpruned = (item for item in before.items() if item[0] != "metadata")
        if any(key not in pruned or pruned[key] != value for key, value in unpruned):
            self.bytes_differ = True

    def is_unchanged(self, resource: Resource, obj: Object, live: Stored, stored: Stored) -> bool:
        """Return whether `obj` need not be stored, because a real server's bytes would not change.

        `stored` is the object at the storage version, `live` the same object at the version of the request. For a
        built-in kind, bytes that differ from the decoded object differ in the same way before and after. For a custom
        resource nothing is known about the difference, so the object is stored again.
        """
        if self.bytes_differ != stored.bytes_differ or (self.bytes_differ and resource.custom):
            return False
        if stored is live and versions.is_current(resource, stored):
            return exactly_equal(obj, live.object)
        return exactly_equal(versions.stored_form(resource, obj), stored.object)

    def keep_times(self, write: "Write", obj: Object, live: Stored) -> Object:
        """Return the object with the old times of its managed fields if nothing but those times changed.

        The times change if the stored object lost an empty value that was submitted (`labels: {}` of an apply, a list
        inside a list). They also change if /scale moved an entry: the owner of the replicas loses its time, and may
        then come first.
        """
        if self.drops_empty or not (self.merged_metadata or {}).keys() <= obj["metadata"].keys():
            return obj
        entries = obj["metadata"].get("managedFields")
        old_entries = live.object["metadata"].get("managedFields")
        if entries is old_entries or entries == old_entries or write.managed is None:
            return obj
        if not ownership.equal_except_times(write.managed, old_entries):
            return obj
        if write.subresource == "scale" and not ownership.have_same_order(entries, old_entries):
            return obj
        if remove_managed_fields(obj) != get_unmanaged(live):
            return obj
        write.managed = get_managed_fields(live)
        return {**obj, "metadata": {**obj["metadata"], "managedFields": old_entries}}


def can_skip_update(resource: Resource, live: Stored, stored: Stored | None) -> bool:
    """Return whether an update to an identical object stores nothing, so that the response is the live object."""
    return not live.bytes_differ and versions.is_current(resource, stored)


def must_rewrite(resource: Resource, stored: Stored) -> bool:
    """Return whether every write stores a custom resource again, because its bytes differ in an unknown way."""
    return resource.custom and stored.bytes_differ
