"""Where user code stands, so that an error names the line that the user has to change."""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


def function_location(function: Callable[..., Any]) -> str:
    """Return `file.py:12`, the place of the function's definition, or "" if Python does not know it."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:  # an object with a __call__ method, or a bound method
        code = getattr(getattr(function, "__call__", None), "__code__", None)  # noqa: B004
    return line_location(code.co_filename, code.co_firstlineno) if code is not None else ""


def caller_location() -> str:
    """Return `file.py:12`, the line outside of fairlead that led to this call, or "" if there is none."""
    frame = user_frame(sys._getframe(1))  # noqa: SLF001 - the documented way to look at callers
    return line_location(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the first frame that runs code outside of fairlead, going from `frame` to its callers."""
    while frame is not None and is_fairlead(str(frame.f_globals.get("__name__") or "")):
        frame = frame.f_back
    return frame


def line_location(filename: str, line: int) -> str:
    """Return `file.py:12`, with the path as seen from the working directory when the file is below it."""
    with contextlib.suppress(ValueError, OSError):
        filename = str(Path(filename).resolve().relative_to(Path.cwd()))
    return f"{filename}:{line}"


def is_fairlead(module: str) -> bool:
    """Whether a module of that name is part of fairlead itself."""
    return module == "fairlead" or module.startswith("fairlead.")


def with_location(location: str, message: str) -> str:
    """Put the location before the message, if there is one."""
    return f"{location}: {message}" if location else message
