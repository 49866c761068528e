"""The attributes of a request that an authorizer decides on: user, verb, and resource or path."""

from dataclasses import dataclass
from urllib.parse import unquote

from fairlead.server.authentication.users import User
from fairlead.server.http.messages import Request
from fairlead.server.http.routing import request_verb, segment_errors, split_segments


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a user wants to do: a verb on a resource or, if `path` is set, on a non-resource path such as /metrics."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as RBAC rules name it: pods or pods/log."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def request_attributes(request: Request) -> Attributes:
    """Return the attributes of a request, computed from its path and method alone. The kind need not be served."""
    segments = split_segments(request.path)
    if segments[0] == "api" and len(segments) >= 3:
        group, version, resource_path = "", segments[1], segments[2:]
    elif segments[0] == "apis" and len(segments) >= 4:
        group, version, resource_path = segments[1], segments[2], segments[3:]
    else:
        return Attributes(request.user, request.method.lower(), path=unquote(request.path))
    is_watch = resource_path[0] == "watch" and len(resource_path) > 1
    if is_watch:
        resource_path = resource_path[1:]
    namespace = ""
    if resource_path[0] == "namespaces" and len(resource_path) > 1:
        namespace = resource_path[1]
        if len(resource_path) > 2 and resource_path[2] not in ("status", "finalize"):
            resource_path = resource_path[2:]
    name = resource_path[1] if len(resource_path) > 1 else ""
    subresource = resource_path[2] if len(resource_path) > 2 else ""
    verb = request_verb(request, has_name=bool(name), is_watch=is_watch)
    if not name and not is_watch and verb in ("list", "watch"):
        name = _find_selected_name(request.first("fieldSelector"))
    return Attributes(request.user, verb, group, version, resource_path[0], subresource, namespace, name)


def _find_selected_name(selector: str) -> str:
    """Return the object name that a field selector such as metadata.name=web requires, or "" if it requires none.

    A user with access to one object may list and watch that object with such a selector.
    """
    for term in selector.split(","):
        key, equals, value = term.partition("=")
        if key.strip() == "metadata.name" and equals and not segment_errors(name := value.removeprefix("=").strip()):
            return name
    return ""
