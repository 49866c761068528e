"""Content negotiation: choose the representation of a response from the Accept header."""

from fairlead.server.errors.statuses import status_error
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.representations import MetadataOnly, Representation, encode_response
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.tables.representation import TableRepresentation, validate_include_object

FORMATS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMED = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


def go_type_name(resource: Resource) -> str:
    """Return the name of the Go type of a kind, such as core.Pod, as error messages print it."""
    return (
        "unstructured.Unstructured" if resource.custom else f"{resource.group.split('.')[0] or 'core'}.{resource.kind}"
    )


def negotiate(request: Request, resource: Resource, *, is_list: bool, is_stream: bool = False) -> Representation:
    """Return the available representation that the Accept header prefers. Raises 406 if it accepts none of them."""
    accept = request.headers.get("accept", "")
    if accept in ("", "application/json", "*/*", "application/json, */*"):
        return Representation(resource)
    has_unknown_transform = False
    for clause in _sort_by_quality(accept):
        media, parameters = clause
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        as_yaml = media == "application/yaml"
        if as_yaml and is_stream:
            raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {STREAMED}")
        transform = parameters.get("as")
        if not transform:
            return Representation(resource, as_yaml)
        is_known = parameters.get("g") == "meta.k8s.io" and parameters.get("v") in ("v1", "v1beta1")
        if is_known and transform == ("PartialObjectMetadataList" if is_list else "PartialObjectMetadata"):
            return MetadataOnly(resource, as_yaml, parameters["v"])
        if is_known and transform == "PartialObjectMetadata":
            of = f"a list (*{go_type_name(resource)}List)"
            raise status_error(
                406, "NotAcceptable", f"you requested PartialObjectMetadata, but the requested object is {of}"
            )
        if is_known and transform == "PartialObjectMetadataList":
            of = f"not a list (*{go_type_name(resource)})"
            message = f"you requested PartialObjectMetadataList, but the requested object is {of}"
            raise status_error(406, "NotAcceptable", message)
        if is_known and transform == "Table" and not _is_review(resource):
            validate_include_object(request.first("includeObject"))
            return TableRepresentation(resource, as_yaml, parameters["v"], request.first("includeObject"), request.time)
        has_unknown_transform = True
    if has_unknown_transform or resource.custom:
        raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {FORMATS}")
    available = f"{FORMATS}, {STREAMED}" if is_list or is_stream else FORMATS
    request.warnings.clear()  # a real server rejects the request before it looks at the kind
    raise status_error(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})


def _is_review(resource: Resource) -> bool:
    """Return whether objects of a kind are answers that are not stored. They have no table."""
    return not resource.custom and resource.group in ("authentication.k8s.io", "authorization.k8s.io")


def document_response(request: Request, obj: Object, *, is_group_path: bool, formats: str = FORMATS) -> Response:
    """Return a discovery document in the format that the Accept header prefers.

    `is_group_path` selects the 406 message of the lists of groups and of each group, which differs from that of other
    documents. A document with only one format ignores the parameters of the Accept header.
    """
    accept = request.headers.get("accept", "")
    for media, parameters in _sort_by_quality(accept or "*/*"):
        has_shape = "as" in parameters and formats == FORMATS
        if media in ("application/json", "application/yaml", "application/*", "*/*") and not has_shape:
            return encode_response(200, encoding.encode(obj), request.warnings, media == "application/yaml")
        is_group_path = is_group_path or has_shape
    if is_group_path:
        raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {formats}")
    raise status_error(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {formats}", {})


def _sort_by_quality(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an Accept header with their parameters, sorted by their q value."""
    clauses = []
    for position, clause in enumerate(accept.split(",")):
        media, *parameter_texts = (piece.strip() for piece in clause.split(";"))
        parameters = dict(piece.split("=", 1) for piece in parameter_texts if "=" in piece)
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 1.0
        clauses.append((-quality, position, media, parameters))
    return [(media, parameters) for _, _, media, parameters in sorted(clauses, key=lambda c: c[:2])]
