"""Random schemas, random objects, random histories of writers; all from one seed."""

import random
from typing import Any

from fairlead.server.schema.nodes import MISSING, Node

TEXTS = ("a", "b", "c", "d<&>", "")
NUMBERS = (0, 1, 2, 80, 1000000, 1.5, 1.0)
NAMES = ("a", "b", "c", "d")


class Schemas:
    """Draws a schema (as OpenAPI) for a place; `loose` ones may leave open whether it holds a map or a scalar."""

    def __init__(self, chance: random.Random, *, loose: bool = True) -> None:
        self.chance = chance
        self.loose = loose

    def root(self) -> dict[str, Any]:
        text = {"type": "string"}
        metadata = {
            "type": "object",
            "properties": {
                "name": text,
                "namespace": text,
                "uid": text,
                "managedFields": {"type": "array", "items": {"type": "object"}},
                "labels": {"type": "object", "additionalProperties": text},
                "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            },
        }
        properties = {"apiVersion": text, "kind": text, "metadata": metadata}
        return {"type": "object", "properties": {**properties, "spec": self.struct(0, 6), "status": self.struct(1, 3)}}

    def struct(self, depth: int, most: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object"}
        names = ("p", "q", "r", "s", "t", "u")[: self.chance.randint(1, most)]
        made["properties"] = {name: self.place(depth + 1) for name in names}
        if self.chance.random() < 0.15:
            made["x-kubernetes-map-type"] = "atomic"
        if self.chance.random() < 0.1:
            made["x-kubernetes-preserve-unknown-fields"] = True
        return made

    def scalar(self) -> dict[str, Any]:
        return self.chance.choice(
            [
                {"type": "string"},
                {"type": "integer"},
                {"type": "number"},
                {"type": "boolean"},
                {"type": "string", "format": "date-time"},
                {"x-kubernetes-int-or-string": True},
            ]
        )

    def place(self, depth: int) -> dict[str, Any]:
        draw = self.chance.random()
        if draw < 0.25 or depth > 3:
            return self.scalar()
        if draw < 0.4:
            return self.struct(depth, 3)
        if draw < 0.5:
            values = self.place(depth + 1)
            atomic = {"x-kubernetes-map-type": "atomic"} if self.chance.random() < 0.2 else {}
            return {"type": "object", "additionalProperties": values, **atomic}
        if draw < 0.58:
            free: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
            return free if self.loose and self.chance.random() < 0.4 else {"type": "object", **free}
        if draw < 0.66:
            return {"type": "array", "items": self.place(depth + 1), "x-kubernetes-list-type": "atomic"}
        if draw < 0.78:
            items = {"type": self.chance.choice(["string", "integer", "number"])}
            return {"type": "array", "items": items, "x-kubernetes-list-type": "set"}
        return self.keyed(depth)

    def keyed(self, depth: int) -> dict[str, Any]:
        item = self.struct(depth, 3)
        keys = ["name"] if self.chance.random() < 0.6 else ["port", "protocol"]
        if keys == ["name"]:
            item["properties"]["name"] = {"type": self.chance.choice(["string", "integer"])}
        else:
            item["properties"]["port"] = {"type": "integer"}
            default = {"default": "TCP"} if self.chance.random() < 0.7 else {}
            item["properties"]["protocol"] = {"type": "string", **default}
        return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}


class Values:
    """Draws a value that (mostly) fits a schema."""

    def __init__(self, chance: random.Random, *, odd: float = 0.0, repeats: float = 0.0) -> None:
        self.chance = chance
        self.odd = odd  # how often something does not fit, or is null
        self.repeats = repeats  # how often a list may hold an item twice

    def object(self, schema: dict[str, Any], version: str) -> dict[str, Any]:
        made: dict[str, Any] = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "w"}}
        declared = schema["properties"]["metadata"]["properties"]
        for name in ("labels", "finalizers"):
            if self.chance.random() < 0.3:
                made["metadata"][name] = self.value(declared[name])
        for name in ("spec", "status"):
            if self.chance.random() < 0.85:
                made[name] = self.value(schema["properties"][name])
        return made

    def value(self, schema: dict[str, Any]) -> Any:
        chance = self.chance
        if chance.random() < self.odd:
            return chance.choice([None, None, None, {}, [], "a", 1, True])
        kind = schema.get("type", "")
        if kind == "string":
            return chance.choice(TEXTS)
        if kind == "integer":
            return chance.choice([0, 1, 2, 80, 1000000])
        if kind == "number":
            return chance.choice(NUMBERS)
        if kind == "boolean":
            return chance.choice([True, False])
        if kind == "array":
            return self.items(schema)
        if kind == "object":
            return self.map(schema)
        return self.free(0) if "x-kubernetes-int-or-string" not in schema else chance.choice([1, 2, "a", "10%"])

    def map(self, schema: dict[str, Any]) -> dict[str, Any]:
        chance = self.chance
        out = {}
        declared = schema.get("properties", {})
        for name, below in declared.items():
            if chance.random() < 0.55:
                out[name] = self.value(below)
        if "additionalProperties" in schema:
            for name in chance.sample(NAMES, chance.randint(0, 3)):
                out[name] = self.value(schema["additionalProperties"])
        elif schema.get("x-kubernetes-preserve-unknown-fields"):
            for name in chance.sample(NAMES, chance.randint(0, 3)):
                out[name] = self.free(0)
        if chance.random() < self.odd / 3:
            out["unknown"] = 1
        return out

    def items(self, schema: dict[str, Any]) -> list[Any]:
        made = [self.value(schema["items"]) for _ in range(self.chance.randint(0, 4))]
        keys = schema.get("x-kubernetes-list-map-keys", ())
        for item in made:
            if isinstance(item, dict):
                for key in keys:
                    if key != "protocol" or self.chance.random() < 0.5:
                        item[key] = self.key(schema["items"]["properties"][key])
        if schema.get("x-kubernetes-list-type") in ("set", "map") and self.chance.random() >= self.repeats:
            made = self.distinct(made, keys, schema["items"].get("properties", {}))
        return made

    def key(self, schema: dict[str, Any]) -> Any:
        return self.chance.choice(["a", "b", "c"] if schema["type"] == "string" else [1, 2, 80])

    def distinct(self, items: list[Any], keys: list[str], declared: dict[str, Any]) -> list[Any]:
        out, seen = [], []
        for item in items:
            if keys and isinstance(item, dict):
                known: Any = [item.get(key, declared[key].get("default")) for key in keys]
            else:
                known = [item]
            if known not in seen:
                seen.append(known)
                out.append(item)
        return out

    def free(self, depth: int) -> Any:
        chance = self.chance
        draw = chance.random()
        if depth > 2 or draw < 0.5:
            return chance.choice(["a", "b", 1, 1.5, True, None] if draw < 0.1 else ["a", "b", 1])
        if draw < 0.8:
            return {name: self.free(depth + 1) for name in chance.sample(NAMES, chance.randint(0, 3))}
        return [self.free(depth + 1) for _ in range(chance.randint(0, 3))]

    def changed(self, schema: dict[str, Any], value: Any) -> Any:
        """`value` with a few places drawn anew."""
        if self.chance.random() < 0.12:
            return self.value(schema)
        if isinstance(value, dict) and schema.get("type") == "object":
            out = {}
            for name, below in value.items():
                child = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
                if self.chance.random() < 0.92:
                    out[name] = self.changed(child, below) if isinstance(child, dict) else below
            return out
        return value


def node(schema: dict[str, Any]) -> Node:
    """The schema as a node."""
    return Node(
        schema.get("type", ""),
        fields={name: node(child) for name, child in schema.get("properties", {}).items()},
        values=node(schema["additionalProperties"]) if "additionalProperties" in schema else None,
        items=node(schema["items"]) if "items" in schema else None,
        map_type=schema.get("x-kubernetes-map-type", "granular"),
        list_type=schema.get("x-kubernetes-list-type", "atomic"),
        keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
        preserve=schema.get("x-kubernetes-preserve-unknown-fields", False),
        int_or_string=schema.get("x-kubernetes-int-or-string", False),
        format=schema.get("format", ""),
        default=schema.get("default", MISSING),
    )
