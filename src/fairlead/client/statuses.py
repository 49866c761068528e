"""Parse the Status of an error response. A proxy in front of the server may send any other body."""

from typing import Any

import msgspec


class _Details(msgspec.Struct, rename="camel"):
    name: str | None = None
    retry_after_seconds: int | None = None
    causes: list[dict[str, Any]] | None = None


class _Status(msgspec.Struct):
    kind: str = ""  # the Status of an ERROR watch event may come without its kind
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_check = msgspec.json.Decoder(_Status).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read(raw: bytes | msgspec.Raw) -> dict[str, Any] | None:
    """Return the Status in `raw` as a dict, or None if `raw` is not a Status or a field has the wrong type."""
    try:
        _check(raw)
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
