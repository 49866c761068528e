"""CustomResourceDefinitions that allow every field, to try an operator before its schema is written."""

import asyncio
from collections.abc import Iterable

from fairlead.api.builtin import CustomResourceDefinition
from fairlead.api.errors import AlreadyExists
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed

# A server serves a new kind within a second. After ten seconds something is wrong.
_SERVED_WITHIN = 10.0
_POLL = 0.05


def permissive(kind: Kind) -> Object:
    """Return a CRD for the kind with a schema that allows every field, and with a status subresource."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    names = {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind, "listKind": f"{kind.kind}List"}
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return CustomResourceDefinition(
        f"{kind.plural}.{kind.group}",
        spec={"group": kind.group, "scope": scope, "names": names, "versions": [version]},
    )


async def install_missing(client: Client, kinds: Iterable[Kind]) -> list[Kind]:
    """Create a CRD for each kind that the server does not serve, wait until it is served, and return these kinds.

    An existing CRD is not changed. Raises NotServed for a kind of a built-in group, because a CRD cannot add it.
    """
    missing = []
    for kind in kinds:
        try:
            await client.resolve(kind)
        except NotServed:
            if "." not in kind.group or kind.group.endswith(".k8s.io"):
                raise
            try:
                await client.create(permissive(kind))
            except AlreadyExists:
                raise NotServed(kind) from None  # The CRD exists, without this version.
            missing.append(kind)
    for kind in missing:
        async with asyncio.timeout(_SERVED_WITHIN):
            while True:
                try:
                    await client.resolve(kind)
                    break
                except NotServed:
                    await asyncio.sleep(_POLL)
    return missing
