"""The request part of an AdmissionReview, which webhooks receive and CEL expressions read as `request`."""

from typing import Any

from fairlead.server.admission.plugin import CREATE, DELETE, UPDATE, AdmissionAttributes
from fairlead.server.http import bodies
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import empty_values
from fairlead.server.storage import versions

_OPTIONS = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}
_DELETE_FIELDS = ("gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy", "dryRun")


def build_request(attributes: AdmissionAttributes, resource: Resource) -> Object:
    """Return the request of an AdmissionReview without its uid. `resource` is the one that the webhook asked for."""
    kind, requested = attributes.kind_at(resource), attributes.kind_at(attributes.resource)
    request: Object = {
        "kind": kind,
        "resource": _name_resource(resource),
        "subResource": attributes.subresource,
        "requestKind": requested,
        "requestResource": _name_resource(attributes.resource),
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": attributes.user.to_user_info(),
        "object": show_object(attributes, attributes.object, resource),
        "oldObject": show_object(attributes, attributes.old, resource),
        "dryRun": attributes.dry_run,
        "options": _build_options(attributes),
    }
    return {key: value for key, value in request.items() if value != ""}


def show_object(attributes: AdmissionAttributes, obj: Object | None, resource: Resource) -> Object | None:
    """Return an object as webhooks see it, at the version of `resource`."""
    if obj is None:
        return None
    if attributes.kind is None and obj.get("apiVersion") != resource.api_version:
        obj = versions.convert_unpruned(resource, obj)
    if resource.custom and attributes.kind is None:
        return obj
    return empty_values.drop((attributes.kind or resource).schema, obj)


def _name_resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _build_options(attributes: AdmissionAttributes) -> Object:
    """Return the options of the request. A patch has those of a create or an update."""
    request, operation = attributes.request, attributes.operation
    options: Object = {"kind": _OPTIONS[operation], "apiVersion": "meta.k8s.io/v1"}
    fields: dict[str, Any] = {"dryRun": request.query.get("dryRun")}
    if operation != DELETE:
        fields |= {key: request.first(key) for key in ("fieldManager", "fieldValidation")}
    elif request.body:
        body = bodies.decode_plain(request, "v1", "DeleteOptions")
        fields = {key: body.get(key) for key in _DELETE_FIELDS} if isinstance(body, dict) else {}
    else:
        fields |= {"propagationPolicy": request.first("propagationPolicy")}
        if seconds := request.first("gracePeriodSeconds"):
            fields["gracePeriodSeconds"] = int(seconds)
    return options | {key: value for key, value in fields.items() if value not in (None, "", [])}
