"""JSONPath as printer columns use it, with what Kubernetes' own reader of it makes of odd paths and values."""

import operator
import re
from collections.abc import Callable
from functools import cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]


class PathError(Exception):
    """The path cannot be read, or leads nowhere in this value: an index beyond a list, a list where none is."""


def values(obj: Any, path: str) -> list[Any]:
    """All values at a path, such as `.spec.l[0:2].k`. Keys that are not there lead to none. Raises PathError."""
    return _along(_steps(path), [obj])


def _along(steps: tuple[Step, ...], found: list[Any]) -> list[Any]:
    for step in steps:
        found = step(found)
    return found


_NAME = re.compile(r"(?:[^.\[\]\\\s]|\\.)+")
_FILTER = re.compile(r"\[\?\(((?:'[^']*'|\"[^\"]*\"|[^)'\"])*)\)\]")
_COMPARED = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_LITERAL = re.compile(r"'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"|(?P<number>[+-]?\d+(?:\.\d+)?)|(?P<truth>true|false)")


@cache
def _steps(path: str) -> tuple[Step, ...]:
    made: list[Step] = []
    at = 0
    while at < len(path):
        if path.startswith("..", at):
            made.append(_recursive)
            at += 2
            if name := _NAME.match(path, at):
                made.append(_named(name[0]))
                at = name.end()
        elif path[at] == "." and (name := _NAME.match(path, at + 1)):
            made.append(_named(name[0]))
            at = name.end()
        elif found := _FILTER.match(path, at):
            made.append(_filter(found[1]))
            at = found.end()
        elif path[at] == "[" and (end := path.find("]", at)) > 0:
            made += _bracket(path[at + 1 : end])
            at = end + 1
        else:
            raise PathError(f"cannot read {path[at:]!r}")
    return tuple(made)


def _named(name: str) -> Step:
    if name == "*":
        return lambda found: [below for value in found for below in _below(value)]
    key = re.sub(r"\\(.)", r"\1", name)
    return lambda found: [value[key] for value in found if isinstance(value, dict) and key in value]


def _below(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _recursive(found: list[Any]) -> list[Any]:
    """Every map and list that is not empty, each before what is below it."""
    return [each for value in found if (below := _below(value)) for each in (value, *_recursive(below))]


def _bracket(text: str) -> tuple[Step, ...]:
    if text == "*":
        text = ":"
    if "," in text:
        parts = [_bracket(part.strip(" ")) for part in text.split(",")]
        return (lambda found: [value for part in parts for value in _along(part, found)],)
    if len(text) > 1 and text[0] == text[-1] == "'":
        return _steps(f".{text[1:-1]}")  # ['a.b'] are two steps, ['a\.b'] is one
    bounds = _SLICE.fullmatch(text)
    if bounds is None or not text:
        raise PathError(f"invalid array index {text}")
    return (_slice(*bounds.groups()),)


def _slice(first: str, last: str | None, step: str | None) -> Step:
    start = int(first or "0")
    one = last is None  # a single index
    stop = start + 1 if one else int(last[1:]) if last and last[1:] else None
    stride = int(step[1:]) if step and step[1:] else 1

    def items(found: list[Any]) -> list[Any]:
        out: list[Any] = []
        for value in found:
            if value is None:
                continue
            if not isinstance(value, list):
                raise PathError("not a list")
            size = len(value)
            begin = start + size if start < 0 else start
            end = size if stop is None else stop + size if stop < 0 or (stop == 0 and one) else stop
            if begin == end:
                return out
            if not (0 <= begin < size and 0 <= end <= size and begin < end) or stride <= 0:
                raise PathError(f"array index out of bounds: {first}, length {size}")
            out += value[begin:end:stride]
        return out

    return items


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _filter(text: str) -> Step:
    compared = _COMPARED.fullmatch(text)
    left = _operand(compared[1] if compared else text)
    right = _operand(compared[3]) if compared else None
    test = _OPERATORS.get(compared[2]) if compared else None
    if compared and test is None:
        raise PathError(f"unrecognized filter operator {compared[2]}")

    def passes(item: Any) -> bool:
        if right is None or test is None:
            return bool(left(item))
        pair = left(item), right(item)
        if not all(pair):
            return False
        (mine, *more), (wanted, *others) = pair
        if more or others or type(mine) is not type(wanted) or isinstance(mine, dict | list):
            raise PathError("values that cannot be compared")
        return test(mine, wanted)

    def chosen(found: list[Any]) -> list[Any]:
        if not all(isinstance(value, list) for value in found):
            raise PathError("not a list, and cannot be filtered")
        return [item for value in found for item in value if passes(item)]

    return chosen


def _operand(text: str) -> Callable[[Any], list[Any]]:
    text = text.strip()
    if text.startswith("@"):
        steps = _steps(text[1:])
        return lambda item: _along(steps, [item])
    found = _LITERAL.fullmatch(text)
    if found is None:
        raise PathError(f"cannot read {text!r}")
    literal: Any = next((found[name] for name in ("one", "two") if found[name] is not None), None)
    if found["truth"]:
        literal = found["truth"] == "true"
    elif found["number"]:
        literal = float(found["number"]) if "." in found["number"] else int(found["number"])
    return lambda item: [literal]
