"""From a request's path and method to what is asked of which kind."""

from dataclasses import dataclass
from urllib.parse import unquote

from fairlead.server.registry.resource import Resource

COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


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


def parse(path: str) -> Target | None:
    """The target of a resource path, or None where the path is not one (discovery, health, anything else)."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
        if not rest:
            return None
    if rest[0] == "namespaces" and len(rest) >= 3 and not _of_namespace(rest):
        target = Target(group, version, rest[2], namespace=rest[1], watch=watch)
        tail = rest[3:]
    else:
        target = Target(group, version, rest[0], watch=watch)
        tail = rest[1:]
    if len(tail) > 2:
        return None
    if tail:
        target.name = tail[0]
    if len(tail) == 2:
        target.subresource = tail[1]
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
