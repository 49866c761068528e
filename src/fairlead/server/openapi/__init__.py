"""OpenAPI: what kubectl explain shows, and what apply and diff look up before they write.

Made from the nodes that the server itself works by, so it says what the server does. Built-in kinds have no prose.
Each document is made when first asked for; those of built-in groups are kept for the process.
"""

import hashlib
from functools import cache, lru_cache
from typing import Any, Final

from fairlead.server.errors.statuses import status_error
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request, Response
from fairlead.server.openapi import custom, gnostic
from fairlead.server.openapi.paths import Place, Style, path_items
from fairlead.server.openapi.schemas import Schemas
from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import builtin

Document = dict[str, Any]
_INFO: Final = {"title": "Kubernetes", "version": "v1.36.4"}
_V3: Final = Style("#/components/schemas/", v2=False)
_V2: Final = Style("#/definitions/", v2=True)
_JSON: Final = ("", "*/*", "application/json", "application/*")


def answer(registry: Registry, request: Request) -> Response | None:
    """The document at a path under /openapi, or None where there is none."""
    path = request.path
    if path == "/openapi/v2":
        return _answer_v2(registry, request)
    if path == "/openapi/v3":
        return Response(200, encoding.encode(_index(registry)))
    key = path.removeprefix("/openapi/v3/")
    resources = _by_group(registry).get(key)
    if resources is None:
        return None
    if not any(resource.custom for resource in resources):
        return Response(200, _builtin(key, tuple(resources)))
    return Response(200, encoding.encode(_document(resources)))


def _answer_v2(registry: Registry, request: Request) -> Response:
    """As JSON or as protobuf, whichever is asked for first."""
    resources = tuple(registry.served())
    for clause in request.headers.get("accept", "").split(","):
        media = clause.partition(";")[0].strip()
        if media in _JSON:
            return Response(200, encoding.encode(_document_v2(resources)))
        if media in (gnostic.ASKED, gnostic.MEDIA_TYPE):
            return Response(200, _encoded_v2(resources), gnostic.MEDIA_TYPE)
    told = f"only the following media types are accepted: application/json, {gnostic.MEDIA_TYPE}"
    raise status_error(406, "NotAcceptable", told)


@lru_cache(maxsize=4)
def _encoded_v2(resources: tuple[Resource, ...]) -> bytes:
    return gnostic.encode(_document_v2(resources))


@lru_cache(maxsize=4)
def _document_v2(resources: tuple[Resource, ...]) -> Document:
    schemas, paths = _parts(list(resources), _V2)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas}


def _index(registry: Registry) -> Document:
    return {
        "paths": {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_hash(resources)}"}
            for key, resources in _by_group(registry).items()
        }
    }


def _hash(resources: list[Resource]) -> str:
    """Changes whenever the document may: clients keep documents by it."""
    told = [
        (resource.plural, resource.definition["metadata"]["resourceVersion"] if resource.custom else _INFO["version"])
        for resource in resources
    ]
    return hashlib.sha256(encoding.encode(told)).hexdigest().upper()


def _by_group(registry: Registry) -> dict[str, list[Resource]]:
    found: dict[str, list[Resource]] = {}
    for resource in registry.served():
        key = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
        found.setdefault(key, []).append(resource)
    return found


@cache
def _builtin(key: str, resources: tuple[Resource, ...]) -> bytes:
    return encoding.encode(_document(list(resources)))


def _document(resources: list[Resource]) -> Document:
    schemas, paths = _parts(resources, _V3)
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def _parts(resources: list[Resource], style: Style) -> tuple[Document, Document]:
    schemas = Schemas(style.place)
    paths: Document = {}
    for resource in resources:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        if resource.custom:
            name = custom.name(resource)
            schemas.found[name] = custom.schema(resource, schemas, v2=style.v2)
        else:
            reference = schemas.reference(builtin.schema_of_kind(resource.group, resource.version, resource.kind))
            name = reference["$ref"].removeprefix(style.place)
        schemas.found[name] = {**schemas.found[name], "x-kubernetes-group-version-kind": [kind]}
        paths |= path_items(Place(resource, {"$ref": style.place + name}, kind), style)
    schemas.add(["meta.v1.DeleteOptions"])
    return dict(sorted(schemas.found.items())), paths
