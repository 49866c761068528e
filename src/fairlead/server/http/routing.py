"""From a request's path and method to what is asked of which kind."""

from dataclasses import dataclass
from urllib.parse import unquote

from fairlead.server.errors.field_errors import quote_go
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
from fairlead.server.http.options import truth
from fairlead.server.registry.resource import Resource

METHODS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
SUBRESOURCE_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch"}
ON_OBJECTS = frozenset(OBJECT_VERBS.values())
# The subresources of single kinds: the verb of each method.
OF_KINDS = {
    ("", "namespaces", "finalize"): {"PUT": "update"},
    ("", "pods", "binding"): {"POST": "binding"},
    ("", "pods", "eviction"): {"POST": "eviction"},
    ("", "serviceaccounts", "token"): {"POST": "create"},
}


class NoSuchPath(Exception):
    """Nothing is served there, not even a Status."""


@dataclass(slots=True)
class Target:
    """A path under /api/v1 or /apis/GROUP/VERSION, taken apart. `namespace` is "" where the path names none."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the old /watch/ prefix
    deeper: bool = False  # more follows the subresource
    placed: bool = False  # the path names a namespace, be it an empty one


def segments(path: str) -> list[str]:
    """The parts of a path, decoded: an encoded slash parts them too. Slashes around them do not count."""
    return unquote(path).strip("/").split("/")


def parse(path: str) -> Target | None:
    """The target of a resource path, or None where the path is not one (discovery, health, anything else)."""
    parts = segments(path)
    if path.startswith("//"):
        return None
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4 and parts[1]:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
        if not rest:
            return None
    if rest[0] == "namespaces" and len(rest) >= 3 and not _of_namespace(rest):
        target = Target(group, version, rest[2], namespace=rest[1], watch=watch, placed=True)
        tail = rest[3:]
    else:
        target = Target(group, version, rest[0], watch=watch)
        tail = rest[1:]
    if tail:
        target.name = tail[0]
    if len(tail) > 1:
        target.subresource = tail[1]
        target.deeper = len(tail) > 2
    return target


def _of_namespace(rest: list[str]) -> bool:
    """namespaces/NAME/status and /finalize are subresources of the Namespace, not kinds within it."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")


@dataclass(slots=True)
class Route:
    """A target resolved: the kind as served, and the verb. An empty verb means the method is not allowed there."""

    resource: Resource
    verb: str
    namespace: str
    name: str
    subresource: str


def asked_verb(request: Request, *, named: bool, watch: bool) -> str:
    """What a request to a resource path asks for, as authorization sees it. `watch`: by the old prefix."""
    verb = "watch" if watch else METHODS.get(request.method, "")
    if named:
        return verb
    if verb == "get":
        return "watch" if "watch" in request.query and truth(request.first("watch")) else "list"
    return "deletecollection" if verb == "delete" else verb


def route(resource: Resource, target: Target, request: Request) -> Route:
    """What is to be done, on a kind that is served. Raises StatusError, or NoSuchPath."""
    verb = (_custom if resource.custom else _builtin)(resource, target, request)
    _check_segments(resource, target, verb)
    return Route(resource, verb, target.namespace, target.name, target.subresource)


def _custom(resource: Resource, target: Target, request: Request) -> str:
    """The path of a custom kind is read from its beginning: what follows the subresource does not count."""
    verb = asked_verb(request, named=bool(target.name), watch=target.watch)
    if resource.namespaced and not target.namespace and verb not in ("list", "watch"):
        raise NoSuchPath
    if target.subresource and not _has(resource, target.subresource):
        raise not_found(resource, target.name)
    if verb not in (SUBRESOURCE_VERBS.values() if target.subresource else resource.verbs):
        raise method_not_supported(resource, verb)
    if verb in ("update", "patch") and not target.name:
        raise bad_request("name must be provided")
    return verb


def _builtin(resource: Resource, target: Target, request: Request) -> str:
    """The paths of built-in kinds are there or not, each with its methods; HEAD is none of them."""
    if target.deeper or (target.watch and target.subresource):
        raise unknown_path()
    if target.subresource:
        methods = OF_KINDS.get((resource.group, resource.plural, target.subresource))
        if _has(resource, target.subresource):
            methods = SUBRESOURCE_VERBS
        if methods is None:
            raise unknown_path()
    elif target.name:
        if (resource.namespaced and not target.placed) or not ON_OBJECTS & set(resource.verbs):
            raise unknown_path()
        methods = OBJECT_VERBS
    else:
        methods = COLLECTION_VERBS
    verb = methods.get(request.method, "")
    if not target.subresource and verb not in resource.verbs:
        verb = ""
    if resource.namespaced and not target.namespace and verb in ("create", "deletecollection"):
        verb = ""
    if target.watch and request.method != "GET":
        verb = ""  # authorized as a watch, so it must not become anything else
    if not verb:
        raise method_not_allowed()
    if target.subresource and not target.name:
        raise bad_request("name must be provided")
    if target.name and resource.namespaced and not target.namespace:
        raise bad_request("Namespace parameter required.")
    return asked_verb(request, named=False, watch=target.watch) if verb == "list" else "watch" if target.watch else verb


def _has(resource: Resource, subresource: str) -> bool:
    return (subresource == "status" and resource.status) or (subresource == "scale" and resource.scale is not None)


def _check_segments(resource: Resource, target: Target, verb: str) -> None:
    """Refuse a name or namespace that could not be a part of a storage key."""
    if told := unfit(target.name):
        raise bad_request(f"Name parameter invalid: {quote_go(target.name)}: {told}")
    if target.namespace in (".", "..") and verb == "create" and not target.name:
        raise internal_error_message(f"invalid resource name {quote_go(target.namespace)}: [{unfit(target.namespace)}]")
    if target.namespace in (".", ".."):
        place = f"/{resource.group}/{resource.plural}" if resource.custom else f"/{resource.plural}"
        raise unclassified(f"invalid key: {quote_go('/'.join(filter(None, [place, target.namespace, target.name])))}")


def unfit(name: str) -> str:
    """Why a name is no part of a path; empty where it is one."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return ";".join(f"may not contain '{text}'" for text in "/%" if text in name)
