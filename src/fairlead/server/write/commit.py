"""The last steps of a create or update: bring the object to its stored form, and put it into the store."""

from typing import TYPE_CHECKING

from fairlead.server.golang import encoding
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import pruning
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Object, Stored

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write


def prune_and_normalize(write: "Write", obj: Object) -> Object:
    """Return the object as a client will read it.

    An applied custom resource is pruned only now: a real server stores its undeclared fields and prunes them when it
    reads the object. Untyped numbers are normalized only now: until here 1.0 was not an integer.
    """
    if write.changes.merged_metadata is not None and write.resource.storage is None:
        unpruned, (obj, _) = obj, pruning.prune(write.resource.schema, obj)
        write.changes.note_pruned(unpruned, obj)
    return normalize_numbers(write, obj)


def normalize_numbers(write: "Write", obj: Object) -> Object:
    """Return the object with its numbers as they are read from storage, if the body has numbers that change."""
    return encoding.normalize_numbers(obj) if encoding.has_fractions(write.request.body) else obj


def restore_empty_values(resource: Resource, obj: Object, with_empty_values: Object) -> Object:
    """Return the object to validate, with its empty lists and maps if the kind's validation depends on them."""
    if resource.validates_empty and "spec" in with_empty_values:
        return {**obj, "spec": with_empty_values["spec"]}
    return obj


def put(write: "Write", obj: Object, live: Stored | None) -> Stored:
    """Store the object, notify the server, and return the object at the version of the request."""
    resource = write.resource
    stored_form = versions.stored_form(resource, obj)
    # A conversion webhook must answer before the object is stored, or the request could not run again.
    shown = versions.read(resource, stored_form) if resource.converter and resource.storage else None
    stored = write.server.store.put(write.table, stored_form, None if resource.storage else resource)
    if shown is not None:
        versions.keep_view(resource, stored, shown)
    if write.managed is not None and not any(entry.fields.has_large_numbers for entry in write.managed):
        stored.derived["managed"] = write.managed
    stored.bytes_differ = write.changes.bytes_differ
    write.server.after_write(resource, live, stored)
    return versions.view(resource, stored)
