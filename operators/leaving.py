"""What a story leaves behind on a server that goes on after it."""

from collections.abc import Collection
from contextlib import suppress

from fairlead.api.errors import NotFound
from fairlead.client.client import Client, PatchType


async def leave(client: Client, namespace: str, resources: Collection[str]) -> None:
    """Delete the story's namespace and whatever has that in its name: further namespaces, and what is in none.

    Finalizers go off everything in them: those who would have done it left with the story, and a namespace waits for
    ever for an object that has one. Only the kinds in `resources`, those that the story spoke of, are looked at. CRDs
    stay, and so does what came with them under a name of its own.
    """
    kinds = {
        (served.kind.group, served.kind.plural): served.kind
        for served in await client.kinds()
        if served.kind.plural in {*resources, "namespaces"} and served.verbs >= {"list", "patch", "delete"}
    }
    for kind in kinds.values():
        for obj in (await client.list(kind, metadata_only=True)).items:
            if namespace not in (obj.namespace or obj.name):
                continue
            with suppress(NotFound):
                if obj.finalizers:
                    bare = {"metadata": {"finalizers": None, "uid": obj.uid}}
                    await client.patch(kind, obj.name, obj.namespace, bare, type=PatchType.MERGE)
                if not obj.namespace:
                    await client.delete(kind, obj.name, uid=obj.uid)
