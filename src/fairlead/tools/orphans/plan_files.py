"""Read a plan file, which a person may have edited. The file only limits which orphans may be deleted."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.api.errors import UserError
from fairlead.tools.orphans.plan import VERSION, Item, Plan
from fairlead.tools.orphans.verdicts import State

Name = tuple[str, str, str, str | None, str, str]
_NAME_FIELDS = ("rule", "apiVersion", "kind", "namespace", "name", "uid")


MAX_PLAN_BYTES = 100 * 2**20
"""About 150,000 orphans. Nobody has read a larger plan."""


class PlanError(UserError):
    """The plan file cannot be used. The message is one line that names the fix."""


@dataclass(frozen=True, slots=True)
class ChosenItems:
    """The items of a plan file that are still orphans, and the items that are not, with the reason."""

    items: list[Item]
    skipped: list[tuple[str, str]]


def read(path: Path, downstream: str) -> list[Name]:
    """Return the names of the orphans in a plan file. All other content of the file is ignored."""
    try:
        with path.open("rb") as file:
            plan_json = file.read(MAX_PLAN_BYTES + 1)
        if len(plan_json) > MAX_PLAN_BYTES:
            raise PlanError(f"{path}: is longer than {MAX_PLAN_BYTES // 2**20} MiB: plan fewer clusters at a time")
        content: Any = json.loads(plan_json)
    except OSError as error:
        raise PlanError(
            f"{path}: cannot be read ({error.strerror}): name a file that `orphans plan -o` wrote"
        ) from None
    except (ValueError, RecursionError):
        raise PlanError(f"{path}: is not JSON: name a file that `orphans plan -o` wrote") from None
    if not isinstance(content, dict) or content.get("version") != VERSION or not isinstance(content.get("items"), list):
        raise PlanError(f"{path}: is not a plan of this version of fairlead: create it again with `orphans plan -o`")
    if content.get("downstream") != downstream:
        raise PlanError(f"{path}: belongs to another downstream cluster: check --downstream, or create the plan again")
    names: list[Name] = []
    for number, item in enumerate(content["items"], 1):
        if not isinstance(item, dict):
            raise PlanError(f"{path}: item {number} is not a mapping: create the plan again")
        if item.get("state") != State.ORPHAN.value:
            continue
        fields = {key: item.get(key) for key in _NAME_FIELDS}
        if not all(isinstance(v, str) or (v is None and key == "namespace") for key, v in fields.items()):
            raise PlanError(f"{path}: item {number} does not name an object: create the plan again")
        names.append(tuple(fields.values()))  # type: ignore[arg-type]
    return names


def choose_items(names: Iterable[Name], live: Plan) -> ChosenItems:
    """Return the items of `live` that are orphans and whose rule, name and uid are in `names`."""
    live_items = {_get_name(item): item for item in live.items}
    items: list[Item] = []
    skipped: list[tuple[str, str]] = []
    for name in dict.fromkeys(names):
        item = live_items.get(name)
        if item is not None and item.verdict.state is State.ORPHAN:
            items.append(item)
            continue
        rule, _, kind, namespace, object_name, _ = name
        reason = item.verdict.why if item else f"it is not an orphan by the rule {rule} now"
        skipped.append((f"{kind} {namespace}/{object_name}" if namespace else f"{kind} {object_name}", reason))
    return ChosenItems(items, skipped)


def _get_name(item: Item) -> Name:
    candidate = item.candidate
    kind = candidate.rule.kind
    return candidate.rule.name, kind.api_version, kind.kind, candidate.namespace, candidate.name, candidate.uid
