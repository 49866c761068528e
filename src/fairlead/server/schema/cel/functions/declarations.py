"""The type declarations of the functions that rules may call. A capital letter is a type parameter.

`library` has the implementations. They are untyped, because the engine passes them plain values.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from fairlead.server.schema.cel.functions.named_formats import FORMATS

_QUANTITY, _SEMVER, _URL, _FORMAT = (f"kubernetes.{name}" for name in ("Quantity", "Semver", "URL", "NamedFormat"))
_IP, _CIDR = "net.IP", "net.CIDR"
_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = (*_NUMBERS, "bool", "string", "bytes", "timestamp", "duration")
_STRING_ARGUMENTS: Final = (*_ORDERED, _IP, _CIDR)
Signature = tuple[str, str, str]  # The type of the receiver (or ""), of the arguments, and of the result.


def _method(*receivers: str, args: tuple[str, ...] = ("",), result: str = "") -> list[Signature]:
    """Return the signatures of a method. If `result` is "", the method returns the type of its receiver."""
    return [(receiver, arguments, result or receiver) for receiver in receivers for arguments in args]


def _function(*args: str, result: str) -> list[Signature]:
    return [("", arguments, result) for arguments in args]


def _list_method(*elements: str, returns_element: bool = False, result: str = "") -> list[Signature]:
    """Return the signatures of a list method. If `result` is "", the method returns the list, or an element."""
    return [
        (f"list({element})", "", element if returns_element else result or f"list({element})") for element in elements
    ]


def _comparison(result: str) -> list[Signature]:
    return [(compared, compared, result) for compared in (_QUANTITY, _SEMVER)]


_INDEX_OF: Final = [("list(A)", "A", "int"), *_method("string", args=("string", "string, int"), result="int")]
_LESS_THAN: Final = [
    *[("", f"{ordered}, {ordered}", "bool") for ordered in _ORDERED],
    *[("", f"{a}, {b}", "bool") for a in _NUMBERS for b in _NUMBERS if a != b],
]
# These replace the engine's declarations, which have fewer argument types.
_REPLACED: Final = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _LESS_THAN),
    "string": _function(*_STRING_ARGUMENTS, result="string"),
}
_FUNCTIONS: Final[dict[str, list[Signature]]] = {
    **_REPLACED,
    # Lists
    **dict.fromkeys(("distinct", "reverse"), _method("list(A)")),
    **dict.fromkeys(("min", "max"), _list_method(*_ORDERED, returns_element=True)),
    "flatten": [("list(list(A))", "", "list(A)"), ("list(dyn)", "int", "list(dyn)")],
    "isSorted": _list_method(*_ORDERED, result="bool"),
    "lists.range": _function("int", result="list(int)"),
    "slice": _method("list(A)", args=("int, int",)),
    "sort": _list_method(*_ORDERED),
    "sum": _list_method(*_NUMBERS, "duration", returns_element=True),
    "__order__": [(f"list({key})", "list(A)", "list(A)") for key in _ORDERED],  # sortBy
    **dict.fromkeys(("indexOf", "lastIndexOf"), _INDEX_OF),
    **dict.fromkeys(
        ("sets.contains", "sets.equivalent", "sets.intersects"), _function("list(A), list(A)", result="bool")
    ),
    # Strings
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), _method("string")),
    "charAt": _method("string", args=("int",)),
    "find": _method("string", args=("string",)),
    "findAll": _method("string", args=("string", "string, int"), result="list(string)"),
    "format": _method("string", args=("list(dyn)",)),
    "join": _method("list(string)", args=("", "string"), result="string"),
    "replace": _method("string", args=("string, string", "string, string, int")),
    "split": _method("string", args=("string", "string, int"), result="list(string)"),
    "strings.quote": _function("string", result="string"),
    "substring": _method("string", args=("int", "int, int")),
    # Named formats
    "format.named": _function("string", result=f"optional_type({_FORMAT})"),
    "validate": _method(_FORMAT, args=("string",), result="optional_type(list(string))"),
    **{f"format.{name}": _function("", result=_FORMAT) for name in FORMATS},
    # Quantities and versions
    "isQuantity": _function("string", result="bool"),
    "quantity": _function("string", result=_QUANTITY),
    "sign": _function(_QUANTITY, result="int"),
    "isInteger": _method(_QUANTITY, result="bool"),
    "asInteger": _method(_QUANTITY, result="int"),
    "asApproximateFloat": _method(_QUANTITY, result="double"),
    **dict.fromkeys(("add", "sub"), _method(_QUANTITY, args=(_QUANTITY, "int"))),
    **dict.fromkeys(("isLessThan", "isGreaterThan"), _comparison("bool")),
    "compareTo": _comparison("int"),
    "isSemver": _function("string", "string, bool", result="bool"),
    "semver": _function("string", "string, bool", result=_SEMVER),
    **dict.fromkeys(("major", "minor", "patch"), _method(_SEMVER, result="int")),
    # Addresses
    "isURL": _function("string", result="bool"),
    "url": _function("string", result=_URL),
    **dict.fromkeys(
        ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"),
        _method(_URL, result="string"),
    ),
    "getQuery": _method(_URL, result="map(string, list(string))"),
    **dict.fromkeys(("isIP", "isCIDR", "ip.isCanonical"), _function("string", result="bool")),
    "ip": [("", "string", _IP), (_CIDR, "", _IP)],
    "family": _method(_IP, result="int"),
    **dict.fromkeys(
        ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        _method(_IP, result="bool"),
    ),
    "cidr": _function("string", result=_CIDR),
    "containsIP": _method(_CIDR, args=("string", _IP), result="bool"),
    "containsCIDR": _method(_CIDR, args=("string", _CIDR), result="bool"),
    "masked": _method(_CIDR),
    "prefixLength": _method(_CIDR, result="int"),
}  # fmt: skip


def configuration(variables: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the configuration of an engine environment with variables of these types."""
    return {
        "extensions": [{"name": "two-var-comprehensions"}, {"name": "optional"}],
        "stdlib": {"exclude_functions": [{"name": name} for name in _REPLACED]},
        "variables": [{"name": name, **_parse_type(type_name)} for name, type_name in variables],
        "functions": _functions(),
    }


@cache
def _functions() -> list[dict[str, Any]]:
    return [
        {"name": name, "overloads": [_overload(f"{name}_{n}", *signature) for n, signature in enumerate(signatures)]}
        for name, signatures in _FUNCTIONS.items()
    ]


def _overload(overload_id: str, receiver: str, arguments: str, result: str) -> dict[str, Any]:
    types = [_parse_type(argument) for argument in split_arguments(arguments)]
    overload = {"id": overload_id, "args": types, "return": _parse_type(result)}
    return {**overload, "target": _parse_type(receiver)} if receiver else overload


def _parse_type(text: str) -> dict[str, Any]:
    name, _, parameters = text.removesuffix(")").partition("(")
    parsed: dict[str, Any] = {"type_name": name}
    if parameters:
        parsed["params"] = [_parse_type(parameter) for parameter in split_arguments(parameters)]
    if len(name) == 1:
        parsed["is_type_param"] = True
    return parsed


def split_arguments(text: str) -> list[str]:
    """Split a list of types at the commas outside parentheses."""
    arguments, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += character
    return [part.strip() for part in arguments if part.strip()]
