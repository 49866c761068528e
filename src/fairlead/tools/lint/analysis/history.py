"""Questions about a trace: which events can come before a request, and what changed since a base was copied."""

from __future__ import annotations

from fairlead.tools.lint.analysis.places import are_related, lineage
from fairlead.tools.lint.analysis.values import Event, Mutation, Overwrite, PatchOf, Place, Read, Thing, Trace, Write


def reaches(earlier: Event, later: Event) -> bool:
    """Return whether the program can get from one event to the other: no branch excludes it, none ends before."""
    later_arms = {arm.branch: arm for arm in later.arms}
    for arm in earlier.arms:
        other = later_arms.get(arm.branch)
        if other is not None:
            if other.number != arm.number:
                return False
            continue
        if later.is_deferred:
            continue
        if arm.ends == "return" and arm.frame in later.frames:
            return False
        if arm.ends == "jump" and arm.frame in later.frames and (arm.loop is None or arm.loop in later.arms):
            return False
    return True


def always_before(earlier: Event, later: Event) -> bool:
    """Return whether the earlier event always happens when the later one does."""
    return all(arm in later.arms for arm in earlier.arms)


def is_within(place: Place, root: Place) -> bool:
    return place.thing is root.thing and place.path[: len(root.path)] == root.path


def history(trace: Trace, root: Place, until: Event, before: int | None = None, depth: int = 0) -> list[Mutation]:
    """Return the changes that the content of an object has seen since it was last read or replaced."""
    limit = until.index if before is None else before
    found: list[Mutation] = []
    for event in trace.events:
        if event.index >= limit:
            break
        if isinstance(event, Mutation):
            if is_within(event.place, root) and len(event.place.path) > len(root.path) and reaches(event, until):
                found.append(event)
        elif isinstance(event, Read | Overwrite):
            exact = event.place == root or is_within(root, event.place)
            if exact and not getattr(event, "is_list", False) and always_before(event, until):
                found.clear()
                if isinstance(event, Overwrite) and event.source is not None and depth < 4:
                    found = history(trace, event.source, until, event.index, depth + 1)
    copied = root.thing.copy_of
    if copied is not None and depth < 4:
        origin = Place(copied.thing, (*copied.path, *root.path))
        found = [*history(trace, origin, until, min(root.thing.born, limit), depth + 1), *found]
    return found


def pending(trace: Trace, write: Write, base: Place) -> list[Mutation]:
    """Return the changes that a merge patch from `base` to the written object contains."""
    known = set(history(trace, base, write))
    return [event for event in history(trace, write.place, write) if event not in known]


def relative(event: Mutation, root: Thing | Place) -> tuple[str, ...]:
    """Return the changed path as seen from the written object."""
    prefix = root.path if isinstance(root, Place) else ()
    if event.place.path[: len(prefix)] == prefix:
        return event.place.path[len(prefix) :]
    copied = root.thing.copy_of if isinstance(root, Place) else None
    if copied is not None and event.place.path[: len(copied.path)] == copied.path:
        return event.place.path[len(copied.path) :]
    return event.place.path


def is_refreshed(trace: Trace, write: Write, patch: PatchOf) -> bool:
    """Return whether a request after the base was copied always updates the object's version.

    The diff then contains the resourceVersion, so the patch is locked by accident.
    """
    if patch.base is None:
        return False
    born = patch.base.thing.born if patch.base.thing.copy_of is not None else 0
    for event in trace.events:
        if event.index >= write.index:
            break
        if event.index < born:
            continue
        is_fresh = (isinstance(event, Write) and event.verb in ("update", "patch", "create")) or (
            isinstance(event, Read) and not event.is_list
        )
        if is_fresh and event.place == write.place and always_before(event, write):
            return True
    return False


def was_persisted(trace: Trace, change: Mutation, write: Write) -> bool:
    """Return whether another request has already sent this change."""
    return any(
        isinstance(event, Write)
        and change.index < event.index < write.index
        and event.verb in ("update", "patch", "create", "apply")
        and is_within(change.place, event.place)
        and always_before(event, change) is False
        and reaches(change, event)
        and reaches(event, write)
        and event.is_status == ("Status" in change.place.path)
        for event in trace.events
    )


def resets_list(trace: Trace, change: Mutation, write: Write) -> bool:
    """Return whether the list was set to a new value before this change, so that it is built from nothing."""
    for event in trace.events:
        if event.index >= change.index:
            break
        if (
            isinstance(event, Mutation)
            and event.place == change.place
            and not event.is_rmw
            and not event.helper
            and event.index >= write.place.thing.born
            and reaches(event, change)
            and always_before(event, change)
        ):
            return True
        if (
            isinstance(event, Mutation)
            and event.place.thing is change.place.thing
            and len(event.place.path) < len(change.place.path)
            and change.place.path[: len(event.place.path)] == event.place.path
            and not event.is_rmw
            and event.value.place is not None
            and event.value.place.thing.origin == "literal"
            and always_before(event, change)
        ):
            return True
    return False


def objects_related(one: Place, other: Place) -> bool:
    return are_related(one.thing, other.thing)


def same_object(one: Place, other: Place) -> bool:
    """Return whether two places are the same object or one is a copy of the other."""
    return one == other or (one.thing in lineage(other.thing) or other.thing in lineage(one.thing))
