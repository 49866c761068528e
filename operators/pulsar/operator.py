"""The Pulsar operator: eleven kinds by one table, each let go by one finalizer that never takes another's along."""

from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import fairlead as fl
from fairlead.operators.pulsar.admin import Admin, Doors, Refused
from fairlead.operators.pulsar.resources import (
    FINALIZER,
    RESOURCES,
    Connection,
    GeoReplication,
    Invalid,
    Order,
    Resource,
)

op = fl.Operator("pulsar")

# An outage is over within minutes as a rule. As long as it lasts we look ever less often, from the first to the second:
# many objects may be waiting, and a broker that comes up again has enough to do.
SOON = 30.0
# Also for what somebody has to put right first; what they do to our own objects wakes us at once.
LATER = 300.0


@op.startup
async def connect(resources: dict[str, Any]) -> None:
    """`http`, where a test hands in no other, opens an HTTP client for an address and a token."""
    resources.setdefault("http", Doors())


@op.shutdown
async def hang_up(resources: dict[str, Any]) -> None:
    await resources["http"].close()


# The connection


def connections_of(obj: fl.Object) -> list[str]:
    """The connections that an object points at or has something behind, by name."""
    refs = (obj.spec.get("connectionRef"), obj.spec.get("destinationConnectionRef"))
    behind = (obj.status.get("applied") or {}).get("connection")
    return [ref["name"] for ref in refs if ref] + [behind] * bool(behind)


def waiting_connections(obj: fl.Object, view: fl.View) -> Iterable[fl.Object]:
    """The connections that may go when this object has."""
    for name in connections_of(obj):
        found = view.get(Connection, name, obj.namespace)
        if found is not None and found.deleting:
            yield found


@op.reconcile(Connection, watches={resource.kind: waiting_connections for resource in RESOURCES})
async def connection(obj: fl.Object, ctx: fl.Context) -> None:
    """Ready once Pulsar answers; the objects that point at it wait for that."""
    secure = obj.spec.get("adminServiceSecureURL")
    if secure and not obj.spec.get("adminServiceURL"):
        obj = await ctx.default(spec={"adminServiceURL": secure})
    if is_current(obj):
        return
    with explained(obj, obj, ctx):
        await (await admin_of(obj, ctx)).get("/v2/clusters")


@op.cleanup(Connection, finalizer=FINALIZER)
async def disconnect(obj: fl.Object, ctx: fl.Context) -> None:
    """Outlive everything that needs it to be taken out of Pulsar."""
    held = {r.kind.kind: sum(obj.name in connections_of(each) for each in ctx.list(r.kind)) for r in RESOURCES}
    if not any(held.values()):  # one that was made a moment ago may not have come in yet
        for r in RESOURCES:
            held[r.kind.kind] = sum(obj.name in connections_of(each) for each in await ctx.live.list(r.kind))
    if any(held.values()):
        told = ", ".join(f"{count} {kind}" for kind, count in held.items() if count)
        raise fl.Wait("InUse", f"still pointed at by {told}: delete them, or give them another connection")


async def admin_of(connection: fl.Object, ctx: fl.Context) -> Admin:
    """The admin API behind a connection, with its token."""
    url = address_of(connection)
    authentication = connection.spec.get("authentication") or {}
    if authentication.keys() - {"token"}:
        raise Invalid("spec.authentication: of oauth2, tls and token, this operator knows token alone")
    token = (authentication.get("token") or {}).get("value")
    if ref := (authentication.get("token") or {}).get("secretRef"):
        secret = await ctx.live.get(fl.Secret, ref["name"])
        token = secret_text(secret, ref["key"])
        if token is None:
            raise fl.Wait("SecretMissing", f"Secret {ref['name']} has no key {ref['key']}: put it there", after=SOON)
    try:
        return Admin(ctx.resources["http"](url, token))
    except ValueError as error:
        raise Invalid(f"spec.adminServiceURL: {error}") from error


def address_of(connection: fl.Object) -> str:
    url = connection.spec.get("adminServiceSecureURL") or connection.spec.get("adminServiceURL")
    if not url:
        raise Invalid(f"PulsarConnection {connection.name} has no address: set spec.adminServiceURL")
    return str(url)


def secret_text(secret: fl.Object | None, key: str) -> str | None:
    data = ((secret.get("data") if secret else None) or {}).get(key)
    return b64decode(data).decode().strip() if data else None


def is_current(obj: fl.Object) -> bool:
    ready = obj.condition("Ready") or {}
    return ready.get("status") == "True" and ready.get("observedGeneration") == obj.generation


# What stands on what: a tenant's arrival wakes its namespaces, a namespace's departure its tenant


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


def neighbours(mine: Resource, other: Resource, obj: fl.Object, view: fl.View) -> Iterable[fl.Object]:
    """Of my kind, those that stand on that object, and those on which it stands."""
    for key in stands_at(other, obj):
        yield from view.indexed(mine.kind, "needs", key)
    for key in stands_on(other, obj):
        yield from view.indexed(mine.kind, "place", key)


def users_of(mine: Resource, connection: fl.Object, view: fl.View) -> Iterable[fl.Object]:
    yield from view.indexed(mine.kind, "connection", f"{connection.namespace}/{connection.name}")


# The ten kinds


async def reconcile(resource: Resource, obj: fl.Object, ctx: fl.Context) -> None:
    """Bring one object about in Pulsar. Nothing is called when nothing changed since the last time."""
    connection = ctx.get(Connection, obj.spec["connectionRef"]["name"])
    if connection is None or connection.deleting or not is_current(connection):
        name = obj.spec["connectionRef"]["name"]
        raise fl.Wait("NoConnection", f"PulsarConnection {name} is not ready: create it, or see its condition Ready")
    with explained(obj, connection, ctx):
        order = order_of(obj, ctx)
        path, digest = resource.path(order), resource.digest(address_of(connection), order)
        if is_current(obj) and obj.status.get("digest") == digest:
            return
        await_parents(resource, obj, ctx)
        admin = await admin_of(connection, ctx)
        order = await with_cluster(order, connection, admin)
        path = resource.path(order)  # again, now that it is known which cluster this is
        settings, place = sorted(resource.settings(order)), {"connection": connection.name, "path": path}
        applied = obj.status.get("applied") or place
        if any(applied[key] != value for key, value in place.items()):
            if not resource.moves:
                raise Invalid(
                    f"it is {applied['path']} behind PulsarConnection {applied['connection']} and cannot move: "
                    "change it back, or delete this object and create another"
                )
            await take_away(resource, obj, applied, ctx)
            applied = place
        dropped = sorted({*(applied.get("settings") or ())} - {*settings})
    # Before the first effect: whatever may be in Pulsar is known to whoever cleans up.
    await ctx.decide(partial(remember, {**place, "settings": sorted({*settings, *dropped})}))
    with explained(obj, connection, ctx):
        await resource.apply(admin, order, dropped)
    ctx.status(applied={**place, "settings": settings}, digest=digest)


def await_parents(resource: Resource, obj: fl.Object, ctx: fl.Context) -> None:
    """Where an object of ours is to make what this one needs, do not try before it has."""
    for key in stands_on(resource, obj):
        parents = [parent for other in RESOURCES for parent in ctx.indexed(other.kind, "place", key)]
        if parents and not any(is_current(parent) for parent in parents):
            raise fl.Wait("NotYet", f"{parents[0].kind} {parents[0].name} comes first: see its condition Ready")


def remember(applied: dict[str, Any], draft: fl.Draft) -> None:
    if draft.status.get("applied") != applied:
        draft.status["applied"] = applied


async def leave(resource: Resource, obj: fl.Object, ctx: fl.Context) -> None:
    """Take out of Pulsar what was put there; what was never put there holds nothing up."""
    if obj.spec.get("lifecyclePolicy") == "KeepAfterDeletion":
        return
    if not obj.status.get("applied"):  # then look live: another process may have begun
        live = await ctx.live.get(resource.kind, obj.name)
        if live is None or live.uid != obj.uid or not live.status.get("applied"):
            return
        obj = live
    await take_away(resource, obj, obj.status["applied"], ctx)


async def take_away(resource: Resource, obj: fl.Object, applied: dict[str, Any], ctx: fl.Context) -> None:
    """Out of Pulsar with what is remembered."""
    name, path = applied["connection"], applied["path"]
    connection = ctx.get(Connection, name)
    if connection is None:
        raise fl.Wait(
            "NoConnection",
            f"{path} is to be taken out of Pulsar, and PulsarConnection {name} is gone: create it again, or set "
            "lifecyclePolicy to KeepAfterDeletion to leave it there",
        )
    with explained(obj, connection, ctx):
        await resource.remove(await admin_of(connection, ctx), path, applied.get("settings") or ())


def order_of(obj: fl.Object, ctx: fl.Context) -> Order:
    """The spec, and what it refers to. Waits for what is not there yet."""
    far = []
    for ref in obj.spec.get("geoReplicationRefs") or ():
        geo = ctx.get(GeoReplication, ref["name"])
        if geo is None or not is_current(geo):
            raise fl.Wait(
                "NoGeoReplication", f"PulsarGeoReplication {ref['name']} is not ready: create it, or see its Ready"
            )
        far.append(geo.status["applied"]["path"].rpartition("/")[2])
    destination = None
    if ref := obj.spec.get("destinationConnectionRef"):
        destination = ctx.get(Connection, ref["name"])
        if destination is None:
            raise fl.Wait("NoConnection", f"PulsarConnection {ref['name']} of the far cluster is missing: create it")
    return Order(obj.spec, "", tuple(far), destination.spec if destination else {}, ctx.resources["http"].fetch)


async def with_cluster(order: Order, connection: fl.Object, admin: Admin) -> Order:
    """The order with this cluster's name, asked for where the connection does not say it."""
    local = connection.spec.get("clusterName")
    if not local:
        clusters = await admin.get("/v2/clusters")
        local = clusters[0] if len(clusters) == 1 else ""  # among several, only the connection can tell
    return replace(order, local=local)


@contextmanager
def explained(obj: fl.Object, connection: fl.Object, ctx: fl.Context) -> Iterator[None]:
    """What goes wrong with Pulsar, as a condition that says what to do, and a look later: never a hot retry."""
    try:
        yield
    except Invalid as error:
        raise fl.Terminal("Invalid", str(error)) from error
    except Refused as error:
        reason, remedy, least = _remedy(error.status, obj.deleting)
        said = f"Pulsar says: {error}. {remedy.format(name=connection.name)}"
        raise fl.Wait(reason, said, after=backed_off(obj, ctx, least)) from error
    except OSError as error:
        raise fl.Wait(
            "Unreachable",
            f"cannot reach Pulsar ({error}): check the address in PulsarConnection {connection.name}, and that"
            " Pulsar is up",
            after=backed_off(obj, ctx, SOON),
        ) from error


def backed_off(obj: fl.Object, ctx: fl.Context, least: float) -> float:
    """As long again as the object has not been Ready already, within bounds: the time doubles, also over a restart."""
    ready = obj.condition("Ready") or {}
    if ready.get("status") != "False":
        return least
    since = datetime.fromisoformat(ready["lastTransitionTime"]).timestamp()
    return min(LATER, max(least, ctx.world.clock.now() - since))


def _remedy(status: int, deleting: bool) -> tuple[str, str, float]:
    match status:
        case 301 | 302 | 307 | 308:
            return "Redirected", "Let PulsarConnection {name} point at Pulsar's proxy, not at one of its brokers", LATER
        case 401 | 403:
            return "Forbidden", "Check the token of PulsarConnection {name}, and what it may do", LATER
        case 404:
            return "Missing", "Create what this is in, or wait until it is there", SOON
        case 409:
            return "InUse", "Remove what is still in it", SOON
        case 412 if deleting:
            return "InUse", "Stop what still uses it", SOON
        case _ if status >= 500:
            return "Failing", "See the broker's log", SOON
        case _:
            return "Refused", "Change the spec accordingly", LATER


for one in RESOURCES:
    op.index(one.kind, "connection")(lambda obj: [f"{obj.namespace}/{name}" for name in connections_of(obj)])
    op.index(one.kind, "place")(partial(stands_at, one))
    op.index(one.kind, "needs")(partial(stands_on, one))
    around = {other.kind: partial(neighbours, one, other) for other in RESOURCES if other is not one}
    op.reconcile(one.kind, watches={Connection: partial(users_of, one), **around})(partial(reconcile, one))
    op.cleanup(one.kind, finalizer=FINALIZER)(partial(leave, one))


if __name__ == "__main__":
    op.main()
