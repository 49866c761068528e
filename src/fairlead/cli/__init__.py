"""The command `fairlead`."""

import click

from fairlead import __version__
from fairlead.cli.shell import CommandLine, LazyGroup

SECTIONS: dict[str, dict[str, CommandLine]] = {
    "Write a controller": {
        "run": CommandLine("fairlead.cli.run:run", "run an operator, on a cluster or without one"),
        "why": CommandLine("fairlead.cli.why:command", "show why an operator did what it did to an object"),
    },
    "Test a controller": {
        "serve": CommandLine("fairlead.cli.serve:serve", "start an embedded Kubernetes API server"),
        "envtest": CommandLine("fairlead.cli.envtest:envtest", "run envtest suites on the embedded server"),
    },
    "See the races": {
        "lint": CommandLine("fairlead.cli.lint:command", "find unsafe writes in the source of a controller"),
        "demo": CommandLine("fairlead.cli.demo:demo", "replay five incidents, old code against new"),
    },
    "Run clusters": {
        "blame": CommandLine("fairlead.cli.blame:command", "show which field manager owns each field of an object"),
        "migrate": CommandLine("fairlead.cli.migrate:command", "move fields from Update to Apply ownership"),
        "orphans": CommandLine("fairlead.cli.orphans:command", "find and delete objects whose owners are gone"),
        "finalizers": CommandLine("fairlead.cli.finalizers:command", "remove an uninstalled operator's finalizer"),
    },
}
"""The commands of `fairlead --help`, grouped by what a person wants to do."""

ALIASES = {"release": "finalizers remove"}
"""Old commands that still work: old name -> new command line."""


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Every option can also be set in the environment: FAIRLEAD_RUN_NAMESPACE sets 'fairlead run --namespace'. "
    "Exit status: 0 success, 1 something was found or failed, 2 the command could not run.",
)
@click.version_option(__version__, "-V", "--version", prog_name="fairlead")
def main() -> None:
    """Kubernetes controllers that never fight over what they write."""
