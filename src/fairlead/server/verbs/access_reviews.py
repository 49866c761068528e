"""The handlers of SubjectAccessReview, its local and self forms, and SelfSubjectRulesReview."""

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.server.authentication.users import User
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import bad_request, invalid_kind
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object
from fairlead.server.schema.nodes import Node
from fairlead.server.verbs import virtual_resources

if TYPE_CHECKING:
    from fairlead.server.app import Server


def review_access(server: "Server", request: Request, route: Route) -> Response:
    """Return the response to a SubjectAccessReview, LocalSubjectAccessReview or SelfSubjectAccessReview."""
    write, obj = virtual_resources.decode(server, request, route, route.resource)
    spec = obj.get("spec") or {}
    is_self = route.resource.kind == "SelfSubjectAccessReview"
    is_local = route.resource.kind == "LocalSubjectAccessReview"
    if errors := _validate(route.resource.schema, obj, spec, is_self=is_self, is_local=is_local):
        raise invalid_kind(route.resource.group, "", "", errors)
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    user = (
        request.user
        if is_self
        else User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)
    )
    decision = server.authorizer.decide(_build_attributes(user, spec))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return virtual_resources.respond(write, {**obj, "status": status})


def review_own_rules(server: "Server", request: Request, route: Route) -> Response:
    """Return the response to a SelfSubjectRulesReview."""
    write, obj = virtual_resources.decode(server, request, route, route.resource, is_tracked=False)
    namespace = (obj.get("spec") or {}).get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules, problems = server.authorizer.rules(request.user, namespace)
    keys = ("verbs", "apiGroups", "resources", "resourceNames")
    status = {
        "resourceRules": [_select_keys(rule, keys) for rule in rules if rule.get("resources")],
        "nonResourceRules": [
            _select_keys(rule, ("verbs", "nonResourceURLs")) for rule in rules if rule.get("nonResourceURLs")
        ],
        "incomplete": bool(problems),
    }
    if problems:
        status["evaluationError"] = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return virtual_resources.respond(write, {**obj, "metadata": {}, "spec": {}, "status": status})


def _select_keys(rule: Object, keys: tuple[str, ...]) -> Object:
    return {key: rule[key] for key in keys if rule.get(key)}


def _build_attributes(user: User, spec: Object) -> Attributes:
    non_resource = spec.get("nonResourceAttributes")
    if non_resource is not None:
        return Attributes(user, non_resource.get("verb") or "", path=non_resource.get("path") or "/")
    resource: dict[str, Any] = spec["resourceAttributes"]
    keys = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(user, *(resource.get(key) or "" for key in keys))


def _validate(schema: Node, obj: Object, spec: Object, *, is_self: bool, is_local: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    resource, non_resource = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and non_resource is not None:
        message = "cannot be specified in combination with resourceAttributes"
        errors.append(field_errors.invalid("spec.nonResourceAttributes", _to_go_attributes(non_resource), message))
    if resource is None and non_resource is None:
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(field_errors.invalid("spec.resourceAttributes", None, message))
    if not is_self and not spec.get("user") and not spec.get("groups"):
        errors.append(field_errors.invalid("spec.user", "", "at least one of user or group must be specified"))
    metadata = obj.get("metadata") or {}
    allowed = {"managedFields", "creationTimestamp"} | ({"namespace"} if is_local else set())
    if any(value for key, value in metadata.items() if key not in allowed):
        message = "must be empty except for namespace" if is_local else "must be empty"
        metadata_value = _sort_in_go_order(schema.fields["metadata"], {k: v for k, v in metadata.items() if v})
        message = f"Invalid value: {msgspec.json.encode(metadata_value).decode()}: {message}"
        errors.append(FieldError("FieldValueInvalid", "metadata", message))
    if is_local:
        namespace = metadata.get("namespace") or ""
        if resource is not None and (resource.get("namespace") or "") != namespace:
            message = "must match metadata.namespace"
            errors.append(
                field_errors.invalid("spec.resourceAttributes.namespace", resource.get("namespace") or "", message)
            )
        if non_resource is not None:
            message = "disallowed on this kind of request"
            errors.append(field_errors.invalid("spec.nonResourceAttributes", _to_go_attributes(non_resource), message))
    return errors


def _sort_in_go_order(node: Node, value: Any) -> Any:
    """Return a value with the fields of its structs in the order of their Go declarations."""
    if isinstance(value, list) and node.items:
        return [_sort_in_go_order(node.items, item) for item in value]
    if isinstance(value, dict) and node.fields:
        return {key: _sort_in_go_order(node.fields[key], value[key]) for key in node.fields if key in value}
    return value


def _to_go_attributes(attributes: Object) -> Object:
    """Return nonResourceAttributes with the field names of the internal Go type, as error messages print them."""
    return {"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""}
