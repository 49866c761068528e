"""Waiting for an object, by its events, and for what has none."""

import asyncio
import json

import fairlead as fl

PATIENCE = 60.0
"""Seconds until a test gives up: far longer than anything takes on a machine that is busy with other tests."""


def there(obj):
    return obj is not None


def gone(obj):
    return obj is None


async def until(client, kind, name, namespace, holds=there):
    """The object, once `holds` says so of it; it is handed None while there is none."""
    fields = f"metadata.name={name}"
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await client.list(kind, namespace, fields=fields)
            obj = found.items[0] if found.items else None
            if holds(obj):
                return obj
            watch = client.watch(kind, namespace, fields=fields, resource_version=found.resource_version)
            async with watch as frames:
                async for frame in frames:
                    if frame.type == "ERROR":
                        break
                    obj = None if frame.type == "DELETED" else fl.Object(json.loads(frame.raw))
                    if frame.type != "BOOKMARK" and holds(obj):
                        return obj


async def until_condition(client, kind, name, namespace, type_, status, reason):
    """The condition, once it has this status and reason."""

    def holds(obj):
        said = (obj.condition(type_) if obj is not None else None) or {}
        return (said.get("status"), said.get("reason")) == (status, reason)

    return (await until(client, kind, name, namespace, holds)).condition(type_)


async def eventually(holds):
    """Once `holds()` is true: for what no object tells of."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 (nothing signals it)
            await asyncio.sleep(0.02)
