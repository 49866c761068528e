"""What commands that look at a cluster share: how to reach it, and which kind a word means."""

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
class Reached:
    """A server, its name in messages, and the namespace that is meant when none is named."""

    client: Client
    world: World
    name: str
    namespace: str


def options(command: Callable[..., None]) -> Callable[..., None]:
    """--kubeconfig and --context."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in (
        click.option("--context", "context_name", help="The kubeconfig's context to use."),
        click.option("--kubeconfig", type=file, help="Default: $KUBECONFIG, the pod's own, ~/.kube/config."),
    ):
        command = option(command)
    return command


@contextlib.asynccontextmanager
async def reach(kubeconfig: Path | None, context_name: str | None) -> AsyncIterator[Reached]:
    """The server that the options mean. What cannot be reached is one line for the user."""
    from fairlead.client.http import HttpTransport
    from fairlead.client.locate import locate

    world = World()
    access = locate(world, path=kubeconfig, context=context_name)
    transport = HttpTransport(access.cluster, access.credentials)
    try:
        yield Reached(Client(transport, world, user_agent="fairlead-cli"), world, access.name, access.namespace)
    except OSError as error:
        raise UserError(f"cannot work on {access.name}: {error}") from error
    finally:
        await transport.close()


async def find_kind(client: Client, word: str) -> Kind:
    """The kind that a word means: `Widget`, `widgets`, a short name, `widgets.example.com`, `widgets.v1.example.com`.

    Raises UserError when it means none, or kinds of several groups.
    """
    lower = word.lower()
    matches: dict[tuple[str, str], Kind] = {}
    for served in await client.kinds():
        kind, group = served.kind, f".{served.kind.group}" if served.kind.group else ""
        names = {kind.kind.lower(), kind.plural, guess_plural(kind.kind), *served.short_names}
        full = {f"{name}{group}" for name in names} | {f"{name}.{kind.version}{group}" for name in names}
        if lower in names | full and "get" in served.verbs:
            matches.setdefault((kind.group, kind.kind), kind)  # of each group, the preferred version
    if not matches:
        raise UserError(f"the server serves no kind {word!r}: see `kubectl api-resources` for those that it does")
    if len(matches) > 1:
        said = ", ".join(sorted(f"{kind.plural}.{kind.group or 'core'}" for kind in matches.values()))
        core = [kind for (group, _), kind in matches.items() if not group]
        if len(core) != 1:
            raise UserError(f"{word!r} may mean {said}: name one of them")
        return core[0]  # as kubectl does
    return next(iter(matches.values()))
