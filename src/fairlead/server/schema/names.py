"""Validation of names, label keys and label values. A function returns a list of error messages."""

import re

DNS_1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
DNS_1123_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
DNS_1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
QUALIFIED_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")

_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
_UNDERSCORED = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character"
)
_LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character"
)


def _describe_pattern(message: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{e}', " for e in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


def _format_too_long(limit: int, unit: str = "bytes") -> str:
    return f"must be no more than {limit} {unit}"


def subdomain(name: str, is_prefix: bool = False, unit: str = "characters") -> list[str]:
    """Return the errors of a DNS-1123 subdomain, the name of most kinds.

    `is_prefix`: a generateName, which may end in a dash.
    """
    name = mask_trailing_dash(name) if is_prefix else name
    errors = [_format_too_long(253, unit)] if len(name) > 253 else []
    if not DNS_1123_SUBDOMAIN.match(name):
        pattern = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
        errors.append(_describe_pattern(_SUBDOMAIN, pattern, "example.com"))
    return errors


def subdomain_or_underscore(name: str) -> list[str]:
    """Return the errors of a DNS search domain: a DNS subdomain that may contain underscores."""
    errors = [_format_too_long(253, "characters")] if len(name) > 253 else []
    part_pattern = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
    pattern = rf"{part_pattern}(\.{part_pattern})*"
    if not re.fullmatch(pattern, name):
        errors.append(_describe_pattern(_UNDERSCORED, pattern, "example.com"))
    return errors


def label(name: str, is_prefix: bool = False) -> list[str]:
    """Return the errors of a DNS-1123 label, the name of a Namespace or Service."""
    name = mask_trailing_dash(name) if is_prefix else name
    errors = [_format_too_long(63, "characters")] if len(name) > 63 else []
    if not DNS_1123_LABEL.match(name):
        if DNS_1123_SUBDOMAIN.match(name):
            errors.append("must not contain dots")
        else:
            errors.append(_describe_pattern(_LABEL, "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "my-name", "123-abc"))
    return errors


def dns1035(name: str, is_prefix: bool = False) -> list[str]:
    """Return the errors of a DNS-1035 label, such as a plural or a kind in lower case."""
    name = mask_trailing_dash(name) if is_prefix else name
    errors = [_format_too_long(63, "characters")] if len(name) > 63 else []
    if not DNS_1035_LABEL.match(name):
        errors.append(_describe_pattern(_LABEL_1035, "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123"))
    return errors


def path_segment(name: str, is_prefix: bool = False) -> list[str]:
    """Return the errors of a name as a path segment: the rule for roles, and the minimum for all kinds."""
    errors = []
    if not is_prefix:
        if name == ".":
            return ["may not be '.'"]
        if name == "..":
            return ["may not be '..'"]
    errors += [f"may not contain '{ch}'" for ch in "/%" if ch in name]
    return errors


def qualified(name: str) -> list[str]:
    """Return the errors of a qualified name: a label key, an annotation key or a finalizer."""
    errors: list[str] = []
    parts = name.split("/")
    if len(parts) > 2:
        message = _describe_pattern(
            _QUALIFIED, "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", "MyName", "my.name", "123-abc"
        )
        return [
            f"a valid label key {message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            errors.append("prefix part must be non-empty")
        else:
            errors += [f"prefix part {error}" for error in subdomain(parts[0], unit="bytes")]
    name_part = parts[-1]
    if not name_part:
        errors.append("name part must be non-empty")
    elif len(name_part) > 63:
        errors.append(f"name part {_format_too_long(63)}")
    if not QUALIFIED_PART.match(name_part):
        message = _describe_pattern(
            _QUALIFIED, "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", "MyName", "my.name", "123-abc"
        )
        errors.append(f"name part {message}")
    return errors


def label_value(value: str) -> list[str]:
    """Return the errors of a label value."""
    errors = [_format_too_long(63)] if len(value) > 63 else []
    if not LABEL_VALUE.match(value):
        pattern = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
        errors.append(_describe_pattern(_VALUE, pattern, "MyValue", "my_value", "12345"))
    return errors


def mask_trailing_dash(prefix: str) -> str:
    """Return a generateName with its trailing dash replaced, because a suffix will follow the dash."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
