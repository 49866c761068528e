"""The words that the checks are made of."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.write import names

Object = dict[str, Any]
CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
IMMUTABLE: Final = "field is immutable"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PLAIN: Final = re.compile(r"[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}")
_KEY_TOLD: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PERCENT: Final = re.compile(r"[0-9]+%")
_PERCENT_TOLD: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
LISTED, UNLISTED = ("In", "NotIn"), ("Exists", "DoesNotExist")


def operands(field: str, operator: str, values: Any) -> list[FieldError]:
    """Of a selector's expression: LISTED operators have values, UNLISTED ones have none."""
    if operator in LISTED and not values:
        return [field_errors.required(field, "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in UNLISTED and values:
        return [field_errors.forbidden(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    return []


def at(obj: Any, path: str) -> Any:
    """What stands at a dotted path, or None."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def unchanged(new: Object, old: Object, *paths: str, told: str = IMMUTABLE) -> list[FieldError]:
    """Fields that may never change."""
    return [field_errors.invalid(path, at(new, path), told) for path in paths if at(new, path) != at(old, path)]


def one_of(field: str, value: Any, allowed: Sequence[str]) -> list[FieldError]:
    return [] if value in allowed else [field_errors.not_supported(field, value or "", allowed)]


def present(obj: Object, path: str, keys: Iterable[str]) -> list[FieldError]:
    """Fields that must not be empty."""
    return [field_errors.required(f"{path}.{key}" if path else key) for key in keys if not obj.get(key)]


def not_negative(field: str, value: int | None) -> list[FieldError]:
    if value is None or value >= 0:
        return []
    return [field_errors.invalid(field, value, "must be greater than or equal to 0")]


def port(field: str, value: Any) -> list[FieldError]:
    """A port's number or name."""
    if isinstance(value, str):
        return [field_errors.invalid(field, value, told) for told in port_name(value)]
    return (
        []
        if 1 <= (value or 0) <= 65535
        else [field_errors.invalid(field, value or 0, "must be between 1 and 65535, inclusive")]
    )


def port_name(name: str) -> list[str]:
    told = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not re.fullmatch(r"[-a-z0-9]+", name):
        told.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        told.append("must contain at least one letter (a-z)")
    if "--" in name:
        told.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        told.append("must not begin or end with a hyphen")
    return told


def label(field: str, value: str) -> list[FieldError]:
    return [field_errors.invalid(field, value, told) for told in names.label(value)]


def subdomain(field: str, value: str) -> list[FieldError]:
    return [field_errors.invalid(field, value, told) for told in names.subdomain(value)]


def qualified(field: str, value: str) -> list[FieldError]:
    return [field_errors.invalid(field, value, told) for told in names.qualified(value)]


def group_version(field: str, text: str) -> list[FieldError]:
    """A version, perhaps of a group: at most one slash."""
    odd = text.count("/") > 1
    return [field_errors.invalid(field, text, f"unexpected GroupVersion string: {text}")] if odd else []


def labels(field: str, value: Object) -> list[FieldError]:
    """A map of labels: keys and values."""
    found: list[FieldError] = []
    for key, text in value.items():
        found += qualified(field, key)
        found += [field_errors.invalid(field, text, told) for told in names.label_value(text)]
    return found


def label_values(field: str, values: list[str]) -> list[FieldError]:
    """Values that labels may have."""
    wrong = [(at, text, told) for at, text in enumerate(values) for told in names.label_value(text)]
    return [field_errors.invalid(f"{field}[{at}]", text, told) for at, text, told in wrong]


def address(field: str, value: str) -> list[FieldError]:
    """An address in a form that is read in one way only."""
    plain = re.sub(r"(?<!\d)0+(?=\d)", "", value) if "." in value and ":" not in value else value
    try:
        parsed = ipaddress.ip_address(plain.replace("%", " "))  # no zone: it means something on one host only
    except ValueError:
        return [field_errors.invalid(field, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if plain != value:
        return [field_errors.invalid(field, value, "must not have leading 0s")]
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return [field_errors.invalid(field, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def block(field: str, text: str) -> list[FieldError]:
    """A range of addresses in its plain form."""
    try:
        if "/" not in text:
            raise ValueError
        loose = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return [field_errors.invalid(field, text, CIDR)]
    bare = str(loose.network_address) == str(ipaddress.ip_address(text.partition("/")[0]))
    return [] if bare else [field_errors.invalid(field, text, "must not have bits set beyond the prefix length")]


def domain_path(field: str, value: str) -> list[FieldError]:
    """A domain and a path behind it."""
    if not value:
        return [field_errors.required(field)]
    host, _, path = value.partition("/")
    if not host or not path:
        return [field_errors.invalid(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return [field_errors.invalid(field, host, told) for told in names.subdomain(host)]


def plain_keys(keys: Iterable[str]) -> bool:
    """Whether nothing can be wrong with any of these keys: the common case, told fast."""
    return all(map(_PLAIN.fullmatch, keys))


def config_key(field: str, key: str) -> list[FieldError]:
    """A key of a ConfigMap or Secret: it may become a file name."""
    told = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not _KEY.fullmatch(key):
        told.append(_KEY_TOLD)
    elif key in (".", ".."):
        told.append(f"must not be '{key}'")
    elif key.startswith(".."):
        told.append("must not start with '..'")
    return [field_errors.invalid(field, key, one) for one in told]


def number_or_percent(field: str, value: Any) -> list[FieldError]:
    """A count, or a share of at most all."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            return [field_errors.invalid(field, value, _PERCENT_TOLD)]
        return [field_errors.invalid(field, value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []
    return not_negative(field, value)


def selector(field: str, value: Object | None) -> list[FieldError]:
    """A label selector's expressions."""
    found: list[FieldError] = []
    for key, text in ((value or {}).get("matchLabels") or {}).items():
        found += [field_errors.invalid(f"{field}.matchLabels", key, told) for told in names.qualified(key)]
        found += [field_errors.invalid(f"{field}.matchLabels", text, told) for told in names.label_value(text)]
    for index, expression in enumerate((value or {}).get("matchExpressions") or ()):
        here = f"{field}.matchExpressions[{index}]"
        operator, values = expression.get("operator"), expression.get("values")
        if operator in (*LISTED, *UNLISTED):
            found += operands(f"{here}.values", operator, values)
        else:
            found.append(field_errors.invalid(f"{here}.operator", operator or "", "not a valid selector operator"))
        found += qualified(f"{here}.key", expression.get("key") or "")
        found += label_values(f"{here}.values", values or [])
    return found


def go_shape(fields: Object) -> str:
    """A value as a field error shows it whose fields have Go's names and order."""
    return "{" + ",".join(f'"{key}":{field_errors.format_value(value)}' for key, value in fields.items()) + "}"


def selects(value: Object | None, labels: Object) -> bool:
    """Whether a label selector matches these labels; an empty one matches nothing here."""
    value = value or {}
    wanted, expressions = value.get("matchLabels") or {}, value.get("matchExpressions") or []
    if not wanted and not expressions:
        return False
    if any(labels.get(key) != text for key, text in wanted.items()):
        return False
    for expression in expressions:
        has, given = expression.get("key") in labels, labels.get(expression.get("key"))
        operator, values = expression.get("operator"), expression.get("values") or []
        held = {
            "In": has and given in values,
            "NotIn": not has or given not in values,
            "Exists": has,
            "DoesNotExist": not has,
        }
        if not held.get(operator, False):
            return False
    return True
