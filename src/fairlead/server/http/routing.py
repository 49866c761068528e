"""Routing: find the kind, the object and the verb that the path and method of a request name."""

from dataclasses import dataclass
from urllib.parse import unquote

from fairlead.api.gojson import quote_go
from fairlead.server.errors.statuses import (
    bad_request,
    internal_error_message,
    method_not_allowed,
    method_not_supported,
    not_found,
    unclassified,
    unknown_path,
)
from fairlead.server.http.messages import Request
from fairlead.server.http.options import parse_boolean
from fairlead.server.registry.resource import Resource

METHODS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
SUBRESOURCE_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch"}
SINGLE_OBJECT_VERBS = frozenset(OBJECT_VERBS.values())
# Subresources that only one kind has: the verb of each HTTP method.
KIND_SUBRESOURCES = {
    ("", "namespaces", "finalize"): {"PUT": "update"},
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): SUBRESOURCE_VERBS,
    ("", "pods", "binding"): {"POST": "binding"},
    ("", "pods", "eviction"): {"POST": "eviction"},
    ("", "pods", "log"): {"GET": "log"},
    ("", "serviceaccounts", "token"): {"POST": "create"},
}


class NoSuchPath(Exception):
    """Raised if the server has nothing at a path. The response is a plain 404 without a Status."""


@dataclass(slots=True)
class Target:
    """The parts of a path below /api/v1 or /apis/GROUP/VERSION. `namespace` is "" if the path has none."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False  # the old /watch/ prefix
    has_extra_segments: bool = False  # segments follow the subresource
    has_namespace: bool = False  # the path has a namespace segment, which may be empty


def split_segments(path: str) -> list[str]:
    """Return the decoded segments of a path.

    An encoded slash separates too; leading and trailing slashes are ignored.
    """
    return unquote(path).strip("/").split("/")


def parse(path: str) -> Target | None:
    """Return the target of a resource path, or None for any other path, such as /healthz or /apis."""
    segments = split_segments(path)
    if path.startswith("//"):
        return None
    if segments[0] == "api" and len(segments) >= 3:
        group, version, resource_path = "", segments[1], segments[2:]
    elif segments[0] == "apis" and len(segments) >= 4 and segments[1]:
        group, version, resource_path = segments[1], segments[2], segments[3:]
    else:
        return None
    is_watch = resource_path[0] == "watch"
    if is_watch:
        resource_path = resource_path[1:]
        if not resource_path:
            return None
    if resource_path[0] == "namespaces" and len(resource_path) >= 3 and not _is_namespace_subresource(resource_path):
        target = Target(
            group, version, resource_path[2], namespace=resource_path[1], is_watch=is_watch, has_namespace=True
        )
        tail = resource_path[3:]
    else:
        target = Target(group, version, resource_path[0], is_watch=is_watch)
        tail = resource_path[1:]
    if tail:
        target.name = tail[0]
    if len(tail) > 1:
        target.subresource = tail[1]
        target.has_extra_segments = len(tail) > 2
    return target


def _is_namespace_subresource(resource_path: list[str]) -> bool:
    """Return whether a path is namespaces/NAME/status or namespaces/NAME/finalize, and not a kind in a namespace."""
    return len(resource_path) == 3 and resource_path[2] in ("status", "finalize")


@dataclass(slots=True)
class Route:
    """The kind, the object and the verb that a request addresses."""

    resource: Resource
    verb: str
    namespace: str
    name: str
    subresource: str


def request_verb(request: Request, *, has_name: bool, is_watch: bool) -> str:
    """Return the verb that authorization checks, such as "list". `has_name`: the path names an object.

    `is_watch`: the path has the old /watch/ prefix.
    """
    verb = "watch" if is_watch else METHODS.get(request.method, "")
    if has_name:
        return verb
    if verb == "get":
        return "watch" if "watch" in request.query and parse_boolean(request.first("watch")) else "list"
    return "deletecollection" if verb == "delete" else verb


def resolve_route(resource: Resource, target: Target, request: Request) -> Route:
    """Return the route of a request for a served kind. Raises StatusError or NoSuchPath."""
    verb = (_find_custom_verb if resource.custom else _find_builtin_verb)(resource, target, request)
    _check_segments(resource, target, verb)
    return Route(resource, verb, target.namespace, target.name, target.subresource)


def _find_custom_verb(resource: Resource, target: Target, request: Request) -> str:
    """Return the verb of a request for a custom kind. Path segments after the subresource are ignored."""
    verb = request_verb(request, has_name=bool(target.name), is_watch=target.is_watch)
    if resource.namespaced and not target.namespace and verb not in ("list", "watch"):
        raise NoSuchPath
    if target.subresource and not _has_subresource(resource, target.subresource):
        raise not_found(resource, target.name)
    if verb not in (SUBRESOURCE_VERBS.values() if target.subresource else resource.verbs):
        raise method_not_supported(resource, verb)
    if verb in ("update", "patch") and not target.name:
        raise bad_request("name must be provided")
    return verb


def _find_builtin_verb(resource: Resource, target: Target, request: Request) -> str:
    """Return the verb of a request for a built-in kind. Each path allows a fixed set of methods, without HEAD."""
    if target.has_extra_segments or (target.is_watch and target.subresource):
        raise unknown_path()
    if target.subresource:
        methods = KIND_SUBRESOURCES.get((resource.group, resource.plural, target.subresource))
        if _has_subresource(resource, target.subresource):
            methods = SUBRESOURCE_VERBS
        if methods is None:
            raise unknown_path()
    elif target.name:
        if (resource.namespaced and not target.has_namespace) or not SINGLE_OBJECT_VERBS & set(resource.verbs):
            raise unknown_path()
        methods = OBJECT_VERBS
    else:
        methods = COLLECTION_VERBS
    verb = methods.get(request.method, "")
    if not target.subresource and verb not in resource.verbs:
        verb = ""
    if resource.namespaced and not target.namespace and verb in ("create", "deletecollection"):
        verb = ""
    if target.is_watch and request.method != "GET":
        verb = ""  # it was authorized as a watch, so it must not do anything else
    if not verb:
        raise method_not_allowed()
    if target.subresource and not target.name:
        raise bad_request("name must be provided")
    if target.name and resource.namespaced and not target.namespace:
        raise bad_request("Namespace parameter required.")
    return (
        request_verb(request, has_name=False, is_watch=target.is_watch)
        if verb == "list"
        else "watch"
        if target.is_watch
        else verb
    )


def _has_subresource(resource: Resource, subresource: str) -> bool:
    return (subresource == "status" and resource.has_status) or (subresource == "scale" and resource.scale is not None)


def _check_segments(resource: Resource, target: Target, verb: str) -> None:
    """Raise 400 for a name or namespace that cannot be part of a storage key, such as ".."."""
    if errors := segment_errors(target.name):
        raise bad_request(f"Name parameter invalid: {quote_go(target.name)}: {errors}")
    if target.namespace in (".", "..") and verb == "create" and not target.name:
        raise internal_error_message(
            f"invalid resource name {quote_go(target.namespace)}: [{segment_errors(target.namespace)}]"
        )
    if target.namespace in (".", ".."):
        resource_path = f"/{resource.group}/{resource.plural}" if resource.custom else f"/{resource.plural}"
        raise unclassified(
            f"invalid key: {quote_go('/'.join(filter(None, [resource_path, target.namespace, target.name])))}"
        )


def segment_errors(name: str) -> str:
    """Return why a name cannot be a path segment, or "" if it can."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return ";".join(f"may not contain '{character}'" for character in "/%" if character in name)
