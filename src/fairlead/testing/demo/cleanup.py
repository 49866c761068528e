"""What a story leaves behind on a server that goes on after it: nothing."""

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
from fairlead.testing.demo.stage import STORY, bounded

PATIENCE = 60.0
"""Seconds for CRDs to go: the server deletes their objects first, which takes it a few."""


async def see_through(clean_up: Coroutine[Any, Any, None]) -> None:
    """Run it to its end although this task is told to stop, before or meanwhile; told twice, it is cut."""
    task, here = asyncio.ensure_future(clean_up), asyncio.current_task()
    if here is not None and here.cancelling():
        await task
        return
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def leave(client: Client, namespace: str, resources: Collection[str]) -> None:
    """Delete the story's namespace and whatever has that in its name or as its label STORY: further namespaces, what is
    in none, and the CRDs that came with it. Namespaces go on emptying themselves when this returns.

    Finalizers go off everything in them: those who would have done it left with the story, and a namespace waits for
    ever for an object that has one. In namespaces only the kinds in `resources` are looked at, those that the story
    spoke of, and those of its CRDs. A CRD of which somebody else has made an object meanwhile stays.
    """
    label = f"{STORY}={namespace}"
    crds = await client.list(CustomResourceDefinition, labels=label, metadata_only=True)
    ours = {(group, plural): crd for crd in crds.items for plural, _, group in [crd.name.partition(".")]}
    for key, kind in (await _deletable(client)).items():
        if kind.namespaced and kind.plural not in resources and key not in ours:
            continue
        with suppress(Forbidden):  # who may not list a kind has made none of it
            found = (await client.list(kind, metadata_only=True)).items
            mine = [
                obj for obj in found if namespace in (obj.namespace or obj.name) or obj.labels.get(STORY) == namespace
            ]
            if len(mine) < len(found):
                ours.pop(key, None)
            await asyncio.gather(*map(bounded(partial(_away, client, kind)), mine))
    for crd in ours.values():
        with suppress(NotFound):
            await client.delete(CustomResourceDefinition, crd.name, uid=crd.uid)
            await _gone(client, crd)


async def _deletable(client: Client) -> dict[tuple[str, str], Kind]:
    """What a story can have made. Not the CRDs: theirs is the last turn."""
    return {
        (served.kind.group, served.kind.plural): served.kind
        for served in await client.kinds()
        if served.verbs >= {"list", "patch", "delete"} and served.kind.plural != "customresourcedefinitions"
    }


async def _away(client: Client, kind: Kind, obj: Object) -> None:
    """What is in a namespace goes with that."""
    with suppress(NotFound):
        if obj.finalizers:
            bare = {"metadata": {"finalizers": None, "uid": obj.uid}}
            await client.patch(kind, obj.name, obj.namespace, bare, type=PatchType.MERGE)
        if not obj.namespace:
            await client.delete(kind, obj.name, uid=obj.uid)


async def _gone(client: Client, crd: Object) -> None:
    """Until it is, nobody could install it anew."""
    async with asyncio.timeout(PATIENCE):
        while (await client.get(CustomResourceDefinition, crd.name)).uid == crd.uid:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
