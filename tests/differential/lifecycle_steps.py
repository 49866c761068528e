"""Random steps with watches of changing objects, and with deletions."""

from typing import Any

from .object_generators import OWNER, ObjectGenerator
from .write_steps import MERGE, Step, generate_delete, generate_write

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def generate_watch_steps(kind: ObjectGenerator) -> list[Step]:
    """Return changes of several objects, and watches from versions before, between and after the changes."""
    rng = kind.rng
    steps: list[Step] = [{"do": "GET", "path": kind.path}]
    versions = ["${0.metadata.resourceVersion}"]
    names = rng.sample("abc", rng.randint(1, 3))
    steps += [{"do": "POST", "path": kind.path, "body": kind.object(name)} for name in names]
    for _ in range(rng.randint(2, 5)):
        steps.append(_change(kind, rng.choice("abc")))
        if rng.random() < 0.4:
            versions.append(f"${{{len(steps)}.metadata.resourceVersion}}")
            steps.append({"do": "GET", "path": kind.path})
    steps += [_watch(kind, versions) for _ in range(2)]
    return [*steps, *_remove_finalizers(kind, names)]


def _change(kind: ObjectGenerator, name: str) -> Step:
    rng, path = kind.rng, f"{kind.path}/{name}"
    random_number = rng.random()
    if random_number < 0.4:  # The object starts or stops to match selectors.
        labels = {"l1": rng.choice(["x", "y", None]), "l2": rng.choice(["x", None])}
        return {"do": "PATCH", "path": path, "type": MERGE, "body": {"metadata": {"labels": labels}}}
    if random_number < 0.6:
        return {"path": path, **generate_delete(kind, name, 0)}
    if random_number < 0.7:
        return {"do": "PATCH", "path": path, "type": MERGE, "body": {"metadata": {"finalizers": None}}}
    return generate_write(kind, name, None)


def _watch(kind: ObjectGenerator, versions: list[str]) -> Step:
    rng = kind.rng
    query: dict[str, str] = rng.choice(
        [
            {},
            {},
            {"labelSelector": "l1=x"},
            {"labelSelector": "l1,l2!=x"},
            {"fieldSelector": "metadata.name=a"},
            {"fieldSelector": "metadata.name!=a"},
            {"fieldSelector": "spec.nothing=a"},
        ]
    )
    random_number = rng.random()
    if random_number < 0.6:
        query = {**query, "resourceVersion": rng.choice(versions)}
    elif random_number < 0.7:
        query = {**query, "resourceVersion": rng.choice(["0", "x", "-1"])}
    if rng.random() < 0.2:
        query = {**query, "sendInitialEvents": rng.choice(["true", "true", "false", "x"])}
        query |= kind.choose_parts(allowWatchBookmarks="true") | kind.choose_parts(resourceVersionMatch="NotOlderThan")
    accept = rng.choice([{}, {}, {"accept": TABLE}, {"accept": PARTIAL}])
    if (
        "allowWatchBookmarks" in query
    ):  # In a table, a bookmark shows the version of the store, which other writers change.
        accept = {}
    return {"do": "WATCH", "path": kind.path, "query": query, **accept}


def generate_delete_steps(kind: ObjectGenerator) -> list[Step]:
    """Return deletes of an object with an owner and finalizers, and writes between them."""
    rng, path = kind.rng, f"{kind.path}/{kind.name}"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o"}}
    steps: list[Step] = [{"do": "POST", "path": "/api/v1/namespaces/{ns}/configmaps", "body": owner}]
    body = kind.object()
    reference = {**OWNER, "uid": "${0.metadata.uid}", **kind.choose_parts(controller=True, blockOwnerDeletion=True)}
    body["metadata"] |= {"ownerReferences": [reference], "finalizers": _finalizers(kind)}
    steps.append({"do": "POST", "path": kind.path, "body": body})
    for _ in range(rng.randint(3, 7)):
        random_number = rng.random()
        last = len(steps) - 1
        if random_number < 0.4:
            step: Step = {"path": path, **generate_delete(kind, kind.name, last)}
        elif random_number < 0.5:
            query = rng.choice([{}, {"labelSelector": "l1"}, {"propagationPolicy": "Foreground"}, {"dryRun": "All"}])
            step = (
                {"do": "DELETE", "path": kind.path, "query": query} if kind.namespaced else {"do": "GET", "path": path}
            )
        elif random_number < 0.75:
            finalizers: Any = rng.choice([None, _finalizers(kind), _finalizers(kind)])
            patch = {"metadata": {"finalizers": finalizers}}
            step = {"do": "PATCH", "path": path, "type": MERGE, "body": patch}
        else:
            step = generate_write(kind, kind.name, last)
        steps += [step, {"do": "GET", "path": path}]
    steps.append({"do": "DELETE", "path": "/api/v1/namespaces/{ns}/configmaps/o"})
    return [*steps, {"do": "GET", "path": path}, *_remove_finalizers(kind, [kind.name])]


def _finalizers(kind: ObjectGenerator) -> list[str]:
    finalizers = ["example.com/f1", "example.com/f2", "foregroundDeletion", "orphan"]
    return kind.rng.sample(finalizers, kind.rng.choices([0, 1, 2], [2, 4, 2])[0])


def _remove_finalizers(kind: ObjectGenerator, names: list[str]) -> list[Step]:
    """Return steps that remove all finalizers, so that the namespace can be deleted."""
    body = {"metadata": {"finalizers": None}}
    return [{"do": "PATCH", "path": f"{kind.path}/{name}", "type": MERGE, "body": body} for name in names]
