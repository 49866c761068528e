"""URLs as Go parses them."""

import re
from typing import Final
from urllib.parse import urlsplit

_NOT_IN_HOST: Final = re.compile(r'[ "<>^`{|}%\\]')
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"|[A-Za-z][A-Za-z0-9+.-]*")


def refusal(text: str) -> str:
    """Why a text is no absolute URL or path; empty where it is one."""
    wrong = _wrong(text)
    return f'parse "{text}": {wrong}' if wrong else ""


def _wrong(text: str) -> str:
    if not text:
        return "empty url"
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if not (text.startswith("/") or (parts.scheme and ":" in text)):
        return "invalid URI for request"
    if found := _NOT_IN_HOST.search(parts.netloc):
        return f'invalid character "{found[0]}" in host name'
    if found := _BAD_ESCAPE.search(parts.path):
        return f'invalid URL escape "{parts.path[found.start() : found.start() + 3]}"'
    return "" if _SCHEME.fullmatch(parts.scheme) else "invalid URL"
