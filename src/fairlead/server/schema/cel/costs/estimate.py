"""What a rule may cost at worst, as a real server estimates it when a definition is written.

Costs are units of work: one for a look at a name, a field or a scalar, a tenth for a character of a text. A schema's
maxLength, maxItems and maxProperties bound the sizes; where there is none, a value fills a request of the largest size.
"""

from typing import Final, NamedTuple

from fairlead.server.schema.cel.costs import result_types
from fairlead.server.schema.cel.costs.function_costs import FUNCTIONS, TEXTS, Given
from fairlead.server.schema.cel.costs.sizes import CHARACTER, LIST, MAP, ONE, UNKNOWN, Entry, Size, add, part, times
from fairlead.server.schema.cel.syntax_tree import Call, Entries, Expression, Items, Literal, Loop, Name, Select
from fairlead.server.schema.cel.types import BOOL, DYN, INT, Type

_SCALARS: Final = ("bool", "double", "duration", "int", "timestamp", "uint")


class _Local(NamedTuple):
    path: tuple[str, ...]
    size: Size | None
    entry: Entry | None
    type: Type


def cost(rule: Expression, root: Type, *, optional_old: bool = False) -> int:
    """What a rule on a value of this type costs at most."""
    return Estimate(root, optional_old).cost(rule)


class Estimate:
    """Goes through a rule once, innermost first, and keeps what is known of each part: type, place in the schema, size.

    A place is a path from a variable; what is no variable's has an empty one, and what is inside that, by a quirk which
    the costs of a real server depend on, the root's.
    """

    def __init__(self, root: Type, optional_old: bool) -> None:
        self.root = root
        self.old = Type("optional", element=root) if optional_old else root
        self.paths: dict[Expression, tuple[str, ...]] = {}
        self.types: dict[Expression, Type] = {}
        self.sizes: dict[Expression, Size] = {}
        self.entries: dict[Expression, Entry] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, one: Expression) -> int:
        match one:
            case Literal():
                self.types[one] = Type(one.type)
                return 0
            case Name():
                return self._name(one)
            case Select():
                return self._select(one)
            case Call():
                return self._call(one)
            case Items():
                return self._items(one)
            case Entries():
                return self._entries(one)
            case Loop():
                return self._naming(one) if one.names_only else self._loop(one)
        raise TypeError(one)

    def _name(self, one: Name) -> int:
        local = self._local(one.name)
        known = {"self": self.root, "oldSelf": self.old}.get(one.name, DYN)
        self.types[one] = local.type if local is not None else known
        self.paths[one] = local.path if local is not None else (one.name,)
        return 1

    def _select(self, one: Select) -> int:
        found = self.cost(one.operand)
        operand = self.types[one.operand]
        if one.test:
            self.types[one] = BOOL
            return found
        self.types[one] = result_types.selected(operand, one.field)
        self.paths[one] = (*self._path(one.operand), one.field)
        return add(found, int(operand.kind in ("map", "object")))

    def _items(self, one: Items) -> int:
        found = add(LIST, *[self.cost(item) for item in one.items])
        kinds = [self.types[item] for item in one.items]
        self.types[one] = Type("list", element=kinds[0] if kinds else DYN)
        self.entries[one] = Entry("list", ONE, self._union(one.items))
        return found

    def _entries(self, one: Entries) -> int:
        found = add(MAP, *[self.cost(part) for entry in one.entries for part in entry])
        keys, values = [key for key, _ in one.entries], [value for _, value in one.entries]
        self.types[one] = Type("map", element=self.types[values[0]] if values else DYN)
        self.entries[one] = Entry("map", self._union(keys), self._union(values))
        return found

    def _union(self, parts: list[Expression]) -> Size:
        sizes = [self._size(part) for part in parts] or [Size(0, 0)]
        return Size(min(size.least for size in sizes), max(size.most for size in sizes))

    # Loops

    def _loop(self, one: Loop) -> int:
        found = add(self.cost(one.over), self.cost(one.start))
        self._push(one.result_name, self._bound(one.start))
        if one.second:
            self._push(one.variable, self._iterated(one.over, "key"))
            self._push(one.second, self._iterated(one.over, "value"))
        else:
            self._push(one.variable, self._iterated(one.over, "only"))
        each = add(self.cost(one.condition), self.cost(one.step))
        for name in filter(None, (one.variable, one.second)):
            self.locals[name].pop()
        found = add(found, self.cost(one.result))
        self.locals[one.result_name].pop()
        count = self._size(one.over)
        accumulated = isinstance(one.result, Name) and one.result.name == one.result_name
        self.types[one] = self.types[one.step if accumulated else one.result]
        if isinstance(one.start, Literal):
            self._set(one, self.known(one.start))
        elif isinstance(one.start, Items | Entries):
            self._set(one, count)
            if (entry := self._entry(one.step)) is not None:
                self.entries[one] = entry
        return add(found, times(count.most, each))

    def _naming(self, one: Loop) -> int:
        found = add(self.cost(one.over), self.cost(one.start))
        self._push(one.result_name, self._bound(one.start))
        found = add(found, self.cost(one.result))
        self.locals[one.result_name].pop()
        self.types[one] = self.types[one.result]
        self._copy(one, one.result)
        return found

    def _bound(self, value: Expression) -> _Local:
        return _Local(self._path(value), self.known(value), self._entry(value), self.types[value])

    def _iterated(self, over: Expression, part: str) -> _Local:
        entry, whole = self._entry(over), self.types[over]
        listed = (entry.kind if entry is not None else whole.kind) == "list"
        value = part == "value" or (part == "only" and listed)
        step = ("@items" if listed else "@values") if value else ("@indices" if listed else "@keys")
        inner = (whole.element or DYN) if value else INT if listed else Type("string") if whole.kind == "map" else DYN
        size = None if entry is None else entry.value if value else entry.key
        return _Local((*self._path(over), step), size, None, inner)

    def _push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    # What is known of a part

    def _local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _path(self, one: Expression) -> tuple[str, ...]:
        if isinstance(one, Name) and (local := self._local(one.name)) is not None:
            return local.path
        return self.paths.get(one, ())

    def _set(self, one: Expression, size: Size | None) -> None:
        if size is not None:
            self.sizes[one] = size

    def _copy(self, one: Expression, other: Expression) -> None:
        self._set(one, self.known(other))
        if (entry := self._entry(other)) is not None:
            self.entries[one] = entry

    def _entry(self, one: Expression) -> Entry | None:
        if one in self.entries:
            return self.entries[one]
        local = self._local(one.name) if isinstance(one, Name) else None
        return local.entry if local is not None else None

    def _size(self, one: Expression) -> Size:
        return self.known(one) or UNKNOWN

    def known(self, one: Expression) -> Size | None:
        if one in self.sizes:
            return self.sizes[one]
        if (written := _written(one)) is not None:
            return Size(written, written)
        if (found := self._at(self._path(one))) is not None:
            self.sizes[one] = found
            return found
        kind = self.types[one]
        while kind.kind == "optional":
            kind = kind.element or DYN
        if kind.kind in _SCALARS:
            return ONE
        local = self._local(one.name) if isinstance(one, Name) else None
        return local.size if local is not None else None

    def _at(self, path: tuple[str, ...]) -> Size | None:
        """What the schema says of the size at a place."""
        if not path:
            return None
        place: Type | None = self.root
        for step in path[1:]:
            if place is None:
                return None
            if step in ("@items", "@values"):
                place = place.element
            elif step == "@keys":
                place = Type("string") if place.kind == "map" else None
            else:
                place = (place.fields or {}).get(step)
        return Size(0, place.most) if place is not None else None

    # Calls

    def _call(self, one: Call) -> int:
        given = [self.cost(argument) for argument in one.arguments]
        if one.function == "dyn":
            self.types[one] = DYN
            self._copy(one, one.arguments[0])
            return add(1, *given)
        target = self.cost(one.target) if one.target is not None else 0
        kinds = [self.types[argument] for argument in one.arguments]
        self.types[one] = self._answered(one, kinds)
        worst, size = 0, None
        for overload in _overloads(one, [kind.kind for kind in kinds]):
            each, made = self._overload(one, overload, given)
            worst = max(worst, each)
            if made is not None:
                size = made if size is None else size | made
            if overload in ("@items", "@values"):
                entry = self._entry(one.arguments[0])
                size = entry.value if entry is not None else None
                self.paths[one] = (*self._path(one.arguments[0]), overload)
            if size is None:
                size = self.known(one)
        self._set(one, size)
        return add(target, worst)

    def _answered(self, one: Call, kinds: list[Type]) -> Type:
        match one:
            case Call("_?._", None, [_, Literal(value=field)]):
                return result_types.selected(kinds[0], field, optional=True)
        return result_types.answered(one.function, self.types[one.target] if one.target is not None else None, kinds)

    def _overload(self, one: Call, overload: str, given: list[int]) -> tuple[int, Size | None]:
        """What one meaning of a call costs, its arguments included, and how large its result is."""
        sizes = [self._size(argument) for argument in one.arguments]
        if one.function in ("_&&_", "_||_"):
            return add(*given), None
        if one.function == "_?_:_":
            return self._either(one, given, sizes)
        if one.function == "_+_" and overload != "":
            return self._joined(one, overload, given, sizes)
        found, size = self._own(one, overload, sizes)
        return add(found, *given), size

    def _either(self, one: Call, given: list[int], sizes: list[Size]) -> tuple[int, Size | None]:
        then, otherwise = (self._entry(argument) for argument in one.arguments[1:])
        if then is not None and otherwise is not None:
            self.entries[one] = Entry(then.kind, then.key | otherwise.key, then.value | otherwise.value)
        return add(given[0], max(given[1:])), sizes[1] | sizes[2]

    def _joined(self, one: Call, overload: str, given: list[int], sizes: list[Size]) -> tuple[int, Size | None]:
        size = Size(add(*[size.least for size in sizes]), add(*[size.most for size in sizes]))
        first, second = (self._entry(argument) for argument in one.arguments)
        if first is not None and second is not None:
            self.entries[one] = Entry(first.kind, first.key | second.key, first.value | second.value)
        return add(1 if overload == "list" else part(size.most, CHARACTER), *given), size

    def _own(self, one: Call, overload: str, sizes: list[Size]) -> tuple[int, Size | None]:
        """What a call costs besides its arguments."""
        on = self._size(one.target) if one.target is not None else None
        if (known := FUNCTIONS.get(one.function)) is not None:
            found = known(Given(one, overload, on, sizes, self))
            if found is not None:
                return found
        if overload == "in":
            return sizes[1].most, None
        if overload in ("compared", "equal"):
            return part(min(sizes[0].most, sizes[1].most), CHARACTER), None
        return 1, None

    def element(self, one: Expression) -> tuple[Type, Size] | None:
        """The type and the size of a list's items, or None of what is no list."""
        whole = self.types[one]
        if whole.element is None:
            return None
        path = self._path(one)
        return whole.element, (self._at((*path, "@items")) if path else None) or UNKNOWN


def _written(one: Expression) -> int | None:
    """The size of what is written out in the rule."""
    match one:
        case Literal():
            return len(one.value) if one.type in TEXTS else 1
        case Items():
            return len(one.items)
        case Entries():
            return len(one.entries)
    return None


def _overloads(one: Call, kinds: list[str]) -> tuple[str, ...]:
    """The meanings that a call may have by the types of its arguments; the last one is any that costs the same."""
    said = next((kind for kind in kinds if kind != "dyn"), "dyn")
    match one.function:
        case "_+_":
            return ("list", "string", "") if said == "dyn" else (said,) if said in (*TEXTS, "list") else ("",)
        case "_<_" | "_<=_" | "_>_" | "_>=_":
            return ("compared", "") if said == "dyn" else ("compared",) if said in TEXTS else ("",)
        case "_==_" | "_!=_":
            return ("equal",)
        case "@in":
            return {"list": ("in",), "map": ("",)}.get(kinds[1], ("in", ""))
        case "_[_]":
            return {"list": ("@items",), "map": ("@values",), "dyn": ("@items", "@values")}.get(kinds[0], ("",))
        case "string" | "bytes":
            wanted = "bytes" if one.function == "string" else "string"
            return (wanted, "") if kinds[0] == "dyn" else (wanted,) if kinds[0] == wanted else ("",)
    return ("",)
