"""The one way into the store: what happens between an object being asked for and being stored.

Create: admission, ownership, system metadata, the kind's preparation, validation, commit. Update: the same with the
live object beside it, then nothing at all when nothing changed, or a delete when the last finalizer of a deleting
object went.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.server.admission import chain, namespaces
from fairlead.server.authorization.escalation import reject_escalation, require_create_access
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
from fairlead.server.storage.store import Table
from fairlead.server.storage.stored import Object, Stored
from fairlead.server.write import decoding, metadata
from fairlead.server.write.change_detection import ChangeDetection, can_skip_update
from fairlead.server.write.subresources import narrow

if TYPE_CHECKING:
    from fairlead.server.app import Server

ALPHANUMS = "bcdfghjklmnpqrstvwxz2456789"  # of generated names: no vowels, so no words
DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
DUPLICATE_OWNERS_PATCHED = (
    ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
    "observed: {}"
)

_KEPT = {  # kinds that a real server keeps under another name than their own, as messages show
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


@dataclass(slots=True)
class Write:
    """One write on its way: who asks for what, on which kind."""

    server: "Server"
    request: Request
    resource: Resource
    namespace: str
    name: str
    subresource: str
    options: WriteOptions
    changes: ChangeDetection = field(default_factory=ChangeDetection)
    managed: ManagedFields | None = None  # the owners of what is to be stored, once they are known

    @property
    def table(self) -> Table:
        return self.server.table(self.resource)

    @property
    def kept(self) -> Stored | None:
        """The object as it is kept now."""
        return self.table.get(self.namespace if self.resource.namespaced else "", self.name)

    @property
    def live(self) -> Stored | None:
        """The object as it is now, at the version of the request."""
        kept = self.kept
        return versions.view(self.resource, versions.expect_readable(self.resource, kept)) if kept is not None else None

    @property
    def now(self) -> str:
        return self.server.now


Updated = Callable[[Stored | None], Object]  # the object wanted, given the live one (None: there is none)


def create(write: Write, obj: Object) -> Stored:
    """Store a new object. The answer of a dry run has no version and is not stored."""
    obj = expect_namespace(metadata.wiped(obj), write)
    obj = dedup_owners(obj, write, DUPLICATE_OWNERS)
    _admit_create(write, obj)
    return _commit_create(write, _initialised(write.server.field_tracker.track_create(write, obj), write))


def _admit_create(write: Write, obj: Object) -> None:
    reject_escalation(write, obj, None)
    namespaces.admit_create(write.server, write.resource, write.namespace, obj)
    if write.resource.custom:
        given = obj.get("metadata") or {}
        write.server.definitions.admit_create(write.resource, given.get("name") or write.name)


def _initialised(obj: Object, write: Write) -> Object:
    obj = metadata.for_create(
        obj,
        namespace=write.namespace if write.resource.namespaced else "",
        uid=write.server.world.uid(),
        now=write.now,
    )
    given = obj["metadata"]
    if given.get("generateName") and not given.get("name"):
        prefix = given["generateName"][:58]  # 63 characters with the suffix, however long the prefix
        given["name"] = prefix + "".join(write.server.world.random.choice(ALPHANUMS) for _ in range(5))
    return obj


def _commit_create(write: Write, obj: Object, *, by_update: bool = False) -> Stored:
    resource, server = write.resource, write.server
    given = obj["metadata"]
    if resource.has_generation:
        given["generation"] = 1
    if resource.custom and resource.status:
        obj.pop("status", None)
        if not write.options.dry_run and "status" in (read := decoding.fill_defaults(resource, obj)):
            # The defaults of a status are not stored with a new object, but read; the next write stores them.
            obj, write.changes.bytes_differ = read, True
    held = obj
    if not resource.custom:
        obj = empty_values.drop(resource.schema, obj)
        obj = chain.completed(server, resource, write.namespace, obj)
        given = obj["metadata"]
    if resource.bytes_differ is not None and resource.bytes_differ(obj):
        write.changes.bytes_differ = True
    if resource.prepare_for:
        resource.prepare_for(obj, write.request.user)
    if resource.prepare_create:
        resource.prepare_create(obj)
    name = given.get("name") or ""
    if found := server.rules.on_create(resource, _as_held(resource, obj, held)):
        raise invalid(resource, obj, found)
    # A name that fits its kind fits in a path; a prefix is looked at less closely.
    if "generateName" in given and (found := metadata.validate(given, resource, generic=True)):
        raise invalid(resource, obj, found)
    for text in server.rules.warnings(resource, obj, None):
        write.request.warn(text)
    chain.expect_allowed(server, resource, write.namespace, obj, None)
    if not write.options.dry_run:
        _expect_new(given, by_update=by_update)
    live = write.table.get(given.get("namespace", ""), name)
    if live is not None:
        if given.get("generateName"):
            raise already_exists(resource, name)
        raise (being_deleted if live.object["metadata"].get("deletionTimestamp") else already_exists)(resource, name)
    obj = _settled(write, obj)
    if write.options.dry_run:
        return Stored(versions.read_back(resource, obj), 0, resource)
    return _put(write, obj, None)


def _expect_new(given: Object, *, by_update: bool) -> None:
    """What is stored gets a version of its own; one that was posted is refused, if it is a version at all."""
    text = given.pop("resourceVersion", "")
    if text and not by_update and not _misread(text) and int(text):
        raise unclassified("resourceVersion should not be set on objects to be created")


def _settled(write: Write, obj: Object) -> Object:
    """An object with its untyped numbers as they are stored (so far 1.0 was no integer), as it will be read.

    What an apply merged may hold what no schema declares. A real server stores that and reads it back without.
    """
    if write.changes.merged_metadata is not None and write.resource.storage is None:
        unpruned, (obj, _) = obj, pruning.prune(write.resource.schema, obj)
        write.changes.note_pruned(unpruned, obj)
    return _with_numbers(write, obj)


def _as_held(resource: Resource, obj: Object, held: Object) -> Object:
    """An object as it is validated: with what was given empty, where the kind's validation minds that."""
    return {**obj, "spec": held["spec"]} if resource.minds_empty and "spec" in held else obj


def _as_merged(write: Write, obj: Object) -> Object:
    """The last answer about an object that is stored no more: what an apply emptied is in it as it was merged."""
    obj = _with_numbers(write, obj)
    given = obj["metadata"]
    merged = write.changes.merged_metadata or {}
    kept = {key: value for key, value in merged.items() if key not in given or key in ("annotations", "labels")}
    return {**obj, "metadata": {**given, **kept}} if kept else obj


def _with_numbers(write: Write, obj: Object) -> Object:
    return encoding.normalize_numbers(obj) if encoding.has_fractions(write.request.body) else obj


def update(
    write: Write, wanted: Updated, *, uid: str = "", may_create: bool = False, owned: bool = False
) -> tuple[Stored, bool]:
    """Change an object, or create it where the kind (or `may_create`) allows it: the result and whether it is new.

    `uid` is a precondition on the live object. `owned` says that `wanted` has settled managedFields already.
    """
    resource, server = write.resource, write.server
    live = write.live
    # A status is written by the same rules: what an update may create, its status may too.
    if live is None and not may_create and (not resource.create_on_update or write.subresource not in ("", "status")):
        raise not_found(resource, write.name)
    if uid and uid != (live.object["metadata"]["uid"] if live else ""):
        raise conflict(resource, write.name, _precondition(write, uid, live))
    obj = wanted(live)
    if live is not None and obj is live.object and can_skip_update(resource, live, write.kept):
        return live, False
    version = _requested_version(obj)
    if live is None:
        require_create_access(write)
        obj = expect_namespace(obj, write)
        _admit_create(write, obj)
        if not owned:
            obj = server.field_tracker.track_create(write, obj)
        obj = _initialised(dedup_owners(obj, write, DUPLICATE_OWNERS_PATCHED), write)
        return _commit_create(write, obj, by_update=True), True
    reject_escalation(write, obj, live.object)
    nameless = resource.custom and not obj.get("apiVersion")
    if not owned and not nameless:
        obj = server.field_tracker.track_update(write, live, obj)
    obj = dedup_owners(obj, write, DUPLICATE_OWNERS_PATCHED)  # of a patch: whoever repeats an owner owns it
    if not version and not resource.unconditional_update:
        cause = FieldError(
            "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
        )
        raise invalid_kind(resource.group, resource.plural, write.name, [cause])
    if version and version != live.version:
        raise conflict(resource, write.name, OPTIMISTIC_LOCK)
    if nameless:
        raise internal_error_message("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    return _commit_update(write, obj, live), False


def _commit_update(write: Write, obj: Object, live: Stored) -> Stored:
    resource, server = write.resource, write.server
    old, kept = live.object, write.kept
    assert kept is not None
    obj = metadata.for_update(obj, old)
    obj["metadata"]["resourceVersion"] = str(live.version)
    held = obj
    if not resource.custom:
        obj = empty_values.drop(resource.schema, obj)
        write.changes.drops_empty = obj is not held
    obj = narrow(resource, write.subresource, obj, old)
    if resource.prepare_update:
        resource.prepare_update(obj, old)
    if resource.stamp_update:
        resource.stamp_update(obj, old, write.now)
    server.rules.generation(resource, write.subresource, obj, old, write.changes.omits_submitted)
    as_held = _as_held(resource, obj, held)
    if found := server.rules.on_update(resource, write.subresource, as_held, old, write.request.warn):
        raise invalid(resource, obj, found)
    for text in server.rules.warnings(resource, obj, old):
        write.request.warn(text)
    if not write.subresource:
        chain.expect_allowed(server, resource, write.namespace, obj, old)
    if _finished(obj["metadata"], old["metadata"]) and server.rules.may_finish(resource, obj):
        if not write.options.dry_run:
            gone = server.store.delete(write.table, kept)
            server.after_write(resource, live, gone, deleted=True)
        return Stored(_as_merged(write, empty_values.restore_nulls(obj, held)), live.version, resource)
    obj = write.changes.keep_times(write, _settled(write, obj), live)
    if resource.custom and write.subresource == "scale" and resource.storage is None:
        read = decoding.fill_defaults(resource, obj)  # what had no spec has no defaults, and is read with them
        obj, write.changes.bytes_differ = read, write.changes.bytes_differ or read != obj
    if write.changes.is_unchanged(resource, obj, live, kept):
        return live
    if resource.custom and resource.storage is None and not versions.is_current(resource, kept):
        obj = decoding.fill_defaults(resource, obj)  # so far it had the defaults of the version that it was kept at
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


def _finished(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether this update took the last thing that kept a deleting object."""
    return "deletionTimestamp" in old and not new.get("finalizers") and not old.get("deletionGracePeriodSeconds")


def _precondition(write: Write, uid: str, live: Stored | None) -> str:
    resource = write.resource
    root = "" if write.options.dry_run else "/registry"
    kept = f"{resource.group}/{resource.plural}" if resource.custom else _KEPT.get(resource.plural, resource.plural)
    place = f"{write.namespace}/" if resource.namespaced else ""
    found = live.object["metadata"]["uid"] if live else ""
    return (
        f"StorageError: invalid object, Code: 4, Key: {root}/{kept}/{place}{write.name}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {found}"
    )


def _requested_version(obj: Object) -> int:
    given = (obj.get("metadata") or {}).get("resourceVersion")
    if not given:
        return 0
    if problem := _misread(given):
        raise unclassified(f"strconv.ParseUint: parsing {quote_go(given)}: {problem}")
    return int(given)


def _misread(version: str) -> str:
    """What is wrong with a version as a number."""
    if not (version.isdigit() and version.isascii()):
        return "invalid syntax"
    return "value out of range" if int(version) >= 1 << 64 else ""


def expect_namespace(obj: Object, write: Write) -> Object:
    """An object without a namespace gets the request's; another one is refused."""
    given = obj.get("metadata") or {}
    namespace = given.get("namespace") or ""
    wanted = write.namespace if write.resource.namespaced else ""
    if namespace == wanted:
        return obj
    if not namespace or not wanted:
        return {
            **obj,
            "metadata": {
                **{k: v for k, v in given.items() if k != "namespace"},
                **({"namespace": wanted} if wanted else {}),
            },
        }
    raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def dedup_owners(obj: Object, write: Write, wording: str) -> Object:
    obj, repeated = metadata.without_duplicate_owners(obj)
    if repeated:
        write.request.warn(wording.format(", ".join(repeated)))
    return obj
