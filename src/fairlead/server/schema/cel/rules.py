"""From a rule to a program that runs: what the engine cannot say is rewritten."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from fairlead.server.schema.cel import engine, invalid_values, rewriting, types
from fairlead.server.schema.cel.checks.type_check import check
from fairlead.server.schema.cel.costs import estimate, runtime
from fairlead.server.schema.cel.costs.limits import Often
from fairlead.server.schema.cel.syntax_tree import parse
from fairlead.server.schema.nodes import Node


class Rule(NamedTuple):
    text: str
    fact: dict[str, Any]
    program: Any
    guarded: "Callable[[], Guarded]"  # for values that do not fit
    message: Any  # the compiled messageExpression, or None
    old: bool  # uses oldSelf
    shape: runtime.Shape


class Guarded(NamedTuple):
    """The program for values that do not fit. With optionals it fails nowhere, and may only be believed if it holds."""

    program: Any
    exact: bool


def compile_rule(node: Node, fact: dict[str, Any]) -> Rule:
    """A rule as it is run. Raises Refused."""
    check(node, fact)
    text = fact["rule"].strip()
    expression = (fact.get("messageExpression") or "").strip()
    spoken = rewriting.spoken(text)
    old = re.search(r"(?<![\w.])oldSelf\b", spoken) is not None
    made = rewriting.with_optional_old(text) if fact.get("optionalOldSelf") else text
    shape = runtime.shape(" ".join([spoken, rewriting.spoken(expression)]))
    message = engine.runnable(expression) if expression else None
    return Rule(text, fact, engine.runnable(made), partial(_guarded, made), message, old, shape)


def estimates(node: Node, fact: dict[str, Any], often: Often) -> Iterator[tuple[str, int]]:
    """What a rule that compiles may cost at most, and what its message may."""
    of = types.ruled(node)
    if of is None:
        return
    optional = bool(fact.get("optionalOldSelf"))
    for key in ("rule", "messageExpression"):
        if text := (fact.get(key) or "").strip():
            once = estimate.cost(parse(engine.untyped(), text), of, optional_old=optional)
            yield key, often.cost(once, of) if key == "rule" else once


@lru_cache(maxsize=128)
def _guarded(text: str) -> Guarded:
    program = engine.runnable(text)
    parsed = program.serialize()
    if invalid_values.has_optionals(parsed):
        return Guarded(program, False)
    return Guarded(engine.untyped().deserialize(invalid_values.guarded(parsed)), True)
