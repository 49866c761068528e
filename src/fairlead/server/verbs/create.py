"""The create handler: POST to a collection."""

from typing import TYPE_CHECKING

from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.write import decoding, pipeline

if TYPE_CHECKING:
    from fairlead.server.app import Server


def create(server: "Server", request: Request, route: Route) -> Response:
    """Store the object in the body and return the 201 response."""
    representation = negotiation.negotiate(request, route.resource, listing=False)
    options = write_options(request, "CreateOptions")
    write = pipeline.Write(server, request, route.resource, route.namespace, "", route.subresource, options)
    return representation.object_response(201, pipeline.create(write, decoding.decode_body(write)), request.warnings)
