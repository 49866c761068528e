"""How an object is shown: whole, its metadata only, or as a table; each encoded once and kept beside the object."""

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

_COUNTED: Final = ("Deployment", "ReplicaSet", "StatefulSet")  # of no replicas where nothing is said


class Representation:
    """Whole objects as JSON or YAML."""

    name = "object"
    shared = True  # what is encoded for one reader serves every other

    def __init__(self, resource: Resource, as_yaml: bool = False) -> None:
        self.resource = resource
        self.yaml = as_yaml

    def encode(self, stored: Stored) -> bytes:
        """One object as JSON, encoded at most once."""
        view = versions.view(self.resource, stored)
        if not self.resource.custom:
            return view.encoded
        written: bytes | None = view.derived.get("written")
        if written is None:
            written = view.derived["written"] = encoding.write_go_numbers(view.object, view.encoded)
        return written

    def shown(self, obj: Object) -> Object:
        return obj

    def object_response(self, status: int, stored: Stored, warnings: list[str]) -> Response:
        return self._response(status, self.encode(stored), warnings)

    def list_response(self, status: int, page: "Page", warnings: list[str]) -> Response:
        header = encoding.encode(self.list_header(page))
        items = b",".join(self.item(stored) for stored in page.items)
        return self._response(status, header[:-1] + b',"items":[' + items + b"]}", warnings)

    def item(self, stored: Stored) -> bytes:
        """One object inside a list: built-in kinds leave out what the list says already."""
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
        """An object that says only how far a watch has come."""
        metadata: Object = {"resourceVersion": str(version)}
        if self.resource.kind == "DaemonSet" and not self.resource.custom:
            annotations = {TEMPLATE_GENERATION: "0", **annotations}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        if self.resource.kind in _COUNTED and not self.resource.custom:
            obj["spec"] = {"replicas": 0}
        return self.shown(obj if self.resource.custom else codec.decode(self.resource.schema, obj).object)

    def _response(self, status: int, body: bytes, warnings: list[str]) -> Response:
        return _response(status, body, warnings, self.yaml)


def partial_metadata(resource: Resource, obj: Object) -> Object:
    """An object's metadata without its spec, which of a DaemonSet holds what the rest shows as an annotation."""
    metadata: Object = obj["metadata"]
    if resource.kind != "DaemonSet" or TEMPLATE_GENERATION not in (metadata.get("annotations") or {}):
        return metadata
    kept = {key: value for key, value in metadata["annotations"].items() if key != TEMPLATE_GENERATION}
    return {
        key: kept if key == "annotations" else value for key, value in metadata.items() if key != "annotations" or kept
    }


class MetadataOnly(Representation):
    """PartialObjectMetadata, of either of its versions."""

    def __init__(self, resource: Resource, as_yaml: bool, version: str) -> None:
        super().__init__(resource, as_yaml)
        self.name = f"metadata/{version}"
        self._api_version = f"meta.k8s.io/{version}"

    def encode(self, stored: Stored) -> bytes:
        derived = versions.view(self.resource, stored).derived
        encoded: bytes | None = derived.get(self.name)
        if encoded is None:
            encoded = derived[self.name] = encoding.encode(self.shown(versions.view(self.resource, stored).object))
        return encoded

    def shown(self, obj: Object) -> Object:
        metadata = partial_metadata(self.resource, obj)
        return {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": metadata}

    def item(self, stored: Stored) -> bytes:
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


def failed(request: Request, error: StatusError) -> Response:
    """A refusal in the format that was asked for."""
    as_yaml = request.headers.get("accept", "").startswith("application/yaml")
    answer = _response(error.code, encoding.encode(error.status), request.warnings, as_yaml)
    if after := (error.status.get("details") or {}).get("retryAfterSeconds"):
        answer.headers["Retry-After"] = str(after)
    return answer


def _type_meta(resource: Resource) -> bytes:
    return b'{"apiVersion":"%s","kind":"%s",' % (resource.api_version.encode(), resource.kind.encode())


def internal(resource: Resource) -> str:
    """The name of the Go type behind a kind."""
    return (
        "unstructured.Unstructured" if resource.custom else f"{resource.group.split('.')[0] or 'core'}.{resource.kind}"
    )


def negotiate(request: Request, resource: Resource, *, listing: bool, streaming: bool = False) -> Representation:
    """The representation that the Accept header asks for first, among those there are."""
    accept = request.headers.get("accept", "")
    if accept in ("", "application/json", "*/*", "application/json, */*"):
        return Representation(resource)
    refused_as = False
    for clause in _by_preference(accept):
        media, parameters = clause
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        as_yaml = media == "application/yaml"
        if as_yaml and streaming:
            raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {STREAMED}")
        wanted = parameters.get("as")
        if not wanted:
            return Representation(resource, as_yaml)
        known = parameters.get("g") == "meta.k8s.io" and parameters.get("v") in ("v1", "v1beta1")
        if known and wanted == ("PartialObjectMetadataList" if listing else "PartialObjectMetadata"):
            return MetadataOnly(resource, as_yaml, parameters["v"])
        if known and wanted == "PartialObjectMetadata":
            of = f"a list (*{internal(resource)}List)"
            raise status_error(
                406, "NotAcceptable", f"you requested PartialObjectMetadata, but the requested object is {of}"
            )
        if known and wanted == "PartialObjectMetadataList":
            of = f"not a list (*{internal(resource)})"
            message = f"you requested PartialObjectMetadataList, but the requested object is {of}"
            raise status_error(406, "NotAcceptable", message)
        if known and wanted == "Table":
            from fairlead.server.tables.representation import TableRepresentation, validate_include_object

            validate_include_object(request.first("includeObject"))
            return TableRepresentation(resource, as_yaml, parameters["v"], request.first("includeObject"), request.time)
        refused_as = True
    if refused_as or resource.custom:
        raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {FORMATS}")
    available = f"{FORMATS}, {STREAMED}" if listing or streaming else FORMATS
    request.warnings.clear()  # refused before anyone looks at the kind
    raise status_error(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})


def document(request: Request, obj: Object, *, grouped: bool, formats: str = FORMATS) -> Response:
    """A page of discovery in the format asked for. `grouped`: the list of groups and each group word a 406 otherwise.

    What has but one format does not look at what a clause says beside it.
    """
    accept = request.headers.get("accept", "")
    for media, parameters in _by_preference(accept or "*/*"):
        shaped = "as" in parameters and formats == FORMATS
        if media in ("application/json", "application/yaml", "application/*", "*/*") and not shaped:
            return _response(200, encoding.encode(obj), request.warnings, media == "application/yaml")
        grouped = grouped or shaped
    if grouped:
        raise status_error(406, "NotAcceptable", f"only the following media types are accepted: {formats}")
    raise status_error(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {formats}", {})


def _by_preference(accept: str) -> list[tuple[str, dict[str, str]]]:
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
