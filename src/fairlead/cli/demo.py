"""`fairlead demo`: run the reference systems under the same load, with the original's writes and with fairlead's."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.api.errors import ApiError, Forbidden, UserError
from fairlead.cli.signals import run_until_signal

if TYPE_CHECKING:
    from fairlead.testing.demo.demo_run import Demo, Variant
    from fairlead.testing.demo.outcomes import Outcome

Results = dict[str, tuple[int, dict["Variant", "Outcome"]]]
"""By system: the number of objects, and the outcome of each variant."""
Progress = Callable[[int, int], None]


@click.command()
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@click.option("--scale", type=click.IntRange(1, 10_000), help="Number of objects. Each system has its own default.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated latencies and delays.")
@click.option("--json", "as_json", is_flag=True, help="Print only the figures, as JSON.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write a page with timelines there.")
@click.option("--real-time", is_flag=True, help="Do not skip waits: the old variant may back off for 15 minutes.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run on this cluster, in real time and in new namespaces. The demo deletes everything it creates.",
)
def demo(
    systems: tuple[str, ...],
    scale: int | None,
    seed: int,
    as_json: bool,
    report: Path | None,
    real_time: bool,
    kubeconfig: Path | None,
) -> None:
    """Run each SYSTEM (default: all) in two variants.

    "old" writes as the original operator did when it failed. "new" is the same operator with fairlead. The demo needs
    no cluster: the API server and the controllers run inside this process, in virtual time.
    """
    from fairlead.report import page
    from fairlead.testing.demo.demo_run import VARIANTS
    from fairlead.testing.demo.outcomes import demo_modules, load_demo

    installed = demo_modules()
    if not installed:
        raise UserError("the demo's operators are not installed: pip install 'fairlead[demo]'")
    for system in systems:
        if system not in installed:
            raise UserError(f"there is no demo {system!r}: choose from {', '.join(installed)}")

    if kubeconfig is None and find_spec("cel_expr_python") is None:
        raise UserError("the CRDs of the demo have validation rules, which need CEL: pip install 'fairlead[cel]'")
    if report:
        try:
            report.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot write the page to {report}: {error.strerror}; name another folder") from error
    logging.getLogger("fairlead").addHandler(logging.NullHandler())  # keep the systems' log out of the output
    results: Results = {}
    for system in systems or installed:
        module = load_demo(system)
        count = scale or module.SCALE
        outcomes: dict[Variant, Outcome] = {}
        for variant in VARIANTS:
            with progress_bar(f"{system}, {variant}", is_quiet=as_json) as progress:
                outcomes[variant] = play_variant(module, variant, count, seed, real_time, kubeconfig, progress, system)
        results[system] = count, outcomes
        if not as_json:
            print_tables(system, count, outcomes)
    figures = {
        "systems": {
            system: {"scale": count, **{variant: outcome.to_json() for variant, outcome in outcomes.items()}}
            for system, (count, outcomes) in results.items()
        }
    }
    if as_json:
        click.echo(json.dumps(figures, indent=2))
    if report:
        path = report / "index.html"
        path.write_text(page.render(results), encoding="utf-8")
        click.echo(f"Wrote {path}", err=as_json)


def play_variant(
    module: "Demo",
    variant: "Variant",
    scale: int,
    seed: int,
    is_real_time: bool,
    kubeconfig: Path | None,
    progress: Progress,
    system: str,
) -> "Outcome":
    """Play one variant on a new embedded server, or in a new namespace on the cluster of the kubeconfig."""
    from fairlead.api.world import World
    from fairlead.server.app import Server
    from fairlead.testing import virtual
    from fairlead.testing.demo.outcomes import play

    if kubeconfig:
        outcomes: list[Outcome] = []

        async def work() -> None:
            outcomes.append(await _play_on_cluster(module, variant, scale, kubeconfig, progress, system))

        asyncio.run(run_until_signal(work()))
        return outcomes[0] if outcomes else sys.exit(143)  # SIGTERM ended the demo after its cleanup

    async def main() -> "Outcome":
        world = World() if is_real_time else virtual.world(seed)
        server = Server(world, controllers=["gc", "namespace"])
        return await play(module, variant, scale, server.transport, world, progress=progress)

    return asyncio.run(main()) if is_real_time else virtual.run(main())


async def _play_on_cluster(
    module: "Demo", variant: "Variant", scale: int, kubeconfig: Path, progress: Progress, system: str
) -> "Outcome":
    from fairlead.api.world import World
    from fairlead.client.http import HttpTransport
    from fairlead.client.locate import locate
    from fairlead.testing.demo.outcomes import play

    world = World()
    access = locate(world, path=kubeconfig, context=None)

    def connect() -> HttpTransport:
        return HttpTransport(access.cluster, access.credentials)

    try:
        namespace = f"fairlead-demo-{system}-{variant}-{world.uid()[:5]}"
        return await play(module, variant, scale, connect, world, namespace=namespace, progress=progress)
    except Forbidden as error:
        raise UserError(f"cannot run the demo on {access.name}, it needs a cluster admin: {error}") from error
    except (OSError, ApiError) as error:
        raise UserError(f"cannot run the demo on {access.name}: {error}") from error


@contextmanager
def progress_bar(description: str, *, is_quiet: bool) -> Iterator[Progress]:
    """Show a progress bar in the terminal with the number of objects that are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True, disable=is_quiet or not console.is_terminal) as progress:
        task = progress.add_task(description, total=None)
        yield lambda completed, total: progress.update(task, completed=completed, total=total)


def print_tables(system: str, count: int, outcomes: "dict[Variant, Outcome]") -> None:
    """Print the figures of one system, and its 409 responses by verb and resource."""
    from fairlead.report import page, tables

    columns = ["", "409s", "exists", "requests", "events", "p50", "p99", "last", "lost", "stuck"]
    rows = [
        [
            variant,
            outcome.conflicts,
            outcome.already_exists,
            outcome.requests,
            outcome.watch_events,
            *(page.format_duration(outcome.seconds_until_done(share)) for share in (0.5, 0.99, 1.0)),
            len(outcome.losses),
            len(outcome.stuck),
        ]
        for variant, outcome in outcomes.items()
    ]
    tables.print_table(f"{system}, {count} object{'s' if count > 1 else ''}", columns, rows)
    by_request: dict[tuple[str, str], dict[str, int]] = {}
    for variant, outcome in outcomes.items():
        for (verb, resource, code), n in outcome.responses.items():
            if code == 409:
                by_request.setdefault((verb, resource), {})[variant] = n
    if by_request:
        sorted_requests = sorted(by_request.items(), key=lambda item: -max(item[1].values()))
        rows = [[f"{verb} {resource}", n.get("old", 0), n.get("new", 0)] for (verb, resource), n in sorted_requests]
        tables.print_table("409 responses", ["", "old", "new"], rows)
