"""`fairlead migrate`: move field ownership from Update to Apply, for every object of some kinds."""

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
from fairlead.cli.cluster import Connection, connect, connection_options, find_kind
from fairlead.writes import ObjectDeleted, WriteError, Writer
from fairlead.writes.migrate import can_migrate, migrate
from fairlead.writes.writer import describe_object, validate_field_manager

PAGE_SIZE = 500  # Objects per list request, as in kubectl.
CONCURRENT_WRITES = 8  # Few enough that the operators working on the same objects do not notice.
MAX_NAMED_MANAGERS = 10  # More would not fit on one line.


@dataclass
class MigrationReport:
    """The objects of a migration by result: moved, unchanged, failed."""

    moved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unchanged: int = 0
    update_managers: Counter[str] = field(default_factory=Counter)  # manager -> number of objects it wrote by Update


@click.command("migrate")
@click.argument("kinds", nargs=-1, required=True, metavar="KIND…")
@click.option(
    "--from-manager", "managers", multiple=True, required=True, help="The field manager whose Update entries to move."
)
@click.option("--to", "manager", help="The field manager that applies. Default: the name of --from-manager.")
@click.option(
    "--field", "fields", multiple=True, required=True,
    help="A field that this controller once wrote (spec.tls, spec.listeners[name=http], spec.listeners[*].hostname, "
    "/metadata/annotations/a.b~1c). No other field moves.",
)  # fmt: skip
@click.option("-n", "--namespace", help="Default: every namespace.")
@click.option("--dry-run", is_flag=True, help="Print what would move, and change nothing.")
@connection_options
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

    A controller that changes from Update to server-side apply cannot remove the fields it once wrote until they are
    moved. Name only fields that this controller wrote: other controllers may share the entry. No value changes. Objects
    without such fields are skipped, so it is safe to run the command again.
    """
    if manager is None and len(managers) > 1:
        raise click.UsageError("--to is required with more than one --from-manager")
    try:
        validate_field_manager(manager or managers[0])
    except ValueError as error:
        raise click.UsageError(f"--to: {error}") from None
    for pattern in fields:
        try:
            patterns.parse_pattern(pattern)
        except ValueError as error:
            raise click.UsageError(f"--field {error}") from None
    report = asyncio.run(
        _migrate(kinds, manager or managers[0], managers, fields, namespace, dry_run, kubeconfig, context_name)
    )
    for object_name, paths in sorted(report.moved.items()):
        click.echo(f"{printable(object_name)}: {printable(', '.join(paths))}")
    for object_name, message in sorted(report.failed.items()):
        click.echo(f"{printable(object_name)}: {printable(message)}", err=True)
    verb = "would move" if dry_run else "moved"
    click.echo(f"{len(report.moved)} {verb}, {report.unchanged} had nothing to move, {len(report.failed)} failed")
    missing_managers = [name for name in managers if name not in report.update_managers]
    if report.update_managers and missing_managers and not report.moved:
        other_managers = ", ".join(
            f"{name} ({count})" for name, count in report.update_managers.most_common(MAX_NAMED_MANAGERS)
        )
        click.echo(
            printable(f"no object has an Update entry of {' or '.join(missing_managers)}; there are: {other_managers}"),
            err=True,
        )
    if report.failed:
        raise click.exceptions.Exit(1)


async def _migrate(
    kind_names: tuple[str, ...],
    manager: str,
    managers: tuple[str, ...],
    fields: tuple[str, ...],
    namespace: str | None,
    dry_run: bool,
    kubeconfig: Path | None,
    context_name: str | None,
) -> MigrationReport:
    report, concurrency = MigrationReport(), asyncio.Semaphore(CONCURRENT_WRITES)
    async with connect(kubeconfig, context_name) as connection:
        writer = Writer(connection.client, connection.world, manager)

        async def migrate_object(kind: Kind, obj: Object) -> None:
            object_name = describe_object(kind, obj.name, obj.namespace)
            async with concurrency:
                try:
                    migration = await migrate(writer, kind, obj, fields=fields, managers=managers, dry_run=dry_run)
                except ObjectDeleted:
                    report.unchanged += 1
                except (ApiError, WriteError, UnknownOutcome, OSError) as error:
                    report.failed[object_name] = str(error)
                else:
                    report.moved[object_name] = migration.moved
            click.echo(f"\r{len(report.moved)} done", nl=False, err=True)

        for kind in [await find_kind(connection.client, name) for name in kind_names]:
            async with asyncio.TaskGroup() as group:
                try:
                    async for obj in _list_all(connection, kind, namespace if kind.namespaced else None):
                        report.update_managers.update(_update_managers(obj))
                        if can_migrate(writer, obj, fields=fields, managers=managers):
                            group.create_task(migrate_object(kind, obj))
                        else:
                            report.unchanged += 1
                except (ApiError, OSError) as error:  # The objects listed so far are still migrated.
                    report.failed[f"list of {kind.plural}"] = f"{error}. Correct this and run the command again"
        if report.moved or report.failed:
            click.echo(err=True)
    return report


def _update_managers(obj: Object) -> set[str]:
    """Return the field managers with an Update entry for the main resource."""
    entries = obj.metadata.get("managedFields") or ()
    return {
        str(entry.get("manager"))
        for entry in entries
        if entry.get("operation") == "Update" and not entry.get("subresource")
    }


async def _list_all(connection: Connection, kind: Kind, namespace: str | None) -> AsyncIterator[Object]:
    token: str | None = None
    while True:
        page = await connection.client.list(kind, namespace, limit=PAGE_SIZE, continue_=token, metadata_only=True)
        for obj in page.items:
            yield obj
        token = page.continue_
        if not token:
            return
