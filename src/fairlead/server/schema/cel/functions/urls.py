"""Validation of URLs with the results of Go's net/url."""

import re
from typing import Final
from urllib.parse import urlsplit

_NOT_IN_HOST: Final = re.compile(r'[ "<>^`{|}%\\]')
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"|[A-Za-z][A-Za-z0-9+.-]*")


def url_error(text: str) -> str:
    """Return Go's error message if a text is not an absolute URL or path, else ""."""
    error = _find_error(text)
    return f'parse "{text}": {error}' if error else ""


def _find_error(text: str) -> str:
    if not text:
        return "empty url"
    try:
        url_parts = urlsplit(text)
        _ = url_parts.port
    except ValueError as error:
        return str(error)
    if not (text.startswith("/") or (url_parts.scheme and ":" in text)):
        return "invalid URI for request"
    if match := _NOT_IN_HOST.search(url_parts.netloc):
        return f'invalid character "{match[0]}" in host name'
    if match := _BAD_ESCAPE.search(url_parts.path):
        return f'invalid URL escape "{url_parts.path[match.start() : match.start() + 3]}"'
    return "" if _SCHEME.fullmatch(url_parts.scheme) else "invalid URL"
