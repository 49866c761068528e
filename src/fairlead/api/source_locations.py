"""Find the file and line of user code, so that an error can name the line that the user has to change."""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


def function_location(function: Callable[..., Any]) -> str:
    """Return the file and line where a function is defined, as `file.py:12`, or "" if Python does not know them."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:  # an object with a __call__ method, or a bound method
        code = getattr(getattr(function, "__call__", None), "__code__", None)  # noqa: B004
    return line_location(code.co_filename, code.co_firstlineno) if code is not None else ""


def caller_location() -> str:
    """Return the line of user code that called fairlead, as `file.py:12`, or "" if every caller is part of fairlead."""
    frame = user_frame(sys._getframe(1))  # noqa: SLF001 - the documented way to look at callers
    return line_location(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the first of `frame`, its caller, that caller's caller and so on that runs code outside of fairlead."""
    while frame is not None and is_fairlead(str(frame.f_globals.get("__name__") or "")):
        frame = frame.f_back
    return frame


def line_location(filename: str, line: int) -> str:
    """Return `file.py:12`. The path is relative if the file is below the working directory."""
    with contextlib.suppress(ValueError, OSError):
        filename = str(Path(filename).resolve().relative_to(Path.cwd()))
    return f"{filename}:{line}"


def is_fairlead(module: str) -> bool:
    """Return whether a module name, such as `fairlead.api`, belongs to fairlead itself."""
    return module == "fairlead" or module.startswith("fairlead.")


def with_location(location: str, message: str) -> str:
    """Return `location: message`, or only the message if the location is empty."""
    return f"{location}: {message}" if location else message
