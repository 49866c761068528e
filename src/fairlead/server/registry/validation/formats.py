"""Checks of single values: names, ports, addresses, paths. A check returns messages that say what is wrong."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.server.registry.validation.rules import Check
from fairlead.server.schema import names

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
IN_PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_ORDINARY_KEY: Final = re.compile(r"[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}")
_CONFIG_KEY_MESSAGE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PERCENT: Final = re.compile(r"[0-9]+%")
_PERCENT_MESSAGE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_VARIABLE: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_LINK_LOCAL_MULTICAST: Final = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))

dns_label: Final[Check] = names.label
dns_1035_label: Final[Check] = names.dns1035
dns_subdomain: Final[Check] = names.subdomain
qualified_name: Final[Check] = names.qualified
label_value: Final[Check] = names.label_value
path_segment: Final[Check] = names.path_segment


def port(value: Any) -> Iterable[str]:
    """Check a port number or port name."""
    return port_name(value) if isinstance(value, str) else port_number(value)


def port_number(value: int) -> Iterable[str]:
    return () if 1 <= value <= 65535 else (IN_PORT_RANGE,)


def port_name(name: str) -> Iterator[str]:
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not re.fullmatch(r"[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search(r"[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name[:1] == "-" or name[-1:] == "-":
        yield "must not begin or end with a hyphen"


def variable_name(name: str) -> Iterable[str]:
    """Check the name of an environment variable."""
    return () if "=" not in name and all(" " <= letter <= "~" for letter in name) else (_VARIABLE,)


def config_key(key: str) -> Iterator[str]:
    """Check a key of a ConfigMap or Secret, which can become a file name."""
    if len(key) > 253:
        yield "must be no more than 253 characters"
    if not _CONFIG_KEY.fullmatch(key):
        yield _CONFIG_KEY_MESSAGE
    elif key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def are_ordinary_config_keys(keys: Iterable[str]) -> bool:
    """Return whether all keys are certainly valid for `config_key`: a fast test for the common case."""
    return all(map(_ORDINARY_KEY.fullmatch, keys))


def group_version(group_version_text: str) -> Iterable[str]:
    return (f"unexpected GroupVersion string: {group_version_text}",) if group_version_text.count("/") > 1 else ()


def count_or_percent(value: Any) -> Iterable[str]:
    """Check a number that is not negative, or a percentage of at most 100%."""
    if not isinstance(value, str):
        return () if value is None or value >= 0 else (NOT_NEGATIVE,)
    if not _PERCENT.fullmatch(value):
        return (_PERCENT_MESSAGE,)
    return ("must not be greater than 100%",) if int(value[:-1]) > 100 else ()


def parse_address(text: str) -> IPAddress | None:
    """Return the IP address in a text, or None. An address with a zone such as %eth0 is not valid."""
    try:
        return ipaddress.ip_address(text.replace("%", " "))
    except ValueError:
        return None


def strip_leading_zeros(text: str) -> str:
    """Return an IPv4 address without leading zeros in its numbers."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", text) if "." in text else text


def ip_address(text: str) -> Iterable[str]:
    """Check an IP address. Texts that some parsers read differently, such as 010.0.0.1, are errors."""
    stripped = text if ":" in text else strip_leading_zeros(text)
    address = parse_address(stripped)
    if address is None:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if stripped != text:
        return ("must not have leading 0s",)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


def canonical_ip_address(text: str) -> Iterable[str]:
    """Check an IP address in its canonical form: lower case, and without zeros that can be omitted."""
    canonical = str(parse_address(text))
    return ip_address(text) or (() if canonical == text else (f'must be in canonical form ("{canonical}")',))


def endpoint_address(text: str, address: IPAddress) -> Iterator[str]:
    """Check that other hosts can reach an address: it is not loopback, link-local or unspecified."""
    if address.is_unspecified:
        yield f"may not be unspecified ({text})"
    if address.is_loopback:
        yield "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if address.is_link_local:
        yield "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    if any(address in multicast for multicast in _LINK_LOCAL_MULTICAST if multicast.version == address.version):
        yield "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"


def cidr(text: str) -> Iterable[str]:
    """Check an address range in CIDR notation."""
    try:
        if "/" not in text:
            return (_CIDR,)
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return (_CIDR,)
    is_canonical = str(network.network_address) == str(ipaddress.ip_address(text.partition("/")[0]))
    return () if is_canonical else ("must not have bits set beyond the prefix length",)


def file_mode(bits: int) -> Iterable[str]:
    return () if 0 <= bits <= 0o777 else ("must be a number between 0 and 0777 (octal), both inclusive",)


def absolute_path(path: str) -> Iterable[str]:
    return () if path.startswith("/") else ("must be an absolute path",)


def path_without_parents(path: str) -> Iterable[str]:
    return ("must not contain '..'",) if ".." in path.split("/") else ()


def relative_path(path: str) -> Iterator[str]:
    """Check that a path is relative and has no `..` element."""
    if path.startswith("/"):
        yield "must be a relative path"
    yield from path_without_parents(path)


def volume_file_path(path: str) -> Iterator[str]:
    """Check the path of a file in a volume. The kubelet reserves names that start with two dots."""
    yield from relative_path(path)
    if path.startswith("..") and path != ".." and not path.startswith("../"):
        yield "must not start with '..'"
