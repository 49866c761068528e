"""What the functions of rules cost besides their arguments, and how large their results are."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.server.schema.cel.costs.sizes import CHARACTER, LIST, MOST, PATTERN, Size, add, part, times
from fairlead.server.schema.cel.syntax_tree import Call, Expression, Literal

if TYPE_CHECKING:
    from fairlead.server.schema.cel.costs.estimate import Estimate

TEXTS: Final = ("string", "bytes")
_NAME_FORMAT: Final = 128 * PATTERN  # of the longest format of names
_LONGEST_FORMAT: Final = 64
Estimated = tuple[int, Size | None]


class Given(NamedTuple):
    """A call that a function of its own estimates."""

    call: Call
    overload: str
    on: Size | None  # what it is called on
    sizes: list[Size]
    estimate: "Estimate"


Own = Callable[[Given], Estimated | None]


def _fixed(of: Given) -> Estimated:
    return 1, None


def _parsed(factor: float = CHARACTER) -> Own:
    """Its argument is gone through."""
    return lambda of: (part(of.sizes[0].most, factor), None) if of.sizes else None


def _kept(of: Given) -> Estimated | None:
    """What it is called on is gone through, and is as large afterwards."""
    return (part(of.on.most, CHARACTER), of.on) if of.on is not None else None


def _compared(of: Given) -> Estimated | None:
    """Each item of a list is looked at, or each character of a text."""
    if of.on is None or of.call.target is None:
        return None
    element = of.estimate.element(of.call.target)
    if element is None:
        return part(of.on.most, CHARACTER), None
    each = 1 + (part(element[1].most, CHARACTER) if element[0].kind in TEXTS else 0)
    return times(of.on.most, add(each)), None


def _replaced(of: Given) -> Estimated | None:
    if of.on is None or len(of.sizes) < 2:
        return None
    on, old, new = of.on, *of.sizes[:2]
    if old.least == 0:  # between all characters
        most = add(times(add(on.most, 1), new.most), on.most)
    elif new.most <= old.least:
        most = on.most
    else:
        most = times(math.ceil(float(on.most) / float(old.least)), new.most)
    if old.most == 0:
        least = add(times(add(on.least, 1), new.least), on.least)
    elif old.most <= new.least:
        least = on.least
    else:
        least = times(math.ceil(float(on.least) / float(old.most)), new.least)
    return part(on.most, 2 * CHARACTER), Size(least, most)


def _split(of: Given) -> Estimated | None:
    if of.on is None:
        return None
    limit = of.call.arguments[1] if len(of.sizes) > 1 else None
    most = limit.value % 2**64 if isinstance(limit, Literal) and limit.type == "int" else of.on.most
    return part(of.on.most, 2 * CHARACTER), Size(0, most)


def _joining(of: Given) -> Estimated | None:
    if of.on is None or of.call.target is None:
        return None
    element = of.estimate.element(of.call.target)
    least, most = (times(of.on[n], element[1][n]) if element is not None else 0 for n in (0, 1))
    if of.sizes:
        least = add(least, times(of.sizes[0].least, max(0, of.on.least - 1)))
        most = add(most, times(of.sizes[0].most, max(0, of.on.most - 1)))
    return part(most, CHARACTER), Size(least, most)


def _searched(of: Given) -> Estimated | None:
    """A regular expression on a text."""
    if of.on is None or not of.sizes:
        return None
    found = times(part(add(of.on.most, 1), CHARACTER), part(of.sizes[0].most, PATTERN))
    return found, None if of.call.function == "matches" else Size(0, of.on.most)


def _contains(of: Given) -> Estimated | None:
    if of.on is None or len(of.sizes) != 1:
        return None
    return times(part(of.on.most, CHARACTER), part(of.sizes[0].most, CHARACTER)), None


def _address(besides: int) -> Own:
    """Two addresses of up to 16 bytes are compared; one that is a text is read first."""

    def estimate(of: Given) -> Estimated | None:
        argument = of.call.arguments[0]
        text = of.estimate.types[argument].kind == "string"
        return add(4 + besides, part(of.sizes[0].most, CHARACTER) if text else 0), None

    return estimate


def _equal(of: Given) -> Estimated | None:
    kinds = {of.estimate.types[argument].kind for argument in of.call.arguments}
    if kinds & {"ip", "cidr", "quantity", "semver"}:
        return 1, None
    if "format" in kinds:
        return part(_LONGEST_FORMAT, CHARACTER), None
    if kinds == {"url"}:
        known = of.estimate.known(of.call.arguments[1])
        return part(known.most if known is not None else 1, CHARACTER), None
    return None


def _sets(factor: int) -> Own:
    return lambda of: (add(1, times(times(of.sizes[0].most, of.sizes[1].most), factor)), None)


def _made(factor: float, size: Size) -> Estimated:
    """A list of this size, each item at so much."""
    return add(part(size.most, factor), 1, LIST), size


def _squared(of: Given, size: Size | None, factor: float) -> Estimated | None:
    if size is None:
        return None
    return _made(factor, Size(times(size.least, size.least), times(size.most, size.most)))


def _sorted(of: Given) -> Estimated | None:
    """Each item is compared with each other, or each key."""
    by = of.call.arguments[0] if of.call.arguments else of.call.target
    if by is None:
        return None
    element = of.estimate.types[by].element
    text = element is None or element.kind in (*TEXTS, "dyn")
    return _squared(of, of.sizes[0] if of.sizes else of.on, 2.0 + (CHARACTER if text else 0))


def _whole(one: Expression, otherwise: int) -> int:
    return max(0, one.value) if isinstance(one, Literal) and one.type == "int" else otherwise


def _sliced(of: Given) -> Estimated | None:
    if of.on is None:
        return None
    start, end = of.call.arguments
    count = (_whole(end, of.on.most) - _whole(start, 0)) % 2**64
    return _made(1, Size(count, count))


def _ranged(of: Given) -> Estimated | None:
    count = _whole(of.call.arguments[0], MOST)
    return _made(1, Size(count, count))


def _flat(of: Given) -> Estimated | None:
    depth = _whole(of.call.arguments[0], MOST) if of.call.arguments else 1
    return _made(float(depth), of.on) if of.on is not None else None


def _converted(of: Given) -> Estimated | None:
    """Texts and bytes: up to four bytes are a character."""
    if not of.overload:
        return None
    given = of.sizes[0]
    size = Size(given.least // 4, given.most) if of.overload == "bytes" else Size(given.least, given.most * 4 % 2**64)
    return part(given.most, CHARACTER), size


def _quoted(of: Given) -> Estimated | None:
    given = of.sizes[0]
    return part(given.most, CHARACTER), Size((given.least + 2) % 2**64, (given.most * 2 + 2) % 2**64)


def _validated(of: Given) -> Estimated | None:
    return part(part(of.sizes[0].most, CHARACTER), _NAME_FORMAT), None


FUNCTIONS: Final[dict[str, Own]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compared),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _kept),
    **dict.fromkeys(("find", "findAll", "matches"), _searched),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _parsed()),
    **dict.fromkeys(("startsWith", "endsWith"), _parsed()),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets(1)),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), _sorted),
    **dict.fromkeys(("string", "bytes"), _converted),
    "sets.equivalent": _sets(2),
    "url": lambda of: (part(of.sizes[0].most, CHARACTER), of.sizes[0]),
    "ip.isCanonical": _parsed(2 * CHARACTER),
    "replace": _replaced,
    "split": _split,
    "join": _joining,
    "contains": _contains,
    "containsIP": _address(0),
    "containsCIDR": _address(3),
    "validate": _validated,
    "_==_": _equal,
    "slice": _sliced,
    "lists.range": _ranged,
    "reverse": lambda of: _made(1, of.on) if of.on is not None else None,
    "flatten": _flat,
    "distinct": lambda of: _squared(of, of.on, 2.0),
    "format": lambda of: (part(of.on.most, CHARACTER), None) if of.on is not None else None,
    "strings.quote": _quoted,
}
