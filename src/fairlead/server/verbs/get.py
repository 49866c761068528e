"""The get handler: read one object."""

from functools import partial
from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import not_found
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.routing import Route
from fairlead.server.storage import versions
from fairlead.server.verbs.lists import read_version

if TYPE_CHECKING:
    from fairlead.server.app import Server


def get(server: "Server", request: Request, route: Route) -> Response:
    """Return the response with the object of the route."""
    resource = route.resource
    representation = negotiation.negotiate(request, resource, is_list=False)
    version = read_version(server, request, request.first("resourceVersion"), reading="get")
    stored = server.table(resource).get_at(route.namespace if resource.namespaced else "", route.name, version)
    if stored is None:
        raise not_found(resource, route.name)
    if resource.converter is not None:  # Unlike a list, a real server converts it for each request.
        request.remember("fresh", partial(versions.forget_view, resource, stored))
    return representation.object_response(200, versions.expect_readable(resource, stored), request.warnings)
