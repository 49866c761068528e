"""`fairlead blame`: show which field manager owns each field of an object."""

import asyncio
import dataclasses
import json
from pathlib import Path

import click

from fairlead.api.errors import ApiError, NotFound, UserError
from fairlead.api.objects import Object
from fairlead.api.text import printable
from fairlead.cli.cluster import connect, connection_options, find_kind
from fairlead.tools.blame import Owner, blame, fights

COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red")


@click.command("blame")
@click.argument("kind")
@click.argument("name")
@click.option("-n", "--namespace", help="Default: the context's namespace.")
@click.option(
    "--format", "--output", "-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@connection_options
def command(
    kind: str, name: str, namespace: str | None, output: str, kubeconfig: Path | None, context_name: str | None
) -> None:
    """Show an object with the owners of each field, and the conflicts between field managers.

    The values of Secrets are hidden.
    """
    obj = asyncio.run(_get(kind, name, namespace, kubeconfig, context_name))
    if output == "json":
        fields = [
            {"path": line.path, "owners": [dataclasses.asdict(owner) for owner in line.owners]}
            for line in blame(obj)
            if line.path and line.owners
        ]
        conflicts = [dataclasses.asdict(fight) for fight in fights(obj)]
        click.echo(json.dumps({"fields": fields, "fights": conflicts}, indent=2))
    else:
        _print(obj)


async def _get(
    kind_name: str, name: str, namespace: str | None, kubeconfig: Path | None, context_name: str | None
) -> Object:
    async with connect(kubeconfig, context_name) as connection:
        kind = await find_kind(connection.client, kind_name)
        object_namespace = (namespace or connection.namespace) if kind.namespaced else None
        try:
            return await connection.client.get(kind, name, object_namespace)
        except NotFound:
            namespace_hint = f" in the namespace {object_namespace}: choose another with -n" if object_namespace else ""
            raise UserError(f"there is no {kind.kind} {name}{namespace_hint}") from None
        except ApiError as error:
            raise UserError(f"{connection.name} rejects the request: {error}") from None
        except ValueError as error:  # No object can have this name.
            raise UserError(str(error)) from None


def _print(obj: Object) -> None:
    lines = blame(obj)
    managers = dict.fromkeys(owner.manager for line in lines for owner in line.owners)
    colours = {manager: COLOURS[n % len(COLOURS)] for n, manager in enumerate(managers)}
    width = min(max(len(line.text) for line in lines), 72) + 2

    def styled(owner: Owner) -> str:
        return click.style(printable(str(owner)), fg=colours[owner.manager])

    for line in lines:
        owners = " + ".join(styled(owner) for owner in line.owners)
        click.echo(f"{printable(line.text):{width}}# {owners}" if owners else printable(line.text))
    for fight in fights(obj):
        click.echo()
        click.secho(printable(" and ".join(fight.managers)), bold=True)
        click.echo(f"  {printable(fight.why)}")
        for field in fight.fields:
            click.echo(f"  {printable(field)}")
