"""Ownership across the scale subresource: replicas of a Scale are a field of the object behind it."""

from typing import Final

from fairlead.api.fields import FieldSet, Path, path
from fairlead.server.ownership.managed import Entry, Managed

SCALE: Final = "autoscaling/v1"
_REPLICAS: Final = path("spec", "replicas")
_OF_SCALE: Final = FieldSet.of(_REPLICAS)

Places = dict[str, Path | None]  # where replicas stands at each version of the parent; None for a version without scale


def scale_entries(parent: Managed, places: Places) -> Managed:
    """The entries of a Scale: whoever owns the parent's replicas."""
    return tuple(
        [
            Entry(entry.manager, entry.operation, SCALE, _OF_SCALE, subresource=entry.subresource, time=entry.time)
            for entry in parent
            if (place := places.get(entry.api_version)) is not None and place in entry.fields
        ]
    )


def parent_entries(parent: Managed, scale: Managed, api_version: str, places: Places) -> Managed:
    """The parent's entries after a write to its Scale. New owners of replicas have no time, as on a real server."""
    owners = {entry.identity: entry for entry in scale}
    out: dict[str, Entry] = {}
    for entry in parent:
        if entry.api_version not in places:
            continue
        place = places[entry.api_version]
        if place is None or place not in entry.fields or owners.pop(entry.identity, None) is not None:
            out[entry.identity] = entry
        else:
            left = entry.owning(entry.fields - FieldSet.of(place))
            if left.fields:
                out[entry.identity] = left
    here = places[api_version]
    times = {entry.identity: entry.time for entry in parent}
    for entry in owners.values():
        if here is None or _REPLICAS not in entry.fields:
            continue
        made = Entry(
            entry.manager,
            entry.operation,
            api_version,
            FieldSet.of(here),
            subresource=entry.subresource,
            time=times.get(entry.identity),
        )
        out[made.identity] = made
    return tuple(out.values())
