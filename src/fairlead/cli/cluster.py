"""Functions for commands that work on a cluster: connect to it, and find the kind that an argument names."""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import click

from fairlead.api.errors import UserError
from fairlead.api.kinds import Kind, guess_plural
from fairlead.api.world import World
from fairlead.client.client import Client


@dataclass(frozen=True)
class Connection:
    """A client for a cluster, the name of the cluster for messages, and the default namespace."""

    client: Client
    world: World
    name: str
    namespace: str


def connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --kubeconfig and --context to a command."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in (
        click.option("--context", "context_name", help="The kubeconfig's context to use."),
        click.option("--kubeconfig", type=file, help="Default: $KUBECONFIG, the pod's own, ~/.kube/config."),
    ):
        command = option(command)
    return command


@contextlib.asynccontextmanager
async def connect(kubeconfig: Path | None, context_name: str | None) -> AsyncIterator[Connection]:
    """Connect to the cluster of a kubeconfig context. Raises UserError if the server cannot be reached."""
    from fairlead.client.http import HttpTransport
    from fairlead.client.locate import locate

    world = World()
    access = locate(world, path=kubeconfig, context=context_name)
    transport = HttpTransport(access.cluster, access.credentials)
    try:
        yield Connection(Client(transport, world, user_agent="fairlead-cli"), world, access.name, access.namespace)
    except OSError as error:
        raise UserError(f"cannot work on {access.name}: {error}") from error
    finally:
        await transport.close()


async def find_kind(client: Client, name: str) -> Kind:
    """Return the kind that a command-line argument names, from the kinds that the server serves.

    `name` is a kind (`Widget`), a plural, a short name, `widgets.example.com` or `widgets.v1.example.com`. Raises
    UserError if no kind has that name, or if kinds of several groups have it.
    """
    lower = name.lower()
    matches: dict[tuple[str, str], Kind] = {}
    for served_kind in await client.kinds():
        kind, group = served_kind.kind, f".{served_kind.kind.group}" if served_kind.kind.group else ""
        names = {kind.kind.lower(), kind.plural, guess_plural(kind.kind), *served_kind.short_names}
        qualified = {f"{kind_name}{group}" for kind_name in names} | {
            f"{kind_name}.{kind.version}{group}" for kind_name in names
        }
        if lower in names | qualified and "get" in served_kind.verbs:
            matches.setdefault((kind.group, kind.kind), kind)  # The preferred version of a group comes first.
    if not matches:
        raise UserError(f"the server has no kind {name!r}: list its kinds with `kubectl api-resources`")
    if len(matches) > 1:
        candidates = ", ".join(sorted(f"{kind.plural}.{kind.group or 'core'}" for kind in matches.values()))
        core = [kind for (group, _), kind in matches.items() if not group]
        if len(core) != 1:
            raise UserError(f"{name!r} is ambiguous: use one of {candidates}")
        return core[0]  # kubectl prefers the core group too.
    return next(iter(matches.values()))
