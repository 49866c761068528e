"""Representations of objects: whole, metadata only, or a table. Encoded objects are cached with the stored object."""

from dataclasses import dataclass
from typing import Final

from fairlead.server.errors.statuses import StatusError
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request, Response
from fairlead.server.registry.defaults import TEMPLATE_GENERATION
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored

_KINDS_WITH_REPLICAS: Final = ("Deployment", "ReplicaSet", "StatefulSet")  # kinds whose bookmarks have `replicas: 0`


@dataclass(slots=True)
class Page:
    """The objects on one page of a list, and the continue token of the next page."""

    items: list[Stored]
    version: int
    continue_: str = ""
    remaining: int | None = None


class Representation:
    """Encodes objects as whole JSON or YAML documents. Subclasses encode them in another form."""

    name = "object"
    shared = True  # an encoded object can be sent to every reader

    def __init__(self, resource: Resource, as_yaml: bool = False) -> None:
        self.resource = resource
        self.yaml = as_yaml

    def encode(self, stored: Stored) -> bytes:
        """Return a stored object as JSON bytes. The result is cached with the object."""
        view = versions.view(self.resource, stored)
        if not self.resource.custom:
            return view.encoded
        cached_bytes: bytes | None = view.derived.get("written")
        if cached_bytes is None:
            cached_bytes = view.derived["written"] = encoding.write_go_numbers(view.object, view.encoded)
        return cached_bytes

    def transform(self, obj: Object) -> Object:
        return obj

    def object_response(self, status: int, stored: Stored, warnings: list[str]) -> Response:
        return self._build_response(status, self.encode(stored), warnings)

    def list_response(self, status: int, page: Page, warnings: list[str]) -> Response:
        header = encoding.encode(self.list_header(page))
        items = b",".join(self.encode_item(stored) for stored in page.items)
        return self._build_response(status, header[:-1] + b',"items":[' + items + b"]}", warnings)

    def encode_item(self, stored: Stored) -> bytes:
        """Return a stored object as the JSON of a list item. Items of built-in kinds omit apiVersion and kind."""
        encoded = self.encode(stored)
        if self.resource.custom:
            return encoded
        type_meta = _encode_type_meta(self.resource)
        return b"{" + encoded[len(type_meta) :] if encoded.startswith(type_meta) else encoded

    def list_header(self, page: Page) -> Object:
        metadata: Object = {"resourceVersion": str(page.version)}
        if page.continue_ or self.resource.custom:
            metadata["continue"] = page.continue_
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        kind = self.resource.list_kind or f"{self.resource.kind}List"
        return {"kind": kind, "apiVersion": self.resource.api_version, "metadata": metadata}

    def bookmark(self, version: int, annotations: dict[str, str]) -> Object:
        """Return the object of a BOOKMARK event, which has only a kind and a resourceVersion."""
        metadata: Object = {"resourceVersion": str(version)}
        if self.resource.kind == "DaemonSet" and not self.resource.custom:
            annotations = {TEMPLATE_GENERATION: "0", **annotations}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        if self.resource.kind in _KINDS_WITH_REPLICAS and not self.resource.custom:
            obj["spec"] = {"replicas": 0}
        return self.transform(obj if self.resource.custom else codec.decode(self.resource.schema, obj).object)

    def _build_response(self, status: int, body: bytes, warnings: list[str]) -> Response:
        return encode_response(status, body, warnings, self.yaml)


def partial_metadata(resource: Resource, obj: Object) -> Object:
    """Return the metadata that PartialObjectMetadata shows of an object.

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
    """Encodes objects as PartialObjectMetadata, v1 or v1beta1."""

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

    def list_header(self, page: Page) -> Object:
        header = super().list_header(page)
        if not page.continue_:
            header["metadata"].pop("continue", None)
        return header | {"kind": "PartialObjectMetadataList", "apiVersion": self._api_version}

    def list_response(self, status: int, page: Page, warnings: list[str]) -> Response:
        if page.items:
            return super().list_response(status, page, warnings)
        return self._build_response(status, encoding.encode({**self.list_header(page), "items": None}), warnings)


def encode_response(status: int, body: bytes, warnings: list[str], as_yaml: bool) -> Response:
    """Return a response with a JSON body, converted to YAML if `as_yaml` is set."""
    if as_yaml:
        import yaml

        encoded = yaml.safe_dump(encoding.decode(body)[0], allow_unicode=True, default_flow_style=False, width=2**31)
        return Response(status, encoded.encode(), "application/yaml", warnings)
    return Response(status, body, warnings=warnings)


def error_response(request: Request, error: StatusError) -> Response:
    """Return the response for a StatusError, as JSON or YAML, whichever the request accepts."""
    as_yaml = request.headers.get("accept", "").startswith("application/yaml")
    response = encode_response(error.code, encoding.encode(error.status), request.warnings, as_yaml)
    if after := (error.status.get("details") or {}).get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(after)
    return response


def _encode_type_meta(resource: Resource) -> bytes:
    return b'{"apiVersion":"%s","kind":"%s",' % (resource.api_version.encode(), resource.kind.encode())
