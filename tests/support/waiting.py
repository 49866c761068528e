"""Wait until an object has the expected state, or until any condition is true."""

import asyncio
import json

import fairlead as fl

PATIENCE = 60.0
"""Seconds until a test fails. It is far longer than any wait on a busy machine."""


def there(obj):
    return obj is not None


def gone(obj):
    return obj is None


async def until(client, kind, name, namespace, holds=there):
    """Wait until `holds(obj)` is true and return the object. `obj` is None while the object does not exist."""
    fields = f"metadata.name={name}"
    async with asyncio.timeout(PATIENCE):
        while True:
            listed = await client.list(kind, namespace, fields=fields)
            obj = listed.items[0] if listed.items else None
            if holds(obj):
                return obj
            watch = client.watch(kind, namespace, fields=fields, resource_version=listed.resource_version)
            async with watch as frames:
                async for frame in frames:
                    if frame.type == "ERROR":
                        break
                    obj = None if frame.type == "DELETED" else fl.Object(json.loads(frame.raw))
                    if frame.type != "BOOKMARK" and holds(obj):
                        return obj


async def until_condition(client, kind, name, namespace, type_, status, reason):
    """Wait until the object's condition has this status and reason, and return the condition."""

    def holds(obj):
        condition = (obj.condition(type_) if obj is not None else None) or {}
        return (condition.get("status"), condition.get("reason")) == (status, reason)

    return (await until(client, kind, name, namespace, holds)).condition(type_)


async def eventually(holds):
    """Wait until `holds()` is true."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 (nothing signals it)
            await asyncio.sleep(0.02)
