"""The options of `fairlead run` that tune the controllers: one for each setting of `fairlead.runtime.tuning`."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from fairlead.runtime.tuning import RUN_SETTINGS, SETTINGS, find_problem

Command = Callable[..., None]


def settings_options(command: Command) -> Command:
    """Add an option for each setting. The command gets them as keywords; `collect_settings` reads them."""
    for name, setting in reversed([*SETTINGS.items(), *RUN_SETTINGS.items()]):
        per_controller = name in SETTINGS
        option = click.option(
            _format_option(name),
            multiple=per_controller,
            metavar="[CONTROLLER=]NUMBER" if per_controller else "NUMBER",
            callback=partial(_parse_pairs if per_controller else _parse_value, name),
            help=f"{setting.help} Default: {setting.default:g}.",
        )
        command = option(command)
    return command


def _parse_pairs(
    name: str, context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[str, float | None]]:
    """Return (controller, value) for each text: `website=8`, or `8` for all controllers, whose name is ""."""
    pairs = [pair.rpartition("=") for pair in texts]
    return [(controller, _parse_value(name, context, option, number)) for controller, _, number in pairs]


def _parse_value(name: str, context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    value: float | str = text
    for number in (float, int):
        with contextlib.suppress(ValueError):
            value = number(text)
    if problem := find_problem(name, value):
        raise click.BadParameter(problem, context, option)
    assert not isinstance(value, str)
    return value


def collect_settings(options: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Remove the settings of controllers from the options of the command line, and return them by controller.

    Raises UsageError if one is set twice for the same controller.
    """
    settings: dict[str, dict[str, float]] = {}
    for name in SETTINGS:
        for controller, value in options.pop(name):
            values = settings.setdefault(controller, {})
            if name in values:
                controllers_text = f"controller {controller}" if controller else "all controllers"
                raise click.UsageError(f"{_format_option(name)} is set twice for {controllers_text}: set it once")
            values[name] = value
    return settings


def _format_option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"
