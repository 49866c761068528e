"""Random schemas and random objects for histories of writes. Everything depends on one seed only."""

import random
from typing import Any

from fairlead.server.schema.nodes import MISSING, Node

TEXTS = ("a", "b", "c", "d<&>", "")
NUMBERS = (0, 1, 2, 80, 1000000, 1.5, 1.0)
NAMES = ("a", "b", "c", "d")


class SchemaGenerator:
    """Generates OpenAPI schemas. With `loose`, a schema may accept both a map and a scalar."""

    def __init__(self, rng: random.Random, *, loose: bool = True) -> None:
        self.rng = rng
        self.loose = loose

    def root(self) -> dict[str, Any]:
        string_schema = {"type": "string"}
        metadata = {
            "type": "object",
            "properties": {
                "name": string_schema,
                "namespace": string_schema,
                "uid": string_schema,
                "managedFields": {"type": "array", "items": {"type": "object"}},
                "labels": {"type": "object", "additionalProperties": string_schema},
                "finalizers": {"type": "array", "items": string_schema, "x-kubernetes-list-type": "set"},
            },
        }
        properties = {"apiVersion": string_schema, "kind": string_schema, "metadata": metadata}
        return {"type": "object", "properties": {**properties, "spec": self.struct(0, 6), "status": self.struct(1, 3)}}

    def struct(self, depth: int, max_fields: int) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "object"}
        names = ("p", "q", "r", "s", "t", "u")[: self.rng.randint(1, max_fields)]
        result["properties"] = {name: self.any_schema(depth + 1) for name in names}
        if self.rng.random() < 0.15:
            result["x-kubernetes-map-type"] = "atomic"
        if self.rng.random() < 0.1:
            result["x-kubernetes-preserve-unknown-fields"] = True
        return result

    def scalar(self) -> dict[str, Any]:
        return self.rng.choice(
            [
                {"type": "string"},
                {"type": "integer"},
                {"type": "number"},
                {"type": "boolean"},
                {"type": "string", "format": "date-time"},
                {"x-kubernetes-int-or-string": True},
            ]
        )

    def any_schema(self, depth: int) -> dict[str, Any]:
        random_number = self.rng.random()
        if random_number < 0.25 or depth > 3:
            return self.scalar()
        if random_number < 0.4:
            return self.struct(depth, 3)
        if random_number < 0.5:
            values = self.any_schema(depth + 1)
            atomic_marker = {"x-kubernetes-map-type": "atomic"} if self.rng.random() < 0.2 else {}
            return {"type": "object", "additionalProperties": values, **atomic_marker}
        if random_number < 0.58:
            free: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
            return free if self.loose and self.rng.random() < 0.4 else {"type": "object", **free}
        if random_number < 0.66:
            return {"type": "array", "items": self.any_schema(depth + 1), "x-kubernetes-list-type": "atomic"}
        if random_number < 0.78:
            items = {"type": self.rng.choice(["string", "integer", "number"])}
            return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}
        return self.keyed_list(depth)

    def keyed_list(self, depth: int) -> dict[str, Any]:
        item = self.struct(depth, 3)
        keys = ["name"] if self.rng.random() < 0.6 else ["port", "protocol"]
        if keys == ["name"]:
            item["properties"]["name"] = {"type": self.rng.choice(["string", "integer"])}
        else:
            item["properties"]["port"] = {"type": "integer"}
            default = {"default": "TCP"} if self.rng.random() < 0.7 else {}
            item["properties"]["protocol"] = {"type": "string", **default}
        return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}


class ValueGenerator:
    """Generates values that (mostly) conform to a schema."""

    def __init__(self, rng: random.Random, *, invalid: float = 0.0, duplicates: float = 0.0) -> None:
        self.rng = rng
        self.invalid = invalid  # how often a value has the wrong type, or is null
        self.duplicates = duplicates  # how often a list may have duplicate items

    def object(self, schema: dict[str, Any], version: str) -> dict[str, Any]:
        result: dict[str, Any] = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "w"}}
        metadata_properties = schema["properties"]["metadata"]["properties"]
        for name in ("labels", "finalizers"):
            if self.rng.random() < 0.3:
                result["metadata"][name] = self.value(metadata_properties[name])
        for name in ("spec", "status"):
            if self.rng.random() < 0.85:
                result[name] = self.value(schema["properties"][name])
        return result

    def value(self, schema: dict[str, Any]) -> Any:
        rng = self.rng
        if rng.random() < self.invalid:
            return rng.choice([None, None, None, {}, [], "a", 1, True])
        kind = schema.get("type", "")
        if kind == "string":
            return rng.choice(TEXTS)
        if kind == "integer":
            return rng.choice([0, 1, 2, 80, 1000000])
        if kind == "number":
            return rng.choice(NUMBERS)
        if kind == "boolean":
            return rng.choice([True, False])
        if kind == "array":
            return self.items(schema)
        if kind == "object":
            return self.map(schema)
        return self.untyped(0) if "x-kubernetes-int-or-string" not in schema else rng.choice([1, 2, "a", "10%"])

    def map(self, schema: dict[str, Any]) -> dict[str, Any]:
        rng = self.rng
        result = {}
        properties = schema.get("properties", {})
        for name, child in properties.items():
            if rng.random() < 0.55:
                result[name] = self.value(child)
        if "additionalProperties" in schema:
            for name in rng.sample(NAMES, rng.randint(0, 3)):
                result[name] = self.value(schema["additionalProperties"])
        elif schema.get("x-kubernetes-preserve-unknown-fields"):
            for name in rng.sample(NAMES, rng.randint(0, 3)):
                result[name] = self.untyped(0)
        if rng.random() < self.invalid / 3:
            result["unknown"] = 1
        return result

    def items(self, schema: dict[str, Any]) -> list[Any]:
        result = [self.value(schema["items"]) for _ in range(self.rng.randint(0, 4))]
        keys = schema.get("x-kubernetes-list-map-keys", ())
        for item in result:
            if isinstance(item, dict):
                for key in keys:
                    if key != "protocol" or self.rng.random() < 0.5:
                        item[key] = self.key(schema["items"]["properties"][key])
        if schema.get("x-kubernetes-list-type") in ("set", "map") and self.rng.random() >= self.duplicates:
            result = self.without_duplicates(result, keys, schema["items"].get("properties", {}))
        return result

    def key(self, schema: dict[str, Any]) -> Any:
        return self.rng.choice(["a", "b", "c"] if schema["type"] == "string" else [1, 2, 80])

    def without_duplicates(self, items: list[Any], keys: list[str], item_properties: dict[str, Any]) -> list[Any]:
        result, identities = [], []
        for item in items:
            if keys and isinstance(item, dict):
                identity: Any = [item.get(key, item_properties[key].get("default")) for key in keys]
            else:
                identity = [item]
            if identity not in identities:
                identities.append(identity)
                result.append(item)
        return result

    def untyped(self, depth: int) -> Any:
        rng = self.rng
        random_number = rng.random()
        if depth > 2 or random_number < 0.5:
            return rng.choice(["a", "b", 1, 1.5, True, None] if random_number < 0.1 else ["a", "b", 1])
        if random_number < 0.8:
            return {name: self.untyped(depth + 1) for name in rng.sample(NAMES, rng.randint(0, 3))}
        return [self.untyped(depth + 1) for _ in range(rng.randint(0, 3))]

    def change(self, schema: dict[str, Any], value: Any) -> Any:
        """Return `value` with a few parts replaced or removed."""
        if self.rng.random() < 0.12:
            return self.value(schema)
        if isinstance(value, dict) and schema.get("type") == "object":
            result = {}
            for name, child_value in value.items():
                child = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
                if self.rng.random() < 0.92:
                    result[name] = self.change(child, child_value) if isinstance(child, dict) else child_value
            return result
        return value


def to_node(schema: dict[str, Any]) -> Node:
    """Return the schema as a Node."""
    return Node(
        schema.get("type", ""),
        fields={name: to_node(child) for name, child in schema.get("properties", {}).items()},
        values=to_node(schema["additionalProperties"]) if "additionalProperties" in schema else None,
        items=to_node(schema["items"]) if "items" in schema else None,
        map_type=schema.get("x-kubernetes-map-type", "granular"),
        list_type=schema.get("x-kubernetes-list-type", "atomic"),
        keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
        preserve=schema.get("x-kubernetes-preserve-unknown-fields", False),
        int_or_string=schema.get("x-kubernetes-int-or-string", False),
        format=schema.get("format", ""),
        default=schema.get("default", MISSING),
    )
