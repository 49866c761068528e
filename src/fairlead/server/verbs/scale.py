"""The handlers of the scale subresource: the replicas of an object as an autoscaling/v1 Scale.

Field ownership is computed on the Scale and mapped back: a writer of /scale owns the replicas field of the object.
"""

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fairlead.api.fields import FieldSet, Path, path
from fairlead.server.errors import field_errors
from fairlead.server.errors.statuses import (
    StatusError,
    bad_request,
    invalid_kind,
    not_found,
    status_error,
    unclassified,
)
from fairlead.server.golang import encoding
from fairlead.server.http import bodies, negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.ownership import ManagedFields, ManagedFieldsEntry, decode
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import builtin
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs.patch import APPLY, decode_configuration, evaluate_apply, evaluate_patch, parse_patch_type
from fairlead.server.verbs.update import ComputeUpdate, expect_name, update_object
from fairlead.server.write import decoding, metadata
from fairlead.server.write.managed_fields import get_managed_fields, set_managed_fields
from fairlead.server.write.write_request import ShownAs, Write

if TYPE_CHECKING:
    from fairlead.server.app import Server

API_VERSION = "autoscaling/v1"
REPLICAS = path("spec", "replicas")
UNSET = -(2**31)  # the value of a real server for a custom resource's replicas that are not set


@cache
def scale_resource() -> Resource:
    schema = builtin.schema_of_kind("autoscaling", "v1", "Scale")
    return Resource("autoscaling", "v1", "Scale", "scales", "scale", True, schema)


def get_scale(server: "Server", request: Request, route: Route) -> Response:
    negotiation.negotiate(request, scale_resource(), is_list=False)
    stored = _find_live(server, route)
    if stored is None:
        raise not_found(route.resource, route.name)
    if route.resource.custom and _get_at(stored.object, route.resource.scale["specReplicasPath"]) is None:
        raise _build_missing_replicas_error(route.resource)
    return _respond(route.resource, stored, request)


def put_scale(server: "Server", request: Request, route: Route) -> Response:
    options = write_options(request, "UpdateOptions")
    write, inner = _create_writes(server, request, route, options)
    if route.resource.custom and _decode_kind(request) not in ("", "Scale"):
        source_location = "pkg/apiserver/customresource_handler.go:781"
        raise bad_request(f'no kind is registered for the type v1.Scale in scheme "{source_location}"')
    new_scale = decoding.decode_body(inner)
    new_scale = expect_name(metadata.expect_namespace(new_scale, write), route.name)

    def change(live: Stored | None) -> Object:
        if live is None:
            raise not_found(route.resource, route.name)
        scale = _build_scale(route.resource, live)
        tracked = server.field_tracker.track_update(inner, scale, new_scale)
        return _apply_scale(write, live, _admit(write, tracked, scale), inner.managed)

    return _update_replicas(write, change, request, uid=new_scale["metadata"].get("uid") or "")


def patch_scale(server: "Server", request: Request, route: Route) -> Response:
    kind = parse_patch_type(request, route.resource)
    bodies.check_size(request.body)
    options = write_options(request, "PatchOptions", is_apply=kind == APPLY)
    write, inner = _create_writes(server, request, route, options)

    def change(live: Stored | None) -> Object:
        if live is None:
            raise not_found(route.resource, route.name)
        scale = _build_scale(route.resource, live)
        if kind == APPLY:
            config, duplicates = decode_configuration(inner)
            if route.resource.custom and not get_managed_fields(scale):
                raise _build_conversion_error(
                    "failed to create manager for existing fields: failed to convert live", "/"
                )
            new_scale = evaluate_apply(inner, scale, config, duplicates)
            spec, before = config.get("spec") or {}, scale.object.get("spec") or {}
            is_zero = spec.get("replicas") == 0 and "replicas" not in before  # a Scale omits zero replicas
            metadata = config.get("metadata") or {}
            version = metadata.get("resourceVersion") or ""
            differs = (
                is_zero or version not in ("", str(live.version)) or new_scale.get("spec") != scale.object.get("spec")
            )
            differs = differs or bool(metadata.get("namespace") and not route.resource.namespaced)
            if route.resource.custom and differs:
                key = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
                raise _build_conversion_error("failed to convert new", key)
            new_scale = _admit(write, new_scale, scale)
            if new_scale is scale.object:
                return live.object
        else:
            new_scale = server.field_tracker.track_update(inner, scale, evaluate_patch(inner, kind, scale))
            new_scale = _admit(write, new_scale, scale)
        return _apply_scale(write, live, new_scale, inner.managed)

    return _update_replicas(write, change, request)


def _admit(write: Write, scale: Object, old: Stored) -> Object:
    """Return a Scale with the changes of admission. Raises StatusError if a plugin rejects the write."""
    attributes = write.admission_attributes(write.stored.object if write.stored else {}, old.object)
    attributes.object, attributes.old = scale, old.object
    return write.server.admission.admit(attributes)


def _create_writes(server: "Server", request: Request, route: Route, options: Any) -> tuple[Write, Write]:
    """Return two writes: of the object itself, and of its Scale."""
    outer = Write(server, request, route.resource, route.namespace, route.name, "scale", options)
    outer.shown_as = ShownAs(scale_resource(), partial(build_scale_object, route.resource))
    inner = Write(server, request, scale_resource(), route.namespace, route.name, "scale", options)
    return outer, inner


def _update_replicas(write: Write, change: ComputeUpdate, request: Request, uid: str = "") -> Response:
    stored, _ = update_object(write, change, uid=uid, is_owned=True)
    return _respond(write.resource, stored, request)


def _find_live(server: "Server", route: Route) -> Stored | None:
    space = route.namespace if route.resource.namespaced else ""
    stored = server.table(route.resource).get(space, route.name)
    return versions.view(route.resource, versions.expect_readable(route.resource, stored)) if stored else None


def _decode_kind(request: Request) -> str:
    try:
        value, _ = bodies.decode_value(request, API_VERSION, "Scale")
    except ValueError:
        return ""
    return str(value.get("kind") or "") if isinstance(value, dict) else ""


def _respond(resource: Resource, stored: Stored, request: Request) -> Response:
    return Response(200, encoding.encode(build_scale_object(resource, stored.object)), warnings=request.warnings)


def build_scale_object(resource: Resource, obj: Object) -> Object:
    """Return the Scale of an object."""
    paths = resource.scale
    metadata = {
        key: obj["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in obj["metadata"]
    }
    replicas = _get_at(obj, paths["specReplicasPath"]) or 0
    status: Object = {"replicas": _get_at(obj, paths["statusReplicasPath"]) or 0}
    selector = _format_selector(resource, obj)
    if selector:
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


def _format_selector(resource: Resource, obj: Object) -> str:
    if resource.custom:
        path = resource.scale.get("labelSelectorPath")
        return str(_get_at(obj, path) or "") if path else ""
    selector = obj["spec"].get("selector") or {}
    if not resource.group:  # a ReplicationController's is a plain map
        selector = {"matchLabels": selector}
    terms = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    requirements = list(terms.items())
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression["key"], expression["operator"]
        values = ",".join(sorted(expression.get("values") or ()))
        text_by_operator = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        requirements.append((key, text_by_operator[operator]))
    return ",".join(text for _, text in sorted(requirements))


def _build_scale(resource: Resource, live: Stored) -> Stored:
    """Return the Scale of a stored object, whose managedFields say who owns the replicas."""
    paths_by_version = _find_replica_paths(resource)
    managed_fields = tuple(
        ManagedFieldsEntry(
            entry.manager,
            entry.operation,
            API_VERSION,
            FieldSet.of(REPLICAS),
            subresource=entry.subresource,
            time=entry.time,
        )
        for entry in get_managed_fields(live)
        if (at := paths_by_version.get(entry.api_version)) and at in entry.fields
    )
    scale_object = build_scale_object(resource, live.object)
    if resource.custom and _get_at(live.object, resource.scale["specReplicasPath"]) is None:
        scale_object = {**scale_object, "spec": {"replicas": UNSET}}
    scale = Stored(set_managed_fields(scale_object, managed_fields), live.version)
    scale.derived["managed"] = managed_fields
    return scale


def _apply_scale(write: Write, live: Stored, scale: Object, managed_fields: ManagedFields | None) -> Object:
    """Return the object with the replicas of a Scale.

    The managers of the Scale's replicas own the object's replicas.
    """
    resource = write.resource
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas == UNSET and resource.custom:
        raise bad_request(f'the spec replicas field "{resource.scale["specReplicasPath"]}" cannot be empty')
    if replicas < 0 and not resource.custom:
        cause = field_errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_kind("autoscaling", "Scale", write.name, [cause])
    owners = _merge_owners(resource, get_managed_fields(live), managed_fields or ())
    version = scale["metadata"].get("resourceVersion") or str(live.version)
    obj = _set_at(live.object, resource.scale["specReplicasPath"].strip(".").split("."), replicas)
    obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
    obj = set_managed_fields(obj, owners)
    entries = obj["metadata"].get("managedFields") or []
    write.managed = decode(entries)  # of two entries of a manager, the later one counts
    is_unsorted = not resource.custom and any(_is_unsorted(entry["fieldsV1"]) for entry in entries)
    write.changes.bytes_differ = is_unsorted or len(entries) != len(write.managed)
    return obj


def _is_unsorted(fields: Object) -> bool:
    """Return whether the keys of encoded fields are unsorted. A real server sorts them in a write to /scale."""
    return list(fields) != sorted(fields) or any(_is_unsorted(inner) for inner in fields.values())


def _merge_owners(resource: Resource, owners: ManagedFields, scale_owners: ManagedFields) -> ManagedFields:
    """Return the managedFields of the object: its replicas belong to the managers of the Scale, without a time.

    An entry of a version without a scale stays unchanged. An entry of a version that does not exist is removed.
    """
    paths_by_version = _find_replica_paths(resource)
    scale_entries = {entry.identity: entry for entry in scale_owners}
    result: list[ManagedFieldsEntry] = []
    for entry in owners:
        if entry.api_version not in paths_by_version:
            continue
        at = paths_by_version[entry.api_version]
        if at is None or at not in entry.fields or scale_entries.pop(entry.identity, None) is not None:
            result.append(entry)
            continue
        remaining_fields = entry.fields - FieldSet.of(at)
        if remaining_fields:
            result.append(entry.with_fields(remaining_fields))
    for entry in scale_entries.values():
        if REPLICAS in entry.fields:
            replicas_field = FieldSet.of(_parse_replica_path(resource.scale))
            result.append(
                ManagedFieldsEntry(
                    entry.manager, entry.operation, resource.api_version, replicas_field, subresource=entry.subresource
                )
            )
    return tuple(result)


def _find_replica_paths(resource: Resource) -> dict[str, Path | None]:
    """Return the path of the replicas in each version of the kind, or None for a version without a scale."""
    if not resource.custom:
        return {resource.api_version: _parse_replica_path(resource.scale)}
    paths: dict[str, Path | None] = {}
    for version in resource.definition["spec"]["versions"]:
        scale = (version.get("subresources") or {}).get("scale")
        paths[f"{resource.group}/{version['name']}"] = _parse_replica_path(scale) if scale else None
    return paths


def _parse_replica_path(scale: Object) -> Path:
    return path(*scale["specReplicasPath"].strip(".").split("."))


def _get_at(obj: Object, dotted: str) -> Any:
    value: Any = obj
    for part in dotted.strip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _set_at(obj: Object, path: list[str], value: Any) -> Object:
    first, *deeper_parts = path
    return {**obj, first: _set_at(obj.get(first) or {}, deeper_parts, value) if deeper_parts else value}


def _build_missing_replicas_error(resource: Resource) -> StatusError:
    message = f'the spec replicas field "{resource.scale["specReplicasPath"]}" does not exist'
    return status_error(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def _build_conversion_error(failed_step: str, key: str) -> StatusError:
    """Return the 500 of a real server, which cannot apply a Scale to a custom resource."""
    reason = "request to convert CR to an invalid group/version: autoscaling/v1"
    return unclassified(f"{failed_step} object ({key}; autoscaling/v1, Kind=Scale) to proper version: {reason}")
