"""The handler of the Pod subresource log. No kubelet runs, so no Pod has logs."""

from typing import TYPE_CHECKING, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import bad_request, invalid_kind, not_found, unclassified
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import int64_option
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object

if TYPE_CHECKING:
    from fairlead.server.app import Server

_CONTAINER_FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")
_MINIMUM: Final = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}
_TOO_SMALL: Final = {0: "must be greater than or equal to 0", 1: "must be greater than 0"}


def read_log(server: "Server", request: Request, route: Route) -> Response:
    """Return 204 for a Pod without a node, as a real server does. Raises StatusError for all other Pods."""
    if errors := _validate_options(request):
        raise invalid_kind("", "PodLogOptions", route.name, errors)
    stored = server.table(route.resource).get(route.namespace, route.name)
    if stored is None:
        raise not_found(route.resource, route.name)
    spec: Object = stored.object.get("spec") or {}
    _check_container(route.name, spec, request.first("container"))
    node = spec.get("nodeName")
    if not node:
        return Response(204, b"", "text/plain")
    if server.store.table("", "nodes").get("", node) is None:
        raise not_found(route.resource, node)  # A real server, too, calls the missing node a Pod.
    raise unclassified("no preferred addresses found; known addresses: []")


def _validate_options(request: Request) -> list[FieldError]:
    errors = []
    for key, minimum in _MINIMUM.items():
        number = int64_option(request, key)
        if key in request.query and number is not None and number < minimum:
            errors.append(field_errors.invalid(key, number, _TOO_SMALL[minimum]))
    return errors


def _check_container(pod: str, spec: Object, container: str) -> None:
    names = [item["name"] for key in _CONTAINER_FIELDS for item in spec.get(key) or ()]
    if container and container not in names:
        raise bad_request(f"container {container} is not valid for pod {pod}")
    if not container and len(names) > 1:
        raise bad_request(f"a container name must be specified for pod {pod}, choose one of: [{' '.join(names)}]")
