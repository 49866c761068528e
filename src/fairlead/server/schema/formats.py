"""The string formats of custom resource schemas. The checks are as lenient or odd as a real server's."""

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Final
from urllib.parse import urlsplit

from fairlead.server.schema import times

# `re` compiles and caches the patterns on first use. Compiling all of them at import would slow down every start.
_UUID: Final = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_LETTERS: Final = r"a-zA-Z0-9$+<=>^`|~\u0080-\U0010ffff"  # Letters and symbols of any script.
_HOSTNAME: Final = (
    rf"[{_LETTERS}](-?[{_LETTERS}]{{0,62}})?"
    rf"|([{_LETTERS}]([{_LETTERS}-]{{0,61}}[{_LETTERS}])?\.)+[a-zA-Z\u0080-\U0010ffff]{{2,63}}"
)
_CARD: Final = (
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
    r"|(2131|1800|35\d{3})\d{11}"
)
_MAILBOX: Final = r"[^\s@<>(),:;\"\[\]\\]+@[^\s@<>(),:;\"\[\]\\]+"
_EMAIL: Final = (
    rf"{_MAILBOX}|(?:[^<>@,:;]*|\"[^\"]*\"\s*)<\s*{_MAILBOX}\s*>"  # An address alone, or <address> after a name.
)
_BYTE: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_COLOR: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_CLOCK: Final = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})"
_NUMBER_AND_UNIT: Final = r"(\d+)\s*([A-Za-zµ]+)"
_UNITS: Final = (
    (("ns", "nano"), 1), (("us", "µs", "micro"), 10**3), (("ms", "milli"), 10**6), (("s", "sec"), 10**9),
    (("m", "min"), 60 * 10**9), (("h", "hr", "hour"), 3600 * 10**9), (("d", "day"), 86_400 * 10**9),
    (("w", "wk", "week"), 7 * 86_400 * 10**9),
)  # fmt: skip
_NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def enforced_format(types: tuple[str, ...], name: str) -> str:
    """Return the format name if the server enforces the format for these types, else ""."""
    if types in ((), ("string",)):
        return name if is_known(name) else ""
    if types == ("integer",):
        return name if name in ("int32", "int64") else ""
    if types == ("number",):
        return name if name in ("float", "double") else ""
    return ""


def is_known(name: str) -> bool:
    """Return whether the server knows this string format."""
    return name.replace("-", "") in _FORMATS or name in _KUBERNETES


def is_valid(name: str, text: str) -> bool:
    """Return whether a text has a format. An unknown format accepts every text."""
    check = _KUBERNETES.get(name) or _FORMATS.get(name.replace("-", ""))
    return check is None or check(text)


def _build_pattern_check(pattern: str, flags: int = re.ASCII) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text, flags) is not None


def _build_uuid_check(version: str = "[0-9a-f]", variant: str = "[0-9a-f]") -> Callable[[str], bool]:
    return _build_pattern_check(_UUID % (version, variant), re.IGNORECASE | re.ASCII)


def _is_date(date_text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", date_text, re.ASCII) is not None and bool(date.fromisoformat(date_text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = re.fullmatch(_CLOCK, parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a Go duration such as 1h, or the sum of all parts like "5 days". Raises ValueError."""
    try:
        return times.parse_duration(text)
    except ValueError:
        pass
    lengths = []
    for match in re.finditer(_NUMBER_AND_UNIT, text, re.ASCII):
        unit = match[2].lower()
        for names, size in _UNITS:
            if unit in names or unit.startswith(names[-1]):
                lengths.append(int(match[1]) * size)
    if not lengths:
        raise ValueError(f"unable to parse {text} as duration")
    return sum(lengths)


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    return (
        re.fullmatch(_HOSTNAME, text) is not None
        and len(text.encode()) <= 255
        and all(len(part.encode()) <= 63 for part in labels)
    )


def _is_uri(text: str) -> bool:
    if not text or any(char <= " " or char == "\x7f" for char in text):
        return False
    if text.startswith("/") or text == "*":
        return True
    try:
        url_parts = urlsplit(text)
        _ = url_parts.port
    except ValueError:
        return False
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) is not None


def _is_email(text: str) -> bool:
    return re.fullmatch(_EMAIL, text.strip()) is not None


def _remove_leading_zeros(text: str) -> str:
    """Return an IPv4 address without leading zeros, which do not make its numbers octal here."""
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", text) if "." in text else text


def _parse_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(_remove_leading_zeros(text)) if "%" not in text else None
    except ValueError:
        return None


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    ip = _parse_ip(address)
    if ip is None or not slash or not re.fullmatch(r"[0-9]{1,3}", bits):
        return False
    return int(bits) <= ip.max_prefixlen


def _is_mac_address(text: str) -> bool:
    """Return whether a text is a MAC address of 6, 8 or 20 bytes.

    Bytes are separated by colons or dashes, groups of four digits by dots, or there is no separator.
    """
    for separator, width in ((":", 2), ("-", 2), (".", 4)):
        octets = text.split(separator)
        if len(octets) > 1:
            is_hexadecimal = all(re.fullmatch(rf"[0-9a-fA-F]{{{width}}}", part) for part in octets)
            return is_hexadecimal and len(octets) * width in (12, 16, 40)
    return re.fullmatch(r"[0-9a-fA-F]+", text) is not None and len(text) in (12, 16, 40)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    total = sum((index + 1) * int(digit) for index, digit in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    total = sum((1, 3)[index % 2] * int(digit) for index, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if re.fullmatch(_CARD, digits, re.ASCII) is None:
        return False
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _build_pattern_check("[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and _parse_ip(text) is not None,
    "ipv6": lambda text: ":" in text and _parse_ip(text) is not None,
    "cidr": _is_cidr,
    "mac": _is_mac_address,
    "uuid": _build_uuid_check(),
    "uuid3": _build_uuid_check("3"),
    "uuid4": _build_uuid_check("4", "[89ab]"),
    "uuid5": _build_uuid_check("5", "[89ab]"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _build_pattern_check(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _build_pattern_check("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _build_pattern_check(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"),
    "byte": _build_pattern_check(_BYTE),
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
}  # fmt: skip
_KUBERNETES: Final[dict[str, Callable[[str], bool]]] = {
    "k8s-short-name": lambda text: len(text) <= 63 and re.fullmatch(_NAME, text) is not None,
    "k8s-long-name": lambda text: len(text) <= 253 and re.fullmatch(rf"{_NAME}(\.{_NAME})*", text) is not None,
}
