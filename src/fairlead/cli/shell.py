"""What all subcommands share: they load when they run, and what goes wrong is one line that names the remedy."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from fairlead.api.errors import UserError
from fairlead.api.text import printable

INTERRUPTED = 130
"""128 + SIGINT, as shells count."""

left_behind: set[Any] = set()
"""Tasks that did not end when they were told to: the process leaves without them."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported when one is called: `--help` shows their first lines without that.

    `lazy` maps a subcommand to ("module:attribute", "its one line of help").
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        name_twins(command, f"fairlead_{cmd_name}")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if rows := [(name, line) for name, (_, line) in self._lazy.items()]:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, *_: Any, **kwargs: Any) -> Any:
        """Run, and leave the process; see `leave_with`."""
        run = super().main
        leave_with(lambda: run(args, prog_name="fairlead", standalone_mode=False, **kwargs))


def name_twins(command: click.Command, prefix: str) -> None:
    """Give each option its twin in the environment: the prefix, and what the option is called on the command line."""
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            option.envvar = f"{prefix}_{max(option.opts, key=len).lstrip('-')}".replace("-", "_").upper()
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            name_twins(below, f"{prefix}_{name}")


def leave_with(run: Callable[[], Any]) -> NoReturn:
    """Run a command and leave: with 0, with 2 and one line for what the user can put right, with 130 after Ctrl-C."""
    try:
        code = run()
    except click.ClickException as error:
        _complain(error)
        code = error.exit_code
    except UserError as error:
        click.echo(f"fairlead: {printable(str(error))}", err=True)
        code = 2
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    code = code if isinstance(code, int) else 0
    if left_behind:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the interpreter would end them one by one, and say so
    sys.exit(code)


def _complain(error: click.ClickException) -> None:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "fairlead"
    remedy = f" (see: {path} --help)" if isinstance(error, click.UsageError) else ""
    click.echo(f"{path}: {printable(error.format_message())}{remedy}", err=True)
