"""`fairlead finalizers remove`: remove an operator's finalizer from every object of some kinds."""

import asyncio
from pathlib import Path

import click

from fairlead.api.errors import ApiError, UserError
from fairlead.cli.cluster import connect, connection_options, find_kind
from fairlead.writes import WriteError, Writer
from fairlead.writes.finalizers import release_all


@click.group("finalizers")
def command() -> None:
    """Remove the finalizer of an operator that is uninstalled."""


@command.command("remove")
@click.argument("kinds", nargs=-1, required=True, metavar="KIND…")
@click.option("--finalizer", required=True, help="The finalizer to remove; all others stay.")
@click.option("-n", "--namespace", help="Default: every namespace.")
@connection_options
def remove(
    kinds: tuple[str, ...], finalizer: str, namespace: str | None, kubeconfig: Path | None, context_name: str | None
) -> None:
    """Remove one finalizer from every object of the given kinds.

    Use it to uninstall an operator: without the operator nothing else removes its finalizer, and the objects cannot be
    deleted. Stop the operator first, or it adds the finalizer again. The operator's clean-up does not run.
    """
    asyncio.run(_remove(kinds, finalizer, namespace, kubeconfig, context_name))


async def _remove(
    kind_names: tuple[str, ...],
    finalizer: str,
    namespace: str | None,
    kubeconfig: Path | None,
    context_name: str | None,
) -> None:
    async with connect(kubeconfig, context_name) as connection:
        writer = Writer(connection.client, connection.world, "fairlead-finalizers")
        for kind in [await find_kind(connection.client, name) for name in kind_names]:
            try:
                count = await release_all(writer, kind, finalizer, namespace if kind.namespaced else None)
            except (ApiError, WriteError) as error:
                raise UserError(f"{kind.plural}: {error}. Correct this and run the command again") from error
            click.echo(f"removed {finalizer} from {count} {kind.plural}")
