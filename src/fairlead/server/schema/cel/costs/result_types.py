"""Which type a call in a rule answers, as far as costs depend on it: what is a scalar, a text, a list, a map."""

from typing import Final

from fairlead.server.schema.cel.types import BOOL, DOUBLE, DYN, INT, Type

_STRING: Final = Type("string")
_STRINGS: Final = Type("list", element=_STRING)
_QUANTITY, _FORMAT, _IP, _CIDR = (Type(kind) for kind in ("quantity", "format", "ip", "cidr"))
_SAME: Final = ("sort", "@sortByAssociatedKeys", "reverse", "distinct", "slice", "or")  # what they are called on
_ARITHMETIC: Final = ("_+_", "_-_", "_*_", "_/_", "_%_", "-_")
_ANSWERS: Final[dict[str, Type]] = {
    **dict.fromkeys(
        (
            "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "_&&_", "_||_", "!_", "@not_strictly_false",
            "contains", "startsWith", "endsWith", "matches", "isSorted", "isURL", "isIP", "isCIDR", "isQuantity",
            "isSemver", "hasValue", "isInteger", "isGreaterThan", "isLessThan", "containsIP", "containsCIDR",
            "sets.contains", "sets.equivalent", "sets.intersects", "ip.isCanonical", "isUnspecified", "isLoopback",
            "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "bool",
        ),
        BOOL,
    ),
    **dict.fromkeys(
        (
            "size", "int", "indexOf", "lastIndexOf", "sign", "asInteger", "compareTo", "prefixLength", "family",
            "major", "minor", "patch", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate",
            "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds",
        ),
        INT,
    ),
    **dict.fromkeys(
        (
            "string", "lowerAscii", "upperAscii", "substring", "trim", "replace", "join", "format", "charAt", "find",
            "strings.quote", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath",
        ),
        _STRING,
    ),
    **dict.fromkeys(("double", "asApproximateFloat"), DOUBLE),
    **dict.fromkeys(("split", "findAll"), _STRINGS),
    **dict.fromkeys(("quantity", "add", "sub"), _QUANTITY),
    **dict.fromkeys(("cidr", "masked"), _CIDR),
    "uint": Type("uint"),
    "bytes": Type("bytes"),
    "timestamp": Type("timestamp"),
    "duration": Type("duration"),
    "type": Type("type"),
    "dyn": DYN,
    "url": Type("url"),
    "semver": Type("semver"),
    "ip": _IP,
    "getQuery": Type("map", element=_STRINGS),
    "validate": Type("optional", element=_STRINGS),
    "format.named": Type("optional", element=_FORMAT),
    "lists.range": Type("list", element=INT),
    "optional.none": Type("optional", element=DYN),
}  # fmt: skip


def answered(function: str, target: Type | None, given: list[Type]) -> Type:
    """The type of a call's result; `dyn` where it is not known."""
    if function in _ANSWERS:
        return _ANSWERS[function]
    if function in _SAME and target is not None:
        return target
    if function in _ARITHMETIC:
        return _told(given)
    if function == "_?_:_":
        return _told(given[1:])
    if function.startswith("format."):
        return _FORMAT
    if function in ("optional.of", "optional.ofNonZeroValue"):
        return Type("optional", element=given[0])
    if function == "cel.@mapInsert":
        return Type("map", element=given[2]) if len(given) == 3 else given[1]
    return _inside(function, target if target is not None else given[0] if given else DYN, given)


def _inside(function: str, whole: Type, given: list[Type]) -> Type:
    """The type of a part of something."""
    element = whole.element or DYN
    if function in ("min", "max", "sum", "value"):
        return element
    if function == "orValue":
        return _told([element, *given])
    if function == "flatten":
        return element if element.kind == "list" else whole
    if function in ("_[_]", "_[?_]"):
        if whole.kind == "optional":
            return Type("optional", element=element.element or DYN)
        return Type("optional", element=element) if function == "_[?_]" else element
    return DYN


def selected(operand: Type, field: str, *, optional: bool = False) -> Type:
    """The type of a field, or of one that may not be there."""
    if optional and operand.kind != "optional":
        return Type("optional", element=selected(operand, field))
    if operand.kind == "optional":
        return Type("optional", element=selected(operand.element or DYN, field))
    if operand.kind == "map":
        return operand.element or DYN
    return (operand.fields or {}).get(field, DYN)


def _told(types: list[Type]) -> Type:
    """The first that says what it is, and what is in it."""
    said = [one for one in types if one.kind != "dyn"]
    return next((one for one in said if one.element is None or one.element.kind != "dyn"), (said or [DYN])[0])
