"""The result types of function calls in a rule, as far as cost estimates need them: scalar, string, list or map."""

from typing import Final

from fairlead.server.schema.cel.types import BOOL, DOUBLE, DYN, INT, Type

_STRING: Final = Type("string")
_STRINGS: Final = Type("list", element=_STRING)
_QUANTITY, _FORMAT, _IP, _CIDR = (Type(kind) for kind in ("quantity", "format", "ip", "cidr"))
_SAME_AS_RECEIVER: Final = (
    "sort",
    "@sortByAssociatedKeys",
    "reverse",
    "distinct",
    "slice",
    "or",
)  # They return the type of their receiver.
_ARITHMETIC: Final = ("_+_", "_-_", "_*_", "_/_", "_%_", "-_")
_RESULT_TYPES: Final[dict[str, Type]] = {
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


def result_type(function: str, target: Type | None, arguments: list[Type]) -> Type:
    """Return the type of a call's result, or `dyn` if it is not known."""
    if function in _RESULT_TYPES:
        return _RESULT_TYPES[function]
    if function in _SAME_AS_RECEIVER and target is not None:
        return target
    if function in _ARITHMETIC:
        return _find_most_specific(arguments)
    if function == "_?_:_":
        return _find_most_specific(arguments[1:])
    if function.startswith("format."):
        return _FORMAT
    if function in ("optional.of", "optional.ofNonZeroValue"):
        return Type("optional", element=arguments[0])
    if function == "cel.@mapInsert":
        return Type("map", element=arguments[2]) if len(arguments) == 3 else arguments[1]
    return _get_part_type(function, target if target is not None else arguments[0] if arguments else DYN, arguments)


def _get_part_type(function: str, container: Type, arguments: list[Type]) -> Type:
    """Return the result type of a function that returns a part of its receiver or first argument."""
    element = container.element or DYN
    if function in ("min", "max", "sum", "value"):
        return element
    if function == "orValue":
        return _find_most_specific([element, *arguments])
    if function == "flatten":
        return element if element.kind == "list" else container
    if function in ("_[_]", "_[?_]"):
        if container.kind == "optional":
            return Type("optional", element=element.element or DYN)
        return Type("optional", element=element) if function == "_[?_]" else element
    return DYN


def field_type(operand: Type, field: str, *, is_optional: bool = False) -> Type:
    """Return the type of a field of `operand`. It is an optional if `is_optional` is set or `operand` is one."""
    if is_optional and operand.kind != "optional":
        return Type("optional", element=field_type(operand, field))
    if operand.kind == "optional":
        return Type("optional", element=field_type(operand.element or DYN, field))
    if operand.kind == "map":
        return operand.element or DYN
    return (operand.fields or {}).get(field, DYN)


def _find_most_specific(types: list[Type]) -> Type:
    """Return the first type whose element type is known, else the first type that is not `dyn`."""
    known_types = [item for item in types if item.kind != "dyn"]
    exact = (item for item in known_types if item.element is None or item.element.kind != "dyn")
    return next(exact, (known_types or [DYN])[0])
