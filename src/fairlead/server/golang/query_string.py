"""The query string of a URL, as Go's net/url parses it."""

import re
from urllib.parse import unquote_plus

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parse(text: str) -> dict[str, list[str]]:
    """Return all values of each key of a query string, in order. Malformed pairs are ignored."""
    query: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            key, _, value = pair.partition("=")
            query.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return query
