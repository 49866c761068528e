"""The costs of calls of CEL functions, without their arguments, and the sizes of the results."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.server.schema.cel.costs.sizes import (
    CHARACTER_COST,
    LIST_COST,
    MAX_UINT64,
    PATTERN_COST,
    SizeRange,
    add,
    multiply,
    scale,
)
from fairlead.server.schema.cel.syntax_tree import Call, Expression, Literal

if TYPE_CHECKING:
    from fairlead.server.schema.cel.costs.estimate import CostEstimator

TEXT_TYPES: Final = ("string", "bytes")
_NAME_FORMAT: Final = 128 * PATTERN_COST  # The longest pattern of a named format.
_LONGEST_FORMAT: Final = 64
CostAndSize = tuple[int, SizeRange | None]


class EstimatedCall(NamedTuple):
    """A function call with the sizes of its receiver and arguments."""

    expression: Call
    overload: str
    receiver: SizeRange | None
    sizes: list[SizeRange]
    estimator: "CostEstimator"


CostFunction = Callable[[EstimatedCall], CostAndSize | None]


def _cost_reading_argument(factor: float = CHARACTER_COST) -> CostFunction:
    """Return a cost function for reading the first argument once, at `factor` per character."""
    return lambda call: (scale(call.sizes[0].max, factor), None) if call.sizes else None


def _cost_reading_receiver(call: EstimatedCall) -> CostAndSize | None:
    """Return the cost of reading the receiver, and its size as the size of the result."""
    return (scale(call.receiver.max, CHARACTER_COST), call.receiver) if call.receiver is not None else None


def _cost_reading_items(call: EstimatedCall) -> CostAndSize | None:
    """Return the cost of reading each item of a list, or each character of a text."""
    if call.receiver is None or call.expression.target is None:
        return None
    element = call.estimator.element(call.expression.target)
    if element is None:
        return scale(call.receiver.max, CHARACTER_COST), None
    cost_per_item = 1 + (scale(element[1].max, CHARACTER_COST) if element[0].kind in TEXT_TYPES else 0)
    return multiply(call.receiver.max, add(cost_per_item)), None


def _cost_replace(call: EstimatedCall) -> CostAndSize | None:
    if call.receiver is None or len(call.sizes) < 2:
        return None
    receiver, old, new = call.receiver, *call.sizes[:2]
    if old.min == 0:  # An empty text occurs between all characters.
        max_size = add(multiply(add(receiver.max, 1), new.max), receiver.max)
    elif new.max <= old.min:
        max_size = receiver.max
    else:
        max_size = multiply(math.ceil(float(receiver.max) / float(old.min)), new.max)
    if old.max == 0:
        min_size = add(multiply(add(receiver.min, 1), new.min), receiver.min)
    elif old.max <= new.min:
        min_size = receiver.min
    else:
        min_size = multiply(math.ceil(float(receiver.min) / float(old.max)), new.min)
    return scale(receiver.max, 2 * CHARACTER_COST), SizeRange(min_size, max_size)


def _cost_split(call: EstimatedCall) -> CostAndSize | None:
    if call.receiver is None:
        return None
    limit = call.expression.arguments[1] if len(call.sizes) > 1 else None
    max_size = limit.value % 2**64 if isinstance(limit, Literal) and limit.type == "int" else call.receiver.max
    return scale(call.receiver.max, 2 * CHARACTER_COST), SizeRange(0, max_size)


def _cost_join(call: EstimatedCall) -> CostAndSize | None:
    if call.receiver is None or call.expression.target is None:
        return None
    element = call.estimator.element(call.expression.target)
    min_size, max_size = (multiply(call.receiver[n], element[1][n]) if element is not None else 0 for n in (0, 1))
    if call.sizes:
        min_size = add(min_size, multiply(call.sizes[0].min, max(0, call.receiver.min - 1)))
        max_size = add(max_size, multiply(call.sizes[0].max, max(0, call.receiver.max - 1)))
    return scale(max_size, CHARACTER_COST), SizeRange(min_size, max_size)


def _cost_search(call: EstimatedCall) -> CostAndSize | None:
    """Return the cost of matching a regular expression against a text."""
    if call.receiver is None or not call.sizes:
        return None
    cost = multiply(scale(add(call.receiver.max, 1), CHARACTER_COST), scale(call.sizes[0].max, PATTERN_COST))
    return cost, None if call.expression.function == "matches" else SizeRange(0, call.receiver.max)


def _cost_contains(call: EstimatedCall) -> CostAndSize | None:
    if call.receiver is None or len(call.sizes) != 1:
        return None
    return multiply(scale(call.receiver.max, CHARACTER_COST), scale(call.sizes[0].max, CHARACTER_COST)), None


def _cost_comparing_addresses(extra_cost: int) -> CostFunction:
    """Return a cost function for comparing two IP addresses of up to 16 bytes. Texts are parsed first."""

    def estimate(call: EstimatedCall) -> CostAndSize | None:
        argument = call.expression.arguments[0]
        is_text = call.estimator.types[argument].kind == "string"
        return add(4 + extra_cost, scale(call.sizes[0].max, CHARACTER_COST) if is_text else 0), None

    return estimate


def _cost_equal(call: EstimatedCall) -> CostAndSize | None:
    kinds = {call.estimator.types[argument].kind for argument in call.expression.arguments}
    if kinds & {"ip", "cidr", "quantity", "semver"}:
        return 1, None
    if "format" in kinds:
        return scale(_LONGEST_FORMAT, CHARACTER_COST), None
    if kinds == {"url"}:
        known_size = call.estimator.known_size(call.expression.arguments[1])
        return scale(known_size.max if known_size is not None else 1, CHARACTER_COST), None
    return None


def _cost_sets(factor: int) -> CostFunction:
    return lambda call: (add(1, multiply(multiply(call.sizes[0].max, call.sizes[1].max), factor)), None)


def _cost_creating_list(factor: float, size: SizeRange) -> CostAndSize:
    """Return the cost of creating a list of this size at `factor` per item, and the size."""
    return add(scale(size.max, factor), 1, LIST_COST), size


def _cost_comparing_all_pairs(size: SizeRange | None, factor: float) -> CostAndSize | None:
    if size is None:
        return None
    return _cost_creating_list(factor, SizeRange(multiply(size.min, size.min), multiply(size.max, size.max)))


def _cost_sort(call: EstimatedCall) -> CostAndSize | None:
    """Return the cost of comparing each item, or each key, with each other."""
    by = call.expression.arguments[0] if call.expression.arguments else call.expression.target
    if by is None:
        return None
    element = call.estimator.types[by].element
    is_text = element is None or element.kind in (*TEXT_TYPES, "dyn")
    return _cost_comparing_all_pairs(
        call.sizes[0] if call.sizes else call.receiver, 2.0 + (CHARACTER_COST if is_text else 0)
    )


def _get_int_literal(expression: Expression, default: int) -> int:
    return max(0, expression.value) if isinstance(expression, Literal) and expression.type == "int" else default


def _cost_slice(call: EstimatedCall) -> CostAndSize | None:
    if call.receiver is None:
        return None
    start, end = call.expression.arguments
    count = (_get_int_literal(end, call.receiver.max) - _get_int_literal(start, 0)) % 2**64
    return _cost_creating_list(1, SizeRange(count, count))


def _cost_range(call: EstimatedCall) -> CostAndSize | None:
    count = _get_int_literal(call.expression.arguments[0], MAX_UINT64)
    return _cost_creating_list(1, SizeRange(count, count))


def _cost_flatten(call: EstimatedCall) -> CostAndSize | None:
    depth = _get_int_literal(call.expression.arguments[0], MAX_UINT64) if call.expression.arguments else 1
    return _cost_creating_list(float(depth), call.receiver) if call.receiver is not None else None


def _cost_convert(call: EstimatedCall) -> CostAndSize | None:
    """Return the cost of converting between strings and bytes. A character has up to four bytes."""
    if not call.overload:
        return None
    argument = call.sizes[0]
    size = (
        SizeRange(argument.min // 4, argument.max)
        if call.overload == "bytes"
        else SizeRange(argument.min, argument.max * 4 % 2**64)
    )
    return scale(argument.max, CHARACTER_COST), size


def _cost_quote(call: EstimatedCall) -> CostAndSize | None:
    argument = call.sizes[0]
    return scale(argument.max, CHARACTER_COST), SizeRange((argument.min + 2) % 2**64, (argument.max * 2 + 2) % 2**64)


def _cost_validate(call: EstimatedCall) -> CostAndSize | None:
    return scale(scale(call.sizes[0].max, CHARACTER_COST), _NAME_FORMAT), None


FUNCTION_COSTS: Final[dict[str, CostFunction]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _cost_reading_items),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _cost_reading_receiver),
    **dict.fromkeys(("find", "findAll", "matches"), _cost_search),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _cost_reading_argument()
    ),
    **dict.fromkeys(("startsWith", "endsWith"), _cost_reading_argument()),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _cost_sets(1)),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), _cost_sort),
    **dict.fromkeys(("string", "bytes"), _cost_convert),
    "sets.equivalent": _cost_sets(2),
    "url": lambda call: (scale(call.sizes[0].max, CHARACTER_COST), call.sizes[0]),
    "ip.isCanonical": _cost_reading_argument(2 * CHARACTER_COST),
    "replace": _cost_replace,
    "split": _cost_split,
    "join": _cost_join,
    "contains": _cost_contains,
    "containsIP": _cost_comparing_addresses(0),
    "containsCIDR": _cost_comparing_addresses(3),
    "validate": _cost_validate,
    "_==_": _cost_equal,
    "slice": _cost_slice,
    "lists.range": _cost_range,
    "reverse": lambda call: _cost_creating_list(1, call.receiver) if call.receiver is not None else None,
    "flatten": _cost_flatten,
    "distinct": lambda call: _cost_comparing_all_pairs(call.receiver, 2.0),
    "format": lambda call: (scale(call.receiver.max, CHARACTER_COST), None) if call.receiver is not None else None,
    "strings.quote": _cost_quote,
}
