"""Move fields from other managedFields entries into our Apply entry: from Update entries or former field managers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.api.errors import Conflict, Invalid, NotFound, UnknownOutcome
from fairlead.api.fields import FieldSet, Path, format_path, union
from fairlead.api.fields.patterns import parse_pattern, select_fields
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.text import reject_single_string
from fairlead.api.times import rfc3339
from fairlead.client.client import PatchType
from fairlead.writes.decide import is_failed_test
from fairlead.writes.errors import DecisionContention
from fairlead.writes.json_patch import MISSING
from fairlead.writes.no_op import find_apply_entry
from fairlead.writes.writer import Writer, describe_object, require_uid

# Each lost attempt means that someone else's write won. Ownership moves only once, so patience is cheap.
MAX_ATTEMPTS = 16

ManagedFields = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """The fields that a migration moved, such as `.spec.replicas`, and the object afterwards.

    If no field was moved, nothing was sent.
    """

    moved: tuple[str, ...]
    object: Object


async def migrate(
    writer: Writer, kind: Kind, obj: Object, *, fields: Sequence[str], managers: Sequence[str], dry_run: bool = False
) -> MigrationResult:
    """Move the listed fields, and the fields below them, from the Update entries of `managers` into our Apply entry.

    Without this, a field that was once written by Update stays: an apply that omits it does not remove it.

    Only listed fields move. Two controllers of one process share a User-Agent, so an Update entry may contain another
    controller's fields, and the next apply would delete them. If both wrote into one keyed list, list the items of this
    controller (`spec.listeners[name=http]`) or its fields of all items (`spec.listeners[*].hostname`).

    Guarantees:
        No value changes.
        The write tests the uid and the resourceVersion. After a write of someone else it starts again on a live read.

    Does not guarantee:
        Entries of subresources do not move.

    Raises:
        ObjectDeleted, ObjectReplaced: the object no longer exists.
        DecisionContention: others changed the object before each attempt.
        UnknownOutcome: the answer was lost twice.
    """
    require_uid(kind, obj)
    reject_single_string("fields", fields)
    reject_single_string("managers", managers)
    patterns = [parse_pattern(field) for field in fields]
    async with writer.lock(kind, obj.name, obj.namespace):
        return await _move(
            writer, kind, obj, lambda live: _plan_migration(live, writer, patterns, managers), dry_run=dry_run
        )


def has_former_entries(writer: Writer, obj: Object) -> bool:
    """Return whether the object has an Apply entry of one of the writer's former field managers."""
    return any(find_apply_entry(obj, manager) is not None for manager in writer.former_managers)


async def take_over_former_entries(writer: Writer, kind: Kind, obj: Object) -> MigrationResult:
    """Move all fields that our former field managers applied into our Apply entry. The caller holds the object's lock.

    Without this, fields that were applied under a former name stay: an apply that omits them does not remove them.
    Whole entries may move, because `former_managers` lists only managers of this controller. No value changes. The
    write tests the uid and the resourceVersion.
    """
    return await _move(writer, kind, obj, lambda live: _plan_takeover(live, writer), dry_run=False)


async def _move(
    writer: Writer,
    kind: Kind,
    obj: Object,
    plan: Callable[[Object], tuple[ManagedFields, FieldSet]],
    *,
    dry_run: bool,
) -> MigrationResult:
    unanswered: tuple[str, ...] = ()  # Sent, but the answer was lost.
    rejection: tuple[str, Invalid] | None = None
    for _ in range(MAX_ATTEMPTS):
        live = await writer.read_live(kind, obj)
        if rejection is not None and rejection[0] == live.resource_version:
            raise rejection[1]
        entries, moved_fields = plan(live)
        paths = tuple(format_path(path) for path in moved_fields.leaves())
        if not moved_fields or dry_run:
            return MigrationResult(paths or unanswered, live)
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": live.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version},
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        ]
        try:
            answer = await writer.client.patch(
                kind, obj.name, obj.namespace, patch, type=PatchType.JSON, field_manager=writer.manager
            )
        except Invalid as error:
            if not is_failed_test(error):
                raise
            rejection = live.resource_version, error
        except UnknownOutcome:
            if unanswered:
                raise
            unanswered = paths
        except (Conflict, NotFound):
            pass
        else:
            return MigrationResult(paths, writer.forget_removed(kind, answer))
    raise DecisionContention(describe_object(kind, obj.name, obj.namespace), MAX_ATTEMPTS)


def can_migrate(writer: Writer, obj: Object, *, fields: Sequence[str], managers: Sequence[str]) -> bool:
    """Return whether `migrate` would move a field of `obj`. An object with only metadata is enough."""
    return bool(_plan_migration(obj, writer, [parse_pattern(field) for field in fields], managers)[1])


def _plan_migration(
    obj: Object, writer: Writer, patterns: Sequence[Path], managers: Sequence[str]
) -> tuple[ManagedFields, FieldSet]:
    """Return the managedFields after the migration, and the fields that move from Update entries."""
    entries: ManagedFields = []
    moved_by_version: dict[str, FieldSet] = {}  # By apiVersion, because a path is valid only in its version.
    for entry in obj.metadata.get("managedFields") or ():
        is_source = entry.get("operation") == "Update" and entry.get("manager") in managers
        if not is_source or entry.get("subresource"):
            entries.append(entry)
            continue
        owned_fields = FieldSet.decode(entry.get("fieldsV1"))
        selection = union(select_fields(owned_fields, pattern) for pattern in patterns)
        version = str(entry.get("apiVersion"))
        moved_by_version[version] = moved_by_version.get(version, FieldSet()) | selection
        if owned_fields - selection:
            entries.append({**entry, "fieldsV1": (owned_fields - selection).encode()} if selection else entry)
    for version, selection in moved_by_version.items():
        if selection:
            _add_to_our_entry(entries, writer, version, selection)
    return entries, union(moved_by_version.values())


def _plan_takeover(obj: Object, writer: Writer) -> tuple[ManagedFields, FieldSet]:
    """Return the managedFields after the takeover, and the fields that move from Apply entries of former managers."""
    entries: ManagedFields = []
    moved_by_version: dict[str, FieldSet] = {}
    for entry in obj.metadata.get("managedFields") or ():
        is_apply = entry.get("operation") == "Apply" and not entry.get("subresource")
        if is_apply and entry.get("manager") in writer.former_managers:
            version = str(entry.get("apiVersion"))
            moved_by_version[version] = moved_by_version.get(version, FieldSet()) | FieldSet.decode(
                entry.get("fieldsV1")
            )
        else:
            entries.append(entry)
    for version, fields in moved_by_version.items():
        _add_to_our_entry(entries, writer, version, fields)
    return entries, union(moved_by_version.values())


def _add_to_our_entry(entries: ManagedFields, writer: Writer, version: str, fields: FieldSet) -> None:
    ours = {"manager": writer.manager, "operation": "Apply", "apiVersion": version}
    for position, entry in enumerate(entries):
        if not entry.get("subresource") and all(entry.get(key, MISSING) == value for key, value in ours.items()):
            merged = FieldSet.decode(entry.get("fieldsV1")) | fields
            entries[position] = {**entry, "fieldsV1": merged.encode()}
            return
    now = rfc3339(writer.world.clock.now())
    entries.insert(0, {**ours, "time": now, "fieldsType": "FieldsV1", "fieldsV1": fields.encode()})
