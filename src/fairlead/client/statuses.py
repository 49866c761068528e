"""The Status that a refusal carries, taken only if it is one: what stands before a server may answer anything."""

from typing import Any

import msgspec


class _Details(msgspec.Struct, rename="camel"):
    name: str | None = None
    retry_after_seconds: int | None = None
    causes: list[dict[str, Any]] | None = None


class _Status(msgspec.Struct):
    kind: str = ""  # an error in a watch is a Status, whether it says so or not
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_check = msgspec.json.Decoder(_Status).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def read(raw: bytes | msgspec.Raw) -> dict[str, Any] | None:
    """The Status as it was sent, with fields of the types that they must have; None when it is anything else."""
    try:
        _check(raw)
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
