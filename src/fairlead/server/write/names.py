"""Names, labels and annotations: which are allowed, and how a refusal is worded."""

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


def _regex(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{e}', " for e in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _longer(limit: int, unit: str = "bytes") -> str:
    return f"must be no more than {limit} {unit}"


def subdomain(name: str, prefix: bool = False, unit: str = "characters") -> list[str]:
    """What is wrong with a DNS-1123 subdomain: most kinds' names. A generateName prefix may end in a dash."""
    name = masked(name) if prefix else name
    problems = [_longer(253, unit)] if len(name) > 253 else []
    if not DNS_1123_SUBDOMAIN.match(name):
        pattern = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
        problems.append(_regex(_SUBDOMAIN, pattern, "example.com"))
    return problems


def subdomain_or_underscore(name: str) -> list[str]:
    """What is wrong with a DNS subdomain that may hold underscores: where names are searched."""
    problems = [_longer(253, "characters")] if len(name) > 253 else []
    part = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
    pattern = rf"{part}(\.{part})*"
    if not re.fullmatch(pattern, name):
        problems.append(_regex(_UNDERSCORED, pattern, "example.com"))
    return problems


def label(name: str, prefix: bool = False) -> list[str]:
    """What is wrong with a DNS-1123 label: names of Namespaces and Services."""
    name = masked(name) if prefix else name
    problems = [_longer(63, "characters")] if len(name) > 63 else []
    if not DNS_1123_LABEL.match(name):
        if DNS_1123_SUBDOMAIN.match(name):
            problems.append("must not contain dots")
        else:
            problems.append(_regex(_LABEL, "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "my-name", "123-abc"))
    return problems


def dns1035(name: str, prefix: bool = False) -> list[str]:
    """What is wrong with a DNS-1035 label: kinds and plurals in lower case."""
    name = masked(name) if prefix else name
    problems = [_longer(63, "characters")] if len(name) > 63 else []
    if not DNS_1035_LABEL.match(name):
        problems.append(_regex(_LABEL_1035, "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123"))
    return problems


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """What is wrong with a name that must fit in a path: roles and the check that every kind gets."""
    problems = []
    if not prefix:
        if name == ".":
            return ["may not be '.'"]
        if name == "..":
            return ["may not be '..'"]
    problems += [f"may not contain '{ch}'" for ch in "/%" if ch in name]
    return problems


def qualified(name: str) -> list[str]:
    """What is wrong with a qualified name: label and annotation keys, finalizers."""
    problems: list[str] = []
    parts = name.split("/")
    if len(parts) > 2:
        message = _regex(_QUALIFIED, "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", "MyName", "my.name", "123-abc")
        return [
            f"a valid label key {message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {p}" for p in subdomain(parts[0], unit="bytes")]
    part = parts[-1]
    if not part:
        problems.append("name part must be non-empty")
    elif len(part) > 63:
        problems.append(f"name part {_longer(63)}")
    if not QUALIFIED_PART.match(part):
        message = _regex(_QUALIFIED, "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", "MyName", "my.name", "123-abc")
        problems.append(f"name part {message}")
    return problems


def label_value(value: str) -> list[str]:
    problems = [_longer(63)] if len(value) > 63 else []
    if not LABEL_VALUE.match(value):
        pattern = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
        problems.append(_regex(_VALUE, pattern, "MyValue", "my_value", "12345"))
    return problems


def masked(prefix: str) -> str:
    """A generateName prefix as it is checked: a trailing dash will be followed by something."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
