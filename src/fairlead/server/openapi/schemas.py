"""OpenAPI schemas of built-in types, generated from the server's schema nodes, without descriptions."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import MISSING, Node

Schema = dict[str, Any]
_PACKAGES: Final = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_DATE_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
# Types with a name in OpenAPI that are not structs: (name, schema in v3, schema in v2).
_NAMED_TYPES: Final[dict[str, tuple[str, Schema, Schema]]] = {
    "Time": (f"{_META}.Time", _DATE_TIME, _DATE_TIME),
    "MicroTime": (f"{_META}.MicroTime", _DATE_TIME, _DATE_TIME),
    "FieldsV1": (f"{_META}.FieldsV1", {"type": "object"}, {"type": "object"}),
    "Quantity": (_QUANTITY, {"oneOf": [{"type": "string"}, {"type": "number"}]}, {"type": "string"}),
    "IntOrString": (
        _INT_OR_STRING,
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "format": "int-or-string"},
    ),
}
_SCALARS: Final[dict[str, Schema]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int32"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint8": {"type": "integer", "format": "byte"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "Duration": {"type": "string"},
    "Raw": {"type": "object"},
}


@cache
def _read_required_fields() -> dict[str, list[str]]:
    required: dict[str, list[str]] = msgspec.json.decode((files(__package__) / "required.json").read_bytes())["types"]
    return required


def full_name(name: str) -> str:
    """Return the OpenAPI name of a type: io.k8s.api.core.v1.Pod for core.v1.Pod."""
    package, _, name_in_package = name.partition(".")
    return f"{_PACKAGES.get(package, f'io.k8s.api.{package}')}.{name_in_package}"


class Schemas:
    """Collects the OpenAPI schemas of types and of all types that they refer to, by name."""

    def __init__(self, reference_prefix: str) -> None:
        self.by_name: dict[str, Schema] = {}
        self._prefix = reference_prefix
        self._is_v2 = reference_prefix == "#/definitions/"

    def add(self, names: Iterable[str]) -> None:
        """Add the schemas of types by their short names, for example core.v1.Pod."""
        for name in names:
            self.reference(builtin.schema_of_type(name))

    def reference(self, node: Node) -> Schema:
        """Return a `$ref` to the schema of a struct, and add that schema if it is new."""
        name = full_name(node.go.name)
        if name not in self.by_name:
            schema: Schema = {"type": "object"}
            self.by_name[name] = schema  # Add it before its fields, because types refer to themselves.
            fields = node.fields
            if required := _read_required_fields().get(node.go.name):
                schema["required"] = required
            if fields:
                schema["properties"] = {key: self._build_field_schema(fields[key]) for key in sorted(fields)}
            if node.map_type == "atomic":
                schema["x-kubernetes-map-type"] = "atomic"
        return {"$ref": self._prefix + name}

    def _build_field_schema(self, node: Node) -> Schema:
        schema, go_type = self._build_type_schema(node), node.go
        extra: Schema = {}
        if node.default is not MISSING and node.default is not None:
            extra["default"] = node.default
        if node.list_type != "atomic":
            extra["x-kubernetes-list-type"] = node.list_type
        if node.keys:
            extra["x-kubernetes-list-map-keys"] = list(node.keys)
        if node.map_type == "atomic" and go_type.kind == "map":
            extra["x-kubernetes-map-type"] = "atomic"
        if go_type.merge_key:
            extra["x-kubernetes-patch-merge-key"] = go_type.merge_key
        if go_type.strategy:
            extra["x-kubernetes-patch-strategy"] = ",".join(go_type.strategy)
        if "$ref" in schema and not self._is_v2:
            return {"allOf": [schema], **extra}
        return {**schema, **extra}

    def _build_type_schema(self, node: Node) -> Schema:
        kind = node.go.kind
        if kind == "struct":
            return self.reference(node)
        if kind == "list":
            assert node.items is not None
            return {"type": "array", "items": self._build_type_schema(node.items)}
        if kind == "map":
            assert node.values is not None
            return {"type": "object", "additionalProperties": self._build_type_schema(node.values)}
        if kind in _NAMED_TYPES:
            name, v3, v2 = _NAMED_TYPES[kind]
            self.by_name[name] = v2 if self._is_v2 else v3
            return {"$ref": self._prefix + name}
        return _SCALARS.get(kind, {})
