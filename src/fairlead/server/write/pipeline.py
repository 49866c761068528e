"""The write pipeline: `create` and `update` take every client's write to the store.

A create goes through admission, field ownership, system metadata, the kind's preparation, validation and commit. An
update does the same with the live object. If nothing changed, it stores nothing. If it removes the last finalizer of an
object that is being deleted, it deletes the object.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.server.admission import chain, namespaces
from fairlead.server.errors.field_errors import FieldError, quote_go
from fairlead.server.errors.statuses import (
    OPTIMISTIC_LOCK,
    already_exists,
    bad_request,
    being_deleted,
    conflict,
    internal_error_message,
    invalid,
    invalid_kind,
    not_found,
    unclassified,
)
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request
from fairlead.server.http.options import WriteOptions
from fairlead.server.ownership import ManagedFields
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import empty_values, pruning
from fairlead.server.storage import versions
from fairlead.server.storage.store import ObjectTable
from fairlead.server.storage.stored import Object, Stored
from fairlead.server.write import decoding, metadata, strategy
from fairlead.server.write.change_detection import ChangeDetection, can_skip_update
from fairlead.server.write.escalation import reject_escalation, require_create_access
from fairlead.server.write.subresources import keep_other_parts

if TYPE_CHECKING:
    from fairlead.server.app import Server

ALPHANUMS = "bcdfghjklmnpqrstvwxz2456789"  # of generated names: without vowels, so that they form no words
DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
DUPLICATE_OWNERS_PATCHED = (
    ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
    "observed: {}"
)

_ETCD_PREFIXES = {  # resources whose etcd prefix is not their plural: precondition messages show it
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


@dataclass(slots=True)
class Write:
    """One write request, and the facts that the steps of the pipeline collect about it."""

    server: "Server"
    request: Request
    resource: Resource
    namespace: str
    name: str
    subresource: str
    options: WriteOptions
    changes: ChangeDetection = field(default_factory=ChangeDetection)
    managed: ManagedFields | None = None  # the managed fields of the new object, once they are known

    @property
    def table(self) -> ObjectTable:
        return self.server.table(self.resource)

    @property
    def stored(self) -> Stored | None:
        """The object as it is stored now, or None if it does not exist."""
        return self.table.get(self.namespace if self.resource.namespaced else "", self.name)

    @property
    def live(self) -> Stored | None:
        """The object as it is now, at the API version of the request, or None if it does not exist."""
        stored = self.stored
        if stored is None:
            return None
        return versions.view(self.resource, versions.expect_readable(self.resource, stored))

    @property
    def now(self) -> str:
        return self.server.now


ComputeUpdate = Callable[[Stored | None], Object]  # from the live object, or None, to the new one


def create(write: Write, obj: Object) -> Stored:
    """Store a new object and return it. After a dry run, the object has no resourceVersion and is not stored."""
    obj = expect_namespace(metadata.remove_system_fields(obj), write)
    obj = remove_duplicate_owners(obj, write, DUPLICATE_OWNERS)
    _admit_create(write, obj)
    obj = write.server.field_tracker.track_create(write, obj)
    return _commit_create(write, _set_system_metadata(obj, write))


def _admit_create(write: Write, obj: Object) -> None:
    reject_escalation(write, obj, None)
    namespaces.admit_create(write.server, write.resource, write.namespace, obj)
    if write.resource.custom:
        name = (obj.get("metadata") or {}).get("name") or write.name
        write.server.definitions.admit_create(write.resource, name)


def _set_system_metadata(obj: Object, write: Write) -> Object:
    obj = metadata.prepare_create(
        obj,
        namespace=write.namespace if write.resource.namespaced else "",
        uid=write.server.world.uid(),
        now=write.now,
    )
    new_metadata = obj["metadata"]
    if new_metadata.get("generateName") and not new_metadata.get("name"):
        prefix = new_metadata["generateName"][:58]  # With the suffix the name has at most 63 characters.
        new_metadata["name"] = prefix + "".join(write.server.world.random.choice(ALPHANUMS) for _ in range(5))
    return obj


def _commit_create(write: Write, obj: Object, *, by_update: bool = False) -> Stored:
    resource, server = write.resource, write.server
    if resource.has_generation:
        obj["metadata"]["generation"] = 1
    if resource.custom and resource.status:
        obj.pop("status", None)
        if not write.options.dry_run and "status" in (read := decoding.fill_defaults(resource, obj)):
            # The defaults of a status are read, but not stored with a new object. The next write stores them.
            obj, write.changes.bytes_differ = read, True
    with_empty_values = obj
    if not resource.custom:
        obj = empty_values.drop(resource.schema, obj)
        obj = chain.complete(server, resource, write.namespace, obj)
    new_metadata = obj["metadata"]
    if resource.bytes_differ is not None and resource.bytes_differ(obj):
        write.changes.bytes_differ = True
    if resource.prepare_for_user:
        resource.prepare_for_user(obj, write.request.user)
    if resource.prepare_create:
        resource.prepare_create(obj)
    name = new_metadata.get("name") or ""
    if errors := strategy.validate_create(resource, _restore_empty_values(resource, obj, with_empty_values)):
        raise invalid(resource, obj, errors)
    # The kind's rules for names are stricter than the generic ones, but not its rules for prefixes.
    if "generateName" in new_metadata and (errors := metadata.validate(new_metadata, resource, generic=True)):
        raise invalid(resource, obj, errors)
    for warning in strategy.warnings(resource, obj, None):
        write.request.warn(warning)
    chain.validate(server, resource, write.namespace, obj, None)
    if not write.options.dry_run:
        _remove_resource_version(new_metadata, by_update=by_update)
    live = write.table.get(new_metadata.get("namespace", ""), name)
    if live is not None:
        if new_metadata.get("generateName") or not live.object["metadata"].get("deletionTimestamp"):
            raise already_exists(resource, name)
        raise being_deleted(resource, name)
    obj = _prune_and_normalize(write, obj)
    if write.options.dry_run:
        return Stored(versions.read_back(resource, obj), 0, resource)
    return _put(write, obj, None)


def _remove_resource_version(new_metadata: Object, *, by_update: bool) -> None:
    """Remove the resourceVersion of a new object. Raises 500 if a create sets a valid resourceVersion."""
    text = new_metadata.pop("resourceVersion", "")
    if text and not by_update and not _version_error(text) and int(text):
        raise unclassified("resourceVersion should not be set on objects to be created")


def _prune_and_normalize(write: Write, obj: Object) -> Object:
    """Return the object as a client will read it.

    An applied custom resource is pruned only now: a real server stores its undeclared fields and prunes them when it
    reads the object. Untyped numbers are normalized only now: until here 1.0 was not an integer.
    """
    if write.changes.merged_metadata is not None and write.resource.storage is None:
        unpruned, (obj, _) = obj, pruning.prune(write.resource.schema, obj)
        write.changes.note_pruned(unpruned, obj)
    return _normalize_numbers(write, obj)


def _restore_empty_values(resource: Resource, obj: Object, with_empty_values: Object) -> Object:
    """Return the object to validate, with its empty lists and maps if the kind's validation depends on them."""
    if resource.validates_empty and "spec" in with_empty_values:
        return {**obj, "spec": with_empty_values["spec"]}
    return obj


def _as_merged(write: Write, obj: Object) -> Object:
    """Return the response to an apply that deleted the object, with the metadata that the apply left empty."""
    obj = _normalize_numbers(write, obj)
    new_metadata, merged = obj["metadata"], write.changes.merged_metadata or {}
    added = {key: value for key, value in merged.items() if key not in new_metadata or key in ("annotations", "labels")}
    return {**obj, "metadata": {**new_metadata, **added}} if added else obj


def _normalize_numbers(write: Write, obj: Object) -> Object:
    return encoding.normalize_numbers(obj) if encoding.has_fractions(write.request.body) else obj


def update(
    write: Write, compute: ComputeUpdate, *, uid: str = "", may_create: bool = False, owned: bool = False
) -> tuple[Stored, bool]:
    """Change an object, or create it if the kind or `may_create` permits that. Return it, and whether it is new.

    `compute` returns the new object for the live one. `uid` is a precondition on the live object. `owned`: `compute`
    has already set the managedFields.
    """
    resource, server = write.resource, write.server
    live = write.live
    # If an update may create an object of this kind, an update of its status may create one too.
    if live is None and not may_create and (not resource.create_on_update or write.subresource not in ("", "status")):
        raise not_found(resource, write.name)
    if uid and uid != (live.object["metadata"]["uid"] if live else ""):
        raise conflict(resource, write.name, _uid_precondition_message(write, uid, live))
    obj = compute(live)
    if live is not None and obj is live.object and can_skip_update(resource, live, write.stored):
        return live, False
    version = _requested_version(obj)
    if live is None:
        require_create_access(write)
        obj = expect_namespace(obj, write)
        _admit_create(write, obj)
        if not owned:
            obj = server.field_tracker.track_create(write, obj)
        obj = _set_system_metadata(remove_duplicate_owners(obj, write, DUPLICATE_OWNERS_PATCHED), write)
        return _commit_create(write, obj, by_update=True), True
    reject_escalation(write, obj, live.object)
    lacks_api_version = resource.custom and not obj.get("apiVersion")
    if not owned and not lacks_api_version:
        obj = server.field_tracker.track_update(write, live, obj)
    # A writer owns the duplicate owner references of its patch, so they are removed only after tracking.
    obj = remove_duplicate_owners(obj, write, DUPLICATE_OWNERS_PATCHED)
    if not version and not resource.unconditional_update:
        error = FieldError(
            "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
        )
        raise invalid_kind(resource.group, resource.plural, write.name, [error])
    if version and version != live.version:
        raise conflict(resource, write.name, OPTIMISTIC_LOCK)
    if lacks_api_version:
        raise internal_error_message("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    return _commit_update(write, obj, live), False


def _commit_update(write: Write, obj: Object, live: Stored) -> Stored:
    resource, server, changes = write.resource, write.server, write.changes
    old, stored = live.object, write.stored
    assert stored is not None
    obj = metadata.prepare_update(obj, old)
    obj["metadata"]["resourceVersion"] = str(live.version)
    with_empty_values = obj
    if not resource.custom:
        obj = empty_values.drop(resource.schema, obj)
        changes.drops_empty = obj is not with_empty_values
    obj = keep_other_parts(resource, write.subresource, obj, old)
    if resource.prepare_update:
        resource.prepare_update(obj, old)
    if resource.set_update_time:
        resource.set_update_time(obj, old, write.now)
    strategy.update_generation(resource, write.subresource, obj, old, has_changed=changes.omits_submitted)
    to_validate = _restore_empty_values(resource, obj, with_empty_values)
    if errors := strategy.validate_update(resource, write.subresource, to_validate, old, write.request.warn):
        raise invalid(resource, obj, errors)
    for warning in strategy.warnings(resource, obj, old):
        write.request.warn(warning)
    if not write.subresource:
        chain.validate(server, resource, write.namespace, obj, old)
    if _lost_last_finalizer(obj["metadata"], old["metadata"]) and strategy.can_be_removed(resource, obj):
        if not write.options.dry_run:
            deleted = server.store.delete(write.table, stored)
            server.after_write(resource, live, deleted, deleted=True)
        return Stored(_as_merged(write, empty_values.restore_nulls(obj, with_empty_values)), live.version, resource)
    obj = changes.keep_times(write, _prune_and_normalize(write, obj), live)
    if resource.custom and write.subresource == "scale" and resource.storage is None:
        # An object without a spec is stored without the spec's defaults, and read with them.
        read = decoding.fill_defaults(resource, obj)
        obj, changes.bytes_differ = read, changes.bytes_differ or read != obj
    if changes.is_unchanged(resource, obj, live, stored):
        return live
    if resource.custom and resource.storage is None and not versions.is_current(resource, stored):
        obj = decoding.fill_defaults(resource, obj)  # It still has the defaults of the version it was stored at.
    if write.options.dry_run:
        return Stored(versions.read_back(resource, obj), live.version, resource)
    return _put(write, obj, live)


def _put(write: Write, obj: Object, live: Stored | None) -> Stored:
    resource = write.resource
    stored = write.server.store.put(
        write.table, versions.stored_form(resource, obj), None if resource.storage else resource
    )
    if write.managed is not None and not any(entry.fields.has_large_numbers for entry in write.managed):
        stored.derived["managed"] = write.managed
    stored.bytes_differ = write.changes.bytes_differ
    write.server.after_write(resource, live, stored)
    return versions.view(resource, stored)


def _lost_last_finalizer(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Return whether an object that is being deleted has neither finalizers nor a grace period left."""
    return "deletionTimestamp" in old and not new.get("finalizers") and not old.get("deletionGracePeriodSeconds")


def _uid_precondition_message(write: Write, uid: str, live: Stored | None) -> str:
    resource, plural = write.resource, write.resource.plural
    root = "" if write.options.dry_run else "/registry"
    prefix = f"{resource.group}/{plural}" if resource.custom else _ETCD_PREFIXES.get(plural, plural)
    namespace = f"{write.namespace}/" if resource.namespaced else ""
    live_uid = live.object["metadata"]["uid"] if live else ""
    return (
        f"StorageError: invalid object, Code: 4, Key: {root}/{prefix}/{namespace}{write.name}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {live_uid}"
    )


def _requested_version(obj: Object) -> int:
    text = (obj.get("metadata") or {}).get("resourceVersion")
    if not text:
        return 0
    if error := _version_error(text):
        raise unclassified(f"strconv.ParseUint: parsing {quote_go(text)}: {error}")
    return int(text)


def _version_error(version: str) -> str:
    """Return why a resourceVersion is not a number, or "" if it is one."""
    if not (version.isdigit() and version.isascii()):
        return "invalid syntax"
    return "value out of range" if int(version) >= 1 << 64 else ""


def expect_namespace(obj: Object, write: Write) -> Object:
    """Return the object with the namespace of the request. Raises 400 if the object names another namespace."""
    submitted = obj.get("metadata") or {}
    namespace = submitted.get("namespace") or ""
    expected = write.namespace if write.resource.namespaced else ""
    if namespace == expected:
        return obj
    if not namespace or not expected:
        new_metadata = {key: value for key, value in submitted.items() if key != "namespace"}
        if expected:
            new_metadata["namespace"] = expected
        return {**obj, "metadata": new_metadata}
    raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def remove_duplicate_owners(obj: Object, write: Write, warning: str) -> Object:
    """Return the object without duplicate ownerReferences, and warn about them."""
    obj, duplicates = metadata.remove_duplicate_owners(obj)
    if duplicates:
        write.request.warn(warning.format(", ".join(duplicates)))
    return obj
