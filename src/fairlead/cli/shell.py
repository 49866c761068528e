"""The command group that all commands share: lazy imports, environment variables, one-line errors, exit status."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from fairlead.api.errors import UserError
from fairlead.api.text import printable

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells count."""

unfinished: set[Any] = set()
"""Tasks and threads that did not end when the command stopped. The process exits without waiting for them."""


class CommandLine(NamedTuple):
    """The location of a command ("module:attribute") and its line in `fairlead --help`."""

    target: str
    help: str


class LazyGroup(click.Group):
    """A click group that imports a command only when the command runs. `--help` imports no command.

    `sections` maps a heading of the help to its commands. `aliases` maps an old command to its replacement.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, CommandLine]],
        aliases: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._commands = {name: line for commands in sections.values() for name, line in commands.items()}
        self._aliases = aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._commands:
            return None
        module, _, attribute = self._commands[cmd_name].target.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        set_environment_variables(command, f"fairlead_{cmd_name}")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in self._aliases:
            replacement = self._aliases[args[0]]
            click.echo(f"fairlead {args[0]} is now called fairlead {replacement}", err=True)
            args = [*replacement.split(), *args[1:]]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._commands), default=0)
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line.help) for name, line in commands.items()])

    def main(self, args: Sequence[str] | None = None, *_: Any, **kwargs: Any) -> Any:
        """Run the command line and exit the process with the status of `exit_with`."""
        run = super().main
        exit_with(lambda: run(args, prog_name="fairlead", standalone_mode=False, **kwargs))


def set_environment_variables(command: click.Command, prefix: str) -> None:
    """Give each option an environment variable of the prefix and the long name: `FAIRLEAD_RUN_NAMESPACE`."""
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            option.envvar = f"{prefix}_{max(option.opts, key=len).lstrip('-')}".replace("-", "_").upper()
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            set_environment_variables(subcommand, f"{prefix}_{name}")


def exit_with(run: Callable[[], Any]) -> NoReturn:
    """Call `run` and exit the process with the status that it returns.

    For an error that the user can correct, print one line on stderr and exit with 2. After Ctrl-C, exit with 130.
    """
    try:
        code = run()
    except click.ClickException as error:
        _print_error(error)
        code = error.exit_code
    except UserError as error:
        click.echo(f"fairlead: {printable(str(error))}", err=True)
        code = 2
    except (KeyboardInterrupt, click.Abort):
        code = EXIT_INTERRUPTED
    code = code if isinstance(code, int) else 0
    if unfinished:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # A normal exit would wait for these threads, and print a warning for each of these tasks.
    sys.exit(code)


def _print_error(error: click.ClickException) -> None:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "fairlead"
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later
        commands = ", ".join(context.command.list_commands(context))
        click.echo(f"{path}: a command is missing: add one of {commands} (see: {path} --help)", err=True)
        return
    remedy = f" (see: {path} --help)" if isinstance(error, click.UsageError) else ""
    click.echo(f"{path}: {printable(error.format_message())}{remedy}", err=True)
