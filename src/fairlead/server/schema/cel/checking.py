"""What a rule is wrong about, by the types that its schema gives: told in the words of the Go engine."""

import re
from functools import lru_cache
from typing import Any, Final

from fairlead.server.schema.cel import engine, rewriting, types
from fairlead.server.schema.cel.literals import Literals
from fairlead.server.schema.cel.messages import Messages
from fairlead.server.schema.nodes import Node

UNTYPED: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)
_WANTED: Final = {"rule": "BOOL", "messageExpression": "STRING"}
_OTHERWISE: Final = {
    "rule": "cel expression must evaluate to a bool",
    "messageExpression": "messageExpression must evaluate to a string",
}
_WORDS: Final = (
    (re.compile(r"^INVALID_ARGUMENT: | \[INVALID_ARGUMENT\]$"), ""),
    (re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation"),
     r"type \1 does not support field selection"),
    (re.compile(r"cannot be the range of a comprehension"), "cannot be range of a comprehension"),
    (re.compile(r"(undefined field '[^']*') not found in struct '[^']*'"), r"\1"),
    (re.compile(r"null_type"), "null"),
    (re.compile(r"google\.protobuf\.Timestamp"), "timestamp"),
    (re.compile(r"google\.protobuf\.Duration"), "duration"),
)  # fmt: skip


class Refused(Exception):
    """A definition may not have this rule, for what is under `key` of it."""

    def __init__(self, key: str, told: str) -> None:
        super().__init__(told)
        self.key = key


def check(node: Node, fact: dict[str, Any]) -> None:
    """Raise Refused for what is wrong with a rule or with its messageExpression."""
    of = _typed(node, bool(fact.get("optionalOldSelf")))
    if of is None:
        raise Refused("rule", UNTYPED)
    for key, wanted in _WANTED.items():
        if text := (fact.get(key) or "").strip():
            _check(*of, text, key, wanted)


def _check(env: Any, messages: Messages, text: str, key: str, wanted: str) -> None:
    what = "compilation failed" if key == "rule" else f"{key} compilation failed"
    made = rewriting.checkable(text)
    try:
        program = env.compile(made)
    except RuntimeError as error:
        raise Refused(key, f"{what}: {_worded(messages.told(str(error)), made, text)}") from None
    said = Literals(program)
    if said.problems:
        told = "\n".join(_pointed(text, at, told) for at, told in said.problems)
        raise Refused(key, f"{what}: {messages.told(told)}")
    for conversion in said.conversions:
        result = engine.runnable(conversion).eval(data={})
        if result.type().name() == "ERROR":
            told = engine.worded(str(result.value()))
            raise Refused(key, f"{what.replace('compilation', 'program instantiation')}: {told}")
    answered = program.return_type().name()
    if answered != wanted and (answered != "DYN" or messages.exact):
        raise Refused(key, _OTHERWISE[key])


@lru_cache(maxsize=64)
def _typed(node: Node, optional_old: bool) -> tuple[Any, Messages] | None:
    declared = types.ruled(node)
    if declared is None:
        return None
    messages = Messages(declared)
    old = f"optional_type({messages.root})" if optional_old else messages.root
    variables = {"self": messages.root, "oldSelf": old}
    for root in ("self",) if optional_old else ("self", "oldSelf"):
        variables |= {f"{root}.{path}": of for path, of in messages.variables.items()}
    return engine.typed(variables, messages.pool), messages


def _worded(told: str, text: str, shown: str) -> str:
    for pattern, word in _WORDS:
        told = pattern.sub(word, told)
    told = told.replace(f" | {text}\n", f" | {shown}\n")
    match = re.search(
        r"<input>:1:(\d+): found no matching overload for '(\w+)' applied to '\((\S+?)(?:, (.*))?\)'", told
    )
    if match is None or not text[: int(match[1]) - 1].endswith(f".{match[2]}"):
        return told
    # A call on a receiver is told with the receiver in front.
    return told.replace(f"'({match[3]}{', ' + match[4] if match[4] else ''})'", f"'{match[3]}.({match[4] or ''})'")


def _pointed(text: str, at: int, told: str) -> str:
    """A problem with the line that it is in, and a mark below it."""
    line, start = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
    shown = text[start:].partition("\n")[0]
    return f"ERROR: <input>:{line}:{at - start + 1}: {told}\n | {shown}\n | {'.' * (at - start)}^"
