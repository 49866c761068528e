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


def _declare_method(*receivers: str, args: tuple[str, ...] = ("",), result: str = "") -> list[Signature]:
    """Return the signatures of a method. If `result` is "", the method returns the type of its receiver."""
    return [(receiver, arguments, result or receiver) for receiver in receivers for arguments in args]


def _declare_function(*args: str, result: str) -> list[Signature]:
    return [("", arguments, result) for arguments in args]


def _declare_list_method(*elements: str, returns_element: bool = False, result: str = "") -> list[Signature]:
    """Return the signatures of a list method. If `result` is "", the method returns the list, or an element."""
    return [
        (f"list({element})", "", element if returns_element else result or f"list({element})") for element in elements
    ]


def _declare_comparison(result: str) -> list[Signature]:
    return [(compared, compared, result) for compared in (_QUANTITY, _SEMVER)]


_INDEX_OF: Final = [("list(A)", "A", "int"), *_declare_method("string", args=("string", "string, int"), result="int")]
_LESS_THAN: Final = [
    *[("", f"{ordered}, {ordered}", "bool") for ordered in _ORDERED],
    *[("", f"{a}, {b}", "bool") for a in _NUMBERS for b in _NUMBERS if a != b],
]
# These replace the engine's declarations, which have fewer argument types.
_REPLACED: Final = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _LESS_THAN),
    "string": _declare_function(*_STRING_ARGUMENTS, result="string"),
}
_FUNCTIONS: Final[dict[str, list[Signature]]] = {
    **_REPLACED,
    # Lists
    **dict.fromkeys(("distinct", "reverse"), _declare_method("list(A)")),
    **dict.fromkeys(("min", "max"), _declare_list_method(*_ORDERED, returns_element=True)),
    "flatten": [("list(list(A))", "", "list(A)"), ("list(dyn)", "int", "list(dyn)")],
    "isSorted": _declare_list_method(*_ORDERED, result="bool"),
    "lists.range": _declare_function("int", result="list(int)"),
    "slice": _declare_method("list(A)", args=("int, int",)),
    "sort": _declare_list_method(*_ORDERED),
    "sum": _declare_list_method(*_NUMBERS, "duration", returns_element=True),
    "__order__": [(f"list({key})", "list(A)", "list(A)") for key in _ORDERED],  # sortBy
    **dict.fromkeys(("indexOf", "lastIndexOf"), _INDEX_OF),
    **dict.fromkeys(
        ("sets.contains", "sets.equivalent", "sets.intersects"), _declare_function("list(A), list(A)", result="bool")
    ),
    # Strings
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), _declare_method("string")),
    "charAt": _declare_method("string", args=("int",)),
    "find": _declare_method("string", args=("string",)),
    "findAll": _declare_method("string", args=("string", "string, int"), result="list(string)"),
    "format": _declare_method("string", args=("list(dyn)",)),
    "join": _declare_method("list(string)", args=("", "string"), result="string"),
    "replace": _declare_method("string", args=("string, string", "string, string, int")),
    "split": _declare_method("string", args=("string", "string, int"), result="list(string)"),
    "strings.quote": _declare_function("string", result="string"),
    "substring": _declare_method("string", args=("int", "int, int")),
    # Named formats
    "format.named": _declare_function("string", result=f"optional_type({_FORMAT})"),
    "validate": _declare_method(_FORMAT, args=("string",), result="optional_type(list(string))"),
    **{f"format.{name}": _declare_function("", result=_FORMAT) for name in FORMATS},
    # Quantities and versions
    "isQuantity": _declare_function("string", result="bool"),
    "quantity": _declare_function("string", result=_QUANTITY),
    "sign": _declare_function(_QUANTITY, result="int"),
    "isInteger": _declare_method(_QUANTITY, result="bool"),
    "asInteger": _declare_method(_QUANTITY, result="int"),
    "asApproximateFloat": _declare_method(_QUANTITY, result="double"),
    **dict.fromkeys(("add", "sub"), _declare_method(_QUANTITY, args=(_QUANTITY, "int"))),
    **dict.fromkeys(("isLessThan", "isGreaterThan"), _declare_comparison("bool")),
    "compareTo": _declare_comparison("int"),
    "isSemver": _declare_function("string", "string, bool", result="bool"),
    "semver": _declare_function("string", "string, bool", result=_SEMVER),
    **dict.fromkeys(("major", "minor", "patch"), _declare_method(_SEMVER, result="int")),
    # Addresses
    "isURL": _declare_function("string", result="bool"),
    "url": _declare_function("string", result=_URL),
    **dict.fromkeys(
        ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"),
        _declare_method(_URL, result="string"),
    ),
    "getQuery": _declare_method(_URL, result="map(string, list(string))"),
    **dict.fromkeys(("isIP", "isCIDR", "ip.isCanonical"), _declare_function("string", result="bool")),
    "ip": [("", "string", _IP), (_CIDR, "", _IP)],
    "family": _declare_method(_IP, result="int"),
    **dict.fromkeys(
        ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        _declare_method(_IP, result="bool"),
    ),
    "cidr": _declare_function("string", result=_CIDR),
    "containsIP": _declare_method(_CIDR, args=("string", _IP), result="bool"),
    "containsCIDR": _declare_method(_CIDR, args=("string", _CIDR), result="bool"),
    "masked": _declare_method(_CIDR),
    "prefixLength": _declare_method(_CIDR, result="int"),
}  # fmt: skip


def configuration(variables: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the configuration of an engine environment with variables of these types."""
    return {
        "extensions": [{"name": "two-var-comprehensions"}, {"name": "optional"}],
        "stdlib": {"exclude_functions": [{"name": name} for name in _REPLACED]},
        "variables": [{"name": name, **_parse_type(type_name)} for name, type_name in variables],
        "functions": _build_functions(),
    }


@cache
def _build_functions() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "overloads": [_build_overload(f"{name}_{n}", *signature) for n, signature in enumerate(signatures)],
        }
        for name, signatures in _FUNCTIONS.items()
    ]


def _build_overload(overload_id: str, receiver: str, arguments: str, result: str) -> dict[str, Any]:
    types = [_parse_type(argument) for argument in split_arguments(arguments)]
    overload = {"id": overload_id, "args": types, "return": _parse_type(result)}
    return {**overload, "target": _parse_type(receiver)} if receiver else overload


def _parse_type(type_text: str) -> dict[str, Any]:
    name, _, parameters = type_text.removesuffix(")").partition("(")
    parsed: dict[str, Any] = {"type_name": name}
    if parameters:
        parsed["params"] = [_parse_type(parameter) for parameter in split_arguments(parameters)]
    if len(name) == 1:
        parsed["is_type_param"] = True
    return parsed


def split_arguments(types: str) -> list[str]:
    """Split a list of types at the commas outside parentheses."""
    arguments, depth = [""], 0
    for character in types:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += character
    return [part.strip() for part in arguments if part.strip()]
