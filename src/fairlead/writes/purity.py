"""Run a deciding function, and catch one that is not pure where that can be seen."""

import copy
import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from fairlead.writes.draft import Draft
from fairlead.writes.errors import ImpureDecision
from fairlead.writes.guards import Patch, patch_of
from fairlead.writes.jsonpatch import same
from fairlead.writes.view import Ledger, ListView, MapView, plain

T = TypeVar("T")


def run(function: Callable[[Draft], T], base: dict[str, Any]) -> tuple[T, Ledger, Patch]:
    """The function's result on a draft of `base`, what it read and changes, and the patch for that.

    It runs twice. Both runs must make the same patch and leave alone what the function captures: closure cells,
    defaults, the globals it names, the attributes of its object, and those of each function that it wraps. Contents of
    plain containers are compared; of anything else only whether it is the same one. What it does beyond that is not
    seen.
    """
    name = getattr(function, "__qualname__", repr(function))
    before = _captured(function)
    result, ledger, patch = _once(function, base, name)
    again, _, patch_again = _once(function, base, name)
    if not same(patch_again.ops, patch.ops):
        raise ImpureDecision(name, "two runs on the same object make different changes")
    if _differ(result, again):
        raise ImpureDecision(name, "two runs on the same object return different values")
    changed = [where for where, value in _captured(function).items() if before.get(where) != value]
    if changed:
        raise ImpureDecision(name, f"it changes {', '.join(changed)}")
    return result, ledger, patch


def _once(function: Callable[[Draft], T], base: dict[str, Any], name: str) -> tuple[T, Ledger, Patch]:
    ledger = Ledger(base)
    result: Any = function(Draft(ledger))
    if inspect.isawaitable(result):
        getattr(result, "close", lambda: None)()
        seen = "it is a coroutine, and waiting lets the world change under it"
        raise ImpureDecision(name, seen, "make it a plain function that captures what was waited for")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise ImpureDecision(
            name, "it returns a generator, which reads the object only later, or never", "return a list"
        )
    result = _handed_out(result)
    patch = patch_of(ledger)
    ledger.closed = True
    return result, ledger, patch


def _handed_out(result: Any) -> Any:
    """The result without views: what leaves the function counts as read whole.

    Looked for in tuples, maps, lists, dataclasses and models; one that leaves in anything else raises when it is read.
    """
    if isinstance(result, tuple):
        items = [_handed_out(item) for item in result]
        if all(map(operator.is_, items, result)):
            return result  # not every tuple can be made of its items (a time)
        return tuple(items) if type(result) is tuple else type(result)(*items)
    held = _held(result)
    if any(_handed_out(value) is not value for value in held.values()):
        result = copy.copy(result)
        for key, value in held.items():
            object.__setattr__(result, key, _handed_out(value))
        return result
    if isinstance(result, dict | list | MapView | ListView):
        return plain(result)
    return result


def _held(value: Any) -> dict[str, Any]:
    """The fields of a dataclass or model."""
    names = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else ()
    return {
        name: getattr(value, name) for name in names or getattr(value, "__struct_fields__", ()) if hasattr(value, name)
    }


def _differ(left: Any, right: Any) -> bool:
    """Whether two plain results differ; of what has no value of its own that cannot be said."""
    if isinstance(left, dict | list | tuple) and type(left) is type(right):
        if len(left) != len(right):
            return True
        if isinstance(left, dict):
            return any(key not in right or _differ(value, right[key]) for key, value in left.items())
        return any(map(_differ, left, right))
    if isinstance(left, str | bytes | int | float | type(None)):
        return repr(left) != repr(right)
    return any(_differ(value, getattr(right, key, None)) for key, value in _held(left).items())


def _captured(function: Any) -> dict[str, Any]:
    """What the function could keep from one run to the next, by name; of one that is wrapped, of each layer."""
    captured: dict[str, Any] = {}
    layer = ""
    while function is not None:
        if isinstance(function, functools.partial):
            captured |= {f"{layer}argument {n}": _frozen(value) for n, value in enumerate(function.args)}
            captured |= {f"{layer}argument {key}": _frozen(value) for key, value in function.keywords.items()}
            function = function.func
        else:
            captured |= {f"{layer}{key}": value for key, value in _kept(function).items()}
            function = getattr(function, "__wrapped__", None)
        layer += "wrapped "
    return captured


def _kept(function: Any) -> dict[str, Any]:
    """What one function, method or callable object captures."""
    named = inspect.isroutine(function)
    kept = {f"self.{key}": value for key, value in _state(getattr(function, "__self__", None) if named else function)}
    if not named:
        function = type(function).__call__
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return kept
    for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            kept[key] = _frozen(cell.cell_contents)
        except ValueError:  # not bound yet
            kept[key] = None
    for n, value in enumerate(function.__defaults__ or ()):
        kept[f"default {n}"] = _frozen(value)
    kept |= {f"default {key}": _frozen(value) for key, value in (function.__kwdefaults__ or {}).items()}
    names = [key for key in code.co_names if key in function.__globals__]
    return kept | {f"global {key}": _frozen(function.__globals__[key]) for key in names}


def _state(owner: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, also those that are kept in slots."""
    for key, value in getattr(owner, "__dict__", {}).items():
        yield key, _frozen(value)
    for slotted in (kind for kind in type(owner).__mro__ if "__slots__" in vars(kind)):
        for key, slot in vars(slotted).items():
            if inspect.ismemberdescriptor(slot) and hasattr(owner, key):
                yield key, _frozen(getattr(owner, key))


def _frozen(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Something to compare later: contents of plain containers, identity of anything else."""
    if isinstance(value, MapView | ListView) or id(value) in within:
        return id(value)
    within = (*within, id(value))
    if isinstance(value, dict):
        return {key: _frozen(item, within) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(item, within) for item in value]
    if isinstance(value, set | frozenset):
        return set(value)
    if isinstance(value, float):
        return repr(value)  # not a number is not itself
    return value if isinstance(value, str | bytes | int | type(None)) else id(value)
