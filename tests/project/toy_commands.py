"""Subcommands for the tests of fairlead.cli.shell."""

import asyncio
import sys

import click

from fairlead.api.errors import UserError
from fairlead.cli.shell import CommandLine, LazyGroup


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("-n", "--namespace", default="default")
def read(file, namespace):
    """Read a file."""
    click.echo(namespace)


@click.command()
def refuse():
    """Raise a UserError."""
    raise UserError("the kubeconfig /x\x1b[2J cannot be read: check its mode")


@click.command()
def wait():
    """Wait forever."""

    async def main():
        print("waiting", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


@click.command()
def talk():
    """Print lines until interrupted."""
    while True:
        print("x" * 10_000)


COMMANDS = {name: CommandLine(f"toy_commands:{name}", f"Toy {name}.") for name in ("read", "refuse", "wait", "talk")}


@click.group(cls=LazyGroup, sections={"Commands": COMMANDS}, context_settings={"auto_envvar_prefix": "FAIRLEAD"})
def toy():
    """Run the commands of these tests."""


if __name__ == "__main__":
    sys.modules["toy_commands"] = sys.modules["__main__"]
    toy()
