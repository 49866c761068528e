"""Run a decision function twice, and reject it if the runs differ or have side effects."""

import copy
import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from fairlead.writes.access_log import AccessLog
from fairlead.writes.draft import Draft
from fairlead.writes.errors import ImpureDecision
from fairlead.writes.guarded_patch import GuardedPatch, build_guarded_patch
from fairlead.writes.json_patch import Path, json_equal
from fairlead.writes.tracked import TrackedList, TrackedMap, collect_edits, plain

T = TypeVar("T")
Edits = dict[Path, Any]


def run(function: Callable[[Draft], T], base: dict[str, Any]) -> tuple[T, Edits, GuardedPatch]:
    """Run a decision function on a draft of `base`. Return its result, its edits and a patch that makes the edits.

    The function runs twice. Both runs must produce the same patch, and must not change the values that the function
    captures: closure cells, defaults, the globals that it names, the attributes of its object, and the same for each
    function that it wraps. Dicts and lists are compared by their contents, other values by identity.

    Does not guarantee:
        Other side effects are not detected.

    Raises:
        ImpureDecision: the runs differ, or the function changes a value that it captures.
    """
    name = getattr(function, "__qualname__", repr(function))
    before = _snapshot_captured_state(function)
    result, edits, patch = _run_once(function, base, name)
    second_result, _, second_patch = _run_once(function, base, name)
    if not json_equal(second_patch.ops, patch.ops):
        raise ImpureDecision(name, "two runs on the same object make different changes")
    if _results_differ(result, second_result):
        raise ImpureDecision(name, "two runs on the same object return different values")
    changed_names = [name for name, value in _snapshot_captured_state(function).items() if before.get(name) != value]
    if changed_names:
        raise ImpureDecision(name, f"it changes {', '.join(changed_names)}")
    return result, edits, patch


def _run_once(function: Callable[[Draft], T], base: dict[str, Any], name: str) -> tuple[T, Edits, GuardedPatch]:
    log = AccessLog(base)
    draft = Draft(log)
    result: Any = function(draft)
    if inspect.isawaitable(result):
        getattr(result, "close", lambda: None)()
        problem = "it is a coroutine, and the object may change while it waits"
        raise ImpureDecision(name, problem, "make it a plain function that captures the awaited values")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise ImpureDecision(name, "it returns a generator, which reads the object later or never", "return a list")
    result = _untrack(result)
    edits = collect_edits(draft)
    patch = build_guarded_patch(log, edits)
    log.closed = True
    return result, edits, patch


def _untrack(result: Any) -> Any:
    """Return the function's result with plain copies of tracked maps and lists. They are recorded as read completely.

    Tuples, maps, lists, dataclasses and models are searched. A tracked map inside any other object raises when the
    caller reads it.
    """
    if isinstance(result, tuple):
        items = [_untrack(item) for item in result]
        if all(map(operator.is_, items, result)):
            return result  # Some tuples, such as struct_time, cannot be built from their items.
        return tuple(items) if type(result) is tuple else type(result)(*items)
    values = _get_field_values(result)
    if any(_untrack(value) is not value for value in values.values()):
        result = copy.copy(result)
        for key, value in values.items():
            object.__setattr__(result, key, _untrack(value))
        return result
    if isinstance(result, dict | list | TrackedMap | TrackedList):
        return plain(result)
    return result


def _get_field_values(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or msgspec struct by name."""
    names = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else ()
    return {
        name: getattr(value, name) for name in names or getattr(value, "__struct_fields__", ()) if hasattr(value, name)
    }


def _results_differ(first_result: Any, second_result: Any) -> bool:
    """Return whether the results of two runs differ. Objects that can only be compared by identity are ignored."""
    if isinstance(first_result, dict | list | tuple) and type(first_result) is type(second_result):
        if len(first_result) != len(second_result):
            return True
        if isinstance(first_result, dict):
            return any(
                key not in second_result or _results_differ(value, second_result[key])
                for key, value in first_result.items()
            )
        return any(map(_results_differ, first_result, second_result))
    if isinstance(first_result, str | bytes | int | float | type(None)):
        return repr(first_result) != repr(second_result)
    return any(
        _results_differ(value, getattr(second_result, key, None))
        for key, value in _get_field_values(first_result).items()
    )


def _snapshot_captured_state(function: Any) -> dict[str, Any]:
    """Return a snapshot, by name, of every value that a function could change to pass it to its next run.

    The values of the functions that it wraps are included.
    """
    captured: dict[str, Any] = {}
    layer = ""
    while function is not None:
        if isinstance(function, functools.partial):
            captured |= {f"{layer}argument {n}": _snapshot_value(value) for n, value in enumerate(function.args)}
            captured |= {f"{layer}argument {key}": _snapshot_value(value) for key, value in function.keywords.items()}
            function = function.func
        else:
            captured |= {f"{layer}{key}": value for key, value in _find_captured_values(function).items()}
            function = getattr(function, "__wrapped__", None)
        layer += "wrapped "
    return captured


def _find_captured_values(function: Any) -> dict[str, Any]:
    """Return the values that one function, method or callable object captures, by name."""
    is_routine = inspect.isroutine(function)
    owner = getattr(function, "__self__", None) if is_routine else function
    captured = {f"self.{key}": value for key, value in _snapshot_attributes(owner)}
    if not is_routine:
        function = type(function).__call__
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return captured
    for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            captured[key] = _snapshot_value(cell.cell_contents)
        except ValueError:  # The cell is not bound yet.
            captured[key] = None
    for n, value in enumerate(function.__defaults__ or ()):
        captured[f"default {n}"] = _snapshot_value(value)
    captured |= {f"default {key}": _snapshot_value(value) for key, value in (function.__kwdefaults__ or {}).items()}
    names = [key for key in code.co_names if key in function.__globals__]
    return captured | {f"global {key}": _snapshot_value(function.__globals__[key]) for key in names}


def _snapshot_attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and a snapshot of each attribute of an object, including attributes in slots."""
    for key, value in getattr(owner, "__dict__", {}).items():
        yield key, _snapshot_value(value)
    for slotted in (kind for kind in type(owner).__mro__ if "__slots__" in vars(kind)):
        for key, slot in vars(slotted).items():
            if inspect.ismemberdescriptor(slot) and hasattr(owner, key):
                yield key, _snapshot_value(getattr(owner, key))


def _snapshot_value(value: Any, parents: tuple[int, ...] = ()) -> Any:
    """Return a copy of a dict, list or set for a later comparison, and the id of any other value."""
    if isinstance(value, TrackedMap | TrackedList) or id(value) in parents:
        return id(value)
    parents = (*parents, id(value))
    if isinstance(value, dict):
        return {key: _snapshot_value(item, parents) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_snapshot_value(item, parents) for item in value]
    if isinstance(value, set | frozenset):
        return set(value)
    if isinstance(value, float):
        return repr(value)  # NaN does not equal itself.
    return value if isinstance(value, str | bytes | int | type(None)) else id(value)
