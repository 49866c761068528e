"""Load the models of well-known helper functions: the shipped ones, and those that a user adds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

from fairlead.api.errors import UserError

VERSION = re.compile(r"/v\d+(?=/|\.|$)")
RETURNS = {"changed", "merge-patch", "locked-merge-patch", "strategic-patch", "patch-helper", "copy"}
VERBS = {"update", "patch", "apply", "create", "create-or-update", "create-or-patch"}
KEYS = {"name", "mutates", "returns", "base", "reads", "runs", "writes"}


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """What one function does. See models.yaml."""

    name: str
    mutates: tuple[dict[str, Any], ...] = ()
    returns: str = ""
    base: int = 0
    reads: dict[str, Any] | None = None
    runs: dict[str, Any] | None = None
    writes: dict[str, Any] | None = None


@dataclass(slots=True)
class Models:
    """All models, found by import path and name."""

    functions: dict[str, FunctionModel] = field(default_factory=dict)
    patterns: list[FunctionModel] = field(default_factory=list)
    conditions: tuple[str, ...] = ()
    unconditional: dict[str, Any] = field(default_factory=dict)

    def find(self, path: str, name: str) -> FunctionModel | None:
        """Return the model of a function, or of a method if `name` is `Type.Method`."""
        full = f"{VERSION.sub('', path)}.{name}"
        known = self.functions.get(full)
        if known is not None:
            return known
        return next((m for m in self.patterns if m.name.endswith(f".{name}") and fnmatchcase(full, m.name)), None)

    def changes_conditions(self, path: str) -> bool:
        return VERSION.sub("", path) in self.conditions or path in self.conditions

    def allows_unconditional_update(self, path: str, kind: str) -> bool:
        allowed = self.unconditional.get(path)
        return allowed == "*" or (isinstance(allowed, list) and kind in allowed)


def load_models(extra: list[Path] | None = None) -> Models:
    """Return the shipped models and those of `extra` files, which win. Raise UserError if a file is wrong."""
    models = Models()
    _add(models, files(__package__).joinpath("models.yaml").read_text(encoding="utf-8"), "models.yaml")
    for path in extra or []:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"the models in {path} cannot be read: {error}") from None
        _add(models, text, str(path))
    return models


def _add(models: Models, text: str, source: str) -> None:
    import yaml

    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise UserError(f"{source} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise UserError(f"{source} must be a mapping with the key 'functions'")
    for entry in data.get("functions") or []:
        model = _to_model(entry, source)
        if "*" in model.name:
            models.patterns.insert(0, model)
        else:
            models.functions[VERSION.sub("", model.name)] = model
    models.conditions += tuple(data.get("conditions") or ())
    models.unconditional.update(data.get("unconditional_update") or {})


def _to_model(entry: Any, source: str) -> FunctionModel:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise UserError(f"{source}: each function needs a name: import/path.Function")
    unknown = set(entry) - KEYS
    if unknown:
        raise UserError(f"{source}: {name} has the unknown key {min(unknown)!r}: use {', '.join(sorted(KEYS))}")
    if entry.get("returns", "changed") not in RETURNS:
        raise UserError(f"{source}: {name}: 'returns' must be one of {', '.join(sorted(RETURNS))}")
    if (entry.get("writes") or {}).get("verb", "update") not in VERBS:
        raise UserError(f"{source}: {name}: 'verb' must be one of {', '.join(sorted(VERBS))}")
    return FunctionModel(
        name=name,
        mutates=tuple(entry.get("mutates") or ()),
        returns=entry.get("returns") or "",
        base=entry.get("base") or 0,
        reads=entry.get("reads"),
        runs=entry.get("runs"),
        writes=entry.get("writes"),
    )
