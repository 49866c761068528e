"""What a rule is wrong about, by the types that its schema gives: told in the words of the Go engine."""

from functools import lru_cache
from typing import Any, Final

from fairlead.server.schema.cel import engine, rewriting, types
from fairlead.server.schema.cel.checks import error_messages
from fairlead.server.schema.cel.checks.literals import Literals
from fairlead.server.schema.cel.checks.protobuf_types import Messages
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
        text = fact.get(key) or ""
        if text.strip():
            _check(*of, text, key, wanted)


def _check(env: Any, messages: Messages, text: str, key: str, wanted: str) -> None:
    what = "compilation failed" if key == "rule" else f"{key} compilation failed"
    made = rewriting.checkable(text)
    try:
        program = env.compile(made)
    except RuntimeError as error:
        told = error_messages.refused(env, str(error), made, text)
        raise Refused(key, f"{what}: {messages.told(told)}") from None
    said = Literals(program)
    if said.problems:
        raise Refused(key, f"{what}: {messages.told(error_messages.pointed(text, said.problems))}")
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
