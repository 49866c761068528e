"""Read and install the CRDs of a reference system."""

import asyncio
from collections.abc import Mapping
from importlib import resources
from typing import Any

import fairlead as fl
from fairlead.api import documents
from fairlead.api.errors import AlreadyExists
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed


def definitions(package: str) -> list[dict[str, Any]]:
    """Return the CRDs in the folder `crds` of a package."""
    folder = resources.files(package) / "crds"
    paths = sorted((p for p in folder.iterdir() if p.name.endswith((".json", ".yaml"))), key=lambda p: p.name)
    return [crd for path in paths for crd in documents.parse_all(path.read_bytes())]


async def install(client: Client, package: str, labels: Mapping[str, str] | None = None) -> None:
    """Create the missing CRDs of a package with `labels`, and wait until the server serves their kinds."""
    for crd in definitions(package):
        try:
            await client.create({**crd, "metadata": {**crd["metadata"], "labels": dict(labels or {})}})
        except AlreadyExists:
            continue
        spec = crd["spec"]
        version = next(v["name"] for v in spec["versions"] if v["storage"])
        kind = fl.kind(f"{spec['group']}/{version}", spec["names"]["kind"], spec["names"]["plural"])
        for _ in range(200):
            try:
                await client.list(kind, limit=1)
                break
            except NotServed:
                await asyncio.sleep(0.05)
