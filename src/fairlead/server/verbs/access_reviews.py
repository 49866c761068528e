"""Reviews of access: may this user do that, and what may I do here."""

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
    """SubjectAccessReview, its local form, and SelfSubjectAccessReview."""
    write, obj = virtual_resources.received(server, request, route, route.resource)
    spec = obj.get("spec") or {}
    own = route.resource.kind == "SelfSubjectAccessReview"
    local = route.resource.kind == "LocalSubjectAccessReview"
    if found := _wrong(route.resource.schema, obj, spec, own=own, local=local):
        raise invalid_kind(route.resource.group, "", "", found)
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    user = (
        request.user
        if own
        else User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)
    )
    decision = server.authorizer.decide(_attributes(user, spec))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return virtual_resources.answered(write, {**obj, "status": status})


def review_own_rules(server: "Server", request: Request, route: Route) -> Response:
    """SelfSubjectRulesReview."""
    write, obj = virtual_resources.received(server, request, route, route.resource, tracked=False)
    namespace = (obj.get("spec") or {}).get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    found, problems = server.authorizer.rules(request.user, namespace)
    words = ("verbs", "apiGroups", "resources", "resourceNames")
    status = {
        "resourceRules": [_only(rule, words) for rule in found if rule.get("resources")],
        "nonResourceRules": [
            _only(rule, ("verbs", "nonResourceURLs")) for rule in found if rule.get("nonResourceURLs")
        ],
        "incomplete": bool(problems),
    }
    if problems:
        status["evaluationError"] = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return virtual_resources.answered(write, {**obj, "metadata": {}, "spec": {}, "status": status})


def _only(rule: Object, words: tuple[str, ...]) -> Object:
    return {word: rule[word] for word in words if rule.get(word)}


def _attributes(user: User, spec: Object) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(user, path.get("verb") or "", path=path.get("path") or "/")
    given: dict[str, Any] = spec["resourceAttributes"]
    words = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(user, *(given.get(word) or "" for word in words))


def _wrong(schema: Node, obj: Object, spec: Object, *, own: bool, local: bool) -> list[FieldError]:
    found: list[FieldError] = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        told = "cannot be specified in combination with resourceAttributes"
        found.append(field_errors.invalid("spec.nonResourceAttributes", _internal(path), told))
    if resource is None and path is None:
        told = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(field_errors.invalid("spec.resourceAttributes", None, told))
    if not own and not spec.get("user") and not spec.get("groups"):
        found.append(field_errors.invalid("spec.user", "", "at least one of user or group must be specified"))
    metadata = obj.get("metadata") or {}
    allowed = {"managedFields", "creationTimestamp"} | ({"namespace"} if local else set())
    if any(value for key, value in metadata.items() if key not in allowed):
        told = "must be empty except for namespace" if local else "must be empty"
        shown = _in_go_order(schema.fields["metadata"], {k: v for k, v in metadata.items() if v})
        message = f"Invalid value: {msgspec.json.encode(shown).decode()}: {told}"
        found.append(FieldError("FieldValueInvalid", "metadata", message))
    if local:
        namespace = metadata.get("namespace") or ""
        if resource is not None and (resource.get("namespace") or "") != namespace:
            told = "must match metadata.namespace"
            found.append(
                field_errors.invalid("spec.resourceAttributes.namespace", resource.get("namespace") or "", told)
            )
        if path is not None:
            told = "disallowed on this kind of request"
            found.append(field_errors.invalid("spec.nonResourceAttributes", _internal(path), told))
    return found


def _in_go_order(node: Node, value: Any) -> Any:
    """A value with the fields of its structs in the order in which their Go types declare them."""
    if isinstance(value, list) and node.items:
        return [_in_go_order(node.items, item) for item in value]
    if isinstance(value, dict) and node.fields:
        return {key: _in_go_order(node.fields[key], value[key]) for key in node.fields if key in value}
    return value


def _internal(path: Object) -> Object:
    """As the real server's internal type is written, whose fields have no names of their own."""
    return {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
