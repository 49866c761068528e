"""Run the embedded server in the process of an operator. kubectl can connect from another terminal."""

import logging
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fairlead.api import manifests
from fairlead.api.errors import ApiError, UserError
from fairlead.api.files import write_private
from fairlead.api.kinds import Kind, kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.cli.serve import kubeconfig_text
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.runtime.definitions import install_missing

log = logging.getLogger("fairlead.embedded")


@asynccontextmanager
async def run_embedded_server(world: World, name: str = "") -> AsyncIterator[Transport]:
    """Run an empty embedded server and log how to connect to it. Its objects are lost when the context ends."""
    from fairlead.server.app import Server

    token = f"{world.random.getrandbits(128):032x}"
    # As in a cluster: the garbage collector deletes dependents, and a deleted namespace loses its content.
    server = Server(world, tokens=[token], controllers=("gc", "namespace"))
    listening = await server.listen()
    try:
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            path = Path(folder) / "kubeconfig"
            write_private(path, kubeconfig_text(listening.url, token, listening.ca))
            log.info(
                "embedded server%s at %s; in another terminal: export KUBECONFIG=%s",
                f" {name}" if name else "",
                listening.url,
                path,
            )
            yield server.transport(token)
    finally:
        await listening.close()


async def prepare(transport: Transport, world: World, kinds: Iterable[Kind], objects: Sequence[Object]) -> None:
    """Apply the objects: first CRDs and namespaces, then a CRD for each missing kind, then all other objects."""
    client = Client(transport, world, user_agent="fairlead-run")
    for obj in [obj for obj in objects if manifests.is_prerequisite(obj)]:
        await _apply(client, obj)
    for missing_kind in await install_missing(client, kinds):
        log.info("no CRD for %s was found: created one whose schema allows every field", missing_kind)
    for obj in [obj for obj in objects if not manifests.is_prerequisite(obj)]:
        await _apply(client, obj)


async def _apply(client: Client, obj: Object) -> None:
    try:
        resolved = await client.resolve(kind(obj.api_version, obj.kind))
        if resolved.namespaced and not obj.namespace:
            obj = Object(obj | {"metadata": {**obj.metadata, "namespace": "default"}})
        await client.apply(obj, field_manager="fairlead-run")
        log.info("applied %s %s", obj.kind, obj.name)
    except ApiError as error:
        raise UserError(f"cannot apply {obj.kind} {obj.name}: {error}") from error
