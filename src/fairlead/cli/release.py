"""`fairlead release`: an operator's finalizer off every object of some kinds, when it is uninstalled."""

import asyncio
from pathlib import Path

import click

from fairlead.api.errors import ApiError, UserError
from fairlead.cli.cluster import find_kind, options, reach
from fairlead.writes import WriteError, Writer
from fairlead.writes.finalizers import release_all


@click.command("release")
@click.argument("kinds", nargs=-1, required=True, metavar="KIND…")
@click.option("--finalizer", required=True, help="The one to take off; all others stay.")
@click.option("-n", "--namespace", help="Default: every namespace.")
@options
def command(
    kinds: tuple[str, ...], finalizer: str, namespace: str | None, kubeconfig: Path | None, context_name: str | None
) -> None:
    """Take an operator's finalizer off every object.

    For an uninstall: without the operator nothing would take it off, and the objects could never go. Stop the operator
    first, or it puts it on again. What its clean-up would have done is not done.
    """
    asyncio.run(_release(kinds, finalizer, namespace, kubeconfig, context_name))


async def _release(
    words: tuple[str, ...], finalizer: str, namespace: str | None, kubeconfig: Path | None, context_name: str | None
) -> None:
    async with reach(kubeconfig, context_name) as place:
        writer = Writer(place.client, place.world, "fairlead-release")
        for kind in [await find_kind(place.client, word) for word in words]:
            try:
                count = await release_all(writer, kind, finalizer, namespace if kind.namespaced else None)
            except (ApiError, WriteError) as error:
                raise UserError(f"{kind.plural}: {error}: start it again once that is mended") from error
            click.echo(f"{count} {kind.plural} released")
