"""`fairlead migrate`: from Update to Apply, for every object of some kinds."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.api.fields import patterns
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.text import printable
from fairlead.cli.cluster import Reached, find_kind, options, reach
from fairlead.writes import ObjectDeleted, WriteError, Writer
from fairlead.writes.migrate import migrate, movable
from fairlead.writes.writer import refuse_special, told

PAGE = 500  # objects a list request: what kubectl asks for
AT_ONCE = 8  # a fleet is migrated beside its operators, which must not notice
MOST_NAMED = 10  # a line should remain one


@dataclass
class Report:
    """What became of each object."""

    moved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    settled: int = 0
    writers: Counter[str] = field(default_factory=Counter)  # how many objects have an Update entry of a field manager


@click.command("migrate")
@click.argument("kinds", nargs=-1, required=True, metavar="KIND…")
@click.option("--from-manager", "managers", multiple=True, required=True, help="Whose Update entries to take from.")
@click.option("--to", "manager", help="The field manager that applies. Default: the name of --from-manager.")
@click.option(
    "--field", "fields", multiple=True, required=True,
    help="A field that this controller once wrote (spec.tls, spec.listeners[name=http], spec.listeners[*].hostname, "
    "/metadata/annotations/a.b~1c). Only these move.",
)  # fmt: skip
@click.option("-n", "--namespace", help="Default: every namespace.")
@click.option("--dry-run", is_flag=True, help="Say what would move; change nothing.")
@options
def command(
    kinds: tuple[str, ...],
    managers: tuple[str, ...],
    manager: str | None,
    fields: tuple[str, ...],
    namespace: str | None,
    dry_run: bool,
    kubeconfig: Path | None,
    context_name: str | None,
) -> None:
    """Move the ownership of fields from Update entries to an Apply entry.

    A controller that goes over to server-side apply cannot remove what it once wrote by Update until this was done.
    Name only fields that it wrote: the entry may be another controller's too. Values do not change. Objects that are
    done already are left alone, so a run that was broken off is simply started again.
    """
    if manager is None and len(managers) > 1:
        raise click.UsageError("--to is needed: there are several --from-manager")
    try:
        refuse_special(manager or managers[0])
    except ValueError as error:
        raise click.UsageError(f"--to: {error}") from None
    for each in fields:
        try:
            patterns.parse(each)
        except ValueError as error:
            raise click.UsageError(f"--field {error}") from None
    report = asyncio.run(
        _migrate(kinds, manager or managers[0], managers, fields, namespace, dry_run, kubeconfig, context_name)
    )
    for what, paths in sorted(report.moved.items()):
        click.echo(f"{printable(what)}: {printable(', '.join(paths))}")
    for what, said in sorted(report.failed.items()):
        click.echo(f"{printable(what)}: {printable(said)}", err=True)
    word = "would move" if dry_run else "moved"
    click.echo(f"{len(report.moved)} {word}, {report.settled} had nothing to move, {len(report.failed)} failed")
    unseen = [name for name in managers if name not in report.writers]
    if report.writers and unseen and not report.moved:
        there = ", ".join(f"{name} ({count})" for name, count in report.writers.most_common(MOST_NAMED))
        said = f"none was written by an Update of {' or '.join(unseen)}; field managers that did write: {there}"
        click.echo(printable(said), err=True)
    if report.failed:
        raise click.exceptions.Exit(1)


async def _migrate(
    words: tuple[str, ...],
    manager: str,
    managers: tuple[str, ...],
    fields: tuple[str, ...],
    namespace: str | None,
    dry_run: bool,
    kubeconfig: Path | None,
    context_name: str | None,
) -> Report:
    report, room = Report(), asyncio.Semaphore(AT_ONCE)
    async with reach(kubeconfig, context_name) as place:
        writer = Writer(place.client, place.world, manager)

        async def one(kind: Kind, obj: Object) -> None:
            what = told(kind, obj.name, obj.namespace)
            async with room:
                try:
                    done = await migrate(writer, kind, obj, fields=fields, managers=managers, dry_run=dry_run)
                except ObjectDeleted:
                    report.settled += 1
                except (ApiError, WriteError, UnknownOutcome, OSError) as error:
                    report.failed[what] = str(error)
                else:
                    report.moved[what] = done.moved
            click.echo(f"\r{len(report.moved)} done", nl=False, err=True)

        for kind in [await find_kind(place.client, word) for word in words]:
            async with asyncio.TaskGroup() as group:
                try:
                    async for obj in _every(place, kind, namespace if kind.namespaced else None):
                        report.writers.update(_writers(obj))
                        if movable(writer, obj, fields=fields, managers=managers):
                            group.create_task(one(kind, obj))
                        else:
                            report.settled += 1
                except (ApiError, OSError) as error:  # what was listed before is moved all the same
                    report.failed[f"list of {kind.plural}"] = f"{error}: start it again once that is mended"
        if report.moved or report.failed:
            click.echo(err=True)
    return report


def _writers(obj: Object) -> set[str]:
    """The field managers that have an Update entry from which something could be moved."""
    entries = obj.metadata.get("managedFields") or ()
    return {str(e.get("manager")) for e in entries if e.get("operation") == "Update" and not e.get("subresource")}


async def _every(place: Reached, kind: Kind, namespace: str | None) -> AsyncIterator[Object]:
    token: str | None = None
    while True:
        page = await place.client.list(kind, namespace, limit=PAGE, continue_=token, metadata_only=True)
        for obj in page.items:
            yield obj
        token = page.continue_
        if not token:
            return
