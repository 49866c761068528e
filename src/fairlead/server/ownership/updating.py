"""Ownership after a plain write: create, replace, patch."""

from typing import Any

from fairlead.api.fields import FieldSet
from fairlead.api.fields.tries import LEAF, union_of_roots
from fairlead.server.ownership.comparing import first
from fairlead.server.ownership.conformance import TypedError
from fairlead.server.ownership.ledger import Changes, bereft, checked, current, ownable
from fairlead.server.ownership.managed import NOTHING, Entry, Managed
from fairlead.server.ownership.schemas import Schemas, served

KEPT_UPDATES = 10  # a real server's bound: each writer's User-Agent makes an entry, and objects must not grow for ever


def update(
    live: dict[str, Any] | None,
    managed: Managed,
    new: dict[str, Any],
    *,
    manager: str,
    api_version: str,
    subresource: str = "",
    schemas: Schemas,
    reset: FieldSet | None = None,
    reset_everywhere: bool = True,
    now: str,
) -> Managed:
    """Who owns what after `live` became `new` by a plain write (None for a create).

    `reset` is what the path never changes, at every version or at this one only. The writer owns what it added or
    changed; whoever owned that, or what was removed, no longer does. An object that
    no one owns anything of is not tracked until the next apply. An object that does not fit its schema is owned by no
    one: a plain write never fails for its managedFields.
    """
    if not managed and live is not None and (live.get("metadata") or {}).get("uid"):
        return NOTHING
    try:
        if live is None and not managed:
            return _created(new, manager, api_version, subresource, schemas, reset, now)
        old = schemas.empty(api_version) if live is None else live
        return _updated(old, managed, new, manager, api_version, subresource, schemas, reset, reset_everywhere, now)
    except TypedError:
        return NOTHING


def before_first_apply(
    live: dict[str, Any], *, api_version: str, subresource: str, schemas: Schemas, reset: FieldSet | None, now: str
) -> Managed:
    """One entry for all that an object held before anyone was tracked."""
    try:
        return _created(live, "before-first-apply", api_version, subresource, schemas, reset, now)
    except TypedError as error:
        raise TypedError(f"failed to create manager for existing fields: {error}") from error


def _created(
    new: dict[str, Any],
    manager: str,
    api_version: str,
    subresource: str,
    schemas: Schemas,
    reset: FieldSet | None,
    now: str,
) -> Managed:
    """As `_updated` from nothing, where nobody can lose anything."""
    shape = served(schemas, api_version)
    checked(shape, new, "failed to convert new object ({}) to smd typed", repeats=True)
    mine = ownable(first(shape, schemas.empty(api_version), new), LEAF if reset is None else reset.trie)
    return (
        (Entry(manager or "unknown", "Update", api_version, mine, subresource=subresource, time=now),) if mine else ()
    )


def _updated(
    old: dict[str, Any],
    managed: Managed,
    new: dict[str, Any],
    manager: str,
    api_version: str,
    subresource: str,
    schemas: Schemas,
    reset: FieldSet | None,
    everywhere: bool,
    now: str,
) -> Managed:
    shape = served(schemas, api_version)
    checked(shape, new, "failed to convert new object ({}) to smd typed", repeats=True)
    checked(shape, old, "failed to convert live object ({}) to smd typed", repeats=True)
    hidden = LEAF if reset is None else reset.trie
    entries = current(managed, old, schemas)
    changes = Changes(old, new, api_version, schemas, hidden, everywhere)
    out: dict[str, Entry] = {}
    for identity, entry in entries.items():
        left = bereft(entry, changes)
        if left.fields:
            out[identity] = left
    mine = ownable(changes.touched(api_version))
    if mine:
        me = Entry(manager or "unknown", "Update", api_version, mine, subresource=subresource, time=now)
        before = out.get(me.identity)
        if before is not None:
            me = me.owning(FieldSet(union_of_roots(before.fields.trie, mine.trie)))
        out[me.identity] = me
    return tuple(_capped(out).values())


def _capped(entries: dict[str, Entry]) -> dict[str, Entry]:
    """At most so many Update entries: the oldest of each version become one, "ancient-changes"."""
    updates = [entry for entry in entries.values() if entry.operation == "Update"]
    excess = len(updates) - KEPT_UPDATES
    if excess <= 0:
        return entries
    out = dict(entries)
    first: dict[str, Entry] = {}
    for entry in sorted(updates, key=lambda each: (each.time or "", each.identity)):
        if excess <= 0:
            break
        version = entry.api_version
        if version not in first:
            first[version] = entry
            continue
        bucket = Entry("ancient-changes", "Update", version, entry.fields, time=entry.time)
        if bucket.identity not in out:
            oldest = out.pop(first[version].identity)
            out[bucket.identity] = oldest
        out[bucket.identity] = bucket.owning(out[bucket.identity].fields | entry.fields)
        del out[entry.identity]  # where this is the bucket itself, what it held is forgotten, as on a real server
        excess -= 1
    return out
