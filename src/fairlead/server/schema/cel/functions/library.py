"""The functions that Kubernetes adds to CEL: lists, sets, regular expressions, URLs, addresses, quantities, versions.

Values of the types that CEL itself does not have (quantity, url, ip, cidr) are maps with one tagged entry: the engine
passes those through. Raising ValueError makes an evaluation error with that text.
"""

import ipaddress
from decimal import Context, Decimal
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from cel_expr_python import cel

from fairlead.server.golang import query_string
from fairlead.server.schema import quantity, semver
from fairlead.server.schema.cel import invalid_values
from fairlead.server.schema.cel.costs.runtime import HANDED_OVER, METER, copied
from fairlead.server.schema.cel.functions import ordering, strings, urls
from fairlead.server.schema.cel.functions.named_formats import FORMATS, problems
from fairlead.server.schema.cel.values import handed_over
from fairlead.server.schema.patterns import compile_pattern

_T = cel.Type
_OPAQUE = _T.Map(_T.STRING, _T.DYN)
_LIST = _T.List(_T.DYN)
_TEXTS = _T.List(_T.STRING)
_MAP = _T.Map(_T.DYN, _T.DYN)
_ANY: list[Any] = [
    _T.INT, _T.UINT, _T.DOUBLE, _T.BOOL, _T.STRING, _T.BYTES, _T.DURATION, _T.TIMESTAMP, _LIST, _MAP
]  # fmt: skip
_LARGEST = 2**63
_EXACT = Context(prec=1000)  # more than a quantity has digits


def functions() -> list[Any]:
    """Declarations with their implementations, for an environment."""
    return [
        cel.FunctionDecl(name, [_overload(name, i, *one) for i, one in enumerate(many)])
        for name, many in {**_TABLE, **invalid_values.functions(_T)}.items()
    ]


def _overload(name: str, index: int, member: bool, result: Any, parameters: list[Any], impl: Any) -> Any:
    label = f"fairlead_{name.replace('.', '_')}_{index}"
    return cel.Overload(label, return_type=result, parameters=parameters, is_member=member, impl=_metered(impl))


def _metered(impl: Any) -> Any:
    """A function whose arguments and result are counted: each is handed over from one world to the other."""

    def call(*given: Any) -> Any:
        METER.spend(1 + sum(map(_handed_over, given)))
        made = impl(*given)
        METER.spend(_handed_over(made))
        if isinstance(made, list):
            METER.spend(copied(len(made)))  # it may be gone through
        if isinstance(made, int) and not -_LARGEST <= made < _LARGEST:
            raise ValueError("integer overflow")
        return handed_over(made)

    return call


def _handed_over(value: Any) -> int:
    if isinstance(value, list | dict):
        return HANDED_OVER * len(value)
    return len(value) if isinstance(value, str | bytes) else 0


def _quantity(text: str) -> dict[str, Any]:
    return {"quantity": _plain(quantity.parse(text)[0])}


def _plain(value: Decimal) -> str:
    """One text for one amount, so that the engine finds equal what is."""
    return f"{value.normalize(_EXACT):f}"


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
        return {"quantity": _plain(_EXACT.add(_amount(one), sign * _amount(other)))}

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
    if told := urls.refusal(text):
        raise ValueError(f"URL parse error during conversion from string: {told}")
    return {"url": text}


def _parts(one: Any) -> SplitResult:
    return urlsplit(str(one["url"]))


_PATH_SAFE = "/%$&+,:;=@!'()*"


def _ip(text: str) -> dict[str, Any]:
    try:
        address = ipaddress.ip_address(text)
        if "%" in text or (address.version == 6 and "." in text):
            raise ValueError
    except ValueError:
        told = f'ParseAddr("{text}"): unable to parse IP'
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: {told}') from None
    return {"ip": str(address)}


def _canonical(text: str) -> bool:
    return bool(_ip(text)["ip"] == text)


def _global_unicast(one: Any) -> bool:
    """As Go has it: private addresses too."""
    address = _address(one)
    beyond = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not beyond and str(address) != "255.255.255.255"


def _link_local_multicast(one: Any) -> bool:
    address = _address(one)
    return address in _LINK_LOCAL[address.version]


_LINK_LOCAL: dict[int, Any] = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _address(one: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(one["ip"] if isinstance(one, dict) else _ip(one)["ip"])


def _cidr(text: str) -> dict[str, Any]:
    address, slash, bits = text.partition("/")
    try:
        if not slash:
            raise ValueError("no '/'")
        if not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
            raise ValueError(f'bad bits after slash: "{bits}"')
        ipaddress.ip_network(f"{_ip(address)['ip']}/{bits}", strict=False)
    except ValueError as error:
        begun = "network address parse error during conversion from string"
        raise ValueError(f'{begun}: {begun}: netip.ParsePrefix("{text}"): {error}') from None
    return {"cidr": f"{_ip(address)['ip']}/{bits}"}


def _shown(one: Any) -> str:
    return str(one.get("ip") or one["cidr"])


def _network(one: Any) -> Any:
    return ipaddress.ip_network(one["cidr"] if isinstance(one, dict) else _cidr(one)["cidr"], strict=False)


def _contains_ip(one: Any, other: Any) -> bool:
    return _address(other) in _network(one)


def _contains_cidr(one: Any, other: Any) -> bool:
    outer, inner = _network(one), _network(other)
    return outer.version == inner.version and bool(inner.subnet_of(outer))


def _inserted(held: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    """A map with another's entries: a step of a loop that makes one."""
    for key in more:
        if key in held:
            raise ValueError(f"insert failed: key {strings.shown(key)} already exists")
    return {**held, **more}


def _index(last: bool) -> Any:
    def find(items: list[Any], wanted: Any) -> int:
        places = [i for i, item in enumerate(items) if item == wanted]
        return -1 if not places else places[-1] if last else places[0]

    return find


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match.group(0) if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group(0) for match in compile_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _subset(outer: list[Any], inner: list[Any]) -> bool:
    _bounded(outer, inner)
    return all(item in outer for item in inner)


def _bounded(one: list[Any], other: list[Any]) -> None:
    """Each item of one is looked for in the other."""
    METER.spend(len(one) * len(other))


def _intersects(one: list[Any], other: list[Any]) -> bool:
    _bounded(one, other)
    return any(item in other for item in one)


def _outside(start: int, end: int, length: int) -> str:
    if start < 0 or end < 0:
        return "negative indexes not supported"
    if start > end:
        return "start index must be less than or equal to end index"
    return f"list is length {length}" if end > length else ""


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if wrong := _outside(start, end, len(items)):
        raise ValueError(f"cannot slice({start}, {end}), {wrong}")
    return items[start:end]


def _distinct(items: list[Any]) -> list[Any]:
    _bounded(items, items)
    made: list[Any] = []
    for item in items:
        if item not in made:
            made.append(item)
    return made


def _flat(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    made: list[Any] = []
    for item in items:
        made += _flat(item, depth - 1) if isinstance(item, list) and depth > 0 else [item]
    return made


def _range(end: int) -> list[int]:
    METER.spend(HANDED_OVER * max(0, end))
    return list(range(end))


def _version(text: str, normal: bool = False) -> dict[str, Any]:
    text = semver.normalize(text) if normal else text
    semver.parse(text)
    return {"semver": text.partition("+")[0]}  # what it was built as makes no difference


def _is_version(text: str, normal: bool = False) -> bool:
    return bool(_is(lambda one: _version(one, normal))(text))


def _number(index: int) -> Any:
    return lambda one: semver.parse(one["semver"])[index]


def _order(one: Any, other: Any) -> int:
    """Two quantities or two versions."""
    return semver.compare(one["semver"], other["semver"]) if "semver" in one else _compare(one, other)


_TABLE: dict[str, list[tuple[bool, Any, list[Any], Any]]] = {
    "slice": [(True, _LIST, [_LIST, _T.INT, _T.INT], _slice)],
    "distinct": [(True, _LIST, [_LIST], _distinct)],
    "sort": [(True, _LIST, [_LIST], ordering.in_order)],
    "reverse": [(True, _LIST, [_LIST], lambda items: items[::-1])],
    "flatten": [(True, _LIST, [_LIST], _flat), (True, _LIST, [_LIST, _T.INT], _flat)],
    "lists.range": [(False, _T.List(_T.INT), [_T.INT], _range)],
    "isSorted": [(True, _T.BOOL, [_LIST], ordering.is_sorted)],
    "sum": [(True, _T.DYN, [_LIST], ordering.total)],
    "min": [(True, _T.DYN, [_LIST], ordering.least)],
    "max": [(True, _T.DYN, [_LIST], ordering.most)],
    "indexOf": [
        *((True, _T.INT, [_LIST, kind], _index(False)) for kind in _ANY),
        (True, _T.INT, [_T.STRING, _T.STRING], strings.index_of),
        (True, _T.INT, [_T.STRING, _T.STRING, _T.INT], strings.index_of),
    ],
    "lastIndexOf": [
        *((True, _T.INT, [_LIST, kind], _index(True)) for kind in _ANY),
        (True, _T.INT, [_T.STRING, _T.STRING], strings.last_index_of),
        (True, _T.INT, [_T.STRING, _T.STRING, _T.INT], strings.last_index_of),
    ],
    "sets.contains": [(False, _T.BOOL, [_LIST, _LIST], _subset)],
    "sets.equivalent": [(False, _T.BOOL, [_LIST, _LIST], lambda a, b: _subset(a, b) and _subset(b, a))],
    "sets.intersects": [(False, _T.BOOL, [_LIST, _LIST], _intersects)],
    "charAt": [(True, _T.STRING, [_T.STRING, _T.INT], strings.char_at)],
    "join": [(True, _T.STRING, given, strings.join) for given in ([_TEXTS], [_TEXTS, _T.STRING])],
    "lowerAscii": [(True, _T.STRING, [_T.STRING], strings.ascii_only(str.lower))],
    "upperAscii": [(True, _T.STRING, [_T.STRING], strings.ascii_only(str.upper))],
    "replace": [(True, _T.STRING, [_T.STRING] * 3 + more, strings.replace) for more in ([], [_T.INT])],
    "split": [(True, _TEXTS, [_T.STRING] * 2 + more, strings.split) for more in ([], [_T.INT])],
    "substring": [(True, _T.STRING, [_T.STRING, _T.INT, *more], strings.substring) for more in ([], [_T.INT])],
    "trim": [(True, _T.STRING, [_T.STRING], str.strip)],
    "format": [(True, _T.STRING, [_T.STRING, _LIST], strings.formatted)],
    "strings.quote": [(False, _T.STRING, [_T.STRING], strings.quote)],
    "cel.kmapInsert": [
        (False, _MAP, [_MAP, _T.DYN, _T.DYN], lambda held, key, value: _inserted(held, {key: value})),
        (False, _MAP, [_MAP, _MAP], _inserted),
    ],
    "__order__": [(True, _LIST, [_LIST, _LIST], ordering.by_keys)],
    "format.__named__": [(False, _OPAQUE, [_T.STRING], lambda name: {"format": name} if name in FORMATS else {})],
    "__validate__": [(True, _TEXTS, [_OPAQUE, _T.STRING], lambda one, text: problems(one["format"], text))],
    **{f"format.{name}": [(False, _OPAQUE, [], lambda name=name: {"format": name})] for name in FORMATS},
    "find": [(True, _T.STRING, [_T.STRING, _T.STRING], _find)],
    "findAll": [
        (True, _T.List(_T.STRING), [_T.STRING, _T.STRING], _find_all),
        (True, _T.List(_T.STRING), [_T.STRING, _T.STRING, _T.INT], _find_all),
    ],
    "isQuantity": [(False, _T.BOOL, [_T.STRING], _is(_quantity))],
    "quantity": [(False, _OPAQUE, [_T.STRING], _quantity)],
    "sign": [(False, _T.INT, [_OPAQUE], lambda one: _compare(one, 0))],
    "isInteger": [(True, _T.BOOL, [_OPAQUE], _whole)],
    "asInteger": [(True, _T.INT, [_OPAQUE], _as_integer)],
    "asApproximateFloat": [(True, _T.DOUBLE, [_OPAQUE], lambda one: float(_amount(one)))],
    "add": [(True, _OPAQUE, [_OPAQUE, kind], _plus(1)) for kind in (_OPAQUE, _T.INT)],
    "sub": [(True, _OPAQUE, [_OPAQUE, kind], _plus(-1)) for kind in (_OPAQUE, _T.INT)],
    "isLessThan": [(True, _T.BOOL, [_OPAQUE, _OPAQUE], lambda a, b: _order(a, b) < 0)],
    "isGreaterThan": [(True, _T.BOOL, [_OPAQUE, _OPAQUE], lambda a, b: _order(a, b) > 0)],
    "compareTo": [(True, _T.INT, [_OPAQUE, _OPAQUE], _order)],
    "isSemver": [(False, _T.BOOL, given, _is_version) for given in ([_T.STRING], [_T.STRING, _T.BOOL])],
    "semver": [(False, _OPAQUE, given, _version) for given in ([_T.STRING], [_T.STRING, _T.BOOL])],
    "major": [(True, _T.INT, [_OPAQUE], _number(0))],
    "minor": [(True, _T.INT, [_OPAQUE], _number(1))],
    "patch": [(True, _T.INT, [_OPAQUE], _number(2))],
    "isURL": [(False, _T.BOOL, [_T.STRING], _is(_url))],
    "url": [(False, _OPAQUE, [_T.STRING], _url)],
    "getScheme": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).scheme)],
    "getHost": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).netloc.rpartition("@")[2])],
    "getHostname": [(True, _T.STRING, [_OPAQUE], lambda one: _parts(one).hostname or "")],
    "getPort": [(True, _T.STRING, [_OPAQUE], lambda one: str(_parts(one).port or ""))],
    "getEscapedPath": [(True, _T.STRING, [_OPAQUE], lambda one: quote(_parts(one).path, safe=_PATH_SAFE))],
    "getQuery": [
        (True, _T.Map(_T.STRING, _T.List(_T.STRING)), [_OPAQUE], lambda one: query_string.parse(_parts(one).query))
    ],
    "isIP": [(False, _T.BOOL, [_T.STRING], _is(_ip))],
    "ip": [
        (False, _OPAQUE, [_T.STRING], _ip),
        (True, _OPAQUE, [_OPAQUE], lambda one: {"ip": one["cidr"].partition("/")[0]}),
    ],
    "ip.isCanonical": [(False, _T.BOOL, [_T.STRING], _canonical)],
    "string": [(False, _T.STRING, [_OPAQUE], _shown)],
    "isGlobalUnicast": [(True, _T.BOOL, [_OPAQUE], _global_unicast)],
    "isLinkLocalMulticast": [(True, _T.BOOL, [_OPAQUE], _link_local_multicast)],
    "family": [(True, _T.INT, [_OPAQUE], lambda one: _address(one).version)],
    "isUnspecified": [(True, _T.BOOL, [_OPAQUE], lambda one: _address(one).is_unspecified)],
    "isLoopback": [(True, _T.BOOL, [_OPAQUE], lambda one: _address(one).is_loopback)],
    "isLinkLocalUnicast": [(True, _T.BOOL, [_OPAQUE], lambda one: _address(one).is_link_local)],
    "isCIDR": [(False, _T.BOOL, [_T.STRING], _is(_cidr))],
    "cidr": [(False, _OPAQUE, [_T.STRING], _cidr)],
    "containsIP": [(True, _T.BOOL, [_OPAQUE, kind], _contains_ip) for kind in (_T.STRING, _OPAQUE)],
    "containsCIDR": [(True, _T.BOOL, [_OPAQUE, kind], _contains_cidr) for kind in (_T.STRING, _OPAQUE)],
    "masked": [(True, _OPAQUE, [_OPAQUE], lambda one: {"cidr": str(_network(one))})],
    "prefixLength": [(True, _T.INT, [_OPAQUE], lambda one: _network(one).prefixlen)],
}
