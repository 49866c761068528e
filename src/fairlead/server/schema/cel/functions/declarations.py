"""The functions that rules may call, with their exact types: what rules are checked by. A capital is any type.

`library` has the functions themselves. They run on whatever comes, for the engine hands them plain values.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from fairlead.server.schema.cel.functions.named_formats import FORMATS

_QUANTITY, _SEMVER, _URL, _FORMAT = (f"kubernetes.{name}" for name in ("Quantity", "Semver", "URL", "NamedFormat"))
_IP, _CIDR = "net.IP", "net.CIDR"
_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = (*_NUMBERS, "bool", "string", "bytes", "timestamp", "duration")
_SHOWN: Final = (*_ORDERED, _IP, _CIDR)
Signature = tuple[str, str, str]  # what it is called on (or ""), arguments, result


def _on(*targets: str, given: tuple[str, ...] = ("",), result: str = "") -> list[Signature]:
    """Called on each of these, with each of these arguments; the result is what it is called on unless told."""
    return [(target, arguments, result or target) for target in targets for arguments in given]


def _of(*given: str, result: str) -> list[Signature]:
    return [("", arguments, result) for arguments in given]


def _lists(*elements: str, inner: bool = False, result: str = "") -> list[Signature]:
    """Called on lists of each of these: the result is an element, or as told."""
    return [(f"list({one})", "", one if inner else result or f"list({one})") for one in elements]


def _pairs(result: str) -> list[Signature]:
    return [(one, one, result) for one in (_QUANTITY, _SEMVER)]


_SOUGHT: Final = [("list(A)", "A", "int"), *_on("string", given=("string", "string, int"), result="int")]
_COMPARED: Final = [
    *[("", f"{one}, {one}", "bool") for one in _ORDERED],
    *[("", f"{one}, {other}", "bool") for one in _NUMBERS for other in _NUMBERS if one != other],
]
# These stand in place of the engine's own, which knows fewer types of arguments.
_INSTEAD: Final = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _COMPARED),
    "string": _of(*_SHOWN, result="string"),
}
_FUNCTIONS: Final[dict[str, list[Signature]]] = {
    **_INSTEAD,
    # Lists
    **dict.fromkeys(("distinct", "reverse"), _on("list(A)")),
    **dict.fromkeys(("min", "max"), _lists(*_ORDERED, inner=True)),
    "flatten": [("list(list(A))", "", "list(A)"), ("list(dyn)", "int", "list(dyn)")],
    "isSorted": _lists(*_ORDERED, result="bool"),
    "lists.range": _of("int", result="list(int)"),
    "slice": _on("list(A)", given=("int, int",)),
    "sort": _lists(*_ORDERED),
    "sum": _lists(*_NUMBERS, "duration", inner=True),
    "__order__": [(f"list({key})", "list(A)", "list(A)") for key in _ORDERED],  # sortBy
    **dict.fromkeys(("indexOf", "lastIndexOf"), _SOUGHT),
    **dict.fromkeys(
        ("sets.contains", "sets.equivalent", "sets.intersects"), _of("list(A), list(A)", result="bool")
    ),
    # Texts
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), _on("string")),
    "charAt": _on("string", given=("int",)),
    "find": _on("string", given=("string",)),
    "findAll": _on("string", given=("string", "string, int"), result="list(string)"),
    "format": _on("string", given=("list(dyn)",)),
    "join": _on("list(string)", given=("", "string"), result="string"),
    "replace": _on("string", given=("string, string", "string, string, int")),
    "split": _on("string", given=("string", "string, int"), result="list(string)"),
    "strings.quote": _of("string", result="string"),
    "substring": _on("string", given=("int", "int, int")),
    # Names
    "format.named": _of("string", result=f"optional_type({_FORMAT})"),
    "validate": _on(_FORMAT, given=("string",), result="optional_type(list(string))"),
    **{f"format.{name}": _of("", result=_FORMAT) for name in FORMATS},
    # Quantities and versions
    "isQuantity": _of("string", result="bool"),
    "quantity": _of("string", result=_QUANTITY),
    "sign": _of(_QUANTITY, result="int"),
    "isInteger": _on(_QUANTITY, result="bool"),
    "asInteger": _on(_QUANTITY, result="int"),
    "asApproximateFloat": _on(_QUANTITY, result="double"),
    **dict.fromkeys(("add", "sub"), _on(_QUANTITY, given=(_QUANTITY, "int"))),
    **dict.fromkeys(("isLessThan", "isGreaterThan"), _pairs("bool")),
    "compareTo": _pairs("int"),
    "isSemver": _of("string", "string, bool", result="bool"),
    "semver": _of("string", "string, bool", result=_SEMVER),
    **dict.fromkeys(("major", "minor", "patch"), _on(_SEMVER, result="int")),
    # Addresses
    "isURL": _of("string", result="bool"),
    "url": _of("string", result=_URL),
    **dict.fromkeys(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"), _on(_URL, result="string")),
    "getQuery": _on(_URL, result="map(string, list(string))"),
    **dict.fromkeys(("isIP", "isCIDR", "ip.isCanonical"), _of("string", result="bool")),
    "ip": [("", "string", _IP), (_CIDR, "", _IP)],
    "family": _on(_IP, result="int"),
    **dict.fromkeys(
        ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        _on(_IP, result="bool"),
    ),
    "cidr": _of("string", result=_CIDR),
    "containsIP": _on(_CIDR, given=("string", _IP), result="bool"),
    "containsCIDR": _on(_CIDR, given=("string", _CIDR), result="bool"),
    "masked": _on(_CIDR),
    "prefixLength": _on(_CIDR, result="int"),
}  # fmt: skip


def configuration(variables: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """An environment's configuration, as YAML has it, with variables of these types."""
    return {
        "extensions": [{"name": "two-var-comprehensions"}, {"name": "optional"}],
        "stdlib": {"exclude_functions": [{"name": name} for name in _INSTEAD]},
        "variables": [{"name": name, **_typed(of)} for name, of in variables],
        "functions": _functions(),
    }


@cache
def _functions() -> list[dict[str, Any]]:
    return [
        {"name": name, "overloads": [_overload(f"{name}_{n}", *one) for n, one in enumerate(signatures)]}
        for name, signatures in _FUNCTIONS.items()
    ]


def _overload(label: str, target: str, arguments: str, result: str) -> dict[str, Any]:
    made = {"id": label, "args": [_typed(one) for one in split(arguments)], "return": _typed(result)}
    return {**made, "target": _typed(target)} if target else made


def _typed(text: str) -> dict[str, Any]:
    name, _, inner = text.removesuffix(")").partition("(")
    made: dict[str, Any] = {"type_name": name}
    if inner:
        made["params"] = [_typed(one) for one in split(inner)]
    if len(name) == 1:
        made["is_type_param"] = True
    return made


def split(text: str) -> list[str]:
    """At the commas outside parentheses."""
    parts, depth = [""], 0
    for mark in text:
        depth += (mark == "(") - (mark == ")")
        if mark == "," and not depth:
            parts.append("")
        else:
            parts[-1] += mark
    return [part.strip() for part in parts if part.strip()]
