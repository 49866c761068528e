"""Translate the compile errors of the CEL engine to cel-go's messages and positions."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fairlead.server.schema.cel.functions.declarations import split_arguments
from fairlead.server.schema.cel.syntax_tree import Call, SyntaxTree, parse_with_positions

_ERROR: Final = re.compile(r"ERROR: <input>:(\d{1,9}):(\d+): (.*?)(?=\n \| )", re.DOTALL)
_REPLACEMENTS: Final = (
    (re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation"),
     r"type \1 does not support field selection"),
    (re.compile(r"cannot be the range of a comprehension"), "cannot be range of a comprehension"),
    (re.compile(r"(undefined field '[^']*') not found in struct '[^']*'"), r"\1"),
    (re.compile(r"null_type"), "null"),
    (re.compile(r"google\.protobuf\.Timestamp"), "timestamp"),
    (re.compile(r"google\.protobuf\.Duration"), "duration"),
)  # fmt: skip
_ERRORS_WITHOUT_POSITION: Final = (
    (re.compile(r"recursion (?:limit|depth)\D*(\d+)"), r"expression recursion limit exceeded: \1"),
    (re.compile(r"exceeds codepoint limit. input size: (\d+), limit: (\d+)"),
     r"expression code point size exceeds limit: size: \1, limit \2"),
)  # fmt: skip
_NO_OVERLOAD: Final = re.compile(r"found no matching overload for '(.+)' applied to '\((.*)\)'")
_BAD_RANGE: Final = "cannot be range of a comprehension"
_LOGICAL: Final = ("_&&_", "_||_")


class Problem(NamedTuple):
    """An error message and its offset in the rule's text, in characters."""

    offset: int
    message: str


def format_problems(rule: str, problems: list[Problem]) -> str:
    """Return the problems as cel-go prints them, each with its line and a mark below the column."""
    formatted = []
    for offset, message in sorted(problems):
        line_number, start = rule.count("\n", 0, offset) + 1, rule.rfind("\n", 0, offset) + 1
        line, column = rule[start:].partition("\n")[0], offset - start
        formatted.append(f"ERROR: <input>:{line_number}:{column + 1}: {message}\n | {line}\n | {'.' * column}^")
    return "\n".join(formatted)


def translate_compile_error(env: Any, error: str, source: str, rule: str) -> str:
    """Return the engine's error for a rewritten source as cel-go's message, with positions in the original text."""
    problems = _find_problems(env, error, source)
    if problems:
        return format_problems(rule, problems)
    for pattern, message in _ERRORS_WITHOUT_POSITION:
        if match := pattern.search(error):
            return f"ERROR: <input>:-1:0: {match.expand(message)}"
    return error


def _find_problems(env: Any, error: str, source: str) -> list[Problem]:
    line_starts = [0, *(match.end() for match in re.finditer("\n", source))]
    problems = [
        Problem(line_starts[int(line) - 1] + int(column) - 1, message)
        for line, column, message in _ERROR.findall(error)
    ]
    has_bad_range = any("cannot be the range" in problem.message for problem in problems)
    needs_tree = any(f"'{name}'" in problem.message for problem in problems for name in _LOGICAL)
    tree = parse_with_positions(env, source) if needs_tree else None
    return [translated for problem in problems for translated in _translate(problem, source, tree, has_bad_range)]


def _translate(problem: Problem, source: str, tree: SyntaxTree | None, has_bad_range: bool) -> Iterator[Problem]:
    offset, message = problem
    for pattern, replacement in _REPLACEMENTS:
        message = pattern.sub(replacement, message)
    call = _NO_OVERLOAD.fullmatch(message)
    if call is not None and call[1] in _LOGICAL and tree is not None:
        yield from _find_operand_problems(tree, call[1], offset, split_arguments(call[2]))
        return
    if has_bad_range and _BAD_RANGE not in message:  # cel-go gives the variable of such a loop the type !error!.
        message = re.sub(r"(?<![\w.])dyn(?![\w.])", "!error!", message)
        call = _NO_OVERLOAD.fullmatch(message)
    if call is not None and source[:offset].endswith(f".{call[1]}"):  # cel-go writes the receiver before the arguments.
        receiver, *arguments = split_arguments(call[2])
        message = f"found no matching overload for '{call[1]}' applied to '{receiver}.({', '.join(arguments)})'"
    yield Problem(offset, message)


def _find_operand_problems(tree: SyntaxTree, function: str, offset: int, types: list[str]) -> Iterator[Problem]:
    """Yield a problem for each operand of a logical operator that is not a bool."""
    for expression in tree.expressions():
        if (
            isinstance(expression, Call)
            and expression.function == function
            and tree.positions.get(expression.id) == offset
        ):
            for operand, type_name in zip(expression.arguments, types, strict=False):
                if type_name not in ("bool", "dyn", "*error*"):
                    position = tree.positions.get(operand.id, 0)
                    yield Problem(position, f"expected type 'bool' but found '{type_name}'")
            return
