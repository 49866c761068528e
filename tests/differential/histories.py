"""Random histories of requests, as scenarios. A history depends only on its seed."""

import copy
import random
from collections.abc import Callable
from typing import Any

from recordings import Scenario

from . import schema_generators
from .lifecycle_steps import TABLE, generate_delete_steps, generate_watch_steps
from .object_generators import CLUSTER_GENERATORS, NAMESPACED_GENERATORS, CustomResource, ObjectGenerator
from .write_steps import MERGE, Step, generate_write, generate_write_steps

POOL_SIZE = 48  # CRDs that POOL_PERIOD histories share, because a real server serves a new CRD only after a while
POOL_PERIOD = 2000
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def generate_scenario(seed: int) -> Scenario:
    """Return the history of a seed: `name`, `family`, `steps` and, for custom resources, the `definition`."""
    rng = random.Random(seed)
    family = rng.choices(list(FAMILIES), [weight for _, weight in FAMILIES.values()])[0]
    return {"name": f"{family}-{seed}", "family": family, **FAMILIES[family][0](rng, seed)}


def choose_definition(rng: random.Random, seed: int) -> dict[str, Any]:
    """Return a CRD of the pool of this seed."""
    return schema_generators.generate_definition(random.Random(f"{seed // POOL_PERIOD}-{rng.randrange(POOL_SIZE)}"))


def builtin(rng: random.Random, seed: int) -> Scenario:
    generator, *facts = rng.choice(NAMESPACED_GENERATORS)
    return {"steps": generate_write_steps(generator(rng, *facts))}


def custom(rng: random.Random, seed: int) -> Scenario:
    definition = choose_definition(rng, seed)
    kinds = [CustomResource(rng, definition, version) for version in definition["versions"]]
    return {"definition": definition, "steps": generate_write_steps(*kinds)}


def cluster(rng: random.Random, seed: int) -> Scenario:
    """Writes of a cluster-scoped object, which is deleted at the end."""
    if rng.random() < 0.3:
        definition = {**choose_definition(rng, seed), "scope": "Cluster"}
        kinds: list[ObjectGenerator] = [CustomResource(rng, definition, version) for version in definition["versions"]]
        extra: dict[str, Any] = {"definition": definition}
    else:
        generator, *facts = rng.choice(CLUSTER_GENERATORS)
        kinds, extra = [generator(rng, *facts)], {}
    steps = generate_write_steps(*kinds) if rng.random() < 0.8 else generate_delete_steps(kinds[0])
    path = f"{kinds[0].path}/{kinds[0].name}"
    return {**extra, "steps": [*steps, {"do": "DELETE", "path": path}]}


def watches(rng: random.Random, seed: int) -> Scenario:
    kind, extra = _choose_kind(rng, seed)
    return {**extra, "steps": generate_watch_steps(kind)}


def deletions(rng: random.Random, seed: int) -> Scenario:
    kind, extra = _choose_kind(rng, seed)
    return {**extra, "steps": generate_delete_steps(kind)}


def _choose_kind(rng: random.Random, seed: int) -> tuple[ObjectGenerator, dict[str, Any]]:
    """Return a generator of a namespaced kind, and for a custom resource also its definition."""
    if rng.random() < 0.5:
        generator, *facts = rng.choice(NAMESPACED_GENERATORS)
        return generator(rng, *facts), {}
    definition = choose_definition(rng, seed)
    kind = CustomResource(rng, definition, definition["versions"][0])
    kind.invalid = 0
    return kind, {"definition": definition}


def definitions(rng: random.Random, seed: int) -> Scenario:
    """Creates of valid and invalid CRDs as dry runs."""
    steps = []
    for _ in range(3):
        spec = schema_generators.generate_definition(rng)
        for _ in range(rng.randint(0, 2)):
            _make_invalid(rng, spec)
        body = build_definition(spec, "dry{id}.example.com")
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        steps.append({"do": "POST", "path": path, "query": {"dryRun": "All"}, "body": body})
    return {"steps": steps}


def _make_invalid(rng: random.Random, spec: dict[str, Any]) -> None:
    """Change one field of a schema, so that the server may reject it."""
    nodes: list[Any] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            nodes.append(node)
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(rng.choice(spec["versions"])["schema"]["openAPIV3Schema"])
    node = rng.choice(nodes)
    key, item = rng.choice(SCHEMA_CHANGES)
    if key == "x-kubernetes-validations" and node.get("x-kubernetes-int-or-string"):
        return  # A real server permits has() in such rules.
    if item is None:
        node.pop(key, None)
    else:
        node[key] = copy.deepcopy(item)  # Copied, because the next change may be inside it.


SCHEMA_CHANGES: tuple[tuple[str, Any], ...] = (
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


def lists(rng: random.Random, seed: int) -> Scenario:
    """Lists of several objects with selectors, pages and representations, and watches."""
    kind, extra = _choose_kind(rng, seed)
    steps: list[Step] = [{"do": "GET", "path": kind.path}]
    names = rng.sample(["a", "b", "c", "d"], rng.randint(1, 4))
    steps += [{"do": "POST", "path": kind.path, "body": kind.object(name)} for name in names]
    steps += [generate_write(kind, rng.choice("abcd"), None) for _ in range(rng.randint(1, 3))]
    steps += [_list(rng, kind) for _ in range(rng.randint(2, 5))]
    page: Step = {"do": "GET", "path": kind.path, "query": {"limit": "2"}}
    steps.append(page)
    token = f"${{{len(steps) - 1}.metadata.continue}}"
    steps.append({**page, "query": {"limit": "2", "continue": token}})
    if rng.random() < 0.3:
        version = "${0.metadata.resourceVersion}"
        steps.append({"do": "WATCH", "path": kind.path, "query": {"resourceVersion": version, **_selector(rng)}})
    if rng.random() < 0.3:
        steps.append({"do": "DELETE", "path": kind.path, "query": _selector(rng)})
        steps.append({"do": "GET", "path": kind.path})
    return {**extra, "steps": steps}


def _selector(rng: random.Random) -> dict[str, str]:
    return rng.choice(
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


def _list(rng: random.Random, kind: ObjectGenerator) -> Step:
    query = _selector(rng)
    query |= rng.choice([{}, {}, {"resourceVersion": "0"}, {"resourceVersion": "x"}, {"limit": "0"}, {"limit": "a"}])
    query |= rng.choice([{}, {}, {}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"}])
    step: Step = {"do": "GET", "path": kind.path, "query": query}
    return step | rng.choice([{}, {}, {"accept": TABLE}, {"accept": PARTIALS}, {"accept": "text/plain"}])


def versions(rng: random.Random, seed: int) -> Scenario:
    """Writes of objects while the versions, the storage version and the schema of their CRD change."""
    spec = choose_definition(rng, seed)
    group = "v{id}.example.com"
    collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    steps: list[Step] = []
    for index, definition in enumerate([_change_versions(rng, spec, index) for index in range(3)]):
        changed_at = len(steps)
        if index == 0:
            steps.append({"do": "POST", "path": collection, "body": build_definition(definition, group)})
        else:
            path = f"{collection}/widgets.{group}"
            steps.append(
                {"do": "PATCH", "path": path, "type": MERGE, "body": {"spec": {"versions": definition["versions"]}}}
            )
        served_versions = [version for version in definition["versions"] if version["served"]]
        for version in served_versions:
            kind = CustomResource(rng, definition, version)
            kind.path = kind.path.replace("{group}", group)
            kind.api_version = kind.api_version.replace("{group}", group)
            until = {"columnDefinitions.1.name": f"g{index}"}
            steps.append({"do": "SETTLE", "path": kind.path, "accept": TABLE, "until": until, "after": changed_at})
            for _ in range(rng.randint(1, 2)):
                steps.append(generate_write(kind, "w", len(steps) - 1 if steps[-1]["do"] == "GET" else None))
                steps.append({"do": "GET", "path": f"{kind.path}/w"})
            steps.append({"do": "GET", "path": kind.path})
    return {"steps": steps, "cleanup": [f"{collection}/widgets.{group}"]}


def _change_versions(rng: random.Random, spec: dict[str, Any], index: int) -> dict[str, Any]:
    """Return the CRD with other served and stored versions. A printer column shows when the server serves it."""
    first = spec["versions"][0]
    other = schema_generators.generate_definition(rng)["versions"][0]
    versions = [first, {**(other if index == 2 else first), "name": "v2", "storage": False}]
    stored = rng.randrange(2)
    column = {"name": f"g{index}", "type": "string", "jsonPath": ".metadata.name"}
    return {
        **spec,
        "versions": [
            {
                **v,
                "storage": i == stored,
                "served": i == stored or rng.random() < 0.8,
                "additionalPrinterColumns": [column],
            }
            for i, v in enumerate(versions)
        ],
    }


def build_definition(spec: dict[str, Any], group: str) -> dict[str, Any]:
    """Return the CRD of Widgets in a group."""
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
    "lists": (lists, 12),
    "definitions": (definitions, 8),
    "versions": (versions, 4),
    "watches": (watches, 8),
    "deletions": (deletions, 10),
    "cluster": (cluster, 10),
}
