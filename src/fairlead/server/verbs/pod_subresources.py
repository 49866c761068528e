"""The handlers of the Pod subresources binding and eviction."""

from functools import cache
from typing import TYPE_CHECKING

from fairlead.server.errors import field_errors
from fairlead.server.errors.statuses import bad_request, invalid_kind, not_found, status_error
from fairlead.server.golang import encoding
from fairlead.server.http import bodies
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import WriteOptions, write_options
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import builtin, codec
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs import virtual_resources
from fairlead.server.verbs.delete import DeleteOptions, delete_object
from fairlead.server.write import metadata
from fairlead.server.write.write_request import Write

if TYPE_CHECKING:
    from fairlead.server.app import Server

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(server: "Server", request: Request, route: Route) -> Response:
    """Assign a Pod to the node in a Binding. Raises 409 if the Pod already has a node."""
    options = write_options(request, "CreateOptions")
    binding = _admit(server, request, route, options, _read_body(request, "v1", "Binding", route.name))
    target = binding.get("target") or {}
    if not target.get("name"):
        raise invalid_kind("", "Binding", route.name, [field_errors.required("target.name")])
    live = _get_pod(server, route)
    if reason := _find_binding_error(route.name, live.object):
        message = f'Operation cannot be fulfilled on pods/binding "{route.name}": {reason}'
        raise status_error(409, "Conflict", message, {"name": route.name, "kind": "pods/binding"})
    if options.dry_run:
        return Response(201, encoding.encode(SUCCESS), warnings=request.warnings)
    status = live.object.get("status") or {}
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": server.now}
    conditions = [c for c in status.get("conditions") or () if c["type"] != "PodScheduled"]
    obj = {
        **live.object,
        "spec": {**live.object["spec"], "nodeName": target["name"]},
        "status": {**status, "conditions": [*conditions, scheduled]},
    }
    stored = server.store.put(server.store.table("", "pods"), obj)
    server.after_write(route.resource, live, stored)
    return Response(201, encoding.encode(SUCCESS), warnings=request.warnings)


def _find_binding_error(name: str, pod: Object) -> str:
    """Return why a Pod cannot be assigned to a node, or "" if it can."""
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if pod["spec"].get("schedulingGates") else ""


def evict(server: "Server", request: Request, route: Route) -> Response:
    """Delete a Pod unless a PodDisruptionBudget forbids it."""
    write = write_options(request, "CreateOptions")
    eviction = _admit(server, request, route, write, _read_body(request, "policy/v1", "Eviction", route.name))
    live = _get_pod(server, route)
    _check_disruption_budgets(server, live.object)
    options = eviction.get("deleteOptions") or {}
    preconditions = options.get("preconditions") or {}
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    dry_run = bool(request.query.get("dryRun") or options.get("dryRun"))
    live_metadata = live.object["metadata"]
    if not dry_run and uid in (None, live_metadata["uid"]) and version in (None, live_metadata["resourceVersion"]):
        live, version = (
            _add_disruption_condition(server, route, live),
            None,
        )  # the precondition was checked against the version before this write
    delete_object(
        server,
        route.resource,
        live,
        DeleteOptions(grace=options.get("gracePeriodSeconds"), uid=uid, version=version, dry_run=dry_run),
    )
    return Response(201, encoding.encode(SUCCESS), warnings=request.warnings)


def _add_disruption_condition(server: "Server", route: Route, live: Stored) -> Stored:
    """Add the condition DisruptionTarget to a Pod, so that holders of its finalizers see the eviction.

    Return the Pod.
    """
    status = live.object.get("status") or {}
    conditions = status.get("conditions") or []
    existing = [c for c in conditions if c["type"] == "DisruptionTarget" and c["status"] == "True"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": existing[0].get("lastTransitionTime") if existing else server.now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    if condition in conditions:
        return live
    other_conditions = [c for c in conditions if c["type"] != "DisruptionTarget"]
    obj = {**live.object, "status": {**status, "conditions": [*other_conditions, condition]}}
    stored = server.store.put(server.store.table("", "pods"), obj)
    server.after_write(route.resource, live, stored)
    return stored


def _admit(server: "Server", request: Request, route: Route, options: WriteOptions, obj: Object) -> Object:
    """Return a Binding or an Eviction with the changes of admission. Raises StatusError if a plugin rejects it."""
    if not server.admission.is_dynamic:
        return obj
    resource = _find_kind(route.subresource)
    write = Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    with_kind = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    decoded = codec.decode(resource.schema, metadata.expect_namespace(with_kind, write)).object
    obj = server.field_tracker.track_create(write, decoded)
    obj = server.admission.admit(virtual_resources.admission_attributes(write, route, obj))
    server.admission.validate(virtual_resources.admission_attributes(write, route, obj))
    return obj


@cache
def _find_kind(subresource: str) -> Resource:
    group, version, kind = ("policy", "v1", "Eviction") if subresource == "eviction" else ("", "v1", "Binding")
    schema = builtin.schema_of_kind(group, version, kind)
    return Resource(group, version, kind, f"{subresource}s", subresource, True, schema)


def _get_pod(server: "Server", route: Route) -> Stored:
    live = server.store.table("", "pods").get(route.namespace, route.name)
    if live is None:
        raise not_found(route.resource, route.name)
    return live


def _read_body(request: Request, api_version: str, kind: str, name: str) -> Object:
    value = bodies.decode_plain(request, api_version, kind)
    obj = value if isinstance(value, dict) else {}
    if ((obj.get("metadata") or {}).get("name") or "") != name:
        raise bad_request(f"name in URL does not match name in {kind} object")
    return obj


def _check_disruption_budgets(server: "Server", pod: Object) -> None:
    """Raise 429 if a PodDisruptionBudget does not allow an eviction. `kubectl drain` retries on 429."""
    labels = pod["metadata"].get("labels") or {}
    namespace = pod["metadata"]["namespace"]
    for _, stored in server.store.table("policy", "poddisruptionbudgets").scan(namespace):
        match_labels = ((stored.object.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
        if not match_labels or any(labels.get(k) != v for k, v in match_labels.items()):
            continue
        if (stored.object.get("status") or {}).get("disruptionsAllowed", 0) < 1:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            name = stored.object["metadata"]["name"]
            detail = f"The disruption budget {name} does not allow evicting pods currently"
            raise status_error(
                429, "TooManyRequests", message, {"causes": [{"reason": "DisruptionBudget", "message": detail}]}
            )
