"""Rules from a file, YAML or Python, and the shipped ones."""

import importlib.util
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from fairlead.api import documents
from fairlead.api.errors import UserError
from fairlead.api.kinds import kind
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.durations import seconds
from fairlead.tools.orphans.identity import Labels
from fairlead.tools.orphans.rules import Parents, References, Rule, itself, together


class RulesError(UserError):
    """A rules file that cannot be used. One line, with the place and the remedy."""


def shipped() -> list[Rule]:
    """The rules that come with fairlead and are on."""
    return [_rule(entry, entry["name"]) for entry in _shipped().values() if entry.get("enabled", True)]


def load(path: Path) -> list[Rule]:
    """The rules of a file. A Python file defines `rules`, a list of Rule, and is run as the program that it is."""
    rules = _python(path) if path.suffix == ".py" else _yaml(path)
    names = [rule.name for rule in rules]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RulesError(f"{path}: two rules are called {', '.join(twice)}: give each a name of its own")
    if not rules:
        raise RulesError(f"{path}: holds no rule that is on: add one under `rules`")
    return rules


def _python(path: Path) -> list[Rule]:
    spec = importlib.util.spec_from_file_location("fairlead_orphans_rules", path)
    if spec is None or spec.loader is None:
        raise RulesError(f"{path}: cannot be loaded: is it a Python file?")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RulesError(f"{path}: fails when it is loaded: {type(error).__name__}: {error}") from error
    rules = getattr(module, "rules", None)
    if not isinstance(rules, Sequence) or not all(isinstance(rule, Rule) for rule in rules):
        raise RulesError(f"{path}: defines no list `rules` of fairlead.tools.orphans.rules.Rule: add one")
    return list(rules)


def _yaml(path: Path) -> list[Rule]:
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
        where = f"{path}: rule {number}"
        if not isinstance(entry, dict):
            raise RulesError(f"{where}: is no mapping: see docs/how-to/collect-orphans.md for the form")
        if "use" in entry:
            known = _shipped()
            if entry["use"] not in known:
                raise RulesError(f"{where}: there is no shipped rule {entry['use']!r}: use one of {', '.join(known)}")
            given = {key: value for key, value in entry.items() if key != "use"}
            entry = {**known[entry["use"]], "enabled": True, **given}  # naming it is what turns it on
        if _typed(entry, "enabled", bool, where, True):
            rules.append(_rule(entry, where))
    return rules


def _shipped() -> dict[str, dict[str, Any]]:
    text = resources.files("fairlead.tools.orphans").joinpath("shipped.yaml").read_text()
    return {entry["name"]: entry for entry in documents.parse_one(text)["rules"]}


def _rule(entry: Mapping[str, Any], where: str) -> Rule:
    _only(entry, {"name", "enabled", "collect", "identity", "parents", "grace", "max"}, where)
    name = _typed(entry, "name", str, where)
    collect = _typed(entry, "collect", dict, where)
    _only(collect, {"apiVersion", "kind", "labels", "namePrefix"}, f"{where}: collect")
    labels = _typed(collect, "labels", dict, f"{where}: collect", {})
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in labels.items()):
        raise RulesError(f"{where}: collect.labels are not all text: put each in quotes")
    try:
        collected = kind(
            _typed(collect, "apiVersion", str, f"{where}: collect"), _typed(collect, "kind", str, f"{where}: collect")
        )
        grace = seconds(str(entry.get("grace", "5m")))
        cap = Cap.parse(str(entry["max"])) if "max" in entry else Cap.default()
    except ValueError as error:
        raise RulesError(f"{where}: {error}") from None
    prefix = _typed(collect, "namePrefix", str, f"{where}: collect", "")
    return Rule(name, collected, _parents(entry, where), labels, prefix, _identity(entry, where), grace, cap)


def _identity(entry: Mapping[str, Any], where: str) -> Labels:
    said = _typed(entry, "identity", dict, where, {})
    _only(said, {"labels", "cluster"}, f"{where}: identity")
    encodings = _typed(said, "cluster", list, f"{where}: identity", list(Labels().encodings))
    if not encodings or not all(isinstance(encoding, str) for encoding in encodings):
        raise RulesError(
            f"{where}: identity.cluster is no list of what stands before a cluster's name: write it as one"
        )
    return Labels(_typed(said, "labels", str, f"{where}: identity", Labels().prefix), tuple(encodings))


def _parents(entry: Mapping[str, Any], where: str) -> Parents:
    listed = _typed(entry, "parents", list, where)
    if not listed:
        raise RulesError(f"{where}: names no parents: what would be left alone by everyone is not an orphan")
    found: list[Parents] = []
    for number, parent in enumerate(listed, 1):
        here = f"{where}: parents {number}"
        if not isinstance(parent, dict):
            raise RulesError(f"{here}: is no mapping: say `references: spec.parentRefs` or `itself: true`")
        if parent == {"itself": True}:
            found.append(itself)
            continue
        _only(parent, {"references", "group", "kind", "namespace"}, here)
        path, group, kind_ = (_typed(parent, key, str, here) for key in ("references", "group", "kind"))
        namespace = parent.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise RulesError(f"{here}: namespace is not text: put it in quotes")
        others = {
            (p.get("group"), p.get("kind")) for p in listed if isinstance(p, dict) and p.get("references") == path
        }
        judged = frozenset((str(g), str(k)) for g, k in others if (g, k) != (group, kind_))
        if found and any(isinstance(f, References) and f.path == path for f in found):
            continue  # one walk finds the references of all kinds at this path
        found.append(References(path, group, kind_, namespace, judged))
    return found[0] if len(found) == 1 else together(*found)


_MISSING = object()


def _typed(entry: Mapping[str, Any], key: str, wanted: type, where: str, default: Any = _MISSING) -> Any:
    value = entry.get(key, default)
    if value is _MISSING:
        raise RulesError(f"{where}: has no {key}: add it")
    if not isinstance(value, wanted):
        words = {str: "text", dict: "a mapping", list: "a list", bool: "true or false"}
        raise RulesError(f"{where}: {key} is not {words[wanted]}: correct it")
    return value


def _only(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(str(key) for key in entry.keys() - known):
        raise RulesError(f"{where}: {unknown[0]!r} means nothing here: use {', '.join(sorted(known))}")
