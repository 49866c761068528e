"""Custom resources in OpenAPI: the schema that their definition gives, with what every object has."""

from typing import Any, Final

from fairlead.server.openapi.schemas import Schema, Schemas
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import builtin

_NOT_IN_V2: Final = ("anyOf", "oneOf", "allOf", "not", "nullable", "x-kubernetes-validations")


def name(resource: Resource) -> str:
    """com.example.v1.Widget: the group turned round, as a Go package would have it."""
    return f"{'.'.join(reversed(resource.group.split('.')))}.{resource.version}.{resource.kind}"


def schema(resource: Resource, schemas: Schemas, *, v2: bool) -> Schema:
    given: Schema = {}
    for version in resource.definition["spec"]["versions"]:
        if version["name"] == resource.version:
            given = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    metadata = schemas.reference(builtin.schema_of_type("meta.v1.ObjectMeta"))
    own: Schema = _older(given) if v2 else given
    properties = {
        **(own.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": metadata if v2 else {"allOf": [metadata]},
    }
    return {**own, "type": "object", "properties": properties}


def _older(schema: Any) -> Any:
    """What Swagger 2.0 has words for; a field of several types has none."""
    if isinstance(schema, list):
        return [_older(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    if schema.get("nullable") or schema.get("x-kubernetes-int-or-string"):
        kept = {key: value for key, value in kept.items() if key not in ("type", "items", "properties")}
    if "properties" in kept:
        kept["properties"] = {key: _older(one) for key, one in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _older(kept[key])
    return kept
