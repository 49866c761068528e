"""Built-in types as OpenAPI schemas: from the nodes that decode and merge them, without prose."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import MISSING, Node

Schema = dict[str, Any]
_HOMES: Final = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
# Types that are no structs but have names: (name, schema in v3, schema in v2)
_NAMED: Final[dict[str, tuple[str, Schema, Schema]]] = {
    "Time": (f"{_META}.Time", _MOMENT, _MOMENT),
    "MicroTime": (f"{_META}.MicroTime", _MOMENT, _MOMENT),
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
def _required() -> dict[str, list[str]]:
    made: dict[str, list[str]] = msgspec.json.decode((files(__package__) / "required.json").read_bytes())["types"]
    return made


def full_name(name: str) -> str:
    """A type's name in OpenAPI: core.v1.Pod is io.k8s.api.core.v1.Pod."""
    package, _, rest = name.partition(".")
    return f"{_HOMES.get(package, f'io.k8s.api.{package}')}.{rest}"


class Schemas:
    """Collects the schemas of types and of all that they refer to. `place` is where references point to."""

    def __init__(self, place: str) -> None:
        self.found: dict[str, Schema] = {}
        self._place = place
        self._v2 = place == "#/definitions/"

    def add(self, names: Iterable[str]) -> None:
        """Add types by their short names, such as core.v1.Pod."""
        for name in names:
            self.reference(builtin.schema_of_type(name))

    def reference(self, node: Node) -> Schema:
        """A reference to a struct's schema, which is added where it is new."""
        name = full_name(node.go.name)
        if name not in self.found:
            schema: Schema = {"type": "object"}
            self.found[name] = schema  # before its fields: types refer to themselves
            fields = node.fields
            if required := _required().get(node.go.name):
                schema["required"] = required
            if fields:
                schema["properties"] = {key: self._field(fields[key]) for key in sorted(fields)}
            if node.map_type == "atomic":
                schema["x-kubernetes-map-type"] = "atomic"
        return {"$ref": self._place + name}

    def _field(self, node: Node) -> Schema:
        schema, go = self._shape(node), node.go
        more: Schema = {}
        if node.default is not MISSING and node.default is not None:
            more["default"] = node.default
        if node.list_type != "atomic":
            more["x-kubernetes-list-type"] = node.list_type
        if node.keys:
            more["x-kubernetes-list-map-keys"] = list(node.keys)
        if node.map_type == "atomic" and go.kind == "map":
            more["x-kubernetes-map-type"] = "atomic"
        if go.merge_key:
            more["x-kubernetes-patch-merge-key"] = go.merge_key
        if go.strategy:
            more["x-kubernetes-patch-strategy"] = ",".join(go.strategy)
        if "$ref" in schema and not self._v2:
            return {"allOf": [schema], **more}
        return {**schema, **more}

    def _shape(self, node: Node) -> Schema:
        kind = node.go.kind
        if kind == "struct":
            return self.reference(node)
        if kind == "list":
            assert node.items is not None
            return {"type": "array", "items": self._shape(node.items)}
        if kind == "map":
            assert node.values is not None
            return {"type": "object", "additionalProperties": self._shape(node.values)}
        if kind in _NAMED:
            name, newer, older = _NAMED[kind]
            self.found[name] = older if self._v2 else newer
            return {"$ref": self._place + name}
        return _SCALARS.get(kind, {})
