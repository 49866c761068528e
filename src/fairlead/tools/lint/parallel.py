"""Call a function for each file, in several processes if there are many files."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from fairlead.api.errors import UserError

MIN_FILES = 400
"""With fewer files, starting processes takes longer than they save."""
FILES_AT_ONCE = 40
Result = TypeVar("Result")


def map_files(function: Callable[[str], Result], paths: Sequence[str], jobs: int) -> Iterator[Result]:
    """Yield the result of each path, in the order of the paths, whatever the number of processes is.

    Raises:
        UserError: if a process ends early, for example because the machine is out of memory.
    """
    if jobs <= 1 or len(paths) < MIN_FILES:
        yield from map(function, paths)
        return
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    try:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context(method)) as pool:
            yield from pool.map(function, paths, chunksize=FILES_AT_ONCE)
    except BrokenProcessPool as error:
        raise UserError("a process of the linter ended early: run it with --jobs 1, which needs less memory") from error
