"""Reviews and token requests: kinds that the server answers but never stores."""

from typing import TYPE_CHECKING

from fairlead.server.admission.plugin import CREATE, AdmissionAttributes
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec
from fairlead.server.storage.stored import Stored
from fairlead.server.write import decoding, metadata
from fairlead.server.write.write_request import Write

if TYPE_CHECKING:
    from fairlead.server.app import Server


def decode(
    server: "Server",
    request: Request,
    route: Route,
    resource: Resource,
    *,
    is_tracked: bool = True,
    is_complete: bool = True,
) -> tuple[Write, Object]:
    """Return the write of a create, and the object in its body. `is_tracked`: the object gets managedFields.

    `is_complete`: nothing will be added before the object is validated by admission. Raises StatusError.
    """
    options = write_options(request, "CreateOptions")
    write = Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    obj = metadata.expect_namespace(decoding.decode_body(write), write)
    obj = server.field_tracker.track_create(write, obj) if is_tracked else obj
    obj = server.admission.admit(admission_attributes(write, route, obj))
    if is_complete:
        server.admission.validate(admission_attributes(write, route, obj))
    return write, obj


def admission_attributes(write: Write, route: Route, obj: Object) -> AdmissionAttributes:
    """Return what admission sees of a create on a subresource, whose kind is not that of the route."""
    name = route.name or (obj.get("metadata") or {}).get("name") or ""
    dry_run = write.options.dry_run
    return AdmissionAttributes(
        CREATE,
        route.resource,
        route.subresource,
        route.namespace,
        name,
        obj,
        None,
        write.request,
        dry_run,
        write.resource,
    )


def respond(write: Write, obj: Object) -> Response:
    """Return the 201 response with the object, to which the caller has added a status."""
    representation = negotiation.negotiate(write.request, write.resource, is_list=False)
    response_object = codec.decode(write.resource.schema, obj).object
    return representation.object_response(201, Stored(response_object, 0, write.resource), write.request.warnings)
