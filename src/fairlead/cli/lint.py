"""`fairlead lint`: find unsafe writes in the source of a controller."""

import os
import sys
from pathlib import Path

import click

from fairlead.api.errors import UserError


@click.command("lint")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--select", "selected", multiple=True, help="Rules to run: an id, a code (W201), a group (W2) or 'all'.")
@click.option(
    "--format", "output", type=click.Choice(["text", "json", "sarif", "github"]), default="text", show_default=True
)
@click.option(
    "--fail-on", type=click.Choice(["warn", "info", "never"]), default="warn", show_default=True,
    help="Exit with 1 if there is a finding of this level or above.",
)  # fmt: skip
@click.option(
    "--models", type=click.Path(path_type=Path), multiple=True, help="YAML files with models of your helpers."
)
@click.option("--baseline", type=click.Path(path_type=Path), help="Report only findings that are not in this file.")
@click.option("--write-baseline", type=click.Path(path_type=Path), help="Write all findings to this file and exit.")
@click.option("--new-only", metavar="REVISION", help="Report only findings on lines that changed since a git revision.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="NUMBER",
    help="Processes that read files. The default is the number of cores. The findings do not depend on it.",
)  # fmt: skip
@click.option("--stats", is_flag=True, help="Print a table of counts instead of the findings.")
@click.option("--explain", metavar="RULE", help="Explain one rule and exit.")
def command(
    path: Path,
    selected: tuple[str, ...],
    output: str,
    fail_on: str,
    models: tuple[Path, ...],
    baseline: Path | None,
    write_baseline: Path | None,
    new_only: str | None,
    jobs: int | None,
    stats: bool,
    explain: str | None,
) -> None:
    """Find writes that race with other writers, in the Go and Python source below PATH.

    Warnings lose or overwrite data. Infos stall a controller or cost requests. Nothing is edited.
    """
    from fairlead.tools.lint import baseline as baselines
    from fairlead.tools.lint.engine import lint
    from fairlead.tools.lint.explain import explain_rule
    from fairlead.tools.lint.formats import FORMATS
    from fairlead.tools.lint.formats.statistics import to_statistics
    from fairlead.tools.lint.models import load_models

    if explain is not None:
        click.echo(explain_rule(explain))
        return
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: pass the root of a source tree")
    progress = show_progress if sys.stderr.isatty() else None
    report = lint(path, selected, load_models(list(models)), progress, jobs or os.cpu_count() or 1)
    if write_baseline is not None:
        baselines.write_baseline(write_baseline, report.findings)
        click.echo(f"wrote {len(report.findings)} findings to {write_baseline}")
        return
    if baseline is not None:
        report.findings = baselines.without_known(report.findings, baseline)
    if new_only is not None:
        report.findings = baselines.only_changed(report.findings, path, new_only)
    click.echo(to_statistics(report) if stats else FORMATS[output](report))
    if fail_on != "never" and any(finding.level == "warn" or fail_on == "info" for finding in report.findings):
        raise SystemExit(1)


def show_progress(what: str, done: int, total: int) -> None:
    """Print how many files or functions are done, on one line that is overwritten."""
    click.echo(f"\r{done} of {total} {what}\x1b[K" if done < total else "\r\x1b[K", err=True, nl=False)
