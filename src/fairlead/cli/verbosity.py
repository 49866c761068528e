"""The options of `fairlead run` that choose how much is logged: -v, -vv and --log-level."""

import logging
from collections.abc import Callable
from typing import Any

import click

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# Requests have a logger of their own, because there are many of them.
_BY_VERBOSITY = (
    {"fairlead": logging.INFO},
    {"fairlead": logging.DEBUG, "fairlead.client": logging.INFO},
    {"fairlead": logging.DEBUG},
)


def verbosity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -v and --log-level. The command gets `verbose` (a count) and `log_level` (levels by logger)."""
    for option in (
        click.option(
            "--log-level",
            multiple=True,
            metavar="[LOGGER=]LEVEL",
            callback=_parse_levels,
            help="debug, info, warning or error: for all of fairlead, or for one logger (--log-level "
            "fairlead.client=debug). May be repeated.",
        ),
        click.option(
            "-v",
            "--verbose",
            count=True,
            help="Log why each pass ran, what it read and skipped, and how long it took. -vv: also each request.",
        ),
    ):
        command = option(command)
    return command


def choose_levels(verbose: int, log_level: dict[str, int]) -> dict[str, int]:
    """Return the level of each logger. --log-level overrides -v."""
    return {**_BY_VERBOSITY[min(verbose, len(_BY_VERBOSITY) - 1)], **log_level}


def _parse_levels(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for level in texts:
        logger, _, name = level.rpartition("=")
        if name.lower() not in LEVELS:
            raise click.BadParameter(
                f"{name!r} is not a level: use one of {', '.join(LEVELS)}, or LOGGER=LEVEL", context, option
            )
        levels[logger or "fairlead"] = LEVELS[name.lower()]
    return levels
