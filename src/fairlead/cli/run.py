"""`fairlead run`: an operator against the current cluster, or with none at all."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fairlead.api import manifests
from fairlead.api.errors import ApiError, UserError
from fairlead.api.kinds import Kind
from fairlead.api.world import World
from fairlead.cli import signals
from fairlead.cli.dev import Files, until_changed
from fairlead.cli.load import NoOperator, folder, load
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.runtime import logs
from fairlead.runtime.health import address
from fairlead.runtime.leases import LeaseLost
from fairlead.runtime.operator import Operator, Options
from fairlead.runtime.sources import HOME

log = logging.getLogger("fairlead.run")

# An object that still fails at its fifth look fails for a reason.
TRIES = 5


@dataclass(frozen=True)
class Place:
    """A server to run on: how to get there, where leases go, what is meant when no namespace is named."""

    transport: Transport
    name: str
    namespaces: tuple[str, ...]
    lease_namespace: str | None
    clusters: Mapping[str, Transport]
    in_cluster: bool = False


def _options(command: Callable[..., None]) -> Callable[..., None]:
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in reversed([
        click.option("-n", "--namespace", "namespaces", multiple=True, help="Look here only (repeat for more). "
                     "Default: the context's namespace; everywhere with --embedded."),
        click.option("-A", "--all-namespaces", is_flag=True, help="Look in every namespace."),
        click.option("--kubeconfig", type=file, help="Default: $KUBECONFIG, the pod's own, ~/.kube/config."),
        click.option("--context", "context_name", help="The kubeconfig's context to use."),
        click.option("--cluster", "clusters", multiple=True, metavar="NAME=CONTEXT", help="Another cluster that the "
                     "operator names, by its context. Not with --embedded: there each that it watches is a server "
                     "of its own."),
        click.option("--embedded", is_flag=True, help="Start an API server in this process: no cluster needed."),
        click.option("--apply", "files", multiple=True, type=file, help="With --embedded: apply these first."),
        click.option("--dev", is_flag=True, help="Start the operator anew when its files change."),
        click.option("--once", is_flag=True, help="Reconcile until quiet, then leave: 0, or 1 with what failed."),
        click.option("--dry-run", is_flag=True, help="The server checks each write and stores none."),
        click.option("--leader-elect/--no-leader-elect", "elect", default=None, help="Work only while holding the "
                     "lease. Default: inside a cluster."),
        click.option("--health", metavar="[HOST:]PORT", help="Serve /healthz, /readyz and /metrics; on loopback "
                     "unless a host is named."),
        click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
        click.option("-v", "--verbose", is_flag=True, help="Log more."),
    ]):  # fmt: skip
        command = option(command)
    return command


@click.command()
@click.argument("target", metavar="FILE|MODULE|DIRECTORY")
@_options
def run(target: str, **options: Any) -> None:
    """Run the operator that a file, a module or a directory (its operator.py) defines.

    \b
    fairlead run greeter.py                  on the current kube context
    fairlead run greeter.py --embedded       with no cluster at all

    With --embedded, the definitions in a folder crds beside it are applied first; a kind without one is defined by a
    schema that allows everything.
    """
    _main(lambda: load(target), target, **options)


def main_of(operator: Operator) -> None:
    """`operator.main()`: the same, from the file itself."""
    from fairlead.cli.shell import leave_with, name_twins

    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise NoOperator(f"{operator.name} runs when it is loaded: keep op.main() below if __name__ == '__main__'")
    file = getattr(sys.modules["__main__"], "__file__", None) or operator.name

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @_options
    def main(**options: Any) -> None:
        find = (lambda: load(file)) if options["dev"] else (lambda: operator)
        _main(find, file, **options)

    main.help = f"Run the operator {operator.name}."
    name_twins(main, "fairlead_run")
    leave_with(lambda: main.main(prog_name=Path(file).name, standalone_mode=False))


def _main(find: Callable[[], Operator], target: str, *, log_format: str, verbose: bool, **options: Any) -> None:
    for first, second in (("all_namespaces", "namespaces"), ("embedded", "kubeconfig"), ("embedded", "context_name"),
                          ("embedded", "clusters"), ("dev", "once")):  # fmt: skip
        if options[first] and options[second]:
            names = [name.removesuffix("s").removesuffix("_name").replace("_", "-") for name in (first, second)]
            raise click.UsageError(f"--{names[0]} and --{names[1]} exclude each other")
    if options["files"] and not options["embedded"]:
        raise click.UsageError("--apply is for --embedded; on a cluster use: kubectl apply -f")
    if options["health"]:
        try:
            address(options["health"])
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    world = World()
    logs.configure(world, form=log_format, level=logging.DEBUG if verbose else logging.INFO)
    try:
        code = signals.run(_run(find, target, world, **options))
    except UserError as error:
        if log_format == "text":
            raise
        log.error("%s", error)  # then it is for a machine to read, as all else
        code = 2
    except LeaseLost as error:
        log.error("%s: start it again", error)
        code = 1
    except Exception:
        log.exception("%s ended by a fault", target)
        code = 1
    if code:
        raise click.exceptions.Exit(code)


async def _run(
    find: Callable[[], Operator],
    target: str,
    world: World,
    *,
    embedded: bool,
    files: tuple[Path, ...],
    dev: bool,
    once: bool,
    dry_run: bool,
    health: str | None,
    **where: Any,
) -> int:
    sources = Files(target) if dev else None
    operator = sources.load(find) if sources else find()
    objects = [obj for path in files for obj in manifests.read(path)]
    definitions = [obj for path in _definitions(target) for obj in manifests.read(path)] if embedded else []
    async with _place(world, operator, embedded=embedded, **where) as place:
        options = Options(
            namespaces=place.namespaces,
            lease_namespace=place.lease_namespace,
            health=health,
            dry_run=dry_run,
            clusters=place.clusters,
        )
        try:
            while True:
                if embedded:
                    from fairlead.cli.embedded import prepare

                    await prepare(place.transport, world, _kinds(operator), [*definitions, *objects])
                    for name, there in place.clusters.items():
                        await prepare(there, world, _kinds(operator, name), definitions)
                elif not place.in_cluster:
                    # a person may have named the wrong cluster; in a pod, a server that is down is waited for
                    await _reachable(place, world)
                if once:
                    return await _once(operator, place, world, options)
                log.info("%s on %s, in %s", operator.name, place.name, ", ".join(place.namespaces) or "all namespaces")
                if sources is None:
                    await operator.run(place.transport, world, **options)
                else:
                    operator = await until_changed(operator, find, sources, place.transport, world, options)
        except (OSError, ApiError) as error:
            raise UserError(f"cannot work on {place.name}: {error}") from error


def _definitions(target: str) -> list[Path]:
    """The manifests in a folder `crds` beside the operator."""
    home = folder(target)
    found = (home / "crds").glob("*") if home is not None else ()
    return sorted(path for path in found if path.suffix in (".yaml", ".yml", ".json"))


def _kinds(operator: Operator, cluster: str = HOME) -> list[Kind]:
    """Every kind that the operator declares in that cluster, once."""
    declared = operator.controllers.values()
    kinds = [source.kind for one in declared for source in one.sources if source.cluster == cluster]
    kinds += [kind for kind, _, _ in operator.indexes if cluster == HOME]
    return list({kind.key: kind for kind in kinds}.values())


@contextlib.asynccontextmanager
async def _place(
    world: World,
    operator: Operator,
    *,
    embedded: bool,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    kubeconfig: Path | None,
    context_name: str | None,
    elect: bool | None,
    clusters: tuple[str, ...],
) -> AsyncIterator[Place]:
    named = dict(_pair(text) for text in clusters)
    declared = {source.cluster for one in operator.controllers.values() for source in one.sources} - {HOME}
    async with contextlib.AsyncExitStack() as stack:
        if embedded:
            from fairlead.cli.embedded import embedded as serve

            transport = await stack.enter_async_context(serve(world))
            others = {name: await stack.enter_async_context(serve(world, name)) for name in sorted(declared)}
            lease = "default" if elect else None
            yield Place(transport, "the embedded server", namespaces, lease, others)
            return
        from fairlead.client.http import HttpTransport
        from fairlead.client.locate import locate

        if missing := sorted(declared - named.keys()):
            raise UserError(f"{operator.name} watches a cluster {missing[0]}: say --cluster {missing[0]}=CONTEXT")
        access = locate(world, path=kubeconfig, context=context_name)
        others = {}
        for name, access_there in [(name, locate(world, path=kubeconfig, context=to)) for name, to in named.items()]:
            others[name] = HttpTransport(access_there.cluster, access_there.credentials)
            stack.push_async_callback(others[name].close)
        over_http = HttpTransport(access.cluster, access.credentials)
        stack.push_async_callback(over_http.close)
        leads = elect if elect is not None else access.in_cluster
        yield Place(
            over_http,
            access.name,
            () if all_namespaces else namespaces or (access.namespace,),
            access.namespace if leads else None,
            others,
            access.in_cluster,
        )


def _pair(text: str) -> tuple[str, str]:
    name, _, context = text.partition("=")
    if not name or not context:
        raise UserError(f"--cluster {text}: say NAME=CONTEXT, the operator's name for it and the kubeconfig's")
    return name, context


async def _reachable(place: Place, world: World) -> None:
    """Ask each server something, once: raises what is wrong with it."""
    for transport in (place.transport, *place.clusters.values()):
        await Client(transport, world).kinds()


async def _once(operator: Operator, place: Place, world: World, options: Options) -> int:
    client = Client(place.transport, world)
    for kind in _kinds(operator):
        await client.resolve(kind)  # one that is not served would be waited for
    options["tries"] = TRIES
    async with operator.running(place.transport, world, **options) as running:
        await running.quiet()
        failures, unfed = running.failures, running.given_up
    for what, error in [*failures.items(), *unfed.items()]:
        log.error("%s: %s", what, error)
    return 1 if failures or unfed else 0
