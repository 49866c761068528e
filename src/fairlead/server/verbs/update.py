"""The update handler, and the steps of every update: PUT, patch and scale.

If nothing changed, an update stores nothing. If it removes the last finalizer of an object that is being deleted, it
deletes the object.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.api.gojson import quote_go
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import (
    OPTIMISTIC_LOCK,
    bad_request,
    conflict,
    internal_error_message,
    invalid,
    invalid_kind,
    not_found,
    unclassified,
)
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.schema import empty_values
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Object, Stored
from fairlead.server.verbs.create import admit_create, commit_create, expect_established, set_system_metadata
from fairlead.server.verbs.deletion_rules import can_be_removed
from fairlead.server.write import commit, decoding, metadata, stored_defaults, validation
from fairlead.server.write.change_detection import can_skip_update
from fairlead.server.write.escalation import reject_escalation, require_create_access
from fairlead.server.write.subresources import keep_other_parts
from fairlead.server.write.write_request import Write

if TYPE_CHECKING:
    from fairlead.server.app import Server

ComputeUpdate = Callable[[Stored | None], Object]  # from the live object, or None, to the new one

_ETCD_PREFIXES = {  # resources whose etcd prefix is not their plural: precondition messages show it
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


def update(server: "Server", request: Request, route: Route) -> Response:
    """Replace the object of the route by the object in the body, and return the response."""
    resource = route.resource
    representation = negotiation.negotiate(request, resource, is_list=False)
    options = write_options(request, "UpdateOptions")
    write = Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    obj = metadata.expect_namespace(decoding.decode_body(write), write)
    obj = expect_name(obj, route.name)
    obj = metadata.remove_duplicate_owners(obj, write, metadata.DUPLICATE_OWNERS)
    uid = (obj.get("metadata") or {}).get("uid") or ""
    stored, created = update_object(write, lambda live: obj, uid=uid)
    return representation.object_response(201 if created else 200, stored, request.warnings)


def expect_name(obj: Object, name: str) -> Object:
    """Return the object. Raises 400 if its name is not the name in the path."""
    own_name = (obj.get("metadata") or {}).get("name") or ""
    if not own_name:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if own_name != name:
        raise bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
    return obj


def update_object(
    write: Write, compute: ComputeUpdate, *, uid: str = "", may_create: bool = False, is_owned: bool = False
) -> tuple[Stored, bool]:
    """Change an object, or create it if the kind or `may_create` permits that. Return it, and whether it is new.

    `compute` returns the new object for the live one. `uid` is a precondition on the live object. `is_owned`: `compute`
    has already set the managedFields.
    """
    resource, server = write.resource, write.server
    live = write.live
    # If an update may create an object of this kind, an update of its status may create one too.
    if live is None and not may_create and (not resource.creates_on_update or write.subresource not in ("", "status")):
        raise not_found(resource, write.name)
    if uid and uid != (live.object["metadata"]["uid"] if live else ""):
        raise conflict(resource, write.name, _format_uid_precondition(write, uid, live))
    obj = compute(live)
    if (
        live is not None
        and obj is live.object
        and can_skip_update(resource, live, write.stored)
        and not server.admission.is_dynamic
    ):
        return live, False
    version = _parse_requested_version(obj)
    if live is None:
        require_create_access(write)
        obj = metadata.expect_namespace(obj, write)
        expect_established(write, obj)
        if not is_owned:
            obj = server.field_tracker.track_create(write, obj)
        return commit_create(write, set_system_metadata(admit_create(write, obj), write), is_by_update=True), True
    lacks_api_version = resource.custom and not obj.get("apiVersion")
    if not is_owned and not lacks_api_version:
        obj = server.field_tracker.track_update(write, live, obj)
    if write.shown_as is None:
        obj = server.admission.admit(write.admission_attributes(obj, live.object))
    # A writer owns the duplicate owner references of its patch, so they are removed only after tracking.
    obj = metadata.remove_duplicate_owners(obj, write, metadata.DUPLICATE_OWNERS_PATCHED)
    reject_escalation(write, obj, live.object)
    if not version and not resource.allows_unconditional_update:
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
    metadata.update_generation(resource, write.subresource, obj, old, has_changed=changes.omits_submitted)
    to_validate = commit.restore_empty_values(resource, obj, with_empty_values)
    if errors := validation.validate_update(resource, write.subresource, to_validate, old, write.request.warn):
        raise invalid(resource, obj, errors)
    for warning in validation.find_warnings(resource, obj, old):
        write.request.warn(warning)
    server.admission.validate(write.admission_attributes(obj, old))
    if _lost_last_finalizer(obj["metadata"], old["metadata"]) and can_be_removed(resource, obj):
        if not write.options.dry_run:
            deleted = server.store.delete(write.table, stored)
            server.after_write(resource, live, deleted, is_deleted=True)
        return Stored(
            _restore_merged_metadata(write, empty_values.restore_nulls(obj, with_empty_values)), live.version, resource
        )
    obj = changes.keep_times(write, commit.prune_and_normalize(write, obj), live)
    obj = stored_defaults.fill_after_scale(write, obj)
    if changes.is_unchanged(resource, obj, live, stored):
        return live
    obj = stored_defaults.fill_after_version_change(write, obj)
    if write.options.dry_run:
        return Stored(versions.read_back(resource, obj), live.version, resource)
    return commit.put(write, obj, live)


def _lost_last_finalizer(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Return whether an object that is being deleted has neither finalizers nor a grace period left."""
    return "deletionTimestamp" in old and not new.get("finalizers") and not old.get("deletionGracePeriodSeconds")


def _restore_merged_metadata(write: Write, obj: Object) -> Object:
    """Return the response to an apply that deleted the object, with the metadata that the apply left empty."""
    obj = commit.normalize_numbers(write, obj)
    new_metadata, merged = obj["metadata"], write.changes.merged_metadata or {}
    added_fields = {
        key: value for key, value in merged.items() if key not in new_metadata or key in ("annotations", "labels")
    }
    return {**obj, "metadata": {**new_metadata, **added_fields}} if added_fields else obj


def _format_uid_precondition(write: Write, uid: str, live: Stored | None) -> str:
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


def _parse_requested_version(obj: Object) -> int:
    version = (obj.get("metadata") or {}).get("resourceVersion")
    if not version:
        return 0
    if error := metadata.resource_version_error(version):
        raise unclassified(f"strconv.ParseUint: parsing {quote_go(version)}: {error}")
    return int(version)
