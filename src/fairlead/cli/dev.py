"""`--dev`: restart the operator when one of its files changes."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from fairlead.api.errors import UserError
from fairlead.api.world import World
from fairlead.cli.load import THIRD_PARTY_DIRECTORIES, directory_of, unload_modules
from fairlead.client.transport import Transport
from fairlead.runtime.operator import Operator, Options

log = logging.getLogger("fairlead.run")

POLL_INTERVAL = 0.3
"""Seconds between two looks at the files: fast enough for a person, and cheap for a disk."""


class SourceFiles:
    """The Python files in the directory of an operator. Detects changes since the operator was loaded."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._directory: Path | None = None
        self._loaded: dict[Path, int] = {}
        # Bytecode is matched to its source by second and size, so a second quick change would go unnoticed.
        sys.dont_write_bytecode = True

    def load(self, load_operator: Callable[[], Operator]) -> Operator:
        """Import the files again and return the operator that they define. Raises UserError."""
        unload_modules(self._target)
        self._remember()
        operator = load_operator()
        if self._directory is None:  # The directory of a module is known only after it was loaded.
            self._remember()
        return operator

    async def wait_for_change(self) -> None:
        """Wait until a file is added, removed or changed."""
        while self._modification_times() == self._loaded:  # noqa: ASYNC110 - a file system sets no event
            await asyncio.sleep(POLL_INTERVAL)

    def _remember(self) -> None:
        self._directory = self._directory or directory_of(self._target)
        self._loaded = self._modification_times()

    def _modification_times(self) -> dict[Path, int]:
        times = {}
        for directory, subdirectories, names in os.walk(self._directory) if self._directory is not None else ():
            subdirectories[:] = [name for name in subdirectories if not THIRD_PARTY_DIRECTORIES.fullmatch(name)]
            for path in (Path(directory, name) for name in names if name.endswith(".py")):
                with contextlib.suppress(OSError):
                    times[path] = path.stat().st_mtime_ns
        return times


async def run_until_change(
    operator: Operator,
    load_operator: Callable[[], Operator],
    files: SourceFiles,
    transport: Transport,
    world: World,
    options: Options,
) -> Operator:
    """Run the operator until one of its files changes, then load it again and return the new operator.

    If the operator fails to start or to load, log the error and wait for the next change.
    """
    try:
        async with operator.running(transport, world, **options) as running:
            waiting, changing = asyncio.ensure_future(running.wait()), asyncio.ensure_future(files.wait_for_change())
            try:
                await asyncio.wait([waiting, changing], return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    waiting.result()
            finally:
                waiting.cancel()
                changing.cancel()
    except UserError as error:
        await _wait_after_error(error, files)
    while True:
        try:
            return files.load(load_operator)
        except UserError as error:
            await _wait_after_error(error, files)


async def _wait_after_error(error: UserError, files: SourceFiles) -> None:
    log.error("%s; waiting for the next change", error)
    await files.wait_for_change()
