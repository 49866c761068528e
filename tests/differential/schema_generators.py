"""Random structural schemas, values that mostly conform to them, and CRDs with these schemas."""

import copy
import random
import re
from typing import Any

Schema = dict[str, Any]
NAMES = ("a", "b", "c", "d", "e")
WORDS = ("x", "y", "zz", "", "é<&>", "x1")
FORMATS = {
    "date-time": ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5+01:00"),
    "date": ("2024-01-02", "2024-02-29"),
    "uuid": ("5b2c0a3e-9f0e-4b7e-8f7e-0123456789ab",),
    "ipv4": ("10.0.0.1",),
    "ipv6": ("fe80::1",),
    "cidr": ("10.0.0.0/8",),
    "uri": ("https://example.com/a?b=c",),
    "email": ("a@example.com",),
    "hostname": ("a.example.com",),
    "byte": ("eA==",),
    "duration": ("1m30s", "22 ns"),
    "password": ("x",),
}
PATTERNS = {"^[xyz]+$": ("x", "zz"), "^x\\d$": ("x1",), "y": ("y",)}
RULES = {  # without comparisons of sets and without optionals: see docs/explanation/differences-in-detail.md
    "string": (
        {"rule": "self != 'y'"},
        {"rule": "self.size() < 3", "message": "too long for us"},
        {"rule": "self.startsWith('x')", "messageExpression": "'not an x: ' + self", "reason": "FieldValueForbidden"},
        {"rule": "self == oldSelf", "message": "may not change"},
        {"rule": "self.matches('^[a-z]*$')"},
    ),
    "integer": (
        {"rule": "self >= 0", "fieldPath": None},
        {"rule": "self % 2 == 0 || self == 1", "messageExpression": "'odd: ' + string(self)"},
        {"rule": "self >= oldSelf", "message": "may only grow"},
        {"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": True},
    ),
    "number": ({"rule": "self < 100.0"}, {"rule": "self < 3"}),
    "boolean": ({"rule": "self || !oldSelf"},),
    "array": (
        {"rule": "self.size() != 2"},
        {"rule": "self.map(x, 1).size() == self.size()"},
        {"rule": "self.isSorted()"},
        {"rule": "self.exists(x, true)"},
    ),
    "object": (
        {"rule": "!has(self.a) || !has(self.b)", "message": "a or b, not both"},
        {"rule": "!has(self.a)", "fieldPath": ".a", "reason": "FieldValueRequired"},
        {"rule": "has(self.c) || !has(oldSelf.c)", "message": "c may not go"},
        {"rule": "has(self.e) == has(oldSelf.e)"},
    ),
}


def generate_schema(rng: random.Random, depth: int = 3) -> Schema:
    """Return a structural schema that a real server mostly accepts."""
    kinds = ["string", "integer", "number", "boolean", "quantity"]
    kinds += ["object", "object", "map", "list", "keyed", "set", "open", "embedded"] if depth > 0 else []
    result: Schema = globals()["_" + rng.choice(kinds)](rng, depth)
    if rng.random() < 0.15:
        result["nullable"] = True
    if rng.random() < 0.15 and not result.get("x-kubernetes-embedded-resource"):
        default = generate_value(rng, result, invalid=0)
        if conforms(result, default):
            result["default"] = default
    if rng.random() < 0.1 and (rules := RULES.get(result.get("type", ""))):
        rule = {key: item for key, item in rng.choice(rules).items() if item is not None}
        if _is_applicable(rule, result):
            result["x-kubernetes-validations"] = [rule]
    return result


def _is_applicable(rule: dict[str, Any], node: Schema) -> bool:
    if node["type"] == "object":
        fields = [name for name in NAMES if f".{name}" in rule["rule"]]
        return all(name in (node.get("properties") or {}) for name in fields)
    return True


def _string(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"type": "string", "maxLength": rng.choice([5, 40])}
    random_number = rng.random()
    if random_number < 0.2:
        result["enum"] = rng.sample(WORDS, rng.randint(1, 4))
    elif random_number < 0.35:
        result["pattern"] = rng.choice(list(PATTERNS))
    elif random_number < 0.55:
        result["format"] = rng.choice(list(FORMATS))
    elif random_number < 0.65:
        result["minLength"] = rng.choice([0, 1, 2])
    elif random_number < 0.75:
        result |= _combined(rng, [{"minLength": 1}, {"maxLength": 2}, {"enum": ["x", "y"]}, {"pattern": "x"}])
    return result


def _integer(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"type": "integer"}
    random_number = rng.random()
    if random_number < 0.2:
        result["format"] = rng.choice(["int32", "int64"])
    elif random_number < 0.4:
        result |= {"minimum": rng.choice([0, -1, 1])} | ({"exclusiveMinimum": True} if rng.random() < 0.3 else {})
    elif random_number < 0.55:
        result |= {"maximum": rng.choice([2, 10])} | ({"exclusiveMaximum": True} if rng.random() < 0.3 else {})
    elif random_number < 0.65:
        result["multipleOf"] = rng.choice([2, 3])
    elif random_number < 0.75:
        result["enum"] = [0, 1, 2]
    elif random_number < 0.85:
        result |= _combined(rng, [{"minimum": 1}, {"maximum": 2}, {"enum": [0, 1]}, {"multipleOf": 2}])
    return result


def _number(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"type": "number"}
    if rng.random() < 0.3:
        result["format"] = rng.choice(["float", "double"])
    if rng.random() < 0.3:
        result["minimum"] = rng.choice([0, 0.5, -1.5])
    if rng.random() < 0.2:
        result["multipleOf"] = 0.5
    return result


def _boolean(rng: random.Random, depth: int) -> Schema:
    return {"type": "boolean"}


def _quantity(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"x-kubernetes-int-or-string": True}
    if rng.random() < 0.5:
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if rng.random() < 0.3:
        result["pattern"] = "^[0-9]+%?$"
    return result


def _object(rng: random.Random, depth: int) -> Schema:
    names = rng.sample(NAMES, rng.randint(1, 4))
    result: Schema = {"type": "object", "properties": {name: generate_schema(rng, depth - 1) for name in names}}
    if rng.random() < 0.25:
        result["required"] = rng.sample(names, 1)
    if rng.random() < 0.15:
        result["x-kubernetes-preserve-unknown-fields"] = True
    if rng.random() < 0.15:
        result["x-kubernetes-map-type"] = rng.choice(["atomic", "granular"])
    if rng.random() < 0.15:
        result |= _combined(rng, [{"required": [name]} for name in names] + [{"maxProperties": 2}])
    if rng.random() < 0.1:
        result["minProperties"] = 1
    return result


def _map(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"type": "object", "maxProperties": 4, "additionalProperties": generate_schema(rng, depth - 1)}
    if rng.random() < 0.15:
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _list(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"type": "array", "maxItems": rng.choice([2, 5]), "items": generate_schema(rng, depth - 1)}
    if rng.random() < 0.3:
        result["x-kubernetes-list-type"] = "atomic"
    if rng.random() < 0.15:
        result["minItems"] = 1
    return result


def _set(rng: random.Random, depth: int) -> Schema:
    item = globals()["_" + rng.choice(["string", "integer", "number", "boolean"])](rng, 0)
    return {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": item}


def _keyed(rng: random.Random, depth: int) -> Schema:
    keys = rng.choice([["k"], ["k"], ["k", "n"]])
    item = _object(rng, depth - 1)
    item.pop("x-kubernetes-map-type", None)
    item["properties"]["k"] = {"type": "string", "maxLength": 3}
    item["properties"]["n"] = {"type": "integer"}
    item["required"] = [key for key in keys if key != "n" or rng.random() < 0.5]
    if "n" in keys and "n" not in item["required"]:
        item["properties"]["n"]["default"] = 1
    return {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": item,
    }


def _open(rng: random.Random, depth: int) -> Schema:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _embedded(rng: random.Random, depth: int) -> Schema:
    result: Schema = {"type": "object", "x-kubernetes-embedded-resource": True}
    if rng.random() < 0.5:
        return result | {"x-kubernetes-preserve-unknown-fields": True}
    return result | {"properties": {"spec": _object(rng, depth - 1)}}


def _combined(rng: random.Random, schemas: list[Schema]) -> Schema:
    kind = rng.choice(["allOf", "anyOf", "oneOf", "not"])
    if kind == "not":
        return {"not": rng.choice(schemas)}
    return {kind: rng.sample(schemas, min(len(schemas), rng.randint(1, 2)))}


INVALID_VALUES = (None, "x", 1, 1.0, 1.5, -1, True, [], {}, ["x"], {"a": 1}, 2**31, 2**53 + 1, 1e21, "1")


MAX_TRIES = 8


def generate_value(rng: random.Random, node: Schema, invalid: float = 0.06) -> Any:
    """Return a value that mostly conforms to a schema. Its validation rules are ignored."""
    for _ in range(MAX_TRIES):
        result = _value(rng, node, invalid)
        if invalid or conforms(node, result):
            break
    return result


def conforms(node: Schema, value: Any) -> bool:
    """Return whether a value conforms to its schema. Its fields and items are not checked."""
    if value is None or not _has_valid_size(node, value):
        return value is None and bool(node.get("nullable"))
    if node.get("enum") and value not in node["enum"]:
        return False
    results = [[conforms(schema, value) for schema in node.get(key, ())] for key in ("allOf", "anyOf", "oneOf")]
    return (
        all(results[0])
        and (any(results[1]) or not results[1])
        and (sum(results[2]) == 1 or not results[2])
        and not ("not" in node and conforms(node["not"], value))
    )


def _has_valid_size(node: Schema, value: Any) -> bool:
    if isinstance(value, str):
        pattern = node.get("pattern", "")
        return _within(node, "Length", len(value)) and re.search(pattern, value) is not None
    if isinstance(value, dict):
        return _within(node, "Properties", len(value)) and set(node.get("required", ())) <= set(value)
    if isinstance(value, list):
        return _within(node, "Items", len(value))
    if isinstance(value, bool):
        return True
    minimum, maximum = node.get("minimum", value), node.get("maximum", value)
    is_above = value > minimum if node.get("exclusiveMinimum") else value >= minimum
    is_below = value < maximum if node.get("exclusiveMaximum") else value <= maximum
    return is_above and is_below and value % node.get("multipleOf", value or 1) == 0


def _within(node: Schema, size_keyword: str, size: int) -> bool:
    return int(node.get(f"min{size_keyword}", size)) <= size <= int(node.get(f"max{size_keyword}", size))


def _value(rng: random.Random, node: Schema, invalid: float) -> Any:
    if rng.random() < invalid:
        return copy.deepcopy(rng.choice(INVALID_VALUES))
    if node.get("nullable") and rng.random() < 0.2:
        return None
    if node.get("enum") and rng.random() < 0.95:
        return rng.choice(node["enum"])
    if node.get("x-kubernetes-int-or-string"):
        return rng.choice([1, "1", "10%", 0, "x"])
    kind = node.get("type")
    if kind == "object":
        return _object_value(rng, node, invalid)
    if kind == "array":
        return _array_value(rng, node, invalid)
    if kind == "string":
        return _string_value(rng, node)
    if kind == "integer":
        return rng.choice([0, 1, 2, 3, 4, 10, 1.0 if invalid else 1])
    if kind == "number":
        return rng.choice([0, 1, 1.5, 2.5, -1, 1.0, 0.1, 3e10])
    return rng.choice([True, False])


def _string_value(rng: random.Random, node: Schema) -> str:
    if node.get("pattern") in PATTERNS and rng.random() < 0.8:
        return rng.choice(PATTERNS[node["pattern"]])
    if node.get("format") in FORMATS and rng.random() < 0.97:
        return rng.choice(FORMATS[node["format"]])
    return rng.choice(WORDS)


def _object_value(rng: random.Random, node: Schema, invalid: float) -> Any:
    result: dict[str, Any] = {}
    if node.get("x-kubernetes-embedded-resource"):
        result = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": rng.choice(["x", "y", "z", "Bad_"])}}
        result = {key: item for key, item in result.items() if rng.random() < 0.95}
    for name, part in (node.get("properties") or {}).items():
        if rng.random() < 0.6 or name in node.get("required", ()):
            result[name] = generate_value(rng, part, invalid)
    if isinstance(node.get("additionalProperties"), dict):
        for name in rng.sample(NAMES, rng.randint(0, 3)):
            result[name] = generate_value(rng, node["additionalProperties"], invalid)
    if rng.random() < (0.5 if node.get("x-kubernetes-preserve-unknown-fields") else invalid):
        result[rng.choice(["u", "a", "b"])] = copy.deepcopy(rng.choice(INVALID_VALUES))
    return result


def _array_value(rng: random.Random, node: Schema, invalid: float) -> list[Any]:
    items = [generate_value(rng, node["items"], invalid) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if node.get("x-kubernetes-list-type") == "map" and rng.random() < 0.9:
        for item, key in zip(items, ("x", "y", "z"), strict=False):
            if isinstance(item, dict):
                item["k"] = key
    if node.get("x-kubernetes-list-type") == "set" and rng.random() < 0.9:
        items = [item for index, item in enumerate(items) if item not in items[:index]]
    if not invalid:
        items = items[: node.get("maxItems")]
    return items


def generate_definition(rng: random.Random) -> dict[str, Any]:
    """Return the spec of a CRD, without its group and names."""
    root: Schema = {"type": "object", "properties": {"spec": _object(rng, 3), "status": _object(rng, 2)}}
    for field_name in ("spec", "status"):
        root["properties"][field_name].pop("x-kubernetes-map-type", None)
    root["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
    root["properties"]["status"]["properties"]["replicas"] = {"type": "integer"}
    if rng.random() < 0.2:
        root["properties"]["more"] = generate_schema(rng, 2)
    if rng.random() < 0.1:
        root["x-kubernetes-validations"] = [
            {"rule": "!has(self.spec) || self.metadata.name != 'w2'", "message": "w2 has no spec"}
        ]
    subresources: dict[str, Any] = {"status": {}} if rng.random() < 0.6 else {}
    if rng.random() < 0.6:
        subresources["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    versions = [_version("v1", root, subresources, True)]
    if rng.random() < 0.35:
        other = {**root, "properties": {**root["properties"], "spec": _object(rng, 2)}}
        versions.append(_version("v2", other if rng.random() < 0.7 else root, subresources, False))
    return {"scope": "Namespaced", "versions": versions}


def _version(name: str, root: Schema, subresources: dict[str, Any], is_storage: bool) -> dict[str, Any]:
    result = {"name": name, "served": True, "storage": is_storage, "schema": {"openAPIV3Schema": root}}
    return {**result, **({"subresources": subresources} if subresources else {})}
