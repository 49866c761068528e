"""Random histories of requests, as scenarios for the recorder's runner: the seed says everything."""

import copy
import random
from collections.abc import Callable
from typing import Any

from . import schemas
from .kinds import CLUSTER, KINDS, Custom, Kind
from .lives import TABLE, deleted, watched
from .writing import MERGE, Step, write, written

POOL = 48  # custom kinds for every EPOCH histories: a real server takes its time to serve a new one
EPOCH = 2000
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
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


def cluster(chance: random.Random, seed: int) -> Scenario:
    """What is in no namespace; it is taken away at the end."""
    if chance.random() < 0.3:
        definition = {**pooled(chance, seed), "scope": "Cluster"}
        kinds: list[Kind] = [Custom(chance, definition, version) for version in definition["versions"]]
        extra: dict[str, Any] = {"definition": definition}
    else:
        made, *facts = chance.choice(CLUSTER)
        kinds, extra = [made(chance, *facts)], {}
    steps = written(*kinds) if chance.random() < 0.8 else deleted(kinds[0])
    gone = f"{kinds[0].path}/{kinds[0].name}"
    return {**extra, "steps": [*steps, {"do": "DELETE", "path": gone}]}


def watches(chance: random.Random, seed: int) -> Scenario:
    kind, extra = _some_kind(chance, seed)
    return {**extra, "steps": watched(kind)}


def deletions(chance: random.Random, seed: int) -> Scenario:
    kind, extra = _some_kind(chance, seed)
    return {**extra, "steps": deleted(kind)}


def _some_kind(chance: random.Random, seed: int) -> tuple[Kind, dict[str, Any]]:
    """A kind of those in namespaces, its objects mostly good ones; and its definition if it is a custom one."""
    if chance.random() < 0.5:
        made, *facts = chance.choice(KINDS)
        return made(chance, *facts), {}
    definition = pooled(chance, seed)
    kind = Custom(chance, definition, definition["versions"][0])
    kind.wrong = 0
    return kind, {"definition": definition}


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
    if key == "x-kubernetes-validations" and node.get("x-kubernetes-int-or-string"):
        return  # which has() may look into, on a real server
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
    ("x-kubernetes-validations", [{"rule": "self.a == 'x'"}]),
    ("x-kubernetes-validations", [{"rule": "!has(self.b) || self.b > 1"}, {"rule": "self == oldSelf"}]),
    ("x-kubernetes-validations", [{"rule": "self.all(x, x.c.size() > 1)"}]),
    ("x-kubernetes-validations", [{"rule": "self.exists(x, self[x] == 1)"}, {"rule": "self[0] == 'x'"}]),
    ("x-kubernetes-validations", [{"rule": "self in ['x', 1]"}, {"rule": "'%d'.format([self]) == ''"}]),
    ("x-kubernetes-validations", [{"rule": "true", "messageExpression": "self.d"}]),
    ("x-kubernetes-validations", [{"rule": "size(self) > int('x')"}]),
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
    kind, extra = _some_kind(chance, seed)
    steps: list[Step] = [{"do": "GET", "path": kind.path}]
    names = chance.sample(["a", "b", "c", "d"], chance.randint(1, 4))
    steps += [{"do": "POST", "path": kind.path, "body": kind.object(name)} for name in names]
    steps += [write(kind, chance.choice("abcd"), None) for _ in range(chance.randint(1, 3))]
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
                steps.append(write(kind, "w", len(steps) - 1 if steps[-1]["do"] == "GET" else None))
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
    "watches": (watches, 8),
    "deletions": (deletions, 10),
    "cluster": (cluster, 10),
}
