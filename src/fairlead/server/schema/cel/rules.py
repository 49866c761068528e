"""Compile a rule of x-kubernetes-validations into a program."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from fairlead.server.schema.cel import engine, invalid_values, rewriting, types
from fairlead.server.schema.cel.checks.type_check import check_rule
from fairlead.server.schema.cel.costs import estimate, runtime
from fairlead.server.schema.cel.costs.limits import Multiplicity
from fairlead.server.schema.cel.syntax_tree import parse
from fairlead.server.schema.nodes import Node


class Rule(NamedTuple):
    """A compiled rule of x-kubernetes-validations."""

    text: str
    spec: dict[str, Any]  # The entry of x-kubernetes-validations.
    program: Any
    guarded: "Callable[[], GuardedProgram]"  # Compiles the program for values that do not fit the schema.
    message_program: Any  # The compiled messageExpression, or None.
    uses_old_self: bool
    shape: runtime.RuleShape


class GuardedProgram(NamedTuple):
    """The program of a rule for values that do not fit the schema.

    A rule with optionals cannot be guarded. Its program is not exact: only the result true can be trusted.
    """

    program: Any
    is_exact: bool


def has_rules(node: Node) -> bool:
    """Return whether this node or a node below it has a rule."""
    cached = _has_rules.get(id(node))
    if cached is None:
        constraints = node.constraints
        children: list[Node] = []
        if constraints is not None:
            children = [*constraints.properties.values(), *filter(None, (node.values, node.items))]
        has_own_rules = constraints is not None and bool(constraints.validations)
        cached = _has_rules[id(node)] = (node, has_own_rules or any(has_rules(child) for child in children))
    return cached[1]


_has_rules: dict[int, tuple[Node, bool]] = {}  # By id. The cache keeps the node alive, so that its id is not reused.


def compile_rule(node: Node, spec: dict[str, Any]) -> Rule:
    """Return a compiled rule. Raises InvalidRule if a CustomResourceDefinition may not have the rule."""
    check_rule(node, spec)
    rule_text = spec["rule"].strip()
    message_expression = (spec.get("messageExpression") or "").strip()
    blanked = rewriting.blank_literals(rule_text)
    uses_old_self = re.search(r"(?<![\w.])oldSelf\b", blanked) is not None
    source = rewriting.make_old_self_optional(rule_text) if spec.get("optionalOldSelf") else rule_text
    shape = runtime.find_loops(" ".join([blanked, rewriting.blank_literals(message_expression)]))
    message_program = engine.compile_untyped(message_expression) if message_expression else None
    guarded = partial(_compile_guarded, source)
    return Rule(rule_text, spec, engine.compile_untyped(source), guarded, message_program, uses_old_self, shape)


def estimate_costs(node: Node, spec: dict[str, Any], multiplicity: Multiplicity) -> Iterator[tuple[str, int]]:
    """Yield ("rule", cost) and ("messageExpression", cost): the worst-case costs of a compiled rule."""
    root = types.cached_type(node)
    if root is None:
        return
    is_optional = bool(spec.get("optionalOldSelf"))
    for key in ("rule", "messageExpression"):
        if expression := (spec.get(key) or "").strip():
            once = estimate.estimate_cost(
                parse(engine.untyped_environment(), expression), root, is_old_optional=is_optional
            )
            yield key, multiplicity.cost(once, root) if key == "rule" else once


@lru_cache(maxsize=128)
def _compile_guarded(rule: str) -> GuardedProgram:
    program = engine.compile_untyped(rule)
    parsed = program.serialize()
    if invalid_values.has_optionals(parsed):
        return GuardedProgram(program, False)
    return GuardedProgram(engine.untyped_environment().deserialize(invalid_values.add_guards(parsed)), True)
