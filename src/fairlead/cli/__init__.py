"""The command `fairlead`."""

import click

from fairlead import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "FAIRLEAD"})
@click.version_option(__version__, "-V", "--version", prog_name="fairlead")
def main() -> None:
    """Kubernetes controllers that never fight over what they write."""
