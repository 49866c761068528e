"""Server-side apply."""

from typing import Any, NamedTuple

from fairlead.api.fields import FieldSet, Path, human
from fairlead.api.fields.tries import LEAF, without
from fairlead.server.ownership import lastapplied
from fairlead.server.ownership.equality import equal
from fairlead.server.ownership.extraction import applied
from fairlead.server.ownership.ledger import Changes, bereft, checked, conflicting, current, ownable
from fairlead.server.ownership.managed import Entry, Managed
from fairlead.server.ownership.merging import merge
from fairlead.server.ownership.pruning import pruned
from fairlead.server.ownership.schemas import Schemas, served
from fairlead.server.ownership.updating import before_first_apply


class Applied(NamedTuple):
    """What an apply made: the object (the very live one when nothing in it changed) and who owns what now."""

    object: dict[str, Any]
    managed: Managed


class FieldConflict(Exception):
    """An unforced apply would change fields that others own."""

    def __init__(self, conflicts: list[tuple[Entry, Path]]) -> None:
        super().__init__()
        self.conflicts = sorted(conflicts, key=lambda conflict: conflict[0].identity)

    @property
    def causes(self) -> list[dict[str, str]]:
        """The causes of a Status."""
        return [
            {"reason": "FieldManagerConflict", "message": f"conflict with {entry.shown}", "field": human(path)}
            for entry, path in self.conflicts
        ]

    @property
    def message(self) -> str:
        """The message of a Status."""
        if len(self.conflicts) == 1:
            entry, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {entry.shown}: {human(path)}"
        lines: list[str] = []
        by: Entry | None = None
        for entry, path in self.conflicts:
            if entry is not by:
                lines.append(f"conflicts with {entry.shown}:")
                by = entry
            lines.append(f"- {human(path)}")
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)

    def __str__(self) -> str:
        return self.message


def apply(
    live: dict[str, Any] | None,
    managed: Managed,
    config: dict[str, Any],
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str = "",
    schemas: Schemas,
    reset: FieldSet | None = None,
    reset_everywhere: bool = True,
    now: str,
) -> Applied:
    """Apply `config` to `live` (None for a missing object) as `manager`.

    Raises FieldConflict where an unforced apply would change what others own, TypedError where a side does not fit its
    schema. That `config` is of this kind and version and brings no managedFields is for the caller to check. Defaults
    and validation come after: an unchanged object needs neither.
    """
    old = schemas.empty(api_version) if live is None else live
    if not managed and live is not None:
        managed = before_first_apply(
            live, api_version=api_version, subresource=subresource, schemas=schemas, reset=reset, now=now
        )
    try:
        made = _applied(
            old, managed, config, manager, force, api_version, subresource, schemas, reset, reset_everywhere, now
        )
    except FieldConflict as conflict:
        if manager != lastapplied.MANAGER:
            raise
        allowed = lastapplied.allowed(old, api_version, served(schemas, api_version))
        left = [each for each in conflict.conflicts if allowed is None or each[1] not in allowed]
        if left:
            raise FieldConflict(left) from None
        made = _applied(
            old, managed, config, manager, True, api_version, subresource, schemas, reset, reset_everywhere, now
        )
    if manager == lastapplied.MANAGER:
        return Applied(lastapplied.synced(made.object, config), made.managed)
    return made


def _applied(
    live: dict[str, Any],
    managed: Managed,
    config: dict[str, Any],
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    schemas: Schemas,
    reset: FieldSet | None,
    everywhere: bool,
    now: str,
) -> Applied:
    shape = served(schemas, api_version)
    checked(shape, config, "failed to create typed patch object ({})", repeats=False)
    checked(shape, live, "failed to create typed live object ({})", repeats=True)
    hidden = LEAF if reset is None else reset.trie
    fields = applied(shape, config) or LEAF
    mine = Entry(manager or "unknown", "Apply", api_version, FieldSet(without(fields, hidden)), subresource=subresource)
    others = current(managed, live, schemas)
    last = others.pop(mine.identity, None)
    merged = merge(shape, live, config)
    new = pruned(merged, last, {**others, mine.identity: mine}, mine, schemas)
    out: dict[str, Entry] = {}
    changed = False
    if new is live:
        out.update(others)
    else:
        changes = Changes(live, new, api_version, schemas, hidden, everywhere)
        if not force:
            found = conflicting(others.values(), changes)
            if found:
                raise FieldConflict([(entry, path) for entry, paths in found for path in paths])
        for identity, entry in others.items():
            left = bereft(entry, changes)
            if left.fields:
                out[identity] = left
        changed = changes.any or not equal(live, new)
    owned = ownable(mine.fields.trie)
    if owned:
        if last is not None and last.api_version == api_version and last.fields == owned and not owned.exact:
            mine = last  # the same fields: shared, encoded already
        else:
            mine = mine.owning(owned).at(last.time if last is not None else None)
        out[mine.identity] = mine.at(now) if changed else mine
    return Applied(new if changed else live, tuple(out.values()))
