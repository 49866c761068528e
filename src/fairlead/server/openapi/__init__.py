"""The OpenAPI documents at /openapi/v2 and /openapi/v3, which `kubectl explain`, `apply` and `diff` read.

The documents are generated from the schema nodes that the server itself uses, on the first request. Built-in kinds have
no descriptions. The documents of built-in groups are cached for the process.
"""

import hashlib
from functools import cache, lru_cache
from typing import Any, Final

from fairlead.server.errors.statuses import status_error
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request, Response
from fairlead.server.openapi import custom, gnostic
from fairlead.server.openapi.paths import Dialect, Endpoint, path_items
from fairlead.server.openapi.schemas import Schemas
from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import builtin

Document = dict[str, Any]
_INFO: Final = {"title": "Kubernetes", "version": "v1.36.4"}
_V3: Final = Dialect("#/components/schemas/", is_v2=False)
_V2: Final = Dialect("#/definitions/", is_v2=True)
_JSON: Final = ("", "*/*", "application/json", "application/*")


def respond(registry: Registry, request: Request) -> Response | None:
    """Return the OpenAPI document at a path under /openapi, or None if the path has no document."""
    path = request.path
    if path == "/openapi/v2":
        return _respond_v2(registry, request)
    if path == "/openapi/v3":
        return Response(200, encoding.encode(_build_index(registry)))
    key = path.removeprefix("/openapi/v3/")
    resources = _group_resources(registry).get(key)
    if resources is None:
        return None
    if not any(resource.custom for resource in resources):
        return Response(200, _encode_builtin(key, tuple(resources)))
    return Response(200, encoding.encode(_build_document(resources)))


def _respond_v2(registry: Registry, request: Request) -> Response:
    """Return the v2 document as JSON or protobuf, whichever the Accept header names first."""
    resources = tuple(registry.served())
    for clause in request.headers.get("accept", "").split(","):
        media = clause.partition(";")[0].strip()
        if media in _JSON:
            return Response(200, encoding.encode(_build_document_v2(resources)))
        if media in (gnostic.REQUESTED_MEDIA_TYPE, gnostic.MEDIA_TYPE):
            return Response(200, _encode_v2(resources), gnostic.MEDIA_TYPE)
    message = f"only the following media types are accepted: application/json, {gnostic.MEDIA_TYPE}"
    raise status_error(406, "NotAcceptable", message)


@lru_cache(maxsize=4)
def _encode_v2(resources: tuple[Resource, ...]) -> bytes:
    return gnostic.encode(_build_document_v2(resources))


@lru_cache(maxsize=4)
def _build_document_v2(resources: tuple[Resource, ...]) -> Document:
    schemas, paths = _build_schemas_and_paths(list(resources), _V2)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas}


def _build_index(registry: Registry) -> Document:
    return {
        "paths": {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_compute_hash(resources)}"}
            for key, resources in _group_resources(registry).items()
        }
    }


def _compute_hash(resources: list[Resource]) -> str:
    """Return the hash by which clients cache a document. It changes whenever the document can change."""
    versions = [
        (resource.plural, resource.definition["metadata"]["resourceVersion"] if resource.custom else _INFO["version"])
        for resource in resources
    ]
    return hashlib.sha256(encoding.encode(versions)).hexdigest().upper()


def _group_resources(registry: Registry) -> dict[str, list[Resource]]:
    groups: dict[str, list[Resource]] = {}
    for resource in registry.served():
        key = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
        groups.setdefault(key, []).append(resource)
    return groups


@cache
def _encode_builtin(key: str, resources: tuple[Resource, ...]) -> bytes:
    return encoding.encode(_build_document(list(resources)))


def _build_document(resources: list[Resource]) -> Document:
    schemas, paths = _build_schemas_and_paths(resources, _V3)
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def _build_schemas_and_paths(resources: list[Resource], dialect: Dialect) -> tuple[Document, Document]:
    schemas = Schemas(dialect.reference_prefix)
    paths: Document = {}
    for resource in resources:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        if resource.custom:
            name = custom.definition_name(resource)
            schemas.by_name[name] = custom.custom_schema(resource, schemas, is_v2=dialect.is_v2)
        else:
            reference = schemas.reference(builtin.schema_of_kind(resource.group, resource.version, resource.kind))
            name = reference["$ref"].removeprefix(dialect.reference_prefix)
        schemas.by_name[name] = {**schemas.by_name[name], "x-kubernetes-group-version-kind": [kind]}
        paths |= path_items(Endpoint(resource, {"$ref": dialect.reference_prefix + name}, kind), dialect)
    schemas.add(["meta.v1.DeleteOptions"])
    return dict(sorted(schemas.by_name.items())), paths
