"""Estimate the worst-case cost of a rule, as a real server does when a CustomResourceDefinition is written.

Reading an identifier, a field or a scalar costs 1, and reading a character of a text 0.1. The maxLength, maxItems and
maxProperties of a schema limit the sizes. Without a limit, a value can fill the largest request.
"""

from typing import Final, NamedTuple

from fairlead.server.schema.cel.costs import result_types
from fairlead.server.schema.cel.costs.function_costs import FUNCTION_COSTS, TEXT_TYPES, EstimatedCall
from fairlead.server.schema.cel.costs.sizes import (
    CHARACTER_COST,
    LIST_COST,
    MAP_COST,
    ONE,
    UNKNOWN,
    EntrySizes,
    SizeRange,
    add,
    multiply,
    scale,
)
from fairlead.server.schema.cel.syntax_tree import (
    Call,
    Comprehension,
    Expression,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
)
from fairlead.server.schema.cel.types import BOOL, DYN, INT, Type

_SCALARS: Final = ("bool", "double", "duration", "int", "timestamp", "uint")


class _Local(NamedTuple):
    """The schema path, the size and the type of a local variable."""

    path: tuple[str, ...]
    size: SizeRange | None
    entry: EntrySizes | None
    type: Type


def estimate_cost(rule: Expression, root: Type, *, is_old_optional: bool = False) -> int:
    """Return the worst-case cost of a rule on a value of type `root`."""
    return CostEstimator(root, is_old_optional).cost(rule)


class CostEstimator:
    """Walks the syntax tree of a rule, children first, and records type, schema path and size of each expression.

    A path begins with a variable. An expression that is not a part of a variable has an empty path. Its parts have a
    path below the root, a quirk of the real server that affects its costs.
    """

    def __init__(self, root: Type, is_old_optional: bool) -> None:
        self.root = root
        self.old = Type("optional", element=root) if is_old_optional else root
        self.paths: dict[Expression, tuple[str, ...]] = {}
        self.types: dict[Expression, Type] = {}
        self.sizes: dict[Expression, SizeRange] = {}
        self.entries: dict[Expression, EntrySizes] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, expression: Expression) -> int:
        """Return the cost of an expression, including its children."""
        match expression:
            case Literal():
                self.types[expression] = Type(expression.type)
                return 0
            case Identifier():
                return self._cost_identifier(expression)
            case Select():
                return self._cost_select(expression)
            case Call():
                return self._cost_call(expression)
            case ListLiteral():
                return self._cost_list_literal(expression)
            case MapLiteral():
                return self._cost_map_literal(expression)
            case Comprehension():
                return self._cost_binding(expression) if expression.is_binding else self._cost_comprehension(expression)
        raise TypeError(expression)

    def _cost_identifier(self, expression: Identifier) -> int:
        local = self._find_local(expression.name)
        root_type = {"self": self.root, "oldSelf": self.old}.get(expression.name, DYN)
        self.types[expression] = local.type if local is not None else root_type
        self.paths[expression] = local.path if local is not None else (expression.name,)
        return 1

    def _cost_select(self, expression: Select) -> int:
        cost = self.cost(expression.operand)
        operand = self.types[expression.operand]
        if expression.is_presence_test:
            self.types[expression] = BOOL
            return cost
        self.types[expression] = result_types.field_type(operand, expression.field)
        self.paths[expression] = (*self._get_path(expression.operand), expression.field)
        return add(cost, int(operand.kind in ("map", "object")))

    def _cost_list_literal(self, expression: ListLiteral) -> int:
        cost = add(LIST_COST, *[self.cost(item) for item in expression.items])
        kinds = [self.types[item] for item in expression.items]
        self.types[expression] = Type("list", element=kinds[0] if kinds else DYN)
        self.entries[expression] = EntrySizes("list", ONE, self._unite_sizes(expression.items))
        return cost

    def _cost_map_literal(self, expression: MapLiteral) -> int:
        cost = add(MAP_COST, *[self.cost(part) for entry in expression.entries for part in entry])
        keys, values = [key for key, _ in expression.entries], [value for _, value in expression.entries]
        self.types[expression] = Type("map", element=self.types[values[0]] if values else DYN)
        self.entries[expression] = EntrySizes("map", self._unite_sizes(keys), self._unite_sizes(values))
        return cost

    def _unite_sizes(self, branches: list[Expression]) -> SizeRange:
        sizes = [self._get_size(part) for part in branches] or [SizeRange(0, 0)]
        return SizeRange(min(size.min for size in sizes), max(size.max for size in sizes))

    # Comprehensions

    def _cost_comprehension(self, expression: Comprehension) -> int:
        cost = add(self.cost(expression.iter_range), self.cost(expression.start))
        self._push(expression.accumulator, self._build_bound_local(expression.start))
        if expression.second_variable:
            self._push(expression.variable, self._build_iterated_local(expression.iter_range, "key"))
            self._push(expression.second_variable, self._build_iterated_local(expression.iter_range, "value"))
        else:
            self._push(expression.variable, self._build_iterated_local(expression.iter_range, "only"))
        per_iteration = add(self.cost(expression.condition), self.cost(expression.step))
        for name in filter(None, (expression.variable, expression.second_variable)):
            self.locals[name].pop()
        cost = add(cost, self.cost(expression.result))
        self.locals[expression.accumulator].pop()
        count = self._get_size(expression.iter_range)
        returns_accumulator = (
            isinstance(expression.result, Identifier) and expression.result.name == expression.accumulator
        )
        self.types[expression] = self.types[expression.step if returns_accumulator else expression.result]
        if isinstance(expression.start, Literal):
            self._set_size(expression, self.known_size(expression.start))
        elif isinstance(expression.start, ListLiteral | MapLiteral):
            self._set_size(expression, count)
            if (entry := self._get_entry_sizes(expression.step)) is not None:
                self.entries[expression] = entry
        return add(cost, multiply(count.max, per_iteration))

    def _cost_binding(self, expression: Comprehension) -> int:
        cost = add(self.cost(expression.iter_range), self.cost(expression.start))
        self._push(expression.accumulator, self._build_bound_local(expression.start))
        cost = add(cost, self.cost(expression.result))
        self.locals[expression.accumulator].pop()
        self.types[expression] = self.types[expression.result]
        self._copy_sizes(expression, expression.result)
        return cost

    def _build_bound_local(self, value: Expression) -> _Local:
        return _Local(self._get_path(value), self.known_size(value), self._get_entry_sizes(value), self.types[value])

    def _build_iterated_local(self, iter_range: Expression, iterated_part: str) -> _Local:
        entry, range_type = self._get_entry_sizes(iter_range), self.types[iter_range]
        is_list = (entry.kind if entry is not None else range_type.kind) == "list"
        is_value = iterated_part == "value" or (iterated_part == "only" and is_list)
        step = ("@items" if is_list else "@values") if is_value else ("@indices" if is_list else "@keys")
        key_type = INT if is_list else Type("string") if range_type.kind == "map" else DYN
        variable_type = (range_type.element or DYN) if is_value else key_type
        size = None if entry is None else entry.value if is_value else entry.key
        return _Local((*self._get_path(iter_range), step), size, None, variable_type)

    def _push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    # Known facts about an expression

    def _find_local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _get_path(self, expression: Expression) -> tuple[str, ...]:
        if isinstance(expression, Identifier) and (local := self._find_local(expression.name)) is not None:
            return local.path
        return self.paths.get(expression, ())

    def _set_size(self, expression: Expression, size: SizeRange | None) -> None:
        if size is not None:
            self.sizes[expression] = size

    def _copy_sizes(self, expression: Expression, source: Expression) -> None:
        self._set_size(expression, self.known_size(source))
        if (entry := self._get_entry_sizes(source)) is not None:
            self.entries[expression] = entry

    def _get_entry_sizes(self, expression: Expression) -> EntrySizes | None:
        if expression in self.entries:
            return self.entries[expression]
        local = self._find_local(expression.name) if isinstance(expression, Identifier) else None
        return local.entry if local is not None else None

    def _get_size(self, expression: Expression) -> SizeRange:
        return self.known_size(expression) or UNKNOWN

    def known_size(self, expression: Expression) -> SizeRange | None:
        """Return the range of sizes of an expression's value, or None if it is unknown."""
        if expression in self.sizes:
            return self.sizes[expression]
        if (literal_size := _get_literal_size(expression)) is not None:
            return SizeRange(literal_size, literal_size)
        if (declared_size := self._get_declared_size(self._get_path(expression))) is not None:
            self.sizes[expression] = declared_size
            return declared_size
        kind = self.types[expression]
        while kind.kind == "optional":
            kind = kind.element or DYN
        if kind.kind in _SCALARS:
            return ONE
        local = self._find_local(expression.name) if isinstance(expression, Identifier) else None
        return local.size if local is not None else None

    def _get_declared_size(self, path: tuple[str, ...]) -> SizeRange | None:
        """Return the range of sizes that the schema declares for a path, or None if it declares none."""
        if not path:
            return None
        current: Type | None = self.root
        for step in path[1:]:
            if current is None:
                return None
            if step in ("@items", "@values"):
                current = current.element
            elif step == "@keys":
                current = Type("string") if current.kind == "map" else None
            else:
                current = (current.fields or {}).get(step)
        return SizeRange(0, current.max_size) if current is not None else None

    # Calls

    def _cost_call(self, expression: Call) -> int:
        costs = [self.cost(argument) for argument in expression.arguments]
        if expression.function == "dyn":
            self.types[expression] = DYN
            self._copy_sizes(expression, expression.arguments[0])
            return add(1, *costs)
        target = self.cost(expression.target) if expression.target is not None else 0
        kinds = [self.types[argument] for argument in expression.arguments]
        self.types[expression] = self._get_result_type(expression, kinds)
        worst, size = 0, None
        for overload in _find_overloads(expression, [kind.kind for kind in kinds]):
            cost, result_size = self._cost_overload(expression, overload, costs)
            worst = max(worst, cost)
            if result_size is not None:
                size = result_size if size is None else size | result_size
            if overload in ("@items", "@values"):
                entry = self._get_entry_sizes(expression.arguments[0])
                size = entry.value if entry is not None else None
                self.paths[expression] = (*self._get_path(expression.arguments[0]), overload)
            if size is None:
                size = self.known_size(expression)
        self._set_size(expression, size)
        return add(target, worst)

    def _get_result_type(self, expression: Call, kinds: list[Type]) -> Type:
        match expression:
            case Call("_?._", None, [_, Literal(value=field)]):
                return result_types.field_type(kinds[0], field, is_optional=True)
        return result_types.result_type(
            expression.function, self.types[expression.target] if expression.target is not None else None, kinds
        )

    def _cost_overload(self, expression: Call, overload: str, costs: list[int]) -> tuple[int, SizeRange | None]:
        """Return the cost of calling an overload, including its arguments, and the size of its result."""
        sizes = [self._get_size(argument) for argument in expression.arguments]
        if expression.function in ("_&&_", "_||_"):
            return add(*costs), None
        if expression.function == "_?_:_":
            return self._cost_conditional(expression, costs, sizes)
        if expression.function == "_+_" and overload != "":
            return self._cost_concatenation(expression, overload, costs, sizes)
        cost, size = self._cost_function(expression, overload, sizes)
        return add(cost, *costs), size

    def _cost_conditional(
        self, expression: Call, costs: list[int], sizes: list[SizeRange]
    ) -> tuple[int, SizeRange | None]:
        then, otherwise = (self._get_entry_sizes(argument) for argument in expression.arguments[1:])
        if then is not None and otherwise is not None:
            self.entries[expression] = EntrySizes(then.kind, then.key | otherwise.key, then.value | otherwise.value)
        return add(costs[0], max(costs[1:])), sizes[1] | sizes[2]

    def _cost_concatenation(
        self, expression: Call, overload: str, costs: list[int], sizes: list[SizeRange]
    ) -> tuple[int, SizeRange | None]:
        size = SizeRange(add(*[size.min for size in sizes]), add(*[size.max for size in sizes]))
        first, second = (self._get_entry_sizes(argument) for argument in expression.arguments)
        if first is not None and second is not None:
            self.entries[expression] = EntrySizes(first.kind, first.key | second.key, first.value | second.value)
        return add(1 if overload == "list" else scale(size.max, CHARACTER_COST), *costs), size

    def _cost_function(self, expression: Call, overload: str, sizes: list[SizeRange]) -> tuple[int, SizeRange | None]:
        """Return the cost of a call without its arguments, and the size of its result."""
        receiver = self._get_size(expression.target) if expression.target is not None else None
        if (function_cost := FUNCTION_COSTS.get(expression.function)) is not None:
            estimated = function_cost(EstimatedCall(expression, overload, receiver, sizes, self))
            if estimated is not None:
                return estimated
        if overload == "in":
            return sizes[1].max, None
        if overload in ("compared", "equal"):
            return scale(min(sizes[0].max, sizes[1].max), CHARACTER_COST), None
        return 1, None

    def element(self, expression: Expression) -> tuple[Type, SizeRange] | None:
        """Return the type and the size of a list's items, or None if the expression is not a list."""
        list_type = self.types[expression]
        if list_type.element is None:
            return None
        path = self._get_path(expression)
        return list_type.element, (self._get_declared_size((*path, "@items")) if path else None) or UNKNOWN


def _get_literal_size(expression: Expression) -> int | None:
    """Return the size of a literal, or None for another expression."""
    match expression:
        case Literal():
            return len(expression.value) if expression.type in TEXT_TYPES else 1
        case ListLiteral():
            return len(expression.items)
        case MapLiteral():
            return len(expression.entries)
    return None


def _find_overloads(expression: Call, kinds: list[str]) -> tuple[str, ...]:
    """Return the overloads that a call can have for its argument types. "" stands for all overloads with equal cost."""
    known_kind = next((kind for kind in kinds if kind != "dyn"), "dyn")
    match expression.function:
        case "_+_":
            return (
                ("list", "string", "")
                if known_kind == "dyn"
                else (known_kind,)
                if known_kind in (*TEXT_TYPES, "list")
                else ("",)
            )
        case "_<_" | "_<=_" | "_>_" | "_>=_":
            return ("compared", "") if known_kind == "dyn" else ("compared",) if known_kind in TEXT_TYPES else ("",)
        case "_==_" | "_!=_":
            return ("equal",)
        case "@in":
            return {"list": ("in",), "map": ("",)}.get(kinds[1], ("in", ""))
        case "_[_]":
            return {"list": ("@items",), "map": ("@values",), "dyn": ("@items", "@values")}.get(kinds[0], ("",))
        case "string" | "bytes":
            source = "bytes" if expression.function == "string" else "string"
            return (source, "") if kinds[0] == "dyn" else (source,) if kinds[0] == source else ("",)
    return ("",)
