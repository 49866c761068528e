"""`fairlead orphans`: what was left in another cluster, planned, read, and then deleted."""

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fairlead.api.errors import ApiError
from fairlead.api.files import write_private
from fairlead.api.text import printable
from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.client.transport import Transport
from fairlead.tools.orphans.act import Actor, Done, Outcome, over_cap
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.choosing import choose, read
from fairlead.tools.orphans.clusters import Cluster, Fleet, Unreachable
from fairlead.tools.orphans.durations import seconds
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.journal import JournalError, JournalFile
from fairlead.tools.orphans.judging import State
from fairlead.tools.orphans.loading import load, shipped
from fairlead.tools.orphans.plan import Plan, scan
from fairlead.tools.orphans.rules import Rule
from fairlead.tools.orphans.stores import InConfigMap, InFile, NotKept, Store

LONGEST = 200
"""Lines of a table; the rest is in the file that -o writes."""


class Left(click.ClickException):
    """Something could not be judged or deleted, and was left alone."""

    exit_code = 1


@dataclass(frozen=True)
class Wanted:
    """What the options say. None of it ever comes from a plan."""

    kubeconfig: Path | None
    downstream: str
    upstreams: dict[str, str]
    rules: list[Rule]
    grace: float | None
    retired: frozenset[str]
    cap: Cap | None
    evidence: Path | None


class _Parsed(click.ParamType[Any]):
    """An option read by a function that raises ValueError."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _upstream(text: str) -> tuple[str, str]:
    name, equals, context = text.partition("=")
    if not equals or not name or not context:
        raise ValueError(f"{text!r} is not NAME=CONTEXT, as project-a=prod-a")
    return name, context


def _options(command: Callable[..., None]) -> Callable[..., None]:
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in reversed([
        click.option("--kubeconfig", type=file, help="Default: $KUBECONFIG, ~/.kube/config."),
        click.option("--downstream", required=True, metavar="CONTEXT", help="Where the copies are."),
        click.option("--upstream", "upstreams", multiple=True, type=_Parsed("NAME=CONTEXT", _upstream),
                     metavar="NAME=CONTEXT", help="A cluster whose copies they are, by the name that their labels "
                     "give it. Repeat for more."),
        click.option("--rules", "rules_file", type=file, help="What to collect, in YAML or Python. Default: HTTPRoutes "
                     "without a Gateway, anchors without an owner."),
        click.option("--grace", type=_Parsed("DURATION", seconds), metavar="DURATION", help="How long all parents must "
                     "have been absent; 0s takes one live look as enough. Default: the rule's, 5m."),
        click.option("--retired", multiple=True, metavar="NAME", help="A cluster that was deleted for good: its copies "
                     "are orphans. Repeat for more."),
        click.option("--max", "cap", type=_Parsed("N|N%", Cap.parse), metavar="N|N%", help="Delete nothing if more "
                     "would go. Default: the rule's, 20% of what it selects, at least 10."),
        click.option("--evidence", type=click.Path(dir_okay=False, path_type=Path), help="What was seen absent since "
                     "when. Default: in the user's state folder; for watch, a ConfigMap downstream."),
    ]):  # fmt: skip
        command = option(command)
    return command


@click.group("orphans")
def command() -> None:
    """Find and delete what was left in another cluster.

    \b
    fairlead orphans plan --downstream edge --upstream a=project-a -o plan.json
    fairlead orphans apply plan.json --downstream edge --upstream a=project-a

    Absence is measured, not age: an object is an orphan when all its parents were seen absent, live, again and again,
    for the whole grace. What is unknown is left alone.
    """


@command.command("plan", short_help="Say what would be deleted, and why. Deletes nothing.")
@_options
@click.option("-o", "output", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), help="Write the plan "
              "as JSON, for apply; - for standard output.")  # fmt: skip
def plan_command(output: Path | None, **options: Any) -> None:
    """Say what would be deleted, why, and what cannot be judged. Deletes nothing.

    Remembers what it saw absent (see --evidence), so that the next plan or apply knows since when.
    """
    wanted = _wanted(**options)
    if output is not None and str(output) != "-":
        _check_output(output, wanted.evidence)

    async def make() -> Plan:
        async with _run(wanted) as run:
            plan = await run.scan()
            await run.save()
            return plan

    plan = _go(make())
    text = json.dumps(plan.to_json(), indent=2) + "\n"
    if str(output) == "-":
        click.echo(text, nl=False)
    _show(plan, err=str(output) == "-")
    if output is not None and str(output) != "-":
        _write(output, text)
    for problem in over_cap(plan, plan.of(State.ORPHAN), wanted.cap):
        click.echo(f"over the cap: {printable(problem)}", err=True)
    if not plan.complete:
        raise click.exceptions.Exit(1)


@command.command("apply", short_help="Delete what a plan names and still is an orphan.")
@click.argument("plan_file", metavar="PLAN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def apply_command(plan_file: Path, yes: bool, **options: Any) -> None:
    """Delete what the plan names and still is an orphan, judged again, live, object by object.

    The plan only narrows what may go. Clusters, rules, grace and cap are those of this command line.
    """
    wanted = _wanted(**options)
    code = _go(_apply(wanted, plan_file, yes))
    if code:
        raise click.exceptions.Exit(code)


@command.command("watch", short_help="Look and delete, again and again, until interrupted.")
@_options
@click.option("-n", "--namespace", help="Of the ConfigMap and the lease. Default: the context's namespace.")
@click.option("--leader-elect/--no-leader-elect", "elect", default=True, show_default=True, help="Work only while "
              "holding the lease.")  # fmt: skip
@click.option("--health", metavar="[HOST:]PORT", help="Serve /healthz, /readyz and /metrics; on loopback unless a "
              "host is named.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def watch_command(namespace: str | None, elect: bool, health: str | None, log_format: str, **options: Any) -> None:
    """Look once a minute, and delete what has been an orphan for the whole grace, until interrupted."""
    from fairlead.runtime import logs
    from fairlead.runtime.health import address
    from fairlead.runtime.leases import LeaseLost

    wanted = _wanted(**options)
    if health:
        try:
            address(health)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    logs.configure(World(), form=log_format, level=logging.INFO)
    try:
        _go(_watch(wanted, namespace, elect, health))
    except LeaseLost as error:
        raise Left(f"{error}: start it again") from None


def _wanted(
    *,
    kubeconfig: Path | None,
    downstream: str,
    upstreams: tuple[tuple[str, str], ...],
    rules_file: Path | None,
    grace: float | None,
    retired: tuple[str, ...],
    cap: Cap | None,
    evidence: Path | None,
) -> Wanted:
    names = [name for name, _ in upstreams]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise click.UsageError(f"--upstream names {', '.join(twice)} twice: give each cluster one context")
    if both := sorted(set(names) & set(retired)):
        raise click.UsageError(f"{', '.join(both)} cannot be both --upstream and --retired: a retired one is no more")
    if not names and not retired:
        raise click.UsageError("without --upstream or --retired nothing can be judged: name at least one cluster")
    rules = load(rules_file) if rules_file else shipped()
    return Wanted(kubeconfig, downstream, dict(upstreams), rules, grace, frozenset(retired), cap, evidence)


def _go(work: Any) -> Any:
    try:
        return asyncio.run(work)
    except Unreachable as error:
        raise Left(f"the downstream cluster cannot be judged: {error}") from None
    except (NotKept, JournalError) as error:
        raise Left(str(error)) from None
    except (ApiError, OSError) as error:
        raise Left(f"stopped: {error}") from None


@dataclass
class _Run:
    """One run on a fleet that is reached, with the evidence read and locked."""

    wanted: Wanted
    world: World
    fleet: Fleet
    evidence: Evidence
    store: Store
    journal: JournalFile

    async def scan(self) -> Plan:
        progress = _progress if sys.stderr.isatty() else lambda what, done, total: None
        plan = await scan(self.fleet, self.wanted.rules, self.evidence, grace=self.wanted.grace, progress=progress)
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
        return plan

    async def save(self) -> None:
        await self.store.save(self.evidence)


@contextlib.asynccontextmanager
async def _reached(wanted: Wanted, world: World) -> AsyncIterator[tuple[Fleet, Transport, str]]:
    """The fleet, the downstream's transport, and the namespace that its context means."""
    from fairlead.client import kubeconfig
    from fairlead.client.http import HttpTransport

    async with contextlib.AsyncExitStack() as stack:

        def reach(name: str, context: str) -> tuple[Cluster, Transport, str]:
            access = kubeconfig.load(world, path=wanted.kubeconfig, context=context)
            transport = HttpTransport(access.cluster, access.credentials)
            stack.push_async_callback(transport.close)
            client = Client(transport, world, user_agent="fairlead-orphans")
            return Cluster(name, client), transport, access.namespace

        downstream, transport, namespace = reach("downstream", wanted.downstream)
        upstreams = {name: reach(name, context)[0] for name, context in wanted.upstreams.items()}
        yield Fleet(downstream, upstreams, wanted.retired), transport, namespace


@contextlib.asynccontextmanager
async def _run(wanted: Wanted) -> AsyncIterator[_Run]:
    world = World()
    async with _reached(wanted, world) as (fleet, _, _):
        uid = await fleet.downstream.uid()
        store = InFile(wanted.evidence or _state() / f"orphans-{uid}.json")
        with store.locked():
            evidence = Evidence(world, uid)
            await store.load(evidence)
            yield _Run(wanted, world, fleet, evidence, store, JournalFile(_journal(store.path)))


def _state() -> Path:
    """Where what should outlive a run is kept, by the convention of the desktop."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fairlead"


def _journal(evidence: Path) -> Path:
    return evidence.with_name(f"{evidence.name.removesuffix('.json')}.journal")


def _progress(what: str, done: int, total: int) -> None:
    of = f" of {total}" if total else ""
    click.echo(f"\r\x1b[K{done}{of} {printable(what)}", nl=False, err=True)


async def _apply(wanted: Wanted, file: Path, yes: bool) -> int:
    async with _run(wanted) as run:
        names = read(file, run.evidence.downstream)
        plan = await run.scan()
        await run.save()
        chosen = choose(names, plan)
        for what, why in chosen.left:
            click.echo(f"left alone: {printable(what)}: {printable(why)}")
        for problem in plan.problems:
            click.echo(f"could not be judged: {printable(problem)}", err=True)
        if too_many := over_cap(plan, chosen.items, wanted.cap):
            raise Left(f"nothing was deleted: {'; '.join(too_many)}")
        failed = bool(chosen.left or plan.problems)
        if not chosen.items:
            click.echo("nothing to delete")
            return 1 if failed else 0
        for item in chosen.items:
            click.echo(f"{printable(str(item.candidate))}: {printable(item.verdict.why)}")
        if not yes and not _agreed(len(chosen.items)):
            click.echo("nothing was deleted", err=True)
            return 1
        actor = Actor(run.fleet, run.evidence, run.world, run.journal, grace=wanted.grace)
        counts: Counter[Outcome] = Counter()

        def tell(done: Done) -> None:
            counts[done.outcome] += 1
            _tell(done)

        try:
            await actor.delete(chosen.items, plan.barred, tell)
        except BaseException:  # Ctrl-C, a full disk, a pipe that nobody reads: what went is told all the same
            said = f"not finished: {_counted(counts)}; what became of the one under way: see {run.journal.path}"
            click.echo(said, err=True)
            raise
        finally:
            await run.save()
    click.echo(f"{_counted(counts)}; journal: {run.journal.path}")
    failed = failed or bool(counts[Outcome.LEFT] or counts[Outcome.FAILED])
    return 1 if failed else 0


def _counted(counts: Counter[Outcome]) -> str:
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome]) or "0 deleted"


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        click.echo("there is no terminal to ask at: say --yes to delete", err=True)
        return False
    return click.confirm(f"Delete {count} object{'s' if count > 1 else ''}?")


def _tell(done: Done) -> None:
    well = done.outcome in (Outcome.DELETED, Outcome.GONE)
    click.echo(printable(f"{done.outcome.value}: {done.item.candidate}: {done.why}"), err=not well)


async def _watch(wanted: Wanted, namespace: str | None, elect: bool, health: str | None) -> None:
    from fairlead.cli.signals import run_until_signal
    from fairlead.runtime.context import ReadContext
    from fairlead.tools.orphans.watch import Collector, operator

    world = World()
    async with _reached(wanted, world) as (fleet, transport, default):
        within = namespace or default
        uid = await fleet.downstream.uid()

        def collector(view: ReadContext) -> Collector:
            ours = Fleet(Cluster("downstream", view.unguarded), fleet.upstreams, fleet.retired)
            store = InFile(wanted.evidence) if wanted.evidence else InConfigMap(view.unguarded, within)
            journal = JournalFile(_journal(wanted.evidence or _state() / f"orphans-{uid}.json"))
            return Collector(ours, wanted.rules, world, store, journal, grace=wanted.grace, cap=wanted.cap)

        with InFile(wanted.evidence).locked() if wanted.evidence else contextlib.nullcontext():
            lease = within if elect else None
            work = operator(collector).run(transport, world, lease_namespace=lease, health=health)
            await run_until_signal(work)


def _show(plan: Plan, *, err: bool) -> None:
    from rich.console import Console

    from fairlead.report import tables

    console = Console(stderr=err)
    rows = [
        [item.candidate, item.verdict.state.value, item.to_json()["since"] or "", item.verdict.why]
        for state in (State.ORPHAN, State.WAITING, State.REFUSED)
        for item in plan.of(state)
    ]
    if rows:
        columns = ["object", "verdict", "absent since", "why"]
        tables.print_table("", columns, rows[:LONGEST], left_aligned=columns, console=console)
    if len(rows) > LONGEST:
        tables.print_notes(f"and {len(rows) - LONGEST} more: see the file that -o writes", console=console)
    for line in [*plan.problems, *plan.notes]:
        tables.print_notes(line, console=console)
    counts = {state: len(plan.of(state)) for state in (State.ORPHAN, State.WAITING, State.REFUSED)}
    unknown = sum(bool(look.unknown) for look in plan.looks.values())
    click.echo(
        f"{sum(plan.selected.values())} selected: {counts[State.ORPHAN]} to delete, {counts[State.WAITING]} in their "
        f"grace, {sum(plan.kept.values())} kept, {counts[State.REFUSED]} not judged; "
        f"{len(plan.looks)} clusters looked at, {unknown} of them unknown",
        err=err,
    )


def _check_output(path: Path, evidence: Path | None) -> None:
    """Before a scan that may be long. The file is replaced whole, which would be the end of a device or a link."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise click.UsageError(f"{path} is no plain file: name one with -o, or - for standard output")
    if evidence is not None and path.absolute() == evidence.absolute():
        raise click.UsageError(f"{path} is the evidence: name another file with -o")
    if not os.access(path.parent, os.W_OK):
        raise click.UsageError(f"{path.parent} is no folder that can be written to: name a file elsewhere with -o")


def _write(path: Path, text: str) -> None:
    try:
        write_private(path, text)
    except OSError as error:
        raise Left(f"{path} cannot be written ({error.strerror}): name another file with -o") from None
