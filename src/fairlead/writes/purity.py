"""Run a deciding function, and catch one that is not pure where that can be seen."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fairlead.writes.errors import Impure
from fairlead.writes.guards import patch_of
from fairlead.writes.jsonpatch import Op, same
from fairlead.writes.view import Draft, Ledger, plain

T = TypeVar("T")


def run(function: Callable[[Draft], T], base: dict[str, Any]) -> tuple[T, Ledger, list[Op]]:
    """The function's result on a draft of `base`, what it read and changes, and the patch for that.

    It runs twice. Both runs must make the same patch and leave alone what the function captures: closure cells,
    defaults, the globals it names, the attributes of a method's object. What it does beyond those is not seen.
    """
    name = getattr(function, "__qualname__", repr(function))
    before = _captured(function)
    result, ledger, patch = _once(function, base, name)
    if not same(_once(function, base, name)[2], patch):
        raise Impure(name, "two runs on the same object make different changes")
    changed = [where for where, value in _captured(function).items() if before.get(where) != value]
    if changed:
        raise Impure(name, f"it changes {', '.join(changed)}")
    return result, ledger, patch


def _once(function: Callable[[Draft], T], base: dict[str, Any], name: str) -> tuple[T, Ledger, list[Op]]:
    ledger = Ledger(base)
    result: Any = function(Draft(ledger))
    if inspect.isawaitable(result):
        getattr(result, "close", lambda: None)()
        raise Impure(name, "it is a coroutine, and waiting lets the world change under it")
    return _handed_out(result), ledger, patch_of(ledger)


def _handed_out(result: Any) -> Any:
    """The result without views: what leaves the function counts as read whole."""
    if isinstance(result, tuple) and type(result) is tuple:
        return tuple(_handed_out(item) for item in result)
    if isinstance(result, dict | list) or type(result).__module__ == plain.__module__:
        return plain(result)
    return result


def _captured(function: Any) -> dict[str, Any]:
    captured: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        captured |= {f"argument {n}": _frozen(value) for n, value in enumerate(function.args)}
        captured |= {f"argument {key}": _frozen(value) for key, value in function.keywords.items()}
        function = function.func
    owner = getattr(function, "__self__", None)
    if owner is not None and hasattr(owner, "__dict__"):
        captured |= {f"self.{key}": _frozen(value) for key, value in vars(owner).items()}
    code = getattr(function, "__code__", None)
    if code is None:
        return captured
    for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[key] = _frozen(cell.cell_contents)
        except ValueError:  # not bound yet
            captured[key] = None
    for n, value in enumerate(function.__defaults__ or ()):
        captured[f"default {n}"] = _frozen(value)
    names = [key for key in code.co_names if key in function.__globals__]
    return captured | {f"global {key}": _frozen(function.__globals__[key]) for key in names}


def _frozen(value: Any) -> Any:
    """Something to compare later: contents of plain containers, identity of anything else."""
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(item) for item in value]
    if isinstance(value, set | frozenset):
        return set(value)
    return value if isinstance(value, str | bytes | int | float | type(None)) else id(value)
