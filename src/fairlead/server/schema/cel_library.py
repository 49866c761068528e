"""The functions that Kubernetes adds to CEL: lists, sets, regular expressions, URLs, addresses and quantities.

Values of the types that CEL itself does not have (quantity, url, ip, cidr) are maps with one tagged entry: the engine
passes those through. Raising ValueError makes an evaluation error with that text.
"""

import ipaddress
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from cel_expr_python import cel

from fairlead.server.schema import quantity
from fairlead.server.schema.cel_work import EXCEEDED, LIMIT
from fairlead.server.schema.validation import compiled

_T = cel.Type
_OPAQUE = _T.Map(_T.STRING, _T.DYN)
_LIST = _T.List(_T.DYN)
_LARGEST = 2**63


def functions() -> list[Any]:
    """Declarations with their implementations, for an environment."""
    return [
        cel.FunctionDecl(name, [_overload(name, i, *one) for i, one in enumerate(many)])
        for name, many in _TABLE.items()
    ]


def _overload(name: str, index: int, member: bool, result: Any, parameters: list[Any], impl: Any) -> Any:
    label = f"fairlead_{name.replace('.', '_')}_{index}"
    return cel.Overload(label, return_type=result, parameters=parameters, is_member=member, impl=impl)


def _quantity(text: str) -> dict[str, Any]:
    value, form = quantity.parse(text)
    return {"quantity": str(value), "form": form}


def _amount(one: Any) -> Decimal:
    return Decimal(one["quantity"]) if isinstance(one, dict) else Decimal(one)


def _is(parse: Any) -> Any:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _plus(sign: int) -> Any:
    def add(one: Any, other: Any) -> dict[str, Any]:
        return {"quantity": str(_amount(one) + sign * _amount(other)), "form": one["form"]}

    return add


def _whole(one: Any) -> bool:
    value = _amount(one)
    return value == value.to_integral_value() and -_LARGEST <= value < _LARGEST


def _as_integer(one: Any) -> int:
    if not _whole(one):
        raise ValueError("cannot convert value to integer")
    return int(_amount(one))


def _compare(one: Any, other: Any) -> int:
    a, b = _amount(one), _amount(other)
    return (a > b) - (a < b)


def _url(text: str) -> dict[str, Any]:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": {error}') from None
    if not (text.startswith("/") or (parts.scheme and ":" in text)):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return {"url": text}


def _parts(one: Any) -> SplitResult:
    return urlsplit(str(one["url"]))


def _ip(text: str) -> dict[str, Any]:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f'IP Address "{text}" parse error during conversion from string') from None
    if "%" in text or (address.version == 6 and "." in text):
        raise ValueError(f'IP Address "{text}" parse error during conversion from string')
    return {"ip": text}


def _address(one: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(one["ip"] if isinstance(one, dict) else _ip(one)["ip"])


def _cidr(text: str) -> dict[str, Any]:
    try:
        if "/" not in text:
            raise ValueError
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f'network address parse error during conversion from string: "{text}"') from None
    return {"cidr": text}


def _network(one: Any) -> Any:
    return ipaddress.ip_network(one["cidr"] if isinstance(one, dict) else _cidr(one)["cidr"], strict=False)


def _contains_ip(one: Any, other: Any) -> bool:
    return _address(other) in _network(one)


def _contains_cidr(one: Any, other: Any) -> bool:
    outer, inner = _network(one), _network(other)
    return outer.version == inner.version and bool(inner.subnet_of(outer))


def _least(pick: Any, name: str) -> Any:
    def find(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return pick(items)

    return find


def _index(last: bool) -> Any:
    def find(items: list[Any], wanted: Any) -> int:
        places = [i for i, item in enumerate(items) if item == wanted]
        return -1 if not places else places[-1] if last else places[0]

    return find


def _find(text: str, pattern: str) -> str:
    match = compiled(pattern).search(text)
    return match.group(0) if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group(0) for match in compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _subset(outer: list[Any], inner: list[Any]) -> bool:
    _bounded(outer, inner)
    return all(item in outer for item in inner)


def _bounded(one: list[Any], other: list[Any]) -> None:
    """Each item of one is looked for in the other."""
    if len(one) * len(other) > LIMIT:
        raise ValueError(EXCEEDED)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    _bounded(one, other)
    return any(item in other for item in one)


_TABLE: dict[str, list[tuple[bool, Any, list[Any], Any]]] = {
    "isSorted": [(True, _T.BOOL, [_LIST], lambda items: all(a <= b for a, b in pairwise(items)))],
    "sum": [(True, _T.DYN, [_LIST], sum)],
    "min": [(True, _T.DYN, [_LIST], _least(min, "min"))],
    "max": [(True, _T.DYN, [_LIST], _least(max, "max"))],
    "indexOf": [(True, _T.INT, [_LIST, kind], _index(False)) for kind in (_T.STRING, _T.INT, _T.DOUBLE, _T.BOOL)],
    "lastIndexOf": [(True, _T.INT, [_LIST, kind], _index(True)) for kind in (_T.STRING, _T.INT, _T.DOUBLE, _T.BOOL)],
    "sets.contains": [(False, _T.BOOL, [_LIST, _LIST], _subset)],
    "sets.equivalent": [(False, _T.BOOL, [_LIST, _LIST], lambda a, b: _subset(a, b) and _subset(b, a))],
    "sets.intersects": [(False, _T.BOOL, [_LIST, _LIST], _intersects)],
    "find": [(True, _T.STRING, [_T.STRING, _T.STRING], _find)],
    "findAll": [
        (True, _T.List(_T.STRING), [_T.STRING, _T.STRING], _find_all),
        (True, _T.List(_T.STRING), [_T.STRING, _T.STRING, _T.INT], _find_all),
    ],
    "isQuantity": [(False, _T.BOOL, [_T.STRING], _is(_quantity))],
    "quantity": [(False, _OPAQUE, [_T.STRING], _quantity)],
    "sign": [(True, _T.INT, [_OPAQUE], lambda one: _compare(one, 0))],
    "isInteger": [(True, _T.BOOL, [_OPAQUE], _whole)],
    "asInteger": [(True, _T.INT, [_OPAQUE], _as_integer)],
    "asApproximateFloat": [(True, _T.DOUBLE, [_OPAQUE], lambda one: float(_amount(one)))],
    "add": [(True, _OPAQUE, [_OPAQUE, kind], _plus(1)) for kind in (_OPAQUE, _T.INT)],
    "sub": [(True, _OPAQUE, [_OPAQUE, kind], _plus(-1)) for kind in (_OPAQUE, _T.INT)],
    "isLessThan": [(True, _T.BOOL, [_OPAQUE, _OPAQUE], lambda a, b: _compare(a, b) < 0)],
    "isGreaterThan": [(True, _T.BOOL, [_OPAQUE, _OPAQUE], lambda a, b: _compare(a, b) > 0)],
    "compareTo": [(True, _T.INT, [_OPAQUE, _OPAQUE], _compare)],
    "isURL": [(False, _T.BOOL, [_T.STRING], _is(_url))],
    "url": [(False, _OPAQUE, [_T.STRING], _url)],
    "getScheme": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).scheme)],
    "getHost": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).netloc.rpartition("@")[2])],
    "getHostname": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).hostname or "")],
    "getPort": [(True, _T.STRING, [_OPAQUE], lambda one: str(_parts(one).port or ""))],
    "getEscapedPath": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).path)],
    "getQuery": [(True, _T.Map(_T.STRING, _T.List(_T.STRING)), [_OPAQUE], lambda one: parse_qs(_parts(one).query))],
    "isIP": [(False, _T.BOOL, [_T.STRING], _is(_ip))],
    "ip": [(False, _OPAQUE, [_T.STRING], _ip)],
    "family": [(True, _T.INT, [_OPAQUE], lambda one: _address(one).version)],
    "isUnspecified": [(True, _T.BOOL, [_OPAQUE], lambda one: _address(one).is_unspecified)],
    "isLoopback": [(True, _T.BOOL, [_OPAQUE], lambda one: _address(one).is_loopback)],
    "isLinkLocalUnicast": [(True, _T.BOOL, [_OPAQUE], lambda one: _address(one).is_link_local)],
    "isCIDR": [(False, _T.BOOL, [_T.STRING], _is(_cidr))],
    "cidr": [(False, _OPAQUE, [_T.STRING], _cidr)],
    "containsIP": [(True, _T.BOOL, [_OPAQUE, kind], _contains_ip) for kind in (_T.STRING, _OPAQUE)],
    "containsCIDR": [(True, _T.BOOL, [_OPAQUE, kind], _contains_cidr) for kind in (_T.STRING, _OPAQUE)],
    "prefixLength": [(True, _T.INT, [_OPAQUE], lambda one: _network(one).prefixlen)],
}
