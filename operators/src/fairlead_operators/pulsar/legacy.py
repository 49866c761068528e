"""The legacy Pulsar operator: one controller for all kinds, and three ways to write a finalizer.

The order of the writes and the mistakes are those of the original. README.md describes the consequences.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

import fairlead as fl
from fairlead.api.errors import ApiError, Conflict, NotFound
from fairlead.api.times import rfc3339
from fairlead.client.client import Client, PatchType
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import ClassicContext, Key, with_metadata
from fairlead_operators.pulsar.admin import Admin, PulsarError
from fairlead_operators.pulsar.kinds import FINALIZER, Connection, GeoReplication, Namespace, Tenant, Topic
from fairlead_operators.pulsar.resources import RESOURCES, ResolvedSpec, Resource

FinalizerChange = Callable[[list[str]], list[str]]
WriteFinalizers = Callable[[ClassicContext, fl.Kind, fl.Object, FinalizerChange], Awaitable[fl.Object]]
"""Writes a change of the finalizers, based on a cached copy."""


def add_finalizer(finalizers: list[str]) -> list[str]:
    return finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]


def remove_finalizer(finalizers: list[str]) -> list[str]:
    return [name for name in finalizers if name != FINALIZER]


async def put(ctx: ClassicContext, kind: fl.Kind, obj: fl.Object, change: FinalizerChange) -> fl.Object:
    """Write finalizers in the first way: PUT the cached copy, even if nothing changed."""
    return await ctx.client.replace(with_metadata(obj, finalizers=change(obj.finalizers)))


async def merge(ctx: ClassicContext, kind: fl.Kind, obj: fl.Object, change: FinalizerChange) -> fl.Object:
    """Write finalizers in the second way: replace the whole list by a merge patch without a resourceVersion."""
    finalizers = change(obj.finalizers)
    if finalizers == obj.finalizers:
        return obj
    patch = {"metadata": {"finalizers": finalizers or None}}
    return await ctx.client.patch(kind, obj.name, obj.namespace, patch, type=PatchType.MERGE)


async def retry(ctx: ClassicContext, kind: fl.Kind, obj: fl.Object, change: FinalizerChange) -> fl.Object:
    """Write finalizers in the third way: PUT, and after a conflict read the cache again, five times within 50 ms."""
    for attempt in range(5):
        cached = ctx.get(kind, (obj.namespace, obj.name)) or obj
        try:
            return await ctx.client.replace(with_metadata(cached, finalizers=change(cached.finalizers)))
        except Conflict:
            if attempt == 4:
                raise
            await asyncio.sleep(0.01)
    raise AssertionError("unreachable")


FINALIZER_WRITES: dict[str, WriteFinalizers] = {"put": put, "merge": merge, "retry": retry}


def running(
    client: Client,
    world: fl.World,
    http: Any,
    *,
    write: WriteFinalizers = put,
    namespace: str | None = None,
    on_reconcile: Callable[[str, bool], None] = lambda name, failed: None,
) -> AbstractAsyncContextManager[ClassicContext]:
    """Return a context manager that runs the legacy controller.

    One reconcile handles a connection and all objects that use it.
    """
    return classic_controller.running(
        client,
        world,
        partial(reconcile, write=write, http=http),
        namespace=namespace,
        primary=Connection,
        watches={resource.kind: _connection_of for resource in RESOURCES},
        on_reconcile=on_reconcile,
    )


def _connection_of(obj: fl.Object, ctx: ClassicContext) -> Iterable[Key]:
    yield obj.namespace, obj.spec["connectionRef"]["name"]


async def reconcile(key: Key, ctx: ClassicContext, *, write: WriteFinalizers, http: Any) -> None:
    connection = ctx.get(Connection, key)
    if connection is None:
        return
    children = [
        (resource, obj)
        for resource in RESOURCES
        for obj in ctx.list(resource.kind, connection.namespace)
        if obj.spec["connectionRef"]["name"] == connection.name
    ]
    if not connection.deleting:
        connection = await write(ctx, Connection, await _with_url(connection, ctx), add_finalizer)
    errors: list[Exception] = []
    for resource, obj in reversed(children) if connection.deleting else children:
        try:
            await _reconcile_child(
                resource, obj, connection, ctx, write, Admin(http(connection.spec["adminServiceURL"]))
            )
        except (ApiError, OSError, PulsarError) as error:
            errors.append(error)
    if errors:
        # One error puts the whole connection, with all its objects, into backoff.
        raise OSError("; ".join(map(str, errors)))
    counted = (Tenant, Namespace, Topic, GeoReplication)  # the original forgot the other six kinds
    if connection.deleting and not any(resource.kind in counted for resource, _ in children):
        with suppress(NotFound):
            await write(ctx, Connection, connection, remove_finalizer)
    elif not connection.deleting:
        await _report(connection, ctx)


async def _with_url(connection: fl.Object, ctx: ClassicContext) -> fl.Object:
    """Return the connection with the default for adminServiceURL. The caller writes the whole cached object."""
    secure = connection.spec.get("adminServiceSecureURL")
    if connection.spec.get("adminServiceURL") or not secure:
        return connection
    return fl.Object({**connection, "spec": {**connection.spec, "adminServiceURL": secure}})


async def _reconcile_child(
    resource: Resource, obj: fl.Object, connection: fl.Object, ctx: ClassicContext, write: WriteFinalizers, admin: Admin
) -> None:
    resolved = ResolvedSpec(obj.spec, connection.spec.get("clusterName", ""))
    should_exist = obj.spec.get("lifecyclePolicy") == "KeepAfterDeletion"
    if obj.deleting:
        if not should_exist:
            await resource.remove(admin, resource.path(resolved), resource.settings(resolved))
        with suppress(NotFound):
            await write(ctx, resource.kind, obj, remove_finalizer)
        return
    if not should_exist:
        obj = await write(ctx, resource.kind, obj, add_finalizer)
    if obj.is_true("Ready") and obj.status.get("observedGeneration") == obj.generation:
        return
    await resource.apply(admin, resolved, ())
    await _report(obj, ctx)


async def _report(obj: fl.Object, ctx: ClassicContext) -> None:
    if obj.is_true("Ready") and obj.status.get("observedGeneration") == obj.generation:
        return
    ready_condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Reconciled",
        "message": "",
        "observedGeneration": obj.generation,
        "lastTransitionTime": rfc3339(ctx.world.clock.now()),
    }
    status = {**obj.status, "observedGeneration": obj.generation, "conditions": [ready_condition]}
    await ctx.client.replace(fl.Object({**obj, "status": status}), subresource="status")
