"""`fairlead demo`: the reference systems, old way against new, with the same workload and the same disturbances."""

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
    from fairlead.testing.demo.outcomes import Outcome
    from fairlead.testing.demo.stage import Bed, Way

Told = dict[str, tuple[int, dict["Way", "Outcome"]]]
Progress = Callable[[int, int], None]


@click.command()
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@click.option("--scale", type=click.IntRange(1, 10_000), help="How many objects; each system has its own default.")
@click.option("--seed", type=int, default=1, show_default=True, help="Where all chance in the run comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON and nothing else.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write a page with timelines there.")
@click.option("--real-time", is_flag=True, help="Wait for real: the old way's back-off may take a quarter of an hour.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run on this server instead, in real time and in namespaces of the demo's own; nothing stays on it.",
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
    """Run each SYSTEM (all of them by default) twice: as it was when it failed, and with fairlead.

    Nothing is needed and, without --kubeconfig, nothing is touched: server, controllers and time all run inside this
    process.
    """
    from fairlead.report import page
    from fairlead.testing.demo.outcomes import demo_modules, load_demo
    from fairlead.testing.demo.stage import WAYS

    installed = demo_modules()
    if not installed:
        raise UserError("the demo's operators are not installed: pip install 'fairlead[demo]'")
    for name in systems:
        if name not in installed:
            raise UserError(f"there is no demo {name!r}: choose from {', '.join(installed)}")

    if kubeconfig is None and find_spec("cel_expr_python") is None:
        raise UserError(
            "the systems' kinds have validation rules, which need the extra cel: pip install 'fairlead[cel]'"
        )
    if report:
        try:
            report.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot write a page to {report}: {error.strerror}; name another folder") from error
    logging.getLogger("fairlead").addHandler(logging.NullHandler())  # what the systems log is not what is shown
    told: Told = {}
    for name in systems or installed:
        bed = load_demo(name)
        count = scale or bed.SCALE
        outcomes: dict[Way, Outcome] = {}
        for way in WAYS:
            with shown(f"{name}, {way} way", quiet=as_json) as progress:
                outcomes[way] = run(bed, way, count, seed, real_time, kubeconfig, progress, name)
        told[name] = count, outcomes
        if not as_json:
            show(name, count, outcomes)
    figures = {
        "systems": {
            name: {"scale": count, **{way: outcome.json() for way, outcome in outcomes.items()}}
            for name, (count, outcomes) in told.items()
        }
    }
    if as_json:
        click.echo(json.dumps(figures, indent=2))
    if report:
        (report / "index.html").write_text(page.render(told), encoding="utf-8")
        click.echo(f"{report / 'index.html'} is written", err=as_json)


def run(
    bed: "Bed",
    way: "Way",
    scale: int,
    seed: int,
    real_time: bool,
    kubeconfig: Path | None,
    progress: Progress,
    name: str,
) -> "Outcome":
    """One telling, on a fresh server, or in a namespace of its own on the server of the kubeconfig."""
    from fairlead.api.world import World
    from fairlead.server.app import Server
    from fairlead.testing import virtual
    from fairlead.testing.demo.outcomes import tell

    if kubeconfig:
        told: list[Outcome] = []

        async def work() -> None:
            told.append(await _real(bed, way, scale, kubeconfig, progress, name))

        asyncio.run(run_until_signal(work()))
        return told[0] if told else sys.exit(143)  # by SIGTERM, and nothing is left behind

    async def main() -> "Outcome":
        world = World() if real_time else virtual.world(seed)
        server = Server(world, controllers=["gc", "namespace"])
        return await tell(bed, way, scale, server.transport, world, progress=progress)

    return asyncio.run(main()) if real_time else virtual.run(main())


async def _real(bed: "Bed", way: "Way", scale: int, kubeconfig: Path, progress: Progress, name: str) -> "Outcome":
    from fairlead.api.world import World
    from fairlead.client.http import HttpTransport
    from fairlead.client.locate import locate
    from fairlead.testing.demo.outcomes import tell

    world = World()
    access = locate(world, path=kubeconfig, context=None)

    def door() -> HttpTransport:
        return HttpTransport(access.cluster, access.credentials)

    try:
        namespace = f"fairlead-demo-{name}-{way}-{world.uid()[:5]}"
        return await tell(bed, way, scale, door, world, namespace=namespace, progress=progress)
    except Forbidden as error:
        raise UserError(f"cannot work on {access.name}, the demo wants a cluster admin: {error}") from error
    except (OSError, ApiError) as error:
        raise UserError(f"cannot work on {access.name}: {error}") from error


@contextmanager
def shown(what: str, *, quiet: bool) -> Iterator[Progress]:
    """A line in the terminal that counts what is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def show(name: str, count: int, outcomes: "dict[Way, Outcome]") -> None:
    """The table of one system, and its 409s by verb and resource."""
    from fairlead.report import page, tables

    columns = ["", "409s", "exists", "requests", "events", "p50", "p99", "last", "lost", "stuck"]
    rows = [
        [
            way,
            outcome.conflicts,
            outcome.already_exists,
            outcome.requests,
            outcome.watch_events,
            *(page.duration(outcome.done(share)) for share in (0.5, 0.99, 1.0)),
            len(outcome.losses),
            len(outcome.stuck),
        ]
        for way, outcome in outcomes.items()
    ]
    tables.show(f"{name}, {count} object{'s' if count > 1 else ''}", columns, rows)
    refused: dict[tuple[str, str], dict[str, int]] = {}
    for way, outcome in outcomes.items():
        for (verb, resource, code), n in outcome.counted.items():
            if code == 409:
                refused.setdefault((verb, resource), {})[way] = n
    if refused:
        most = sorted(refused.items(), key=lambda item: -max(item[1].values()))
        lines = [[f"{verb} {resource}", by.get("old", 0), by.get("new", 0)] for (verb, resource), by in most]
        tables.show("refused", ["", "old", "new"], lines)
