"""Random histories of requests, as scenarios for the recorder's runner: the seed says everything."""

import copy
import random
from collections.abc import Callable
from typing import Any

from . import schemas
from .kinds import KINDS, Custom, Kind

POOL = 48  # custom kinds for every EPOCH histories: a real server takes its time to serve a new one
EPOCH = 2000
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
Step = dict[str, Any]
Scenario = dict[str, Any]


def scenario(seed: int) -> Scenario:
    """The history of a seed: its `name`, its `family`, the `definition` of its custom kind if any, its `steps`."""
    chance = random.Random(seed)
    family = chance.choices(list(FAMILIES), [weight for _, weight in FAMILIES.values()])[0]
    made = FAMILIES[family][0](chance, seed)
    return {"name": f"{family}-{seed}", "family": family, **made}


def pooled(chance: random.Random, seed: int) -> dict[str, Any]:
    """A definition of the pool that this seed draws from."""
    return schemas.definition(random.Random(f"{seed // EPOCH}-{chance.randrange(POOL)}"))


def builtin(chance: random.Random, seed: int) -> Scenario:
    made, *facts = chance.choice(KINDS)
    return {"steps": written(made(chance, *facts))}


def custom(chance: random.Random, seed: int) -> Scenario:
    definition = pooled(chance, seed)
    kinds = [Custom(chance, definition, version) for version in definition["versions"]]
    return {"definition": definition, "steps": written(*kinds)}


def defined(chance: random.Random, seed: int) -> Scenario:
    """Definitions themselves, good and bad, as dry runs."""
    steps = []
    for _ in range(3):
        spec = schemas.definition(chance)
        for _ in range(chance.randint(0, 2)):
            _spoil(chance, spec)
        body = definition_of(spec, "dry{id}.example.com")
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        steps.append({"do": "POST", "path": path, "query": {"dryRun": "All"}, "body": body})
    return {"steps": steps}


def _spoil(chance: random.Random, spec: dict[str, Any]) -> None:
    """Change one place of a schema so that it may be refused."""
    nodes: list[Any] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            nodes.append(node)
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(chance.choice(spec["versions"])["schema"]["openAPIV3Schema"])
    node = chance.choice(nodes)
    key, item = chance.choice(SPOILS)
    if item is None:
        node.pop(key, None)
    else:
        node[key] = copy.deepcopy(item)  # the next change may be inside


SPOILS: tuple[tuple[str, Any], ...] = (
    ("type", None),
    ("type", "string"),
    ("type", "object"),
    ("default", "x"),
    ("default", 1.0),
    ("default", [None]),
    ("default", {}),
    ("nullable", True),
    ("x-kubernetes-list-type", "set"),
    ("x-kubernetes-list-type", "map"),
    ("x-kubernetes-list-map-keys", ["q"]),
    ("x-kubernetes-preserve-unknown-fields", True),
    ("x-kubernetes-embedded-resource", True),
    ("x-kubernetes-int-or-string", True),
    ("x-kubernetes-validations", [{"rule": "self.nothing"}]),
    ("x-kubernetes-validations", [{"rule": "true", "message": "a\nb"}]),
    ("additionalProperties", {"type": "string"}),
    ("properties", {"q": {"type": "string"}}),
    ("pattern", "(["),
    ("items", {"type": "string"}),
    ("required", ["q"]),
    ("uniqueItems", True),
    ("maxLength", -1),
    ("format", "nonsense"),
    ("not", {"type": "string"}),
    ("allOf", [{"properties": {"zz": {"minLength": 1}}}]),
    ("required", []),
    ("properties", {}),
    ("items", {}),
    ("enum", []),
    ("anyOf", []),
    ("x-kubernetes-list-map-keys", []),
    ("x-kubernetes-validations", []),
)


def listed(chance: random.Random, seed: int) -> Scenario:
    """Several objects, then lists with selectors, pages, representations, and watches."""
    if chance.random() < 0.5:
        made, *facts = chance.choice(KINDS)
        kind: Kind = made(chance, *facts)
        extra: dict[str, Any] = {}
    else:
        definition = pooled(chance, seed)
        kind = Custom(chance, definition, definition["versions"][0])
        kind.wrong = 0
        extra = {"definition": definition}
    steps: list[Step] = [{"do": "GET", "path": kind.path}]
    names = chance.sample(["a", "b", "c", "d"], chance.randint(1, 4))
    steps += [{"do": "POST", "path": kind.path, "body": kind.object(name)} for name in names]
    steps += [_write(kind, chance.choice("abcd"), None) for _ in range(chance.randint(1, 3))]
    steps += [_list(chance, kind) for _ in range(chance.randint(2, 5))]
    page: Step = {"do": "GET", "path": kind.path, "query": {"limit": "2"}}
    steps.append(page)
    token = f"${{{len(steps) - 1}.metadata.continue}}"
    steps.append({**page, "query": {"limit": "2", "continue": token}})
    if chance.random() < 0.3:
        version = "${0.metadata.resourceVersion}"
        steps.append({"do": "WATCH", "path": kind.path, "query": {"resourceVersion": version, **_selector(chance)}})
    if chance.random() < 0.3:
        steps.append({"do": "DELETE", "path": kind.path, "query": _selector(chance)})
        steps.append({"do": "GET", "path": kind.path})
    return {**extra, "steps": steps}


def _selector(chance: random.Random) -> dict[str, str]:
    return chance.choice(
        [
            {},
            {"labelSelector": "l1=x"},
            {"labelSelector": "l1 in (x,y),l2"},
            {"labelSelector": "!l1"},
            {"labelSelector": "l1!=x,l2 notin (z)"},
            {"labelSelector": "l1==="},
            {"labelSelector": "l1>1"},
            {"fieldSelector": "metadata.name=a"},
            {"fieldSelector": "metadata.name!=a,metadata.namespace={ns}"},
            {"fieldSelector": "spec.nothing=a"},
            {"fieldSelector": "status.phase=Running"},
        ]
    )


def _list(chance: random.Random, kind: Kind) -> Step:
    query = _selector(chance)
    query |= chance.choice([{}, {}, {"resourceVersion": "0"}, {"resourceVersion": "x"}, {"limit": "0"}, {"limit": "a"}])
    query |= chance.choice([{}, {}, {}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"}])
    step: Step = {"do": "GET", "path": kind.path, "query": query}
    return step | chance.choice([{}, {}, {"accept": TABLE}, {"accept": PARTIALS}, {"accept": "text/plain"}])


def written(*kinds: Kind) -> list[Step]:
    """Several managers write one object in every way there is; each write is read back."""
    chance = kinds[0].chance
    path = f"{kinds[0].path}/w"
    steps: list[Step] = []
    reads: list[int] = []
    for _ in range(chance.randint(3, 9)):
        steps.append(_write(chance.choice(kinds), "w", chance.choice(reads[-2:]) if reads else None))
        reads.append(len(steps))
        steps.append({"do": "GET", "path": chance.choice(kinds).path + "/w" if chance.random() < 0.2 else path})
    freed = {"metadata": {"finalizers": None}}
    steps.append({"do": "PATCH", "path": path, "type": MERGE, "body": freed})
    return steps


def _write(kind: Kind, name: str, last: int | None) -> Step:
    """A random write; `last` is a step that read the object, None where none has."""
    chance = kind.chance
    kinds: list[tuple[Callable[..., Step], int]] = [(_apply, 30), (_create, 10 if last is not None else 60)]
    if last is not None:
        kinds += [(_put, 20), (_merge, 14), (_strategic, 8), (_json, 14), (_delete, 5)]
        kinds += [(_status, 12)] if kind.status else []
        kinds += [(_scale, 14)] if kind.scaled else []
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


def _delete(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if chance.random() < 0.3:
        uid = chance.choice([f"${{{last}.metadata.uid}}", "0b0e9b1c-0d0f-4c52-9c53-9a2b5d1c0f02"])
        options["preconditions"] = chance.choice(
            [{"uid": uid}, {"resourceVersion": f"${{{last}.metadata.resourceVersion}}"}]
        )
    if chance.random() < 0.3:
        options["propagationPolicy"] = chance.choice(["Orphan", "Foreground", "Background", "Sideways"])
    if chance.random() < 0.15:
        options["gracePeriodSeconds"] = chance.choice([0, 5])
    return {"do": "DELETE", "body": options} if len(options) > 2 else {"do": "DELETE"}


def _status(kind: Kind, name: str, last: int) -> Step:
    chance = kind.chance
    below = {"path": f"{kind.path}/{name}/status"}
    status = chance.choice(kind.status)
    draw = chance.random()
    if draw < 0.3:
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


def versioned(chance: random.Random, seed: int) -> Scenario:
    """A definition of its own whose versions, storage and schema change under its objects."""
    spec = pooled(chance, seed)
    group = "v{id}.example.com"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    steps: list[Step] = []
    made = [_shape(chance, spec, index) for index in range(3)]
    for index, shape in enumerate(made):
        changed = len(steps)
        if index == 0:
            steps.append({"do": "POST", "path": definitions, "body": definition_of(shape, group)})
        else:
            path = f"{definitions}/widgets.{group}"
            steps.append(
                {"do": "PATCH", "path": path, "type": MERGE, "body": {"spec": {"versions": shape["versions"]}}}
            )
        served = [version for version in shape["versions"] if version["served"]]
        for version in served:
            kind = Custom(chance, shape, version)
            kind.path = kind.path.replace("{group}", group)
            kind.api_version = kind.api_version.replace("{group}", group)
            until = {"columnDefinitions.1.name": f"g{index}"}
            steps.append({"do": "SETTLE", "path": kind.path, "accept": TABLE, "until": until, "after": changed})
            for _ in range(chance.randint(1, 2)):
                steps.append(_write(kind, "w", len(steps) - 1 if steps[-1]["do"] == "GET" else None))
                steps.append({"do": "GET", "path": f"{kind.path}/w"})
            steps.append({"do": "GET", "path": kind.path})
    return {"steps": steps, "cleanup": [f"{definitions}/widgets.{group}"]}


def _shape(chance: random.Random, spec: dict[str, Any], index: int) -> dict[str, Any]:
    """The definition with its versions served and stored differently, marked so that one sees it is served."""
    first = spec["versions"][0]
    other = schemas.definition(chance)["versions"][0]
    versions = [first, {**(other if index == 2 else first), "name": "v2", "storage": False}]
    stored = chance.randrange(2)
    column = {"name": f"g{index}", "type": "string", "jsonPath": ".metadata.name"}
    return {
        **spec,
        "versions": [
            {
                **v,
                "storage": i == stored,
                "served": i == stored or chance.random() < 0.8,
                "additionalPrinterColumns": [column],
            }
            for i, v in enumerate(versions)
        ],
    }


def definition_of(spec: dict[str, Any], group: str) -> dict[str, Any]:
    """The whole definition of Widgets in a group."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "names": names, **spec},
    }


FAMILIES: dict[str, tuple[Callable[[random.Random, int], Scenario], int]] = {
    "builtin": (builtin, 36),
    "custom": (custom, 40),
    "lists": (listed, 12),
    "definitions": (defined, 8),
    "versions": (versioned, 4),
}
