"""The create handler, and the steps of a create: admission, ownership, metadata, preparation, validation, commit."""

from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import already_exists, being_deleted, invalid, unclassified
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.schema import empty_values
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Object, Stored
from fairlead.server.write import commit, decoding, metadata, stored_defaults, validation
from fairlead.server.write.escalation import reject_escalation
from fairlead.server.write.write_request import Write

if TYPE_CHECKING:
    from fairlead.server.app import Server

ALPHANUMS = "bcdfghjklmnpqrstvwxz2456789"  # of generated names: without vowels, so that they form no words


def create(server: "Server", request: Request, route: Route) -> Response:
    """Store the object in the body and return the 201 response."""
    representation = negotiation.negotiate(request, route.resource, is_list=False)
    options = write_options(request, "CreateOptions")
    write = Write(server, request, route.resource, route.namespace, "", route.subresource, options)
    return representation.object_response(201, create_object(write, decoding.decode_body(write)), request.warnings)


def create_object(write: Write, obj: Object) -> Stored:
    """Store a new object and return it. After a dry run, the object has no resourceVersion and is not stored."""
    obj = metadata.expect_namespace(metadata.remove_system_fields(obj), write)
    obj = metadata.remove_duplicate_owners(obj, write, metadata.DUPLICATE_OWNERS)
    expect_established(write, obj)
    obj = admit_create(write, write.server.field_tracker.track_create(write, obj))
    return commit_create(write, set_system_metadata(obj, write))


def expect_established(write: Write, obj: Object) -> None:
    """Raise 403 or 405 if the definition of a new custom resource is being deleted."""
    if write.resource.custom:
        name = (obj.get("metadata") or {}).get("name") or write.name
        write.server.definitions.admit_create(write.resource, name)


def admit_create(write: Write, obj: Object) -> Object:
    """Return a new object with the changes of the admission chain. Raises StatusError if a plugin rejects it."""
    obj = write.server.admission.admit(write.admission_attributes(obj, None))
    obj = metadata.remove_duplicate_owners(obj, write, metadata.DUPLICATE_OWNERS_PATCHED)
    obj = metadata.expect_namespace(obj, write)
    reject_escalation(write, obj, None)
    return obj


def set_system_metadata(obj: Object, write: Write) -> Object:
    obj = metadata.prepare_create(
        obj,
        namespace=write.namespace if write.resource.namespaced else "",
        uid=write.request.remember("uid", write.server.world.uid),
        now=write.now,
    )
    new_metadata = obj["metadata"]
    if new_metadata.get("generateName") and not new_metadata.get("name"):
        prefix = new_metadata["generateName"][:58]  # With the suffix the name has at most 63 characters.
        new_metadata["name"] = prefix + write.request.remember("suffix", lambda: _draw_suffix(write))
    return obj


def _draw_suffix(write: Write) -> str:
    return "".join(write.server.world.random.choice(ALPHANUMS) for _ in range(5))


def commit_create(write: Write, obj: Object, *, is_by_update: bool = False) -> Stored:
    resource = write.resource
    if resource.has_generation:
        obj["metadata"]["generation"] = 1
    if resource.custom and resource.has_status:
        obj.pop("status", None)
        obj = stored_defaults.fill_new_status(write, obj)
    with_empty_values = obj
    if not resource.custom:
        obj = empty_values.drop(resource.schema, obj)
    new_metadata = obj["metadata"]
    if resource.bytes_differ is not None and resource.bytes_differ(obj):
        write.changes.bytes_differ = True
    if resource.prepare_for_user:
        resource.prepare_for_user(obj, write.request.user)
    if resource.prepare_create:
        resource.prepare_create(obj)
    name = new_metadata.get("name") or ""
    if errors := validation.validate_create(resource, commit.restore_empty_values(resource, obj, with_empty_values)):
        raise invalid(resource, obj, errors)
    # The kind's rules for names are stricter than the generic ones, but not its rules for prefixes.
    if "generateName" in new_metadata and (errors := metadata.validate(new_metadata, resource, is_generic=True)):
        raise invalid(resource, obj, errors)
    for warning in validation.find_warnings(resource, obj, None):
        write.request.warn(warning)
    write.server.admission.validate(write.admission_attributes(obj, None))
    if not write.options.dry_run:
        _remove_resource_version(new_metadata, is_by_update=is_by_update)
    live = write.table.get(new_metadata.get("namespace", ""), name)
    if live is not None:
        if new_metadata.get("generateName") or not live.object["metadata"].get("deletionTimestamp"):
            raise already_exists(resource, name)
        raise being_deleted(resource, name)
    obj = commit.prune_and_normalize(write, obj)
    if write.options.dry_run:
        return Stored(versions.read_back(resource, obj), 0, resource)
    return commit.put(write, obj, None)


def _remove_resource_version(new_metadata: Object, *, is_by_update: bool) -> None:
    """Remove the resourceVersion of a new object. Raises 500 if a create sets a valid resourceVersion."""
    version = new_metadata.pop("resourceVersion", "")
    if version and not is_by_update and not metadata.resource_version_error(version) and int(version):
        raise unclassified("resourceVersion should not be set on objects to be created")
