"""What the rules of a definition may cost: each by itself, as often as its value may occur, and all of them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.cel.types import REQUEST, Type
from fairlead.server.schema.nodes import Node

_RULE: Final = 10_000_000
_ALL: Final = 100_000_000
_MOST: Final = 2**64 - 1
_SHOWN: Final = 4  # of the most expensive ones
_REMEDY: Final = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)


class Often(NamedTuple):
    """How often a value may occur in an object: None where no list or map around it is bounded."""

    times: int | None = 1

    def inside(self, node: Node) -> "Often":
        """The same of what is inside a node."""
        if node.type == "array":
            each = node.constraints.max_items
        elif node.type == "object" and (node.values is not None or node.constraints.additional is not None):
            each = node.constraints.max_properties
        else:
            each = 1
        return Often(None if self.times is None or each is None else min(_MOST, self.times * max(0, each)))

    def cost(self, once: int, of: Type) -> int:
        """What a rule costs on all values that a request has room for."""
        times = self.times if self.times is not None else REQUEST // (of.least + 1)
        return min(_MOST, once * times)


class Budget:
    """Counts what the rules of one definition cost. One that is not `strict` minds the sum alone."""

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._total = 0
        self._dearest: list[tuple[int, str]] = []

    def spend(self, where: str, what: str, cost: int) -> Iterator[FieldError]:
        self._total = min(_MOST, self._total + cost)
        if cost >= _ALL // 100:
            self._dearest = sorted([*self._dearest, (cost, where)], key=lambda one: -one[0])[:_SHOWN]
        if self._strict and cost > _RULE:
            yield field_errors.forbidden(where, _exceeded(f"estimated {what} cost", cost, _RULE))

    def overspent(self, path: str) -> Iterator[FieldError]:
        """What is told of the schema as a whole."""
        if self._total <= _ALL:
            return
        for _, where in self._dearest:
            told = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield field_errors.forbidden(where, told)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield field_errors.forbidden(path, _exceeded(what, self._total, _ALL))


def _exceeded(what: str, cost: int, limit: int) -> str:
    factor = float(cost) / float(limit)
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} ({_REMEDY})"
