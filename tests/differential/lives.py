"""Histories of objects that come, change and go: what watches tell of it, and how deletions end."""

from typing import Any

from .kinds import OWNER, Kind
from .writing import MERGE, Step, delete, write

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def watched(kind: Kind) -> list[Step]:
    """Changes of several objects, and watches from before, from amid and from after them."""
    chance = kind.chance
    steps: list[Step] = [{"do": "GET", "path": kind.path}]
    versions = ["${0.metadata.resourceVersion}"]
    names = chance.sample("abc", chance.randint(1, 3))
    steps += [{"do": "POST", "path": kind.path, "body": kind.object(name)} for name in names]
    for _ in range(chance.randint(2, 5)):
        steps.append(_change(kind, chance.choice("abc")))
        if chance.random() < 0.4:
            versions.append(f"${{{len(steps)}.metadata.resourceVersion}}")
            steps.append({"do": "GET", "path": kind.path})
    steps += [_watch(kind, versions) for _ in range(2)]
    return [*steps, *_freed(kind, names)]


def _change(kind: Kind, name: str) -> Step:
    chance, path = kind.chance, f"{kind.path}/{name}"
    draw = chance.random()
    if draw < 0.4:  # in and out of what a selector selects
        labels = {"l1": chance.choice(["x", "y", None]), "l2": chance.choice(["x", None])}
        return {"do": "PATCH", "path": path, "type": MERGE, "body": {"metadata": {"labels": labels}}}
    if draw < 0.6:
        return {"path": path, **delete(kind, name, 0)}
    if draw < 0.7:
        return {"do": "PATCH", "path": path, "type": MERGE, "body": {"metadata": {"finalizers": None}}}
    return write(kind, name, None)


def _watch(kind: Kind, versions: list[str]) -> Step:
    chance = kind.chance
    query: dict[str, str] = chance.choice(
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
    draw = chance.random()
    if draw < 0.6:
        query = {**query, "resourceVersion": chance.choice(versions)}
    elif draw < 0.7:
        query = {**query, "resourceVersion": chance.choice(["0", "x", "-1"])}
    if chance.random() < 0.2:
        query = {**query, "sendInitialEvents": chance.choice(["true", "true", "false", "x"])}
        query |= kind.some(allowWatchBookmarks="true") | kind.some(resourceVersionMatch="NotOlderThan")
    accept = chance.choice([{}, {}, {"accept": TABLE}, {"accept": PARTIAL}])
    if "allowWatchBookmarks" in query:  # in a row it has the version of the server, which others move
        accept = {}
    return {"do": "WATCH", "path": kind.path, "query": query, **accept}


def deleted(kind: Kind) -> list[Step]:
    """An object with an owner and finalizers is deleted in many ways and written meanwhile."""
    chance, path = kind.chance, f"{kind.path}/{kind.name}"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o"}}
    steps: list[Step] = [{"do": "POST", "path": "/api/v1/namespaces/{ns}/configmaps", "body": owner}]
    body = kind.object()
    held = {**OWNER, "uid": "${0.metadata.uid}", **kind.some(controller=True, blockOwnerDeletion=True)}
    body["metadata"] |= {"ownerReferences": [held], "finalizers": _finalizers(kind)}
    steps.append({"do": "POST", "path": kind.path, "body": body})
    for _ in range(chance.randint(3, 7)):
        draw = chance.random()
        last = len(steps) - 1
        if draw < 0.4:
            step: Step = {"path": path, **delete(kind, kind.name, last)}
        elif draw < 0.5:
            query = chance.choice([{}, {"labelSelector": "l1"}, {"propagationPolicy": "Foreground"}, {"dryRun": "All"}])
            step = (
                {"do": "DELETE", "path": kind.path, "query": query} if kind.namespaced else {"do": "GET", "path": path}
            )
        elif draw < 0.75:
            finalizers: Any = chance.choice([None, _finalizers(kind), _finalizers(kind)])
            patch = {"metadata": {"finalizers": finalizers}}
            step = {"do": "PATCH", "path": path, "type": MERGE, "body": patch}
        else:
            step = write(kind, kind.name, last)
        steps += [step, {"do": "GET", "path": path}]
    steps.append({"do": "DELETE", "path": "/api/v1/namespaces/{ns}/configmaps/o"})
    return [*steps, {"do": "GET", "path": path}, *_freed(kind, [kind.name])]


def _finalizers(kind: Kind) -> list[str]:
    every = ["example.com/f1", "example.com/f2", "foregroundDeletion", "orphan"]
    return kind.chance.sample(every, kind.chance.choices([0, 1, 2], [2, 4, 2])[0])


def _freed(kind: Kind, names: list[str]) -> list[Step]:
    """Nothing is left to wait for."""
    body = {"metadata": {"finalizers": None}}
    return [{"do": "PATCH", "path": f"{kind.path}/{name}", "type": MERGE, "body": body} for name in names]
