"""Remove the objects that a demo created on a cluster."""

import asyncio
from collections.abc import Collection, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from fairlead.api.builtin import CustomResourceDefinition
from fairlead.api.errors import Forbidden, NotFound
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.client.client import Client, PatchType
from fairlead.testing.demo.demo_run import DEMO_LABEL, limit_concurrency

CRD_TIMEOUT = 60.0
"""Seconds to wait for the deletion of a CRD. The server deletes the objects of the CRD first, in a few seconds."""


async def finish_despite_cancel(cleanup: Coroutine[Any, Any, None]) -> None:
    """Run `cleanup` to its end, even if the current task is cancelled once. A second cancellation stops it."""
    task, current = asyncio.ensure_future(cleanup), asyncio.current_task()
    if current is not None and current.cancelling():
        await task
        return
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def remove_demo_objects(client: Client, namespace: str, resources: Collection[str]) -> None:
    """Delete the demo's namespace, and all namespaces, cluster-scoped objects and CRDs of the demo.

    An object belongs to the demo if its name contains `namespace`, or its label DEMO_LABEL has that value. The
    namespaces may still be terminating when this function returns.

    This also removes the finalizers of the objects in those namespaces, for the demo's CRDs and for the kinds in
    `resources`. The controllers that would remove them have stopped, and a namespace with such an object never goes
    away. A CRD stays if somebody else has created an object of that kind.
    """
    label = f"{DEMO_LABEL}={namespace}"
    crds = await client.list(CustomResourceDefinition, labels=label, metadata_only=True)
    own_crds = {(group, plural): crd for crd in crds.items for plural, _, group in [crd.name.partition(".")]}
    for key, kind in (await _find_deletable_kinds(client)).items():
        if kind.namespaced and kind.plural not in resources and key not in own_crds:
            continue
        with suppress(Forbidden):  # an account that may not list a kind has not created objects of it
            objects = (await client.list(kind, metadata_only=True)).items
            demo_objects = [
                obj
                for obj in objects
                if namespace in (obj.namespace or obj.name) or obj.labels.get(DEMO_LABEL) == namespace
            ]
            if len(demo_objects) < len(objects):
                own_crds.pop(key, None)
            await asyncio.gather(*map(limit_concurrency(partial(_remove, client, kind)), demo_objects))
    for crd in own_crds.values():
        with suppress(NotFound):
            await client.delete(CustomResourceDefinition, crd.name, uid=crd.uid)
            await _wait_until_deleted(client, crd)


async def _find_deletable_kinds(client: Client) -> dict[tuple[str, str], Kind]:
    """Return the kinds that a demo may have created, by (group, plural). CRDs are left out: they are deleted last."""
    return {
        (served_kind.kind.group, served_kind.kind.plural): served_kind.kind
        for served_kind in await client.kinds()
        if served_kind.verbs >= {"list", "patch", "delete"} and served_kind.kind.plural != "customresourcedefinitions"
    }


async def _remove(client: Client, kind: Kind, obj: Object) -> None:
    """Remove the finalizers of an object, and delete it if it is cluster-scoped. Others go with their namespace."""
    with suppress(NotFound):
        if obj.finalizers:
            patch = {"metadata": {"finalizers": None, "uid": obj.uid}}
            await client.patch(kind, obj.name, obj.namespace, patch, type=PatchType.MERGE)
        if not obj.namespace:
            await client.delete(kind, obj.name, uid=obj.uid)


async def _wait_until_deleted(client: Client, crd: Object) -> None:
    """Wait until the server has removed the CRD, so that it can be installed again."""
    async with asyncio.timeout(CRD_TIMEOUT):
        while (await client.get(CustomResourceDefinition, crd.name)).uid == crd.uid:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
