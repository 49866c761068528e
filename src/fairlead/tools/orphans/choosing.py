"""A plan that someone read, and maybe edited: it narrows what may go, and says nothing else."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.api.errors import UserError
from fairlead.tools.orphans.judging import State
from fairlead.tools.orphans.plan import VERSION, Item, Plan

Name = tuple[str, str, str, str | None, str, str]
_NAMED = ("rule", "apiVersion", "kind", "namespace", "name", "uid")


LARGEST = 100 * 2**20
"""Bytes of a plan: some 150,000 orphans. More is no plan that anybody read."""


class PlanError(UserError):
    """A plan that cannot be used. One line, with the remedy."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the file names and the live plan bears out, and what it names in vain, with the reason."""

    items: list[Item]
    left: list[tuple[str, str]]


def read(path: Path, downstream: str) -> list[Name]:
    """The orphans that a plan file names. Nothing else in it is looked at."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise PlanError(f"{path}: is longer than {LARGEST // 2**20} MiB: plan fewer clusters at a time")
        content: Any = json.loads(text)
    except OSError as error:
        raise PlanError(
            f"{path}: cannot be read ({error.strerror}): name a file that `orphans plan -o` wrote"
        ) from None
    except (ValueError, RecursionError):
        raise PlanError(f"{path}: is not JSON: name a file that `orphans plan -o` wrote") from None
    if not isinstance(content, dict) or content.get("version") != VERSION or not isinstance(content.get("items"), list):
        raise PlanError(f"{path}: is no plan of this version: make it anew with `orphans plan -o`")
    if content.get("downstream") != downstream:
        raise PlanError(f"{path}: was made for another downstream cluster: check --downstream, or make it anew")
    names: list[Name] = []
    for number, item in enumerate(content["items"], 1):
        if not isinstance(item, dict):
            raise PlanError(f"{path}: item {number} is no mapping: make the plan anew")
        if item.get("state") != State.ORPHAN.value:
            continue
        named = {key: item.get(key) for key in _NAMED}
        if not all(isinstance(v, str) or (v is None and key == "namespace") for key, v in named.items()):
            raise PlanError(f"{path}: item {number} does not name an object: make the plan anew")
        names.append(tuple(named.values()))  # type: ignore[arg-type]
    return names


def choose(names: Iterable[Name], live: Plan) -> Chosen:
    """Those of the named that are orphans by the live plan, under the same rule, name and uid."""
    known = {_name(item): item for item in live.items}
    items: list[Item] = []
    left: list[tuple[str, str]] = []
    for name in dict.fromkeys(names):
        item = known.get(name)
        if item is not None and item.verdict.state is State.ORPHAN:
            items.append(item)
            continue
        rule, _, kind, namespace, called, _ = name
        why = item.verdict.why if item else f"rule {rule} does not find it to be an orphan now"
        left.append((f"{kind} {namespace}/{called}" if namespace else f"{kind} {called}", why))
    return Chosen(items, left)


def _name(item: Item) -> Name:
    candidate = item.candidate
    kind = candidate.rule.kind
    return candidate.rule.name, kind.api_version, kind.kind, candidate.namespace, candidate.name, candidate.uid
