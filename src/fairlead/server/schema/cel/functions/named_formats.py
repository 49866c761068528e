"""The formats that rules know by name: what is wrong with a text by each."""

from collections.abc import Callable
from typing import Final

from fairlead.server.schema import formats
from fairlead.server.schema.cel.functions.urls import refusal
from fairlead.server.write import names


def _strict(name: str, told: str) -> Callable[[str], list[str]]:
    return lambda text: [] if formats.is_valid(name, text) else [told]


def _uri(text: str) -> list[str]:
    told = refusal(text)
    return [told] if told else []


FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": names.label,
    "dns1123Subdomain": names.subdomain,
    "dns1035Label": names.dns1035,
    "qualifiedName": names.qualified,
    "dns1123LabelPrefix": lambda text: names.label(text, True),
    "dns1123SubdomainPrefix": lambda text: names.subdomain(text, True),
    "dns1035LabelPrefix": lambda text: names.dns1035(text, True),
    "labelValue": names.label_value,
    "uri": _uri,
    "uuid": _strict("uuid", "does not match the UUID format"),
    "byte": _strict("byte", "invalid base64"),
    "date": _strict("date", "invalid date"),
    "datetime": _strict("datetime", "invalid datetime"),
}


def problems(name: str, text: str) -> list[str]:
    """What is wrong with a text by a format."""
    return FORMATS[name](text)
