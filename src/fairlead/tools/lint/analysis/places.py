"""Compare places: copies of the same object, lists on a path, values that were computed from themselves."""

from __future__ import annotations

from fairlead.tools.lint.analysis.values import (
    ITEM,
    Changed,
    Condition,
    ErrorOf,
    Fact,
    Place,
    Thing,
    Value,
    Write,
    normalize,
)
from fairlead.tools.lint.golang.types import GoType

METADATA = frozenset(
    {
        "Annotations",
        "CreationTimestamp",
        "DeletionTimestamp",
        "Finalizers",
        "GenerateName",
        "Generation",
        "Labels",
        "ManagedFields",
        "Name",
        "Namespace",
        "OwnerReferences",
        "ResourceVersion",
        "UID",
    }
)
OBJECT_FIELDS = frozenset({"Spec", "Status", "Data", "StringData", "ObjectMeta", "TypeMeta"}) | METADATA


def retyped(value: Value, kind: GoType | None) -> Value:
    if kind is None:
        return value
    if value.choices:
        choices = tuple(retyped(choice, kind) for choice in value.choices)
        return Value(kind, value.place, value.sources, value.what, value.texts, choices)
    if value.place is not None and not value.place.path and value.place.thing.type is None:
        value.place.thing.type = kind
    return Value(kind, value.place, value.sources, value.what, value.texts, value.choices)


def facts_of(value: Value) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Return what holds if a boolean is true, and if it is false."""
    for what in value.meanings():
        if isinstance(what, Condition):
            return what.true, what.false
        if isinstance(what, Changed):
            return (Fact("changed", what.place),), (Fact("unchanged", what.place),)
    return (), ()


def lineage(thing: Thing) -> list[Thing]:
    """Return a thing and what it is a copy of."""
    found = [thing]
    while found[-1].copy_of is not None and len(found) < 6:
        found.append(found[-1].copy_of.thing)
    return found


def are_related(one: Thing, other: Thing) -> bool:
    """Return whether one thing is a copy of the other, or both are copies of a third."""
    if one is other:
        return True
    known = lineage(one)
    return any(thing in known for thing in lineage(other))


def reads_itself(place: Place, sources: frozenset[Place], value: Place | None) -> bool:
    """Return whether a field's new value was computed from the same field of the same object or of a copy of it."""
    path = list_path(place.path)
    for source in sources:
        if source == value:
            continue  # the value is that field, unchanged
        source_path = list_path(normalize(source.path))
        if source_path == path and (source.thing is place.thing or are_related(source.thing, place.thing)):
            return True
    return False


def object_depth(path: tuple[str, ...]) -> int:
    """Return where the fields of an API object start, if the path leads through a list of objects."""
    depth = 0
    for number in range(len(path) - 1):
        if path[number] == ITEM and path[number + 1] in OBJECT_FIELDS and (number < 2 or path[number - 1] == "Items"):
            depth = number + 1
    return depth


def list_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of the outermost list in an object."""
    depth = object_depth(path)
    return path[: path.index(ITEM, depth)] if ITEM in path[depth:] else path


def is_alias(value: Value) -> bool:
    """Return whether a field holds an object that is also known by another name."""
    return value.place is not None and value.place.thing.origin != "literal"


def drop_error(value: Value) -> None:
    """Note that nobody looks at the error of a request."""
    for what in value.meanings():
        if isinstance(what, ErrorOf) and isinstance(what.event, Write):
            what.event.error_is_dropped = True
