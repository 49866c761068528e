"""The query of a URL, as Go reads it."""

import re
from urllib.parse import unquote_plus

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parse(text: str) -> dict[str, list[str]]:
    """Every value of each key, in order. Malformed pairs do not count."""
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            key, _, value = pair.partition("=")
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found
