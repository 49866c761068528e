"""`fairlead run`: run an operator on the current cluster, or without any cluster."""

import asyncio
import contextlib
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.api import manifests
from fairlead.api.errors import ApiError, UserError
from fairlead.api.kinds import Kind
from fairlead.api.world import World
from fairlead.cli import signals
from fairlead.cli.dev import SourceFiles, run_until_change
from fairlead.cli.load import OperatorNotFound, directory_of, load
from fairlead.cli.settings import collect_settings, settings_options
from fairlead.cli.verbosity import choose_levels, verbosity_options
from fairlead.cli.watchdog import Watchdog
from fairlead.client.client import Client
from fairlead.client.discovery import NotServed
from fairlead.client.transport import Transport
from fairlead.report.ui_port import DEFAULT_UI_PORT
from fairlead.runtime import logs
from fairlead.runtime.health import address
from fairlead.runtime.leases import LeaseLost
from fairlead.runtime.operator import Operator, Options
from fairlead.runtime.sources import HOME
from fairlead.runtime.tuning import SHUTDOWN_TIMEOUT

if TYPE_CHECKING:
    from fairlead.report.diff import DryRunDiff
    from fairlead.report.live.server import LivePage
    from fairlead.runtime.running import Running

log = logging.getLogger("fairlead.run")

_NAMES = {
    "namespaces": "--namespace", "all_namespaces": "--all-namespaces", "kubeconfig": "--kubeconfig",
    "context_name": "--context", "clusters": "--cluster", "embedded": "--embedded", "files": "--apply", "dev": "--dev",
    "once": "--once", "dry_run": "--dry-run", "fail_on_change": "--fail-on-change", "elect": "--leader-elect",
}  # fmt: skip
_EXCLUSIVE = [
    ("all_namespaces", "namespaces", "use one of them"),
    ("embedded", "kubeconfig", "the embedded server writes a kubeconfig of its own, so leave out --kubeconfig"),
    ("embedded", "context_name", "the embedded server has one context, so leave out --context"),
    ("embedded", "clusters", "each other cluster is an embedded server too, so leave out --cluster"),
    ("dev", "once", "use one of them"),
    ("dry_run", "elect", "a dry run does not write a Lease, so leave out --leader-elect"),
    ("once", "elect", "a run that ends must not wait for another leader, so leave out --leader-elect"),
]
"""Options that contradict each other, and what to do."""
_DEPENDENT = [
    ("fail_on_change", ("dry_run", "once"), "add both"),
    ("files", ("embedded",), "on a cluster use kubectl apply -f"),
]
"""Options that need others, and what to do."""

MAX_TRIES = 5
"""With --once: an object whose reconcile fails this often counts as failed."""


@dataclass(frozen=True)
class Target:
    """Where an operator runs: the server, the namespaces to watch, and the namespace of the lease."""

    transport: Transport
    name: str
    namespaces: tuple[str, ...]
    lease_namespace: str | None
    clusters: Mapping[str, Transport]
    in_cluster: bool = False
    has_default_namespace: bool = False  # whether the namespace is the context's, because the user named none


def _add_options(command: Callable[..., None]) -> Callable[..., None]:
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    decorators: list[Callable[..., Any]] = [
        click.option("-n", "--namespace", "namespaces", multiple=True, help="Watch this namespace only (repeat for "
                     "more). Default: the context's namespace; every namespace with --embedded."),
        click.option("-A", "--all-namespaces", is_flag=True, help="Watch every namespace."),
        click.option("--kubeconfig", type=file, help="Default: $KUBECONFIG, the pod's own, ~/.kube/config."),
        click.option("--context", "context_name", help="The kubeconfig's context to use."),
        click.option("--cluster", "clusters", multiple=True, metavar="NAME=CONTEXT", help="The context of another "
                     "cluster that the operator uses by NAME. With --embedded, each is an embedded server."),
        click.option("--embedded", is_flag=True, help="Start an API server in this process: no cluster needed."),
        click.option("--apply", "files", multiple=True, type=file, help="With --embedded: apply this file first."),
        click.option("--dev", is_flag=True, help="Restart the operator when its files change."),
        click.option("--once", is_flag=True, help="Reconcile until nothing changes, then exit: 0, or 1 if "
                     "an object failed."),
        click.option("--dry-run", is_flag=True, help="Send every write as a dry run: the server validates it and "
                     "stores nothing. Print a diff of each object that would change."),
        click.option("--fail-on-change", is_flag=True, help="With --dry-run and --once: exit 1 if an object would "
                     "change, for CI."),
        click.option("--leader-elect/--no-leader-elect", "elect", default=None, help="Reconcile only while "
                     "holding the lease. Default: on inside a cluster, off elsewhere."),
        click.option("--health", metavar="[HOST:]PORT", help="Serve /healthz, /readyz and /metrics; on loopback "
                     "unless a host is named."),
        click.option("--trace", is_flag=True, help="Send OpenTelemetry traces to $OTEL_EXPORTER_OTLP_ENDPOINT. Needs "
                     "fairlead[otel]."),
        click.option("--ui", is_flag=False, flag_value=str(DEFAULT_UI_PORT), metavar="[[HOST:]PORT]", help="Serve a "
                     "page that shows what the operator does, and the same as JSON under /debug. Default: port "
                     f"{DEFAULT_UI_PORT} on loopback."),
        click.option("--ui-allow-host", "ui_hosts", multiple=True, metavar="NAME", help="Answer requests for this host "
                     "too, and let --ui listen on an address that is not loopback. The page has neither TLS nor a "
                     "password: everybody who reaches it can read it."),
        settings_options,
        click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
        verbosity_options,
    ]  # fmt: skip
    for option in reversed(decorators):
        command = option(command)
    return command


@click.command()
@click.argument("target", metavar="FILE|MODULE|DIRECTORY")
@_add_options
def run(target: str, **options: Any) -> None:
    """Run the operator that a file, a module or a directory (its controller.py) defines.

    \b
    fairlead run greeter.py                  on the current kube context
    fairlead run greeter.py --embedded       without a cluster

    With --embedded, the CRDs in a directory `crds` beside the operator are applied first. A kind without a CRD gets one
    whose schema allows every field.

    An option with [CONTROLLER=]NUMBER may be repeated. `--concurrency 8` is for every controller that does not declare
    its own value in code; `--concurrency website=8` overrides that of one controller.
    """
    _main(lambda: load(target), target, **options)


def run_as_script(operator: Operator) -> None:
    """Run `fairlead run` for the script that defines the operator. `operator.main()` calls this function."""
    from fairlead.cli.shell import exit_with, set_environment_variables

    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise OperatorNotFound(
            f"{operator.name} starts when its file is imported: put op.main() below if __name__ == '__main__':"
        )
    file = getattr(sys.modules["__main__"], "__file__", None) or operator.name

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @_add_options
    def main(**options: Any) -> None:
        load_operator = (lambda: load(file)) if options["dev"] else (lambda: operator)
        _main(load_operator, file, **options)

    main.help = f"Run the operator {operator.name}."
    set_environment_variables(main, "fairlead_run")
    exit_with(lambda: main.main(prog_name=Path(file).name, standalone_mode=False))


def _main(
    load_operator: Callable[[], Operator],
    target: str,
    *,
    log_format: str,
    verbose: int,
    log_level: dict[str, int],
    **options: Any,
) -> None:
    for first, second, remedy in _EXCLUSIVE:
        if options[first] and options[second]:
            raise click.UsageError(f"{_NAMES[first]} cannot be combined with {_NAMES[second]}: {remedy}")
    for option, needed, remedy in _DEPENDENT:
        if options[option] and not all(options[name] for name in needed):
            names = " and ".join(_NAMES[name] for name in needed)
            raise click.UsageError(f"{_NAMES[option]} works only with {names}: {remedy}")
    for namespace in options["namespaces"]:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", namespace):
            raise click.UsageError(
                f"--namespace {namespace!r} is not the name of a namespace: write one name, and repeat -n for more"
            )
    if options["health"]:
        try:
            address(options["health"])
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    options["page"] = _create_page(options.pop("ui"), options.pop("ui_hosts"))
    options["settings"] = collect_settings(options)
    world = World()
    logs.configure(world, form=log_format, levels=choose_levels(verbose, log_level))
    watchdog = Watchdog(options["shutdown_timeout"] or SHUTDOWN_TIMEOUT)
    try:
        code = signals.run(_run(load_operator, target, world, watchdog, **options), watchdog)
    except UserError as error:
        if log_format == "text":
            raise
        log.error("%s", error)  # JSON, like every other line of this log.
        code = 2
    except LeaseLost as error:
        log.error("%s: restart the operator", error)
        code = 1
    except Exception:
        log.exception("%s stopped because of an unexpected error", target)
        code = 1
    if code:
        raise click.exceptions.Exit(code)


async def _run(
    load_operator: Callable[[], Operator],
    target: str,
    world: World,
    watchdog: Watchdog,
    *,
    embedded: bool,
    files: tuple[Path, ...],
    dev: bool,
    once: bool,
    dry_run: bool,
    fail_on_change: bool,
    health: str | None,
    trace: bool,
    page: "Callable[[Running], LivePage] | None",
    settings: dict[str, dict[str, float]],
    request_timeout: float | None,
    shutdown_timeout: float | None,
    **connection_options: Any,
) -> int:
    sources = SourceFiles(target) if dev else None
    operator = sources.load(load_operator) if sources else load_operator()
    watchdog.seconds = operator.shutdown_timeout if shutdown_timeout is None else shutdown_timeout
    operator.resolve_settings(settings)  # A wrong value is reported before a server starts.
    objects = [obj for path in files for obj in manifests.read_objects(path)]
    crds = [obj for path in _find_crd_files(target) for obj in manifests.read_objects(path)] if embedded else []
    diff = _create_diff() if dry_run else None
    subscribers: list[Callable[[Running], object]] = []
    if diff is not None:
        subscribers.append(lambda running: diff.subscribe(running.history))
    if page is not None:
        subscribers.append(page)
    async with contextlib.AsyncExitStack() as stack:
        if trace:
            from fairlead.cli.tracing import exporting_traces

            subscribers.append(stack.enter_context(exporting_traces(operator.name)))
        connection = await stack.enter_async_context(_connect(world, operator, embedded=embedded, **connection_options))
        options = Options(
            namespaces=connection.namespaces,
            lease_namespace=connection.lease_namespace,
            health=health,
            dry_run=dry_run,
            clusters=connection.clusters,
            settings=settings,
            request_timeout=request_timeout,
            shutdown_timeout=shutdown_timeout,
            subscribers=subscribers,
        )
        try:
            while True:
                if embedded:
                    from fairlead.cli.embedded import prepare

                    await prepare(connection.transport, world, _list_declared_kinds(operator), [*crds, *objects])
                    for name, transport in connection.clusters.items():
                        await prepare(transport, world, _list_declared_kinds(operator, name), crds)
                elif not connection.in_cluster:
                    # A person may have named the wrong cluster. In a pod the operator waits for its server instead.
                    await _check_reachable(connection, world)
                if connection.has_default_namespace:
                    await _check_scopes(operator, connection, world)
                if once:
                    code = await _reconcile_once(operator, connection, world, options)
                    if diff is not None:
                        diff.print_summary()
                    return code or int(fail_on_change and diff is not None and bool(diff.changed))
                log.info(
                    "running %s on %s, in %s",
                    operator.name,
                    connection.name,
                    ", ".join(connection.namespaces) or "all namespaces",
                )
                if sources is None:
                    await operator.run(connection.transport, world, **options)
                else:
                    operator = await run_until_change(
                        operator, load_operator, sources, connection.transport, world, options
                    )
        except (OSError, ApiError) as error:
            raise UserError(f"cannot work on {connection.name}: {error}") from error


def _create_page(address_text: str | None, hosts: tuple[str, ...]) -> "Callable[[Running], LivePage] | None":
    if address_text is None:
        if hosts:
            raise click.UsageError("--ui-allow-host works only with --ui: add it")
        return None
    from fairlead.report.live.server import serve_page  # It loads aiohttp's server.

    try:
        return serve_page(address_text, hosts)
    except ValueError as error:
        raise click.UsageError(f"--ui {address_text}: {error}") from None


def _create_diff() -> "DryRunDiff":
    from fairlead.report.diff import DryRunDiff  # It loads rich.

    return DryRunDiff()


def _find_crd_files(target: str) -> list[Path]:
    """Return the manifests in the directory `crds` beside the operator."""
    directory = directory_of(target)
    files = (directory / "crds").glob("*") if directory is not None else ()
    return sorted(path for path in files if path.suffix in (".yaml", ".yml", ".json"))


def _list_declared_kinds(operator: Operator, cluster: str = HOME) -> list[Kind]:
    """Return the kinds that the operator's controllers and indexes use in a cluster, without duplicates."""
    controllers = operator.controllers.values()
    kinds = [
        source.kind
        for controller in controllers
        for source in controller.sources
        if source.cluster == cluster and not source.optional
    ]
    kinds += [kind for kind, _, _ in operator.indexes if cluster == HOME]
    return list({kind.key: kind for kind in kinds}.values())


@contextlib.asynccontextmanager
async def _connect(
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
) -> AsyncIterator[Target]:
    contexts: dict[str, str] = {}
    for name, context in map(_parse_cluster, clusters):
        if name in contexts:
            raise UserError(f"--cluster {name} is set twice: set it once")
        contexts[name] = context
    declared_clusters = {
        source.cluster for controller in operator.controllers.values() for source in controller.sources
    } - {HOME}
    async with contextlib.AsyncExitStack() as stack:
        if embedded:
            from fairlead.cli.embedded import run_embedded_server

            start = stack.enter_async_context
            transport = await start(run_embedded_server(world))
            other_clusters = {name: await start(run_embedded_server(world, name)) for name in sorted(declared_clusters)}
            lease_namespace = "default" if elect else None
            yield Target(transport, "the embedded server", namespaces, lease_namespace, other_clusters)
            return
        from fairlead.client.http import HttpTransport
        from fairlead.client.locate import locate

        if missing := sorted(declared_clusters - contexts.keys()):
            raise UserError(f"{operator.name} watches a cluster {missing[0]!r}: add --cluster {missing[0]}=CONTEXT")
        access = locate(world, path=kubeconfig, context=context_name)
        accesses = {name: locate(world, path=kubeconfig, context=context) for name, context in contexts.items()}
        other_clusters = {}
        for name, other in accesses.items():
            other_clusters[name] = HttpTransport(other.cluster, other.credentials)
            stack.push_async_callback(other_clusters[name].close)
        http_transport = HttpTransport(access.cluster, access.credentials)
        stack.push_async_callback(http_transport.close)
        uses_lease = elect if elect is not None else access.in_cluster
        yield Target(
            http_transport,
            access.name,
            () if all_namespaces else namespaces or (access.namespace,),
            access.namespace if uses_lease else None,
            other_clusters,
            access.in_cluster,
            not all_namespaces and not namespaces,
        )


def _parse_cluster(text: str) -> tuple[str, str]:
    name, _, context = text.partition("=")
    if not name or not context:
        raise UserError(
            f"--cluster {text}: write NAME=CONTEXT, the operator's name for it and the kubeconfig's context"
        )
    return name, context


async def _check_reachable(connection: Target, world: World) -> None:
    """Send one request to each server, so that a wrong address or token is reported before the operator starts."""
    for transport in (connection.transport, *connection.clusters.values()):
        await Client(transport, world).kinds()


async def _check_scopes(operator: Operator, connection: Target, world: World) -> None:
    """Reject a default namespace for an operator of a cluster-scoped kind: its children may be in any namespace.

    Raises UserError with the remedy. In a pod, a server that does not answer is not an error here.
    """
    client = Client(connection.transport, world)

    async def is_namespaced(kind: Kind) -> bool:
        try:
            return (await client.resolve(kind)).namespaced
        except NotServed:
            return kind.namespaced

    try:
        kinds = {kind.key: await is_namespaced(kind) for kind in _list_declared_kinds(operator)}
    except (ApiError, OSError):
        if connection.in_cluster:
            return
        raise
    for controller in operator.controllers.values():
        watched = [source.kind for source in controller.sources if source.cluster == HOME and kinds[source.kind.key]]
        if not kinds[controller.kind.key] and watched:
            raise UserError(
                f"{operator.name} reconciles {controller.kind.kind}, which is cluster-scoped, and watches "
                f"{watched[0].kind}, which is namespaced, only in the namespace {connection.namespaces[0]}: add -A to "
                "watch every namespace, or name the namespaces with -n"
            )


async def _reconcile_once(operator: Operator, connection: Target, world: World, options: Options) -> int:
    client = Client(connection.transport, world)
    for kind in _list_declared_kinds(operator):
        await client.resolve(kind)  # Without this check the operator would wait for a kind that is not served.
    options["tries"] = MAX_TRIES
    async with operator.running(connection.transport, world, **options) as running:
        await running.wait_until_idle()
        failures, unfed = running.failures, running.failing_watches
    for subject, error in [*failures.items(), *unfed.items()]:
        log.error("%s: %s", subject, error)
    return 1 if failures or unfed else 0
