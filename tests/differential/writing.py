"""Random writes of an object, by every verb and type of patch, its subresources among them."""

import random
from collections.abc import Callable
from typing import Any

from .kinds import Kind

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
Step = dict[str, Any]


def written(*kinds: Kind) -> list[Step]:
    """Several managers write one object in every way there is; each write is read back."""
    chance = kinds[0].chance
    name = kinds[0].name
    path = f"{kinds[0].path}/{name}"
    steps: list[Step] = []
    reads: list[int] = []
    for _ in range(chance.randint(3, 9)):
        steps.append(write(chance.choice(kinds), name, chance.choice(reads[-2:]) if reads else None))
        reads.append(len(steps))
        read = f"{chance.choice(kinds).path}/{name}" if chance.random() < 0.2 else path
        steps.append({"do": "GET", "path": read})
    freed = {"metadata": {"finalizers": None}}
    steps.append({"do": "PATCH", "path": path, "type": MERGE, "body": freed})
    return steps


def write(kind: Kind, name: str, last: int | None) -> Step:
    """A random write; `last` is a step that read the object, None where none has."""
    chance = kind.chance
    kinds: list[tuple[Callable[..., Step], int]] = [(_apply, 30), (_create, 10 if last is not None else 60)]
    if last is not None:
        kinds += [(_put, 20), (_merge, 14), (_strategic, 8), (_json, 14), (delete, 5)]
        kinds += [(_status, 12)] if kind.status else []
        kinds += [(_scale, 14)] if kind.scaled else []
        kinds += [(below, 12) for below in BELOW.get(kind.kind, ())]
    made = chance.choices([draw for draw, _ in kinds], [weight for _, weight in kinds])[0]
    step = made(kind, name, last)
    query = dict(step.pop("query", {}))
    if step["do"] != "DELETE":
        query.setdefault("fieldManager", chance.choice(["ma", "mb", "mc"]))
        if chance.random() < 0.25:
            query["fieldValidation"] = chance.choice(["Strict", "Warn", "Ignore"])
    if chance.random() < 0.06:
        query["dryRun"] = "All"
    return {"path": f"{kind.path}/{name}", "query": query, **step}


def _apply(kind: Kind, name: str, last: int | None) -> Step:
    body = kind.object(name)
    if last is not None and kind.chance.random() < 0.08:
        body["metadata"]["resourceVersion"] = f"${{{last}.metadata.resourceVersion}}"
    force = {"force": "true"} if kind.chance.random() < 0.5 else {}
    return {"do": "PATCH", "type": APPLY, "query": force, "body": body}


def _create(kind: Kind, name: str, last: int | None) -> Step:
    body = kind.object(name)
    if kind.chance.random() < 0.05:
        kind.generated += 1  # a prefix each, or lists would have them in any order
        body = {**body, "metadata": {"generateName": f"g{kind.generated}-"}} if kind.valid else body
    return {"do": "POST", "path": kind.path, "body": body}


def _put(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    if chance.random() < 0.25:
        return {"do": "PUT", "body": kind.object(name)}
    changes: dict[str, Any] = {"from": str(last), f"metadata.labels.{chance.choice('pq')}": chance.choice("xyz")}
    if chance.random() < 0.6:
        changes |= kind.body()
    if chance.random() < 0.3:
        changes["drop"] = ["metadata.resourceVersion"]
    return {"do": "PUT", "body": {"$set": changes}}


def _part(kind: Kind) -> dict[str, Any]:
    part = {name: value for name, value in kind.object().items() if name not in ("apiVersion", "kind")}
    part["metadata"].pop("name")
    if kind.chance.random() < 0.3:
        _holed(kind.chance, part)
    return part


def _holed(chance: random.Random, part: Any) -> None:
    """A null somewhere, which deletes."""
    while isinstance(part, dict) and part:
        key = chance.choice(list(part))
        if chance.random() < 0.4 or not isinstance(part[key], dict):
            part[key] = None
            return
        part = part[key]


def _merge(kind: Kind, name: str, last: int) -> Step:
    return {"do": "PATCH", "type": MERGE, "body": _part(kind)}


def _strategic(kind: Kind, name: str, last: int) -> Step:
    return {"do": "PATCH", "type": STRATEGIC, "body": _part(kind)}


def _json(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    draws = [kind.object(name), kind.object(name)]
    places = [place for draw in draws for place in _places(draw, "")]
    operations = []
    for _ in range(chance.randint(1, 3)):
        path, value = chance.choice(places)
        operation = {"op": chance.choice(["add", "replace", "remove", "test", "add", "copy", "move"]), "path": path}
        if operation["op"] in ("copy", "move"):
            operation["from"] = chance.choice(places)[0]
        elif operation["op"] != "remove":
            operation["value"] = value
        operations.append(operation)
        if operation["op"] == "add" and chance.random() < 0.2:
            operations.append({"op": "test", "path": path, "value": value})
    return {"do": "PATCH", "type": JSON_PATCH, "body": operations}


def _places(value: Any, path: str) -> list[tuple[str, Any]]:
    found = [(path, value)] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += _places(item, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def delete(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if chance.random() < 0.3:
        uid = chance.choice([f"${{{last}.metadata.uid}}", "0b0e9b1c-0d0f-4c52-9c53-9a2b5d1c0f02"])
        options["preconditions"] = chance.choice(
            [{"uid": uid}, {"resourceVersion": f"${{{last}.metadata.resourceVersion}}"}]
        )
    if chance.random() < 0.3:
        options["propagationPolicy"] = chance.choice(["Orphan", "Foreground", "Background", "Sideways"])
    if chance.random() < 0.1:
        options["orphanDependents"] = chance.choice([True, False])
    if chance.random() < 0.15:
        options["gracePeriodSeconds"] = chance.choice([0, 5])
    return {"do": "DELETE", "body": options} if len(options) > 2 else {"do": "DELETE"}


def _status(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    below = {"path": f"{kind.path}/{name}/status"}
    status = chance.choice(kind.status)
    draw = chance.random()
    if draw < 0.1:
        return {"do": "GET", **below}
    if draw < 0.2:
        operations = [{"op": chance.choice(["add", "replace", "test", "remove"]), "path": "/status", "value": status}]
        return {"do": "PATCH", **below, "type": JSON_PATCH, "body": operations}
    if draw < 0.4:
        return {"do": "PUT", **below, "body": {"$set": {"from": str(last), "status": status}}}
    if draw < 0.6:
        kind_of_patch = chance.choice([MERGE, STRATEGIC])
        return {"do": "PATCH", **below, "type": kind_of_patch, "body": {**_part(kind), "status": status}}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "status": status}
    return {"do": "PATCH", **below, "type": APPLY, "body": body, "query": {"force": chance.choice(["true", "false"])}}


def _scale(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    below = {"path": f"{kind.path}/{name}/scale"}
    spec = {"spec": {"replicas": chance.choice([0, 1, 3, -1])}}
    draw = chance.random()
    if draw < 0.2:
        return {"do": "GET", **below}
    if draw < 0.4:
        return {"do": "PATCH", **below, "type": chance.choice([MERGE, MERGE, STRATEGIC]), "body": spec}
    if draw < 0.55:
        operations = [{"op": chance.choice(["replace", "add", "test"]), "path": "/spec/replicas", "value": 1}]
        return {"do": "PATCH", **below, "type": JSON_PATCH, "body": operations}
    metadata: dict[str, Any] = {"name": name, "namespace": "{ns}"}
    if chance.random() < 0.2:
        metadata["resourceVersion"] = f"${{{last}.metadata.resourceVersion}}"
    whole = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, **spec}
    if draw < 0.8:
        return {"do": "PUT", **below, "body": whole}
    return {"do": "PATCH", **below, "type": APPLY, "query": {"force": "true"}, "body": whole}


def _evict(kind: Kind, name: str, last: int) -> Step:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    options = {"preconditions": {"uid": f"${{{last}.metadata.uid}}"}, "gracePeriodSeconds": 0}
    return {"do": "POST", "path": f"{kind.path}/{name}/eviction", "body": body | kind.some(deleteOptions=options)}


def _bind(kind: Kind, name: str, last: int) -> Step:
    target = {"apiVersion": "v1", "kind": "Node", "name": kind.chance.choice(["n1", "n2"])}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    return {"do": "POST", "path": f"{kind.path}/{name}/binding", "body": body}


def _token(kind: Kind, name: str, last: int) -> Step:
    spec = {"audiences": ["a"], **kind.some(expirationSeconds=kind.chance.choice([600, 3600, 1]))}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return {"do": "POST", "path": f"{kind.path}/{name}/token", "body": body}


def _finalize(kind: Kind, name: str, last: int) -> Step:
    spec = {"finalizers": kind.chance.choice([["kubernetes"], ["kubernetes", "example.com/f"], []])}
    return {"do": "PUT", "path": f"{kind.path}/{name}/finalize", "body": {"$set": {"from": str(last), "spec": spec}}}


BELOW: dict[str, tuple[Callable[..., Step], ...]] = {
    "Pod": (_evict, _bind),
    "ServiceAccount": (_token,),
    "Namespace": (_finalize,),
}
