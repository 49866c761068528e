"""Random histories of writers, played by our ownership and by a real server's field manager."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gooracle import Oracle, binary

from fairlead.api.fields import FieldSet
from fairlead.server import ownership

from .histories import Schemas, Values, node

HISTORIES = int(os.environ.get("FAIRLEAD_ORACLE_HISTORIES", "300"))  # a count, so that a busy machine asks as much
FIRST = int(os.environ.get("FAIRLEAD_ORACLE_SEED", "0"))
STATUS = FieldSet.decode({"f:status": {}})
NOT_STATUS = FieldSet.decode({"f:spec": {}, "f:metadata": {}})


class Kind:
    def __init__(self, models: dict[str, Any]) -> None:
        self.nodes = {f"example.com/{version}": node(model) for version, model in models.items()}

    def node(self, api_version: str) -> Any:
        return self.nodes.get(api_version)

    def convert(self, obj: Any, api_version: str) -> Any:
        return obj if obj["apiVersion"] == api_version else {**obj, "apiVersion": api_version}

    def empty(self, api_version: str) -> Any:
        return {"apiVersion": api_version, "kind": "Widget"}


class Ours:
    """The object as our ownership keeps it."""

    def __init__(self) -> None:
        self.live: Any = None
        self.managed: ownership.Managed = ownership.NOTHING

    def play(self, write: dict[str, Any], schemas: Kind) -> dict[str, Any]:
        api_version = f"example.com/{write['version']}"
        live = None if self.live is None else schemas.convert(self.live, api_version)
        facts: Any = {
            "manager": write["manager"],
            "api_version": api_version,
            "subresource": write["subresource"],
            "schemas": schemas,
            "reset": None if write["reset"] is None else FieldSet.decode(write["reset"]),
            "now": "2026-01-01T00:00:00Z",
        }
        try:
            if write["do"] == "apply":
                made = ownership.apply(live, self.managed, write["object"], force=write["force"], **facts)
                self.live, self.managed = made.object, made.managed
            else:
                self.managed = ownership.update(live, self.managed, write["object"], **facts)
                self.live = write["object"]
        except ownership.FieldConflict as conflict:
            causes = [f"{cause['message']}: {cause['field']}" for cause in conflict.causes]
            return {"error": conflict.message, "conflicts": causes}
        except ownership.TypedError as error:
            return {"error": str(error)}
        self.live = {**self.live, "metadata": {**(self.live.get("metadata") or {}), "uid": "u"}}
        return {"object": self.live, "managed": ownership.encode(self.managed)}


def history(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A history and what we make of it; the writers of one look at what the others left."""
    chance = random.Random(seed)
    draw = Schemas(chance)
    models = {"v1": draw.root()}
    if chance.random() < 0.25:
        models["v2"] = models["v1"] if chance.random() < 0.5 else relisted(chance, models["v1"])
    schemas = Kind(models)
    told: dict[str, Any] = {"models": models, "writes": []}
    ours, outcomes = Ours(), []
    odd = chance.choice([0.0, 0.0, 0.05])
    for _ in range(chance.randint(2, 8)):
        write: dict[str, Any] = {
            "do": chance.choice(["apply", "apply", "update"]),
            "version": chance.choice(list(models)),
            "manager": chance.choice(["m1", "m2", "m3"]),
            "subresource": "status" if chance.random() < 0.15 else "",
            "force": chance.random() < 0.5,
            "reset": None,
        }
        if chance.random() < 0.4:
            write["reset"] = (NOT_STATUS if write["subresource"] else STATUS).encode()
        if chance.random() < 0.05:
            models = {version: relisted(chance, model) for version, model in models.items()}
            schemas, write["models"] = Kind(models), models
        model = models[write["version"]]
        if write["do"] == "apply":
            write["object"] = Values(chance, odd=odd, repeats=0.02).object(model, write["version"])
        elif ours.live is None or chance.random() < 0.3:
            write["object"] = Values(chance, odd=odd, repeats=0.2).object(model, write["version"])
        else:
            writer = Values(chance, odd=odd, repeats=0.2)
            write["object"] = {
                name: writer.changed(model["properties"][name], value) if name in ("spec", "status") else value
                for name, value in schemas.convert(ours.live, f"example.com/{write['version']}").items()
            }
        told["writes"].append(write)
        outcomes.append(ours.play(write, schemas))
    return told, outcomes


def relisted(chance: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    """The same kind with some containers of spec and status made atomic or granular."""
    declared = schema["properties"]
    changed = {name: retyped(chance, declared[name]) for name in ("spec", "status")}
    return {**schema, "properties": {**declared, **changed}}


def retyped(chance: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    out = dict(schema)
    for word in ("items", "additionalProperties"):
        if word in out:
            out[word] = retyped(chance, out[word])
    if "properties" in out:
        out["properties"] = {name: retyped(chance, child) for name, child in out["properties"].items()}
    if chance.random() < 0.8:
        return out
    if out.get("type") == "object" and out.pop("x-kubernetes-map-type", None) is None:
        out["x-kubernetes-map-type"] = "atomic"
    if out.get("x-kubernetes-list-type") in ("set", "map"):
        out["x-kubernetes-list-type"] = "atomic"
        out.pop("x-kubernetes-list-map-keys", None)
    return out


def told_alike(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without what the two cannot share: times (only whether there is one) and the order of causes."""
    out = dict(outcome)
    if "object" in out:
        metadata = dict(out["object"]["metadata"])
        entries = metadata.pop("managedFields", None) or []
        out["object"] = {**out["object"], "metadata": metadata, "apiVersion": ""}  # an apply answers at the hub version
        out["managed"] = out.get("managed") or entries
        out["managed"] = sorted(
            [{**entry, "time": "time" in entry} for entry in out["managed"]],
            key=lambda entry: (entry["operation"], entry["manager"], entry["apiVersion"], entry.get("subresource", "")),
        )
    if "conflicts" in out:
        out["conflicts"] = sorted(out["conflicts"])
    if out.get("error", "").count("\n  ") or "not declared" in out.get("error", ""):
        out["error"] = "several"  # a real server lists them in the order of a Go map, and stops at an unknown field
    return out


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    path = binary(Path(__file__).parent)
    if isinstance(path, str):
        pytest.skip(path)
    running = Oracle(path)
    yield running
    running.close()


def test_random_histories_end_as_on_a_real_server(oracle: Oracle) -> None:
    for seed in range(FIRST, FIRST + HISTORIES):
        told, ours = history(seed)
        for step, (mine, real) in enumerate(zip(ours, oracle.ask(told), strict=True)):
            assert told_alike(mine) == told_alike(real), f"seed {seed}, write {step}: {told['writes'][step]}"
