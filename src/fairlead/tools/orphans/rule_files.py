"""Load orphan rules: from a YAML or Python file, or the rules that ship with fairlead."""

import importlib.util
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from fairlead.api import documents
from fairlead.api.errors import UserError
from fairlead.api.kinds import kind
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.durations import parse_duration
from fairlead.tools.orphans.identity import IdentityLabels
from fairlead.tools.orphans.rules import OrphanRule, Parents, References, combine_parents, upstream_object


class RulesError(UserError):
    """The rules file cannot be used. The message is one line with the place in the file and the fix."""


def shipped_rules() -> list[OrphanRule]:
    """Return the enabled rules of the file shipped.yaml, which is part of fairlead."""
    return [
        _parse_rule(entry, entry["name"]) for entry in _read_shipped_entries().values() if entry.get("enabled", True)
    ]


def load(path: Path) -> list[OrphanRule]:
    """Return the rules of a YAML or Python file. A Python file is executed and must define `rules`."""
    rules = _load_python(path) if path.suffix == ".py" else _load_yaml(path)
    names = [rule.name for rule in rules]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise RulesError(f"{path}: two rules have the name {', '.join(duplicates)}: rename one")
    if not rules:
        raise RulesError(f"{path}: has no enabled rule: add one under `rules`")
    return rules


def _load_python(path: Path) -> list[OrphanRule]:
    spec = importlib.util.spec_from_file_location("fairlead_orphans_rules", path)
    if spec is None or spec.loader is None:
        raise RulesError(f"{path}: cannot be loaded: is it a Python file?")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RulesError(f"{path}: fails to load: {type(error).__name__}: {error}") from error
    rules = getattr(module, "rules", None)
    if not isinstance(rules, Sequence) or not all(isinstance(rule, OrphanRule) for rule in rules):
        raise RulesError(f"{path}: does not define `rules`, a list of fairlead.tools.orphans.rules.OrphanRule: add it")
    return list(rules)


def _load_yaml(path: Path) -> list[OrphanRule]:
    try:
        content = documents.parse_one(path.read_bytes())
    except OSError as error:
        raise RulesError(f"{path}: cannot be read ({error.strerror}): check its permissions") from error
    except documents.InvalidYaml as error:
        raise RulesError(f"{path}: {error}; correct it") from error
    entries = content.get("rules") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise RulesError(f"{path}: has no list `rules`: see docs/how-to/collect-orphans.md for the form")
    rules = []
    for number, entry in enumerate(entries, 1):
        location = f"{path}: rule {number}"
        if not isinstance(entry, dict):
            raise RulesError(f"{location}: is not a mapping: see docs/how-to/collect-orphans.md for the form")
        if "use" in entry:
            shipped = _read_shipped_entries()
            if entry["use"] not in shipped:
                raise RulesError(
                    f"{location}: there is no shipped rule {entry['use']!r}: use one of {', '.join(shipped)}"
                )
            overrides = {key: value for key, value in entry.items() if key != "use"}
            entry = {**shipped[entry["use"]], "enabled": True, **overrides}  # Using a rule enables it.
        if _get_typed(entry, "enabled", bool, location, True):
            rules.append(_parse_rule(entry, location))
    return rules


def _read_shipped_entries() -> dict[str, dict[str, Any]]:
    rules_yaml = resources.files("fairlead.tools.orphans").joinpath("shipped.yaml").read_text()
    return {entry["name"]: entry for entry in documents.parse_one(rules_yaml)["rules"]}


def _parse_rule(entry: Mapping[str, Any], location: str) -> OrphanRule:
    _check_fields(entry, {"name", "enabled", "collect", "identity", "parents", "grace", "max"}, location)
    name = _get_typed(entry, "name", str, location)
    collect = _get_typed(entry, "collect", dict, location)
    _check_fields(collect, {"apiVersion", "kind", "labels", "namePrefix"}, f"{location}: collect")
    labels = _get_typed(collect, "labels", dict, f"{location}: collect", {})
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in labels.items()):
        raise RulesError(f"{location}: collect.labels must be text: put each value in quotes")
    try:
        collected = kind(
            _get_typed(collect, "apiVersion", str, f"{location}: collect"),
            _get_typed(collect, "kind", str, f"{location}: collect"),
        )
        grace = parse_duration(str(entry.get("grace", "5m")))
        cap = Cap.parse(str(entry["max"])) if "max" in entry else Cap.default()
    except ValueError as error:
        raise RulesError(f"{location}: {error}") from None
    prefix = _get_typed(collect, "namePrefix", str, f"{location}: collect", "")
    return OrphanRule(
        name, collected, _parse_parents(entry, location), labels, prefix, _parse_identity(entry, location), grace, cap
    )


def _parse_identity(entry: Mapping[str, Any], location: str) -> IdentityLabels:
    identity = _get_typed(entry, "identity", dict, location, {})
    _check_fields(identity, {"labels", "cluster"}, f"{location}: identity")
    encodings = _get_typed(identity, "cluster", list, f"{location}: identity", list(IdentityLabels().encodings))
    if not encodings or not all(isinstance(encoding, str) for encoding in encodings):
        raise RulesError(f"{location}: identity.cluster must be a list of prefixes of a cluster's name")
    return IdentityLabels(
        _get_typed(identity, "labels", str, f"{location}: identity", IdentityLabels().prefix), tuple(encodings)
    )


def _parse_parents(entry: Mapping[str, Any], location: str) -> Parents:
    listed = _get_typed(entry, "parents", list, location)
    if not listed:
        raise RulesError(f"{location}: has no parents: without parents nothing can become an orphan")
    functions: list[Parents] = []
    for number, parent in enumerate(listed, 1):
        item_location = f"{location}: parents {number}"
        if not isinstance(parent, dict):
            raise RulesError(
                f"{item_location}: is not a mapping: write `references: spec.parentRefs` or `itself: true`"
            )
        if parent == {"itself": True}:
            functions.append(upstream_object)
            continue
        _check_fields(parent, {"references", "group", "kind", "namespace"}, item_location)
        path, group, kind_ = (_get_typed(parent, key, str, item_location) for key in ("references", "group", "kind"))
        namespace = parent.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise RulesError(f"{item_location}: namespace is not text: put it in quotes")
        other_kinds = {
            (p.get("group"), p.get("kind")) for p in listed if isinstance(p, dict) and p.get("references") == path
        }
        judged = frozenset((str(g), str(k)) for g, k in other_kinds if (g, k) != (group, kind_))
        if functions and any(isinstance(f, References) and f.path == path for f in functions):
            continue  # References of all kinds at this path are found together.
        functions.append(References(path, group, kind_, namespace, judged))
    return functions[0] if len(functions) == 1 else combine_parents(*functions)


_MISSING = object()


def _get_typed(entry: Mapping[str, Any], key: str, expected_type: type, location: str, default: Any = _MISSING) -> Any:
    value = entry.get(key, default)
    if value is _MISSING:
        raise RulesError(f"{location}: has no {key}: add it")
    if not isinstance(value, expected_type):
        type_names = {str: "text", dict: "a mapping", list: "a list", bool: "true or false"}
        raise RulesError(f"{location}: {key} is not {type_names[expected_type]}: correct it")
    return value


def _check_fields(entry: Mapping[str, Any], known_fields: set[str], location: str) -> None:
    if unknown := sorted(str(key) for key in entry.keys() - known_fields):
        raise RulesError(f"{location}: {unknown[0]!r} is not a known field: use {', '.join(sorted(known_fields))}")
