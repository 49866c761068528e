"""The write paths of the incident: one controller for everything, and a finalizer written in each of the three ways.

Kept as they were, in the order in which they were, mistakes included; README.md tells what came of each.
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
from fairlead_operators import old_way
from fairlead_operators.old_way import Key, View, with_metadata
from fairlead_operators.pulsar.admin import Admin, Refused
from fairlead_operators.pulsar.resources import (
    FINALIZER,
    RESOURCES,
    Connection,
    GeoReplication,
    Namespace,
    Order,
    Resource,
    Tenant,
    Topic,
)

Change = Callable[[list[str]], list[str]]
Write = Callable[[View, fl.Kind, fl.Object, Change], Awaitable[fl.Object]]
"""Brings a change of the finalizers to the server, from the copy at hand."""


def added(finalizers: list[str]) -> list[str]:
    return finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]


def removed(finalizers: list[str]) -> list[str]:
    return [name for name in finalizers if name != FINALIZER]


async def put(view: View, kind: fl.Kind, obj: fl.Object, change: Change) -> fl.Object:
    """The first form: PUT the cached copy, changed or not."""
    return await view.client.replace(with_metadata(obj, finalizers=change(obj.finalizers)))


async def merge(view: View, kind: fl.Kind, obj: fl.Object, change: Change) -> fl.Object:
    """The second: a merge patch from the cached copy. It has no version, and a list in it replaces the whole list."""
    wanted = change(obj.finalizers)
    if wanted == obj.finalizers:
        return obj
    patch = {"metadata": {"finalizers": wanted or None}}
    return await view.client.patch(kind, obj.name, obj.namespace, patch, type=PatchType.MERGE)


async def retry(view: View, kind: fl.Kind, obj: fl.Object, change: Change) -> fl.Object:
    """The third: on a conflict read again, five times, 10 ms apart; from the same cache."""
    for attempt in range(5):
        cached = view.get(kind, (obj.namespace, obj.name)) or obj
        try:
            return await view.client.replace(with_metadata(cached, finalizers=change(cached.finalizers)))
        except Conflict:
            if attempt == 4:
                raise
            await asyncio.sleep(0.01)
    raise AssertionError("unreachable")


FORMS: dict[str, Write] = {"put": put, "merge": merge, "retry": retry}


def running(
    client: Client,
    world: fl.World,
    http: Any,
    *,
    form: Write = put,
    namespace: str | None = None,
    seen: Callable[[str, bool], None] = lambda name, failed: None,
) -> AbstractAsyncContextManager[View]:
    """The controller at work: keyed by the connection, which stands for all that point at it."""
    return old_way.running(
        client,
        world,
        partial(reconcile, form=form, http=http),
        namespace=namespace,
        primary=Connection,
        watches={resource.kind: _connection_of for resource in RESOURCES},
        seen=seen,
    )


def _connection_of(obj: fl.Object, view: View) -> Iterable[Key]:
    yield obj.namespace, obj.spec["connectionRef"]["name"]


async def reconcile(key: Key, view: View, *, form: Write, http: Any) -> None:
    connection = view.get(Connection, key)
    if connection is None:
        return
    children = [
        (resource, obj)
        for resource in RESOURCES
        for obj in view.list(resource.kind, connection.namespace)
        if obj.spec["connectionRef"]["name"] == connection.name
    ]
    if not connection.deleting:
        connection = await form(view, Connection, await _with_url(connection, view), added)
    errors: list[Exception] = []
    for resource, obj in reversed(children) if connection.deleting else children:
        try:
            await _child(resource, obj, connection, view, form, Admin(http(connection.spec["adminServiceURL"])))
        except (ApiError, OSError, Refused) as error:
            errors.append(error)
    if errors:
        # One for all: whatever happened to one of them, the whole connection backs off and is walked again.
        raise OSError("; ".join(map(str, errors)))
    counted = (Tenant, Namespace, Topic, GeoReplication)  # the other six were forgotten
    if connection.deleting and not any(resource.kind in counted for resource, _ in children):
        with suppress(NotFound):
            await form(view, Connection, connection, removed)
    elif not connection.deleting:
        await _report(connection, view)


async def _with_url(connection: fl.Object, view: View) -> fl.Object:
    """The default, written with the whole of the cached copy."""
    secure = connection.spec.get("adminServiceSecureURL")
    if connection.spec.get("adminServiceURL") or not secure:
        return connection
    return fl.Object({**connection, "spec": {**connection.spec, "adminServiceURL": secure}})


async def _child(
    resource: Resource, obj: fl.Object, connection: fl.Object, view: View, form: Write, admin: Admin
) -> None:
    order = Order(obj.spec, connection.spec.get("clusterName", ""))
    keep = obj.spec.get("lifecyclePolicy") == "KeepAfterDeletion"
    if obj.deleting:
        if not keep:
            await resource.remove(admin, resource.path(order), resource.settings(order))
        with suppress(NotFound):
            await form(view, resource.kind, obj, removed)
        return
    if not keep:
        obj = await form(view, resource.kind, obj, added)
    if obj.is_true("Ready") and obj.status.get("observedGeneration") == obj.generation:
        return
    await resource.apply(admin, order, ())
    await _report(obj, view)


async def _report(obj: fl.Object, view: View) -> None:
    if obj.is_true("Ready") and obj.status.get("observedGeneration") == obj.generation:
        return
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Reconciled",
        "message": "",
        "observedGeneration": obj.generation,
        "lastTransitionTime": rfc3339(view.world.clock.now()),
    }
    status = {**obj.status, "observedGeneration": obj.generation, "conditions": [ready]}
    await view.client.replace(fl.Object({**obj, "status": status}), subresource="status")
