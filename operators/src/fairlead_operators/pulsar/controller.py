"""The Pulsar operator: controllers for eleven kinds, built from one table."""

from base64 import b64decode
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import fairlead as fl
from fairlead_operators.pulsar.admin import Admin, HttpClients
from fairlead_operators.pulsar.dependencies import (
    connections_of,
    objects_using,
    provided_keys,
    related_objects,
    required_keys,
)
from fairlead_operators.pulsar.error_conditions import MIN_RETRY, report_errors, retry_delay
from fairlead_operators.pulsar.kinds import FINALIZER, Connection, GeoReplication
from fairlead_operators.pulsar.resources import RESOURCES, Invalid, ResolvedSpec, Resource

op = fl.Operator("pulsar")


@op.startup
async def connect(resources: dict[str, Any]) -> None:
    """Create the pool of HTTP clients, unless a test has set the resource `http`."""
    resources.setdefault("http", HttpClients())


@op.shutdown
async def close_clients(resources: dict[str, Any]) -> None:
    """Close the HTTP clients when the operator stops."""
    await resources["http"].close()


# PulsarConnection


def waiting_connections(obj: fl.Object, ctx: fl.ReadContext) -> Iterable[fl.Object]:
    """Yield the connections of an object that are being deleted, because they wait for its deletion."""
    for name in connections_of(obj):
        connection = ctx.get(Connection, name, obj.namespace)
        if connection is not None and connection.deleting:
            yield connection


@op.reconcile(Connection, watches={resource.kind: waiting_connections for resource in RESOURCES})
async def connection(obj: fl.Object, ctx: fl.Context) -> None:
    """Set the condition Ready of a PulsarConnection when Pulsar responds. Other objects wait for this condition."""
    secure = obj.spec.get("adminServiceSecureURL")
    if secure and not obj.spec.get("adminServiceURL"):
        obj = await ctx.default(spec={"adminServiceURL": secure})
    if is_ready_at_current_generation(obj):
        return
    with report_errors(obj, obj, ctx):
        await (await admin_of(obj, ctx)).clusters()


@op.cleanup(Connection, finalizer=FINALIZER)
async def disconnect(obj: fl.Object, ctx: fl.Context) -> None:
    """Delay the deletion of a connection while objects use it, because their cleanup needs the connection."""
    users = {r.kind.kind: sum(obj.name in connections_of(user) for user in ctx.list(r.kind)) for r in RESOURCES}
    if not any(users.values()):  # the cache may not have an object that was created a moment ago
        for r in RESOURCES:
            users[r.kind.kind] = sum(obj.name in connections_of(user) for user in await ctx.live.list(r.kind))
    if any(users.values()):
        counts = ", ".join(f"{count} {kind}" for kind, count in users.items() if count)
        raise fl.Wait("InUse", f"still used by {counts}: delete them, or set another connectionRef")


async def admin_of(connection: fl.Object, ctx: fl.Context) -> Admin:
    """Return a client for the admin API of a PulsarConnection, with the token from its Secret."""
    url = address_of(connection)
    authentication = connection.spec.get("authentication") or {}
    if authentication.keys() - {"token"}:
        raise Invalid("spec.authentication: this operator supports only token, not oauth2 or tls")
    token = (authentication.get("token") or {}).get("value")
    if ref := (authentication.get("token") or {}).get("secretRef"):
        secret = await ctx.live.get(fl.Secret, ref["name"])
        token = secret_text(secret, ref["key"])
        if token is None:
            raise fl.Wait(
                "SecretMissing", f"Secret {ref['name']} has no key {ref['key']}: add the token there", after=MIN_RETRY
            )
        if not is_token(token):
            raise fl.Wait(
                "SecretInvalid",
                f"key {ref['key']} of Secret {ref['name']} is not a token: write one line of printable ASCII",
                after=retry_delay(connection, ctx, MIN_RETRY),
            )
    elif token is not None and not is_token(token):
        raise Invalid("spec.authentication.token.value is not a token: write one line of printable ASCII")
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
    encoded_text = ((secret.get("data") if secret else None) or {}).get(key)
    return b64decode(encoded_text).decode(errors="replace").strip() if encoded_text else None


def is_token(text: str) -> bool:
    """Return whether the text can be sent as a token in an HTTP header."""
    return text.isascii() and text.isprintable()


def is_ready_at_current_generation(obj: fl.Object) -> bool:
    ready_condition = obj.condition("Ready") or {}
    return ready_condition.get("status") == "True" and ready_condition.get("observedGeneration") == obj.generation


# The other ten kinds


async def reconcile(resource: Resource, obj: fl.Object, ctx: fl.Context) -> None:
    """Create or update the Pulsar resource of an object. Send nothing if nothing has changed."""
    connection = ctx.get(Connection, obj.spec["connectionRef"]["name"])
    if connection is None or connection.deleting or not is_ready_at_current_generation(connection):
        name = obj.spec["connectionRef"]["name"]
        raise fl.Wait("NoConnection", f"PulsarConnection {name} is not ready: create it, or check its condition Ready")
    with report_errors(obj, connection, ctx):
        resolved = resolve_references(obj, ctx)
        path, digest = resource.path(resolved), resource.digest(address_of(connection), resolved)
        if is_ready_at_current_generation(obj) and obj.status.get("digest") == digest:
            return
        wait_for_dependencies(resource, obj, ctx)
        admin = await admin_of(connection, ctx)
        resolved = await resolve_cluster(resolved, connection, admin)
        path = resource.path(resolved)  # the path may depend on the cluster
        settings, location = sorted(resource.settings(resolved)), {"connection": connection.name, "path": path}
        applied = obj.status.get("applied") or location
        if any(applied[key] != value for key, value in location.items()):
            if not resource.can_move:
                raise Invalid(
                    f"it is {applied['path']} in PulsarConnection {applied['connection']} and cannot move: "
                    "change the spec back, or delete this object and create another"
                )
            await remove_from_pulsar(resource, obj, applied, ctx)
            applied = location
        dropped = sorted({*(applied.get("settings") or ())} - {*settings})
    # Write this before the first request to Pulsar, so that the cleanup knows what may exist there.
    await ctx.decide(partial(write_applied, {**location, "settings": sorted({*settings, *dropped})}))
    with report_errors(obj, connection, ctx):
        await resource.apply(admin, resolved, dropped)
    ctx.status(applied={**location, "settings": settings}, digest=digest)


def wait_for_dependencies(resource: Resource, obj: fl.Object, ctx: fl.Context) -> None:
    """Raise Wait if another object that creates a required Pulsar resource is not ready yet."""
    for key in required_keys(resource, obj):
        parents = [parent for other in RESOURCES for parent in ctx.indexed(other.kind, "provides", key)]
        if parents and not any(is_ready_at_current_generation(parent) for parent in parents):
            raise fl.Wait("NotYet", f"waiting for {parents[0].kind} {parents[0].name}: check its condition Ready")


def write_applied(applied: dict[str, Any], draft: fl.Draft) -> None:
    if draft.status.get("applied") != applied:
        draft.status["applied"] = applied


async def clean_up(resource: Resource, obj: fl.Object, ctx: fl.Context) -> None:
    """Delete the Pulsar resources of a deleted object, unless its lifecyclePolicy keeps them."""
    if obj.spec.get("lifecyclePolicy") == "KeepAfterDeletion":
        return
    if not obj.status.get("applied"):  # read the live object: another process may have started
        live = await ctx.live.get(resource.kind, obj.name)
        if live is None or live.uid != obj.uid or not live.status.get("applied"):
            return
        obj = live
    await remove_from_pulsar(resource, obj, obj.status["applied"], ctx)


async def remove_from_pulsar(resource: Resource, obj: fl.Object, applied: dict[str, Any], ctx: fl.Context) -> None:
    """Delete the Pulsar resource that `applied` (from the object's status) describes."""
    name, path = applied["connection"], applied["path"]
    connection = ctx.get(Connection, name)
    if connection is None:
        raise fl.Wait(
            "NoConnection",
            f"cannot delete {path} from Pulsar, because PulsarConnection {name} does not exist: create it, or set "
            "lifecyclePolicy to KeepAfterDeletion to keep it in Pulsar",
        )
    with report_errors(obj, connection, ctx):
        await resource.remove(await admin_of(connection, ctx), path, applied.get("settings") or ())


def resolve_references(obj: fl.Object, ctx: fl.Context) -> ResolvedSpec:
    """Return the spec with the objects that it refers to. Raises Wait if one of them does not exist yet."""
    remote_clusters = []
    for ref in obj.spec.get("geoReplicationRefs") or ():
        geo = ctx.get(GeoReplication, ref["name"])
        if geo is None or not is_ready_at_current_generation(geo):
            raise fl.Wait(
                "NoGeoReplication",
                f"PulsarGeoReplication {ref['name']} is not ready: create it, or check its condition Ready",
            )
        remote_clusters.append(geo.status["applied"]["path"].rpartition("/")[2])
    destination = None
    if ref := obj.spec.get("destinationConnectionRef"):
        destination = ctx.get(Connection, ref["name"])
        if destination is None:
            raise fl.Wait(
                "NoConnection", f"PulsarConnection {ref['name']} of the destination does not exist: create it"
            )
    return ResolvedSpec(
        obj.spec, "", tuple(remote_clusters), destination.spec if destination else {}, ctx.resources["http"].fetch
    )


async def resolve_cluster(resolved: ResolvedSpec, connection: fl.Object, admin: Admin) -> ResolvedSpec:
    """Return a copy of the resolved spec with the name of the local cluster, from the connection or from Pulsar."""
    local = connection.spec.get("clusterName")
    if not local:
        clusters = await admin.clusters()
        local = clusters[0] if len(clusters) == 1 else ""  # the connection has to name one of several
    return replace(resolved, local_cluster=local)


for resource in RESOURCES:
    op.index(resource.kind, "connection")(lambda obj: [f"{obj.namespace}/{name}" for name in connections_of(obj)])
    op.index(resource.kind, "provides")(partial(provided_keys, resource))
    op.index(resource.kind, "requires")(partial(required_keys, resource))
    related = {other.kind: partial(related_objects, resource, other) for other in RESOURCES if other is not resource}
    op.reconcile(resource.kind, watches={Connection: partial(objects_using, resource), **related})(
        partial(reconcile, resource)
    )
    op.cleanup(resource.kind, finalizer=FINALIZER)(partial(clean_up, resource))


if __name__ == "__main__":
    op.main()
