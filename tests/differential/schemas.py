"""Random structural schemas, values that (mostly) fit them, and definitions of custom kinds made of both."""

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
RULES = {  # none compares what may be a set, or has optionals: docs/explanation/differences-in-detail.md
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


def schema(chance: random.Random, depth: int = 3) -> Schema:
    """A structural schema that most real servers' checks accept."""
    kinds = ["string", "integer", "number", "boolean", "quantity"]
    kinds += ["object", "object", "map", "list", "keyed", "set", "open", "embedded"] if depth > 0 else []
    made: Schema = globals()["_" + chance.choice(kinds)](chance, depth)
    if chance.random() < 0.15:
        made["nullable"] = True
    if chance.random() < 0.15 and not made.get("x-kubernetes-embedded-resource"):
        drawn = value(chance, made, wrong=0)
        if fits(made, drawn):
            made["default"] = drawn
    if chance.random() < 0.1 and (rules := RULES.get(made.get("type", ""))):
        rule = {key: item for key, item in chance.choice(rules).items() if item is not None}
        if _usable(rule, made):
            made["x-kubernetes-validations"] = [rule]
    return made


def _usable(rule: dict[str, Any], made: Schema) -> bool:
    if made["type"] == "object":
        named = [name for name in NAMES if f".{name}" in rule["rule"]]
        return all(name in (made.get("properties") or {}) for name in named)
    return True


def _string(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "string", "maxLength": chance.choice([5, 40])}
    draw = chance.random()
    if draw < 0.2:
        made["enum"] = chance.sample(WORDS, chance.randint(1, 4))
    elif draw < 0.35:
        made["pattern"] = chance.choice(list(PATTERNS))
    elif draw < 0.55:
        made["format"] = chance.choice(list(FORMATS))
    elif draw < 0.65:
        made["minLength"] = chance.choice([0, 1, 2])
    elif draw < 0.75:
        made |= _combined(chance, [{"minLength": 1}, {"maxLength": 2}, {"enum": ["x", "y"]}, {"pattern": "x"}])
    return made


def _integer(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "integer"}
    draw = chance.random()
    if draw < 0.2:
        made["format"] = chance.choice(["int32", "int64"])
    elif draw < 0.4:
        made |= {"minimum": chance.choice([0, -1, 1])} | ({"exclusiveMinimum": True} if chance.random() < 0.3 else {})
    elif draw < 0.55:
        made |= {"maximum": chance.choice([2, 10])} | ({"exclusiveMaximum": True} if chance.random() < 0.3 else {})
    elif draw < 0.65:
        made["multipleOf"] = chance.choice([2, 3])
    elif draw < 0.75:
        made["enum"] = [0, 1, 2]
    elif draw < 0.85:
        made |= _combined(chance, [{"minimum": 1}, {"maximum": 2}, {"enum": [0, 1]}, {"multipleOf": 2}])
    return made


def _number(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "number"}
    if chance.random() < 0.3:
        made["format"] = chance.choice(["float", "double"])
    if chance.random() < 0.3:
        made["minimum"] = chance.choice([0, 0.5, -1.5])
    if chance.random() < 0.2:
        made["multipleOf"] = 0.5
    return made


def _boolean(chance: random.Random, depth: int) -> Schema:
    return {"type": "boolean"}


def _quantity(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"x-kubernetes-int-or-string": True}
    if chance.random() < 0.5:
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if chance.random() < 0.3:
        made["pattern"] = "^[0-9]+%?$"
    return made


def _object(chance: random.Random, depth: int) -> Schema:
    names = chance.sample(NAMES, chance.randint(1, 4))
    made: Schema = {"type": "object", "properties": {name: schema(chance, depth - 1) for name in names}}
    if chance.random() < 0.25:
        made["required"] = chance.sample(names, 1)
    if chance.random() < 0.15:
        made["x-kubernetes-preserve-unknown-fields"] = True
    if chance.random() < 0.15:
        made["x-kubernetes-map-type"] = chance.choice(["atomic", "granular"])
    if chance.random() < 0.15:
        made |= _combined(chance, [{"required": [name]} for name in names] + [{"maxProperties": 2}])
    if chance.random() < 0.1:
        made["minProperties"] = 1
    return made


def _map(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "object", "maxProperties": 4, "additionalProperties": schema(chance, depth - 1)}
    if chance.random() < 0.15:
        made["x-kubernetes-map-type"] = "atomic"
    return made


def _list(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "array", "maxItems": chance.choice([2, 5]), "items": schema(chance, depth - 1)}
    if chance.random() < 0.3:
        made["x-kubernetes-list-type"] = "atomic"
    if chance.random() < 0.15:
        made["minItems"] = 1
    return made


def _set(chance: random.Random, depth: int) -> Schema:
    item = globals()["_" + chance.choice(["string", "integer", "number", "boolean"])](chance, 0)
    return {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": item}


def _keyed(chance: random.Random, depth: int) -> Schema:
    keys = chance.choice([["k"], ["k"], ["k", "n"]])
    item = _object(chance, depth - 1)
    item.pop("x-kubernetes-map-type", None)
    item["properties"]["k"] = {"type": "string", "maxLength": 3}
    item["properties"]["n"] = {"type": "integer"}
    item["required"] = [key for key in keys if key != "n" or chance.random() < 0.5]
    if "n" in keys and "n" not in item["required"]:
        item["properties"]["n"]["default"] = 1
    return {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": item,
    }


def _open(chance: random.Random, depth: int) -> Schema:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _embedded(chance: random.Random, depth: int) -> Schema:
    made: Schema = {"type": "object", "x-kubernetes-embedded-resource": True}
    if chance.random() < 0.5:
        return made | {"x-kubernetes-preserve-unknown-fields": True}
    return made | {"properties": {"spec": _object(chance, depth - 1)}}


def _combined(chance: random.Random, parts: list[Schema]) -> Schema:
    kind = chance.choice(["allOf", "anyOf", "oneOf", "not"])
    if kind == "not":
        return {"not": chance.choice(parts)}
    return {kind: chance.sample(parts, min(len(parts), chance.randint(1, 2)))}


STRAYS = (None, "x", 1, 1.0, 1.5, -1, True, [], {}, ["x"], {"a": 1}, 2**31, 2**53 + 1, 1e21, "1")


TRIES = 8


def value(chance: random.Random, node: Schema, wrong: float = 0.06) -> Any:
    """A value for a schema: mostly one that fits, save for rules."""
    for _ in range(TRIES):
        made = _value(chance, node, wrong)
        if wrong or fits(node, made):
            break
    return made


def fits(node: Schema, made: Any) -> bool:
    """Whether a value keeps what its schema says of it; what is inside is not looked at."""
    if made is None or not _sized(node, made):
        return made is None and bool(node.get("nullable"))
    if node.get("enum") and made not in node["enum"]:
        return False
    ways = [[fits(one, made) for one in node.get(key, ())] for key in ("allOf", "anyOf", "oneOf")]
    return (
        all(ways[0])
        and (any(ways[1]) or not ways[1])
        and (sum(ways[2]) == 1 or not ways[2])
        and not ("not" in node and fits(node["not"], made))
    )


def _sized(node: Schema, made: Any) -> bool:
    if isinstance(made, str):
        pattern = node.get("pattern", "")
        return _within(node, "Length", len(made)) and re.search(pattern, made) is not None
    if isinstance(made, dict):
        return _within(node, "Properties", len(made)) and set(node.get("required", ())) <= set(made)
    if isinstance(made, list):
        return _within(node, "Items", len(made))
    if isinstance(made, bool):
        return True
    low, high = node.get("minimum", made), node.get("maximum", made)
    above = made > low if node.get("exclusiveMinimum") else made >= low
    below = made < high if node.get("exclusiveMaximum") else made <= high
    return above and below and made % node.get("multipleOf", made or 1) == 0


def _within(node: Schema, what: str, size: int) -> bool:
    return int(node.get(f"min{what}", size)) <= size <= int(node.get(f"max{what}", size))


def _value(chance: random.Random, node: Schema, wrong: float) -> Any:
    if chance.random() < wrong:
        return copy.deepcopy(chance.choice(STRAYS))
    if node.get("nullable") and chance.random() < 0.2:
        return None
    if node.get("enum") and chance.random() < 0.95:
        return chance.choice(node["enum"])
    if node.get("x-kubernetes-int-or-string"):
        return chance.choice([1, "1", "10%", 0, "x"])
    kind = node.get("type")
    if kind == "object":
        return _object_value(chance, node, wrong)
    if kind == "array":
        return _array_value(chance, node, wrong)
    if kind == "string":
        return _string_value(chance, node)
    if kind == "integer":
        return chance.choice([0, 1, 2, 3, 4, 10, 1.0 if wrong else 1])
    if kind == "number":
        return chance.choice([0, 1, 1.5, 2.5, -1, 1.0, 0.1, 3e10])
    return chance.choice([True, False])


def _string_value(chance: random.Random, node: Schema) -> str:
    if node.get("pattern") in PATTERNS and chance.random() < 0.8:
        return chance.choice(PATTERNS[node["pattern"]])
    if node.get("format") in FORMATS and chance.random() < 0.97:
        return chance.choice(FORMATS[node["format"]])
    return chance.choice(WORDS)


def _object_value(chance: random.Random, node: Schema, wrong: float) -> Any:
    made: dict[str, Any] = {}
    if node.get("x-kubernetes-embedded-resource"):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": chance.choice(["x", "y", "z", "Bad_"])}}
        made = {key: item for key, item in made.items() if chance.random() < 0.95}
    for name, part in (node.get("properties") or {}).items():
        if chance.random() < 0.6 or name in node.get("required", ()):
            made[name] = value(chance, part, wrong)
    if isinstance(node.get("additionalProperties"), dict):
        for name in chance.sample(NAMES, chance.randint(0, 3)):
            made[name] = value(chance, node["additionalProperties"], wrong)
    if chance.random() < (0.5 if node.get("x-kubernetes-preserve-unknown-fields") else wrong):
        made[chance.choice(["u", "a", "b"])] = copy.deepcopy(chance.choice(STRAYS))
    return made


def _array_value(chance: random.Random, node: Schema, wrong: float) -> list[Any]:
    items = [value(chance, node["items"], wrong) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    if node.get("x-kubernetes-list-type") == "map" and chance.random() < 0.9:
        for item, key in zip(items, ("x", "y", "z"), strict=False):
            if isinstance(item, dict):
                item["k"] = key
    if node.get("x-kubernetes-list-type") == "set" and chance.random() < 0.9:
        items = [item for index, item in enumerate(items) if item not in items[:index]]
    if not wrong:
        items = items[: node.get("maxItems")]
    return items


def definition(chance: random.Random) -> dict[str, Any]:
    """The spec of a definition of a custom kind, without its group and names."""
    root: Schema = {"type": "object", "properties": {"spec": _object(chance, 3), "status": _object(chance, 2)}}
    for part in ("spec", "status"):
        root["properties"][part].pop("x-kubernetes-map-type", None)
    root["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
    root["properties"]["status"]["properties"]["replicas"] = {"type": "integer"}
    if chance.random() < 0.2:
        root["properties"]["more"] = schema(chance, 2)
    if chance.random() < 0.1:
        root["x-kubernetes-validations"] = [
            {"rule": "!has(self.spec) || self.metadata.name != 'w2'", "message": "w2 has no spec"}
        ]
    subresources: dict[str, Any] = {"status": {}} if chance.random() < 0.6 else {}
    if chance.random() < 0.6:
        subresources["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    versions = [_version("v1", root, subresources, True)]
    if chance.random() < 0.35:
        other = {**root, "properties": {**root["properties"], "spec": _object(chance, 2)}}
        versions.append(_version("v2", other if chance.random() < 0.7 else root, subresources, False))
    return {"scope": "Namespaced", "versions": versions}


def _version(name: str, root: Schema, subresources: dict[str, Any], storage: bool) -> dict[str, Any]:
    made = {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": root}}
    return {**made, **({"subresources": subresources} if subresources else {})}
