"""The test bed: the CRDs, and where they are wanted."""

import asyncio
from importlib import resources
from typing import Any

import yaml

import fairlead as fl
from fairlead.api.errors import AlreadyExists
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed


def definitions() -> list[dict[str, Any]]:
    """The CRDs of this system."""
    folder = resources.files(__package__) / "crds"
    return [yaml.safe_load(path.read_text()) for path in sorted(folder.iterdir(), key=lambda path: path.name)]


async def install(client: Client) -> None:
    """Install them, and wait until each kind is served."""
    for crd in definitions():
        try:
            await client.create(crd)
        except AlreadyExists:
            continue
        spec = crd["spec"]
        kind = fl.kind(f"{spec['group']}/v1alpha1", spec["names"]["kind"], spec["names"]["plural"])
        for _ in range(200):
            try:
                await client.list(kind, limit=1)
                break
            except NotServed:
                await asyncio.sleep(0.05)
