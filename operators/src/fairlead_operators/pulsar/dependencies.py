"""Dependencies between objects: a new tenant enqueues its namespaces, a deleted namespace enqueues its tenant."""

from collections.abc import Iterable

import fairlead as fl
from fairlead_operators.pulsar.kinds import GeoReplication
from fairlead_operators.pulsar.resources import Invalid, ResolvedSpec, Resource


def connections_of(obj: fl.Object) -> list[str]:
    """Return the names of the connections that an object refers to or was applied with."""
    refs = (obj.spec.get("connectionRef"), obj.spec.get("destinationConnectionRef"))
    applied = (obj.status.get("applied") or {}).get("connection")
    return [ref["name"] for ref in refs if ref] + [applied] * bool(applied)


def qualify(obj: fl.Object, path: str) -> str:
    """Return a key for a Pulsar path that is unique across several Pulsars: `namespace/connection/path`."""
    return f"{obj.namespace}/{connections_of(obj)[0]}{path}"


def provided_keys(resource: Resource, obj: fl.Object) -> list[str]:
    """Return the keys of the Pulsar resources that an object creates."""
    if resource.create_or_update is None:
        return []
    if resource.kind is GeoReplication:
        return [f"{obj.namespace}/geo/{obj.name}"]
    try:
        return [qualify(obj, resource.path(ResolvedSpec(obj.spec)))]
    except Invalid:
        return []


def required_keys(resource: Resource, obj: fl.Object) -> list[str]:
    """Return the keys of the Pulsar resources that an object needs."""
    geo_keys = [f"{obj.namespace}/geo/{ref['name']}" for ref in obj.spec.get("geoReplicationRefs") or ()]
    try:
        return [*geo_keys, *(qualify(obj, path) for path in resource.required_paths(obj.spec))]
    except Invalid:
        return geo_keys


def related_objects(resource: Resource, other: Resource, obj: fl.Object, ctx: fl.ReadContext) -> Iterable[fl.Object]:
    """Yield the objects of `resource` that depend on `obj`, and those that `obj` depends on."""
    for key in provided_keys(other, obj):
        yield from ctx.indexed(resource.kind, "requires", key)
    for key in required_keys(other, obj):
        yield from ctx.indexed(resource.kind, "provides", key)


def objects_using(resource: Resource, connection: fl.Object, ctx: fl.ReadContext) -> Iterable[fl.Object]:
    """Yield the objects of a kind that use a PulsarConnection."""
    yield from ctx.indexed(resource.kind, "connection", f"{connection.namespace}/{connection.name}")
