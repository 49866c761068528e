"""Limits on the estimated costs of the rules of a CustomResourceDefinition: of each rule and of all rules together."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.cel.costs.sizes import MAX_UINT64
from fairlead.server.schema.cel.types import MAX_REQUEST_BYTES, Type
from fairlead.server.schema.nodes import Node

_RULE_LIMIT: Final = 10_000_000
_TOTAL_LIMIT: Final = 100_000_000
_MAX_REPORTED_RULES: Final = 4  # The most expensive rules that an exceeded total names.
_REMEDY: Final = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)


class Multiplicity(NamedTuple):
    """How many times a value can occur in an object, or None if a list or map around it has no limit."""

    occurrences: int | None = 1

    def of_children(self, node: Node) -> "Multiplicity":
        """Return how many times the values inside a node can occur."""
        if node.type == "array":
            children = node.constraints.max_items
        elif node.type == "object" and (node.values is not None or node.constraints.additional is not None):
            children = node.constraints.max_properties
        else:
            children = 1
        if self.occurrences is None or children is None:
            return Multiplicity(None)
        return Multiplicity(min(MAX_UINT64, self.occurrences * max(0, children)))

    def cost(self, once: int, value_type: Type) -> int:
        """Return the cost of a rule, which costs `once` per value, on all values of a type that fit in a request."""
        count = self.occurrences if self.occurrences is not None else MAX_REQUEST_BYTES // (value_type.min_bytes + 1)
        return min(MAX_UINT64, once * count)


class CostBudget:
    """Adds up the costs of the rules of one CustomResourceDefinition and reports those over the limits."""

    def __init__(self, *, limit_each_rule: bool = True) -> None:
        self._limit_each_rule = limit_each_rule
        self._total = 0
        self._most_expensive: list[tuple[int, str]] = []

    def spend(self, path: str, key: str, cost: int) -> Iterator[FieldError]:
        """Add the cost of a rule to the total. Yield an error if the rule alone is too expensive."""
        self._total = min(MAX_UINT64, self._total + cost)
        if cost >= _TOTAL_LIMIT // 100:
            ranked = sorted([*self._most_expensive, (cost, path)], key=lambda entry: -entry[0])
            self._most_expensive = ranked[:_MAX_REPORTED_RULES]
        if self._limit_each_rule and cost > _RULE_LIMIT:
            yield field_errors.forbidden(path, _format_exceeded(f"estimated {key} cost", cost, _RULE_LIMIT))

    def total_errors(self, path: str) -> Iterator[FieldError]:
        """Yield the errors for the whole schema if its rules together are too expensive."""
        if self._total <= _TOTAL_LIMIT:
            return
        for _, rule_path in self._most_expensive:
            message = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield field_errors.forbidden(rule_path, message)
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield field_errors.forbidden(path, _format_exceeded(subject, self._total, _TOTAL_LIMIT))


def _format_exceeded(subject: str, cost: int, limit: int) -> str:
    factor = float(cost) / float(limit)
    factor_text = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{subject} exceeds budget by factor of {factor_text} ({_REMEDY})"
