"""What stands on what: a tenant's arrival wakes its namespaces, a namespace's departure its tenant."""

from collections.abc import Iterable

import fairlead as fl
from fairlead_operators.pulsar.resources import GeoReplication, Invalid, Order, Resource


def connections_of(obj: fl.Object) -> list[str]:
    """The connections that an object points at or has something behind, by name."""
    refs = (obj.spec.get("connectionRef"), obj.spec.get("destinationConnectionRef"))
    behind = (obj.status.get("applied") or {}).get("connection")
    return [ref["name"] for ref in refs if ref] + [behind] * bool(behind)


def here(obj: fl.Object, path: str) -> str:
    """A path, told apart from the same path in another Pulsar."""
    return f"{obj.namespace}/{connections_of(obj)[0]}{path}"


def stands_at(resource: Resource, obj: fl.Object) -> list[str]:
    """What others may need of this object."""
    if resource.make is None:
        return []
    if resource.kind is GeoReplication:
        return [f"{obj.namespace}/geo/{obj.name}"]
    try:
        return [here(obj, resource.path(Order(obj.spec)))]
    except Invalid:
        return []


def stands_on(resource: Resource, obj: fl.Object) -> list[str]:
    """What this object needs of others."""
    far = [f"{obj.namespace}/geo/{ref['name']}" for ref in obj.spec.get("geoReplicationRefs") or ()]
    try:
        return [*far, *(here(obj, path) for path in resource.needs(obj.spec))]
    except Invalid:
        return far


def neighbours(mine: Resource, other: Resource, obj: fl.Object, view: fl.ReadContext) -> Iterable[fl.Object]:
    """Of my kind, those that stand on that object, and those on which it stands."""
    for key in stands_at(other, obj):
        yield from view.indexed(mine.kind, "needs", key)
    for key in stands_on(other, obj):
        yield from view.indexed(mine.kind, "place", key)


def users_of(mine: Resource, connection: fl.Object, view: fl.ReadContext) -> Iterable[fl.Object]:
    yield from view.indexed(mine.kind, "connection", f"{connection.namespace}/{connection.name}")
