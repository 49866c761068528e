"""What is wrong with a rule, in the words of the Go engine and where it points."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fairlead.server.schema.cel.functions.declarations import split
from fairlead.server.schema.cel.syntax_tree import Call, Parsed, parsed

_ERROR: Final = re.compile(r"ERROR: <input>:(\d{1,9}):(\d+): (.*?)(?=\n \| )", re.DOTALL)
_WORDS: Final = (
    (re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation"),
     r"type \1 does not support field selection"),
    (re.compile(r"cannot be the range of a comprehension"), "cannot be range of a comprehension"),
    (re.compile(r"(undefined field '[^']*') not found in struct '[^']*'"), r"\1"),
    (re.compile(r"null_type"), "null"),
    (re.compile(r"google\.protobuf\.Timestamp"), "timestamp"),
    (re.compile(r"google\.protobuf\.Duration"), "duration"),
)  # fmt: skip
_WHOLE: Final = (  # what is wrong with a text as a whole
    (re.compile(r"recursion (?:limit|depth)\D*(\d+)"), r"expression recursion limit exceeded: \1"),
    (re.compile(r"exceeds codepoint limit. input size: (\d+), limit: (\d+)"),
     r"expression code point size exceeds limit: size: \1, limit \2"),
)  # fmt: skip
_CALLED: Final = re.compile(r"found no matching overload for '(.+)' applied to '\((.*)\)'")
_UNRANGED: Final = "cannot be range of a comprehension"
_LOGICAL: Final = ("_&&_", "_||_")


class Problem(NamedTuple):
    at: int  # character of the text
    told: str


def pointed(text: str, problems: list[Problem]) -> str:
    """Problems with the lines that they are in, and marks below."""
    made = []
    for at, told in sorted(problems):
        line, start = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
        shown = text[start:].partition("\n")[0]
        made.append(f"ERROR: <input>:{line}:{at - start + 1}: {told}\n | {shown}\n | {'.' * (at - start)}^")
    return "\n".join(made)


def refused(env: Any, error: str, text: str, shown: str) -> str:
    """What the engine found wrong with a text, at the places of the one that is shown."""
    found = _problems(env, error, text)
    if found:
        return pointed(shown, found)
    for pattern, word in _WHOLE:
        if of := pattern.search(error):
            return f"ERROR: <input>:-1:0: {of.expand(word)}"
    return error


def _problems(env: Any, error: str, text: str) -> list[Problem]:
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    found = [Problem(starts[int(line) - 1] + int(column) - 1, told) for line, column, told in _ERROR.findall(error)]
    unranged = any("cannot be the range" in told for _, told in found)
    tree = parsed(env, text) if any(f"'{name}'" in told for _, told in found for name in _LOGICAL) else None
    return [one for problem in found for one in _worded(problem, text, tree, unranged)]


def _worded(problem: Problem, text: str, tree: Parsed | None, unranged: bool) -> Iterator[Problem]:
    at, told = problem
    for pattern, word in _WORDS:
        told = pattern.sub(word, told)
    call = _CALLED.fullmatch(told)
    if call is not None and call[1] in _LOGICAL and tree is not None:
        yield from _operands(tree, call[1], at, split(call[2]))
        return
    if unranged and _UNRANGED not in told:  # what goes over something else is of no type at all
        told = re.sub(r"(?<![\w.])dyn(?![\w.])", "!error!", told)
        call = _CALLED.fullmatch(told)
    if call is not None and text[:at].endswith(f".{call[1]}"):  # a call on something is told with that in front
        on, *given = split(call[2])
        told = f"found no matching overload for '{call[1]}' applied to '{on}.({', '.join(given)})'"
    yield Problem(at, told)


def _operands(tree: Parsed, function: str, at: int, types: list[str]) -> Iterator[Problem]:
    """Of what should be true or false, each operand is told that is neither."""
    for one in tree.expressions():
        if isinstance(one, Call) and one.function == function and tree.positions.get(one.id) == at:
            for operand, of in zip(one.arguments, types, strict=False):
                if of not in ("bool", "dyn", "*error*"):
                    yield Problem(tree.positions.get(operand.id, 0), f"expected type 'bool' but found '{of}'")
            return
