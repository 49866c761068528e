"""`--dev`: the operator is started anew when one of its files changes."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from fairlead.api.errors import UserError
from fairlead.api.world import World
from fairlead.cli.load import NOT_OURS, folder, forget
from fairlead.client.transport import Transport
from fairlead.runtime.operator import Operator, Options

log = logging.getLogger("fairlead.run")

# How often to look for changed files: at once for a person, nothing for a disk.
LOOK = 0.3


class Files:
    """The Python files beside a target. What changes from the moment on that they are loaded counts."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._home: Path | None = None
        self._seen: dict[Path, int] = {}
        # it is told from its source by the second and the size: two quick changes would be taken for one
        sys.dont_write_bytecode = True

    def load(self, find: Callable[[], Operator]) -> Operator:
        """What is there now, loaded anew. Raises UserError."""
        forget(self._target)
        self._look()
        operator = find()
        if self._home is None:  # where a module is, is known once it was loaded
            self._look()
        return operator

    def _look(self) -> None:
        self._home = self._home or folder(self._target)
        self._seen = self._stamps()

    async def changed(self) -> None:
        """Wait until one is other than it was."""
        while self._stamps() == self._seen:  # noqa: ASYNC110 - a file system sets no event
            await asyncio.sleep(LOOK)

    def _stamps(self) -> dict[Path, int]:
        """When each was last changed."""
        stamps = {}
        for within, folders, names in os.walk(self._home) if self._home is not None else ():
            folders[:] = [name for name in folders if not NOT_OURS.fullmatch(name)]
            for path in (Path(within, name) for name in names if name.endswith(".py")):
                with contextlib.suppress(OSError):
                    stamps[path] = path.stat().st_mtime_ns
        return stamps


async def until_changed(
    operator: Operator, find: Callable[[], Operator], files: Files, transport: Transport, world: World, options: Options
) -> Operator:
    """Run it until a file changes, and answer what is there then. What is wrong with it is told, and waited out."""
    try:
        async with operator.running(transport, world, **options) as running:
            waiting, changing = asyncio.ensure_future(running.wait()), asyncio.ensure_future(files.changed())
            try:
                await asyncio.wait([waiting, changing], return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    waiting.result()
            finally:
                waiting.cancel()
                changing.cancel()
    except UserError as error:
        await _wait_out(error, files)
    while True:
        try:
            return files.load(find)
        except UserError as error:
            await _wait_out(error, files)


async def _wait_out(error: UserError, files: Files) -> None:
    log.error("%s; waiting for the next change", error)
    await files.changed()
