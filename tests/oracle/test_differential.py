"""Tests that random histories of writes give the same managed fields as a real server's field manager in Go."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gooracle import Oracle, binary

from fairlead.api.fields import FieldSet
from fairlead.server import ownership

from .histories import SchemaGenerator, ValueGenerator, to_node

HISTORIES = int(
    os.environ.get("FAIRLEAD_ORACLE_HISTORIES", "300")
)  # a number, not a time limit: every machine tests the same histories
FIRST = int(os.environ.get("FAIRLEAD_ORACLE_SEED", "0"))
NOW = "2026-01-01T00:00:00Z"
STATUS = FieldSet.decode({"f:status": {}})
NOT_STATUS = FieldSet.decode({"f:spec": {}, "f:metadata": {}})


class Kind:
    """A kind with several versions. Conversion changes only the apiVersion."""

    def __init__(self, models: dict[str, Any]) -> None:
        self.nodes = {f"example.com/{version}": to_node(model) for version, model in models.items()}

    def find_schema(self, api_version: str) -> Any:
        return self.nodes.get(api_version)

    def convert(self, obj: Any, api_version: str) -> Any:
        return obj if obj["apiVersion"] == api_version else {**obj, "apiVersion": api_version}

    def build_empty(self, api_version: str) -> Any:
        return {"apiVersion": api_version, "kind": "Widget"}


class EmbeddedObject:
    """One object whose managed fields the embedded server's code updates."""

    def __init__(self) -> None:
        self.live: Any = None
        self.managed: ownership.ManagedFields = ownership.NO_MANAGED_FIELDS

    def play(self, write: dict[str, Any], kind: Kind) -> dict[str, Any]:
        api_version = f"example.com/{write['version']}"
        live = None if self.live is None else kind.convert(self.live, api_version)
        reset = None if write["reset"] is None else FieldSet.decode(write["reset"])
        field_write = ownership.FieldWrite(write["manager"], api_version, kind, NOW, write["subresource"], reset)
        try:
            if write["do"] == "apply":
                result = ownership.apply(live, self.managed, write["object"], field_write, force=write["force"])
                self.live, self.managed = result.object, result.managed
            else:
                self.managed = ownership.update(live, self.managed, write["object"], field_write)
                self.live = write["object"]
        except ownership.FieldConflict as conflict:
            causes = [f"{cause['message']}: {cause['field']}" for cause in conflict.causes]
            return {"error": conflict.message, "conflicts": causes}
        except ownership.TypedError as error:
            return {"error": str(error)}
        self.live = {**self.live, "metadata": {**(self.live.get("metadata") or {}), "uid": "u"}}
        return {"object": self.live, "managed": ownership.encode(self.managed)}


def generate_history(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a random history and the embedded server's outcomes. Later writes depend on earlier outcomes."""
    rng = random.Random(seed)
    models = {"v1": SchemaGenerator(rng).root()}
    if rng.random() < 0.25:
        models["v2"] = models["v1"] if rng.random() < 0.5 else change_root_types(rng, models["v1"])
    kind = Kind(models)
    history: dict[str, Any] = {"models": models, "writes": []}
    obj, outcomes = EmbeddedObject(), []
    invalid = rng.choice([0.0, 0.0, 0.05])
    for _ in range(rng.randint(2, 8)):
        write: dict[str, Any] = {
            "do": rng.choice(["apply", "apply", "update"]),
            "version": rng.choice(list(models)),
            "manager": rng.choice(["m1", "m2", "m3"]),
            "subresource": "status" if rng.random() < 0.15 else "",
            "force": rng.random() < 0.5,
            "reset": None,
        }
        if rng.random() < 0.4:
            write["reset"] = (NOT_STATUS if write["subresource"] else STATUS).encode()
        if rng.random() < 0.05:
            models = {version: change_root_types(rng, model) for version, model in models.items()}
            kind, write["models"] = Kind(models), models
        model = models[write["version"]]
        if write["do"] == "apply":
            write["object"] = ValueGenerator(rng, invalid=invalid, duplicates=0.02).object(model, write["version"])
        elif obj.live is None or rng.random() < 0.3:
            write["object"] = ValueGenerator(rng, invalid=invalid, duplicates=0.2).object(model, write["version"])
        else:
            values = ValueGenerator(rng, invalid=invalid, duplicates=0.2)
            write["object"] = {
                name: values.change(model["properties"][name], value) if name in ("spec", "status") else value
                for name, value in kind.convert(obj.live, f"example.com/{write['version']}").items()
            }
        history["writes"].append(write)
        outcomes.append(obj.play(write, kind))
    return history, outcomes


def change_root_types(rng: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    """Make some maps and lists of spec and status atomic or granular."""
    properties = schema["properties"]
    changed_properties = {name: change_types(rng, properties[name]) for name in ("spec", "status")}
    return {**schema, "properties": {**properties, **changed_properties}}


def change_types(rng: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    result = dict(schema)
    for keyword in ("items", "additionalProperties"):
        if keyword in result:
            result[keyword] = change_types(rng, result[keyword])
    if "properties" in result:
        result["properties"] = {name: change_types(rng, child) for name, child in result["properties"].items()}
    if rng.random() < 0.8:
        return result
    if result.get("type") == "object" and result.pop("x-kubernetes-map-type", None) is None:
        result["x-kubernetes-map-type"] = "atomic"
    if result.get("x-kubernetes-list-type") in ("set", "map"):
        result["x-kubernetes-list-type"] = "atomic"
        result.pop("x-kubernetes-list-map-keys", None)
    return result


def normalize(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome without the differences that do not count: times, the order of causes and of errors."""
    result = dict(outcome)
    if "object" in result:
        metadata = dict(result["object"]["metadata"])
        entries = metadata.pop("managedFields", None) or []
        result["object"] = {
            **result["object"],
            "metadata": metadata,
            "apiVersion": "",
        }  # an apply returns the hub version
        result["managed"] = result.get("managed") or entries
        result["managed"] = sorted(
            [{**entry, "time": "time" in entry} for entry in result["managed"]],
            key=lambda entry: (entry["operation"], entry["manager"], entry["apiVersion"], entry.get("subresource", "")),
        )
    if "conflicts" in result:
        result["conflicts"] = sorted(result["conflicts"])
    if result.get("error", "").count("\n  ") or "not declared" in result.get("error", ""):
        result["error"] = "several"  # A real server lists them in the order of a Go map, and stops at an unknown field.
    return result


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    path = binary(Path(__file__).parent)
    if isinstance(path, str):
        pytest.skip(path)
    process = Oracle(path)
    yield process
    process.close()


def test_random_histories_have_the_same_outcomes_as_on_a_real_server(oracle: Oracle) -> None:
    for seed in range(FIRST, FIRST + HISTORIES):
        history, outcomes = generate_history(seed)
        for step, (embedded, real) in enumerate(zip(outcomes, oracle.ask(history), strict=True)):
            assert normalize(embedded) == normalize(real), f"seed {seed}, write {step}: {history['writes'][step]}"
