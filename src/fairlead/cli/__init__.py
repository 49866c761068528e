"""The command `fairlead`."""

import click

from fairlead import __version__
from fairlead.cli.shell import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("fairlead.cli.demo:demo", "run the reference systems, old way against new"),
    "run": ("fairlead.cli.run:run", "run an operator, on a cluster or with none"),
    "blame": ("fairlead.cli.blame:command", "show who owns which field of an object"),
    "migrate": ("fairlead.cli.migrate:command", "move ownership of fields from Update to Apply, for a fleet"),
    "release": ("fairlead.cli.release:command", "take an operator's finalizer off, when it is uninstalled"),
    "orphans": ("fairlead.cli.orphans:command", "find and delete what was left in another cluster"),
    "serve": ("fairlead.cli.serve:serve", "serve the Kubernetes API from memory"),
}
"""Subcommand -> (where it is, its line in the help). In the order of the help."""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Each option has a twin in the environment: FAIRLEAD_RUN_NAMESPACE for 'fairlead run --namespace'.",
)
@click.version_option(__version__, "-V", "--version", prog_name="fairlead")
def main() -> None:
    """Kubernetes controllers that never fight over what they write."""
