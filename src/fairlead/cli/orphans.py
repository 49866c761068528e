"""`fairlead orphans`: plan, review and delete orphans in another cluster."""

import asyncio
import contextlib
import json
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
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.clusters import Cluster, Fleet, Unreachable
from fairlead.tools.orphans.deletion import DeletionOutcome, DeletionResult, OrphanDeleter, find_exceeded_caps
from fairlead.tools.orphans.durations import parse_duration
from fairlead.tools.orphans.evidence import Evidence
from fairlead.tools.orphans.evidence_stores import EvidenceConfigMap, EvidenceFile, EvidenceNotSaved, EvidenceStore
from fairlead.tools.orphans.journal import DeletionJournalFile, JournalError
from fairlead.tools.orphans.plan import Plan, scan
from fairlead.tools.orphans.plan_files import choose_items, read
from fairlead.tools.orphans.rule_files import load, shipped_rules
from fairlead.tools.orphans.rules import OrphanRule
from fairlead.tools.orphans.verdicts import State

MAX_TABLE_ROWS = 200
"""Rows of a printed table. The file that -o writes has all of them."""


class NotCompleted(click.ClickException):
    """Some objects could not be judged or deleted. The command exits with 1."""

    exit_code = 1


@dataclass(frozen=True)
class OrphanOptions:
    """The options of the command line. A plan file cannot change them."""

    kubeconfig: Path | None
    downstream: str
    upstreams: dict[str, str]
    rules: list[OrphanRule]
    grace: float | None
    retired: frozenset[str]
    cap: Cap | None
    evidence: Path | None


class _Parsed(click.ParamType[Any]):
    """A click parameter type that calls a function to parse the text. A ValueError is a usage error."""

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


def _parse_upstream(text: str) -> tuple[str, str]:
    name, equals, context = text.partition("=")
    if not equals or not name or not context:
        raise ValueError(f"{text!r} is not NAME=CONTEXT: write for example project-a=prod-a")
    return name, context


def _add_options(command: Callable[..., None]) -> Callable[..., None]:
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in reversed([
        click.option("--kubeconfig", type=file, help="Default: $KUBECONFIG, ~/.kube/config."),
        click.option("--downstream", required=True, metavar="CONTEXT", help="The cluster with the copies."),
        click.option("--upstream", "upstreams", multiple=True, type=_Parsed("NAME=CONTEXT", _parse_upstream),
                     metavar="NAME=CONTEXT", help="A cluster with originals, under its name in the labels of "
                     "the copies. Repeat for more."),
        click.option("--rules", "rules_file", type=file, help="Rules in YAML or Python. Default: HTTPRoutes without a "
                     "Gateway, anchors without an owner."),
        click.option("--grace", type=_Parsed("DURATION", parse_duration), metavar="DURATION",
                     help="How long all parents must have been absent; with 0s one "
                     "live look is enough. Default: the rule's, 5m."),
        click.option("--retired", multiple=True, metavar="NAME", help="A cluster that was deleted for good: its copies "
                     "are orphans. Repeat for more."),
        click.option("--max", "cap", type=_Parsed("N|N%", Cap.parse), metavar="N|N%", help="Delete nothing if more "
                     "objects would be deleted. Default: the rule's, 20% of what it selects, at least 10."),
        click.option("--evidence", type=click.Path(dir_okay=False, path_type=Path), help="The file that records since "
                     "when parents are absent. Default: in the user's state folder; for watch, a ConfigMap."),
    ]):  # fmt: skip
        command = option(command)
    return command


@click.group("orphans")
def command() -> None:
    """Find and delete orphans: copies whose originals are gone.

    \b
    fairlead orphans plan --downstream edge --upstream a=project-a -o plan.json
    fairlead orphans apply plan.json --downstream edge --upstream a=project-a

    An object is an orphan if all its parents were absent for the whole grace period. Absence is measured by live reads,
    never by age. If anything is unknown, the object stays.
    """


@command.command("plan", short_help="Print what would be deleted, and why. Deletes nothing.")
@_add_options
@click.option("-o", "output", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), help="Write the plan "
              "as JSON, for apply; - is standard output.")  # fmt: skip
def plan_command(output: Path | None, **arguments: Any) -> None:
    """Print what would be deleted, why, and what cannot be judged. Deletes nothing.

    Records which parents are absent (see --evidence), so that the next plan or apply knows since when.
    """
    options = _parse_options(**arguments)
    if output is not None and str(output) != "-":
        _check_output(output, options.evidence)

    async def make() -> Plan:
        async with _run(options) as run:
            plan = await run.scan()
            await run.save()
            return plan

    plan = _run_async(make())
    encoded_plan = json.dumps(plan.to_json(), indent=2) + "\n"
    if str(output) == "-":
        click.echo(encoded_plan, nl=False)
    _print_plan(plan, to_stderr=str(output) == "-")
    if output is not None and str(output) != "-":
        _write(output, encoded_plan)
    for problem in find_exceeded_caps(plan, plan.of(State.ORPHAN), options.cap):
        click.echo(f"over the cap: {printable(problem)}", err=True)
    if not plan.complete:
        raise click.exceptions.Exit(1)


@command.command("apply", short_help="Delete the orphans of a plan that are still orphans.")
@click.argument("plan_file", metavar="PLAN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_add_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def apply_command(plan_file: Path, yes: bool, **arguments: Any) -> None:
    """Delete the orphans of a plan. Each object is judged again, live, just before its deletion.

    The plan only narrows what may be deleted. Clusters, rules, grace and cap come from this command line.
    """
    options = _parse_options(**arguments)
    code = _run_async(_apply(options, plan_file, yes))
    if code:
        raise click.exceptions.Exit(code)


@command.command("watch", short_help="Collect orphans continuously, until interrupted.")
@_add_options
@click.option("-n", "--namespace", help="Of the ConfigMap and the lease. Default: the context's namespace.")
@click.option("--leader-elect/--no-leader-elect", "elect", default=True, show_default=True, help="Work only while "
              "holding the lease.")  # fmt: skip
@click.option("--health", metavar="[HOST:]PORT", help="Serve /healthz, /readyz and /metrics; on loopback unless a "
              "host is named.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def watch_command(namespace: str | None, elect: bool, health: str | None, log_format: str, **arguments: Any) -> None:
    """Scan once a minute, and delete objects that were orphans for the whole grace period, until interrupted."""
    from fairlead.runtime import logs
    from fairlead.runtime.health import address
    from fairlead.runtime.leases import LeaseLost

    options = _parse_options(**arguments)
    if health:
        try:
            address(health)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    logs.configure(World(), form=log_format)
    try:
        _run_async(_watch(options, namespace, elect, health))
    except LeaseLost as error:
        raise NotCompleted(f"{error}: restart the command") from None


def _parse_options(
    *,
    kubeconfig: Path | None,
    downstream: str,
    upstreams: tuple[tuple[str, str], ...],
    rules_file: Path | None,
    grace: float | None,
    retired: tuple[str, ...],
    cap: Cap | None,
    evidence: Path | None,
) -> OrphanOptions:
    names = [name for name, _ in upstreams]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise click.UsageError(f"--upstream names {', '.join(duplicates)} twice: use one context per cluster")
    if in_both := sorted(set(names) & set(retired)):
        raise click.UsageError(
            f"{', '.join(in_both)} cannot be both --upstream and --retired: a retired cluster does not exist any more"
        )
    if not names and not retired:
        raise click.UsageError("--upstream or --retired is required: name at least one cluster")
    rules = load(rules_file) if rules_file else shipped_rules()
    return OrphanOptions(kubeconfig, downstream, dict(upstreams), rules, grace, frozenset(retired), cap, evidence)


def _run_async(work: Any) -> Any:
    try:
        return asyncio.run(work)
    except Unreachable as error:
        raise NotCompleted(f"the downstream cluster cannot be judged: {error}") from None
    except (EvidenceNotSaved, JournalError) as error:
        raise NotCompleted(str(error)) from None
    except (ApiError, OSError) as error:
        raise NotCompleted(f"stopped: {error}") from None


@dataclass
class _Run:
    """One run of a command: the connected clusters, and the evidence, which is loaded and locked."""

    options: OrphanOptions
    world: World
    fleet: Fleet
    evidence: Evidence
    store: EvidenceStore
    journal: DeletionJournalFile

    async def scan(self) -> Plan:
        progress = _print_progress if sys.stderr.isatty() else lambda step, completed, total: None
        plan = await scan(self.fleet, self.options.rules, self.evidence, grace=self.options.grace, progress=progress)
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
        return plan

    async def save(self) -> None:
        await self.store.save(self.evidence)


@contextlib.asynccontextmanager
async def _connect(options: OrphanOptions, world: World) -> AsyncIterator[tuple[Fleet, Transport, str]]:
    """Connect to all clusters. Yield the fleet, the downstream transport and the downstream context's namespace."""
    from fairlead.client import kubeconfig
    from fairlead.client.http import HttpTransport

    async with contextlib.AsyncExitStack() as stack:

        def reach(name: str, context: str) -> tuple[Cluster, Transport, str]:
            access = kubeconfig.load(world, path=options.kubeconfig, context=context)
            transport = HttpTransport(access.cluster, access.credentials)
            stack.push_async_callback(transport.close)
            client = Client(transport, world, user_agent="fairlead-orphans")
            return Cluster(name, client), transport, access.namespace

        downstream, transport, namespace = reach("downstream", options.downstream)
        upstreams = {name: reach(name, context)[0] for name, context in options.upstreams.items()}
        yield Fleet(downstream, upstreams, options.retired), transport, namespace


@contextlib.asynccontextmanager
async def _run(options: OrphanOptions) -> AsyncIterator[_Run]:
    world = World()
    async with _connect(options, world) as (fleet, _, _):
        uid = await fleet.downstream.uid()
        store = EvidenceFile(options.evidence or _get_state_folder() / f"orphans-{uid}.json")
        with store.locked():
            evidence = Evidence(world, uid)
            await store.load(evidence)
            yield _Run(options, world, fleet, evidence, store, DeletionJournalFile(_get_journal_path(store.path)))


def _get_state_folder() -> Path:
    """Return the folder for state files, $XDG_STATE_HOME/fairlead or ~/.local/state/fairlead."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fairlead"


def _get_journal_path(evidence: Path) -> Path:
    return evidence.with_name(f"{evidence.name.removesuffix('.json')}.journal")


def _print_progress(step: str, completed: int, total: int) -> None:
    total_text = f" of {total}" if total else ""
    click.echo(f"\r\x1b[K{completed}{total_text} {printable(step)}", nl=False, err=True)


async def _apply(options: OrphanOptions, file: Path, is_confirmed: bool) -> int:
    async with _run(options) as run:
        names = read(file, run.evidence.downstream)
        plan = await run.scan()
        await run.save()
        chosen = choose_items(names, plan)
        for name, reason in chosen.skipped:
            click.echo(f"stays: {printable(name)}: {printable(reason)}")
        for problem in plan.problems:
            click.echo(f"could not be judged: {printable(problem)}", err=True)
        if too_many := find_exceeded_caps(plan, chosen.items, options.cap):
            raise NotCompleted(f"nothing was deleted: {'; '.join(too_many)}")
        has_failed = bool(chosen.skipped or plan.problems)
        if not chosen.items:
            click.echo("nothing to delete")
            return 1 if has_failed else 0
        for item in chosen.items:
            click.echo(f"{printable(str(item.candidate))}: {printable(item.verdict.why)}")
        if not is_confirmed and not _confirm(len(chosen.items)):
            click.echo("nothing was deleted", err=True)
            return 1
        actor = OrphanDeleter(run.fleet, run.evidence, run.world, run.journal, grace=options.grace)
        counts: Counter[DeletionOutcome] = Counter()

        def report(result: DeletionResult) -> None:
            counts[result.outcome] += 1
            _print_result(result)

        try:
            await actor.delete(chosen.items, plan.ambiguous, report)
        except BaseException:  # Ctrl-C, a full disk, a closed pipe: still print what was deleted.
            message = f"not finished: {_format_counts(counts)}; for the last one see {run.journal.path}"
            click.echo(message, err=True)
            raise
        finally:
            await run.save()
    click.echo(f"{_format_counts(counts)}; journal: {run.journal.path}")
    has_failed = has_failed or bool(counts[DeletionOutcome.LEFT] or counts[DeletionOutcome.FAILED])
    return 1 if has_failed else 0


def _format_counts(counts: Counter[DeletionOutcome]) -> str:
    return (
        ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in DeletionOutcome if counts[outcome]) or "0 deleted"
    )


def _confirm(count: int) -> bool:
    if not sys.stdin.isatty():
        click.echo("there is no terminal for a confirmation: add --yes to delete", err=True)
        return False
    return click.confirm(f"Delete {count} object{'s' if count > 1 else ''}?")


def _print_result(result: DeletionResult) -> None:
    is_success = result.outcome in (DeletionOutcome.DELETED, DeletionOutcome.GONE)
    click.echo(printable(f"{result.outcome.value}: {result.item.candidate}: {result.why}"), err=not is_success)


async def _watch(options: OrphanOptions, namespace: str | None, needs_lease: bool, health: str | None) -> None:
    from fairlead.cli.signals import run_until_signal
    from fairlead.runtime.read_context import ReadContext
    from fairlead.tools.orphans.collector import Collector, operator

    world = World()
    async with _connect(options, world) as (fleet, transport, default):
        lease_namespace = namespace or default
        uid = await fleet.downstream.uid()

        def collector(view: ReadContext) -> Collector:
            ours = Fleet(Cluster("downstream", view.unguarded), fleet.upstreams, fleet.retired)
            store = (
                EvidenceFile(options.evidence)
                if options.evidence
                else EvidenceConfigMap(view.unguarded, lease_namespace)
            )
            journal = DeletionJournalFile(
                _get_journal_path(options.evidence or _get_state_folder() / f"orphans-{uid}.json")
            )
            return Collector(ours, options.rules, world, store, journal, grace=options.grace, cap=options.cap)

        with EvidenceFile(options.evidence).locked() if options.evidence else contextlib.nullcontext():
            lease = lease_namespace if needs_lease else None
            work = operator(collector).run(transport, world, lease_namespace=lease, health=health)
            await run_until_signal(work)


def _print_plan(plan: Plan, *, to_stderr: bool) -> None:
    from rich.console import Console

    from fairlead.report import tables

    console = Console(stderr=to_stderr)
    rows = [
        [item.candidate, item.verdict.state.value, item.to_json()["since"] or "", item.verdict.why]
        for state in (State.ORPHAN, State.WAITING, State.REFUSED)
        for item in plan.of(state)
    ]
    if rows:
        columns = ["object", "verdict", "absent since", "why"]
        tables.print_table("", columns, rows[:MAX_TABLE_ROWS], left_aligned=columns, console=console)
    if len(rows) > MAX_TABLE_ROWS:
        tables.print_notes(f"and {len(rows) - MAX_TABLE_ROWS} more: write all of them with -o", console=console)
    for line in [*plan.problems, *plan.notes]:
        tables.print_notes(line, console=console)
    counts = {state: len(plan.of(state)) for state in (State.ORPHAN, State.WAITING, State.REFUSED)}
    unknown = sum(bool(look.unknown) for look in plan.looks.values())
    click.echo(
        f"{sum(plan.selected.values())} selected: {counts[State.ORPHAN]} to delete, {counts[State.WAITING]} in their "
        f"grace, {sum(plan.kept.values())} kept, {counts[State.REFUSED]} not judged; "
        f"{len(plan.looks)} clusters looked at, {unknown} of them unknown",
        err=to_stderr,
    )


def _check_output(path: Path, evidence: Path | None) -> None:
    """Check before a long scan that the plan can be written to `path`: not a device, a link or the evidence file."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise click.UsageError(f"{path} is not a regular file: choose one with -o, or - for standard output")
    if evidence is not None and path.absolute() == evidence.absolute():
        raise click.UsageError(f"{path} is the evidence file: choose another with -o")
    if not os.access(path.parent, os.W_OK):
        raise click.UsageError(f"{path.parent} is not a writable folder: choose another with -o")


def _write(path: Path, content: str) -> None:
    try:
        write_private(path, content)
    except OSError as error:
        raise NotCompleted(f"{path} cannot be written ({error.strerror}): choose another file with -o") from None
