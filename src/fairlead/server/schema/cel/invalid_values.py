"""Rules on values that do not fit their schema: the same rule, failing where it looks at one.

A real server makes an error of such a value when a rule meets it, and only then. The engine takes no errors as values,
so each is a `misfit`, and every place of the rule that reads a value asks whether it is one.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

from fairlead.server.protobuf.wire import LENGTH_DELIMITED, VARINT, read_fields

_MARK: Final = "__misfit__"
_IN_SET: Final = "__misfit_in_set__"
_FIT, _FOUND, _MISSED, _EQUAL, _SOUND = (f"__{name}__" for name in ("fit", "found", "missed", "equal", "sound"))
_ID, _CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _LOOP = range(2, 10)  # the fields of an Expr
_CONDITION, _IN, _EQUALS, _DIFFERS, _NOT, _INDEX, _PLUS = "_?_:_", "@in", "_==_", "_!=_", "!_", "_[_]", "_+_"
_UNLIKE: Final = frozenset({"size", "indexOf", "lastIndexOf"})  # functions that do not look at each item
_OPTIONAL: Final = (b"_?._", b"_[?_]", b"\x08optional", b"\x05first", b"\x04last")  # what makes optional values
_FALSE: Final = b"\x1a\x02\x10\x00"  # an Expr

Fields = list[tuple[int, int, Any]]


def misfit(told: str, *, in_set: bool = False) -> dict[str, str]:
    """What stands for a value that does not fit. Equal to nothing; sets tell it from their items by that alone."""
    return {_IN_SET if in_set else _MARK: told}


def _told(value: Any) -> str | None:
    return value.get(_MARK) or value.get(_IN_SET) if isinstance(value, dict) and len(value) == 1 else None


def fit(value: Any) -> Any:
    """The value. Raises ValueError for a misfit."""
    if told := _told(value):
        raise ValueError(told)
    return value


def sound(value: Any) -> Any:
    """The value. Raises ValueError for a misfit, or a list or map of values that holds one."""
    for item in fit(value) if isinstance(value, list) else ():
        fit(item)
    return fit(value)


def found(value: Any, key: Any) -> bool:
    """What a map or an object has is looked at when it is found."""
    if isinstance(value, dict):
        fit(value.get(key))
    return True


def missed(value: Any) -> bool:
    """What is not found in a list may be the one that does not fit."""
    if isinstance(value, list):
        sound(value)
    return False


def comparable(a: Any, b: Any) -> bool:
    """Whether two containers may be equal. Raises ValueError where a misfit of the first one is compared."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if any(isinstance(item, dict) and _IN_SET in item for item in (*a, *b)):
            return False
        return all(comparable(fit(one), other) for one, other in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return all(comparable(fit(one), b[key]) for key, one in a.items())
    return type(a) is type(b) and a == b


def functions(types: Any) -> "dict[str, list[tuple[bool, Any, list[Any], Any]]]":
    """Those that a guarded rule calls, as the library declares functions."""
    any_, bool_ = types.DYN, types.BOOL
    return {
        _FIT: [(False, any_, [any_], fit)],
        _SOUND: [(False, any_, [any_], sound)],
        _FOUND: [(False, bool_, [any_, any_], found)],
        _MISSED: [(False, bool_, [any_], missed)],
        _EQUAL: [(False, bool_, [any_, any_], comparable)],
    }


def has_optionals(program: bytes) -> bool:
    """Whether a parsed rule may make optional values, which the engine cannot hand to a function: it would crash."""
    return any(name in program for name in _OPTIONAL)


def guarded(program: bytes) -> bytes:
    """A parsed rule without optionals, as the engine serializes it, that asks wherever it reads a value."""
    guard = _Guard()
    outer = [(n, w, _edited(v, {2: lambda expr: guard.expr(expr, frozenset({"self", "oldSelf"}))}) if n == 2 else v)
             for n, w, v in _read(program)]  # fmt: skip
    return _joined(outer)


class _Guard:
    def __init__(self) -> None:
        self._ids = itertools.count(1_000_000)

    def expr(self, data: bytes, names: frozenset[str]) -> bytes:
        """An expression in which `names` are variables that may hold a misfit."""
        number, inner = next(((n, v) for n, _, v in _read(data) if n != _ID), (0, b""))
        if number == _IDENT:
            return self._call(_FIT, data) if _text(inner, 1) in names else data
        if number == _SELECT:
            return self._select(data, inner, names)
        if number == _CALL:
            return self._called(data, inner, names)

        def below(one: bytes) -> bytes:
            return self.expr(one, names)

        if number == _LIST:
            return _edited(data, {_LIST: lambda made: _edited(made, {1: below})})
        if number == _STRUCT:
            entry = {3: below, 4: below}
            return _edited(data, {_STRUCT: lambda made: _edited(made, {2: lambda one: _edited(one, entry)})})
        return self._loop(data, inner, names) if number == _LOOP else data

    def _select(self, data: bytes, inner: bytes, names: frozenset[str]) -> bytes:
        made = _edited(data, {_SELECT: lambda one: _edited(one, {1: lambda operand: self.expr(operand, names)})})
        if not _holds(data, names):
            return made
        if not any(n == 3 for n, _, _ in _read(inner)):
            return self._call(_FIT, made)
        operand = next(v for n, _, v in _read(inner) if n == 1)
        name = _joined(
            [
                (_ID, VARINT, next(self._ids)),
                (_CONST, LENGTH_DELIMITED, _joined([(6, LENGTH_DELIMITED, _text(inner, 2).encode())])),
            ]
        )
        return self._call(_CONDITION, made, self._call(_FOUND, self.expr(operand, names), name), _FALSE)

    def _called(self, data: bytes, inner: bytes, names: frozenset[str]) -> bytes:
        function = _text(inner, 2)

        def below(one: bytes) -> bytes:
            made = self.expr(one, names)
            looked = function[:1] not in "_@!-" and function not in _UNLIKE and _holds(one, names)
            return self._call(_SOUND, made) if looked else made

        made = _edited(data, {_CALL: lambda one: _edited(one, {1: below, 3: below})})
        arguments = [v for n, _, v in _read(next(v for n, _, v in _read(made) if n == _CALL)) if n == 3]
        if function == _INDEX and _holds(data, names):
            return self._call(_FIT, made)
        given = [v for n, _, v in _read(inner) if n == 3]
        if function == _IN and _holds(given[1], names):
            value, container = arguments
            return self._call(_CONDITION, made, self._call(_FOUND, container, value), self._call(_MISSED, container))
        if function in (_EQUALS, _DIFFERS) and _holds(given[0], names) and not _is(given[1], _CONST):
            same = self._call(_CONDITION, self._call(_EQUAL, *arguments), self._call(_EQUALS, *arguments), _FALSE)
            return same if function == _EQUALS else self._call(_NOT, same)
        return made

    def _loop(self, data: bytes, inner: bytes, names: frozenset[str]) -> bytes:
        over = next(v for n, _, v in _read(inner) if n == 2)
        own = {_text(inner, 1), _text(inner, 8)}
        within = names | own - {""} if _holds(over, names) else names - own

        def outside(one: bytes) -> bytes:
            return self.expr(one, names)

        def inside(one: bytes) -> bytes:
            return self.expr(one, within)

        parts = {2: outside, 4: outside, 5: inside, 6: inside, 7: outside}
        return _edited(data, {_LOOP: lambda made: _edited(made, parts)})

    def _call(self, function: str, *arguments: bytes) -> bytes:
        call = _joined([(2, LENGTH_DELIMITED, function.encode()), *[(3, LENGTH_DELIMITED, one) for one in arguments]])
        return _joined([(_ID, VARINT, next(self._ids)), (_CALL, LENGTH_DELIMITED, call)])


def _holds(data: bytes, names: frozenset[str]) -> bool:
    """Whether an expression is a part of the object, or a list made of parts."""
    number, inner = next(((n, v) for n, _, v in _read(data) if n != _ID), (0, b""))
    if number == _IDENT:
        return _text(inner, 1) in names
    if number == _SELECT:
        return _holds(next(v for n, _, v in _read(inner) if n == 1), names)
    below = [v for n, _, v in _read(inner) if n == 3] if number == _CALL else []
    if number == _CALL and _text(inner, 2) == _INDEX:
        return _holds(below[0], names)
    return number == _CALL and _text(inner, 2) == _PLUS and any(_holds(one, names) for one in below)


def _is(data: bytes, number: int) -> bool:
    return any(n == number for n, _, _ in _read(data))


def _read(data: bytes) -> Iterator[tuple[int, int, Any]]:
    return read_fields(data, "Expr")


def _joined(parts: Fields) -> bytes:
    out = bytearray()
    for number, wire, value in parts:
        out += _varint(number << 3 | wire)
        if wire == VARINT:
            out += _varint(value)
        else:
            out += (_varint(len(value)) if wire == LENGTH_DELIMITED else b"") + value
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _edited(data: bytes, parts: dict[int, Any]) -> bytes:
    return _joined([(n, w, parts[n](v) if n in parts and w == LENGTH_DELIMITED else v) for n, w, v in _read(data)])


def _text(data: bytes, number: int) -> str:
    return next((v.decode() for n, _, v in _read(data) if n == number), "")
