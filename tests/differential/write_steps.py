"""Random write steps: all verbs and patch types, also on subresources."""

import random
from collections.abc import Callable
from typing import Any

from .object_generators import ObjectGenerator

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
Step = dict[str, Any]


def generate_write_steps(*kinds: ObjectGenerator) -> list[Step]:
    """Return writes of several managers to one object. A read follows each write."""
    rng = kinds[0].rng
    name = kinds[0].name
    path = f"{kinds[0].path}/{name}"
    steps: list[Step] = []
    reads: list[int] = []
    for _ in range(rng.randint(3, 9)):
        steps.append(generate_write(rng.choice(kinds), name, rng.choice(reads[-2:]) if reads else None))
        reads.append(len(steps))
        read = f"{rng.choice(kinds).path}/{name}" if rng.random() < 0.2 else path
        steps.append({"do": "GET", "path": read})
    steps.append({"do": "PATCH", "path": path, "type": MERGE, "body": {"metadata": {"finalizers": None}}})
    return steps


def generate_write(kind: ObjectGenerator, name: str, last: int | None) -> Step:
    """Return a random write. `last` is a step that read the object, or None."""
    rng = kind.rng
    weighted: list[tuple[Callable[..., Step], int]] = [(_apply, 30), (_create, 10 if last is not None else 60)]
    if last is not None:
        weighted += [(_put, 20), (_merge, 14), (_strategic, 8), (_json, 14), (generate_delete, 5)]
        weighted += [(_status, 12)] if kind.status else []
        weighted += [(_scale, 14)] if kind.scaled else []
        weighted += [(generate, 12) for generate in SUBRESOURCE_WRITES.get(kind.kind, ())]
    generate = rng.choices([item for item, _ in weighted], [weight for _, weight in weighted])[0]
    step = generate(kind, name, last)
    query = dict(step.pop("query", {}))
    if step["do"] != "DELETE":
        query.setdefault("fieldManager", rng.choice(["ma", "mb", "mc"]))
        if rng.random() < 0.25:
            query["fieldValidation"] = rng.choice(["Strict", "Warn", "Ignore"])
    if rng.random() < 0.06:
        query["dryRun"] = "All"
    return {"path": f"{kind.path}/{name}", "query": query, **step}


def _apply(kind: ObjectGenerator, name: str, last: int | None) -> Step:
    body = kind.object(name)
    if last is not None and kind.rng.random() < 0.08:
        body["metadata"]["resourceVersion"] = f"${{{last}.metadata.resourceVersion}}"
    force = {"force": "true"} if kind.rng.random() < 0.5 else {}
    return {"do": "PATCH", "type": APPLY, "query": force, "body": body}


def _create(kind: ObjectGenerator, name: str, last: int | None) -> Step:
    body = kind.object(name)
    if kind.rng.random() < 0.05:
        kind.generated += 1  # Each prefix is used once, so that the order of lists is known.
        body = {**body, "metadata": {"generateName": f"g{kind.generated}-"}} if kind.valid else body
    return {"do": "POST", "path": kind.path, "body": body}


def _put(kind: ObjectGenerator, name: str, last: int) -> Step:
    rng = kind.rng
    if rng.random() < 0.25:
        return {"do": "PUT", "body": kind.object(name)}
    changes: dict[str, Any] = {"from": str(last), f"metadata.labels.{rng.choice('pq')}": rng.choice("xyz")}
    if rng.random() < 0.6:
        changes |= kind.body()
    if rng.random() < 0.3:
        changes["drop"] = ["metadata.resourceVersion"]
    return {"do": "PUT", "body": {"$set": changes}}


def _partial_object(kind: ObjectGenerator) -> dict[str, Any]:
    partial_object = {name: value for name, value in kind.object().items() if name not in ("apiVersion", "kind")}
    partial_object["metadata"].pop("name")
    if kind.rng.random() < 0.3:
        _set_random_null(kind.rng, partial_object)
    return partial_object


def _set_random_null(rng: random.Random, target: Any) -> None:
    """Set a random field to null, which deletes it."""
    while isinstance(target, dict) and target:
        key = rng.choice(list(target))
        if rng.random() < 0.4 or not isinstance(target[key], dict):
            target[key] = None
            return
        target = target[key]


def _merge(kind: ObjectGenerator, name: str, last: int) -> Step:
    return {"do": "PATCH", "type": MERGE, "body": _partial_object(kind)}


def _strategic(kind: ObjectGenerator, name: str, last: int) -> Step:
    return {"do": "PATCH", "type": STRATEGIC, "body": _partial_object(kind)}


def _json(kind: ObjectGenerator, name: str, last: int) -> Step:
    rng = kind.rng
    objects = [kind.object(name), kind.object(name)]
    paths = [item for obj in objects for item in _list_paths(obj, "")]
    operations = []
    for _ in range(rng.randint(1, 3)):
        path, value = rng.choice(paths)
        operation = {"op": rng.choice(["add", "replace", "remove", "test", "add", "copy", "move"]), "path": path}
        if operation["op"] in ("copy", "move"):
            operation["from"] = rng.choice(paths)[0]
        elif operation["op"] != "remove":
            operation["value"] = value
        operations.append(operation)
        if operation["op"] == "add" and rng.random() < 0.2:
            operations.append({"op": "test", "path": path, "value": value})
    return {"do": "PATCH", "type": JSON_PATCH, "body": operations}


def _list_paths(value: Any, path: str) -> list[tuple[str, Any]]:
    paths = [(path, value)] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        paths += _list_paths(item, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return paths


def generate_delete(kind: ObjectGenerator, name: str, last: int) -> Step:
    rng = kind.rng
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if rng.random() < 0.3:
        uid = rng.choice([f"${{{last}.metadata.uid}}", "0b0e9b1c-0d0f-4c52-9c53-9a2b5d1c0f02"])
        options["preconditions"] = rng.choice(
            [{"uid": uid}, {"resourceVersion": f"${{{last}.metadata.resourceVersion}}"}]
        )
    if rng.random() < 0.3:
        options["propagationPolicy"] = rng.choice(["Orphan", "Foreground", "Background", "Sideways"])
    if rng.random() < 0.1:
        options["orphanDependents"] = rng.choice([True, False])
    if rng.random() < 0.15:
        options["gracePeriodSeconds"] = rng.choice([0, 5])
    return {"do": "DELETE", "body": options} if len(options) > 2 else {"do": "DELETE"}


def _status(kind: ObjectGenerator, name: str, last: int) -> Step:
    rng = kind.rng
    target = {"path": f"{kind.path}/{name}/status"}
    status = rng.choice(kind.status)
    random_number = rng.random()
    if random_number < 0.1:
        return {"do": "GET", **target}
    if random_number < 0.2:
        operations = [{"op": rng.choice(["add", "replace", "test", "remove"]), "path": "/status", "value": status}]
        return {"do": "PATCH", **target, "type": JSON_PATCH, "body": operations}
    if random_number < 0.4:
        return {"do": "PUT", **target, "body": {"$set": {"from": str(last), "status": status}}}
    if random_number < 0.6:
        patch_type = rng.choice([MERGE, STRATEGIC])
        return {"do": "PATCH", **target, "type": patch_type, "body": {**_partial_object(kind), "status": status}}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "status": status}
    return {"do": "PATCH", **target, "type": APPLY, "body": body, "query": {"force": rng.choice(["true", "false"])}}


def _scale(kind: ObjectGenerator, name: str, last: int) -> Step:
    rng = kind.rng
    target = {"path": f"{kind.path}/{name}/scale"}
    spec = {"spec": {"replicas": rng.choice([0, 1, 3, -1])}}
    random_number = rng.random()
    if random_number < 0.2:
        return {"do": "GET", **target}
    if random_number < 0.4:
        return {"do": "PATCH", **target, "type": rng.choice([MERGE, MERGE, STRATEGIC]), "body": spec}
    if random_number < 0.55:
        operations = [{"op": rng.choice(["replace", "add", "test"]), "path": "/spec/replicas", "value": 1}]
        return {"do": "PATCH", **target, "type": JSON_PATCH, "body": operations}
    metadata: dict[str, Any] = {"name": name, "namespace": "{ns}"}
    if rng.random() < 0.2:
        metadata["resourceVersion"] = f"${{{last}.metadata.resourceVersion}}"
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, **spec}
    if random_number < 0.8:
        return {"do": "PUT", **target, "body": scale}
    return {"do": "PATCH", **target, "type": APPLY, "query": {"force": "true"}, "body": scale}


def _evict(kind: ObjectGenerator, name: str, last: int) -> Step:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    options = {"preconditions": {"uid": f"${{{last}.metadata.uid}}"}, "gracePeriodSeconds": 0}
    return {
        "do": "POST",
        "path": f"{kind.path}/{name}/eviction",
        "body": body | kind.choose_parts(deleteOptions=options),
    }


def _bind(kind: ObjectGenerator, name: str, last: int) -> Step:
    target = {"apiVersion": "v1", "kind": "Node", "name": kind.rng.choice(["n1", "n2"])}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    return {"do": "POST", "path": f"{kind.path}/{name}/binding", "body": body}


def _token(kind: ObjectGenerator, name: str, last: int) -> Step:
    spec = {"audiences": ["a"], **kind.choose_parts(expirationSeconds=kind.rng.choice([600, 3600, 1]))}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return {"do": "POST", "path": f"{kind.path}/{name}/token", "body": body}


def _finalize(kind: ObjectGenerator, name: str, last: int) -> Step:
    spec = {"finalizers": kind.rng.choice([["kubernetes"], ["kubernetes", "example.com/f"], []])}
    return {"do": "PUT", "path": f"{kind.path}/{name}/finalize", "body": {"$set": {"from": str(last), "spec": spec}}}


SUBRESOURCE_WRITES: dict[str, tuple[Callable[..., Step], ...]] = {
    "Pod": (_evict, _bind),
    "ServiceAccount": (_token,),
    "Namespace": (_finalize,),
}
