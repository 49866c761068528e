"""The Pulsar operator: eleven kinds by one table, each let go by one finalizer that never takes another's along."""

from base64 import b64decode
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import fairlead as fl
from fairlead_operators.pulsar.admin import Admin, Doors
from fairlead_operators.pulsar.neighbours import connections_of, neighbours, stands_at, stands_on, users_of
from fairlead_operators.pulsar.resources import (
    FINALIZER,
    RESOURCES,
    Connection,
    GeoReplication,
    Invalid,
    Order,
    Resource,
)
from fairlead_operators.pulsar.trouble import SOON, backed_off, explained

op = fl.Operator("pulsar")


@op.startup
async def connect(resources: dict[str, Any]) -> None:
    """`http`, where a test hands in no other, opens an HTTP client for an address and a token."""
    resources.setdefault("http", Doors())


@op.shutdown
async def hang_up(resources: dict[str, Any]) -> None:
    await resources["http"].close()


# The connection


def waiting_connections(obj: fl.Object, view: fl.ReadContext) -> Iterable[fl.Object]:
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
        await (await admin_of(obj, ctx)).clusters()


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
        if not is_token(token):
            raise fl.Wait(
                "SecretInvalid",
                f"key {ref['key']} of Secret {ref['name']} is no token, one line of plain ASCII: put one there",
                after=backed_off(connection, ctx, SOON),
            )
    elif token is not None and not is_token(token):
        raise Invalid("spec.authentication.token.value is no token, one line of plain ASCII: change it")
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
    return b64decode(data).decode(errors="replace").strip() if data else None


def is_token(text: str) -> bool:
    """Whether it can be sent in a header; what was no text in the Secret cannot."""
    return text.isascii() and text.isprintable()


def is_current(obj: fl.Object) -> bool:
    ready = obj.condition("Ready") or {}
    return ready.get("status") == "True" and ready.get("observedGeneration") == obj.generation


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
        clusters = await admin.clusters()
        local = clusters[0] if len(clusters) == 1 else ""  # among several, only the connection can tell
    return replace(order, local=local)


for one in RESOURCES:
    op.index(one.kind, "connection")(lambda obj: [f"{obj.namespace}/{name}" for name in connections_of(obj)])
    op.index(one.kind, "place")(partial(stands_at, one))
    op.index(one.kind, "needs")(partial(stands_on, one))
    around = {other.kind: partial(neighbours, one, other) for other in RESOURCES if other is not one}
    op.reconcile(one.kind, watches={Connection: partial(users_of, one), **around})(partial(reconcile, one))
    op.cleanup(one.kind, finalizer=FINALIZER)(partial(leave, one))


if __name__ == "__main__":
    op.main()
