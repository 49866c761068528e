"""OpenAPI schemas of custom resources: the schema in the CRD, with apiVersion, kind and metadata added."""

from typing import Any, Final

from fairlead.server.openapi.schemas import Schema, Schemas
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import builtin

_NOT_IN_V2: Final = ("anyOf", "oneOf", "allOf", "not", "nullable", "x-kubernetes-validations")


def definition_name(resource: Resource) -> str:
    """Return the name of a custom kind's schema: com.example.v1.Widget for the group example.com."""
    return f"{'.'.join(reversed(resource.group.split('.')))}.{resource.version}.{resource.kind}"


def custom_schema(resource: Resource, schemas: Schemas, *, is_v2: bool) -> Schema:
    """Return the OpenAPI schema of a custom resource. With `is_v2`, use only the keywords of Swagger 2.0."""
    schema: Schema = {}
    for version in resource.definition["spec"]["versions"]:
        if version["name"] == resource.version:
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    metadata = schemas.reference(builtin.schema_of_type("meta.v1.ObjectMeta"))
    if is_v2:
        schema = _to_v2(schema)
    properties = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": metadata if is_v2 else {"allOf": [metadata]},
    }
    return {**schema, "type": "object", "properties": properties}


def _to_v2(schema: Any) -> Any:
    """Return a schema without the keywords that Swagger 2.0 lacks. A field with several types loses its type."""
    if isinstance(schema, list):
        return [_to_v2(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    if schema.get("nullable") or schema.get("x-kubernetes-int-or-string"):
        result = {key: value for key, value in result.items() if key not in ("type", "items", "properties")}
    if "properties" in result:
        result["properties"] = {key: _to_v2(inner) for key, inner in result["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = _to_v2(result[key])
    return result
