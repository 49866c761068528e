"""The functions that Kubernetes adds to CEL: lists, sets, regular expressions, URLs, addresses, quantities, versions.

A value of a type that CEL does not have (quantity, url, ip, cidr, semver, format) is a map with one entry, whose key
names the type. The engine passes such maps through. A function that raises ValueError fails the evaluation with that
message.
"""

import ipaddress
from decimal import Context, Decimal
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from cel_expr_python import cel

from fairlead.server.golang import query_string
from fairlead.server.schema import quantity, semver
from fairlead.server.schema.cel import invalid_values
from fairlead.server.schema.cel.costs.runtime import METER, TRANSFER_FACTOR, list_building_work
from fairlead.server.schema.cel.functions import ordering, strings, urls
from fairlead.server.schema.cel.functions.named_formats import FORMATS, validate_format
from fairlead.server.schema.cel.values import to_engine
from fairlead.server.schema.patterns import compile_pattern

_T = cel.Type
_OPAQUE = _T.Map(_T.STRING, _T.DYN)
_LIST = _T.List(_T.DYN)
_STRINGS = _T.List(_T.STRING)
_MAP = _T.Map(_T.DYN, _T.DYN)
_ANY_TYPE: list[Any] = [
    _T.INT, _T.UINT, _T.DOUBLE, _T.BOOL, _T.STRING, _T.BYTES, _T.DURATION, _T.TIMESTAMP, _LIST, _MAP
]  # fmt: skip
_LARGEST = 2**63
_EXACT = Context(prec=1000)  # More digits than a quantity can have.


def functions() -> list[Any]:
    """Return the declarations of all functions with their implementations, for an engine environment."""
    return [
        cel.FunctionDecl(name, [_build_overload(name, i, *overload) for i, overload in enumerate(overloads)])
        for name, overloads in {**_FUNCTIONS, **invalid_values.functions(_T)}.items()
    ]


def _build_overload(name: str, index: int, is_member: bool, result: Any, parameters: list[Any], impl: Any) -> Any:
    overload_id = f"fairlead_{name.replace('.', '_')}_{index}"
    return cel.Overload(overload_id, return_type=result, parameters=parameters, is_member=is_member, impl=_meter(impl))


def _meter(impl: Any) -> Any:
    """Return `impl` wrapped so that METER counts the work of passing values between Python and the engine."""

    def call(*arguments: Any) -> Any:
        METER.spend(1 + sum(map(_count_transfer_work, arguments)))
        result = impl(*arguments)
        METER.spend(_count_transfer_work(result))
        if isinstance(result, list):
            METER.spend(list_building_work(len(result)))  # A loop may iterate over it.
        if isinstance(result, int) and not -_LARGEST <= result < _LARGEST:
            raise ValueError("integer overflow")
        return to_engine(result)

    return call


def _count_transfer_work(value: Any) -> int:
    if isinstance(value, list | dict):
        return TRANSFER_FACTOR * len(value)
    return len(value) if isinstance(value, str | bytes) else 0


def _parse_quantity(text: str) -> dict[str, Any]:
    return {"quantity": _normalize(quantity.parse(text)[0])}


def _normalize(value: Decimal) -> str:
    """Return the same text for equal amounts, so that the engine treats them as equal."""
    return f"{value.normalize(_EXACT):f}"


def _get_amount(value: Any) -> Decimal:
    return Decimal(value["quantity"]) if isinstance(value, dict) else Decimal(value)


def _build_predicate(parse: Any) -> Any:
    """Return a function that returns whether `parse` accepts a text."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _add_quantities(sign: int) -> Any:
    def add(a: Any, b: Any) -> dict[str, Any]:
        return {"quantity": _normalize(_EXACT.add(_get_amount(a), sign * _get_amount(b)))}

    return add


def _is_integer(value: Any) -> bool:
    amount = _get_amount(value)
    return amount == amount.to_integral_value() and -_LARGEST <= amount < _LARGEST


def _as_integer(value: Any) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return int(_get_amount(value))


def _compare_quantities(a: Any, b: Any) -> int:
    amount_a, amount_b = _get_amount(a), _get_amount(b)
    return (amount_a > amount_b) - (amount_a < amount_b)


def _parse_url(text: str) -> dict[str, Any]:
    if error := urls.url_error(text):
        raise ValueError(f"URL parse error during conversion from string: {error}")
    return {"url": text}


def _split_url(url: Any) -> SplitResult:
    return urlsplit(str(url["url"]))


_PATH_SAFE = "/%$&+,:;=@!'()*"


def _parse_ip(text: str) -> dict[str, Any]:
    try:
        address = ipaddress.ip_address(text)
        if "%" in text or (address.version == 6 and "." in text):
            raise ValueError
    except ValueError:
        error = f'ParseAddr("{text}"): unable to parse IP'
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: {error}') from None
    return {"ip": str(address)}


def _is_canonical(text: str) -> bool:
    return bool(_parse_ip(text)["ip"] == text)


def _is_global_unicast(ip: Any) -> bool:
    """Return whether Go's IsGlobalUnicast is true for an address, which includes private addresses."""
    address = _get_address(ip)
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _is_link_local_multicast(ip: Any) -> bool:
    address = _get_address(ip)
    return address in _LINK_LOCAL_MULTICAST[address.version]


_LINK_LOCAL_MULTICAST: dict[int, Any] = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _get_address(ip: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(ip["ip"] if isinstance(ip, dict) else _parse_ip(ip)["ip"])


def _parse_cidr(text: str) -> dict[str, Any]:
    address, slash, bits = text.partition("/")
    try:
        if not slash:
            raise ValueError("no '/'")
        if not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
            raise ValueError(f'bad bits after slash: "{bits}"')
        ipaddress.ip_network(f"{_parse_ip(address)['ip']}/{bits}", strict=False)
    except ValueError as error:
        prefix = "network address parse error during conversion from string"
        raise ValueError(f'{prefix}: {prefix}: netip.ParsePrefix("{text}"): {error}') from None
    return {"cidr": f"{_parse_ip(address)['ip']}/{bits}"}


def _format_address(value: Any) -> str:
    return str(value.get("ip") or value["cidr"])


def _get_network(cidr: Any) -> Any:
    return ipaddress.ip_network(cidr["cidr"] if isinstance(cidr, dict) else _parse_cidr(cidr)["cidr"], strict=False)


def _contains_ip(cidr: Any, ip: Any) -> bool:
    return _get_address(ip) in _get_network(cidr)


def _contains_cidr(outer: Any, inner: Any) -> bool:
    outer_network, inner_network = _get_network(outer), _get_network(inner)
    return outer_network.version == inner_network.version and bool(inner_network.subnet_of(outer_network))


def _insert_entries(entries: dict[Any, Any], new: dict[Any, Any]) -> dict[Any, Any]:
    """Return a map with the entries of `new` added. The macros that build maps call this function in each iteration."""
    for key in new:
        if key in entries:
            raise ValueError(f"insert failed: key {strings.to_text(key)} already exists")
    return {**entries, **new}


def _build_index_of(finds_last: bool) -> Any:
    def find(items: list[Any], value: Any) -> int:
        indices = [i for i, item in enumerate(items) if item == value]
        return -1 if not indices else indices[-1] if finds_last else indices[0]

    return find


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match.group(0) if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = [match.group(0) for match in compile_pattern(pattern).finditer(text)]
    return matches if limit < 0 else matches[:limit]


def _contains_all(outer: list[Any], inner: list[Any]) -> bool:
    _count_comparisons(outer, inner)
    return all(item in outer for item in inner)


def _count_comparisons(a: list[Any], b: list[Any]) -> None:
    """Add the work of comparing each item of one list with each item of the other to METER."""
    METER.spend(len(a) * len(b))


def _intersects(a: list[Any], b: list[Any]) -> bool:
    _count_comparisons(a, b)
    return any(item in b for item in a)


def _find_slice_error(start: int, end: int, length: int) -> str:
    if start < 0 or end < 0:
        return "negative indexes not supported"
    if start > end:
        return "start index must be less than or equal to end index"
    return f"list is length {length}" if end > length else ""


def _slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    if error := _find_slice_error(start, end, len(items)):
        raise ValueError(f"cannot slice({start}, {end}), {error}")
    return items[start:end]


def _remove_duplicates(items: list[Any]) -> list[Any]:
    _count_comparisons(items, items)
    distinct: list[Any] = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
    return distinct


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    result: list[Any] = []
    for item in items:
        result += _flatten(item, depth - 1) if isinstance(item, list) and depth > 0 else [item]
    return result


def _build_range(end: int) -> list[int]:
    METER.spend(TRANSFER_FACTOR * max(0, end))
    return list(range(end))


def _parse_semver(text: str, is_lenient: bool = False) -> dict[str, Any]:
    text = semver.normalize(text) if is_lenient else text
    semver.parse(text)
    return {"semver": text.partition("+")[0]}  # Equality ignores build metadata.


def _is_semver(text: str, is_lenient: bool = False) -> bool:
    return bool(_build_predicate(lambda version: _parse_semver(version, is_lenient))(text))


def _build_version_getter(index: int) -> Any:
    return lambda version: semver.parse(version["semver"])[index]


def _compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 for two quantities or two semantic versions."""
    return semver.compare(a["semver"], b["semver"]) if "semver" in a else _compare_quantities(a, b)


_FUNCTIONS: dict[str, list[tuple[bool, Any, list[Any], Any]]] = {
    "slice": [(True, _LIST, [_LIST, _T.INT, _T.INT], _slice_list)],
    "distinct": [(True, _LIST, [_LIST], _remove_duplicates)],
    "sort": [(True, _LIST, [_LIST], ordering.sort)],
    "reverse": [(True, _LIST, [_LIST], lambda items: items[::-1])],
    "flatten": [(True, _LIST, [_LIST], _flatten), (True, _LIST, [_LIST, _T.INT], _flatten)],
    "lists.range": [(False, _T.List(_T.INT), [_T.INT], _build_range)],
    "isSorted": [(True, _T.BOOL, [_LIST], ordering.is_sorted)],
    "sum": [(True, _T.DYN, [_LIST], ordering.total)],
    "min": [(True, _T.DYN, [_LIST], ordering.minimum)],
    "max": [(True, _T.DYN, [_LIST], ordering.maximum)],
    "indexOf": [
        *((True, _T.INT, [_LIST, kind], _build_index_of(False)) for kind in _ANY_TYPE),
        (True, _T.INT, [_T.STRING, _T.STRING], strings.index_of),
        (True, _T.INT, [_T.STRING, _T.STRING, _T.INT], strings.index_of),
    ],
    "lastIndexOf": [
        *((True, _T.INT, [_LIST, kind], _build_index_of(True)) for kind in _ANY_TYPE),
        (True, _T.INT, [_T.STRING, _T.STRING], strings.last_index_of),
        (True, _T.INT, [_T.STRING, _T.STRING, _T.INT], strings.last_index_of),
    ],
    "sets.contains": [(False, _T.BOOL, [_LIST, _LIST], _contains_all)],
    "sets.equivalent": [(False, _T.BOOL, [_LIST, _LIST], lambda a, b: _contains_all(a, b) and _contains_all(b, a))],
    "sets.intersects": [(False, _T.BOOL, [_LIST, _LIST], _intersects)],
    "charAt": [(True, _T.STRING, [_T.STRING, _T.INT], strings.char_at)],
    "join": [(True, _T.STRING, parameters, strings.join) for parameters in ([_STRINGS], [_STRINGS, _T.STRING])],
    "lowerAscii": [(True, _T.STRING, [_T.STRING], strings.ascii_only(str.lower))],
    "upperAscii": [(True, _T.STRING, [_T.STRING], strings.ascii_only(str.upper))],
    "replace": [(True, _T.STRING, [_T.STRING] * 3 + extra, strings.replace) for extra in ([], [_T.INT])],
    "split": [(True, _STRINGS, [_T.STRING] * 2 + extra, strings.split) for extra in ([], [_T.INT])],
    "substring": [(True, _T.STRING, [_T.STRING, _T.INT, *extra], strings.substring) for extra in ([], [_T.INT])],
    "trim": [(True, _T.STRING, [_T.STRING], str.strip)],
    "format": [(True, _T.STRING, [_T.STRING, _LIST], strings.format_text)],
    "strings.quote": [(False, _T.STRING, [_T.STRING], strings.quote)],
    "cel.kmapInsert": [
        (False, _MAP, [_MAP, _T.DYN, _T.DYN], lambda entries, key, value: _insert_entries(entries, {key: value})),
        (False, _MAP, [_MAP, _MAP], _insert_entries),
    ],
    "__order__": [(True, _LIST, [_LIST, _LIST], ordering.sort_by_keys)],
    "format.__named__": [(False, _OPAQUE, [_T.STRING], lambda name: {"format": name} if name in FORMATS else {})],
    "__validate__": [
        (True, _STRINGS, [_OPAQUE, _T.STRING], lambda value, text: validate_format(value["format"], text))
    ],
    **{f"format.{name}": [(False, _OPAQUE, [], lambda name=name: {"format": name})] for name in FORMATS},
    "find": [(True, _T.STRING, [_T.STRING, _T.STRING], _find)],
    "findAll": [
        (True, _T.List(_T.STRING), [_T.STRING, _T.STRING], _find_all),
        (True, _T.List(_T.STRING), [_T.STRING, _T.STRING, _T.INT], _find_all),
    ],
    "isQuantity": [(False, _T.BOOL, [_T.STRING], _build_predicate(_parse_quantity))],
    "quantity": [(False, _OPAQUE, [_T.STRING], _parse_quantity)],
    "sign": [(False, _T.INT, [_OPAQUE], lambda value: _compare_quantities(value, 0))],
    "isInteger": [(True, _T.BOOL, [_OPAQUE], _is_integer)],
    "asInteger": [(True, _T.INT, [_OPAQUE], _as_integer)],
    "asApproximateFloat": [(True, _T.DOUBLE, [_OPAQUE], lambda value: float(_get_amount(value)))],
    "add": [(True, _OPAQUE, [_OPAQUE, kind], _add_quantities(1)) for kind in (_OPAQUE, _T.INT)],
    "sub": [(True, _OPAQUE, [_OPAQUE, kind], _add_quantities(-1)) for kind in (_OPAQUE, _T.INT)],
    "isLessThan": [(True, _T.BOOL, [_OPAQUE, _OPAQUE], lambda a, b: _compare(a, b) < 0)],
    "isGreaterThan": [(True, _T.BOOL, [_OPAQUE, _OPAQUE], lambda a, b: _compare(a, b) > 0)],
    "compareTo": [(True, _T.INT, [_OPAQUE, _OPAQUE], _compare)],
    "isSemver": [(False, _T.BOOL, parameters, _is_semver) for parameters in ([_T.STRING], [_T.STRING, _T.BOOL])],
    "semver": [(False, _OPAQUE, parameters, _parse_semver) for parameters in ([_T.STRING], [_T.STRING, _T.BOOL])],
    "major": [(True, _T.INT, [_OPAQUE], _build_version_getter(0))],
    "minor": [(True, _T.INT, [_OPAQUE], _build_version_getter(1))],
    "patch": [(True, _T.INT, [_OPAQUE], _build_version_getter(2))],
    "isURL": [(False, _T.BOOL, [_T.STRING], _build_predicate(_parse_url))],
    "url": [(False, _OPAQUE, [_T.STRING], _parse_url)],
    "getScheme": [(True, _T.STRING, [_OPAQUE], lambda value: _split_url(value).scheme)],
    "getHost": [(True, _T.STRING, [_OPAQUE], lambda value: _split_url(value).netloc.rpartition("@")[2])],
    "getHostname": [(True, _T.STRING, [_OPAQUE], lambda value: _split_url(value).hostname or "")],
    "getPort": [(True, _T.STRING, [_OPAQUE], lambda value: str(_split_url(value).port or ""))],
    "getEscapedPath": [(True, _T.STRING, [_OPAQUE], lambda value: quote(_split_url(value).path, safe=_PATH_SAFE))],
    "getQuery": [
        (
            True,
            _T.Map(_T.STRING, _T.List(_T.STRING)),
            [_OPAQUE],
            lambda value: query_string.parse(_split_url(value).query),
        )
    ],
    "isIP": [(False, _T.BOOL, [_T.STRING], _build_predicate(_parse_ip))],
    "ip": [
        (False, _OPAQUE, [_T.STRING], _parse_ip),
        (True, _OPAQUE, [_OPAQUE], lambda value: {"ip": value["cidr"].partition("/")[0]}),
    ],
    "ip.isCanonical": [(False, _T.BOOL, [_T.STRING], _is_canonical)],
    "string": [(False, _T.STRING, [_OPAQUE], _format_address)],
    "isGlobalUnicast": [(True, _T.BOOL, [_OPAQUE], _is_global_unicast)],
    "isLinkLocalMulticast": [(True, _T.BOOL, [_OPAQUE], _is_link_local_multicast)],
    "family": [(True, _T.INT, [_OPAQUE], lambda value: _get_address(value).version)],
    "isUnspecified": [(True, _T.BOOL, [_OPAQUE], lambda value: _get_address(value).is_unspecified)],
    "isLoopback": [(True, _T.BOOL, [_OPAQUE], lambda value: _get_address(value).is_loopback)],
    "isLinkLocalUnicast": [(True, _T.BOOL, [_OPAQUE], lambda value: _get_address(value).is_link_local)],
    "isCIDR": [(False, _T.BOOL, [_T.STRING], _build_predicate(_parse_cidr))],
    "cidr": [(False, _OPAQUE, [_T.STRING], _parse_cidr)],
    "containsIP": [(True, _T.BOOL, [_OPAQUE, kind], _contains_ip) for kind in (_T.STRING, _OPAQUE)],
    "containsCIDR": [(True, _T.BOOL, [_OPAQUE, kind], _contains_cidr) for kind in (_T.STRING, _OPAQUE)],
    "masked": [(True, _OPAQUE, [_OPAQUE], lambda value: {"cidr": str(_get_network(value))})],
    "prefixLength": [(True, _T.INT, [_OPAQUE], lambda value: _get_network(value).prefixlen)],
}
