"""Validate the CEL rules in the schema of a CustomResourceDefinition."""

from collections.abc import Iterator, Sequence
from typing import Any

from fairlead.api import gojson
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.cel import types
from fairlead.server.schema.cel.checks.type_check import UNTYPED_SCHEMA, InvalidRule
from fairlead.server.schema.cel.costs.limits import CostBudget, Multiplicity
from fairlead.server.schema.cel.rules import Rule, compile_rule, estimate_costs
from fairlead.server.schema.nodes import Node
from fairlead.server.schema.structural import ANYTHING


def validate_rules(
    node: Node, path: str, invalid_fields: Sequence[str] = (), *, checks_costs: bool = True
) -> Iterator[FieldError]:
    """Yield the errors of all CEL rules in a schema. Rules of a schema with an invalid field are not compiled.

    Without `checks_costs`, the cost of a single rule is not limited. The total cost always is.
    """
    budget = CostBudget(limit_each_rule=checks_costs)
    yield from _validate_node(node, path, "", invalid_fields, Multiplicity(), budget)
    yield from budget.total_errors(path)


def _validate_node(
    node: Node,
    path: str,
    uncorrelatable: str,
    invalid_fields: Sequence[str],
    multiplicity: Multiplicity,
    budget: CostBudget,
) -> Iterator[FieldError]:
    """Yield the errors of the rules of a node and of all nodes below it.

    `uncorrelatable` is the path of the nearest list around the node whose items have no identity, or "".
    """
    constraints, inside = node.constraints, multiplicity.of_children(node)
    for key, child in constraints.properties.items():
        yield from _validate_node(child, f"{path}.properties[{key}]", uncorrelatable, invalid_fields, inside, budget)
    if node.values is not None and node.values is not ANYTHING:
        values_path = f"{path}.additionalProperties"
        yield from _validate_node(node.values, values_path, uncorrelatable, invalid_fields, inside, budget)
    if node.items is not None:
        nearest = uncorrelatable or ("" if node.list_type == "map" else path)
        yield from _validate_node(node.items, f"{path}.items", nearest, invalid_fields, inside, budget)
    if not constraints.validations or any(field.startswith((f"{path}.", f"{path}[")) for field in invalid_fields):
        return
    if types.cached_type(node) is None:
        yield FieldError("InternalError", f"{path}.x-kubernetes-validations", f"Internal error: {UNTYPED_SCHEMA}")
        return
    for index, spec in enumerate(constraints.validations):
        if (spec.get("rule") or "").strip():  # crd_schema.keywords reports empty rules.
            rule_path = f"{path}.x-kubernetes-validations[{index}]"
            yield from _validate_rule(node, spec, rule_path, uncorrelatable, multiplicity, budget)


def _validate_rule(
    node: Node, spec: dict[str, Any], path: str, uncorrelatable: str, multiplicity: Multiplicity, budget: CostBudget
) -> Iterator[FieldError]:
    try:
        rule: Rule | None = compile_rule(node, spec)
    except InvalidRule as error:
        yield FieldError("FieldValueInvalid", f"{path}.{error.key}", f"Invalid value: {_format_rule(spec)}: {error}")
        rule = None
    if rule is not None:
        for key, cost in estimate_costs(node, spec, multiplicity):
            yield from budget.spend(f"{path}.{key}", key, cost)
    if rule is not None and rule.uses_old_self and uncorrelatable:
        message = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        yield field_errors.invalid(f"{path}.rule", spec["rule"], message)
    elif (rule is None or not rule.uses_old_self) and spec.get("optionalOldSelf") is not None:
        message = "may not be set if oldSelf is not used in rule"
        yield field_errors.invalid(f"{path}.optionalOldSelf", spec["optionalOldSelf"], message)


def _format_rule(spec: dict[str, Any]) -> str:
    """Return a rule as JSON with the field names of its Go type, as error messages show it."""
    fields = {
        "Rule": spec.get("rule", ""),
        "Message": spec.get("message", ""),
        "MessageExpression": spec.get("messageExpression", ""),
        "Reason": spec.get("reason"),
        "FieldPath": spec.get("fieldPath", ""),
        "OptionalOldSelf": spec.get("optionalOldSelf"),
    }
    return "{" + ",".join(f'"{key}":{gojson.dumps(value).decode()}' for key, value in fields.items()) + "}"
