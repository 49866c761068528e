"""The formats that rules can name in format.named(). A format is a function from a text to its errors."""

from collections.abc import Callable
from typing import Final

from fairlead.server.schema import formats, names
from fairlead.server.schema.cel.functions.urls import url_error


def _build_format_check(name: str, message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if formats.is_valid(name, text) else [message]


def _find_uri_errors(text: str) -> list[str]:
    error = url_error(text)
    return [error] if error else []


FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": names.label,
    "dns1123Subdomain": names.subdomain,
    "dns1035Label": names.dns1035,
    "qualifiedName": names.qualified,
    "dns1123LabelPrefix": lambda text: names.label(text, True),
    "dns1123SubdomainPrefix": lambda text: names.subdomain(text, True),
    "dns1035LabelPrefix": lambda text: names.dns1035(text, True),
    "labelValue": names.label_value,
    "uri": _find_uri_errors,
    "uuid": _build_format_check("uuid", "does not match the UUID format"),
    "byte": _build_format_check("byte", "invalid base64"),
    "date": _build_format_check("date", "invalid date"),
    "datetime": _build_format_check("datetime", "invalid datetime"),
}


def validate_format(name: str, text: str) -> list[str]:
    """Return the errors of a text in the format called `name`."""
    return FORMATS[name](text)
