"""The update handler: PUT of an object or its status."""

from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import bad_request
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object
from fairlead.server.write import decoding, pipeline

if TYPE_CHECKING:
    from fairlead.server.app import Server


def replace(server: "Server", request: Request, route: Route) -> Response:
    """Replace the object of the route by the object in the body, and return the response."""
    resource = route.resource
    representation = negotiation.negotiate(request, resource, listing=False)
    options = write_options(request, "UpdateOptions")
    write = pipeline.Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    obj = pipeline.expect_namespace(decoding.decode_body(write), write)
    obj = expect_name(obj, route.name)
    obj = pipeline.remove_duplicate_owners(obj, write, pipeline.DUPLICATE_OWNERS)
    uid = (obj.get("metadata") or {}).get("uid") or ""
    stored, created = pipeline.update(write, lambda live: obj, uid=uid)
    return representation.object_response(201 if created else 200, stored, request.warnings)


def expect_name(obj: Object, name: str) -> Object:
    """Return the object. Raises 400 if its name is not the name in the path."""
    own_name = (obj.get("metadata") or {}).get("name") or ""
    if not own_name:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if own_name != name:
        raise bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
    return obj
