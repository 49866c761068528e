"""JSONPath of printer columns, with the results of Kubernetes' own implementation for unusual paths and values."""

import operator
import re
from collections.abc import Callable
from functools import cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]


class PathError(Exception):
    """Raised for a malformed path, or one that does not fit the value, such as an index out of bounds."""


def values(obj: Any, path: str) -> list[Any]:
    """Return all values of `obj` at a path, such as `.spec.l[0:2].k`. Missing keys yield no value. Raises PathError."""
    return _apply_steps(_parse(path), [obj])


def _apply_steps(steps: tuple[Step, ...], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


_NAME = re.compile(r"(?:[^.\[\]\\\s]|\\.)+")
_FILTER = re.compile(r"\[\?\(((?:'[^']*'|\"[^\"]*\"|[^)'\"])*)\)\]")
_COMPARED = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_LITERAL = re.compile(r"'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"|(?P<number>[+-]?\d+(?:\.\d+)?)|(?P<truth>true|false)")


@cache
def _parse(path: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    at = 0
    while at < len(path):
        if path.startswith("..", at):
            steps.append(_descend)
            at += 2
            if name := _NAME.match(path, at):
                steps.append(_build_child_step(name[0]))
                at = name.end()
        elif path[at] == "." and (name := _NAME.match(path, at + 1)):
            steps.append(_build_child_step(name[0]))
            at = name.end()
        elif match := _FILTER.match(path, at):
            steps.append(_build_filter_step(match[1]))
            at = match.end()
        elif path[at] == "[" and (end := path.find("]", at)) > 0:
            steps += _build_bracket_steps(path[at + 1 : end])
            at = end + 1
        else:
            raise PathError(f"cannot read {path[at:]!r}")
    return tuple(steps)


def _build_child_step(name: str) -> Step:
    if name == "*":
        return lambda values: [child for value in values for child in _list_children(value)]
    key = re.sub(r"\\(.)", r"\1", name)
    return lambda values: [value[key] for value in values if isinstance(value, dict) and key in value]


def _list_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _descend(values: list[Any]) -> list[Any]:
    """Return all non-empty maps and lists among the values and below them, each before its children."""
    return [item for value in values if (children := _list_children(value)) for item in (value, *_descend(children))]


def _build_bracket_steps(subscript: str) -> tuple[Step, ...]:
    if subscript == "*":
        subscript = ":"
    if "," in subscript:
        parts = [_build_bracket_steps(part.strip(" ")) for part in subscript.split(",")]
        return (lambda values: [value for part in parts for value in _apply_steps(part, values)],)
    if len(subscript) > 1 and subscript[0] == subscript[-1] == "'":
        return _parse(f".{subscript[1:-1]}")  # ['a.b'] is two steps, ['a\.b'] is one
    bounds = _SLICE.fullmatch(subscript)
    if bounds is None or not subscript:
        raise PathError(f"invalid array index {subscript}")
    return (_build_slice_step(*bounds.groups()),)


def _build_slice_step(first: str, last: str | None, step: str | None) -> Step:
    start = int(first or "0")
    is_index = last is None
    stop = start + 1 if is_index else int(last[1:]) if last and last[1:] else None
    stride = int(step[1:]) if step and step[1:] else 1

    def select_items(values: list[Any]) -> list[Any]:
        selected: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise PathError("not a list")
            size = len(value)
            begin = start + size if start < 0 else start
            end = size if stop is None else stop + size if stop < 0 or (stop == 0 and is_index) else stop
            if begin == end:
                return selected
            if not (0 <= begin < size and 0 <= end <= size and begin < end) or stride <= 0:
                raise PathError(f"array index out of bounds: {first}, length {size}")
            selected += value[begin:end:stride]
        return selected

    return select_items


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _build_filter_step(condition: str) -> Step:
    compared = _COMPARED.fullmatch(condition)
    left_operand = _parse_operand(compared[1] if compared else condition)
    right = _parse_operand(compared[3]) if compared else None
    test = _OPERATORS.get(compared[2]) if compared else None
    if compared and test is None:
        raise PathError(f"unrecognized filter operator {compared[2]}")

    def passes(item: Any) -> bool:
        if right is None or test is None:
            return bool(left_operand(item))
        pair = left_operand(item), right(item)
        if not all(pair):
            return False
        (left_value, *more_left), (right_value, *more_right) = pair
        is_comparable = type(left_value) is type(right_value) and not isinstance(left_value, dict | list)
        if more_left or more_right or not is_comparable:
            raise PathError("the values cannot be compared")
        return test(left_value, right_value)

    def select(values: list[Any]) -> list[Any]:
        if not all(isinstance(value, list) for value in values):
            raise PathError("not a list: it cannot be filtered")
        return [item for value in values for item in value if passes(item)]

    return select


def _parse_operand(operand: str) -> Callable[[Any], list[Any]]:
    operand = operand.strip()
    if operand.startswith("@"):
        steps = _parse(operand[1:])
        return lambda item: _apply_steps(steps, [item])
    match = _LITERAL.fullmatch(operand)
    if match is None:
        raise PathError(f"cannot read {operand!r}")
    is_literal: Any = next((match[name] for name in ("one", "two") if match[name] is not None), None)
    if match["truth"]:
        is_literal = match["truth"] == "true"
    elif match["number"]:
        is_literal = float(match["number"]) if "." in match["number"] else int(match["number"])
    return lambda item: [is_literal]
