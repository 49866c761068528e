"""OpenAPI v3, as far as clients need it before they write: which kinds there are and which parameters writes take.

The schemas of built-in kinds are not repeated here; custom resources show the one that their definition gives.
"""

import hashlib
import json
from typing import Any

from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Resource

Document = dict[str, Any]
_NAMES = ("dryRun", "fieldManager", "fieldValidation")
PARAMETERS = [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _NAMES]
FORCE = {"name": "force", "in": "query", "schema": {"type": "boolean", "uniqueItems": True}}


def document(registry: Registry, path: str) -> Document | None:
    """The index at /openapi/v3 or the document of one group version; None where there is none."""
    if path == "/openapi/v3":
        return {
            "paths": {
                key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_hash(group)}"} for key, group in _all(registry)
            }
        }
    for key, resources in _all(registry):
        if path == f"/openapi/v3/{key}":
            return _described(resources)
    return None


def _all(registry: Registry) -> list[tuple[str, list[Resource]]]:
    found: dict[str, list[Resource]] = {}
    for resource in registry.served():
        key = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
        found.setdefault(key, []).append(resource)
    return list(found.items())


def _hash(resources: list[Resource]) -> str:
    text = json.dumps([(r.plural, r.kind, id(r.definition) if r.custom else 0) for r in resources])
    return hashlib.sha256(text.encode()).hexdigest()[:32].upper()


def _described(resources: list[Resource]) -> Document:
    paths: Document = {}
    schemas: Document = {}
    for resource in resources:
        base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        collection = (
            f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
        )
        named = _reference(resource)
        paths[collection] = {"post": _operation(resource, "post", PARAMETERS)}
        paths[f"{collection}/{{name}}"] = {
            "put": _operation(resource, "put", PARAMETERS),
            "patch": _operation(resource, "patch", [*PARAMETERS, FORCE]),
        }
        schemas[named] = _schema(resource)
    info = {"title": "Kubernetes", "version": "v1.36.4"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _operation(resource: Resource, action: str, parameters: list[Document]) -> Document:
    return {
        "operationId": f"{action}{resource.kind}",
        "parameters": parameters,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(resource),
        "responses": {"200": {"description": "OK"}},
    }


def _kind(resource: Resource) -> Document:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _reference(resource: Resource) -> str:
    group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{group}.{resource.version}.{resource.kind}"


def _schema(resource: Resource) -> Document:
    schema: Document = {"type": "object"}
    if resource.custom:
        for version in resource.definition["spec"]["versions"]:
            if version["name"] == resource.version:
                schema = dict((version.get("schema") or {}).get("openAPIV3Schema") or schema)
    return {**schema, "x-kubernetes-group-version-kind": [_kind(resource)]}
