"""get."""

from typing import TYPE_CHECKING

from fairlead.server import representations
from fairlead.server.exchange import Request, Response
from fairlead.server.failures import not_found
from fairlead.server.lists import at_least
from fairlead.server.routing import Route

if TYPE_CHECKING:
    from fairlead.server.app import Server


def get(server: "Server", request: Request, route: Route) -> Response:
    resource = route.resource
    representation = representations.negotiate(request, resource, listing=False)
    asked = request.first("resourceVersion")
    present = at_least(server, request, asked, reading="get")
    table = server.table(resource)
    namespace = route.namespace if resource.namespaced else ""
    if asked and present < server.store.version:
        stored = table.get_at(namespace, route.name, present)
    else:
        stored = table.get(namespace, route.name)
    if stored is None:
        raise not_found(resource, route.name)
    return representation.answer(200, stored, request.warnings)
