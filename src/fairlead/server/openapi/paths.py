"""The OpenAPI paths of a kind: its operations with their parameters, request bodies and responses."""

from dataclasses import dataclass
from typing import Any, Final

from fairlead.server.registry.resource import Resource

Item = dict[str, Any]
_WRITES: Final = ("dryRun", "fieldManager", "fieldValidation")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
    "application/apply-patch+yaml",
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How OpenAPI v3 and v2 (Swagger 2.0) documents differ."""

    reference_prefix: str  # what references begin with: #/definitions/ in v2
    is_v2: bool


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A kind, a reference to its schema, and the value of its x-kubernetes-group-version-kind extension."""

    resource: Resource
    schema: Item
    kind: dict[str, str]


def path_items(endpoint: Endpoint, dialect: Dialect) -> dict[str, Item]:
    """Return the OpenAPI path items for the collection of a kind and for one object."""
    resource = endpoint.resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    collection = f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else ""
    collection = collection or f"{base}/{resource.plural}"
    verbs = set(resource.verbs)
    collection_item: Item = {}
    if "list" in verbs:
        collection_item["get"] = _build_operation(endpoint, dialect, "list", ())
    if "create" in verbs:
        collection_item["post"] = _build_operation(endpoint, dialect, "post", _WRITES, has_body=True)
    object_item: Item = {}
    for verb, method, parameters in (
        ("get", "get", ()),
        ("update", "put", _WRITES),
        ("patch", "patch", (*_WRITES, "force")),
        ("delete", "delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
    ):
        if verb in verbs:
            object_item[method] = _build_operation(
                endpoint, dialect, method, parameters, has_body=method == "put", is_patch=method == "patch"
            )
    in_path = ["namespace"] if resource.namespaced else []
    items = {collection: {**collection_item, **_build_path_parameters(in_path, dialect)}}
    if object_item:
        items[f"{collection}/{{name}}"] = {**object_item, **_build_path_parameters(["name", *in_path], dialect)}
    return items


def _build_path_parameters(names: list[str], dialect: Dialect) -> Item:
    if not names:
        return {}
    return {"parameters": [_build_parameter(name, "path", dialect) | {"required": True} for name in names]}


def _build_operation(
    endpoint: Endpoint,
    dialect: Dialect,
    action: str,
    names: tuple[str, ...],
    *,
    has_body: bool = False,
    is_patch: bool = False,
) -> Item:
    resource = endpoint.resource
    patches = [media for media in _PATCHES if not (resource.custom and media == _STRATEGIC)]
    parameters = [_build_parameter(name, "query", dialect) for name in names]
    operation: Item = {
        "operationId": f"{action}{resource.group.replace('.', '')}{resource.version}{resource.kind}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": endpoint.kind,
    }
    if dialect.is_v2:
        if has_body or is_patch:
            schema = endpoint.schema if has_body else {"type": "object"}
            parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
        operation["consumes"] = patches if is_patch else ["*/*"]
        operation["produces"] = ["application/json", "application/yaml"]
        operation["responses"] = {"200": {"description": "OK", "schema": endpoint.schema}}
    else:
        if has_body:
            operation["requestBody"] = {"content": {"*/*": {"schema": endpoint.schema}}, "required": True}
        elif is_patch:
            content = {media: {"schema": {"type": "object"}} for media in patches}
            operation["requestBody"] = {"content": content, "required": True}
        content = {media: {"schema": endpoint.schema} for media in ("application/json", "application/yaml")}
        operation["responses"] = {"200": {"description": "OK", "content": content}}
    if parameters:
        operation["parameters"] = parameters
    return operation


def _build_parameter(name: str, location: str, dialect: Dialect) -> Item:
    kind = {"force": "boolean", "gracePeriodSeconds": "integer"}.get(name, "string")
    parameter: Item = {"name": name, "in": location}
    return (
        {**parameter, "type": kind} if dialect.is_v2 else {**parameter, "schema": {"type": kind, "uniqueItems": True}}
    )
