"""From Update to Apply: take over the ownership of fields that this controller once wrote in the old way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.api.errors import Conflict, Invalid, NotFound, UnknownOutcome
from fairlead.api.fields import FieldSet, Path, human, union
from fairlead.api.fields.patterns import parse, selected
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.text import refuse_text
from fairlead.api.times import rfc3339
from fairlead.client.client import PatchType
from fairlead.writes.decide import failed_test
from fairlead.writes.elision import our_entry
from fairlead.writes.errors import DecisionContention
from fairlead.writes.jsonpatch import MISSING
from fairlead.writes.writer import Writer, identified, told

# Each look that loses means that another's write won; ownership is moved once, so patience costs nothing.
LOOKS = 16


@dataclass(frozen=True, slots=True)
class Migrated:
    """What was moved, as readable paths, and the object after it. Nothing moved means nothing was sent."""

    moved: tuple[str, ...]
    object: Object


async def migrate(
    writer: Writer, kind: Kind, obj: Object, *, fields: Sequence[str], managers: Sequence[str], dry_run: bool = False
) -> Migrated:
    """Move the named fields, and what is below them, from the Update entries of `managers` into our Apply entry.

    Without this, a field that was written by Update stays for ever: leaving it out of an apply does not remove it. Only
    declared fields move: two controllers of one process share one User-Agent, so an entry may be another's too, and the
    next apply would delete what it does not name. Where two wrote into one keyed list, each names its own items
    (`spec.listeners[name=http]`) or its own fields of all (`spec.listeners[*].hostname`). Values do not change. Guard:
    uid and resourceVersion; whoever wrote meanwhile makes it look again. Entries of subresources are left alone.
    """
    identified(kind, obj)
    refuse_text("fields", fields)
    refuse_text("managers", managers)
    patterns = [parse(name) for name in fields]
    async with writer.turn(kind, obj.name, obj.namespace):
        return await _move(writer, kind, obj, lambda live: _moved(live, writer, patterns, managers), dry_run=dry_run)


def former(writer: Writer, obj: Object) -> bool:
    """Whether there is something to `inherit`, by the copy at hand."""
    return any(our_entry(obj, manager) is not None for manager in writer.formerly)


async def inherit(writer: Writer, kind: Kind, obj: Object) -> Migrated:
    """Move what our former field managers applied into our Apply entry, whole; for the holder of the object's turn.

    Without this, what was applied under another name stays for ever: leaving it out of an apply does not remove it. A
    whole entry may move, as `formerly` says that all of it was this controller's. Values do not change. Guard: uid and
    resourceVersion.
    """
    return await _move(writer, kind, obj, lambda live: _inherited(live, writer), dry_run=False)


async def _move(
    writer: Writer,
    kind: Kind,
    obj: Object,
    plan: Callable[[Object], tuple[list[dict[str, Any]], FieldSet]],
    *,
    dry_run: bool,
) -> Migrated:
    lost: tuple[str, ...] = ()  # sent, and never answered
    refused: tuple[str, Invalid] | None = None
    for _ in range(LOOKS):
        live = await writer.live(kind, obj)
        if refused is not None and refused[0] == live.resource_version:
            raise refused[1]
        entries, moved = plan(live)
        said = tuple(human(path) for path in moved.leaves())
        if not moved or dry_run:
            return Migrated(said or lost, live)
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
            if not failed_test(error):
                raise
            refused = live.resource_version, error
        except UnknownOutcome:
            if lost:
                raise
            lost = said
        except (Conflict, NotFound):
            pass
        else:
            return Migrated(said, writer.forget_removed(kind, answer))
    raise DecisionContention(told(kind, obj.name, obj.namespace), LOOKS)


def movable(writer: Writer, obj: Object, *, fields: Sequence[str], managers: Sequence[str]) -> bool:
    """Whether `migrate` would move anything, by the copy at hand; metadata is enough."""
    return bool(_moved(obj, writer, [parse(name) for name in fields], managers)[1])


def _moved(
    obj: Object, writer: Writer, patterns: Sequence[Path], managers: Sequence[str]
) -> tuple[list[dict[str, Any]], FieldSet]:
    """managedFields with the named fields moved, and what was moved."""
    entries: list[dict[str, Any]] = []
    taken: dict[str, FieldSet] = {}  # by apiVersion: a path means something only in its version
    for entry in obj.metadata.get("managedFields") or ():
        old = entry.get("operation") == "Update" and entry.get("manager") in managers
        if not old or entry.get("subresource"):
            entries.append(entry)
            continue
        owned = FieldSet.decode(entry.get("fieldsV1"))
        wanted = union(selected(owned, pattern) for pattern in patterns)
        version = str(entry.get("apiVersion"))
        taken[version] = taken.get(version, FieldSet()) | wanted
        if owned - wanted:
            entries.append({**entry, "fieldsV1": (owned - wanted).encode()} if wanted else entry)
    for version, wanted in taken.items():
        if wanted:
            _give(entries, writer, version, wanted)
    return entries, union(taken.values())


def _inherited(obj: Object, writer: Writer) -> tuple[list[dict[str, Any]], FieldSet]:
    """managedFields with our former managers' Apply entries made ours, and what was moved."""
    entries: list[dict[str, Any]] = []
    taken: dict[str, FieldSet] = {}
    for entry in obj.metadata.get("managedFields") or ():
        applied = entry.get("operation") == "Apply" and not entry.get("subresource")
        if applied and entry.get("manager") in writer.formerly:
            version = str(entry.get("apiVersion"))
            taken[version] = taken.get(version, FieldSet()) | FieldSet.decode(entry.get("fieldsV1"))
        else:
            entries.append(entry)
    for version, wanted in taken.items():
        _give(entries, writer, version, wanted)
    return entries, union(taken.values())


def _give(entries: list[dict[str, Any]], writer: Writer, version: str, wanted: FieldSet) -> None:
    ours = {"manager": writer.manager, "operation": "Apply", "apiVersion": version}
    for place, entry in enumerate(entries):
        if not entry.get("subresource") and all(entry.get(key, MISSING) == value for key, value in ours.items()):
            both = FieldSet.decode(entry.get("fieldsV1")) | wanted
            entries[place] = {**entry, "fieldsV1": both.encode()}
            return
    now = rfc3339(writer.world.clock.now())
    entries.insert(0, {**ours, "time": now, "fieldsType": "FieldsV1", "fieldsV1": wanted.encode()})
