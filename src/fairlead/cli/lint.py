"""`fairlead lint`: find unsafe writes in the source of a controller."""

from pathlib import Path

import click

from fairlead.api.errors import UserError


@click.command("lint")
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--select", "selected", multiple=True, help="Rules to run: an id, a code (W201), a group (W2) or 'all'.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--fail-on", type=click.Choice(["warn", "info", "never"]), default="warn", show_default=True,
    help="Exit with 1 if there is a finding of this level or above.",
)  # fmt: skip
@click.option(
    "--models", type=click.Path(path_type=Path), multiple=True, help="YAML files with models of your helpers."
)
@click.option("--explain", metavar="RULE", help="Explain one rule and exit.")
def command(
    path: Path, selected: tuple[str, ...], output: str, fail_on: str, models: tuple[Path, ...], explain: str | None
) -> None:
    """Find writes that race with other writers, in the Go source below PATH.

    Warnings lose or overwrite data. Infos stall a controller or cost requests.
    """
    from fairlead.tools.lint.engine import lint
    from fairlead.tools.lint.formats import FORMATS
    from fairlead.tools.lint.models import load_models

    if explain is not None:
        from fairlead.tools.lint.explain import explain_rule

        click.echo(explain_rule(explain))
        return
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: pass the root of a source tree")
    report = lint(path, selected, load_models(list(models)))
    click.echo(FORMATS[output](report))
    if any(finding.level == "warn" or fail_on == "info" for finding in report.findings) and fail_on != "never":
        raise SystemExit(1)
