"""Evaluate rules on values that do not fit their schema. The rule fails only if it reads such a value.

In a real server, a CEL value can be an error, which the rule gets when it reads the value. This engine has no error
values. So a marker replaces each invalid value (`mark_invalid`), and `add_guards` rewrites the rule: wherever it reads
a value, it calls a function that raises an error for a marker.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

from fairlead.server.protobuf.wire import LENGTH_DELIMITED, VARINT, read_fields

_MARKER: Final = "__invalid__"
_MARKER_IN_SET: Final = "__invalid_in_set__"
_VALID, _VALID_ENTRY, _NOT_FOUND, _COMPARABLE, _VALID_ITEMS = (
    f"__{name}__" for name in ("valid", "valid_entry", "not_found", "comparable", "valid_items")
)
# The field numbers of CEL's Expr message.
_ID, _CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _COMPREHENSION = range(2, 10)
_CONDITION, _IN, _EQUALS, _DIFFERS, _NOT, _INDEX, _PLUS = "_?_:_", "@in", "_==_", "_!=_", "!_", "_[_]", "_+_"
_SKIPS_ITEMS: Final = frozenset({"size", "indexOf", "lastIndexOf"})  # Functions that do not read each item.
_OPTIONAL: Final = (b"_?._", b"_[?_]", b"\x08optional", b"\x05first", b"\x04last")  # These return optional values.
_FALSE: Final = b"\x1a\x02\x10\x00"  # The encoded Expr of the literal false.

Fields = list[tuple[int, int, Any]]


def mark_invalid(message: str, *, is_in_set: bool = False) -> dict[str, str]:
    """Return the marker that replaces an invalid value. A marker equals no other value.

    An item of a set has a marker of its own.
    """
    return {_MARKER_IN_SET if is_in_set else _MARKER: message}


def _get_message(value: Any) -> str | None:
    return value.get(_MARKER) or value.get(_MARKER_IN_SET) if isinstance(value, dict) and len(value) == 1 else None


def expect_valid(value: Any) -> Any:
    """Return the value. Raises ValueError if it is a marker."""
    if message := _get_message(value):
        raise ValueError(message)
    return value


def expect_valid_items(value: Any) -> Any:
    """Return the value. Raises ValueError if it is a marker or a list that contains a marker."""
    for item in expect_valid(value) if isinstance(value, list) else ():
        expect_valid(item)
    return expect_valid(value)


def expect_valid_entry(value: Any, key: Any) -> bool:
    """Return True, after a key was found in `value`. Raises ValueError if the entry of the key is a marker."""
    if isinstance(value, dict):
        expect_valid(value.get(key))
    return True


def expect_valid_after_miss(value: Any) -> bool:
    """Return False, after an item was not found in `value`.

    Raises ValueError if the list contains a marker, because the marker could be that item.
    """
    if isinstance(value, list):
        expect_valid_items(value)
    return False


def can_be_equal(a: Any, b: Any) -> bool:
    """Return whether two maps or lists can be equal. Raises ValueError if the comparison reads a marker in `a`."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if any(isinstance(item, dict) and _MARKER_IN_SET in item for item in (*a, *b)):
            return False
        return all(can_be_equal(expect_valid(item_a), item_b) for item_a, item_b in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return all(can_be_equal(expect_valid(inner), b[key]) for key, inner in a.items())
    return type(a) is type(b) and a == b


def functions(types: Any) -> "dict[str, list[tuple[bool, Any, list[Any], Any]]]":
    """Return the functions that guarded rules call, in the format of functions/library.py."""
    any_, bool_ = types.DYN, types.BOOL
    return {
        _VALID: [(False, any_, [any_], expect_valid)],
        _VALID_ITEMS: [(False, any_, [any_], expect_valid_items)],
        _VALID_ENTRY: [(False, bool_, [any_, any_], expect_valid_entry)],
        _NOT_FOUND: [(False, bool_, [any_], expect_valid_after_miss)],
        _COMPARABLE: [(False, bool_, [any_, any_], can_be_equal)],
    }


def has_optionals(program: bytes) -> bool:
    """Return whether a parsed rule can have optional values. The engine crashes if a Python function gets one."""
    return any(name in program for name in _OPTIONAL)


def add_guards(program: bytes) -> bytes:
    """Return a serialized rule that calls a guard wherever it reads a value. The rule must not have optionals."""
    guard = _GuardWriter()
    outer = [(n, w, _edit(v, {2: lambda expr: guard.expr(expr, frozenset({"self", "oldSelf"}))}) if n == 2 else v)
             for n, w, v in _read(program)]  # fmt: skip
    return _join(outer)


class _GuardWriter:
    """Adds guard calls to serialized Expr messages."""

    def __init__(self) -> None:
        self._ids = itertools.count(1_000_000)

    def expr(self, expression: bytes, names: frozenset[str]) -> bytes:
        """Return an expression with guard calls. `names` are the variables that can contain a marker."""
        number, inner = next(((n, v) for n, _, v in _read(expression) if n != _ID), (0, b""))
        if number == _IDENT:
            return self._call(_VALID, expression) if _read_text(inner, 1) in names else expression
        if number == _SELECT:
            return self._guard_select(expression, inner, names)
        if number == _CALL:
            return self._guard_call(expression, inner, names)

        def child(expr: bytes) -> bytes:
            return self.expr(expr, names)

        if number == _LIST:
            return _edit(expression, {_LIST: lambda items: _edit(items, {1: child})})
        if number == _STRUCT:
            edits = {3: child, 4: child}
            return _edit(expression, {_STRUCT: lambda entries: _edit(entries, {2: lambda entry: _edit(entry, edits)})})
        return self._guard_comprehension(expression, inner, names) if number == _COMPREHENSION else expression

    def _guard_select(self, expression: bytes, inner: bytes, names: frozenset[str]) -> bytes:
        guarded = _edit(
            expression, {_SELECT: lambda select: _edit(select, {1: lambda operand: self.expr(operand, names)})}
        )
        if not _is_object_part(expression, names):
            return guarded
        if not any(n == 3 for n, _, _ in _read(inner)):  # It is not has().
            return self._call(_VALID, guarded)
        operand = next(v for n, _, v in _read(inner) if n == 1)
        name = _join(
            [
                (_ID, VARINT, next(self._ids)),
                (_CONST, LENGTH_DELIMITED, _join([(6, LENGTH_DELIMITED, _read_text(inner, 2).encode())])),
            ]
        )
        return self._call(_CONDITION, guarded, self._call(_VALID_ENTRY, self.expr(operand, names), name), _FALSE)

    def _guard_call(self, expression: bytes, inner: bytes, names: frozenset[str]) -> bytes:
        function = _read_text(inner, 2)

        def argument(expr: bytes) -> bytes:
            guarded = self.expr(expr, names)
            is_operator = function[:1] in "_@!-"
            reads_items = not is_operator and function not in _SKIPS_ITEMS and _is_object_part(expr, names)
            return self._call(_VALID_ITEMS, guarded) if reads_items else guarded

        guarded = _edit(expression, {_CALL: lambda call: _edit(call, {1: argument, 3: argument})})
        arguments = [v for n, _, v in _read(next(v for n, _, v in _read(guarded) if n == _CALL)) if n == 3]
        if function == _INDEX and _is_object_part(expression, names):
            return self._call(_VALID, guarded)
        originals = [v for n, _, v in _read(inner) if n == 3]
        if function == _IN and _is_object_part(originals[1], names):
            value, container = arguments
            found, not_found = self._call(_VALID_ENTRY, container, value), self._call(_NOT_FOUND, container)
            return self._call(_CONDITION, guarded, found, not_found)
        if (
            function in (_EQUALS, _DIFFERS)
            and _is_object_part(originals[0], names)
            and not _has_field(originals[1], _CONST)
        ):
            comparable, equal = self._call(_COMPARABLE, *arguments), self._call(_EQUALS, *arguments)
            condition = self._call(_CONDITION, comparable, equal, _FALSE)
            return condition if function == _EQUALS else self._call(_NOT, condition)
        return guarded

    def _guard_comprehension(self, expression: bytes, inner: bytes, names: frozenset[str]) -> bytes:
        iter_range = next(v for n, _, v in _read(inner) if n == 2)
        variables = {_read_text(inner, 1), _read_text(inner, 8)}
        loop_names = names | variables - {""} if _is_object_part(iter_range, names) else names - variables

        def outside(expr: bytes) -> bytes:
            return self.expr(expr, names)

        def inside(expr: bytes) -> bytes:
            return self.expr(expr, loop_names)

        edits = {2: outside, 4: outside, 5: inside, 6: inside, 7: outside}
        return _edit(expression, {_COMPREHENSION: lambda comprehension: _edit(comprehension, edits)})

    def _call(self, function: str, *arguments: bytes) -> bytes:
        encoded = [(3, LENGTH_DELIMITED, argument) for argument in arguments]
        call = _join([(2, LENGTH_DELIMITED, function.encode()), *encoded])
        return _join([(_ID, VARINT, next(self._ids)), (_CALL, LENGTH_DELIMITED, call)])


def _is_object_part(expression: bytes, names: frozenset[str]) -> bool:
    """Return whether an expression reads a part of the object, or builds a list of such parts."""
    number, inner = next(((n, v) for n, _, v in _read(expression) if n != _ID), (0, b""))
    if number == _IDENT:
        return _read_text(inner, 1) in names
    if number == _SELECT:
        return _is_object_part(next(v for n, _, v in _read(inner) if n == 1), names)
    arguments = [v for n, _, v in _read(inner) if n == 3] if number == _CALL else []
    if number == _CALL and _read_text(inner, 2) == _INDEX:
        return _is_object_part(arguments[0], names)
    is_sum = number == _CALL and _read_text(inner, 2) == _PLUS
    return is_sum and any(_is_object_part(argument, names) for argument in arguments)


def _has_field(message: bytes, number: int) -> bool:
    return any(n == number for n, _, _ in _read(message))


def _read(message: bytes) -> Iterator[tuple[int, int, Any]]:
    return read_fields(message, "Expr")


def _join(fields: Fields) -> bytes:
    encoded = bytearray()
    for number, wire_type, value in fields:
        encoded += _encode_varint(number << 3 | wire_type)
        if wire_type == VARINT:
            encoded += _encode_varint(value)
        else:
            encoded += (_encode_varint(len(value)) if wire_type == LENGTH_DELIMITED else b"") + value
    return bytes(encoded)


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _edit(message: bytes, edits: dict[int, Any]) -> bytes:
    return _join([(n, w, edits[n](v) if n in edits and w == LENGTH_DELIMITED else v) for n, w, v in _read(message)])


def _read_text(message: bytes, number: int) -> str:
    return next((v.decode() for n, _, v in _read(message) if n == number), "")
