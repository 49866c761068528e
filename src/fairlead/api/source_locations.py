"""Find the file and line of user code, so that an error can name the line that the user has to change."""

import contextlib
import functools
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

_PATHS = sysconfig.get_paths()
_PACKAGES = tuple(_PATHS[name] + os.sep for name in ("purelib", "platlib"))
_STANDARD_LIBRARY = tuple(_PATHS[name] + os.sep for name in ("stdlib", "platstdlib"))


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


def raise_location(error: BaseException) -> str:
    """Return `file.py:12`, the innermost line of the user's code that led to the error, or "" if there is none.

    The user's code is the package of the handler, and every file that is neither fairlead, nor the standard library,
    nor an installed package.
    """
    package, location = None, ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, filename = str(frame.f_globals.get("__name__") or ""), frame.f_code.co_filename
        if is_fairlead(module) or filename.startswith("<frozen"):
            continue
        is_package = filename.startswith(_PACKAGES)  # Often below the folder of the standard library.
        if not is_package and filename.startswith(_STANDARD_LIBRARY):
            continue
        if package is None:
            package = module.partition(".")[0]  # The first frame below fairlead's is the handler.
        if not is_package or module.partition(".")[0] == package:
            location = line_location(filename, line)
    return location


def is_raised_by_fairlead(error: BaseException) -> bool:
    """Return whether a line of fairlead raised the error, as opposed to code that it called."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and is_fairlead(str(frames[-1].f_globals.get("__name__") or ""))


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
