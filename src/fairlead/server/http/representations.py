"""Representations of objects: whole, metadata only, or as a table. Each is encoded once and cached with the object."""

from typing import TYPE_CHECKING, Final

from fairlead.server.errors.statuses import StatusError, status_error
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request, Response
from fairlead.server.registry.defaults import TEMPLATE_GENERATION
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored

if TYPE_CHECKING:
    from fairlead.server.verbs.lists import Page

FORMATS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMED = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

_KINDS_WITH_REPLICAS: Final = ("Deployment", "ReplicaSet", "StatefulSet")  # kinds whose bookmarks have `replicas: 0`


class Representation:
    """Whole objects as JSON or YAML."""

    name = "object"
    shared = True  # an encoded object can be sent to every reader

    def __init__(self, resource: Resource, as_yaml: bool = False) -> None:
        self.resource = resource
        self.yaml = as_yaml

    def encode(self, stored: Stored) -> bytes:
        """Return an object as JSON. It is encoded at most once."""
        view = versions.view(self.resource, stored)
        if not self.resource.custom:
            return view.encoded
        written: bytes | None = view.derived.get("written")
        if written is None:
            written = view.derived["written"] = encoding.write_go_numbers(view.object, view.encoded)
        return written

    def transform(self, obj: Object) -> Object:
        return obj

    def object_response(self, status: int, stored: Stored, warnings: list[str]) -> Response:
        return self._response(status, self.encode(stored), warnings)

    def list_response(self, status: int, page: "Page", warnings: list[str]) -> Response:
        header = encoding.encode(self.list_header(page))
        items = b",".join(self.encode_item(stored) for stored in page.items)
        return self._response(status, header[:-1] + b',"items":[' + items + b"]}", warnings)

    def encode_item(self, stored: Stored) -> bytes:
        """Return an object as an item of a list. Items of built-in kinds omit apiVersion and kind."""
        encoded = self.encode(stored)
        if self.resource.custom:
            return encoded
        head = _type_meta(self.resource)
        return b"{" + encoded[len(head) :] if encoded.startswith(head) else encoded

    def list_header(self, page: "Page") -> Object:
        metadata: Object = {"resourceVersion": str(page.version)}
        if page.continue_ or self.resource.custom:
            metadata["continue"] = page.continue_
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        kind = self.resource.list_kind or f"{self.resource.kind}List"
        return {"kind": kind, "apiVersion": self.resource.api_version, "metadata": metadata}

    def bookmark(self, version: int, annotations: dict[str, str]) -> Object:
        """Return the object of a BOOKMARK event: its resourceVersion is how far the watch has come."""
        metadata: Object = {"resourceVersion": str(version)}
        if self.resource.kind == "DaemonSet" and not self.resource.custom:
            annotations = {TEMPLATE_GENERATION: "0", **annotations}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        if self.resource.kind in _KINDS_WITH_REPLICAS and not self.resource.custom:
            obj["spec"] = {"replicas": 0}
        return self.transform(obj if self.resource.custom else codec.decode(self.resource.schema, obj).object)

    def _response(self, status: int, body: bytes, warnings: list[str]) -> Response:
        return _response(status, body, warnings, self.yaml)


def partial_metadata(resource: Resource, obj: Object) -> Object:
    """Return the metadata of an object, as PartialObjectMetadata shows it.

    For a DaemonSet, it omits the template generation annotation, which a real server derives from the spec.
    """
    metadata: Object = obj["metadata"]
    if resource.kind != "DaemonSet" or TEMPLATE_GENERATION not in (metadata.get("annotations") or {}):
        return metadata
    annotations = {key: value for key, value in metadata["annotations"].items() if key != TEMPLATE_GENERATION}
    return {
        key: annotations if key == "annotations" else value
        for key, value in metadata.items()
        if key != "annotations" or annotations
    }


class MetadataOnly(Representation):
    """PartialObjectMetadata, v1 or v1beta1."""

    def __init__(self, resource: Resource, as_yaml: bool, version: str) -> None:
        super().__init__(resource, as_yaml)
        self.name = f"metadata/{version}"
        self._api_version = f"meta.k8s.io/{version}"

    def encode(self, stored: Stored) -> bytes:
        derived = versions.view(self.resource, stored).derived
        encoded: bytes | None = derived.get(self.name)
        if encoded is None:
            encoded = derived[self.name] = encoding.encode(self.transform(versions.view(self.resource, stored).object))
        return encoded

    def transform(self, obj: Object) -> Object:
        metadata = partial_metadata(self.resource, obj)
        return {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": metadata}

    def encode_item(self, stored: Stored) -> bytes:
        return self.encode(stored)

    def list_header(self, page: "Page") -> Object:
        header = super().list_header(page)
        if not page.continue_:
            header["metadata"].pop("continue", None)
        return header | {"kind": "PartialObjectMetadataList", "apiVersion": self._api_version}

    def list_response(self, status: int, page: "Page", warnings: list[str]) -> Response:
        if page.items:
            return super().list_response(status, page, warnings)
        return self._response(status, encoding.encode({**self.list_header(page), "items": None}), warnings)


def _response(status: int, body: bytes, warnings: list[str], as_yaml: bool) -> Response:
    if as_yaml:
        import yaml

        text = yaml.safe_dump(encoding.decode(body)[0], allow_unicode=True, default_flow_style=False, width=2**31)
        return Response(status, text.encode(), "application/yaml", warnings)
    return Response(status, body, warnings=warnings)


def error_response(request: Request, error: StatusError) -> Response:
    """Return the response for a StatusError, in the format that the request accepts."""
    as_yaml = request.headers.get("accept", "").startswith("application/yaml")
    answer = _response(error.code, encoding.encode(error.status), request.warnings, as_yaml)
    if after := (error.status.get("details") or {}).get("retryAfterSeconds"):
        answer.headers["Retry-After"] = str(after)
    return answer


def _type_meta(resource: Resource) -> bytes:
    return b'{"apiVersion":"%s","kind":"%s",' % (resource.api_version.encode(), resource.kind.encode())


def go_type_name(resource: Resource) -> str:
    """Return the name of the Go type of a kind."""
    return (
        "unstructured.Unstructured" if resource.custom else f"{resource.group.split('.')[0] or 'core'}.{resource.kind}"
    )


def negotiate(request: Request, resource: Resource, *, listing: bool, streaming: bool = False) -> Representation:
    """Return the representation that the Accept header prefers among the available ones. Reject with 406 otherwise."""
    accept = request.headers.get("accept", "")
    if accept in ("", "application/json", "*/*", "application/json, */*"):
        return Representation(resource)
    has_unknown_transform = False
    for clause in _sort_by_quality(accept):
        media, parameters = clause
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        as_yaml = media == "application/yaml"
        if as_yaml and streaming:
            raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {STREAMED}")
        transform = parameters.get("as")
        if not transform:
            return Representation(resource, as_yaml)
        known = parameters.get("g") == "meta.k8s.io" and parameters.get("v") in ("v1", "v1beta1")
        if known and transform == ("PartialObjectMetadataList" if listing else "PartialObjectMetadata"):
            return MetadataOnly(resource, as_yaml, parameters["v"])
        if known and transform == "PartialObjectMetadata":
            of = f"a list (*{go_type_name(resource)}List)"
            raise status_error(
                406, "NotAcceptable", f"you requested PartialObjectMetadata, but the requested object is {of}"
            )
        if known and transform == "PartialObjectMetadataList":
            of = f"not a list (*{go_type_name(resource)})"
            message = f"you requested PartialObjectMetadataList, but the requested object is {of}"
            raise status_error(406, "NotAcceptable", message)
        if known and transform == "Table":
            from fairlead.server.tables.representation import TableRepresentation, validate_include_object

            validate_include_object(request.first("includeObject"))
            return TableRepresentation(resource, as_yaml, parameters["v"], request.first("includeObject"), request.time)
        has_unknown_transform = True
    if has_unknown_transform or resource.custom:
        raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {FORMATS}")
    available = f"{FORMATS}, {STREAMED}" if listing or streaming else FORMATS
    request.warnings.clear()  # a real server rejects the request before it looks at the kind
    raise status_error(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})


def document_response(request: Request, obj: Object, *, is_group_path: bool, formats: str = FORMATS) -> Response:
    """Return a discovery document in the format that the request accepts.

    The lists of groups and each group (`is_group_path`) word a 406 differently from other documents. A document with
    one format only ignores the parameters of the Accept header.
    """
    accept = request.headers.get("accept", "")
    for media, parameters in _sort_by_quality(accept or "*/*"):
        shaped = "as" in parameters and formats == FORMATS
        if media in ("application/json", "application/yaml", "application/*", "*/*") and not shaped:
            return _response(200, encoding.encode(obj), request.warnings, media == "application/yaml")
        is_group_path = is_group_path or shaped
    if is_group_path:
        raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {formats}")
    raise status_error(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {formats}", {})


def _sort_by_quality(accept: str) -> list[tuple[str, dict[str, str]]]:
    clauses = []
    for position, clause in enumerate(accept.split(",")):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 1.0
        clauses.append((-quality, position, media, parameters))
    return [(media, parameters) for _, _, media, parameters in sorted(clauses, key=lambda c: c[:2])]
